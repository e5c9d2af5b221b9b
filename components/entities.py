"""The named entities of a text with their scores, as a table."""

from __future__ import annotations

from collections.abc import Sequence

import pandas as pd

from components.heatmap import EntityMark
from components.markup import Child, Html, shown, tag, visible
from components.messages import Catalogue
from components.names import named
from components.numbers import comparison, nats, probability
from components.verdict import verdict_badge
from pipelines.types import Token

__all__ = ["entity_frame", "entity_table", "tokens_of"]


def tokens_of(mark: EntityMark, tokens: Sequence[Token]) -> tuple[Token, ...]:
    """The tokens that contribute a character to the entity, in order."""
    return tuple(token for token in tokens if token.start < mark.end and mark.start < token.end)


def entity_table(
    text: str,
    tokens: Sequence[Token],
    entities: Sequence[EntityMark],
    t: Catalogue,
    *,
    theta_1: float | None = None,
    theta_2: float | None = None,
    id: str = "entities",
) -> str:
    """The entities as an HTML table; on a narrow screen every row becomes a card.

    `theta_1` is the least P(E) and `theta_2` the largest H(E) in nats that are not doubtful.
    """
    if not entities:
        return tag("p", t("entity.none"), class_="vs-empty", id=id, data_key=id)
    names = [t(f"entity.column.{name}") for name in _COLUMNS]
    head = tag(
        "tr",
        (tag("th", name, scope="col", role="columnheader") for name in names),
        role="row",
    )
    rows = (
        _row(text, tokens, mark, names, theta_1, theta_2, f"{id}-{number}", t)
        for number, mark in enumerate(entities)
    )
    return tag(
        "table",
        tag("caption", t("entity.caption", count=len(entities)), class_="vs-sr"),
        tag("thead", head, role="rowgroup"),
        tag("tbody", rows, role="rowgroup"),
        class_="vs-table",
        role="table",
        id=id,
        data_key=id,
    )


def entity_frame(
    text: str, tokens: Sequence[Token], entities: Sequence[EntityMark], t: Catalogue
) -> pd.DataFrame:
    """One row per entity, columns named in the catalogue's language; scores are unrounded."""
    columns = [t(f"entity.column.{name}") for name in (*_COLUMNS, "repeats")]
    rows = [
        (
            text[mark.start : mark.end],
            named("entity.label", mark.label, t),
            mark.probability,
            mark.entropy,
            len(tokens_of(mark, tokens)),
            t(f"verdict.{mark.verdict}"),
            mark.repeats,
        )
        for mark in entities
    ]
    return pd.DataFrame(rows, columns=pd.Index(columns))


_COLUMNS = ("name", "label", "probability", "entropy", "tokens", "verdict")


def _row(
    text: str,
    tokens: Sequence[Token],
    mark: EntityMark,
    names: Sequence[str],
    theta_1: float | None,
    theta_2: float | None,
    key: str,
    t: Catalogue,
) -> Html:
    pieces = tokens_of(mark, tokens)
    cells: list[Child] = [
        tag("bdi", shown(text[mark.start : mark.end]), class_="vs-strong"),
        named("entity.label", mark.label, t),
        _against(mark.probability, theta_1, probability(mark.probability)),
        _against(mark.entropy, theta_2, nats(mark.entropy)),
        tag(
            "span",
            str(len(pieces)),
            tag("span", " ", _pieces(pieces, t), class_="vs-note") if len(pieces) > 1 else None,
        ),
        tag(
            "span",
            verdict_badge(mark.verdict, t),
            tag("span", t("entity.repeats.short"), class_="vs-chip") if mark.repeats else None,
            class_="vs-chips",
        ),
    ]
    numeric = {2, 3, 4}
    return tag(
        "tr",
        (
            tag(
                "td",
                cell,
                role="cell",
                data_label=name,
                class_="vs-num" if number in numeric else None,
            )
            for number, (cell, name) in enumerate(zip(cells, names, strict=True))
        ),
        role="row",
        data_key=key,
        class_=f"vs-row-{mark.verdict.replace('_', '-')}",
    )


def _against(value: float | None, threshold: float | None, plain: str) -> str:
    if value is None or threshold is None:
        return plain
    return " ".join(comparison(value, threshold))


def _pieces(tokens: Sequence[Token], t: Catalogue) -> str:
    listed = t("list.separator").join(probability(token.probability) for token in tokens)
    return visible(f"({listed})")

"""A generated text in which every token shows how probable or how uncertain it was.

A byte-level token may hold part of a character. Tokens that share a character are merged into one
unit, because a part of a character cannot be drawn. A unit's probability is the product of its
tokens' probabilities, so it is never above the minimum of them; its entropy is the maximum.
"""

from __future__ import annotations

import itertools
from bisect import bisect_left
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from math import exp
from typing import Literal, get_args

from components.elements import SEVERITY, VERDICT_SIGNS, distinct, table, table_row, verdict_badge
from components.markup import Child, Html, Json, join, shown, tag, visible
from components.messages import Catalogue, comparison, named, nats, probability
from pipelines.run.events import Verdict
from pipelines.types import Token

__all__ = [
    "ENTROPY_EDGES",
    "MEASURES",
    "PROBABILITY_EDGES",
    "EntityMark",
    "Measure",
    "Unit",
    "entity_table",
    "heat_level",
    "heatmap",
    "heatmaps",
    "text_units",
    "tokens_of",
]

Measure = Literal["probability", "entropy"]
MEASURES: tuple[Measure, ...] = get_args(Measure)

PROBABILITY_EDGES = (0.95, 0.8, 0.6, 0.4, 0.2, 0.05)
"""Levels 1 to 6 begin below these probabilities; 0.6 is the usual threshold for an entity."""

ENTROPY_EDGES = (0.1, 0.5, 1.0, 1.5, 2.5, 4.0)
"""Levels 1 to 6 begin at these entropies in nats. Level 6 is open-ended: 4 nats are as uncertain
as a fair choice among 55 tokens, and more is shown no darker."""


@dataclass(frozen=True, slots=True)
class Unit:
    """The characters [start, end) of a text and the tokens they came from, in order."""

    start: int
    end: int
    tokens: tuple[Token, ...] = field(default=())

    @property
    def probability(self) -> float | None:
        """Product of the tokens' probabilities; None without tokens or when one is unknown."""
        logs = [token.logprob for token in self.tokens if token.logprob is not None]
        return exp(sum(logs)) if logs and len(logs) == len(self.tokens) else None

    @property
    def entropy(self) -> float | None:
        """Largest entropy of the tokens in nats; None when none is known."""
        return max((t.entropy for t in self.tokens if t.entropy is not None), default=None)

    def value(self, measure: Measure) -> float | None:
        """The unit's probability or entropy."""
        return self.probability if measure == "probability" else self.entropy


def heat_level(measure: Measure, value: float | None) -> int | None:
    """Step of the heat scale, 0 (sure) to 6 (improbable, uncertain); None without a value."""
    if value is None:
        return None
    if measure == "probability":
        return sum(value < edge for edge in PROBABILITY_EDGES)
    return sum(value >= edge for edge in ENTROPY_EDGES)


def text_units(length: int, tokens: Sequence[Token], cuts: Iterable[int] = ()) -> list[Unit]:
    """Units that cover [0, length) without gap or overlap.

    Tokens may overlap and need not reach every character; what they leave becomes units without
    tokens, which are also divided at `cuts`. Tokens without characters are left out.
    """
    merged: list[tuple[int, int, list[Token]]] = []
    for token in sorted(tokens, key=lambda token: token.start):
        start, end = max(0, token.start), min(length, token.end)
        if start >= end:
            continue
        if merged and start < merged[-1][1]:
            first, last, members = merged[-1]
            merged[-1] = (first, max(last, end), [*members, token])
        else:
            merged.append((start, end, [token]))

    edges = sorted(cuts)
    found: list[Unit] = []
    position = 0
    for start, end, members in merged:
        found += _bare(position, start, edges)
        found.append(Unit(start, end, tuple(members)))
        position = end
    return [*found, *_bare(position, length, edges)]


def _bare(start: int, end: int, edges: list[int]) -> list[Unit]:
    inside = edges[bisect_left(edges, start + 1) : bisect_left(edges, end)]
    stops = [start, *dict.fromkeys(inside), end]
    return [Unit(a, b) for a, b in itertools.pairwise(stops) if a < b]


_ALTERNATIVES = 5
_NAMED_IN_SUMMARY = 5


@dataclass(frozen=True, slots=True)
class EntityMark:
    """A named entity at [start, end) of the text and what a detector made of it.

    `probability` is P(E) in [0, 1], `entropy` H(E) in nats; `repeats` says that the entity only
    repeats the question, so that it is not a claim of the model.
    """

    start: int
    end: int
    label: str
    verdict: Verdict
    probability: float | None = None
    entropy: float | None = None
    repeats: bool = False


def heatmap(
    text: str,
    tokens: Sequence[Token],
    entities: Sequence[EntityMark] = (),
    *,
    measure: Measure = "probability",
    t: Catalogue,
    id: str,
) -> str:
    """`text` as HTML with one span a token, a box around every entity, and a legend.

    Offsets of tokens and entities are Python string indices into `text`. Values, alternatives and
    entities stand once, as JSON, on the outer element, where `view.js` finds them for the tooltip.
    Entities that overlap share one box with a label each. One tab stop; arrow keys move inside.
    """
    known, units = _prepared(text, tokens, entities)
    return _figure(text, units, known, measure, t, id, **_data(text, units, known, t))


def heatmaps(
    text: str,
    tokens: Sequence[Token],
    entities: Sequence[EntityMark] = (),
    *,
    t: Catalogue,
    id: str,
) -> str:
    """A heatmap of each measure, in an element of the class `vs-by-<measure>`.

    Values, alternatives and entities stand once, on the element around both.
    """
    known, units = _prepared(text, tokens, entities)
    figures = (
        tag(
            "div",
            _figure(text, units, known, measure, t, f"{id}-{measure}"),
            class_=f"vs-by-{measure}",
            data_key=measure,
        )
        for measure in MEASURES
    )
    return tag("div", figures, id=id, data_key=id, **_data(text, units, known, t))


def _prepared(
    text: str, tokens: Sequence[Token], entities: Sequence[EntityMark]
) -> tuple[list[EntityMark], list[Unit]]:
    """The entities that stand in `text`, and the units that it is drawn in."""
    known = [
        mark
        for mark in entities
        if mark.start >= 0 and mark.end <= len(text) and text[mark.start : mark.end].strip()
    ]
    cuts = [offset for mark in known for offset in (mark.start, mark.end)]
    return known, text_units(len(text), tokens, cuts)


def _figure(
    text: str,
    units: list[Unit],
    known: list[EntityMark],
    measure: Measure,
    t: Catalogue,
    id: str,
    **data: Json,
) -> Html:
    summary_id = f"{id}-summary"
    return tag(
        "figure",
        tag("p", _summary(text, units, known, t), id=summary_id, class_="vs-sr"),
        tag(
            "div",
            join(_body(text, units, known, measure, t)),
            class_="vs-heat-text vs-answer",
            role="group",
            dir="auto",
            data_roving="text",
            aria_label=t(f"heatmap.name.{measure}"),
            aria_describedby=summary_id,
        ),
        _legend(measure, known, t),
        class_="vs-heat",
        id=id,
        data_key=id,
        **data,
    )


def _data(text: str, units: list[Unit], known: list[EntityMark], t: Catalogue) -> dict[str, Json]:
    """What the tooltip shows, in the order of `data-i` and `data-e`."""
    return {
        "data_tokens": Json([_token_data(unit) for unit in units if unit.tokens]),
        "data_entities": Json([_entity_data(text, mark, t) for mark in known]),
        "data_words": Json(_tip_words(t)),
    }


_TIP_WORDS = (
    "probability",
    "entropy",
    "nats",
    "alternatives",
    "parts",
    "written",
    "unknown",
    "space",
    "newline",
)


def _tip_words(t: Catalogue) -> dict[str, str]:
    # The script fills in what differs from token to token.
    truncated = t("heatmap.tip.truncated", k="{k}", tail="{tail}")
    return {name: t(f"heatmap.tip.{name}") for name in _TIP_WORDS} | {"truncated": truncated}


def _body(
    text: str, units: list[Unit], marks: list[EntityMark], measure: Measure, t: Catalogue
) -> Iterator[Html]:
    boxes = _boxes(units, marks)
    number = 0
    inside: list[Html] = []
    for position, unit in enumerate(units):
        piece, box = text[unit.start : unit.end], boxes[position]
        lead, span = _unit(piece, unit, number, measure)
        if box and position and boxes[position - 1] is box:
            inside += [lead, span]
        elif box and piece.strip():
            # The space before an entity belongs to its token, but not into its box.
            yield lead
            inside = [span]
        else:
            yield lead
            yield span
            inside = []
        if box and (position + 1 == len(units) or boxes[position + 1] is not box):
            yield _box(inside, box, marks, t)
        number += bool(unit.tokens)


def _boxes(units: list[Unit], marks: list[EntityMark]) -> list[list[int] | None]:
    """For every unit the entities of its box. Entities that share a unit share their box."""
    boxes: list[list[int] | None] = [None] * len(units)
    reached = -1
    current: list[int] = []
    for index in sorted(range(len(marks)), key=lambda i: (marks[i].start, -marks[i].end)):
        mark = marks[index]
        covered = [i for i, u in enumerate(units) if u.start < mark.end and mark.start < u.end]
        if covered[0] > reached:
            current = []
        current.append(index)
        reached = max(reached, covered[-1])
        for position in covered:
            boxes[position] = current
    return boxes


def _box(inside: list[Html], box: list[int], marks: list[EntityMark], t: Catalogue) -> Html:
    worst = max((marks[i].verdict for i in box), key=SEVERITY.index)
    repeated = all(marks[i].repeats for i in box)
    labels = [_box_label(marks[i], t) for i in box]
    # A label never starts a line without the word it belongs to.
    end = tag("span", *inside[-1:], labels, class_="vs-entity-end")
    return tag(
        "span",
        *inside[:-1],
        end,
        class_=f"vs-entity vs-verdict-{worst.replace('_', '-')}"
        + (" vs-entity-repeats" if repeated else ""),
        data_e=" ".join(map(str, box)),
    )


def _box_label(mark: EntityMark, t: Catalogue) -> Html:
    return tag(
        "span",
        named("entity.label", mark.label, t),
        _sign(mark.verdict),
        tag("span", t(f"verdict.{mark.verdict}"), class_="vs-sr"),
        tag("span", t("entity.repeats.short"), class_="vs-entity-note") if mark.repeats else None,
        class_="vs-entity-label",
    )


def _unit(piece: str, unit: Unit, number: int, measure: Measure) -> tuple[Html, Html]:
    """The white space before a unit, and the unit itself; all of it if it is only white space."""
    if not unit.tokens:
        return Html(""), shown(piece)
    level = heat_level(measure, unit.value(measure))
    css = "vs-hx" if level is None else f"vs-h{level}"
    body = piece.lstrip() or piece
    if "\n" in body and not body.strip():
        css += " vs-newline"
    span = tag("span", shown(body), class_=css, data_i=number, tabindex=None if number else 0)
    return shown(piece[: len(piece) - len(body)]), span


def _token_data(unit: Unit) -> list[object]:
    """[probability, entropy, top-k or 0, tail mass, alternatives, parts]; empty ends cut off.

    Alternatives are [index of the one written, text, probability, text, probability, ...], parts
    [text, probability, ...]: flat, because there is one such list for every token of a long text.
    """
    first = unit.tokens[0]
    truncated = any(token.top_k is not None for token in unit.tokens)
    data: list[object] = [
        probability(unit.probability),
        nats(unit.entropy),
        first.top_k or 0,
        probability(max(token.tail_mass for token in unit.tokens)) if truncated else "",
        _alternatives(first) if len(unit.tokens) == 1 else [],
        [part for token in unit.tokens for part in _pair(token.text, token.probability)]
        if len(unit.tokens) > 1
        else [],
    ]
    while data and data[-1] in ([], "", 0):
        data.pop()
    return data


def _alternatives(token: Token) -> list[str | int]:
    best = sorted(token.alternatives, key=lambda a: -a.logprob)[:_ALTERNATIVES]
    if not best:
        return []
    rows = [(a.text, a.logprob) for a in best]
    written = next((i for i, (text, _) in enumerate(rows) if text == token.text), None)
    if written is None and token.logprob is not None:
        rows[_ALTERNATIVES - 1 :] = [(token.text, token.logprob)]
        written = len(rows) - 1
    # A leading space is left out where that keeps all of them apart.
    bare = [text.removeprefix(" ") or text for text, _ in rows]
    if len(set(bare)) == len(bare):
        rows = [(text, logprob) for text, (_, logprob) in zip(bare, rows, strict=True)]
    pairs = [part for text, logprob in rows for part in _pair(text, exp(logprob))]
    return [-1 if written is None else written, *pairs]


def _pair(text: str, value: float | None) -> tuple[str, str]:
    return _spelled(text), probability(value)


def _spelled(text: str) -> str:
    """A token's text with the white space at its ends made visible."""
    if not text:
        return "∅"
    marks = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥"})
    core = text.strip()
    if not core:
        return visible(text.translate(marks))
    start = text.index(core)
    end = start + len(core)
    return visible(text[:start].translate(marks) + core + text[end:].translate(marks))


def _entity_data(text: str, mark: EntityMark, t: Catalogue) -> list[str]:
    return [
        visible(text[mark.start : mark.end]),
        named("entity.label", mark.label, t),
        mark.verdict.replace("_", "-"),
        f"{VERDICT_SIGNS[mark.verdict]} {t(f'verdict.{mark.verdict}')}",
        f"P(E) {probability(mark.probability)} · H(E) {nats(mark.entropy)}",
        t("entity.repeats.long") if mark.repeats else "",
    ]


def _summary(text: str, units: list[Unit], marks: list[EntityMark], t: Catalogue) -> str:
    """What the colours say, in words."""
    valued = [(unit.probability, unit) for unit in units if unit.probability is not None]
    sentences = [t("heatmap.summary.tokens", count=len(valued))]
    low = sorted((pair for pair in valued if pair[0] < 0.4), key=lambda pair: pair[0])
    if low:
        named = t("list.separator").join(
            t(
                "heatmap.summary.item",
                text=visible(text[unit.start : unit.end].strip()) or t("heatmap.tip.space"),
                value=probability(value),
            )
            for value, unit in low[:_NAMED_IN_SUMMARY]
        )
        sentences.append(t("heatmap.summary.low", count=len(low), list=named))
    if marks:
        doubtful = [visible(text[m.start : m.end]) for m in marks if m.verdict == "doubtful"]
        sentences.append(t("heatmap.summary.entities", count=len(marks)))
        if doubtful:
            names = t("list.separator").join(doubtful)
            sentences.append(t("heatmap.summary.doubtful", count=len(doubtful), list=names))
    return t("sentence.separator").join(sentences)


def _legend(measure: Measure, marks: list[EntityMark], t: Catalogue) -> Html:
    if measure == "probability":
        low = [f"{edge:g}" for edge in PROBABILITY_EDGES]
        ranges = [f"≥ {low[0]}", *(f"{b}–{a}" for a, b in itertools.pairwise(low))]
        ranges.append(f"< {low[-1]}")
    else:
        high = [f"{edge:g}" for edge in ENTROPY_EDGES]
        ranges = [f"< {high[0]}", *(f"{a}–{b}" for a, b in itertools.pairwise(high))]
        ranges.append(f"≥ {high[-1]}")
    steps = (
        tag("li", tag("span", label, class_=f"vs-h{level}")) for level, label in enumerate(ranges)
    )
    kinds: list[Child] = []
    for verdict in distinct(mark.verdict for mark in marks):
        sample = tag("span", t(f"verdict.{verdict}"), _sign(verdict))
        css = f"vs-entity vs-verdict-{verdict.replace('_', '-')}"
        kinds.append(tag("li", tag("span", sample, class_=css)))
    if any(mark.repeats for mark in marks):
        sample = tag("span", t("entity.repeats.short"), class_="vs-entity vs-entity-repeats")
        kinds.append(tag("li", sample))
    return tag(
        "figcaption",
        tag("span", t(f"heatmap.legend.{measure}"), class_="vs-legend-name"),
        tag("ol", steps, class_="vs-legend-scale"),
        tag("ul", kinds, class_="vs-legend-kinds") if kinds else None,
        class_="vs-legend",
    )


def _sign(verdict: Verdict) -> Html | None:
    """Only what stands out has a sign; a plain box is confident."""
    if verdict == "confident":
        return None
    return tag("span", VERDICT_SIGNS[verdict], class_="vs-sign", aria_hidden="true")


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

    `theta_1` is the minimum P(E) and `theta_2` the maximum H(E) in nats that are not doubtful.
    """
    if not entities:
        return tag("p", t("entity.none"), class_="vs-empty", id=id, data_key=id)
    names = [t(f"entity.column.{name}") for name in _COLUMNS]
    rows = (
        _entity_row(text, tokens, mark, names, theta_1, theta_2, f"{id}-{number}", t)
        for number, mark in enumerate(entities)
    )
    caption = t("entity.caption", count=len(entities))
    return table(caption, names, rows, id=id, data_key=id)


_COLUMNS = ("name", "label", "probability", "entropy", "tokens", "verdict")


def _entity_row(
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
    listed = t("list.separator").join(probability(token.probability) for token in pieces)
    cells: list[Child] = [
        tag("bdi", shown(text[mark.start : mark.end]), class_="vs-strong"),
        named("entity.label", mark.label, t),
        _against(mark.probability, theta_1, probability(mark.probability)),
        _against(mark.entropy, theta_2, nats(mark.entropy)),
        tag(
            "span",
            str(len(pieces)),
            tag("span", " ", f"({listed})", class_="vs-note") if len(pieces) > 1 else None,
        ),
        tag(
            "span",
            verdict_badge(mark.verdict, t),
            tag("span", t("entity.repeats.short"), class_="vs-chip") if mark.repeats else None,
            class_="vs-chips",
        ),
    ]
    css = f"vs-row-{mark.verdict.replace('_', '-')}"
    return table_row(cells, names, key, numeric=(2, 3, 4), css=css)


def _against(value: float | None, threshold: float | None, plain: str) -> str:
    if value is None or threshold is None:
        return plain
    return " ".join(comparison(value, threshold))

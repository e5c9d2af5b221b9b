"""A generated text in which every token shows how probable or how uncertain it was."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import exp

from components.markup import Child, Html, Json, join, shown, tag, visible
from components.messages import Catalogue
from components.names import named
from components.numbers import nats, probability
from components.units import (
    ENTROPY_EDGES,
    PROBABILITY_EDGES,
    Measure,
    Unit,
    heat_level,
    text_units,
)
from components.verdict import SEVERITY, VERDICT_SIGNS, distinct
from pipelines.run.events import Verdict
from pipelines.types import Token

__all__ = ["EntityMark", "heatmap"]

_ALTERNATIVES = 5
_NAMED_IN_SUMMARY = 5


@dataclass(frozen=True, slots=True)
class EntityMark:
    """A named entity at [start, end) of the text and what a detector made of it.

    `probability` is P(E) in [0, 1], `entropy` H(E) in nats; `repeats` says that the entity only
    repeats the question, so that it is no claim of the model's.
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
    known = [m for m in entities if m.start >= 0 and m.end <= len(text) and _covers(text, m)]
    cuts = [offset for mark in known for offset in (mark.start, mark.end)]
    units = text_units(len(text), tokens, cuts)
    body = join(_body(text, units, known, measure, t))
    summary_id = f"{id}-summary"
    return tag(
        "figure",
        tag("p", _summary(text, units, known, t), id=summary_id, class_="vs-sr"),
        tag(
            "div",
            body,
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
        data_tokens=Json([_token_data(unit) for unit in units if unit.tokens]),
        data_entities=Json([_entity_data(text, mark, t) for mark in known]),
        data_words=Json(_tip_words(t)),
    )


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


def _covers(text: str, mark: EntityMark) -> bool:
    return bool(text[mark.start : mark.end].strip())


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

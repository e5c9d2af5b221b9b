"""A generated text in which every token shows how probable or how uncertain it was.

A byte-level token may hold part of a character. Tokens that share a character are merged into one
unit, because a part of a character cannot be drawn. A unit's probability is the product of its
tokens' probabilities, so it is never above the minimum of them; its entropy is the maximum.
"""

from __future__ import annotations

import itertools
import re
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import SequenceMatcher
from itertools import pairwise, takewhile
from math import exp
from typing import Literal, NamedTuple, get_args

from components.base.elements import (
    SEVERITY,
    VERDICT_SIGNS,
    Column,
    TableRow,
    answer_text,
    distinct,
    marked_text,
    sign,
    table,
    verdict_badge,
    verdict_class,
)
from components.base.html import Child, Html, Json, join, tag, visible
from components.base.words import (
    Catalogue,
    comparison,
    lang,
    means_list,
    named,
    nats,
    probability,
    two_digits,
    what_it_means,
)
from pipelines.base import Language, Token, UnsupportedSpan
from pipelines.methods.subjects import chinese_names
from pipelines.retrieval.indexes import content_terms
from pipelines.run.events import Verdict
from pipelines.text.chinese import word_boundaries
from pipelines.text.languages import simplified

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
        return min(1.0, exp(sum(logs))) if logs and len(logs) == len(self.tokens) else None

    @property
    def entropy(self) -> float | None:
        """Entropy of the first token in nats, when the unit was open; None when none is known."""
        return next((t.entropy for t in self.tokens if t.entropy is not None), None)

    def value(self, measure: Measure) -> float | None:
        """Return the unit's probability or entropy."""
        return self.probability if measure == "probability" else self.entropy


def heat_level(measure: Measure, value: float | None) -> int | None:
    """Return the step of the heat scale, 0 (sure) to 6 (improbable, uncertain); None without
    a value.
    """
    if value is None:
        return None
    if measure == "probability":
        return sum(value < edge for edge in PROBABILITY_EDGES)
    return sum(value >= edge for edge in ENTROPY_EDGES)


def text_units(length: int, tokens: Sequence[Token], cuts: Iterable[int] = ()) -> list[Unit]:
    """Return units that cover [0, length) without gap or overlap.

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


_CERTAIN_KINDS = frozenset(
    ("DATE", "TIME", "PERCENT", "MONEY", "QUANTITY", "ORDINAL", "CARDINAL", "ANSWER")
)
"""Kinds that are read from the form of the words; which kind of name something is, is a guess."""


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
    """Return `text` as HTML with one span a token, a box around every entity, and a legend.

    Offsets of tokens and entities are Python string indices into `text`. Values, alternatives and
    entities stand once, as JSON, on the outer element, where `view.js` finds them for the tooltip.
    Entities that overlap share one box with a label each. One tab stop; arrow keys move inside.
    """
    heat = _Heat(text, tokens, entities, t)
    return heat.figure(measure, id, **heat.data())


def heatmaps(
    text: str,
    tokens: Sequence[Token],
    entities: Sequence[EntityMark] = (),
    *,
    t: Catalogue,
    id: str,
) -> str:
    """Return a heatmap of each measure, in an element of the class `vs-by-<measure>`.

    Values, alternatives and entities stand once, on the element around both.
    """
    heat = _Heat(text, tokens, entities, t)
    figures = (
        tag(f"div.vs-by-{measure}", heat.figure(measure, f"{id}-{measure}"), key=measure)
        for measure in MEASURES
    )
    return tag("div", figures, id=id, key=id, **heat.data())


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


class _Heat:
    """A text with the entities that stand in it, and the units that it is drawn in."""

    def __init__(
        self, text: str, tokens: Sequence[Token], entities: Sequence[EntityMark], t: Catalogue
    ) -> None:
        self.text, self.t = text, t
        self.marks = [
            mark
            for mark in entities
            if mark.start >= 0 and mark.end <= len(text) and text[mark.start : mark.end].strip()
        ]
        cuts = [offset for mark in self.marks for offset in (mark.start, mark.end)]
        self.units = text_units(len(text), tokens, cuts)

    def figure(self, measure: Measure, id: str, **data: Json) -> Html:
        """Return the text in the colours of one measure, with its legend."""
        summary_id = f"{id}-summary"
        body = tag(
            "div.vs-heat-text.vs-answer",
            self._body(measure),
            role="group",
            dir="auto",
            data_roving="text",
            aria_label=self.t(f"heatmap.name.{measure}"),
            aria_describedby=summary_id,
        )
        summary = tag("p.vs-sr", self._summary(), id=summary_id)
        return tag("figure.vs-heat", summary, body, self._legend(measure), id=id, key=id, **data)

    def data(self) -> dict[str, Json]:
        """Return what the tooltip shows, in the order of `data-i` and `data-e`."""
        # The script fills in what differs from token to token.
        words = {name: self.t(f"heatmap.tip.{name}") for name in _TIP_WORDS}
        words["truncated"] = self.t("heatmap.tip.truncated", k="{k}", tail="{tail}")
        return {
            "data_tokens": Json([_token_data(unit) for unit in self.units if unit.tokens]),
            "data_entities": Json([self._entity(mark) for mark in self.marks]),
            "data_words": Json(words),
        }

    def _entity(self, mark: EntityMark) -> list[str]:
        return [
            visible(self.text[mark.start : mark.end]),
            named("entity.label", mark.label, self.t),
            mark.verdict.replace("_", "-"),
            f"{VERDICT_SIGNS[mark.verdict]} {self.t(f'verdict.{mark.verdict}')}",
            f"P(E) {probability(mark.probability)} · H(E) {nats(mark.entropy)}",
            self.t("entity.repeats.long") if mark.repeats else "",
        ]

    def _body(self, measure: Measure) -> Iterator[Child]:
        boxes = _boxes(self.units, self.marks)
        number = 0
        inside: list[Child] = []
        for position, unit in enumerate(self.units):
            piece, box = self.text[unit.start : unit.end], boxes[position]
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
            if box and (position + 1 == len(self.units) or boxes[position + 1] is not box):
                yield self._box(inside, [self.marks[index] for index in box], box)
            number += bool(unit.tokens)

    def _box(self, inside: list[Child], marks: list[EntityMark], numbers: list[int]) -> Html:
        worst = max((mark.verdict for mark in marks), key=SEVERITY.index)
        repeats = ".vs-entity-repeats" if all(mark.repeats for mark in marks) else ""
        labels = (
            tag(
                "span.vs-entity-label",
                self._kind(mark),
                _sign(mark.verdict),
                tag("span.vs-sr", self.t(f"verdict.{mark.verdict}")),
                mark.repeats and tag("span.vs-entity-note", self.t("entity.repeats.short")),
            )
            for mark in marks
        )
        # A label never starts a line without the word it belongs to.
        end = tag("span.vs-entity-end", *inside[-1:], labels)
        css = f"span.vs-entity.{verdict_class(worst)}{repeats}"
        return tag(css, *inside[:-1], end, data_e=" ".join(map(str, numbers)))

    def _kind(self, mark: EntityMark) -> Child:
        """Return the kind of an entity; that of a name may be wrong, and is seen in the tooltip."""
        words = named("entity.label", mark.label, self.t)
        return words if mark.label in _CERTAIN_KINDS else tag("span.vs-sr", words)

    def _summary(self) -> str:
        """Return what the colours say, in words."""
        t, listed = self.t, self.t("list.separator").join
        valued = [(unit.probability, unit) for unit in self.units if unit.probability is not None]
        sentences = [t("heatmap.summary.tokens", count=len(valued))]
        low = sorted((pair for pair in valued if pair[0] < 0.4), key=lambda pair: pair[0])
        if low:
            items = []
            for value, unit in low[:_NAMED_IN_SUMMARY]:
                text = visible(self.text[unit.start : unit.end].strip()) or t("heatmap.tip.space")
                items.append(t("heatmap.summary.item", text=text, value=probability(value)))
            sentences.append(t("heatmap.summary.low", count=len(low), list=listed(items)))
        if self.marks:
            sentences.append(t("heatmap.summary.entities", count=len(self.marks)))
            doubtful = [mark for mark in self.marks if mark.verdict == "doubtful"]
            if doubtful:
                names = listed(visible(self.text[mark.start : mark.end]) for mark in doubtful)
                sentences.append(t("heatmap.summary.doubtful", count=len(doubtful), list=names))
        return t("sentence.separator").join(sentences)

    def _legend(self, measure: Measure) -> Html:
        edges = PROBABILITY_EDGES if measure == "probability" else ENTROPY_EDGES
        words = [f"{edge:g}" for edge in edges]
        first, last = ("≥", "<") if measure == "probability" else ("<", "≥")
        # Both numbers of a range stand in ascending order.
        between = (sorted(pair, key=float) for pair in itertools.pairwise(words))
        ranges = [f"{first} {words[0]}", *map("–".join, between), f"{last} {words[-1]}"]
        steps = (tag("li", tag(f"span.vs-h{level}", words)) for level, words in enumerate(ranges))
        kinds: list[Child] = []
        for verdict in distinct(mark.verdict for mark in self.marks):
            sample = tag("span", self.t(f"verdict.{verdict}"), _sign(verdict))
            kinds.append(tag("li", tag(f"span.vs-entity.{verdict_class(verdict)}", sample)))
        if any(mark.repeats for mark in self.marks):
            sample = tag("span.vs-entity.vs-entity-repeats", self.t("entity.repeats.short"))
            kinds.append(tag("li", sample))
        return tag(
            "figcaption.vs-legend",
            tag("span.vs-legend-name", self.t(f"heatmap.legend.{measure}")),
            what_it_means(f"token_{measure}", self.t, brief=True),
            tag("ol.vs-legend-scale", steps),
            tag("ul.vs-legend-kinds", kinds) if kinds else None,
        )


def _boxes(units: list[Unit], marks: list[EntityMark]) -> list[list[int] | None]:
    """Return for every unit the entities of its box. Entities that share a unit share their box."""
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


def heat_class(measure: Measure, value: float | None) -> str:
    """Return the class that gives something the colour of its heat."""
    level = heat_level(measure, value)
    return "vs-hx" if level is None else f"vs-h{level}"


def _unit(piece: str, unit: Unit, number: int, measure: Measure) -> tuple[str, Child]:
    """Return the white space before a unit, and the unit itself; all of it if it is only
    white space.
    """
    if not unit.tokens:
        return "", piece
    body = piece.lstrip() or piece
    css = heat_class(measure, unit.value(measure))
    if "\n" in body and not body.strip():
        css += ".vs-newline"
    span = tag(f"span.{css}", body, data_i=number, tabindex=None if number else 0)
    return piece[: len(piece) - len(body)], span


def _token_data(unit: Unit) -> list[object]:
    """Return [probability, entropy, top-k or 0, tail mass, alternatives, parts]; empty ends
    cut off.

    Alternatives are [index of the one written, text, probability, text, probability, ...], parts
    [text, probability, ...]: flat, because there is one such list for every token of a long text.
    """
    first, several = unit.tokens[0], len(unit.tokens) > 1
    truncated = any(token.top_k is not None for token in unit.tokens)
    parts = [part for token in unit.tokens for part in _pair(token.text, token.probability)]
    data: list[object] = [
        probability(unit.probability),
        nats(unit.entropy),
        first.top_k or 0,
        probability(max(token.tail_mass for token in unit.tokens)) if truncated else "",
        [] if several else _alternatives(first),
        parts if several else [],
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
    pairs = [part for text, logprob in rows for part in _pair(text, min(1.0, exp(logprob)))]
    return [-1 if written is None else written, *pairs]


def _pair(text: str, value: float | None) -> tuple[str, str]:
    return _spelled(text), probability(value)


def _spelled(text: str) -> str:
    """Return a token's text with the white space at its ends made visible."""
    if not text:
        return "∅"
    marks = str.maketrans({" ": "␣", "\n": "↵", "\t": "⇥"})
    core = text.strip()
    if not core:
        return visible(text.translate(marks))
    before, _, after = text.partition(core)
    return visible(before.translate(marks) + core + after.translate(marks))


def _sign(verdict: Verdict) -> Html | None:
    """Return a sign for what stands out only; a plain box is confident."""
    return None if verdict == "confident" else sign(VERDICT_SIGNS[verdict])


def tokens_of(mark: EntityMark, tokens: Sequence[Token]) -> tuple[Token, ...]:
    """Return the tokens that contribute a character to the entity, in order."""
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
    """Return the entities as an HTML table; on a narrow screen every row becomes a card.

    `theta_1` is the minimum P(E) and `theta_2` the maximum H(E) in nats that are not doubtful.
    """
    if not entities:
        return tag("p.vs-empty", t("entity.none"), id=id, key=id)

    def cells(mark: EntityMark) -> list[Child]:
        pieces = tokens_of(mark, tokens)
        listed = t("list.separator").join(probability(token.probability) for token in pieces)
        each = tag("span.vs-note", f" ({listed})") if len(pieces) > 1 else None
        repeats = tag("span.vs-chip", t("entity.repeats.short")) if mark.repeats else None
        return [
            tag("bdi.vs-strong", text[mark.start : mark.end]),
            named("entity.label", mark.label, t),
            _against(mark.probability, theta_1) or probability(mark.probability),
            _against(mark.entropy, theta_2) or nats(mark.entropy),
            tag("span", len(pieces), each),
            tag("span.vs-chips", verdict_badge(mark.verdict, t), repeats),
        ]

    numbers = ("probability", "entropy", "tokens")
    columns = [
        Column(t(f"entity.column.{name}"), "vs-num" if name in numbers else None)
        for name in ("name", "label", *numbers, "verdict")
    ]
    rows = (
        TableRow(f"{id}-{number}", cells(mark), f"vs-row-{mark.verdict.replace('_', '-')}")
        for number, mark in enumerate(entities)
    )
    caption = t("entity.caption", count=len(entities))
    listed = means_list(("entity_probability", "entity_entropy"), t, key=f"{id}-means")
    return join([table(caption, columns, rows, id=id, key=id), listed])


def _against(value: float | None, threshold: float | None) -> str:
    return "" if value is None or threshold is None else " ".join(comparison(value, threshold))


# What changed between two texts, word by word.

_WORD = re.compile(r"\s+|\d+(?:[.,:]\d+)*|[^\W\d_]+(?:['’-][^\W\d_]+)*|.", re.DOTALL)


_SEVERAL = 3
_LONG_PIECE, _ENDS = 48, 14
"""Words, with the spaces between them, of a piece that is shortened, and what is kept at each end
of it."""


class Op(NamedTuple):
    """A run of words that both texts share, or that only one of them has."""

    kind: Literal["same", "removed", "added"]
    text: str


def split_words(text: str, language: Language) -> list[str]:
    """Return the words, numbers, white space and punctuation of `text`; joined they give it back.

    Chinese is cut at jieba's word boundaries, so that a changed word is marked as a whole.
    """
    if language == "zh" and text:
        edges = sorted(word_boundaries(text))
        return [text[a:b] for a, b in pairwise(edges)]
    return _WORD.findall(text)


def diff_words(before: str, after: str, language: Language) -> list[Op]:
    """Return the changed words that lead from `before` to `after`, in reading order.

    "same" and "removed" joined give `before`, "same" and "added" joined give `after`; a removal
    stands before the addition that replaces it. What both texts share between two changes counts
    as changed where it is white space, or shorter than either and neither a name, a number nor
    several words: a phrase that was rewritten reads as one change, although the old and the new one
    share an "of" or a comma, but a name that the new one repeats is not struck out.
    """
    old, new = split_words(before, language), split_words(after, language)
    head = _shared(old, new)
    tail = _shared(old[head:][::-1], new[head:][::-1])
    old_middle, new_middle = old[head : len(old) - tail], new[head : len(new) - tail]
    middle: list[_Part] = []
    for part in _aligned(old_middle, new_middle, _is_small):
        middle.append(part)
        if len(middle) > 1 and middle[-2].shared == part.shared:
            middle[-2:] = [_joined(middle[-2:])]
        while _is_one_change(middle[-3:], language):
            middle[-3:] = [_joined(middle[-3:])]
    found = [Op("same", "".join(old[:head]))]
    for part in middle:
        if part.shared:
            found.append(Op("same", part.was))
        else:
            found += [Op("removed", part.was), Op("added", part.became)]
    found.append(Op("same", "".join(old[len(old) - tail :])))
    return [op for op in found if op.text]


class _Part(NamedTuple):
    """A piece of the old text and what the new one has in its place, which may be the same."""

    was: str
    became: str

    @property
    def shared(self) -> bool:
        """Whether both are the same."""
        return self.was == self.became

    @property
    def size(self) -> int:
        """The characters of the longer of the two."""
        return max(len(self.was), len(self.became))


def _joined(parts: list[_Part]) -> _Part:
    return _Part(*("".join(texts) for texts in zip(*parts, strict=True)))


def _aligned(
    old: list[str], new: list[str], small: Callable[[str], bool] | None
) -> Iterator[_Part]:
    """Yield what the texts share and what stands between; words that are `small` are shared between
    others only, and never decide which of the others are.
    """
    matcher = SequenceMatcher(small, old, new, autojunk=False)
    for kind, i, j, k, m in matcher.get_opcodes():
        if kind == "replace" and small is not None:
            yield from _aligned(old[i:j], new[k:m], None)
        else:
            yield _Part("".join(old[i:j]), "".join(new[k:m]))


def _is_one_change(parts: list[_Part], language: Language) -> bool:
    """Return whether these are two changes around a shared piece too small to keep them apart."""
    if len(parts) < 3:
        return False
    first, between, last = parts
    if not between.shared:
        return False
    if between.was.isspace():
        return True
    return between.size < min(first.size, last.size) and not _stands_out(between.was, language)


def _is_small(word: str) -> bool:
    """Return whether a word says little on its own: white space, punctuation, a stop word, one
    character that is no digit.
    """
    return not content_terms(word) or (len(word) == 1 and not word.isdigit())


def _stands_out(text: str, language: Language) -> bool:
    """Return whether `text` holds a number, a name or several words that are no stop words."""
    words = [word for word in split_words(text, language) if not _is_small(word)]
    if len(words) >= _SEVERAL or any(word[0].isupper() or word[0].isdigit() for word in words):
        return True
    return language == "zh" and bool(chinese_names(simplified(text)))


def diff_html(
    before: str,
    after: str,
    language: Language,
    t: Catalogue,
    form: Literal["inline", "side"] = "inline",
    *,
    brief: bool = False,
) -> str:
    """Return the change as HTML: one running text, or both texts beside each other.

    `brief`: of a long piece that was removed, only the beginning and the end are shown.
    """
    operations = diff_words(before, after, language)
    if brief:
        operations = [_shortened(op, language) for op in operations]
    kinds = ["same", *(op.kind for op in operations)]
    places = sum(a == "same" != b for a, b in pairwise(kinds))
    summary = t("diff.summary", count=places) if places else t("diff.none")

    def text(*kinds: str) -> Html:
        drawn = (_op_html(op, t) for op in operations if op.kind in kinds)
        return answer_text(drawn, "vs-diff-text")

    if form == "inline":
        body = text("same", "removed", "added")
    else:
        sides = (
            tag("div.vs-diff-side", tag("h4.vs-label", t(f"diff.{name}")), text("same", kind))
            for name, kind in (("before", "removed"), ("after", "added"))
        )
        body = tag("div.vs-diff-sides", sides)
    counts = tag("p.vs-diff-summary.vs-num", summary)
    return tag("div.vs-diff", body, counts, lang=lang(language))


def _shortened(op: Op, language: Language) -> Op:
    """Return an operation whose text, where it is long and removed, has its middle left out."""
    words = split_words(op.text, language) if op.kind == "removed" else []
    if len(words) <= _LONG_PIECE:
        return op
    first, last = ("".join(part) for part in (words[:_ENDS], words[-_ENDS:]))
    return Op(op.kind, f"{first.rstrip()} … {last.lstrip()}")


def _shared(old: list[str], new: list[str]) -> int:
    pairs = zip(old, new, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _op_html(op: Op, t: Catalogue) -> Child:
    if op.kind == "same":
        return op.text
    name, css = ("del", "vs-del") if op.kind == "removed" else ("ins", "vs-ins")
    # ARIA forbids naming deletions and insertions, so the words stand in the text, unseen.
    label = tag("span.vs-sr", t(f"diff.{op.kind}"), " ")
    return tag(name, label, op.text, class_=css)


# A text in which the words are underlined that a judge does not find supported.


def with_unsupported(text: str, found: Iterable[UnsupportedSpan], t: Catalogue) -> list[Child]:
    """Return `text` with these pieces of it underlined, each with its doubt, which is
    also spoken.
    """

    def marked(piece: str, doubt: float) -> Html:
        words = t("unsupported.word", doubt=two_digits(doubt))
        spoken = tag("span.vs-sr", f" ({words})")
        return tag("span.vs-unsupported", piece, spoken, title=words, data_score="word_doubt")

    return marked_text(text, [(one.start, one.end, one.doubt) for one in found], marked)


def unsupported_help(t: Catalogue, key: str) -> Html:
    """Return what the underlined words are, and what their doubt means."""
    note = tag("p.vs-note", t("unsupported.note"))
    return tag("div", note, what_it_means("word_doubt", t), key=key)

"""Judges on labelled texts: what each says about every statement of a data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pipelines.errors import failure
from pipelines.evaluation.datasets import Part, data_set_of, open_table, recognised, sampled
from pipelines.evaluation.items import Item
from pipelines.models.base import Claim
from pipelines.models.hub_judges.model import HubJudge
from pipelines.models.judges.base import JudgeModel
from pipelines.text import split_sentences

_AT_ONCE = 64


class ScoredSpan(NamedTuple):
    """A piece [start, end) of a text, and how doubtful it is: P(not supported) in [0, 1]."""

    start: int
    end: int
    doubt: float


class ScoredText(NamedTuple):
    """A text of a data set as one judge sees it.

    `doubt` is that of the whole text, in [0, 1]. `pieces` are its sentences, or the tokens of a
    judge that gives spans; `wrong` the pieces [start, end) that people found wrong, None where the
    data set labels no pieces. `sentences` are labelled sentences with their doubts.
    """

    hallucinated: bool
    doubt: float
    group: str
    pieces: tuple[ScoredSpan, ...] = ()
    wrong: tuple[tuple[int, int], ...] | None = None
    sentences: tuple[tuple[ScoredSpan, bool], ...] = ()


class Halves(NamedTuple):
    """The items of a data set: the even records, on which thresholds are chosen, and the odd."""

    name: str
    even: tuple[Item, ...]
    odd: tuple[Item, ...]


def open_halves(path: Path, limit: int | None = None) -> Halves:
    """Return both halves of a data file, each with at most `limit` items that can be judged.

    An item can be judged that has a text, a label and evidence. Of HaluEval's questions both
    answers are taken. Raises InvalidInputError for a file without such items in either half.
    """
    table = open_table(path)
    found = recognised(table)
    kind = "halueval_qa_pairs" if found is not None and found.kind == "halueval_qa" else None

    def half(part: Part) -> tuple[Item, ...]:
        data = data_set_of(table, kind=kind, part=part)
        kept = [item for item in data.items if _can_be_judged(item)]
        limited = sampled(data.model_copy(update={"items": tuple(kept)}), limit)
        return limited.items

    even, odd = half("even"), half("odd")
    if not even or not odd:
        raise failure("research.no_labelled_texts", file=path.name)
    return Halves(path.stem, even, odd)


def _can_be_judged(item: Item) -> bool:
    return bool(item.text and item.passages and item.hallucinated is not None)


def scored(
    judge: JudgeModel, items: Sequence[Item], progress: Callable[[int], None] = lambda done: None
) -> list[ScoredText]:
    """Return what `judge` says about every item, which can be judged all; `progress` counts items.

    Where spans are labelled in any of them, a text without a span is free of errors.
    """
    found: list[ScoredText] = []
    spans = any(item.spans for item in items)
    for start in range(0, len(items), _AT_ONCE):
        batch = items[start : start + _AT_ONCE]
        if isinstance(judge, HubJudge) and judge.facts.reading.format == "spans":
            found += _by_tokens(judge, batch, spans)
        else:
            found += _by_statements(judge, batch, spans)
        progress(len(found))
    return found


def _by_statements(judge: JudgeModel, items: Sequence[Item], spans: bool) -> list[ScoredText]:
    pieces = [_statements(item, spans) for item in items]
    claims = [
        _claim(item, item.text[start:end], alone=not (item.sentences or spans))
        for item, places in zip(items, pieces, strict=True)
        for start, end in places
    ]
    doubts = iter([1 - verdict.supported for verdict in judge.read(claims)])
    return [
        _scored_text(
            item,
            [
                ScoredSpan(start, end, doubt)
                for (start, end), doubt in zip(places, islice(doubts, len(places)), strict=True)
            ],
            spans,
        )
        for item, places in zip(items, pieces, strict=True)
    ]


def _by_tokens(judge: HubJudge, items: Sequence[Item], spans: bool) -> list[ScoredText]:
    doubts = judge.doubts([_claim(item, item.text, alone=True) for item in items])
    return [
        _scored_text(item, [ScoredSpan(*one) for one in found or ()], spans)
        for item, found in zip(items, doubts, strict=True)
    ]


def _statements(item: Item, spans: bool) -> list[tuple[int, int]]:
    """Return the pieces that are judged one by one: labelled sentences, else those of a
    labelled text.

    A claim or an answer whose pieces nobody labelled is judged as a whole.
    """
    if item.sentences:
        return [(one.start, one.end) for one in item.sentences]
    if spans:
        return [(one.start, one.end) for one in split_sentences(item.text)]
    return [(0, len(item.text))]


def _claim(item: Item, statement: str, *, alone: bool) -> Claim:
    # A sentence of a longer text does not answer the question by itself.
    question = item.question if alone else ""
    evidence = tuple(passage.text for passage in item.passages)
    return Claim(statement=statement, evidence=evidence, question=question)


def _scored_text(item: Item, pieces: Sequence[ScoredSpan], spans: bool) -> ScoredText:
    wrong = [(one.start, one.end) for one in item.spans]
    wrong += [(one.start, one.end) for one in item.sentences if one.label != "accurate"]
    sentences = tuple(
        (
            ScoredSpan(one.start, one.end, _worst(pieces, one.start, one.end)),
            one.label != "accurate",
        )
        for one in item.sentences
    )
    return ScoredText(
        hallucinated=bool(item.hallucinated),
        doubt=_worst(pieces, 0, len(item.text)),
        group=item.group,
        pieces=tuple(pieces),
        wrong=tuple(wrong) if item.sentences or spans else None,
        sentences=sentences,
    )


def _worst(pieces: Sequence[ScoredSpan], start: int, end: int) -> float:
    """Return the highest doubt about a piece that begins in [start, end); 1 where there is none."""
    return max((one.doubt for one in pieces if start <= one.start < end), default=1.0)

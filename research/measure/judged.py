"""Judges on labelled texts: what each says about every statement of a data set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from pipelines.errors import failure
from pipelines.evaluation.datasets import Part, data_set_of, open_table, recognised, sampled
from pipelines.evaluation.plan import Item
from pipelines.models.base import Claim
from pipelines.models.judges.base import JudgeModel
from pipelines.models.judges.hub import HubJudge
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

    @property
    def statements(self) -> list[tuple[float, bool]]:
        """The doubts and labels of its labelled sentences, or of the whole text without them."""
        labelled = [(piece.doubt, wrong) for piece, wrong in self.sentences]
        return labelled or [(self.doubt, self.hallucinated)]


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
        kept = (one for one in data.items if one.text and one.passages)
        able = tuple(one for one in kept if one.hallucinated is not None)
        return sampled(data.model_copy(update={"items": able}), limit).items

    even, odd = half("even"), half("odd")
    if not even or not odd:
        raise failure("research.no_labelled_texts", file=path.name)
    return Halves(path.stem, even, odd)


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
        by_tokens = isinstance(judge, HubJudge) and judge.facts.reading.format == "spans"
        pieces = _tokens(judge, batch) if by_tokens else _sentences(judge, batch, spans)
        found += [_scored(*one, spans) for one in zip(batch, pieces, strict=True)]
        progress(len(found))
    return found


def _sentences(judge: JudgeModel, items: Sequence[Item], spans: bool) -> list[list[ScoredSpan]]:
    places = [_statements(item, spans) for item in items]
    claims = [
        _claim(item, item.text[start:end], alone=not (item.sentences or spans))
        for item, of in zip(items, places, strict=True)
        for start, end in of
    ]
    doubts = iter([1 - verdict.supported for verdict in judge.read(claims)])
    return [
        [
            ScoredSpan(*place, doubt)
            for place, doubt in zip(of, islice(doubts, len(of)), strict=True)
        ]
        for of in places
    ]


def _tokens(judge: JudgeModel, items: Sequence[Item]) -> list[list[ScoredSpan]]:
    assert isinstance(judge, HubJudge)
    doubts = judge.doubts([_claim(item, item.text, alone=True) for item in items])
    return [[ScoredSpan(*one) for one in found or ()] for found in doubts]


def _statements(item: Item, spans: bool) -> list[tuple[int, int]]:
    """Return the pieces that are judged one by one: labelled sentences, else those of a labelled
    text. A claim or an answer whose pieces nobody labelled is judged as a whole."""
    if item.sentences or spans:
        found = item.sentences or split_sentences(item.text)
        return [(one.start, one.end) for one in found]
    return [(0, len(item.text))]


def _claim(item: Item, statement: str, *, alone: bool) -> Claim:
    # A sentence of a longer text does not answer the question by itself.
    question = item.question if alone else ""
    evidence = tuple(passage.text for passage in item.passages)
    return Claim(statement=statement, evidence=evidence, question=question)


def _scored(item: Item, pieces: Sequence[ScoredSpan], spans: bool) -> ScoredText:
    def worst(start: int, end: int) -> ScoredSpan:
        """Return the highest doubt about a piece that begins there; 1 where there is none."""
        inside = (one.doubt for one in pieces if start <= one.start < end)
        return ScoredSpan(start, end, max(inside, default=1.0))

    sentences = [(worst(one.start, one.end), one.label != "accurate") for one in item.sentences]
    wrong = [(one.start, one.end) for one in item.spans]
    wrong += [(piece.start, piece.end) for piece, false in sentences if false]
    return ScoredText(
        hallucinated=bool(item.hallucinated),
        doubt=worst(0, len(item.text)).doubt,
        group=item.group,
        pieces=tuple(pieces),
        wrong=tuple(wrong) if item.sentences or spans else None,
        sentences=tuple(sentences),
    )

"""Answers whose truth is known, for the SLM check's calibration, and what a judge says of them."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from math import ceil
from pathlib import Path

from pydantic import ConfigDict

from pipelines.calibrate.answers import Progress
from pipelines.calibrate.records import read_records
from pipelines.errors import InvalidInputError
from pipelines.methods.slm.judging import judge_request, probability_of_yes
from pipelines.models.base import Model
from pipelines.text import split_sentences
from pipelines.types import Choice, Frozen, Passage

__all__ = [
    "JudgedAnswer",
    "KnownAnswer",
    "QaRecord",
    "answers_of",
    "evenly",
    "judge_answers",
    "load_qa",
]

_AT_ONCE = 16


class QaRecord(Frozen):
    """A question with the text that settles it, a right answer and a hallucinated one."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    knowledge: str
    question: str
    right_answer: str
    hallucinated_answer: str


class KnownAnswer(Frozen):
    """An answer, the context it is judged by, and whether it is right."""

    question: str
    context: str
    text: str
    right: bool


class JudgedAnswer(Frozen):
    """A judge's P(yes) for each sentence and for the whole; None where it said neither.

    `other_masses` holds what was neither yes nor no, sentence by sentence.
    """

    answer: KnownAnswer
    sentences: tuple[float | None, ...]
    other_masses: tuple[float, ...]
    whole: float | None


def load_qa(path: Path) -> list[QaRecord]:
    """The records of a JSONL file in HaluEval's question-answering form, in order.

    Raises InvalidInputError for a file that cannot be read or holds something else.
    """
    records = read_records(path, QaRecord, _unusable)
    if len(records) < 4:
        raise _unusable("there are fewer than four records")
    return records


def evenly(records: Sequence[QaRecord], most: int) -> list[QaRecord]:
    """Every n-th of `records`, so that at most `most` remain."""
    return list(records[:: max(1, ceil(len(records) / most))])


def answers_of(records: Sequence[QaRecord]) -> list[KnownAnswer]:
    """Both answers of every record, the right one first."""
    return [
        KnownAnswer(question=record.question, context=record.knowledge, text=text, right=right)
        for record in records
        for text, right in ((record.right_answer, True), (record.hallucinated_answer, False))
    ]


async def judge_answers(
    judge: Model,
    answers: Sequence[KnownAnswer],
    *,
    progress: Progress = lambda done, total: None,
) -> list[JudgedAnswer]:
    """Ask `judge` about every sentence and every whole answer; English. Raises a call's error."""
    places = asyncio.Semaphore(_AT_ONCE)
    done = 0

    async def ask(answer: KnownAnswer, statement: str) -> Choice:
        context = (Passage(id="given", title="", text=answer.context, source="given"),)
        async with places:
            return await judge.choose(judge_request(answer.question, context, statement, "en"))

    async def judged(answer: KnownAnswer) -> JudgedAnswer:
        nonlocal done
        statements = [span.text for span in split_sentences(answer.text)]
        wanted = list(dict.fromkeys((*statements, answer.text.strip())))
        said = dict(
            zip(wanted, await asyncio.gather(*(ask(answer, s) for s in wanted)), strict=True)
        )
        done += 1
        progress(done, len(answers))
        return JudgedAnswer(
            answer=answer,
            sentences=tuple(probability_of_yes(said[s]) for s in statements),
            other_masses=tuple(said[s].other_mass for s in statements),
            whole=probability_of_yes(said[answer.text.strip()]),
        )

    return await asyncio.gather(*map(judged, answers))


def _unusable(reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"The question-answering file cannot be used: {reason}.",
        remedy="Give JSON lines with knowledge, question, right_answer and hallucinated_answer.",
    )

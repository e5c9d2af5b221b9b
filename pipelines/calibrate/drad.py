"""theta_2, the entropy threshold that DRAD's paper leaves open, from a model's own answers.

The model answers the English sample questions with thresholds that never trigger, so that every
entity of its first draft is read and none corrected. An entity is right when the supporting
article or the reference answer names it. Even-numbered questions (0, 2, 4, ...) fit theta_2, the
others report what it is worth.
"""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from pipelines.calibrate.curves import auroc, average_precision, best_cut, youden
from pipelines.errors import InvalidInputError, VeriscopeError
from pipelines.libraries import SAMPLE_LIBRARY
from pipelines.methods import rhd
from pipelines.methods.drad import DradSettings
from pipelines.methods.rhd import EntityReading, Thresholds
from pipelines.retrieval.documents import load_library
from pipelines.run.events import Judged, Revised, RunFailed
from pipelines.run.spec import EvidenceSpec, MethodSpec, ModelSpec, RunSpec
from pipelines.service import Service
from pipelines.text import repeats_question
from pipelines.types import Frozen

__all__ = [
    "CRITERION",
    "Answered",
    "LabelledEntity",
    "SampleQuestion",
    "answer",
    "is_right",
    "labelled",
    "measured",
    "sample_questions",
    "theta_2_of",
]

CRITERION = (
    'largest Youden\'s J (sensitivity + specificity - 1) of "H(E) > theta_2, so E is wrong", H(E) ='
    " the largest entropy of E's tokens; middle of the best interval, rounded to 0.01"
)

_OWNER = "calibration"
# theta_1 = 0 and no theta_2: nothing is ever doubtful, so nothing is corrected.
_READ_ONLY = {"theta_1": 0.0, "theta_2": None, "confidence": "logprobs"}


class SampleQuestion(Frozen):
    """A question of the sample data, and the texts in which a right entity may stand."""

    id: str
    text: str
    evidence: tuple[str, ...]


class Answered(Frozen):
    """The entities of one answer as RHD read them, and the `top_k` of its tokens' entropies."""

    question: SampleQuestion
    readings: tuple[EntityReading, ...]
    top_k: frozenset[int | None]


class LabelledEntity(Frozen):
    """An entity that says more than its question, and whether it is wrong."""

    reading: EntityReading
    wrong: bool


def sample_questions(library: Path = SAMPLE_LIBRARY) -> list[SampleQuestion]:
    """The English sample questions in file order, with their articles and reference answers."""
    articles = {document.id: document for document in load_library(library)}
    with (library.parent / "questions.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["language"] == "en"]
    return [
        SampleQuestion(
            id=row["id"],
            text=row["question"],
            evidence=(
                articles[row["article"]].title,
                articles[row["article"]].text,
                row["answer"],
                *filter(None, row["aliases"].split("|")),
            ),
        )
        for row in rows
    ]


async def answer(
    service: Service,
    model: ModelSpec,
    questions: Sequence[SampleQuestion],
    *,
    keys: Mapping[str, str] | None = None,
    progress: Callable[[int, int], None] = lambda done, total: None,
) -> list[Answered]:
    """Let `model` answer every question, one at a time, and read the entities it wrote.

    Raises the error of the first run that fails: leaving a question out would bend the result.
    """
    found = []
    for done, question in enumerate(questions):
        progress(done, len(questions))
        found.append(await _answer(service, model, question, keys))
    progress(len(questions), len(questions))
    return found


async def _answer(
    service: Service, model: ModelSpec, question: SampleQuestion, keys: Mapping[str, str] | None
) -> Answered:
    spec = RunSpec(
        question=question.text,
        methods=(MethodSpec(name="drad", settings=_READ_ONLY),),
        models={"main": model},
        evidence=EvidenceSpec(mode="bm25"),
        language="en",
        reproducible=True,
    )
    readings: list[EntityReading] = []
    top_k: set[int | None] = set()
    async for event in service.stream(spec, owner=_OWNER, keys=keys):
        if isinstance(event, Judged) and event.what == "entity":
            readings.append(rhd.read_judged(event))
        elif isinstance(event, Revised):
            tokens = event.generation.tokens or ()
            top_k.update(token.top_k for token in tokens if token.entropy is not None)
        elif isinstance(event, RunFailed):
            failed = event.error
            raise VeriscopeError(failed.message, remedy=failed.remedy, provider=failed.provider)
    return Answered(question=question, readings=tuple(readings), top_k=frozenset(top_k))


def is_right(entity: str, evidence: Sequence[str]) -> bool:
    """Whether one of the texts has the entity's words one after another.

    Case, punctuation, articles, possessive endings and thousands separators do not matter.
    """
    return any(repeats_question(entity, text) for text in evidence)


def labelled(answers: Sequence[Answered]) -> list[LabelledEntity]:
    """The entities that count: measured, and more than a repetition of the question."""
    return [
        LabelledEntity(
            reading=reading, wrong=not is_right(reading.text, answered.question.evidence)
        )
        for answered in answers
        for reading in answered.readings
        if not reading.repeats and reading.probabilities and reading.entropies
    ]


def theta_2_of(entities: Sequence[LabelledEntity]) -> float:
    """The threshold in nats, rounded to 0.01.

    Raises InvalidInputError when no threshold tells wrong entities from right ones.
    """
    wrong = _truth(entities)
    cut = best_cut(_entropies(entities), wrong)
    if cut is None:
        raise InvalidInputError(
            "No entropy threshold tells this model's wrong entities from its right ones.",
            remedy="Leave theta_2 out for this model, or choose another model.",
        )
    return round(cut.threshold, 2)


def measured(
    answers: Sequence[Answered], entities: Sequence[LabelledEntity], theta_2: float
) -> dict[str, Any]:
    """What both numbers and both thresholds are worth on these entities; "wrong" is positive.

    `base_rate` is the share of wrong entities, which is the average precision of a score that
    says nothing.
    """
    wrong = _truth(entities)
    improbable = [-(rhd.pool_probabilities(e.reading.probabilities, "mean") or 0) for e in entities]
    entropies = _entropies(entities)
    theta_1 = DradSettings(theta_2=None).theta_1
    thresholds = Thresholds(theta_1=theta_1, theta_2=theta_2)
    verdicts = [rhd.judge(entity.reading, thresholds) for entity in entities]
    return {
        "questions": len(answers),
        "entities_read": sum(len(answered.readings) for answered in answers),
        "repeating_the_question": sum(r.repeats for a in answers for r in a.readings),
        "entities": len(entities),
        "wrong": sum(wrong),
        "base_rate": _rounded(sum(wrong) / len(wrong)),
        "probability_mean": {
            "auroc": _rounded(auroc(improbable, wrong)),
            "average_precision": _rounded(average_precision(improbable, wrong)),
            "theta_1": theta_1,
            "flagged": sum(v.improbable for v in verdicts),
            "youden": _rounded(youden([v.improbable for v in verdicts], wrong)),
        },
        "entropy_max": {
            "auroc": _rounded(auroc(entropies, wrong)),
            "average_precision": _rounded(average_precision(entropies, wrong)),
            "theta_2": theta_2,
            "flagged": sum(v.uncertain for v in verdicts),
            "youden": _rounded(youden([v.uncertain for v in verdicts], wrong)),
        },
        "either": {
            "flagged": sum(v.doubtful for v in verdicts),
            "youden": _rounded(youden([v.doubtful for v in verdicts], wrong)),
        },
    }


def _entropies(entities: Sequence[LabelledEntity]) -> list[float]:
    return [rhd.pool_entropies(e.reading.entropies, "max") or 0.0 for e in entities]


def _truth(entities: Sequence[LabelledEntity]) -> list[bool]:
    """Whether each is wrong; raises InvalidInputError unless both right and wrong ones occur."""
    wrong = [entity.wrong for entity in entities]
    if len(set(wrong)) < 2:
        raise InvalidInputError(
            f"Of {len(wrong)} entities {sum(wrong)} are wrong: there is nothing to tell apart.",
            remedy="Choose a model that gives token probabilities and answers in names and numbers,"
            " some of them right.",
        )
    return wrong


def _rounded(value: float) -> float:
    return round(value, 4)

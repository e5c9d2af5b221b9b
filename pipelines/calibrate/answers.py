"""The sample questions, answered by a model, with every entity of its answers read."""

from __future__ import annotations

import csv
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from pipelines.errors import VeriscopeError
from pipelines.libraries import SAMPLE_LIBRARY
from pipelines.methods.drad import rhd
from pipelines.methods.drad.rhd import EntityReading
from pipelines.retrieval.documents import load_library
from pipelines.run.events import Judged, Revised, RunFailed
from pipelines.run.spec import EvidenceSpec, MethodSpec, ModelSpec, RunSpec
from pipelines.service import Service
from pipelines.types import Frozen

__all__ = ["Answered", "Progress", "SampleQuestion", "answer_all", "sample_questions"]

Progress = Callable[[int, int], None]
"""Is told how many are done, and of how many."""

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
    top_k: frozenset[int | None] = frozenset()


def sample_questions(library: Path = SAMPLE_LIBRARY) -> list[SampleQuestion]:
    """The English sample questions in file order.

    Their evidence is the supporting article's title and text, the reference answer and its other
    spellings.
    """
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


async def answer_all(
    service: Service,
    model: ModelSpec,
    questions: Sequence[SampleQuestion],
    *,
    keys: Mapping[str, str] | None = None,
    progress: Progress = lambda done, total: None,
) -> list[Answered]:
    """Let `model` answer every question with DRAD's draft, and read the entities it wrote.

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

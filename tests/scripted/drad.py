"""DRAD run over a hand-made model, and what the tests read out of a run."""

from __future__ import annotations

from typing import Any

from pipelines.base import Generation
from pipelines.engine.reevaluate import Reevaluation, reevaluate
from pipelines.errors import RefusedRequestError
from pipelines.methods.drad import Drad
from pipelines.models.base import GenerationRequest, Watcher
from pipelines.run.events import Judged, Score
from tests.scripted.bench import (
    FixedRecognizer,
    Outcome,
    PieceModel,
    Reply,
    Shelf,
    pieces,
    run_method,
)

QUESTION = "Where was Bill Clinton born?"
DRAFT = "Clinton was born in York and raised in Florida. He won in 1993."
NAMES = ("York", "Florida", "Hope", "Texas", "1993", "1999", "1992")
EVIDENCE = Shelf(lambda _: ["He was born in Hope.", "He won in 1992."])
NOTHING = Shelf(lambda _: [])


async def run(
    model: PieceModel, *, question: str = QUESTION, names: tuple[str, ...] = NAMES, **options: Any
) -> Outcome:
    """DRAD, which finds `names` and nothing else."""
    given: dict[str, Any] = {"shelf": EVIDENCE} | options
    return await run_method(Drad(), question, model, recognizer=FixedRecognizer(*names), **given)


def by_prefix(draft: Reply, **continuations: Reply) -> PieceModel:
    """Writes `draft`, and after a given beginning what is named by the beginning's last word."""

    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        if last.role != "assistant":
            return draft
        return continuations[last.content.split()[-1].strip(".").lower()]

    return PieceModel(answer)


class Failing(PieceModel):
    """Answers as `model` does; the call `fails_at`, counted from 1, and later ones fail."""

    def __init__(self, model: PieceModel, fails_at: int) -> None:
        super().__init__(model._answer)
        self._fails_at = fails_at

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        if len(self.asked) + 1 >= self._fails_at:
            raise RefusedRequestError("The account is empty.", remedy="Pay.")
        return await super().generate(request, watch)


def again(outcome: Outcome, **settings: Any) -> Reevaluation:
    return reevaluate(outcome.trace, outcome.method, outcome.method.settings(settings))


def entities(outcome: Outcome, draft: int) -> list[tuple[str, str]]:
    """The entities of a draft, each with its verdict."""
    return [
        (event.text, event.verdict)
        for event in outcome.events
        if isinstance(event, Judged) and event.what == "entity" and event.draft == draft
    ]


def verdict(outcome: Outcome) -> Judged:
    """The verdict on the original."""
    (judged,) = (e for e in outcome.events if isinstance(e, Judged) and e.what == "answer")
    return judged


def decisive(outcome: Outcome) -> Score:
    return verdict(outcome).scores[0]


async def two_corrections(**settings: Any) -> Outcome:
    """A run that corrects York, and then 1999, which the first correction brought in."""

    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        if last.role != "assistant":
            return pieces(DRAFT, York=0.3, Florida=0.7)
        if last.content == "Clinton was born in":
            return pieces(" Hope. He won in 1999.", **{"1999": 0.5})
        return " 1992."

    return await run(PieceModel(answer), **settings)


THOUGHT = [("<think>", 0.9), (" York?", 0.1), ("</think>", 0.9), ("\n\n", 0.9)]
"""The start of a reply of a model that thinks inline, where York is improbable."""

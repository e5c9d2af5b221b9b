"""Runs of real methods on pieces written by hand, folded into views."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pipelines.errors import VeriscopeError
from pipelines.methods.drad import Drad
from pipelines.methods.registry import METHODS
from pipelines.models.base import Capabilities, GenerationRequest
from pipelines.run.events import Trace
from pipelines.run.view import RunView, fold
from tests.scripted.bench import (
    FULL,
    FixedRecognizer,
    Outcome,
    PieceModel,
    Reply,
    Shelf,
    pieces,
    run_method,
)

QUESTION = "Where was Bill Clinton born?"
DRAFT = "Clinton was born in York. He won in 1993."
CORRECTED = "Clinton was born in Hope."
NAMES = ("Clinton", "York", "Hope", "1993")
EVIDENCE = Shelf(lambda _: ["He grew up far away. He was born in Hope.", "Nothing here."])


def model(capabilities: Capabilities = FULL, **low: float) -> PieceModel:
    """Writes DRAFT, with the probabilities `low`; goes on with " Hope." where it is corrected."""

    def answer(request: GenerationRequest) -> Reply:
        going_on = request.messages[-1].role == "assistant"
        return [(" Hope", 0.9), (".", 0.9)] if going_on else pieces(DRAFT, **low)

    return PieceModel(answer, capabilities)


async def drad_outcome(
    *, shelf: Shelf | VeriscopeError = EVIDENCE, question: str = QUESTION, **settings: Any
) -> Outcome:
    """DRAD with York improbable, which finds `NAMES` and nothing else."""
    found = Shelf(shelf) if isinstance(shelf, VeriscopeError) else shelf
    given: dict[str, Any] = {"recognizer": FixedRecognizer(*NAMES)} | settings
    return await run_method(Drad(), question, model(York=0.3), shelf=found, **given)


async def baseline_view(name: str, capabilities: Capabilities = FULL) -> RunView:
    """Direct or RAG alone."""
    outcome = await run_method(METHODS[name], QUESTION, model(capabilities), shelf=EVIDENCE)
    return view_of(outcome.trace)


def view_of(trace: Trace) -> RunView:
    return fold(trace.events)


def until(trace: Trace, kind: str, nth: int = 0) -> RunView:
    """The view right after the `nth` event of `kind`."""
    places = [place for place, event in enumerate(trace.events) if event.kind == kind]
    return fold(trace.events[: places[nth] + 1])


def speaking(view: RunView, *languages: str) -> RunView:
    """The view as if its main model spoke `languages` only."""
    methods = {
        name: replace(
            method,
            models={
                role: can.model_copy(update={"languages": frozenset(languages)})
                for role, can in method.models.items()
            },
        )
        for name, method in view.methods.items()
    }
    return replace(view, methods=methods)

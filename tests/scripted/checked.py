"""Runs that check a given text, every event written by hand."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pipelines.base import Answer, Choice, Message, UnsupportedSpan
from pipelines.engine.checking import CheckedText, checked_text
from pipelines.models.base import Capabilities, ChoiceRequest, Claim
from pipelines.models.providers import ModelSpec
from pipelines.run.events import (
    GivenAnswer,
    Judged,
    MethodSpec,
    ModelCalled,
    RunFinished,
    RunSpec,
    Score,
    SpanEnded,
    SpanStarted,
)
from pipelines.run.findings import CellJudged, MethodStarted
from tests.scripted.recorded import Events

BORN, DIED = "Curie was born in Warsaw.", "She died in Florida."
TEXT = f"{BORN} {DIED}"


class Run(Events):
    """A run that checks `TEXT`."""

    rate = 1

    def __init__(self, *methods: str, asked: bool = False, spec: RunSpec | None = None) -> None:
        super().__init__(
            spec
            or RunSpec(
                question="What can be said about this?",
                methods=tuple(MethodSpec(name=name) for name in methods),
                models={"main": ModelSpec(kind="openai", name="m", model="m")},
                language="en",
                answer=GivenAnswer(text=TEXT, asked=asked),
            )
        )

    def begin(self, method: str, models: Mapping[str, Capabilities] | None = None) -> None:
        detail = MethodStarted(models=dict(models or {}))
        self.emit(SpanStarted, method, "run", method=method, name="method", detail=detail)

    def judge(self, method: str, what: str, text: str, verdict: str, **fields: Any) -> None:
        start = fields.pop("start", TEXT.find(text))
        usual = {"draft": 0, "label": "", "sentence": None, "scores": (), **fields}
        self.emit(
            Judged, method, "run", what=what, text=text, verdict=verdict, start=start,
            end=start + len(text), **usual,
        )  # fmt: skip

    def add(self, kind: Any, method: str, **fields: Any) -> None:
        self.emit(kind, method, "run", **fields)

    def choose(self, method: str, role: str, model: str, p_yes: float = 0.5) -> None:
        """A call of a judge."""
        self.add(
            ModelCalled,
            method,
            role=role,
            model=model,
            request=ChoiceRequest(messages=(), options=()),
            attempt=1,
            started=0.0,
            choice=Choice(
                probabilities={"yes": p_yes, "no": 1 - p_yes}, other_mass=0.0, source="judge"
            ),
        )

    def cell(self, method: str, text: str, role: str, name: str, value: float) -> None:
        """What one judge of the SLM check says of a sentence."""
        score = Score(name="slm_p_yes", value=value)
        detail = CellJudged(role=role)
        self.judge(method, "cell", text, "unchecked", label=name, scores=(score,), detail=detail)

    def end(self, method: str, text: str = TEXT, flags: Sequence[str] = ()) -> None:
        answer = Answer(text=text, original=TEXT, flags=tuple(flags))
        self.add(SpanEnded, method, outcome="ok", answer=answer)

    def finish(self) -> None:
        self.emit(RunFinished, "run", None, answers={})

    @property
    def found(self) -> CheckedText:
        found = checked_text(self.view)
        assert found is not None
        return found


def number(value: float, **fields: Any) -> Score:
    return Score(name="number", value=value, **fields)


def doubted_word() -> Run:
    """The SLM check by a judge that finds a word of the second sentence unsupported."""
    run = Run("slm")
    run.begin("slm")
    at = DIED.find("Florida")
    run.add(
        ModelCalled,
        "slm",
        role="judge_1",
        model="judge",
        request=ChoiceRequest(
            messages=(Message(role="user", content="?"),),
            options=(),
            claim=Claim(statement=DIED, evidence=("She died in France.",)),
        ),
        attempt=1,
        started=0.0,
        choice=Choice(
            probabilities={"yes": 0.2, "no": 0.8},
            other_mass=0.0,
            source="judge",
            unsupported=(UnsupportedSpan(start=at, end=at + 7, doubt=0.9),),
        ),
    )
    run.judge("slm", "sentence", DIED, "doubtful", scores=(number(0.2, threshold=0.5),))
    return run

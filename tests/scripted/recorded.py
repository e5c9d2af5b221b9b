"""Runs recorded by hand, for methods and outcomes that no engine here has to make."""

from __future__ import annotations

from typing import Any

from pipelines.base import Answer, Generation, Language, Message, Passage, Usage
from pipelines.errors import ErrorInfo
from pipelines.models.base import GenerationRequest
from pipelines.run.calibrations import Calibration
from pipelines.run.events import (
    Event,
    EvidenceSpec,
    Judged,
    MethodSpec,
    ModelCalled,
    ModelSpec,
    Place,
    Retrieved,
    Revised,
    RunFinished,
    RunSpec,
    RunStarted,
    Score,
    SpanEnded,
    SpanStarted,
    Verdict,
    What,
)
from pipelines.run.findings import Finding
from pipelines.run.view import RunView, fold

QUESTION = "Where was Ada born?"
ORIGINAL = "Ada was born in Paris. She died in 1852."
CORRECTED = "Ada was born in London. She died in 1852."


def score(value: float = 0.3, threshold: float = 0.6, **more: Any) -> Score:
    return Score(name="x", value=value, threshold=threshold, flagged=value < threshold, **more)


def passage(name: str, text: str = "") -> Passage:
    return Passage(id=name, title=f"Title {name}", text=text or f"Text {name}.", source="s", rank=1)


class Events:
    """Writes a run's events one after another, `rate` of them a second."""

    rate = 10

    def __init__(self, spec: RunSpec, run: str = "r", language: Language = "en") -> None:
        self.run = run
        self.events: list[Event] = []
        self.emit(
            RunStarted, "run", None, spec=spec, language=language, created=0.0, versions={},
            prompts={},
        )  # fmt: skip

    @property
    def view(self) -> RunView:
        return fold(self.events)

    @property
    def now(self) -> float:
        """The time of the next event."""
        return len(self.events) / self.rate

    def emit(self, kind: type[Any], span: str, parent: str | None, **fields: Any) -> Any:
        event = kind(
            run=self.run, span=span, parent=parent, seq=len(self.events), time=self.now, **fields
        )
        self.events.append(event)
        return event


class Record(Events):
    """A run of methods whose every event is written by hand."""

    def __init__(
        self,
        *methods: str,
        run: str = "r1",
        question: str = QUESTION,
        language: Language = "en",
        settings: dict[str, dict[str, Any]] | None = None,
        models: dict[str, ModelSpec] | None = None,
        evidence: EvidenceSpec | None = None,
        seed: int = 0,
        calibrations: tuple[Calibration, ...] = (),
    ) -> None:
        chosen = settings or {}
        spec = RunSpec(
            question=question,
            methods=tuple(MethodSpec(name=m, settings=chosen.get(m, {})) for m in methods),
            models=models or {"main": ModelSpec()},
            evidence=evidence or EvidenceSpec(),
            seed=seed,
            calibrations=calibrations,
        )
        super().__init__(spec, run, language)

    def begin(self, method: str) -> Record:
        self.emit(SpanStarted, method, "run", method=method, name="method")
        return self

    def step(self, method: str, name: str, parent: str | None = None, **at: Any) -> str:
        """Begins a step; its span is `<method>.<name>`."""
        span = f"{method}.{name}"
        self.emit(SpanStarted, span, parent or method, method=method, name="draft", at=Place(**at))
        return span

    def draft(self, method: str, text: str = ORIGINAL, number: int = 0, before: str = "") -> Record:
        self.emit(
            Revised, method, "run", draft=number, before=before, after=text, start=0,
            reason="original", generation=Generation(text=text),
        )  # fmt: skip
        return self

    def judge(
        self,
        method: str,
        verdict: Verdict,
        text: str = ORIGINAL,
        what: What = "answer",
        *,
        start: int = 0,
        draft: int = 0,
        span: str | None = None,
        scores: tuple[Score, ...] = (),
        detail: Finding | None = None,
    ) -> Judged:
        return self.emit(
            Judged, span or method, "run", what=what, text=text, start=start,
            end=start + len(text), draft=draft, verdict=verdict, scores=scores,
            detail=detail,
        )  # fmt: skip

    def call(self, span: str, **fields: Any) -> ModelCalled:
        values = {
            "role": "main",
            "model": "tiny",
            "request": GenerationRequest(messages=(Message(role="user", content="Why?"),)),
            "attempt": 1,
            "started": self.now,
            "generations": (Generation(text="Because.", usage=Usage(completion_tokens=2)),),
        }
        return self.emit(ModelCalled, span, None, **(values | fields))

    def search(self, span: str, *passages: Passage, error: ErrorInfo | None = None) -> Retrieved:
        return self.emit(
            Retrieved, span, None, retriever="shelf", query="Ada", k=3, started=self.now,
            passages=passages, error=error,
        )  # fmt: skip

    def end(
        self,
        method: str,
        text: str | None = None,
        original: str = ORIGINAL,
        error: ErrorInfo | None = None,
        **answer: Any,
    ) -> Record:
        """Ends a method with an answer; without a text, or with an error, it has failed."""
        done = None if text is None else Answer(text=text, original=original, **answer)
        outcome = "failed" if done is None else "ok"
        self.emit(SpanEnded, method, "run", outcome=outcome, answer=done, error=error)
        return self

    def finish(self) -> RunView:
        self.emit(RunFinished, "run", None, answers={})
        return self.view


def full_method(
    record: Record,
    method: str,
    verdict: Verdict,
    answer: str = CORRECTED,
    *,
    original: str = ORIGINAL,
    **more: Any,
) -> None:
    """A method from beginning to end: draft, verdict on it, answer."""
    record.begin(method).draft(method, original)
    record.judge(method, verdict, original, scores=(score(),))
    record.end(method, answer, original, **more)

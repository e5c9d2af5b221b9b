"""What a run of HAARAG recorded: its rounds of searching, and the cosines of its drafts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import fsum
from typing import Any

from pipelines.methods.haarag.scores import Compared, Found
from pipelines.methods.slm.judging import probability_of_yes
from pipelines.models.base import SimilarityRequest
from pipelines.retrieval.passages import indexed_text
from pipelines.run.events import Event, ModelCalled, Retrieved, Revised, SpanEnded, SpanStarted
from pipelines.run.view import MethodView
from pipelines.text import Span
from pipelines.types import Passage

__all__ = ["Record", "Round", "Step", "mean_yes"]

ROUNDS = ("retrieve", "refine")


@dataclass(frozen=True)
class Step:
    """A step of the method; `done` once it ended as it should."""

    span: str
    step: str
    detail: Mapping[str, Any]
    parent: str | None = None
    done: bool = False


@dataclass(frozen=True)
class Round:
    """A round of searching; `found` is None until its cosines are there."""

    step: Step
    found: Found | None

    @property
    def after(self) -> int | None:
        """The draft whose unsupported parts were searched for; None before the first draft."""
        return self.step.detail.get("draft")


@dataclass(frozen=True)
class Record:
    """The events of a run that its decisions rest on, live or stored."""

    steps: tuple[Step, ...] = ()
    calls: tuple[ModelCalled, ...] = ()
    searches: tuple[Retrieved, ...] = ()
    drafts: tuple[Revised, ...] = ()
    finished: bool = False
    passages: Mapping[str, Passage] = field(init=False)

    def __post_init__(self) -> None:
        known: dict[str, Passage] = {}
        for search in self.searches:
            for passage in search.passages:
                known.setdefault(indexed_text(passage), passage)
        object.__setattr__(self, "passages", known)

    @classmethod
    def of_events(cls, events: Iterable[Event]) -> Record:
        """From the stored events of the method, its own span included."""
        events = tuple(events)
        done = {e.span for e in events if isinstance(e, SpanEnded) and e.outcome == "ok"}
        started = [event for event in events if isinstance(event, SpanStarted)]
        return cls(
            steps=tuple(
                Step(e.span, e.step, e.detail, e.parent, e.span in done)
                for e in started
                if e.step != "method"
            ),
            calls=tuple(event for event in events if isinstance(event, ModelCalled)),
            searches=tuple(event for event in events if isinstance(event, Retrieved)),
            drafts=tuple(event for event in events if isinstance(event, Revised)),
            finished=any(e.step == "method" and e.span in done for e in started),
        )

    @classmethod
    def of_view(cls, method: MethodView) -> Record:
        """From what a screen knows of the method, as far as it has come."""
        return cls(
            steps=tuple(
                Step(step.span, step.step, step.detail, step.parent, step.outcome == "ok")
                for step in method.steps
            ),
            calls=method.calls,
            searches=method.searches,
            drafts=method.drafts,
            finished=method.outcome == "ok",
        )

    @property
    def embedder(self) -> str | None:
        """Whose cosines these are; None while nothing was compared."""
        return next((call.model for call in self.calls if call.role == "embedder"), None)

    def rounds(self) -> list[Round]:
        """Every round of searching, in order."""
        return [Round(step, self._found(step)) for step in self.steps if step.step in ROUNDS]

    def failed(self, spans: Iterable[str]) -> bool:
        """Whether a search of these steps failed."""
        wanted = set(spans)
        return any(s.error is not None and s.span in wanted for s in self.searches)

    def weak_judges(self, draft: int) -> bool:
        """Whether a judge of this draft was measured to judge no better than chance."""
        step = self._step("align", draft)
        return step is not None and bool(step.detail.get("weak"))

    def compared(self, draft: int) -> Compared | None:
        """The cosines of a draft; None while they are not there."""
        revised = next((event for event in self.drafts if event.draft == draft), None)
        step = self._step("align", draft)
        if revised is None or step is None:
            return None
        call = self._comparison(step)
        if call is None:
            return Compared(text=revised.after) if step.done else None
        request, rows = call
        sentences = located(request.left[1 : 1 + step.detail["sentences"]], revised.after)
        chunks = request.right[: step.detail["chunks"]]
        passages = tuple(self.passages[text] for text in chunks if text in self.passages)
        if len(passages) != len(chunks):
            return None
        count = len(chunks)
        own = rows[: 1 + len(sentences)]
        return Compared(
            text=revised.after,
            sentences=sentences,
            passages=passages,
            evidence=placed(request.right[count:], passages),
            to_chunks=tuple(row[:count] for row in own),
            to_evidence=tuple(row[count:] for row in own),
            between=tuple(row[:count] for row in rows[1 + len(sentences) :]),
            entailed=self._entailed(step, len(sentences)),
        )

    def _found(self, step: Step) -> Found | None:
        searches = [search for search in self.searches if search.span == step.span]
        failed = bool(searches) and all(search.error is not None for search in searches)
        queries = tuple(step.detail.get("queries", ()))
        call = self._comparison(step)
        if call is None:
            return Found(queries=queries, failed=failed) if step.done else None
        request, rows = call
        count = len(request.left) - len(request.right)
        return Found(
            queries=request.left[:count],
            passages=tuple(self.passages[text] for text in request.right),
            to_queries=rows[:count],
            between=rows[count:],
            failed=failed,
        )

    def _comparison(
        self, step: Step
    ) -> tuple[SimilarityRequest, tuple[tuple[float, ...], ...]] | None:
        for call in self.calls:
            request, rows = call.request, call.similarities
            if call.span == step.span and isinstance(request, SimilarityRequest) and rows:
                return request, rows
        return None

    def _entailed(self, step: Step, count: int) -> tuple[float | None, ...]:
        judging = [s for s in self.steps if s.step == "entail" and s.parent == step.span]
        if not judging:
            return ()
        found: list[float | None] = [None] * count
        for one in judging:
            choices = [c.choice for c in self.calls if c.span == one.span and c.choice is not None]
            found[one.detail["sentence"]] = mean_yes([probability_of_yes(c) for c in choices])
        return tuple(found)

    def _step(self, name: str, draft: int) -> Step | None:
        return next(
            (s for s in self.steps if s.step == name and s.detail.get("draft") == draft), None
        )


def located(sentences: Sequence[str], text: str) -> tuple[Span, ...]:
    """Where the sentences stand in `text`, one after another."""
    spans, at = [], 0
    for sentence in sentences:
        start = text.index(sentence, at)
        at = start + len(sentence)
        spans.append(Span(text=sentence, start=start, end=at))
    return tuple(spans)


def placed(sentences: Sequence[str], passages: Sequence[Passage]) -> tuple[tuple[int, Span], ...]:
    """The first chunk that holds each sentence, and where."""
    found = []
    for sentence in sentences:
        chunk = next(at for at, passage in enumerate(passages) if sentence in passage.text)
        start = passages[chunk].text.index(sentence)
        found.append((chunk, Span(text=sentence, start=start, end=start + len(sentence))))
    return tuple(found)


def mean_yes(values: Sequence[float | None]) -> float | None:
    """The judges' mean P(yes); None when none of them said yes or no."""
    known = [value for value in values if value is not None]
    return fsum(known) / len(known) if known else None

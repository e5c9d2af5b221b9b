"""What every method's part of a page begins with: the method's events, and questions about them."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from functools import cached_property
from typing import Self, TypeVar

from components.calibrated import calibrated_notes
from components.calls import call_list, calls_within
from components.diff import diff_html
from components.elements import divergence, error_note, flag_list, score_line
from components.markup import Child, Html
from components.messages import Catalogue
from components.page import run_notices
from components.unsupported import with_unsupported
from pipelines.run.calibrated import CalibratedReading, readings
from pipelines.run.events import Judged, Retrieved, Score, StepName, What
from pipelines.run.findings import StepDetail
from pipelines.run.unsupported import UnsupportedWords
from pipelines.run.view import MethodView, RunView, StepView
from pipelines.types import Language, Passage

D = TypeVar("D", bound=StepDetail)


@dataclass(frozen=True)
class MethodPanel:
    """A method of a run, as far as it has come, for the one drawing of its part of a page.

    `diverges_at` is the draft from which on only a new run can tell, None where all is recorded.
    """

    view: RunView
    method: MethodView
    t: Catalogue
    diverges_at: int | None

    @classmethod
    def of(cls, name: str, view: RunView, t: Catalogue, diverges_at: int | None) -> Self:
        """Return the panel of the method `name`; of an empty one until the method has begun."""
        method = view.methods.get(name) or MethodView(name=name, span="", started=0.0)
        return cls(view, method, t, diverges_at)

    @property
    def over(self) -> bool:
        """Whether nothing more will happen in the run."""
        return self.view.over

    @property
    def running(self) -> bool:
        """Whether the method itself goes on, or will begin."""
        return not self.view.over and self.method.outcome is None

    @property
    def language(self) -> Language:
        """The language of the question and of the answers."""
        return self.view.header.language if self.view.header else "en"

    @cached_property
    def passages(self) -> dict[str, Passage]:
        """Every passage found, by its id, as it was found first."""
        searches = reversed(self.method.searches)
        return {passage.id: passage for search in searches for passage in search.passages}

    @cached_property
    def verdict(self) -> Judged | None:
        """The last verdict on the answer as a whole."""
        answers = self.judged("answer")
        return answers[-1] if answers else None

    def judged(self, *what: What, draft: int | None = None) -> list[Judged]:
        """Return the verdicts on `what`, of one draft or of all."""
        return [e for e in self.method.judged if e.what in what and draft in (None, e.draft)]

    @cached_property
    def unsupported(self) -> UnsupportedWords:
        """What judges said about single words."""
        return UnsupportedWords(self.method)

    @property
    def any_unsupported(self) -> bool:
        """Whether words of a sentence are unsupported."""
        return any(self.unsupported.of(event) for event in self.judged("sentence"))

    def with_unsupported(self, text: str, event: Judged | None) -> list[Child]:
        """Return `text`, which `event` is a verdict on, with its unsupported words underlined."""
        return with_unsupported(text, self.unsupported.of(event, text) if event else (), self.t)

    def step(self, name: StepName) -> StepView | None:
        """Return the first step of that name."""
        return next((step for step in self.method.steps if step.name == name), None)

    def detail(self, kind: type[D]) -> D | None:
        """Return the first detail of that kind among the steps."""
        return next((s.detail for s in self.method.steps if isinstance(s.detail, kind)), None)

    def searches(self, span: str) -> list[Retrieved]:
        """Return the searches made in a span."""
        return [search for search in self.method.searches if search.span == span]

    # What is drawn alike by several methods

    def opening(self) -> list[Child]:
        """Return what has to be known first: language, cancellation, error, where the run
        is left.
        """
        error = self.method.error or self.view.error
        return [run_notices(self.view, error, self.t), divergence(self.diverges_at, self.t)]

    def error(self) -> Html | None:
        """Return why the method failed, with a button that runs it again."""
        error = self.method.error
        return error_note(error, self.t, retry=self.method.name) if error is not None else None

    def diff(self, before: str, after: str) -> str:
        """Return a change within a running text."""
        return diff_html(before, after, self.language, self.t)

    def sides(self, before: str, after: str) -> str:
        """Return a change as both texts beside each other."""
        return diff_html(before, after, self.language, self.t, form="side")

    def flags(self, key: str | None) -> Html | None:
        """Return remarks on the method's answer."""
        answer = self.method.answer
        return flag_list(answer.flags if answer else (), self.t, key)

    def calls(self, spans: Collection[str], id: str) -> Html:
        """Return the calls of `spans`, behind a disclosure."""
        return call_list(calls_within(self.method, spans), self.t, id=id)

    def score_line(self, event: Judged, score: Score, follows: str | None = None) -> str:
        """Return a number of a verdict with the calls that it rests on; `follows` as for
        any number.
        """
        id = f"behind-{event.seq}-{score.name}"
        calls = self.calls(score.behind or (event.span,), id)
        return score_line(score, self.t, follows, calls, self.calibrated(event, score))

    def calibrated(self, event: Judged, score: Score) -> Html | None:
        """Return what the run's calibrations say of a number of a verdict; None where they say
        nothing.
        """
        return calibrated_notes(self.readings(event, score), self.t)

    def readings(self, event: Judged, score: Score) -> tuple[CalibratedReading, ...]:
        """Return a number of a verdict in the light of the run's calibrations."""
        if self.view.header is None:
            return ()
        return readings(self.view.header.spec, self.method.name, event.what, score)

"""Judges that say what a test wants, and runs of the SLM check with them."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

from pipelines.base import Choice, Generation
from pipelines.engine.reevaluate import Reevaluation, reevaluate
from pipelines.errors import VeriscopeError
from pipelines.methods.slm import Slm
from pipelines.models.base import Capabilities, ChoiceRequest, GenerationRequest, Model, Watcher
from pipelines.run.events import Judged, Score, SpanStarted
from pipelines.run.findings import CellJudged, JudgePanel, SlmVerdict
from tests.scripted.bench import FULL, Outcome, PieceModel, Shelf, run_method

QUESTION = "Where was Bill Clinton born?"
DRAFT = "Clinton was born in Hope. He won in 1993."
BORN, WON = "Clinton was born in Hope.", "He won in 1993."
EVIDENCE = Shelf(lambda _: ["He was born in Hope.", "He won in 1992."])

Said = float | tuple[float, float] | str | None | VeriscopeError


class JudgeModel(Model):
    """Says what `said` holds for the statement a request ends with.

    A number is P(yes), with all the rest on no; a pair P(yes) and P(no); a text a reply without
    probabilities ("yes", "no", or one that names neither); None neither; an error is raised. With
    `together` nobody is answered before as many requests as it wants are waiting.
    """

    def __init__(
        self,
        name: str,
        said: Mapping[str, Said] | Callable[[str], Said],
        capabilities: Capabilities = FULL,
        together: asyncio.Barrier | None = None,
    ) -> None:
        self.name = name
        self._said = said if callable(said) else said.__getitem__
        self._capabilities = capabilities
        self._together = together
        self.asked: list[ChoiceRequest] = []

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        raise AssertionError("A judge is not asked to write.")

    async def choose(self, request: ChoiceRequest) -> Choice:
        self.asked.append(request)
        if self._together is not None:
            await self._together.wait()
        said = self._said(statement_of(request))
        if isinstance(said, VeriscopeError):
            raise said
        if isinstance(said, str):
            yes, no = float(said == "yes"), float(said == "no")
            shares = {"yes": yes, "no": no}
            return Choice(probabilities=shares, other_mass=1 - yes - no, source="text", text=said)
        yes, no = (
            (0.0, 0.0) if said is None else said if isinstance(said, tuple) else (said, 1 - said)
        )
        return Choice(
            probabilities={"yes": yes, "no": no}, other_mass=1 - yes - no, source="logprobs"
        )


def statement_of(request: ChoiceRequest) -> str:
    """The statement that a judge is asked about, which is the end of what it reads."""
    text = request.messages[-1].content
    return text.partition("YES or NO? ")[2] or text.partition("是还是否？")[2]


def says(born: Said, won: Said, whole: Said = 0.5) -> dict[str, Said]:
    """What a judge says about the sentences of DRAFT and about all of it."""
    return {BORN: born, WON: won, DRAFT: whole}


async def check(
    *judges: Model,
    main: Model | None = None,
    shelf: Shelf | None = EVIDENCE,
    question: str = QUESTION,
    **settings: Any,
) -> Outcome:
    """The SLM check of DRAFT by `judges` (judge_1, judge_2, ...)."""
    models = {f"judge_{number}": judge for number, judge in enumerate(judges, start=1)}
    return await run_method(
        Slm(),
        question,
        main or PieceModel(lambda _: DRAFT),
        shelf=shelf,
        models=models,
        **settings,
    )


def again(outcome: Outcome, **settings: Any) -> Reevaluation:
    """The recorded run re-evaluated with the settings given."""
    return reevaluate(outcome.trace, outcome.method, outcome.method.settings(settings))


class Scored:
    """What a run of the check came to, read from its events."""

    def __init__(self, source: Outcome | Reevaluation) -> None:
        events = source.trace.of_method("slm")
        judged = [event for event in events if isinstance(event, Judged)]
        self.panel = next(
            event.detail
            for event in events
            if isinstance(event, SpanStarted) and isinstance(event.detail, JudgePanel)
        )
        self.sentences = sorted(
            (e for e in judged if e.what == "sentence"), key=lambda e: e.sentence or 0
        )
        self.answer = next((e for e in judged if e.what == "answer"), None)
        cells = {(e.label, e.sentence): e for e in judged if e.what == "cell"}
        rows = [
            [cells.get((judge.name, n)) for judge in self.panel.judges]
            for n in range(len(self.panel.sentences))
        ]
        self.matrix = tuple(tuple(c and c.scores[0].value for c in row) for row in rows)
        self.z = tuple(
            tuple(c.detail.z if c and isinstance(c.detail, CellJudged) else None for c in row)
            for row in rows
        )

    @property
    def response(self) -> tuple[Score, ...]:
        assert self.answer is not None
        return self.answer.scores

    @property
    def averages(self) -> list[float]:
        return list(self.response[0].inputs)

    @property
    def threshold(self) -> float | None:
        return self.response[0].threshold

    @property
    def threshold_source(self) -> str:
        assert self.answer is not None
        assert isinstance(self.answer.detail, SlmVerdict)
        return self.answer.detail.threshold_source

    @property
    def verdict(self) -> str:
        assert self.answer is not None
        return self.answer.verdict


def decided(outcome: Outcome, **settings: Any) -> Scored:
    """The recorded run re-evaluated, as what it came to."""
    return Scored(again(outcome, **settings))

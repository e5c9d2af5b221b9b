"""FActScore of the answers of every system by one scorer, which no system is scored by itself.

An answer is taken apart into facts, and each is checked against an article: atomic facts that a
prompt lists (Min and others 2023; here as FacTool asks for claims), or the concepts of EVER. Both
are runs of those methods on the finished answer, which rewrite nothing: every fact of a score can
be looked up in its run.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import aclosing
from typing import Annotated, Any, Literal

from pydantic import Field

from pipelines.engine.asking import RunPlan, RunRequest, plan_run
from pipelines.engine.service import Service
from pipelines.errors import VeriscopeError
from pipelines.evaluation.judging.asking import JudgingOutcome
from pipelines.evaluation.judging.runner import AnswerToJudge, JudgeRunner, answers_of
from pipelines.evaluation.judging.spec import AskedJudge, Fact, JudgeInput, Judgement, digest
from pipelines.evaluation.metrics.table import METRICS, MetricAnswer
from pipelines.evaluation.outcomes import Cost, Outcome, outcome_of, paid_in, why_unsupported
from pipelines.evaluation.plan import Item
from pipelines.evaluation.results.scores import FACT_METRICS
from pipelines.methods.registry import get_method, used_roles
from pipelines.models.providers import ModelSpec
from pipelines.run.events import MAX_TEXT, EvidenceSpec, GivenAnswer, MethodSpec, What
from pipelines.run.view import fold

FactsBy = Literal["prompt", "concepts"]
"""What takes an answer apart: the claims that a prompt lists, or EVER's concepts."""

_CHECKERS: dict[FactsBy, tuple[MethodSpec, What]] = {
    "prompt": (MethodSpec(name="factool", settings={"claims": 20}), "question"),
    "concepts": (
        MethodSpec(name="ever", settings={"max_rounds": 0, "max_concepts": 16}),
        "concept",
    ),
}


class FactSpec(AskedJudge):
    """How facts are found and checked: by which models, against which article.

    `evidence` is what facts are looked up in where an item has no passages of its own: those are
    the article otherwise.
    """

    kind: Literal["facts"] = "facts"
    by: FactsBy = "concepts"
    models: dict[str, ModelSpec]
    evidence: EvidenceSpec = EvidenceSpec()
    seed: Annotated[int, Field(ge=0)] = 0

    @property
    def method(self) -> MethodSpec:
        """The method whose check of a given text finds the facts."""
        return _CHECKERS[self.by][0]

    @property
    def fingerprint(self) -> str:
        """What everything that decides a score comes to, beside answer and article: 64 digits."""
        used = used_roles([self.method.name], self.models)
        models = {role: one.without_price().model_dump(mode="json") for role, one in used.items()}
        prompts = {one.name: one.hash for one in get_method(self.method.name).prompts}
        whole = self.method.model_dump(mode="json"), self.evidence.model_dump(mode="json")
        return digest(["facts", *whole, models, prompts, self.seed])

    @property
    def weak(self) -> bool:
        """False: where the main model judges no better than chance, a judge checks for it."""
        return False

    @property
    def title(self) -> str:
        """What people see of it."""
        found = "claims listed by a prompt" if self.by == "prompt" else "EVER's concepts"
        return f"{found}, {self.models['main'].name}"


class FactRunner(JudgeRunner):
    """Scores the facts of every answer of an evaluation; see `JudgeRunner`."""

    def __init__(
        self,
        service: Service,
        evaluation: str,
        spec: FactSpec,
        *,
        owner: str,
        keys: dict[str, str] | None = None,
        **options: Any,
    ) -> None:
        super().__init__(service, evaluation, spec, owner=owner, **options)
        self._facts, self._keys = spec, keys or {}

    def _answers(self) -> Iterator[AnswerToJudge]:
        store = self._service.store.evaluations
        return answers_of(store, self._evaluation, self._owner, _with_article)

    async def _asked(self, answer: JudgeInput) -> JudgingOutcome:
        if answer.abstained or not answer.answer.strip():
            return JudgingOutcome(Judgement(grade="abstained", by="rule"), Cost())
        plan = fact_plan(self._facts, answer)
        try:
            run = await self._service.start(plan, owner=self._owner, keys=self._keys)
        except VeriscopeError as error:
            return JudgingOutcome(None, Cost(), error.info())
        async with aclosing(self._service.follow(run, owner=self._owner)) as steps:
            async for _ in steps:
                pass
        trace = await self._service.load(run, owner=self._owner)
        paid = paid_in(trace, self._facts.models)
        outcome = outcome_of(trace, self._facts.method.name, self._facts.models)
        view = fold(trace.events)
        if outcome is None or outcome.error:
            errors = [view.error, *(one.error for one in view.methods.values())]
            return JudgingOutcome(None, paid, next(filter(None, errors), None))
        facts = facts_of(self._facts.by, outcome)
        return JudgingOutcome(Judgement(grade=None, facts=facts, run=run), paid)


def fact_plan(spec: FactSpec, answer: JudgeInput) -> RunPlan:
    """Return the plan of the run that checks the facts of an answer against its article."""
    evidence = spec.evidence
    if answer.article:
        evidence = EvidenceSpec(source="given", text="\n\n".join(answer.article)[:MAX_TEXT])
    request = RunRequest(
        question=answer.question,
        answer=GivenAnswer(text=answer.answer[:MAX_TEXT]),
        methods=(spec.method,),
        models=used_roles([spec.method.name], spec.models),
        evidence=evidence,
        language=answer.language,
        seed=spec.seed,
    )
    return plan_run(request)


def facts_of(by: FactsBy, outcome: Outcome) -> tuple[Fact, ...]:
    """Return the facts that were found in the answer as it was given.

    What could not be checked is neither supported nor wrong, and is left out.
    """
    what = _CHECKERS[by][1]
    return tuple(
        Fact(
            text=piece.text,
            supported=piece.verdict == "supported",
            verdict=piece.verdict,
            reason=piece.reason,
        )
        for piece in outcome.pieces
        if piece.what == what and not piece.draft and not piece.round
        if piece.verdict != "unchecked"
    )


def fact_values(judgement: Judgement) -> dict[str, float | None]:
    """Return the metrics of one scored answer; nothing of one that abstains or states no fact."""
    facts = judgement.facts or ()
    answer = MetricAnswer(
        text="",
        supported=tuple(fact.supported for fact in facts),
        unsupported=why_unsupported(facts),
    )
    values = ((name, METRICS[name].value) for name in FACT_METRICS)
    return {name: value and value(answer, _NO_ITEM) for name, value in values}


_NO_ITEM = Item(id="facts")
"""Metrics of facts look at no item."""


def _with_article(item: Item) -> dict[str, Any]:
    titled = (f"{one.title}\n{one.text}" if one.title else one.text for one in item.passages)
    return {"references": (), "article": tuple(titled)}

"""One scorer of facts for the answers of every system, on a scripted model; counted by hand."""

from __future__ import annotations

from contextlib import aclosing
from math import exp
from pathlib import Path

import pytest

from pipelines.base import Passage
from pipelines.evaluation.judging.facts import (
    FactRunner,
    FactSpec,
    fact_plan,
    fact_values,
    facts_of,
)
from pipelines.evaluation.judging.reading import column_names, judges_of_answers
from pipelines.evaluation.judging.spec import Fact, JudgeInput, Judgement, JudgeSpec
from pipelines.evaluation.outcomes import Outcome, SpanVerdict
from pipelines.evaluation.plan import Item
from pipelines.evaluation.runner import Runner
from pipelines.evaluation.scoring import read_results
from pipelines.models.providers import ModelSpec
from pipelines.run.events import Verdict
from pipelines.store.evaluations import StoredJudge
from tests.pipelines.evaluation.bench import MAIN, carried_out, create, opened, spec, system
from tests.scripted.fakes import FakeModel

ARTICLE = (Passage(id="p", title="Ada", text="Ada was born in Delft.", source="s"),)
ITEMS = [Item(id="q0", question="Who was Ada?", passages=ARTICLE)]
SPEC = FactSpec(by="prompt", models={"main": MAIN})


def fact(*supported: bool) -> tuple[Fact, ...]:
    return tuple(
        Fact(text="f", supported=one, verdict="supported" if one else "contradicted")
        for one in supported
    )


@pytest.mark.parametrize(
    ("judgement", "values"),
    [
        # 2 of 3, and exp(1 - 10 / 3) for fewer than ten.
        (Judgement(grade=None, facts=fact(True, True, False)), (2 / 3, 2 / 3 * exp(-7 / 3), 3.0)),
        (Judgement(grade=None, facts=fact(*[True] * 9, False)), (0.9, 0.9, 10.0)),
        # Who states nothing, or nothing that could be checked, is not scored.
        (Judgement(grade=None, facts=()), (None, None, None)),
        (Judgement(grade="abstained", by="rule"), (None, None, None)),
    ],
)
def test_the_score_of_an_answer(judgement: Judgement, values: tuple[float | None, ...]):
    found = fact_values(judgement)
    expected = dict(zip(("fact_precision", "factscore", "facts"), values, strict=True))
    for name, value in expected.items():
        assert found[name] == (value if value is None else pytest.approx(value))


def test_an_answer_is_checked_as_it_was_given_against_the_article_of_its_item():
    answer = JudgeInput(question="Q?", answer="Ada.", references=(), article=("One.", "Two."))
    plan = fact_plan(SPEC, answer)
    assert (plan.spec.evidence.source, plan.spec.evidence.text) == ("given", "One.\n\nTwo.")
    ((method, _),) = plan.methods
    assert method.name == "factool"
    by_concepts = SPEC.model_copy(update={"by": "concepts"})
    ((method, settings),) = fact_plan(by_concepts, answer).methods
    # Nothing is rectified: only what was said counts.
    assert (method.name, settings.model_dump()["max_rounds"]) == ("ever", 0)
    assert by_concepts.fingerprint != SPEC.fingerprint
    assert (
        fact_plan(SPEC, answer.model_copy(update={"article": ()})).spec.evidence.source != "given"
    )


async def scored(tmp_path: Path, *replies: str) -> list[dict[str, float | None]]:
    async with opened(tmp_path, FakeModel(*replies)) as service:
        asked = spec(system("direct"), system("chain_of_thought"))
        name = create(service, asked, items=ITEMS)
        await carried_out(Runner(service, name, owner="me", at_once=1))
        runner = FactRunner(service, name, SPEC, owner="me", at_once=1)
        async with aclosing(runner.run()) as steps:
            *_, last = [one async for one in steps]
        assert (last.reason, last.judged, last.failed) == ("done", 2, 0), last.last_error
        _, results = read_results(service.store.evaluations, name, "me")
        assert "claims listed by a prompt" in results.judges["factscore"].title
        return [dict(score.values) for score in results.scores]


async def test_the_answers_of_every_system_are_scored_by_one_scorer(tmp_path: Path):
    found = await scored(
        tmp_path,
        "Ada was born in Delft. Ada lived in Rome.",
        "Answer: Ada lived in Rome.",
        # The claims of the first answer, queries for each, and the verdicts: of Rome first.
        '["Ada was born in Delft.", "Ada lived in Rome."]',
        '["Ada born Delft"]', '["Ada Rome"]', "False", "True",
        # The claim of the second one is known by now.
        '["Ada lived in Rome."]',
    )  # fmt: skip
    assert [values["facts"] for values in found] == [2, 1]
    assert [values["fact_precision"] for values in found] == [0.5, 0]
    assert found[0]["factscore"] == pytest.approx(0.5 * exp(-4))


def test_a_scorer_is_no_judge_of_answers():
    def stored(judge: str, body: JudgeSpec | FactSpec) -> StoredJudge:
        return StoredJudge(judge, None, body.model_dump(mode="json"), {})  # pyright: ignore[reportArgumentType]

    grader = JudgeSpec(model=ModelSpec(kind="openai", name="grader", model="g"))
    judges = [stored("a", SPEC), stored("b", grader), stored("c", SPEC)]
    assert column_names(judges) == {"a": "factscore", "b": "judged", "c": "factscore 2"}
    assert [one.judge for one in judges_of_answers(judges)] == ["b"]


def test_facts_that_are_not_supported_are_of_three_kinds():
    def fact(verdict: Verdict, reason: str = "") -> Fact:
        return Fact(text="f", supported=verdict == "supported", verdict=verdict, reason=reason)

    facts = (
        fact("supported"), fact("contradicted"), fact("not_enough", "no_evidence"),
        fact("not_enough"), fact("not_enough"),
    )  # fmt: skip
    found = fact_values(Judgement(grade=None, facts=facts))
    kinds = ("facts_contradicted", "facts_no_evidence", "facts_unsettled")
    assert [found[name] for name in kinds] == pytest.approx([1 / 5, 1 / 5, 2 / 5])


def test_facts_of_a_later_draft_do_not_count():
    def piece(verdict: str, **fields: int) -> SpanVerdict:
        return SpanVerdict.model_validate({
            "what": "concept", "start": 0, "end": 1, "draft": 0, "verdict": verdict, "text": "t",
        } | fields)  # fmt: skip

    pieces = (
        piece("supported"), piece("contradicted"), piece("not_enough"), piece("unchecked"),
        piece("supported", draft=1), piece("supported", round=1),
    )  # fmt: skip
    found = facts_of("concepts", Outcome(answer="t", pieces=pieces))
    assert [one.supported for one in found] == [True, False, False]

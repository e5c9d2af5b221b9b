"""Answers are judged once, whatever happens; what was said stands in the table."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from pathlib import Path

import pytest

from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError, NotFoundError, UnreachableError
from pipelines.evaluation.judging.calibration import HumanGrades, LabelKey, calibrated
from pipelines.evaluation.judging.reading import graded_answers
from pipelines.evaluation.judging.runner import JudgeRunner, JudgingProgress
from pipelines.evaluation.judging.spec import JudgeInput, JudgeSpec
from pipelines.evaluation.plan import Budget, Item
from pipelines.evaluation.results.export import table_text
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.runner import Runner
from pipelines.evaluation.scoring import read_results
from pipelines.models.base import Model
from pipelines.models.judges.base import OverlapJudge
from pipelines.models.providers import ModelSpec, Price
from pipelines.remote import RetryPolicy
from pipelines.store.tables import to_json
from tests.pipelines.evaluation.bench import ITEMS, carried_out, create, opened, spec
from tests.scripted.fakes import FakeModel

AWAY = UnreachableError("Nobody answers.", remedy="Try it again.")
JUDGE = JudgeSpec(
    model=ModelSpec(kind="openai", name="grader", model="g", price=Price(read=0.0, written=1e6))
)


async def answered(folder: Path, service: Service) -> str:
    name = create(service, spec())
    await carried_out(Runner(service, name, owner="me", at_once=1))
    return name


async def judged(service: Service, name: str, **options: object) -> JudgingProgress:
    of = options.pop("of", JUDGE)
    assert isinstance(of, JudgeSpec)
    once = RetryPolicy(attempts=1)
    runner = JudgeRunner(service, name, of, owner="me", at_once=1, retry=once, **options)  # pyright: ignore[reportArgumentType]
    async with aclosing(runner.run()) as steps:
        *_, last = [one async for one in steps]
    return last


async def test_every_answer_is_judged_once(tmp_path: Path):
    model = FakeModel("Ann", "Bob", "I don't know.", "Cay", "Correct", "Partly", "Abstained", "Hm")
    async with opened(tmp_path, model) as service:
        name = await answered(tmp_path, service)
        last = await judged(service, name)
        # The last reply names no grade: it is asked for again, and stays undecided.
        assert (last.judged, last.total, last.undecided, last.reason) == (4, 4, 1, "done")
        calls = len(model.asked)
        # Four answers, three verdicts, and two requests for the last one.
        assert calls == 4 + 3 + 2
        # Tokens cost a unit each: one a reply, and every call of the judge is counted.
        assert last.spent.calls == calls - 4
        assert last.spent.money["USD"] == last.spent.tokens
        first = model.asked[4].messages[-1].content
        assert "Who was number 0?" in first
        assert "- Nobody 0" in first
        assert "Ann" in first
        again = await judged(service, name)
        assert (again.judged, again.reason, again.spent) == (4, "done", last.spent)
        assert len(model.asked) == calls
        # Another evaluation with the same answers pays nothing.
        other = create(service, spec(), "other")
        assert (await judged(service, other)).spent.calls == 0
        assert len(model.asked) == calls

        _, found = read_results(service.store.evaluations, name, "me")
        values = [score.values["judged"] for score in found.scores]
        assert values == [1.0, 0.5, 0.0, None]
        table = results_table(found)
        # The mean of three; the undecided one is left out.
        assert table.rows[0].metrics["judged"].value == pytest.approx(0.5)
        assert "judged: by grader, 4 answers, 1 undecided; not checked against" in " ".join(
            table_text(table).split()
        )


async def test_a_second_judge_has_a_column_of_its_own(tmp_path: Path):
    model = FakeModel("Ann", "Bob", "Cay", "Dan", *["Correct"] * 4, "Wrong")
    async with opened(tmp_path, model) as service:
        name = await answered(tmp_path, service)
        await judged(service, name)
        weak = JudgeSpec(model=ModelSpec(kind="openai", name="small", model="s", judges=False))
        # What the first judge has spent does not count against the second.
        assert (await judged(service, name, of=weak, budget=Budget(calls=4))).reason == "done"
        _, found = read_results(service.store.evaluations, name, "me")
        second = "judged 2 (weak)"
        assert [found.scores[0].values[one] for one in ("judged", second)] == [1.0, 0.0]
        assert found.metric(second).high == 1.0
        assert list(found.judges) == ["judged", second]
        assert "WEAK" in found.judges[second].words
        assert "WEAK" not in found.judges["judged"].words


async def test_a_budget_stops_it_and_it_goes_on_later(tmp_path: Path):
    model = FakeModel("Ann", "Bob", "Cay", "Dan", "Correct")
    async with opened(tmp_path, model) as service:
        name = await answered(tmp_path, service)
        last = await judged(service, name, budget=Budget(calls=2))
        assert (last.judged, last.reason) == (2, "budget")
        assert (await judged(service, name, budget=Budget(calls=2))).judged == 2
        last = await judged(service, name)
        assert (last.judged, last.reason) == (4, "done")
        assert len(model.asked) == 8


async def test_two_processes_pay_for_an_answer_once_and_keep_one_budget(tmp_path: Path):
    model = FakeModel("Ann", "Bob", "Cay", "Dan", "Correct")
    async with opened(tmp_path, model) as service:
        name = await answered(tmp_path, service)
        first = JudgeRunner(service, name, JUDGE, owner="me", at_once=1)
        other = JudgeRunner(service, name, JUDGE, owner="me", at_once=1, budget=Budget(calls=3))
        async with aclosing(first.run()) as steps, aclosing(other.run()) as others:
            # Both find four answers that nobody has judged.
            for one in (steps, others):
                assert (await anext(one)).judged == 0
            for judged_by_now in (1, 2):
                assert (await anext(steps)).judged == judged_by_now
            last = [one async for one in others][-1]
        assert (last.judged, last.reason) == (3, "budget")
        # Two calls of the first, and one of the other: it asked for nothing that was there.
        assert last.spent.calls == 3
        assert len(model.asked) == 4 + 3


async def test_calls_that_are_out_count_towards_the_limit(tmp_path: Path):
    model = FakeModel("Ann", "Bob", "Cay", "Dan", "Correct")
    async with opened(tmp_path, model) as service:
        name = await answered(tmp_path, service)
        runner = JudgeRunner(service, name, JUDGE, owner="me", at_once=4, budget=Budget(calls=1))
        async with aclosing(runner.run()) as steps:
            *_, last = [one async for one in steps]
        assert (last.judged, last.reason, last.spent.calls) == (1, "budget", 1)
        assert len(model.asked) == 4 + 1


async def test_it_ends_where_the_evaluation_is_deleted_meanwhile(tmp_path: Path):
    model = FakeModel("Ann", "Bob", "Cay", "Dan", "Correct")
    async with opened(tmp_path, model) as service:
        name = await answered(tmp_path, service)
        runner = JudgeRunner(service, name, JUDGE, owner="me", at_once=1)
        async with aclosing(runner.run()) as steps:
            await anext(steps)
            service.store.evaluations.delete(name, "me")
            with pytest.raises(NotFoundError):
                await anext(steps)
        assert len(model.asked) == 4 + 1
        # What it said of the first answer is there, for the next evaluation.
        other = create(service, spec(), "other")
        await carried_out(Runner(service, other, owner="me", at_once=1))
        last = await judged(service, other)
        assert last.judged == 4
        assert last.spent.calls == 3


async def test_a_failed_call_leaves_the_answer_open(tmp_path: Path):
    model = FakeModel("A", "B", "C", "D", AWAY, "Correct")
    async with opened(tmp_path, model) as service:
        name = await answered(tmp_path, service)
        last = await judged(service, name)
        assert (last.judged, last.failed, last.reason) == (3, 1, None)
        assert last.last_error is not None
        assert last.last_error.message == "Nobody answers."
        # What failed was asked too.
        assert last.spent.calls == 4
        assert (await judged(service, name)).judged == 4


async def test_who_stops_it_loses_nothing_that_was_said(tmp_path: Path):
    model = FakeModel("A", "B", "C", "D", "Correct")
    async with opened(tmp_path, model) as service:
        name = await answered(tmp_path, service)
        runner = JudgeRunner(service, name, JUDGE, owner="me", at_once=1)
        async with aclosing(runner.run()) as steps:
            async for progress in steps:
                if progress.judged == 2:
                    break
        await asyncio.sleep(0)
        assert (await judged(service, name)).judged == 4
        _, found = read_results(service.store.evaluations, name, "me")
        assert [score.values["judged"] for score in found.scores] == [1.0] * 4


async def test_what_decides_a_judgement_is_in_its_key():
    answer = JudgeInput(question="Who?", answer="Ann", references=("Ann",))
    changed = [
        JudgeSpec(model=JUDGE.model, seed=1),
        JudgeSpec(model=JUDGE.model, temperature=0.5),
        JudgeSpec(model=JUDGE.model.model_copy(update={"model": "h"})),
        JudgeSpec(model=JUDGE.model, prompt=JUDGE.prompt + "\n# changed"),
    ]
    keys = {answer.key(one.fingerprint) for one in (JUDGE, *changed)}
    assert len(keys) == 5
    free = JudgeSpec(model=JUDGE.model.without_price())
    assert answer.key(free.fingerprint) == answer.key(JUDGE.fingerprint)


async def test_a_drawn_verdict_is_read_strictly(tmp_path: Path):
    model = FakeModel("A", "B", "C", "D", "so so", "Wrong", "Correct")
    async with opened(tmp_path, model) as service:
        name = await answered(tmp_path, service)
        drawn = JudgeSpec(model=JUDGE.model, temperature=0.7, seed=3)
        last = await judged(service, name, of=drawn)
        assert last.judged == 4
        assert {request.seed for request in model.asked[4:]} == {3}
        _, found = read_results(service.store.evaluations, name, "me")
        # The first names no grade, is reminded, and says wrong.
        assert [score.values["judged"] for score in found.scores] == [0.0, 1.0, 1.0, 1.0]


async def test_a_model_made_to_judge_compares_with_every_accepted_answer(tmp_path: Path):
    items = [
        Item(id="a", question="Who?", answers=("Bob", "Ann Smith")),
        Item(id="b", question="Where?", answers=("Paris",)),
        Item(id="c", question="When?", answers=("1990",)),
    ]
    writer: Model = FakeModel("Ann Smith", "Rome", "I don't know.")
    async with opened(tmp_path, writer) as service:
        name = create(service, spec(), items=items)
        await carried_out(Runner(service, name, owner="me", at_once=1))
    async with opened(tmp_path, OverlapJudge()) as service:
        judge = JudgeSpec(model=ModelSpec(kind="judge", name="overlap", model="overlap"))
        last = await judged(service, name, of=judge)
        assert (last.judged, last.undecided) == (3, 0)
        said = graded_answers(service.store.evaluations, name, "me", judge.fingerprint, ["direct"])
        assert [one.judgement.grade for one in said] == ["correct", "wrong", "abstained"]
        # Nobody was asked about the refusal.
        assert last.spent.judge_calls == 3


async def test_labels_say_how_good_the_judge_is(tmp_path: Path):
    model = FakeModel("A", "B", "C", "D", "Correct", "Correct", "Wrong", "Correct")
    async with opened(tmp_path, model) as service:
        name = await answered(tmp_path, service)
        await judged(service, name)
        store = service.store.evaluations
        graded = graded_answers(store, name, "me", JUDGE.fingerprint, ["direct"])
        said = {LabelKey("q0", ""): "correct", LabelKey("q1", ""): "wrong"}
        labels = HumanGrades(said, "x")
        found = calibrated(graded, labels)
        assert found.agreement.accuracy.value == 0.5
        assert found.rates["direct"].judge == 0.75
        store.judgements.calibrate(name, "me", JUDGE.fingerprint, to_json(found))
        _, results = read_results(store, name, "me")
        assert "agreement with x: 0.50 of 2" in results.judges["judged"].words


async def test_what_cannot_be_judged_is_refused(tmp_path: Path):
    async with opened(tmp_path, FakeModel("A")) as service:
        name = create(service, spec(), items=[Item(id="a", question="Who?")])
        await carried_out(Runner(service, name, owner="me"))
        with pytest.raises(InvalidInputError, match="no answer that can be judged"):
            await judged(service, name)
        with pytest.raises(NotFoundError):
            await judged(service, "none")
        # Nobody else's.
        assert ITEMS
        with pytest.raises(NotFoundError):
            service.store.judgements.judges(name, "you")

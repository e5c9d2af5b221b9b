"""Limits are kept with an evaluation, hold for all who continue it, and say which was reached."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.evaluation.beginning import (
    change_limits,
    checked_limits,
    currencies_of,
    limit_reached,
    spent_so_far,
)
from pipelines.evaluation.outcomes import Cost, Outcome
from pipelines.evaluation.plan import Budget, EvaluationSpec, Item, System, tasks_of
from pipelines.evaluation.runner import Runner
from pipelines.evaluation.scoring import found_right
from pipelines.models.providers import ModelSpec, Price
from pipelines.run.events import MethodSpec, Verdict
from tests.pipelines.evaluation.bench import ITEMS, carried_out, create, opened, spec, system
from tests.scripted.fakes import FakeModel


@pytest.mark.parametrize(
    ("limits", "reached"),
    [
        (Budget(), None),
        # Three calls of models that write and two of judges.
        (Budget(calls=6), None),
        (Budget(calls=5), "calls"),
        (Budget(tokens=31), None),
        (Budget(tokens=30), "tokens"),
        # Two dollars and three yuan are not five of anything.
        (Budget(money=5), None),
        (Budget(money=3), "money"),
        (Budget(hours=1.5), "hours"),
        (Budget(calls=5, hours=1), "calls"),
        (Budget(calls=0), "calls"),
    ],
)
def test_the_limit_that_is_reached_is_named(limits: Budget, reached: str | None):
    spent = Cost(
        calls=3, judge_calls=2, prompt_tokens=20, tokens=10, money={"USD": 2.0, "CNY": 3.0}
    )
    assert limit_reached(limits, spent, hours=1.5) == reached


def priced(currency: str | None, kind: str = "openai", name: str = "m") -> ModelSpec:
    price = Price.model_validate({"read": 1, "written": 1, "currency": currency or "USD"})
    return ModelSpec(kind=kind, name=name, model=name, price=price if currency else None)


def using(*models: ModelSpec) -> EvaluationSpec:
    return spec(
        *(
            System(name=f"direct {k}", method=MethodSpec(name="direct"), models={"main": model})
            for k, model in enumerate(models)
        )
    )


@pytest.mark.parametrize(
    ("models", "says"),
    [
        ([ModelSpec()], "no model of this evaluation has a price"),
        ([priced("USD"), priced("CNY", name="n")], "prices are in CNY and USD"),
        ([priced("USD"), priced(None, name="other")], "'other' has no price"),
    ],
)
def test_a_limit_of_money_that_cannot_be_kept_is_refused(models: list[ModelSpec], says: str):
    with pytest.raises(InvalidInputError, match=says):
        checked_limits(using(*models), Budget(money=1))
    assert checked_limits(using(*models), Budget(calls=1)) == Budget(calls=1)


def test_a_model_on_this_machine_needs_no_price():
    asked = using(priced("EUR"), ModelSpec())
    assert checked_limits(asked, Budget(money=1)) == Budget(money=1)
    assert currencies_of(asked) == ("EUR",)


def test_a_model_that_no_method_uses_does_not_count():
    # Direct asks the main model only.
    models = {"main": priced("USD"), "verifier": priced(None, name="verifier")}
    asked = spec(System(name="direct", method=MethodSpec(name="direct"), models=models))
    assert checked_limits(asked, Budget(money=1)) == Budget(money=1)


async def test_limits_are_kept_and_changed(tmp_path: Path):
    model = FakeModel("one two")
    async with opened(tmp_path, model) as service:
        name = create(service, spec(limits=Budget(calls=2)))
        first = await carried_out(Runner(service, name, owner="me", at_once=1))
        assert (first.answered, first.reason, first.limit) == (2, "budget", "calls")
        store = service.store.evaluations
        assert spent_so_far(store, name) == first.spent
        # Another process, which was told of no limit, stops there too.
        again = await carried_out(Runner(service, name, owner="me", at_once=1))
        assert (again.answered, again.limit) == (2, "calls")
        with pytest.raises(NotFoundError):
            change_limits(store, name, "you", Budget())
        change_limits(store, name, "me", Budget(calls=3))
        third = await carried_out(Runner(service, name, owner="me", at_once=1))
        assert (third.answered, third.limit) == (3, "calls")
        change_limits(store, name, "me", Budget())
        last = await carried_out(Runner(service, name, owner="me", at_once=1))
        assert (last.answered, last.reason, last.limit) == (4, "done", None)
        stored = EvaluationSpec.model_validate(store.get(name, "me").spec)
        assert stored == spec()


def _answers(service: Service, name: str) -> list[tuple[int, object, object]]:
    rows = service.store.evaluations.outcomes(name, "me")
    return [(task.number, body["answer"], body["verdict"]) for task, _, body in rows]


async def test_answers_under_way_pass_no_limit_and_go_on_with_what_they_have(tmp_path: Path):
    # Drafts are shared; each answer of the check needs at least one call more.
    reply, both = "Ada Brandt was born in Delft in 1904.", (system("direct"), system("slm"))
    free = FakeModel(reply)
    async with opened(tmp_path / "free", free) as service:
        name = create(service, spec(*both))
        whole = await carried_out(Runner(service, name, owner="me", at_once=4))
        wanted = _answers(service, name)
    most = round(whole.spent.calls + whole.spent.judge_calls) - 1
    model = FakeModel(reply)
    async with opened(tmp_path / "limited", model) as service:
        name = create(service, spec(*both, limits=Budget(calls=most)))
        first = await carried_out(Runner(service, name, owner="me", at_once=4))
        assert (first.reason, first.limit, first.failed) == ("budget", "calls", 0)
        assert first.spent.calls + first.spent.judge_calls == most
        # The one that was cut short has no answer, though it has a draft.
        assert first.answered < len(wanted)
        assert len(_answers(service, name)) == first.answered
        store = service.store.evaluations
        assert spent_so_far(store, name) == first.spent
        change_limits(store, name, "me", Budget())
        last = await carried_out(Runner(service, name, owner="me", at_once=4))
        assert last.reason == "done"
        # Nothing is asked twice, and the result is that of an evaluation without a limit.
        assert len(model.asked) == len(free.asked)
        assert _answers(service, name) == wanted


async def test_money_is_held_back_for_the_answers_under_way(tmp_path: Path):
    # A draft may cost 256 (128 tokens at 2) and costs 4. Two at a time would hold back 512, so the
    # second waits: 4 + 256 fit, 8 + 256 do not.
    async with opened(tmp_path, FakeModel("one two")) as service:
        name = create(service, spec(limits=Budget(money=263)))
        last = await carried_out(Runner(service, name, owner="me", at_once=2))
    assert (last.answered, last.reason, last.limit) == (2, "budget", "money")
    assert last.spent.money == {"USD": pytest.approx(8.0)}


async def test_work_before_counts_towards_the_hours(tmp_path: Path):
    async with opened(tmp_path, FakeModel("one")) as service:
        name = create(service, spec(limits=Budget(hours=1)))
        late = Runner(service, name, owner="me", worked=3600)
        assert (await carried_out(late)).limit == "hours"
        assert (await carried_out(Runner(service, name, owner="me", worked=60))).reason == "done"


def test_limits_decide_nothing_that_is_answered():
    free, limited = spec(), spec(limits=Budget(calls=1))
    assert list(tasks_of(free, ITEMS)) == list(tasks_of(limited, ITEMS))


async def test_the_latest_answers_come_newest_first(tmp_path: Path):
    items = [*ITEMS, Item(id="q4", question="Who was number 4?", answers=("one",)), *_more(3)]
    async with opened(tmp_path, FakeModel("one")) as service:
        name = create(service, spec(), items=items)
        last = await carried_out(Runner(service, name, owner="me", at_once=1))
    assert [one.number for one in last.latest] == [7, 6, 5, 4, 3]
    assert [one.right for one in last.latest] == [None, None, None, True, False]
    assert {one.answer for one in last.latest} == {"one"}
    assert last.latest[-1].question == "Who was number 3?"
    assert all(one.run for one in last.latest)


async def test_who_declines_is_told_apart_from_who_is_wrong(tmp_path: Path):
    async with opened(tmp_path, FakeModel("I do not know.")) as service:
        name = create(service, spec(), items=ITEMS[:1])
        (one,) = (await carried_out(Runner(service, name, owner="me"))).latest
    assert (one.right, one.declined) == (False, True)


def _more(count: int) -> list[Item]:
    """Items without accepted answers."""
    return [Item(id=f"more{n}", question=f"Who else, {n}?") for n in range(count)]


@pytest.mark.parametrize(
    ("verdict", "label", "right"),
    [
        ("contradicted", True, True),
        ("doubtful", False, False),
        ("supported", True, False),
        ("confident", False, True),
        ("not_enough", True, None),
        (None, True, None),
        ("contradicted", None, None),
    ],
)
def test_a_verdict_is_right_where_people_say_the_same(
    verdict: Verdict | None, label: bool | None, right: bool | None
):
    item = Item(id="a", text="Ada was born in Delft.", hallucinated=label)
    outcome = Outcome(answer=item.text, verdict=verdict)
    assert found_right(spec(checks="texts"), item, outcome) is right
    assert found_right(spec(checks="texts"), item, Outcome(error="timeout")) is None


async def test_items_that_ask_the_same_share_their_answer(tmp_path: Path):
    # One question, two accepted answers: it is asked once, and each item has its own value.
    items = [
        Item(id="a", question="Who?", answers=("one",)),
        Item(id="b", question="Who?", answers=("two",)),
    ]
    model = FakeModel("one")
    async with opened(tmp_path, model) as service:
        name = create(service, spec(repeats=2), items=items)
        last = await carried_out(Runner(service, name, owner="me", at_once=1))
        assert (last.answered, last.reason) == (4, "done")
        # A repeat has a seed of its own, and is asked for itself.
        assert len(model.asked) == 2
        assert [one.right for one in reversed(last.latest)] == [True, True, False, False]
        runs = [run for _, run, _ in service.store.evaluations.outcomes(name, "me")]
    assert (runs[0], runs[1]) == (runs[2], runs[3])
    assert runs[0] != runs[1]
    assert last.spent.calls == 2


def test_a_system_named_twice_is_one_model_in_the_limits():
    assert currencies_of(spec(system("direct"), system("direct 2"))) == ("USD",)

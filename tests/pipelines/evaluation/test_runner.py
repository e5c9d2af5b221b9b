"""An evaluation is carried out, stopped, killed and continued; nothing is asked for twice."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipelines.errors import InvalidInputError, NotFoundError, UnreachableError
from pipelines.evaluation.plan import (
    Budget,
    Item,
    System,
    checked_spec,
    key_of,
    plan_of,
    system_names,
)
from pipelines.evaluation.runner import Runner
from pipelines.models.providers import ModelSpec
from pipelines.run.events import MethodSpec
from tests.pipelines.evaluation.bench import ITEMS, carried_out, create, dream, opened, spec, system
from tests.scripted.fakes import FakeModel


async def test_every_item_is_answered_by_every_system_and_found_again(tmp_path: Path):
    model = FakeModel("one two three")
    async with opened(tmp_path, model) as service:
        name = create(service, spec(system("direct"), system("direct 2", max_tokens=64)))
        last = await carried_out(Runner(service, name, owner="me"))
        assert (last.answered, last.total, last.reason) == (8, 8, "done")
        # Two systems with different limits ask different requests: nothing is shared.
        assert len(model.asked) == 8
        assert last.spent.calls == 8
        # Three tokens a reply, two units of money each.
        assert last.spent.money == {"USD": pytest.approx(48.0)}
        found = service.store.evaluations.outcomes(name, "me")
        assert [(task.position, task.system) for task, _, _ in found] == [
            (position, index) for position in range(4) for index in range(2)
        ]
        assert {body["answer"] for _, _, body in found} == {"one two three"}
        run = found[0][1]
        assert (await service.load(run, owner="me")).terminal is not None
        # Again: everything is there.
        again = await carried_out(Runner(service, name, owner="me"))
        assert (again.answered, again.reason, again.spent) == (8, "done", last.spent)
        assert len(model.asked) == 8


async def test_what_was_answered_serves_another_evaluation(tmp_path: Path):
    model = FakeModel("one")
    async with opened(tmp_path, model) as service:
        await carried_out(Runner(service, create(service, spec()), owner="me"))
        both = create(service, spec(system("direct"), system("rag")), "both")
        assert service.store.evaluations.get(both, "me").done == 4
        with pytest.raises(NotFoundError):
            service.store.evaluations.get(both, "you")


async def test_an_attempt_in_an_unknown_format_does_not_end_the_evaluation(tmp_path: Path):
    async with opened(tmp_path, FakeModel("one")) as service:
        asked = spec()
        name = create(service, asked)
        run = await service.start(plan_of(asked, asked.systems[0], ITEMS[0], 0), owner="me")
        async for _ in service.follow(run, owner="me"):
            pass
        service.store.evaluations.attempt(name, 0, run)
        dream(tmp_path, run)
        last = await carried_out(Runner(service, name, owner="me"))
        assert (last.answered, last.reason) == (4, "done")


async def test_what_counts_is_what_is_asked(tmp_path: Path):
    one, other = spec(), spec(system("direct", max_tokens=64))
    plan = plan_of(one, one.systems[0], ITEMS[0], 0)
    assert key_of(plan, 0) == key_of(plan, 0)
    # Prices decide nothing that a method answers.
    free = spec(
        System(name="direct", method=MethodSpec(name="direct"), models={"main": ModelSpec()})
    )
    assert key_of(plan_of(free, free.systems[0], ITEMS[0], 0), 0) == key_of(plan, 0)
    changed = [
        key_of(plan_of(one, one.systems[0], ITEMS[1], 0), 0),
        key_of(plan_of(one, one.systems[0], ITEMS[0], 1), 1),
        key_of(plan_of(other, other.systems[0], ITEMS[0], 0), 0),
    ]
    assert len({key_of(plan, 0), *changed}) == 4


async def test_repeats_are_asked_anew(tmp_path: Path):
    model = FakeModel("one", "two", "three")
    async with opened(tmp_path, model) as service:
        name = create(service, spec(repeats=3), items=ITEMS[:1])
        await carried_out(Runner(service, name, owner="me", at_once=1))
        bodies = [body for _, _, body in service.store.evaluations.outcomes(name, "me")]
        assert [body["answer"] for body in bodies] == ["one", "two", "three"]
        assert [request.seed for request in model.asked] == [0, 1, 2]


async def test_it_stops_where_the_budget_is_spent_and_goes_on_with_another(tmp_path: Path):
    model = FakeModel("one two")
    async with opened(tmp_path, model) as service:
        name = create(service, spec())
        first = await carried_out(
            Runner(service, name, owner="me", budget=Budget(calls=2), at_once=1)
        )
        assert (first.answered, first.reason) == (2, "budget")
        # What was spent before counts.
        none = await carried_out(
            Runner(service, name, owner="me", budget=Budget(calls=2), at_once=1)
        )
        assert (none.answered, none.reason, len(model.asked)) == (2, "budget", 2)
        rest = await carried_out(Runner(service, name, owner="me", budget=Budget(money=1000)))
        assert (rest.answered, rest.reason, rest.spent.calls) == (4, "done", 4)


async def test_so_many_answers_are_under_way_at_a_time_and_no_more(tmp_path: Path):
    many = [Item(id=f"m{number}", question=f"Who was {number}?") for number in range(12)]
    model = FakeModel("one", gated=True)
    async with opened(tmp_path, model) as service:
        name = create(service, spec(), items=many)
        working = asyncio.create_task(carried_out(Runner(service, name, owner="me", at_once=3)))
        await model.until_asked(3)
        model.gate.set()
        last = await working
    assert (last.answered, model.most_busy) == (12, 3)


async def test_a_few_are_probed_first(tmp_path: Path):
    async with opened(tmp_path, FakeModel("one")) as service:
        name = create(service, spec())
        probe = await carried_out(Runner(service, name, owner="me"), most=3)
        assert (probe.answered, probe.reason) == (3, None)


async def test_what_is_stopped_goes_on_with_the_replies_that_it_has(tmp_path: Path):
    # DRAD asks for a draft, then more: the second call is held, and the run stopped there.
    model = FakeModel("Ada Brandt was born in Delft in 1904.")
    async with opened(tmp_path, model) as service:
        name = create(service, spec(system("direct"), system("slm")), items=ITEMS[:1])
        runner = Runner(service, name, owner="me", at_once=1)

        async def hold() -> None:
            await model.until_asked(1)
            model.gate.clear()
            await model.until_asked(2)
            runner.stop()

        holding = asyncio.create_task(hold())
        stopped = await carried_out(runner)
        await holding
        assert (stopped.answered, stopped.reason) == (1, "stopped")
        asked = len(model.asked)
        model.gate.set()
        done = await carried_out(Runner(service, name, owner="me", at_once=1))
        assert done.reason == "done"
        # Only the call that was cut short is made again.
        repeated = model.asked[asked - 1]
        assert [one for one in model.asked[asked:] if one == repeated]
        assert len([one for one in model.asked if one == model.asked[0]]) == 1


async def test_replies_on_an_item_serve_another_system_after_a_restart(tmp_path: Path):
    # The check of a small model begins with the draft that Direct has written.
    model = FakeModel("Ada Brandt was born in Delft in 1904.")
    async with opened(tmp_path, model) as service:
        both = spec(system("direct"), system("slm"))
        name = create(service, both, items=ITEMS[:1])
        await carried_out(Runner(service, name, owner="me", at_once=1), most=1)
        drafted = model.asked[0]
        assert len(model.asked) == 1
    async with opened(tmp_path, model) as service:
        await carried_out(Runner(service, name, owner="me"))
        assert model.asked.count(drafted) == 1
        # What another evaluation asked serves as well.
    async with opened(tmp_path, model) as service:
        third = create(
            service, spec(system("direct"), system("slm", threshold=0.3)), "third", ITEMS[:1]
        )
        await carried_out(Runner(service, third, owner="me"))
        assert model.asked.count(drafted) == 1


async def test_replies_of_another_model_serve_nobody(tmp_path: Path):
    other = ModelSpec(kind="openai", name="other", model="m", base_url="http://localhost/v1")
    model = FakeModel("one")
    async with opened(tmp_path, model) as service:
        systems = (
            system("direct"),
            System(name="other", method=MethodSpec(name="direct"), models={"main": other}),
        )
        name = create(service, spec(*systems), items=ITEMS[:1])
        await carried_out(Runner(service, name, owner="me", at_once=1), most=1)
    async with opened(tmp_path, model) as service:
        await carried_out(Runner(service, name, owner="me"))
        assert len(model.asked) == 2


async def test_a_budget_that_was_just_enough_is_no_reason_to_end(tmp_path: Path):
    async with opened(tmp_path, FakeModel("one")) as service:
        name = create(service, spec())
        last = await carried_out(Runner(service, name, owner="me", budget=Budget(calls=4)))
        assert (last.answered, last.reason) == (4, "done")


async def test_an_evaluation_that_is_deleted_meanwhile_ends_with_that(tmp_path: Path):
    model = FakeModel("one")
    async with opened(tmp_path, model) as service:
        name = create(service, spec())

        async def delete_after_one() -> None:
            async for progress in Runner(service, name, owner="me", at_once=1).run():
                if progress.answered == 1:
                    service.store.evaluations.delete(name, "me")

        with pytest.raises(NotFoundError, match="no evaluation"):
            await delete_after_one()


async def test_a_server_that_is_away_leaves_tasks_open_and_ends_it(tmp_path: Path):
    away = UnreachableError("Nobody answers.", remedy="Start it.")
    model = FakeModel(away)
    async with opened(tmp_path, model) as service:
        many = [
            item.model_copy(update={"id": f"{item.id}-{n}"}) for n in range(5) for item in ITEMS
        ]
        name = create(service, spec(), items=many)
        last = await carried_out(Runner(service, name, owner="me", at_once=1))
        assert (last.answered, last.failed, last.reason) == (0, 5, "failing")
        assert last.last_error is not None
        assert last.last_error.message == "Nobody answers."
        model.replies[:] = ["here"]
        assert (await carried_out(Runner(service, name, owner="me"))).answered == 20


async def test_an_error_that_stays_is_an_outcome(tmp_path: Path):
    model = FakeModel(InvalidInputError("It cannot be asked.", remedy="Ask otherwise."))
    async with opened(tmp_path, model) as service:
        name = create(service, spec(), items=ITEMS[:1])
        last = await carried_out(Runner(service, name, owner="me"))
        assert last.reason == "done"
        ((_, _, body),) = service.store.evaluations.outcomes(name, "me")
        assert body["error"] == "invalid_input"


async def test_given_texts_are_checked_and_not_written(tmp_path: Path):
    model = FakeModel("Yes")
    items = [Item(id="t", question="Where was Ada born?", text="Ada was born in Delft.")]
    async with opened(tmp_path, model) as service:
        name = create(service, spec(system("direct"), checks="texts"), items=items)
        await carried_out(Runner(service, name, owner="me"))
        ((_, _, body),) = service.store.evaluations.outcomes(name, "me")
        assert body["answer"] == "Ada was born in Delft."
        assert not model.asked


@pytest.mark.parametrize(
    ("items", "options", "words"),
    [
        ([], {}, "empty"),
        (ITEMS, {"systems": ()}, "No method"),
        (ITEMS, {"systems": (system("direct"), system("direct"))}, "Two systems"),
        ([ITEMS[0], ITEMS[0]], {}, "same id"),
        ([Item(id="x")], {}, "no question"),
        (ITEMS, {"checks": "texts"}, "no text"),
        (ITEMS, {"systems": (system("nothing"),)}, "no method 'nothing'"),
        (ITEMS, {"systems": (system("direct", max_tokens=1),)}, "max_tokens"),
    ],
)
def test_what_cannot_be_evaluated_is_refused(items: list[Item], options: dict, words: str):
    with pytest.raises(InvalidInputError, match=words):
        checked_spec(spec(**options), items)


def test_a_method_named_twice_gets_two_names():
    assert system_names(["drad", "rag", "drad"]) == {"drad": "drad", "rag": "rag", "drad 2": "drad"}

"""Places at a model, and answers that are given again."""

import asyncio

import pytest

from pipelines.errors import ServerFailedError
from pipelines.models.base import Delta
from pipelines.run.cache import Cache, Gate
from tests.pipelines.run.fakes import FakeModel, request


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_gate_admits_as_many_as_it_has_places_first_come_first_served():
    gate = Gate(2)
    order: list[int] = []
    leave = asyncio.Event()

    async def visit(number: int) -> None:
        async with gate.place():
            order.append(number)
            await leave.wait()

    visits = [asyncio.create_task(visit(number)) for number in range(4)]
    await settle()
    assert order == [0, 1]
    assert gate.busy == 2
    leave.set()
    await asyncio.gather(*visits)
    assert order == [0, 1, 2, 3]
    assert gate.busy == 0


async def test_a_caller_that_must_be_alone_waits_for_all_places_and_is_not_overtaken():
    gate = Gate(2)
    seen: list[tuple[str, int]] = []
    leave = asyncio.Event()

    async def visit(name: str, alone: bool) -> None:
        async with gate.place(alone=alone):
            seen.append((name, gate.busy))
            if name == "first":
                await leave.wait()

    first = asyncio.create_task(visit("first", False))
    await settle()
    rest = [asyncio.create_task(visit(*who)) for who in (("alone", True), ("last", False))]
    await settle()
    assert seen == [("first", 1)]
    leave.set()
    await asyncio.gather(first, *rest)
    assert seen == [("first", 1), ("alone", 1), ("last", 1)]


async def test_a_cancelled_waiter_gives_its_turn_away():
    gate = Gate(1)
    leave = asyncio.Event()
    done: list[str] = []

    async def visit(name: str) -> None:
        async with gate.place():
            await leave.wait()
            done.append(name)

    holder, waiter, next_one = (asyncio.create_task(visit(name)) for name in "abc")
    await settle()
    waiter.cancel()
    leave.set()
    await asyncio.gather(holder, next_one)
    with pytest.raises(asyncio.CancelledError):
        await waiter
    assert done == ["a", "c"]
    assert gate.busy == 0


async def test_a_repeated_request_is_answered_once():
    model, cache = FakeModel("yes"), Cache()
    first, hit_first = await cache.generations(request(), None, lambda w: model.generate(request()))
    again, hit_again = await cache.generations(request(), None, lambda w: model.generate(request()))
    assert (hit_first, hit_again) == (False, True)
    assert first == again
    assert len(model.asked) == 1


async def test_two_callers_join_one_call_and_both_see_it_grow():
    model, cache = FakeModel("one two three", held=True), Cache()
    seen: dict[str, list[str]] = {"a": [], "b": []}

    def asking(name: str):
        return cache.generations(
            request(),
            lambda delta: seen[name].append(delta.text),
            lambda watch: model.generate(request(), watch),
        )

    both = asyncio.gather(asking("a"), asking("b"))
    await settle()
    model.gate.set()
    (one, hit_one), (two, hit_two) = await both
    assert one == two
    assert (hit_one, hit_two) == (False, True)
    assert seen["a"] == seen["b"] == ["one", " two", " three"]
    assert len(model.asked) == 1


async def test_a_follower_that_stops_early_gets_what_it_saw_and_disturbs_nobody():
    model, cache = FakeModel("one two three", held=True), Cache()
    leader = asyncio.create_task(
        cache.generations(request(), lambda _: None, lambda w: model.generate(request(), w))
    )
    await settle()

    def until_two(delta: Delta) -> bool:
        return "two" in delta.text

    follower = asyncio.create_task(
        cache.generations(request(), until_two, lambda w: model.generate(request(), w))
    )
    await settle()
    model.gate.set()
    (cut,), _ = await follower
    (whole,), _ = await leader
    assert (cut.text, cut.finish_reason) == ("one two", "watcher")
    assert [token.text for token in cut.tokens or ()] == ["one", " two"]
    assert whole.text == "one two three"
    assert len(model.asked) == 1


async def test_a_reply_cut_short_is_not_kept_and_its_follower_asks_itself():
    model, cache = FakeModel("one two three", held=True), Cache()
    leader = asyncio.create_task(
        cache.generations(request(), lambda _: True, lambda w: model.generate(request(), w))
    )
    await settle()
    follower = asyncio.create_task(
        cache.generations(request(), lambda _: None, lambda w: model.generate(request(), w))
    )
    await settle()
    model.gate.set()
    (cut,), _ = await leader
    (whole,), hit = await follower
    assert cut.text == "one"
    assert (whole.text, hit) == ("one two three", False)
    assert len(model.asked) == 2


async def test_when_the_first_caller_fails_or_leaves_the_next_asks_for_itself():
    broken = ServerFailedError("It broke.", remedy="Wait.")
    model, cache = FakeModel(broken, "fine", held=True), Cache()
    leader = asyncio.create_task(cache.value(request(), lambda: model.generate(request())))
    await settle()
    follower = asyncio.create_task(cache.value(request(), lambda: model.generate(request())))
    await settle()
    model.gate.set()
    with pytest.raises(ServerFailedError):
        await leader
    (reply,), hit = await follower
    assert (reply.text, hit) == ("fine", False)


async def test_the_least_recently_used_answer_is_forgotten_first():
    model, cache = FakeModel("x"), Cache(size=2)

    async def ask(text: str) -> bool:
        _, hit = await cache.value(request(text), lambda: model.generate(request(text)))
        return hit

    assert [await ask(text) for text in ("a", "b", "a", "c", "a", "b")] == [
        False,
        False,
        True,
        False,
        True,
        False,
    ]

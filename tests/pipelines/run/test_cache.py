"""Answers that are given again."""

import asyncio

import pytest

from pipelines.base import Message
from pipelines.errors import ServerFailedError
from pipelines.models.base import Delta, GenerationRequest, ScoreRequest
from pipelines.prompts import load_prompts
from pipelines.run.calls import Cache, is_random, request_key
from tests.scripted.fakes import FakeModel, request


async def settle() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


def test_only_a_free_draw_is_answered_differently_each_time():
    assert is_random(request(temperature=0.7))
    # A sample that has a number is the same one each time.
    assert not is_random(request(temperature=0.7, sample=0))
    assert not is_random(request())
    assert not is_random(ScoreRequest(messages=(), text="hello"))


async def test_what_a_prompt_was_made_of_asks_nothing_else():
    (made,) = load_prompts("direct").turns("en", "question", question="Who?")
    plain = Message(role="user", content=made.content)
    assert made.filled
    keys = {request_key(GenerationRequest(messages=(one,))) for one in (made, plain)}
    # As keys were before messages could say it.
    whole = GenerationRequest(messages=(plain,)).model_dump_json()
    assert keys == {f"GenerationRequest:{whole}"}


async def test_a_repeated_request_is_answered_once():
    model, cache = FakeModel("yes"), Cache()
    first, hit_first = await cache.reply(request(), None, lambda w: model.generate(request()))
    again, hit_again = await cache.reply(request(), None, lambda w: model.generate(request()))
    assert (hit_first, hit_again) == (False, True)
    assert first == again
    assert len(model.asked) == 1


async def test_two_callers_join_one_call_and_both_see_it_grow():
    model, cache = FakeModel("one two three", gated=True), Cache()
    seen: dict[str, list[str]] = {"a": [], "b": []}

    def asking(name: str):
        return cache.reply(
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
    model, cache = FakeModel("one two three", gated=True), Cache()
    leader = asyncio.create_task(
        cache.reply(request(), lambda _: None, lambda w: model.generate(request(), w))
    )
    await settle()

    def until_two(delta: Delta) -> bool:
        return "two" in delta.text

    follower = asyncio.create_task(
        cache.reply(request(), until_two, lambda w: model.generate(request(), w))
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
    model, cache = FakeModel("one two three", gated=True), Cache()
    leader = asyncio.create_task(
        cache.reply(request(), lambda _: True, lambda w: model.generate(request(), w))
    )
    await settle()
    follower = asyncio.create_task(
        cache.reply(request(), lambda _: None, lambda w: model.generate(request(), w))
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
    model, cache = FakeModel(broken, "fine", gated=True), Cache()
    leader = asyncio.create_task(cache.reply(request(), None, lambda _: model.generate(request())))
    await settle()
    follower = asyncio.create_task(
        cache.reply(request(), None, lambda _: model.generate(request()))
    )
    await settle()
    model.gate.set()
    with pytest.raises(ServerFailedError):
        await leader
    (reply,), hit = await follower
    assert (reply.text, hit) == ("fine", False)


async def test_what_another_scope_asked_is_neither_given_nor_joined():
    model, cache = FakeModel("one two", gated=True), Cache()

    def asking(scope: str):
        return cache.reply(request(), None, lambda _: model.generate(request()), scope=scope)

    both = asyncio.gather(asking("ann"), asking("bob"))
    await settle()
    assert len(model.asked) == 2
    model.gate.set()
    assert [hit for _, hit in await both] == [False, False]
    _, known = await asking("ann")
    _, elsewhere = await asking("eve")
    assert (known, elsewhere) == (True, False)


def ask_with(model: FakeModel, cache: Cache):
    async def ask(text: str, scope: str = "") -> bool:
        _, hit = await cache.reply(
            request(text), None, lambda _: model.generate(request(text)), scope=scope
        )
        return hit

    return ask


async def test_the_least_recently_used_answer_is_forgotten_first():
    # Room for two short replies.
    ask = ask_with(FakeModel("x"), Cache(size=16))
    assert [await ask(text) for text in ("a", "b", "a", "c", "a", "b")] == [
        False,
        False,
        True,
        False,
        True,
        False,
    ]


async def test_the_room_is_that_of_all_scopes_and_long_replies_take_more_of_it():
    long = " ".join(["word"] * 30)
    model = FakeModel("x", long, "x", "x")
    ask = ask_with(model, Cache(size=40))
    assert not await ask("a", "ann")
    assert not await ask("long", "bob")
    assert await ask("a", "ann")
    # A third reply does not fit beside the long one, which was used longest ago.
    assert not await ask("c", "eve")
    assert await ask("a", "ann")
    assert not await ask("long", "bob")

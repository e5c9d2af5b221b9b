"""Retry, recording and streaming around a model."""

import asyncio
from typing import Any

import pytest

from pipelines.errors import (
    AuthenticationError,
    RateLimitError,
    ServerFailedError,
    UnreachableError,
    VeriscopeError,
)
from pipelines.models.hosted import Limiter
from pipelines.remote import RetryPolicy
from pipelines.run.calls import RunModel, Slot
from pipelines.run.events import TokenWritten
from tests.scripted.fakes import FakeModel, request


class Harness:
    """A model as methods call it, with a clock that stands still and a log of everything."""

    def __init__(self, model: FakeModel, *, slots: int = 4, **policy: Any) -> None:
        self.model = model
        self.events: list[dict[str, Any]] = []
        self.pauses: list[float] = []
        self.shown: list[tuple[str, bool]] = []
        self.hits: list[dict[str, Any]] = []
        self.limiter = Limiter(slots)
        retry = RetryPolicy(sleep=self._sleep, **policy)
        self.wrapped = RunModel("main", Slot(model, self.limiter), retry, self._emit, lambda: 1.0)

    def _emit(self, event_type: type, **fields: Any) -> None:
        if event_type is TokenWritten:
            self.shown.append((fields["text"], fields["restart"]))
        else:
            (self.hits if fields.get("cached") else self.events).append(fields)

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


def failing(times: int, error: VeriscopeError) -> FakeModel:
    return FakeModel(*[error] * times, "fine")


BUSY = ServerFailedError("It broke.", remedy="Wait.", provider="fake")


async def test_every_attempt_is_recorded_with_its_number_and_its_failure():
    harness = Harness(failing(2, BUSY))
    (reply,) = await harness.wrapped.generate(request())
    assert reply.text == "fine"
    assert [event["attempt"] for event in harness.events] == [1, 2, 3]
    assert [event["error"].code for event in harness.events[:2]] == ["server_failed"] * 2
    assert harness.events[2]["generations"] == (reply,)


async def test_calls_that_overlap_keep_their_own_numbers():
    harness = Harness(FakeModel(BUSY, BUSY, "fine", "fine"))
    await asyncio.gather(*(harness.wrapped.generate(request(text)) for text in "ab"))
    attempts = [
        (event["request"].messages[-1].content, event["attempt"]) for event in harness.events
    ]
    assert sorted(attempts) == [("a", 1), ("a", 2), ("b", 1), ("b", 2)]


async def test_pauses_double_within_their_jitter():
    harness = Harness(failing(3, BUSY), pause=1.0)
    await harness.wrapped.generate(request())
    for pause, expected in zip(harness.pauses, (1, 2, 4), strict=True):
        assert expected * 0.75 <= pause <= expected * 1.25


async def test_it_gives_up_after_the_last_attempt_with_the_typed_error():
    harness = Harness(failing(9, BUSY), attempts=3)
    with pytest.raises(ServerFailedError) as caught:
        await harness.wrapped.generate(request())
    assert caught.value.provider == "fake"
    assert len(harness.events) == 3


@pytest.mark.parametrize(("retry_after", "pauses"), [(7.0, [7.0]), (0.0, [0.0])])
async def test_a_rate_limit_is_waited_for_as_the_server_says(retry_after, pauses):
    limit = RateLimitError("Slow down.", remedy="Wait.", retry_after=retry_after)
    harness = Harness(failing(1, limit))
    await harness.wrapped.generate(request())
    assert harness.pauses == pauses


async def test_a_rate_limit_longer_than_anyone_waits_is_given_up_at_once():
    limit = RateLimitError("Slow down.", remedy="Wait.", retry_after=3600)
    harness = Harness(failing(1, limit))
    with pytest.raises(RateLimitError):
        await harness.wrapped.generate(request())
    assert harness.pauses == []


@pytest.mark.parametrize("error_type", [AuthenticationError, VeriscopeError])
async def test_what_cannot_get_better_is_not_tried_again(error_type):
    harness = Harness(failing(1, error_type("No.", remedy="Do otherwise.")))
    with pytest.raises(error_type):
        await harness.wrapped.generate(request())
    assert len(harness.events) == 1


async def test_a_retried_text_starts_over_on_the_screen():
    harness = Harness(failing(1, UnreachableError("Gone.", remedy="Check.")))
    await harness.wrapped.generate(request(), lambda _: None)
    assert harness.shown == [
        ("half", False),
        ("", True),
        ("fine", False),
    ]


async def test_nothing_is_shown_when_nobody_watches():
    harness = Harness(FakeModel("one two"))
    await harness.wrapped.generate(request())
    assert harness.shown == []


async def test_a_cache_hit_is_reported_with_the_reply():
    harness = Harness(FakeModel("one"))
    reply = await harness.wrapped.generate(request())
    assert await harness.wrapped.generate(request()) == reply
    assert [hit["generations"] for hit in harness.hits] == [reply]
    assert len(harness.model.asked) == 1


async def test_a_draw_without_a_sample_index_is_always_made_anew():
    harness = Harness(FakeModel("one"))
    for _ in range(2):
        await harness.wrapped.generate(request(temperature=1.0))
        await harness.wrapped.generate(request(temperature=1.0, sample=3))
    assert len(harness.model.asked) == 3
    assert len(harness.hits) == 1


async def test_calls_overlap_up_to_the_slots_and_say_how_many_were_in_flight():
    harness = Harness(FakeModel("x", gated=True), slots=2)
    calls = [asyncio.create_task(harness.wrapped.generate(request(text))) for text in "abc"]
    for _ in range(20):
        await asyncio.sleep(0)
    assert harness.model.busy == 2
    harness.model.gate.set()
    await asyncio.gather(*calls)
    assert harness.model.most_busy == 2
    assert [event["in_flight"] for event in harness.events][:2] == [1, 2]


async def test_a_cancelled_call_ends_at_the_model_and_is_recorded():
    harness = Harness(FakeModel("x", gated=True))
    call = asyncio.create_task(harness.wrapped.generate(request()))
    for _ in range(20):
        await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert harness.model.cancelled == 1
    assert harness.events[0]["error"].code == "cancelled"
    assert harness.limiter.busy == 0


async def test_a_call_cancelled_while_its_model_is_loaded_was_never_begun():
    class Loading(FakeModel):
        async def prepare(self) -> None:
            await self.gate.wait()

    harness = Harness(Loading("x", gated=True))
    call = asyncio.create_task(harness.wrapped.generate(request()))
    await asyncio.sleep(0)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert [event["in_flight"] for event in harness.events] == [0]


async def test_where_calls_wait_those_of_short_methods_go_first():
    model, limiter = FakeModel("fine", gated=True), Limiter(1)
    slot = Slot(model, limiter)

    def ask(text: str, effort: int) -> asyncio.Task[Any]:
        wrapped = RunModel("main", slot, RetryPolicy(), lambda *_, **__: None, lambda: 0.0, effort)
        return asyncio.create_task(wrapped.generate(request(text)))

    calls = [ask("first", 20), ask("long", 20), ask("short", 1)]
    await model.until_asked()
    model.gate.set()
    await asyncio.gather(*calls)
    asked = [one.messages[-1].content for one in model.asked]
    assert asked == ["first", "short", "long"]

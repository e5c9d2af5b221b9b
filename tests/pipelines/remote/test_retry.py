"""How often, how soon and what is tried again."""

from __future__ import annotations

import asyncio

import pytest

from pipelines.errors import AuthenticationError, RateLimitError, ServerFailedError
from pipelines.remote import RetryPolicy

BROKEN = ServerFailedError("It broke.", remedy="Wait.")


class Service:
    """Fails with each of `errors`, then answers with the number of the attempt."""

    def __init__(self, *errors: BaseException) -> None:
        self.errors = list(errors)
        self.attempts: list[int] = []
        self.pauses: list[float] = []

    async def call(self, attempt: int) -> int:
        self.attempts.append(attempt)
        if self.errors:
            raise self.errors.pop(0)
        return attempt

    async def sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)


async def test_attempts_are_numbered_and_pauses_double_up_to_the_longest():
    service = Service(*[BROKEN] * 4)
    policy = RetryPolicy(attempts=5, pause=1.0, longest=4.0, sleep=service.sleep)
    assert await policy.run(service.call) == 5
    assert service.attempts == [1, 2, 3, 4, 5]
    assert service.pauses == pytest.approx([1, 2, 4, 4], rel=0.25)
    assert max(service.pauses) <= 4.0


async def test_the_last_error_itself_is_raised():
    last = ServerFailedError("It broke again.", remedy="Wait.")
    service = Service(BROKEN, last)
    with pytest.raises(ServerFailedError) as raised:
        await RetryPolicy(attempts=2, sleep=service.sleep).run(service.call)
    assert raised.value is last
    assert len(service.pauses) == 1


@pytest.mark.parametrize(("asked", "pauses"), [(30.0, [30.0]), (30.1, []), (0.0, [0.0])])
async def test_a_server_says_how_long_to_wait(asked: float, pauses: list[float]):
    service = Service(RateLimitError("Slow down.", remedy="Wait.", retry_after=asked))
    run = RetryPolicy(sleep=service.sleep).run(service.call)
    if pauses:
        assert await run == 2
    else:
        with pytest.raises(RateLimitError):
            await run
    assert service.pauses == pauses


@pytest.mark.parametrize(
    "error", [AuthenticationError("No.", remedy="Check."), ValueError("no"), KeyError("no")]
)
async def test_what_cannot_pass_is_raised_at_once(error: Exception):
    service = Service(error)
    with pytest.raises(type(error)) as raised:
        await RetryPolicy(sleep=service.sleep).run(service.call)
    assert raised.value is error
    assert service.attempts == [1]


async def test_cancelling_ends_a_pause():
    service = Service(BROKEN)
    pausing = asyncio.Event()

    async def sleep(_: float) -> None:
        pausing.set()
        await asyncio.Event().wait()

    task = asyncio.create_task(RetryPolicy(sleep=sleep).run(service.call))
    await pausing.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert service.attempts == [1]

"""The limits of a run: what is admitted, what waits and what is refused; worked out by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import pytest

from pipelines.base import Generation, Message, Usage
from pipelines.errors import LimitReached
from pipelines.models.base import ChoiceRequest, Option, ScoreRequest
from pipelines.models.providers import Price
from pipelines.run.ledger import (
    ExpectedUsage,
    Ledger,
    RunLimits,
    UsageTotals,
    most_tokens,
    tokens_of,
)
from tests.scripted.fakes import request

DOLLARS = Price(read=1.0, written=2.0)
# 30 bytes: at most 10 tokens are read.
ASKED = request("a" * 30, max_tokens=20)


def reply(read: int, written: int) -> tuple[Generation, ...]:
    usage = Usage(prompt_tokens=read, completion_tokens=written)
    return (Generation(text="x" * 40, usage=usage),)


async def call(ledger: Ledger, *replies: Sequence[Generation], role: str = "main") -> None:
    """One call after the other, each answered by one of `replies`."""
    for one in replies:
        async with ledger.admitted(role, ASKED) as settle:
            settle(one)


async def test_exactly_as_many_calls_as_allowed_are_made():
    ledger = Ledger(RunLimits(calls=2))
    await call(ledger, reply(5, 7), reply(5, 7))
    assert ledger.reached is None
    with pytest.raises(LimitReached) as refused:
        await call(ledger, reply(5, 7))
    assert refused.value.code == "limit_calls"
    assert "calls: 2" in refused.value.message
    assert (ledger.reached, ledger.spent) == ("calls", UsageTotals(2, 10, 14))


async def test_tokens_are_kept_by_what_a_call_may_take():
    # A call may take 10 + 20 tokens, and takes 8 + 12: after two, 40 are spent.
    ledger = Ledger(RunLimits(tokens=70))
    await call(ledger, reply(8, 12), reply(8, 12))
    # 40 + 30 are exactly 70.
    await call(ledger, reply(8, 12))
    with pytest.raises(LimitReached) as refused:
        await call(ledger, reply(8, 12))
    assert refused.value.code == "limit_tokens"
    assert "70 tokens" in refused.value.message
    assert "60 are used" in refused.value.message
    assert ledger.spent.tokens == 60


async def test_money_is_counted_by_the_price_of_each_role():
    # A call may cost (10 * 1 + 20 * 2) / 1e6 = 50 millionths, and costs (8 + 24) / 1e6 = 32.
    ledger = Ledger(RunLimits(money=82e-6), {"main": DOLLARS})
    await call(ledger, reply(8, 12), reply(8, 12))
    assert ledger.spent.money == {"USD": pytest.approx(64e-6)}
    with pytest.raises(LimitReached) as refused:
        await call(ledger, reply(8, 12))
    assert refused.value.code == "limit_money"


async def test_a_role_without_a_price_costs_nothing_but_ends_with_the_run():
    ledger = Ledger(RunLimits(money=50e-6), {"main": DOLLARS})
    await call(ledger, reply(10, 20))
    await call(ledger, reply(900, 900), role="verifier")
    with pytest.raises(LimitReached):
        await call(ledger, reply(1, 1))
    # Once a limit is reached, nothing more is asked.
    with pytest.raises(LimitReached):
        await call(ledger, reply(1, 1), role="verifier")


async def test_a_price_of_nothing_passes_no_limit_of_nothing():
    free = Ledger(RunLimits(money=0), {"main": Price(read=0, written=0)})
    await call(free, reply(10, 20))
    assert free.reached is None


async def test_what_could_pass_a_limit_waits_for_the_calls_under_way():
    ledger, opened = Ledger(RunLimits(tokens=50)), asyncio.Event()

    async def slow() -> None:
        async with ledger.admitted("main", ASKED) as settle:
            await opened.wait()
            settle(reply(8, 12))

    first, second = asyncio.create_task(slow()), asyncio.create_task(slow())
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    # 30 are held by the first, so that the second, which may take 30 too, has to wait.
    assert ledger.spent == UsageTotals()
    assert not second.done()
    opened.set()
    # The first took 20, so that the second fits: 20 + 30 = 50.
    await asyncio.gather(first, second)
    assert (ledger.spent, ledger.reached) == (UsageTotals(2, 16, 24), None)


async def test_of_calls_at_the_same_time_as_many_are_made_as_allowed():
    ledger, opened = Ledger(RunLimits(calls=3)), asyncio.Event()
    under_way = 0

    async def slow() -> None:
        nonlocal under_way
        async with ledger.admitted("main", ASKED) as settle:
            under_way += 1
            await opened.wait()
            settle(reply(1, 1))

    tasks = [asyncio.create_task(slow()) for _ in range(5)]
    for _ in range(3):
        await asyncio.sleep(0)
    # The two others are not refused before these are answered.
    assert under_way == 3
    assert not any(task.done() for task in tasks)
    opened.set()
    ended = await asyncio.gather(*tasks, return_exceptions=True)
    assert [isinstance(one, LimitReached) for one in ended] == [False] * 3 + [True] * 2
    assert ledger.spent.calls == 3


async def test_runs_with_a_ledger_in_common_pass_no_limit_together():
    whole = Ledger(RunLimits(calls=2))
    one, other = Ledger(within=whole), Ledger(within=whole)
    await call(one, reply(5, 7))
    await call(other, reply(5, 7))
    with pytest.raises(LimitReached) as refused:
        await call(one, reply(5, 7))
    assert refused.value.code == "limit_calls"
    # What is refused counts nowhere, and the run itself has no limit.
    assert (whole.reached, whole.spent) == ("calls", UsageTotals(2, 10, 14))
    assert (one.reached, one.spent) == (None, UsageTotals(1, 5, 7))
    with pytest.raises(LimitReached):
        await call(other, reply(5, 7))
    assert other.spent == UsageTotals(1, 5, 7)


async def test_money_of_several_runs_is_counted_at_the_prices_of_each():
    # A call may cost 50 millionths and costs 32; the other run's models cost nothing.
    whole = Ledger(RunLimits(money=82e-6))
    priced, free = Ledger(prices={"main": DOLLARS}, within=whole), Ledger(within=whole)
    await call(priced, reply(8, 12))
    await call(free, reply(900, 900))
    await call(priced, reply(8, 12))
    assert whole.spent.money == {"USD": pytest.approx(64e-6)}
    with pytest.raises(LimitReached) as refused:
        await call(priced, reply(8, 12))
    assert refused.value.code == "limit_money"
    assert (free.spent.money, priced.spent.calls) == ({}, 2)


async def test_what_another_run_has_under_way_is_held_back():
    whole, opened = Ledger(RunLimits(tokens=50)), asyncio.Event()

    async def slow(ledger: Ledger) -> None:
        async with ledger.admitted("main", ASKED) as settle:
            await opened.wait()
            settle(reply(8, 12))

    first = asyncio.create_task(slow(Ledger(within=whole)))
    second = asyncio.create_task(slow(Ledger(within=whole)))
    await asyncio.sleep(0)
    await asyncio.sleep(0)
    # 30 are held by the first; the second may take 30 too.
    assert not second.done()
    assert whole.spent == UsageTotals()
    opened.set()
    # The first took 20: 20 + 30 are exactly 50.
    await asyncio.gather(first, second)
    assert (whole.spent, whole.reached) == (UsageTotals(2, 16, 24), None)


async def test_a_failed_attempt_is_a_call_without_tokens():
    ledger = Ledger(RunLimits(calls=1))
    with pytest.raises(ValueError, match="broken"):
        async with ledger.admitted("main", ASKED):
            raise ValueError("broken")
    assert ledger.spent == UsageTotals(1)


async def test_a_judge_counts_as_a_call_and_takes_no_tokens():
    ledger = Ledger(RunLimits(calls=5, tokens=1))
    async with ledger.admitted("judge_1", ASKED, writes=False) as settle:
        settle(())
    assert ledger.spent == UsageTotals(1)


async def test_seconds_end_the_work_and_are_said():
    ledger = Ledger(RunLimits(seconds=30))
    with pytest.raises(LimitReached) as ended:
        async with ledger.within_time(30.0):
            await asyncio.Event().wait()
    assert ended.value.code == "limit_seconds"
    assert "time: 30 s" in ended.value.message
    assert ledger.reached == "seconds"


async def test_a_timeout_of_something_else_stays_one():
    with pytest.raises(TimeoutError):
        async with Ledger(RunLimits(seconds=30)).within_time(0.0):
            raise TimeoutError


async def test_a_run_that_takes_more_than_twice_what_was_expected_ends():
    ledger = Ledger(expected=ExpectedUsage(calls=30, tokens=12_000))
    await call(ledger, *[reply(5, 7)] * 60)
    with pytest.raises(LimitReached, match="made 60 calls, and about 30 were expected"):
        await call(ledger, reply(5, 7))
    assert ledger.reached == "calls"
    ledger = Ledger(expected=ExpectedUsage(calls=30, tokens=12_000))
    # 24,000 are not more than twice 12,000.
    await call(ledger, reply(20_000, 4_000), reply(0, 1))
    with pytest.raises(LimitReached, match="taken 24,001 tokens, and about 12,000 were expected"):
        await call(ledger, reply(1, 1))
    # An estimate of little is easily wrong, and none at all ends nothing.
    few = Ledger(expected=ExpectedUsage(calls=1, tokens=10))
    await call(few, *[reply(400, 90)] * 40)
    with pytest.raises(LimitReached):
        await call(few, reply(1, 1))
    for ledger in (Ledger(), Ledger(RunLimits(times=None), expected=ExpectedUsage(1, 1))):
        await call(ledger, *[reply(600, 600)] * 50)
    # A limit that was given is said as such.
    with pytest.raises(LimitReached, match="calls: 2"):
        await call(Ledger(RunLimits(calls=2), expected=ExpectedUsage(1, 1)), *[reply(5, 7)] * 3)


async def test_without_limits_everything_is_counted_and_nothing_refused():
    ledger = Ledger(prices={"main": DOLLARS})
    await call(ledger, *[reply(1_000_000, 500_000)] * 3)
    assert ledger.spent == UsageTotals(3, 3_000_000, 1_500_000, {"USD": 6.0})


def test_what_a_call_takes_at_most():
    options = (Option(label="yes", spellings=("yes",)),)
    messages = (Message(role="user", content="四个汉字"),)
    # Twelve bytes of Chinese are at most four tokens.
    assert most_tokens(ChoiceRequest(messages=messages, options=options)) == (4.0, 1.0)
    assert most_tokens(ScoreRequest(messages=messages, text="abc")) == (5.0, 0.0)
    assert most_tokens(request("abc", n=2, max_tokens=7)) == (2.0, 14.0)


def test_tokens_that_are_not_reported_are_estimated():
    silent = (Generation(text="x" * 40),)
    # 30 / 4 characters are read and 40 / 4 written.
    assert tokens_of(ASKED, silent) == (7.5, 10.0)
    assert tokens_of(ASKED, reply(3, 4)) == (3.0, 4.0)

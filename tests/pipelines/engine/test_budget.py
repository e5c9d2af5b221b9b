"""A run under limits: held against its estimate first, and ended with what it has; by hand."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from pipelines.engine.estimate import (
    Basis,
    Excess,
    Money,
    RunBudget,
    RunEstimate,
    budget_for,
    efforts_of,
    excess_error,
    excesses,
    raised,
    refuse_excess,
)
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.reevaluate import reevaluate
from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError, OverLimitError
from pipelines.methods.registry import get_method
from pipelines.models.base import Model
from pipelines.models.providers import ModelSpec, Price
from pipelines.remote import RetryPolicy
from pipelines.run.events import MethodSpec, ModelCalled, RunFailed, RunFinished, RunSpec, Trace
from pipelines.run.ledger import RunLimits
from pipelines.run.view import fold
from tests.pipelines.engine.tables import STRONG
from tests.scripted.fakes import FakeModel

OWNER = "ann"
HOSTED = ModelSpec(kind="openai", name="Far", model="m", base_url="http://127.0.0.1:9/v1")
PRICE = Price(read=1.0, written=2.0)


def expected(**fields: Any) -> RunEstimate:
    known = {"calls": 40.0, "judge_calls": 1.0, "read": 3000.0, "written": 400.0, "seconds": 12.0}
    money = (Money(amount=0.01, currency="USD"),)
    basis = Basis(source="walkthroughs", measured=STRONG)
    return RunEstimate(**{**known, "price": money, "basis": basis, **fields})


@pytest.fixture
async def serve(tmp_path: Path) -> AsyncIterator[Any]:
    opened: list[Service] = []

    def make(model: Model) -> Service:
        libraries = Libraries(tmp_path / "index", find_embedder=lambda: None)
        pool = ModelPool(lambda *_: model)
        folder = tmp_path / str(len(opened))
        retry = RetryPolicy(pause=0.0)
        opened.append(Service(folder, pool=pool, libraries=libraries, retry=retry))
        return opened[-1]

    yield make
    for one in opened:
        await one.aclose()


async def run(
    service: Service,
    limits: RunLimits,
    *methods: str,
    prices: Mapping[str, Price] | None = None,
    settings: dict[str, Any] | None = None,
) -> Trace:
    chosen = tuple(MethodSpec(name=name, settings=settings or {}) for name in methods)
    spec = RunSpec(question="Who wrote Hamlet?", methods=chosen)
    budget = RunBudget(limits, prices or {})
    events = [one async for one in service.stream(spec, owner=OWNER, budget=budget)]
    return await service.load(events[0].run, owner=OWNER)


def test_what_an_estimate_passes_is_named_with_both_amounts():
    limits = RunLimits(calls=20, tokens=3400, seconds=10, money=0.005)
    assert excesses(expected(), limits) == (
        Excess("calls", 41.0, 20),
        # 3,400 tokens are exactly as many as allowed.
        Excess("seconds", 12.0, 10),
        Excess("money", 0.01, 0.005, "USD"),
    )
    error = excess_error(RunBudget(limits, expected=expected()))
    assert error is not None
    assert "about 41 calls, limit 20; about 12 seconds, limit 10" in error.message
    with pytest.raises(OverLimitError):
        refuse_excess(RunBudget(limits, expected=expected()))


def test_what_is_not_known_passes_nothing():
    limits = RunLimits(seconds=1, money=0.0)
    assert excesses(expected(seconds=None, price=None), limits) == ()
    assert excess_error(RunBudget(RunLimits(calls=1))) is None


def test_a_limit_is_raised_to_a_quarter_more_than_expected():
    limits = RunLimits(calls=20, money=0.005)
    # 41 * 1.25 = 51.25, and 0.01 * 1.25 = 0.0125: two digits, rounded up.
    higher = raised(limits, excesses(expected(), limits))
    assert higher == RunLimits(calls=52, money=0.013)
    assert excesses(expected(), higher) == ()


def test_a_limit_of_money_needs_every_price_in_its_currency():
    limits = RunLimits(money=1.0)
    priced = HOSTED.model_copy(update={"price": PRICE})
    assert budget_for(limits, {"main": priced, "judge_1": ModelSpec()}).prices == {"main": PRICE}
    with pytest.raises(InvalidInputError, match="Far has no price"):
        budget_for(limits, {"main": ModelSpec(), "verifier": HOSTED})
    # Without a limit of money, prices that are not known do not matter.
    assert budget_for(RunLimits(calls=5), {"main": HOSTED}).prices == {}
    with pytest.raises(InvalidInputError, match="in EUR, but Far has its price in USD"):
        budget_for(RunLimits(money=1.0, currency="EUR"), {"main": priced})


async def test_a_method_that_reaches_a_limit_keeps_its_draft(serve: Any):
    service = serve(FakeModel("Ben Jonson wrote it."))
    trace = await run(service, RunLimits(calls=1), "direct", "selfcheck")
    view = fold(trace.events)
    assert isinstance(trace.terminal, RunFinished)
    assert view.limit == "calls"
    # The draft is Direct's, and is not asked for twice.
    assert view.methods["direct"].error is None
    checked = view.methods["selfcheck"]
    assert checked.error is not None
    assert checked.error.code == "limit_calls"
    assert checked.answer is not None
    assert checked.answer.text == "Ben Jonson wrote it."
    assert checked.answer.flags == ("limit_reached",)
    made = [one for method in view.methods.values() for one in method.made]
    assert len(made) == 1
    # What is known of a run that was cut short is no measure of the method.
    assert "selfcheck" not in efforts_of(view)


async def test_without_any_answer_the_run_fails_and_says_which_limit(serve: Any):
    model = FakeModel("never asked")
    trace = await run(serve(model), RunLimits(tokens=1), "direct")
    assert isinstance(trace.terminal, RunFailed)
    assert trace.terminal.error.code == "limit_tokens"
    assert fold(trace.events).limit == "tokens"
    assert model.asked == []


async def test_what_is_cached_costs_nothing(serve: Any):
    model = FakeModel("Ben Jonson wrote it.")
    service = serve(model)
    await run(service, RunLimits(), "direct")
    again = await run(service, RunLimits(calls=1), "direct")
    assert fold(again.events).limit is None
    (call,) = [one for one in again.events if isinstance(one, ModelCalled)]
    assert call.cached
    assert len(model.asked) == 1


async def test_money_is_counted_over_all_methods(serve: Any):
    # Four words are written; what is read is estimated, as nothing is reported.
    service = serve(FakeModel("Ben Jonson wrote it."))
    prices = {"main": Price(read=0.0, written=1.0)}
    # The draft may write 128 tokens: 128 millionths fit, a second draft would not.
    trace = await run(service, RunLimits(money=130e-6), "direct", "abstain", prices=prices)
    view = fold(trace.events)
    assert view.limit is None or view.limit == "money"
    spent = sum(4 for method in view.methods.values() for _ in method.made)
    assert spent * 1e-6 <= 130e-6


async def test_seconds_end_the_calls_under_way(serve: Any):
    model = FakeModel("late", gated=True)
    trace = await run(serve(model), RunLimits(seconds=0.2), "direct")
    assert isinstance(trace.terminal, RunFailed)
    assert trace.terminal.error.code == "limit_seconds"
    assert (model.busy, model.cancelled) == (0, 1)
    (call,) = [one for one in trace.events if isinstance(one, ModelCalled)]
    assert call.error is not None
    assert call.error.code == "limit_seconds"
    # It was made: only what a limit refused never got under way.
    assert len(fold(trace.events).methods["direct"].made) == 1


async def test_the_account_stays_up_to_date_after_the_end(serve: Any):
    service = serve(FakeModel("Ben Jonson wrote it."))
    spec = RunSpec(question="Who?", methods=(MethodSpec(name="direct"),))
    run_id = await service.start(spec, owner=OWNER, budget=RunBudget(expected=expected()))
    account = service.account(run_id, owner=OWNER)
    assert account is not None
    assert service.account(run_id, owner="ben") is None
    async for _ in service.follow(run_id, owner=OWNER):
        await asyncio.sleep(0)
    assert (account.taken.calls, account.taken.written) == (1, 4)


async def test_a_run_that_reached_a_limit_is_replayed_and_reevaluated_alike(serve: Any):
    service = serve(FakeModel("Ben Jonson wrote it."))
    first = await run(service, RunLimits(calls=1), "direct", "selfcheck")
    again = await service.replay(first.header.run, owner=OWNER)
    events = [one async for one in service.follow(again, owner=OWNER)]
    assert fold(events).limit == "calls"
    assert events[-1].answers == first.terminal.answers  # type: ignore[union-attr]
    checked = get_method("selfcheck")
    found = await asyncio.to_thread(reevaluate, first, checked, checked.settings())
    assert found.diverges_at is None
    assert found.answer == first.terminal.answers["selfcheck"]  # type: ignore[union-attr]

"""Money stands in results only where a price is known."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.evaluation.plan import System
from pipelines.evaluation.runner import Runner
from pipelines.evaluation.scoring import read_results
from pipelines.models.providers import ModelSpec, Price
from pipelines.run.events import MethodSpec
from tests.pipelines.evaluation.test_runner import ITEMS, carried_out, create, opened, spec
from tests.scripted.fakes import FakeModel


@pytest.mark.parametrize(
    ("price", "money"),
    [
        (None, None),
        # Two tokens at a million for each million of them.
        (Price(read=0.0, written=1e6), 2.0),
    ],
)
async def test_money(tmp_path: Path, price: Price | None, money: float | None):
    async with opened(tmp_path, FakeModel("one two")) as service:
        models = {"main": ModelSpec(price=price), "verifier": ModelSpec(name="other")}
        one = System(name="direct", method=MethodSpec(name="direct"), models=models)
        name = create(service, spec(one), items=ITEMS[:1])
        await carried_out(Runner(service, name, owner="me"))
        found = read_results(service.store.evaluations, name, "me")[1]
        assert found.scores[0].cost.get("money_usd") == money
        # A model that the method does not use is not named beside its result.
        assert list(found.systems["direct"].models) == ["main"]

"""A whole evaluation in either database: carried out, stopped, continued, read and compared."""

from __future__ import annotations

from contextlib import aclosing, closing
from pathlib import Path

import pytest

from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.errors import NotFoundError
from pipelines.evaluation import runner as overviews
from pipelines.evaluation import scoring
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.runner import Runner, keep_overview, overview
from pipelines.evaluation.scoring import read_results
from pipelines.store import RunStore
from tests.pipelines.evaluation.bench import carried_out, create, spec, system
from tests.scripted.fakes import FakeModel


async def test_an_evaluation_is_carried_out_and_read(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = FakeModel("Nobody 1")
    asked = spec(system("direct"), system("direct 2", max_tokens=64))

    def opened() -> Service:
        return Service(
            tmp_path / "data",
            database=url,
            pool=ModelPool(lambda *_: model),
            libraries=Libraries(tmp_path / "index", find_embedder=lambda: None),
        )

    service = opened()
    async with aclosing(service):
        name = create(service, asked)
        first = await carried_out(Runner(service, name, owner="me", at_once=4), most=3)
        assert (first.answered, first.reason) == (3, None)
    # As a process that begins later.
    service = opened()
    async with aclosing(service):
        last = await carried_out(Runner(service, name, owner="me", at_once=4))
        assert (last.answered, last.reason, last.spent.calls) == (8, "done", 8)
        assert len(model.asked) == 8
        keep_overview(service.store.evaluations, name, "me")
        found = read_results(service.store.evaluations, name, "me")[1]
        # One of four people is called like that.
        assert [row.metrics["accuracy"].value for row in results_table(found).rows] == [0.25, 0.25]
        for score in found.scores:
            assert (await service.load(score.run, owner="me")).terminal is not None
    for module, work in ((scoring, "_scored"), (overviews, "results_table")):
        monkeypatch.setattr(module, work, None)
    with closing(RunStore(url)) as store:
        assert read_results(store.evaluations, name, "me")[1] == found
        assert overview(store.evaluations, name, "me").table == results_table(found)
        store.evaluations.delete(name, "me")
        with pytest.raises(NotFoundError):
            read_results(store.evaluations, name, "me")

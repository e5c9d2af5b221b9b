"""Small evaluations on a model that the test controls."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

from sqlalchemy import create_engine, text

from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.evaluation.plan import (
    EvaluationSpec,
    Item,
    System,
    checked_spec,
    code_version,
    tasks_of,
)
from pipelines.evaluation.runner import EvaluationProgress, Runner
from pipelines.models.base import Model
from pipelines.models.providers import ModelSpec, Price
from pipelines.remote import RetryPolicy
from pipelines.run.events import MethodSpec
from pipelines.store import file_url

ITEMS = [
    Item(id=f"q{number}", question=f"Who was number {number}?", answers=(f"Nobody {number}",))
    for number in range(4)
]
MAIN = ModelSpec(price=Price(read=1.0, written=2_000_000.0))


def system(name: str, **settings: object) -> System:
    return System(
        name=name,
        method=MethodSpec(name=name.split()[0], settings=settings),
        models={"main": MAIN},
    )


def spec(*systems: System, **options: object) -> EvaluationSpec:
    chosen = systems or (system("direct"),)
    found = {"data": "mine", "data_hash": "h", "code": code_version(), "systems": chosen}
    return EvaluationSpec.model_validate({**found, **options})


@asynccontextmanager
async def opened(folder: Path, model: Model) -> AsyncIterator[Service]:
    service = Service(
        folder,
        pool=ModelPool(lambda *_: model),
        libraries=Libraries(folder / "index", find_embedder=lambda: None),
        retry=RetryPolicy(attempts=1),
    )
    async with aclosing(service):
        yield service


def create(
    service: Service, asked: EvaluationSpec, name: str = "e", items: Sequence[Item] = ITEMS
) -> str:
    checked_spec(asked, items)
    rows = [(item.id, item) for item in items]
    body = asked.model_dump(mode="json")
    service.store.evaluations.create(name, "me", name, body, rows, tasks_of(asked, items))
    return name


def dream(folder: Path, run: str) -> None:
    """Give an event of a stored run a kind that no release knows."""
    engine = create_engine(file_url(folder))
    with engine.begin() as connection:
        query = "UPDATE events SET kind = 'dreamt' WHERE run_id = :run AND seq = 1"
        assert connection.execute(text(query), {"run": run}).rowcount == 1
    engine.dispose()


async def carried_out(runner: Runner, most: int | None = None) -> EvaluationProgress:
    *_, last = [progress async for progress in runner.run(most)]
    return last

"""A recorded evaluation for tests of studies: a detector on four texts, which needs no model."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.engine.service import Service
from pipelines.evaluation.plan import Item, System, tasks_of
from pipelines.evaluation.runner import Runner
from tests.pipelines.evaluation.bench import carried_out, spec, system

TEXTS = [
    Item(
        id=f"t{number}",
        question=f"Where was number {number} born?",
        text="She was born in Delft. She died in 1950.",
        hallucinated=bool(number % 3),
        samples=("She was born in Delft. She died in 1950.",) * (number + 1)
        + ("He came from Rome. He lives.",) * (3 - number % 4),
        sentences=(),
    )
    for number in range(4)
]


def selfcheck(**settings: Any) -> System:
    return system("selfcheck", **{"variant": "ngram", **settings})


async def record(
    service: Service, owner: str, name: str = "e", items: Sequence[Item] = TEXTS
) -> str:
    """Carry it out for `owner`, on `items`; its id."""
    asked = spec(selfcheck(), checks="texts")
    rows = [(item.id, item) for item in items]
    body = asked.model_dump(mode="json")
    service.store.evaluations.create(name, owner, "Mine", body, rows, tasks_of(asked, items))
    await carried_out(Runner(service, name, owner=owner))
    return name

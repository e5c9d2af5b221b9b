"""Small evaluations for tests, with values that can be counted by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.base import Language
from pipelines.evaluation.results.packed import ItemScore, PackedScores
from pipelines.evaluation.results.scores import (
    Evaluation,
    ItemSummary,
    MetricInfo,
    ScoredSystem,
)

ACCURACY = MetricInfo(name="accuracy")


def score(item: str, method: str, value: float | None, **more: Any) -> ItemScore:
    """One score with the one metric "accuracy"."""
    fields: dict[str, Any] = {
        "run": f"run-{method}-{item}-{more.get('repeat', 0)}",
        "answer": f"{method} says {item}",
        "values": {"accuracy": value} | more.pop("values", {}),
    }
    return ItemScore(item=item, method=method, **(fields | more))


def evaluation(scores: Sequence[ItemScore], **more: Any) -> Evaluation:
    """An evaluation of the items and systems that `scores` name, in this order.

    Items with an even number are English and tagged "even", others Chinese and "odd".
    """
    items = dict.fromkeys(one.item for one in scores)
    languages: tuple[Language, Language] = ("en", "zh")
    fields: dict[str, Any] = {
        "name": "Trial",
        "data_set": "capitals",
        "data_hash": "5f2a9c0b1d2e3f4a",
        "systems": {one.method: ScoredSystem(method=one.method) for one in scores},
        "items": {
            item: ItemSummary(
                text=f"Question {item}?",
                language=languages[place % 2],
                tags=("odd" if place % 2 else "even",),
            )
            for place, item in enumerate(items)
        },
        "scores": PackedScores.of(scores),
        "metrics": (ACCURACY,),
    }
    return Evaluation(**(fields | more))


def binary(**values: Sequence[float | None]) -> Evaluation:
    """Systems with the values of their items q0, q1, ...; None is an item that was not run."""
    return evaluation(
        [
            score(f"q{place}", method, value)
            for place in range(max(map(len, values.values())))
            for method, column in values.items()
            if place < len(column) and (value := column[place]) is not None
        ]
    )

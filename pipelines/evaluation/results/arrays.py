"""Scores of an evaluation as arrays: the form that statistics take."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.metrics.answers import word_count
from pipelines.evaluation.results.scores import ANSWER_WORDS, Evaluation, ItemScore
from pipelines.evaluation.statistics.resampling import Floats

Reader = Callable[[Sequence[ItemScore]], Sequence[float | None]]
"""Reads one number of each score, None where it has none."""


def value_reader(metric: str, *, original: bool = False) -> Reader:
    """Reads `metric` of scores, or of their original answers; a failed score has no value.

    The answer's length is counted where the score does not hold it.
    """

    def read(scores: Sequence[ItemScore]) -> list[float | None]:
        if original:
            return [None if one.error else one.original_values.get(metric) for one in scores]
        return [None if one.error else one.values.get(metric) for one in scores]

    def read_length(scores: Sequence[ItemScore]) -> list[float | None]:
        texts = (one.original if original else one.answer for one in scores)
        return [
            float(word_count(text)) if value is None and text and not one.error else value
            for one, value, text in zip(scores, read(scores), texts, strict=True)
        ]

    return read_length if metric == ANSWER_WORDS else read


def cost_reader(cost: str) -> Reader:
    """Reads one cost of scores; what failed has cost something too."""
    return lambda scores: [one.cost.get(cost) for one in scores]


@dataclass(frozen=True)
class Grid:
    """Where each score of an evaluation stands: systems by items, each with its repeats.

    `rows`, `columns` and `repeats` are numbers of the system, the item and the repeat, one for each
    of `scores`. `groups` holds the group of each item.
    """

    scores: tuple[ItemScore, ...]
    systems: tuple[str, ...]
    items: tuple[str, ...]
    groups: tuple[str, ...]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    repeats: NDArray[np.intp]

    @classmethod
    def of(cls, evaluation: Evaluation, systems: Sequence[str] | None = None) -> Grid:
        """The scores of `systems`, by default of all that the evaluation lists."""
        names = tuple(evaluation.systems if systems is None else systems)
        items = tuple(evaluation.items)
        row = {name: place for place, name in enumerate(names)}
        column = {name: place for place, name in enumerate(items)}
        scores = tuple(score for score in evaluation.scores if score.method in row)
        groups = dict.fromkeys(items, "")
        groups.update((score.item, score.group) for score in scores if score.group)
        return cls(
            scores=scores,
            systems=names,
            items=items,
            groups=tuple(groups[item] for item in items),
            rows=np.array([row[score.method] for score in scores], dtype=np.intp),
            columns=np.array([column[score.item] for score in scores], dtype=np.intp),
            repeats=np.array([score.repeat for score in scores], dtype=np.intp),
        )

    def read(self, reader: Reader) -> Floats:
        """One number for each score, NaN where it has none."""
        # None becomes NaN.
        return np.array(reader(self.scores), dtype=np.float64)

    def means(self, values: Floats) -> Floats:
        """[systems, items]: the mean over the repeats of what `read` gave; NaN without any."""
        known = np.isfinite(values)
        shape = len(self.systems), len(self.items)
        places = self.rows[known] * shape[1] + self.columns[known]
        size = shape[0] * shape[1]
        counts = np.bincount(places, minlength=size)
        sums = np.bincount(places, weights=values[known], minlength=size)
        with np.errstate(invalid="ignore"):
            return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).reshape(shape)

    def by_repeat(self, values: Floats, system: int) -> Floats:
        """[repeats, items] of one system; NaN where there is none."""
        among = self.rows == system
        depth = int(self.repeats[among].max(initial=0)) + 1
        found = np.full((depth, len(self.items)), np.nan)
        found[self.repeats[among], self.columns[among]] = values[among]
        return found

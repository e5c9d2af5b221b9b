"""Scores of an evaluation as arrays: the form that statistics take.

What is read of all scores of an evaluation is kept, so that a part of them is taken at once.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.metrics.answers import word_count
from pipelines.evaluation.results.scores import ANSWER_WORDS, Evaluation, ItemScore
from pipelines.evaluation.statistics.resampling import Floats
from pipelines.types import Language

Numbers = Sequence[float | None]

_KEPT = 3
"""Evaluations whose numbers are kept: with 10,000 items and 3 systems about 10 MB each."""


@dataclass(frozen=True)
class Reader:
    """Reads one number of each score, None where it has none; `key` tells it from other readers."""

    key: str
    read: Callable[[Sequence[ItemScore]], Numbers]

    def __call__(self, scores: Sequence[ItemScore]) -> Numbers:
        """Return one number for each of `scores`."""
        return self.read(scores)


def value_reader(metric: str, *, original: bool = False) -> Reader:
    """Return a reader of `metric` of scores, or of their original answers; a failed score has
    no value.

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

    key = f"{'original' if original else 'value'} {metric}"
    return Reader(key, read_length if metric == ANSWER_WORDS else read)


def cost_reader(cost: str) -> Reader:
    """Return a reader of one cost of scores; what failed has cost something too."""
    return Reader(f"cost {cost}", lambda scores: [one.cost.get(cost) for one in scores])


FAILED = Reader("failed", lambda scores: [float(bool(one.error)) for one in scores])
"""1 for what failed, else 0."""


@dataclass
class _Whole:
    """All scores of an evaluation: where each belongs, and what was read of them."""

    scores: tuple[ItemScore, ...]
    systems: dict[str, int] = field(default_factory=dict)
    items: dict[str, int] = field(default_factory=dict)
    groups: dict[str, str] = field(default_factory=dict)
    columns: dict[str, Floats] = field(default_factory=dict)
    held: frozenset[str] | None = None

    def __post_init__(self) -> None:
        for score in self.scores:
            self.systems.setdefault(score.method, len(self.systems))
            self.items.setdefault(score.item, len(self.items))
            if score.group:
                self.groups[score.item] = score.group
        self.of_system = self._numbers([self.systems[one.method] for one in self.scores])
        self.of_item = self._numbers([self.items[one.item] for one in self.scores])
        self.repeats = self._numbers([one.repeat for one in self.scores])

    @staticmethod
    def _numbers(found: list[int]) -> NDArray[np.intp]:
        return np.array(found, dtype=np.intp)

    def column(self, reader: Reader) -> Floats:
        """Return what `reader` reads of every score, NaN where it has nothing."""
        known = self.columns.get(reader.key)
        if known is None:
            # None becomes NaN.
            known = self.columns[reader.key] = np.array(reader(self.scores), dtype=np.float64)
            known.flags.writeable = False
        return known


_wholes: OrderedDict[int, _Whole] = OrderedDict()
_lock = Lock()


def _whole(scores: tuple[ItemScore, ...]) -> _Whole:
    """Return what is kept of these very scores, which never change."""
    with _lock:
        known = _wholes.get(id(scores))
        if known is None or known.scores is not scores:
            known = _wholes[id(scores)] = _Whole(scores)
        _wholes.move_to_end(id(scores))
        while len(_wholes) > _KEPT:
            _wholes.popitem(last=False)
        return known


def metric_names(evaluation: Evaluation) -> tuple[str, ...]:
    """Return what `evaluation.metric_names()` returns; its scores are looked through once."""
    whole = _whole(evaluation.scores)
    if whole.held is None:
        whole.held = evaluation.held_metrics()
    return evaluation.metric_names(whole.held)


@dataclass(frozen=True)
class Grid:
    """Where each score of an evaluation stands: systems by items, each with its repeats.

    `rows`, `columns` and `repeats` are numbers of the system, the item and the repeat, one for each
    of `scores`. `groups` holds the group of each item.
    """

    systems: tuple[str, ...]
    items: tuple[str, ...]
    groups: tuple[str, ...]
    rows: NDArray[np.intp]
    columns: NDArray[np.intp]
    repeats: NDArray[np.intp]
    _all: _Whole
    _picked: NDArray[np.intp]

    @classmethod
    def of(
        cls,
        evaluation: Evaluation,
        systems: Sequence[str] | None = None,
        *,
        tags: tuple[str, ...] = (),
        language: Language | None = None,
    ) -> Grid:
        """Return the scores of `systems`, by default of all that the evaluation lists.

        They are those on items that have all of `tags` and, if given, the `language`.
        """
        names = tuple(evaluation.systems if systems is None else systems)
        items = evaluation.selected_items(tags=tags, language=language)
        whole = _whole(evaluation.scores)
        row, column = (np.full(len(known), -1) for known in (whole.systems, whole.items))
        for known, numbers, wanted in ((whole.systems, row, names), (whole.items, column, items)):
            for place, name in enumerate(wanted):
                if name in known:
                    numbers[known[name]] = place
        rows, columns = row[whole.of_system], column[whole.of_item]
        picked = np.flatnonzero((rows >= 0) & (columns >= 0))
        return cls(
            systems=names,
            items=items,
            groups=tuple(whole.groups.get(item, "") for item in items),
            rows=rows[picked],
            columns=columns[picked],
            repeats=whole.repeats[picked],
            _all=whole,
            _picked=picked,
        )

    @property
    def scores(self) -> tuple[ItemScore, ...]:
        """The scores themselves, in the order of the evaluation."""
        return tuple(self._all.scores[place] for place in self._picked.tolist())

    def read(self, reader: Reader) -> Floats:
        """Return one number for each score, NaN where it has none."""
        return self._all.column(reader)[self._picked]

    def means(self, values: Floats) -> Floats:
        """Return an array [systems, items]: the mean over the repeats of what `read` gave; NaN
        without any.
        """
        known = np.isfinite(values)
        shape = len(self.systems), len(self.items)
        places = self.rows[known] * shape[1] + self.columns[known]
        size = shape[0] * shape[1]
        counts = np.bincount(places, minlength=size)
        sums = np.bincount(places, weights=values[known], minlength=size)
        with np.errstate(invalid="ignore"):
            return np.where(counts > 0, sums / np.maximum(counts, 1), np.nan).reshape(shape)

    def by_repeat(self, values: Floats, system: int) -> Floats:
        """Return an array [repeats, items] of one system; NaN where there is none."""
        among = self.rows == system
        depth = int(self.repeats[among].max(initial=0)) + 1
        found = np.full((depth, len(self.items)), np.nan)
        found[self.repeats[among], self.columns[among]] = values[among]
        return found

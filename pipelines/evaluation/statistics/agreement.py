"""How far people agree: raw agreement, Cohen, Fleiss and Krippendorff, with intervals over items.

Ratings are arrays [people, items] of category numbers, NaN where a person did not rate an item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Annotated, Literal

import numpy as np
from pydantic import Field
from sklearn.metrics import cohen_kappa_score, confusion_matrix
from statsmodels.stats.inter_rater import fleiss_kappa

from pipelines.evaluation.statistics.resampling import Floats, Sampling, draws, wilson
from pipelines.types import Frozen

Level = Literal["nominal", "ordinal"]
Undefined = Literal["", "no_items", "one_person", "all_equal", "few_resamples"]
"""Why a coefficient or its interval is not defined: no item has two ratings, there is one person,
all ratings are equal (there is nothing to disagree about), or most resamples have no value."""

WORDS: dict[Undefined, str] = {
    "": "",
    "no_items": "No item was labelled by two people.",
    "one_person": "Only one person has labelled.",
    "all_equal": "All labels are equal: chance alone would agree as well, so nothing is measured.",
    "few_resamples": "There are too few items, or too few disagreements, for an interval.",
}

_RESAMPLES_NEEDED = 0.8


class Coefficient(Frozen):
    """An agreement coefficient, at most 1, with 0 for what chance reaches; `n` items enter it.

    [`low`, `high`] is the interval. `why` says why something is missing.
    """

    value: float | None
    low: float | None = None
    high: float | None = None
    n: int = 0
    why: Undefined = ""


class Agreement(Frozen):
    """How far several people agree on categories.

    `raw` is the share of pairs of ratings of the same item that are equal, in [0, 1], `raw_ends`
    its interval, None where there is none. `cohen` is only for two people. `fleiss` is of the items
    that have the same number of ratings, the number that most of them have (two or more); alpha
    takes all items with two ratings or more.
    """

    people: int
    items: int
    shared: int
    raw: float | None
    raw_ends: tuple[float, float] | None = None
    alpha: Coefficient
    fleiss: Coefficient
    cohen: Coefficient | None = None


class PairAgreement(Frozen):
    """Two people on the items that both rated; `confusion` has a row for each category of the
    first and a column for each of the second."""

    first: int
    second: int
    n: int
    raw: float | None
    cohen: Coefficient
    confusion: tuple[tuple[int, ...], ...]


class Share(Frozen):
    """`hits` of `n` with its Wilson interval (Wilson 1927); no value where n is 0."""

    hits: Annotated[int, Field(ge=0)]
    n: Annotated[int, Field(ge=0)]
    value: float | None = None
    low: float | None = None
    high: float | None = None


def agreement(ratings: Floats, level: Level, sampling: Sampling) -> Agreement:
    """Return the agreement of `ratings` [people, items]."""
    shared = ratings[:, np.isfinite(ratings).sum(axis=0) >= 2]
    complete = ratings[:, np.isfinite(ratings).all(axis=0)]
    equal = equally_rated(ratings)
    people = int(np.isfinite(ratings).any(axis=1).sum())
    why: Undefined = "one_person" if people < 2 else "no_items"
    raw = _with_interval(shared, raw_agreement(ratings), _raws(shared), sampling, why)
    return Agreement(
        people=people,
        items=int(np.isfinite(ratings).any(axis=0).sum()),
        shared=shared.shape[1],
        raw=raw.value,
        raw_ends=None if raw.low is None or raw.high is None else (raw.low, raw.high),
        alpha=_with_interval(shared, alpha(shared, level), _alphas(shared, level), sampling, why),
        fleiss=_with_interval(equal, fleiss(equal), _fleisses(equal), sampling, why),
        cohen=_cohen(complete, sampling, why) if len(ratings) == 2 else None,
    )


def pair_agreement(
    ratings: Floats, first: int, second: int, categories: int, sampling: Sampling
) -> PairAgreement:
    """Compare two of the people of `ratings` [people, items]; categories are 0 to
    `categories` - 1.
    """
    both = ratings[[first, second]]
    both = both[:, np.isfinite(both).all(axis=0)]
    table = np.zeros((categories, categories), dtype=int)
    if both.shape[1]:
        table = confusion_matrix(both[0], both[1], labels=list(range(categories)))
    return PairAgreement(
        first=first,
        second=second,
        n=both.shape[1],
        raw=raw_agreement(both),
        cohen=_cohen(both, sampling, "no_items"),
        confusion=tuple(tuple(int(count) for count in row) for row in table),
    )


def label_alphas(ratings: Floats, categories: int, sampling: Sampling) -> list[Coefficient]:
    """Return alpha of each category against all others."""
    found = np.isfinite(ratings)
    return [
        agreement(np.where(found, ratings == category, np.nan), "nominal", sampling).alpha
        for category in range(categories)
    ]


def raw_agreement(ratings: Floats) -> float | None:
    """Return the share of equal pairs of ratings of the same item, in [0, 1]; None
    without pairs.
    """
    same = pairs = 0
    for column in ratings.T:
        counts = np.unique(column[np.isfinite(column)], return_counts=True)[1]
        same += int((counts * (counts - 1)).sum())
        pairs += int(counts.sum() * (counts.sum() - 1))
    return same / pairs if pairs else None


def alpha(ratings: Floats, level: Level) -> float | None:
    """Return Krippendorff's alpha (2011) of `ratings` [people, items]; None where it is not
    defined.
    """
    if not np.isfinite(ratings).any():
        return None
    features, measure = _alphas(ratings, level)
    value = float(measure(features.sum(axis=0)[None])[0])
    return None if np.isnan(value) else value


def equally_rated(ratings: Floats) -> Floats:
    """Return, of `ratings` [people, items], the items with equally many ratings, as
    [ratings, items].

    That number, two or more, is the one that most items have, of equally frequent ones the largest.
    Who gave a rating is left out: for Fleiss' kappa the people may differ from item to item.
    """
    counts = np.isfinite(ratings).sum(axis=0)
    sizes, frequent = np.unique(counts[counts >= 2], return_counts=True)
    if not len(sizes):
        return ratings[:, :0]
    size = int(sizes[frequent == frequent.max()].max())
    items = ratings[:, counts == size].T
    return items[np.isfinite(items)].reshape(-1, size).T


def fleiss(ratings: Floats) -> float | None:
    """Return Fleiss' kappa (1971) of `ratings` [ratings, items], equally many for each item.

    None where it is not defined.
    """
    people, items = ratings.shape
    values = np.unique(ratings)
    if people < 2 or not items or len(values) < 2:
        return None
    table = (ratings[None] == values[:, None, None]).sum(axis=1).T
    return float(fleiss_kappa(table, method="fleiss"))


def share(hits: int, n: int, level: float = 0.95) -> Share:
    """Return a share with its interval."""
    if not n:
        return Share(hits=hits, n=n)
    low, high = wilson(hits, n, level)
    return Share(hits=hits, n=n, value=hits / n, low=low, high=high)


def character_ratings(
    texts: Sequence[int], spans: Sequence[Sequence[Sequence[tuple[int, int]] | None]]
) -> list[Floats]:
    """Return whether each person marked each character: one array [people, characters] for
    each text.

    `texts` are their lengths; `spans` has for each text the spans of each person, None for who did
    not label it.
    """
    found: list[Floats] = []
    for length, people in zip(texts, spans, strict=True):
        rows = np.full((len(people), length), np.nan)
        for row, own in zip(rows, people, strict=True):
            if own is not None:
                row[:] = 0
                for start, end in own:
                    row[start:end] = 1
        found.append(rows)
    return found


def character_alpha(texts: Sequence[Floats], sampling: Sampling) -> Coefficient:
    """Return Krippendorff's alpha over characters, with an interval over whole texts.

    Characters of one text are not independent, so texts are drawn and not characters. `n` counts
    the texts that two people labelled.
    """
    tables = [_coincidences(text, np.array([0.0, 1.0])).sum(axis=0) for text in texts]
    shared = np.array([table for table in tables if table.any()]).reshape(-1, 2, 2)
    if not len(shared):
        return Coefficient(value=None, why="no_items")
    value = float(_alpha_of(shared.sum(axis=0)[None], "nominal")[0])
    if np.isnan(value):
        return Coefficient(value=None, n=len(shared), why="all_equal")
    features = shared.reshape(len(shared), 4)
    drawn = _drawn(features, lambda sums: _alpha_of(sums.reshape(-1, 2, 2), "nominal"), sampling)
    return ended(value, drawn, len(shared), sampling)


Sums = Callable[[Floats], Floats]
"""Coefficients [draws] from the sums of what items contribute [draws, features]."""


def _raws(ratings: Floats) -> tuple[Floats, Sums]:
    """Return how many pairs of ratings of each item are equal, of how many, and the share
    of sums.
    """
    values = np.unique(ratings[np.isfinite(ratings)])
    counts = (ratings[:, :, None] == values).sum(axis=0).astype(np.float64)
    of = counts.sum(axis=1)
    features = np.column_stack([(counts * (counts - 1)).sum(axis=1), of * (of - 1)])
    return features, lambda sums: sums[:, 0] / sums[:, 1]


def _alphas(ratings: Floats, level: Level) -> tuple[Floats, Sums]:
    """Return what each item contributes to alpha, and alpha of sums of that."""
    values = np.unique(ratings[np.isfinite(ratings)])
    size = len(values)
    tables = _coincidences(ratings, values)
    features = tables.reshape(len(tables), size * size)
    return features, lambda sums: _alpha_of(sums.reshape(-1, size, size), level)


def _coincidences(ratings: Floats, values: Floats) -> Floats:
    """Return Krippendorff's coincidences of each item, [items, values, values].

    Each pair of ratings of an item weighs 1/(ratings - 1); an item with one rating has none.
    """
    counts = (ratings[:, :, None] == values).sum(axis=0).astype(np.float64)
    paired = counts[:, :, None] * counts[:, None, :]
    paired[:, range(len(values)), range(len(values))] -= counts
    return paired / np.maximum(counts.sum(axis=1) - 1, 1)[:, None, None]


def _alpha_of(tables: Floats, level: Level) -> Floats:
    """Return alpha of tables of coincidences [draws, values, values]; NaN where it is not
    defined.
    """
    counts = tables.sum(axis=2)
    total = counts.sum(axis=1)
    size = counts.shape[1]
    if level == "nominal":
        distance = np.broadcast_to(1 - np.eye(size), tables.shape)
    else:
        # Half of the two ranks and all that lie between them, squared.
        middle = np.cumsum(counts, axis=1) - counts / 2
        distance = (middle[:, :, None] - middle[:, None, :]) ** 2
    expected = (counts[:, :, None] * counts[:, None, :] * distance).sum(axis=(1, 2))
    observed = (tables * distance).sum(axis=(1, 2))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(expected > 0, 1 - (total - 1) * observed / expected, np.nan)


def _fleisses(ratings: Floats) -> tuple[Floats, Sums]:
    """Return what each item contributes to Fleiss' kappa, and the kappa of sums of that."""
    people = len(ratings)
    values = np.unique(ratings[np.isfinite(ratings)])
    counts = (ratings[:, :, None] == values).sum(axis=0).astype(np.float64)
    same = (counts * (counts - 1)).sum(axis=1) / max(people * (people - 1), 1)

    def measure(sums: Floats) -> Floats:
        with np.errstate(invalid="ignore", divide="ignore"):
            shares = sums[:, 1:] / sums[:, 1:].sum(axis=1)[:, None]
            items = sums[:, 1:].sum(axis=1) / people
            chance = (shares**2).sum(axis=1)
            return np.where(chance < 1, (sums[:, 0] / items - chance) / (1 - chance), np.nan)

    return np.column_stack([same, counts]), measure


def _cohen(ratings: Floats, sampling: Sampling, why: Undefined) -> Coefficient:
    """Return Cohen's kappa (1960) of the two people of `ratings`, who rated every item of it."""
    values = np.unique(ratings[np.isfinite(ratings)])
    size = len(values)
    ones = (ratings[:, :, None] == values).astype(np.float64)
    tables = ones[0][:, :, None] * ones[1][:, None, :]

    def measure(sums: Floats) -> Floats:
        table = sums.reshape(-1, size, size)
        table = table / table.sum(axis=(1, 2))[:, None, None]
        chance = (table.sum(axis=1) * table.sum(axis=2)).sum(axis=1)
        same = np.trace(table, axis1=1, axis2=2)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(chance < 1, (same - chance) / (1 - chance), np.nan)

    value = None
    if ratings.shape[1] and size > 1:
        value = float(cohen_kappa_score(ratings[0], ratings[1]))
    features = tables.reshape(len(tables), size * size)
    return _with_interval(ratings, value, (features, measure), sampling, why)


def _with_interval(
    ratings: Floats,
    value: float | None,
    parts: tuple[Floats, Sums],
    sampling: Sampling,
    why: Undefined,
) -> Coefficient:
    """Return the coefficient with its percentile interval of the bootstrap over items."""
    n = ratings.shape[1]
    if not n or len(ratings) < 2:
        return Coefficient(value=None, n=n, why=why)
    if value is None:
        equal = len(np.unique(ratings[np.isfinite(ratings)])) < 2
        return Coefficient(value=None, n=n, why="all_equal" if equal else "few_resamples")
    return ended(value, _drawn(*parts, sampling), n, sampling)


def _drawn(features: Floats, measure: Sums, sampling: Sampling) -> Floats:
    """Return the coefficient under every draw; NaN where it is not defined."""
    batches = draws(len(features), sampling.resamples, sampling.seed)
    return np.concatenate([measure(batch @ features) for batch in batches])


def ended(value: float, drawn: Floats, n: int, sampling: Sampling) -> Coefficient:
    """Return a coefficient with its percentile interval; `drawn` is the value under every
    draw, or NaN.
    """
    known = drawn[np.isfinite(drawn)]
    if len(known) < _RESAMPLES_NEEDED * len(drawn):
        return Coefficient(value=value, n=n, why="few_resamples")
    low, high = np.quantile(known, [(1 - sampling.level) / 2, (1 + sampling.level) / 2])
    return Coefficient(value=value, low=float(low), high=float(high), n=n)

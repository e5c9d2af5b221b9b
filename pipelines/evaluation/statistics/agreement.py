"""How far people agree: raw agreement, Cohen, Fleiss and Krippendorff, with intervals over items.

Ratings are arrays [people, items] of category numbers, NaN where a person did not rate an item.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from math import ceil, comb
from typing import Annotated, Literal, NamedTuple

import numpy as np
from pydantic import Field

from pipelines.base import Frozen
from pipelines.evaluation.statistics.estimates import Floats, Sampling, draws, wilson

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
    from sklearn.metrics import confusion_matrix

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
    from statsmodels.stats.inter_rater import fleiss_kappa

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
    from sklearn.metrics import cohen_kappa_score

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


# Gamma: how far people agree on where spans are and on their kinds, beyond chance.
#
# Mathet, Widlöcher and Métivier, The Unified and Holistic Method Gamma (γ) for Inter-Annotator
# Agreement Measure and Alignment, Computational Linguistics 41(3), 2015. Everybody's spans are
# aligned with each other as well as possible; what remains different is the disorder. Gamma is 1
# less the disorder, divided by that of people who mark the same spans at random places.

PLACES = 3.0
"""What a difference of places weighs, where one of kinds weighs 1: as in the authors' program."""

MOST_PEOPLE = 4
"""Of more people who marked one text so many are drawn: alignments of more take too long."""

MOST_SPANS = 1_500
"""So many spans at most enter, of texts that are drawn."""

_SAMPLES, _MOST_SAMPLES = 30, 120
_PRECISION = 0.02
"""Random placings: at least, at most; the relative error of their mean that is aimed at."""


class MarkedSpan(NamedTuple):
    """A marked piece [start, end) of a text, and its kind."""

    start: int
    end: int
    kind: str = ""


class MarkedText(NamedTuple):
    """A text of `length` characters with the spans of each person who read it."""

    length: int
    people: Sequence[Sequence[MarkedSpan]]


class _Group(NamedTuple):
    """Texts that equally many people marked: what remains different in each, and its size.

    `sizes` are the spans of one person on average, `chance` the disorder at random places.
    """

    disorders: list[float]
    sizes: list[float]
    chance: float


def gamma(texts: Sequence[MarkedText], sampling: Sampling) -> Coefficient:
    """Return gamma of several people's spans, with an interval over texts; at most 1, 0 for chance.

    `n` counts the texts that two people read: where nobody marked anything there is room for chance
    alone. The interval holds the disorder of chance fixed. Where gamma is not defined, or has no
    interval, the coefficient says why.
    """
    random = np.random.default_rng(sampling.seed)
    shared = [text for text in texts if len(text.people) > 1]
    if not shared:
        return Coefficient(value=None, why="no_items")
    if not any(own for text in shared for own in text.people):
        return Coefficient(value=None, n=len(shared), why="all_equal")
    groups: dict[int, list[MarkedText]] = defaultdict(list)
    for text in _bounded([_few(text, random) for text in shared], random):
        groups[len(text.people)].append(text)
    found = [_group(group, random) for _, group in sorted(groups.items())]
    rows = np.array(
        [
            (disorder, size * group.chance)
            for group in found
            for disorder, size in zip(group.disorders, group.sizes, strict=True)
        ]
    )
    value = float(_gamma(rows.sum(axis=0)[None])[0])
    if np.isnan(value) or len(rows) < 2:
        known = None if np.isnan(value) else value
        return Coefficient(value=known, n=len(rows), why="few_resamples")
    drawn = np.concatenate(
        [_gamma(batch @ rows) for batch in draws(len(rows), sampling.resamples, sampling.seed)]
    )
    return ended(value, drawn, len(rows), sampling)


def disorder(people: Sequence[Sequence[MarkedSpan]]) -> float:
    """Return what the best alignment of one text leaves different, summed over its parts.

    Each part is a set of spans of different people; its disorder is the mean over all pairs of
    people of how their spans differ, 1 where one of two has none. Divided by the spans of one
    person on average it is the disorder of Mathet and others (2015, section 4.3).
    """
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import csr_array

    spans = [(who, one) for who, own in enumerate(people) for one in own]
    found = list(_parts(spans, len(people)))
    if not found:
        return float(len(spans))
    members, savings = zip(*found, strict=True)
    columns = np.repeat(np.arange(len(members)), [len(one) for one in members])
    rows = np.concatenate([np.asarray(one) for one in members])
    once = csr_array((np.ones(len(rows)), (rows, columns)), shape=(len(spans), len(members)))
    chosen = milp(
        -np.asarray(savings),
        constraints=LinearConstraint(once, -np.inf, 1),
        integrality=np.ones(len(members)),
        bounds=Bounds(0, 1),
    )
    return float(len(spans) + chosen.fun)


def dissimilarity(one: MarkedSpan, other: MarkedSpan) -> float:
    """Return how two spans differ: by their ends, against their lengths and squared, and by
    their kinds.

    0 for the same span. 1 is what a span that nobody else has counts.
    """
    apart = abs(one.start - other.start) + abs(one.end - other.end)
    lengths = one.end - one.start + other.end - other.start
    return PLACES * (apart / lengths) ** 2 + (one.kind != other.kind)


def _parts(
    spans: Sequence[tuple[int, MarkedSpan]], people: int
) -> Iterator[tuple[tuple[int, ...], float]]:
    """Yield sets of spans that may be one part of the best alignment, and what each saves.

    A set saves what its spans cost alone, 1 each, less its disorder. One from which it pays to
    leave a span out is never needed: the distances of each of its spans to the others are bounded.
    """
    pairs = comb(people, 2)
    most = pairs + people - 1
    order = sorted(range(len(spans)), key=lambda at: spans[at][1].start)
    near: dict[int, dict[int, float]] = defaultdict(dict)
    starts = np.array([spans[at][1].start for at in order], dtype=np.float64)
    ends = np.array([spans[at][1].end for at in order], dtype=np.float64)
    for place, at in enumerate(order):
        who, span = spans[at]
        apart = np.abs(starts[place + 1 :] - span.start) + np.abs(ends[place + 1 :] - span.end)
        lengths = (ends - starts)[place + 1 :] + (span.end - span.start)
        close = np.flatnonzero(PLACES * (apart / lengths) ** 2 <= most)
        for other in (order[place + 1 + int(one)] for one in close):
            if spans[other][0] != who and (d := dissimilarity(span, spans[other][1])) <= most:
                near[at][other] = near[other][at] = d

    def grown(
        members: tuple[int, ...], far: tuple[float, ...]
    ) -> Iterator[tuple[tuple[int, ...], float]]:
        """Yield the sets with these members and others of people who come after; `far` are
        their sums.
        """
        count = len(members)
        if count > 1 and max(far) <= pairs + count - 1:
            cost = (sum(far) / 2 + pairs - comb(count, 2)) / pairs
            if cost < count:
                yield members, count - cost
        last = spans[members[-1]][0]
        for other in near[members[0]]:
            if spans[other][0] <= last or any(other not in near[one] for one in members):
                continue
            distances = [near[one][other] for one in members]
            more = [a + b for a, b in zip(far, distances, strict=True)] + [sum(distances)]
            if max(more) <= most:
                yield from grown((*members, other), tuple(more))

    for at in range(len(spans)):
        yield from grown((at,), (0.0,))


def _few(text: MarkedText, random: np.random.Generator) -> MarkedText:
    """Return the text with at most `MOST_PEOPLE` of its people."""
    if len(text.people) <= MOST_PEOPLE:
        return text
    kept = sorted(random.choice(len(text.people), MOST_PEOPLE, replace=False))
    return text._replace(people=[text.people[at] for at in kept])


def _bounded(texts: Sequence[MarkedText], random: np.random.Generator) -> list[MarkedText]:
    """Return as many of the texts, drawn at random, as have `MOST_SPANS` spans together."""
    sizes = [sum(map(len, text.people)) for text in texts]
    if sum(sizes) <= MOST_SPANS:
        return list(texts)
    kept, total = [], 0
    for at in random.permutation(len(texts)):
        if total + sizes[at] > MOST_SPANS and kept:
            break
        kept.append(int(at))
        total += sizes[at]
    return [texts[at] for at in sorted(kept)]


def _group(texts: Sequence[MarkedText], random: np.random.Generator) -> _Group:
    people = len(texts[0].people)
    return _Group(
        disorders=[disorder(text.people) for text in texts],
        sizes=[sum(map(len, text.people)) / people for text in texts],
        chance=_chance(texts, people, random),
    )


def _chance(texts: Sequence[MarkedText], people: int, random: np.random.Generator) -> float:
    """Return the disorder of spans at random places, for one span of each person.

    The texts are laid end to end. Each of so many people has the spans of one of them, all moved by
    the same distance, beyond the end to the beginning (section 5.2). As in the authors' program no
    two distances are nearer than half a span's length on average.
    """
    seats: list[list[MarkedSpan]] = [[] for _ in range(people)]
    length = 0
    for text in texts:
        for seat, own in zip(seats, text.people, strict=True):
            seat += [MarkedSpan(one.start + length, one.end + length, one.kind) for one in own]
        length += text.length
    lengths = [one.end - one.start for seat in seats for one in seat]
    if not lengths:
        return 0.0
    least = sum(lengths) / len(lengths) / 2
    found: list[float] = []
    wanted = _SAMPLES
    while len(found) < wanted:
        placed = [
            _moved(seats[random.integers(people)], shift, length)
            for shift in _shifts(people, length, least, random)
        ]
        size = sum(map(len, placed)) / people
        # A person may have marked nothing at all.
        found.append(disorder(placed) / size if size else 0.0)
        if len(found) == _SAMPLES:
            mean, spread = float(np.mean(found)), float(np.std(found, ddof=1))
            needed = ceil((1.96 * spread / (_PRECISION * mean)) ** 2) if mean else 0
            wanted = min(_MOST_SAMPLES, max(wanted, needed))
    return float(np.mean(found))


def _shifts(people: int, length: int, least: float, random: np.random.Generator) -> list[int]:
    """Return a distance for each person, in [0, `length`), no two nearer than `least` where there
    is room.

    Distances are on a circle: who is moved by the whole length is where they were.
    """
    free = np.ones(length, dtype=bool)
    found: list[int] = []
    for _ in range(people):
        places = np.flatnonzero(free)
        shift = int(random.choice(places)) if len(places) else int(random.integers(length))
        away = np.abs(np.arange(length) - shift)
        free &= np.minimum(away, length - away) > least
        found.append(shift)
    return found


def _moved(spans: Sequence[MarkedSpan], shift: int, length: int) -> list[MarkedSpan]:
    back = [shift - length if one.start + shift >= length else shift for one in spans]
    return [
        MarkedSpan(one.start + by, one.end + by, one.kind)
        for one, by in zip(spans, back, strict=True)
    ]


def _gamma(sums: Floats) -> Floats:
    """Return gamma of sums [draws, (disorder, that of chance)]; NaN where it is not defined."""
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.where(sums[:, 1] > 0, 1 - sums[:, 0] / sums[:, 1], np.nan)

"""Gamma: how far people agree on where spans are and on their kinds, beyond chance.

Mathet, Widlöcher and Métivier, The Unified and Holistic Method Gamma (γ) for Inter-Annotator
Agreement Measure and Alignment, Computational Linguistics 41(3), 2015. Everybody's spans are
aligned with each other as well as possible; what remains different is the disorder. Gamma is 1 less
the disorder, divided by that of people who mark the same spans at random places.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from math import ceil, comb
from typing import NamedTuple

import numpy as np
from scipy.optimize import Bounds, LinearConstraint, milp
from scipy.sparse import csr_array

from pipelines.evaluation.statistics.agreement import Coefficient, ended
from pipelines.evaluation.statistics.resampling import Floats, Sampling, draws

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

"""How far the people of a session agree, by task: coefficients, pairs, labels, spans, rounds.

Only labels count, never comments, skips or what adjudicators decided.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations

import numpy as np

from pipelines.annotation.adjudication import by_item
from pipelines.annotation.labelling import GivenLabel
from pipelines.annotation.types import VERDICTS, ItemBody, SpanLabel, Task, verdict_of
from pipelines.base import Frozen
from pipelines.evaluation.metrics.answers import SpanMatch, count_spans, sum_counts
from pipelines.evaluation.statistics.agreement import (
    Agreement,
    Coefficient,
    Level,
    MarkedSpan,
    MarkedText,
    PairAgreement,
    agreement,
    character_alpha,
    character_ratings,
    gamma,
    label_alphas,
    pair_agreement,
)
from pipelines.evaluation.statistics.estimates import Floats, Sampling

SAMPLING = Sampling(resamples=1000)
"""Intervals to two digits, in a second for a few hundred items and ten people. The results of
sessions have this one everywhere, so that the same labels have the same intervals."""

LEVELS: dict[Task, Level] = {
    "concept": "nominal",
    "span": "nominal",
    "sentence": "ordinal",
    "comparison": "nominal",
    "answer": "nominal",
}
"""Whether the verdicts of a task have an order, in which near ones disagree less."""

_MATCHES: tuple[SpanMatch, ...] = ("exact", "iou", "characters")


class SpanAgreement(Frozen):
    """How far people mark the same spans.

    `characters` is Krippendorff's alpha over characters, `gamma` that of Mathet and others, which
    aligns whole spans and takes their kinds into account; both with intervals over texts. `f1` in
    [0, 1] is by exact spans, by an intersection of at least half of the union ("iou"), and by
    characters, of all pairs of people together: it does not matter who of two counts as the truth.
    `items` counts the texts that two people labelled.
    """

    characters: Coefficient
    gamma: Coefficient
    f1: dict[SpanMatch, float]
    items: int


class TaskAgreement(Frozen):
    """Agreement on one task.

    `people` are the numbers of the annotators, in the order in which `pairs` count them.
    `verdicts` are the categories; for spans they are whether a text has any. `labels` holds the
    alpha of each verdict against all others.
    """

    task: Task
    people: tuple[int, ...]
    verdicts: tuple[str, ...]
    overall: Agreement
    pairs: tuple[PairAgreement, ...]
    labels: dict[str, Coefficient]
    spans: SpanAgreement | None = None


class AgreementRound(Frozen):
    """Alpha after the first `labels` labels of a task, and that of those since the round before."""

    labels: int
    so_far: Coefficient
    recent: Coefficient


def task_agreement(
    task: Task,
    labels: Iterable[GivenLabel],
    bodies: Mapping[int, ItemBody],
    sampling: Sampling = SAMPLING,
) -> TaskAgreement:
    """Return the agreement of `labels` on one task; `bodies` are the session's items by number."""
    own = _of_task(task, labels, bodies)
    people = tuple(sorted({one.annotator for one in own}))
    verdicts = VERDICTS[task] or ("no_spans", "spans")
    ratings = _ratings(own, people, verdicts)
    return TaskAgreement(
        task=task,
        people=people,
        verdicts=verdicts,
        overall=agreement(ratings, LEVELS[task], sampling),
        pairs=tuple(
            pair_agreement(ratings, first, second, len(verdicts), sampling)
            for first, second in combinations(range(len(people)), 2)
        ),
        labels=dict(zip(verdicts, label_alphas(ratings, len(verdicts), sampling), strict=True)),
        spans=_span_agreement(own, people, bodies, sampling) if task == "span" else None,
    )


def agreement_rounds(
    task: Task,
    labels: Iterable[GivenLabel],
    bodies: Mapping[int, ItemBody],
    size: int,
    sampling: Sampling = SAMPLING,
) -> list[AgreementRound]:
    """Return the agreement after every `size` labels of a task, in the order in which they
    were given.

    For spans it is about whether a text has any.
    """
    if size < 1:
        raise ValueError("A round has one label at least.")
    own = sorted(_of_task(task, labels, bodies), key=lambda one: (one.at, one.item))
    people = tuple(sorted({one.annotator for one in own}))
    verdicts = VERDICTS[task] or ("no_spans", "spans")
    found: list[AgreementRound] = []
    for end in range(size, len(own) + 1, size):
        whole, recent = (
            agreement(_ratings(some, people, verdicts), LEVELS[task], sampling).alpha
            for some in (own[:end], own[end - size : end])
        )
        found.append(AgreementRound(labels=end, so_far=whole, recent=recent))
    return found


def _of_task(
    task: Task, labels: Iterable[GivenLabel], bodies: Mapping[int, ItemBody]
) -> list[GivenLabel]:
    return [one for one in labels if bodies[one.item].task == task]


def _ratings(
    labels: Sequence[GivenLabel], people: Sequence[int], verdicts: Sequence[str]
) -> Floats:
    """Return numbers of verdicts, [people, items]."""
    items = {item: at for at, item in enumerate(sorted({one.item for one in labels}))}
    rows = {person: at for at, person in enumerate(people)}
    found = np.full((len(people), len(items)), np.nan)
    for one in labels:
        found[rows[one.annotator], items[one.item]] = verdicts.index(verdict_of(one.label))
    return found


def _span_agreement(
    labels: Sequence[GivenLabel],
    people: Sequence[int],
    bodies: Mapping[int, ItemBody],
    sampling: Sampling,
) -> SpanAgreement:
    groups = by_item(labels)
    marked = {item: {one.annotator: _ends(one) for one in group} for item, group in groups.items()}
    texts = character_ratings(
        [len(bodies[item].text) for item in groups],
        [[marked[item].get(person) for person in people] for item in groups],
    )
    pairs = [pair for own in marked.values() for pair in combinations(own.values(), 2)]
    return SpanAgreement(
        characters=character_alpha(texts, sampling),
        gamma=gamma([_marked(group, bodies) for group in groups.values()], sampling),
        f1={
            match: sum_counts(count_spans(one, other, match) for one, other in pairs).f1
            for match in _MATCHES
        }
        if pairs
        else {},
        items=sum(len(own) > 1 for own in marked.values()),
    )


def _marked(group: Sequence[GivenLabel], bodies: Mapping[int, ItemBody]) -> MarkedText:
    people = [
        [MarkedSpan(span.start, span.end, span.kind) for span in one.label.spans]
        for one in group
        if isinstance(one.label, SpanLabel)
    ]
    return MarkedText(len(bodies[group[0].item].text), people)


def _ends(one: GivenLabel) -> list[tuple[int, int]]:
    assert isinstance(one.label, SpanLabel)
    return [(span.start, span.end) for span in one.label.spans]


# How far each person of a session agrees with the others, and what the others agree without them.
#
# A person who differs from the others is not always wrong, and may have read the guidelines best.


class PersonAgreement(Frozen):
    """One person on one task.

    `labels` counts their labels. `kappa` is the mean of Cohen's kappa with each other person,
    weighted by the items that both labelled, in [-1, 1]; None where none is defined. `without` is
    Krippendorff's alpha of the others; for spans it is about whether a text has any.
    """

    person: int
    labels: int
    kappa: float | None
    without: Coefficient


def people_agreement(
    found: TaskAgreement,
    labels: Sequence[GivenLabel],
    bodies: Mapping[int, ItemBody],
    sampling: Sampling = SAMPLING,
) -> list[PersonAgreement]:
    """Return every person of `found`, the agreement of `labels`, sorted by rising agreement."""
    own = [one for one in labels if bodies[one.item].task == found.task]
    people: list[PersonAgreement] = []
    for place, person in enumerate(found.people):
        pairs = [
            (pair.cohen.value, pair.n)
            for pair in found.pairs
            if place in (pair.first, pair.second) and pair.cohen.value is not None
        ]
        weight = sum(n for _, n in pairs)
        others = [one for one in own if one.annotator != person]
        without = Coefficient(value=None, why="no_items")
        if others:
            rounds = agreement_rounds(found.task, others, bodies, len(others), sampling)
            without = rounds[-1].so_far
        people.append(
            PersonAgreement(
                person=person,
                labels=len(own) - len(others),
                kappa=sum(kappa * n for kappa, n in pairs) / weight if weight else None,
                without=without,
            )
        )
    return sorted(people, key=lambda one: (one.kappa is None, one.kappa or 0.0))

"""How far each person of a session agrees with the others, and what the others agree without them.

A person who differs from the others is not always wrong, and may have read the guidelines best.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipelines.annotation.agreement import SAMPLING, TaskAgreement, agreement_rounds
from pipelines.annotation.labels import GivenLabel
from pipelines.annotation.types import ItemBody
from pipelines.evaluation.statistics.agreement import Coefficient
from pipelines.evaluation.statistics.resampling import Sampling
from pipelines.types import Frozen


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

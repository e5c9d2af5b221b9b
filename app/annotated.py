"""Results that are computed from the labels of a session, in a separate thread, and cached.

The key of each result counts the events of the session. So a page that is drawn again is quick, and
shows nothing that is out of date.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from app.engine import engine
from pipelines.annotation.adjudication import by_item, item_agreement, to_decide
from pipelines.annotation.agreement import TaskAgreement, task_agreement
from pipelines.annotation.detectors import FittedDetector, fit_detectors, labelled_scores
from pipelines.annotation.judges import SessionJudges, evaluations_of, session_judges
from pipelines.annotation.labels import (
    Adjudication,
    Comment,
    GivenLabel,
    Skip,
    Which,
    comments,
    decisions,
    skips,
    standing_labels,
)
from pipelines.annotation.leading import Lead
from pipelines.annotation.people import PersonAgreement, people_agreement
from pipelines.annotation.profiles import Behind, methods_behind
from pipelines.annotation.results import (
    Detectors,
    FinalLabels,
    SessionLabels,
    session_detectors,
    session_finals,
    session_labels,
)
from pipelines.annotation.types import ItemBody, Task
from pipelines.errors import NotFoundError
from pipelines.store.annotation_records import Annotator, WholeSession


class SessionKey(NamedTuple):
    """The session `session` with so many events, items and control items, as a key."""

    session: str
    stamp: tuple[int, int, int]


class Disputed(NamedTuple):
    """An item that people labelled; `agreement` in [0, 1] as in `item_agreement`."""

    item: int
    task: Task
    agreement: float
    people: int
    decided: bool


class Disputes(NamedTuple):
    """What is to be decided, the lowest agreement first, and what was decided, the last first."""

    open: list[Disputed]
    decided: list[Disputed]
    decisions: dict[int, Adjudication]
    labels: dict[int, list[GivenLabel]]
    comments: list[Comment]
    skips: list[Skip]
    bodies: dict[int, ItemBody]
    people: dict[int, Annotator]


def now(lead: Lead) -> SessionKey:
    """Return the session as it is now, as a key."""
    found = lead.store.annotations.standing(lead.session_id)
    return SessionKey(lead.session_id, (found.events, found.items, found.gold))


@lru_cache(maxsize=2)
def whole_of(key: SessionKey) -> WholeSession:
    """Return everything in the session. Raises NotFoundError."""
    return engine().service.store.annotations.whole(key.session)


@lru_cache(maxsize=2)
def labels_of(key: SessionKey) -> SessionLabels:
    """Return every label. Raises NotFoundError."""
    return session_labels(whole_of(key))


@lru_cache(maxsize=16)
def agreement_of(key: SessionKey, task: Task, which: Which) -> TaskAgreement:
    """Return how far people agree on one task."""
    found = labels_of(key)
    return task_agreement(task, found.given(which), found.bodies)


def people_of(key: SessionKey, task: Task, which: Which) -> list[PersonAgreement]:
    """Return how far each person agrees with the others on one task."""
    found = labels_of(key)
    return people_agreement(agreement_of(key, task, which), found.given(which), found.bodies)


@lru_cache(maxsize=8)
def _finals(key: SessionKey, which: Which) -> FinalLabels:
    return session_finals(whole_of(key), which)


def detectors_of(key: SessionKey, task: Task, which: Which) -> Detectors:
    """Return the detectors against the final labels."""
    return session_detectors(whole_of(key), _finals(key, which), task)


def fitted_of(
    key: SessionKey, task: Task, which: Which, share: float, seed: int
) -> tuple[list[FittedDetector], dict[str, Behind]]:
    """Return thresholds and calibrations fitted on a `share` of the groups, and whose they are."""
    whole = whole_of(key)
    scores = labelled_scores(task, whole.items, _finals(key, which).labels)
    fitted = fit_detectors(scores, share_trained=share, seed=seed)
    return fitted, methods_behind(engine().service.store, whole)


def judged_stamp(key: SessionKey) -> tuple[str, ...]:
    """Return what changes with everything that models judge of the evaluations of the session."""
    whole, store = whole_of(key), engine().service.store
    stamps: list[str] = []
    for evaluation in evaluations_of(whole.items):
        try:
            stamps.append(store.judgements.stamp(evaluation, whole.session.owner))
        except NotFoundError:
            stamps.append("gone")
    return tuple(stamps)


def judges_of(key: SessionKey, which: Which, judged: tuple[str, ...]) -> SessionJudges:
    """Return the judges of the session's evaluations when `judged` was the `judged_stamp`."""
    return session_judges(engine().service.store, whole_of(key), which)


@lru_cache(maxsize=2)
def disputes_of(key: SessionKey) -> Disputes:
    """Return what there is to decide, and what was decided."""
    whole = whole_of(key)
    labels = standing_labels(whole.events)
    decided = decisions(whole.events)
    control = {one.number for one in whole.items if one.gold is not None}
    groups = by_item(labels)
    bodies = {one.number: ItemBody.model_validate(one.body) for one in whole.items}

    def disputed(item: int) -> Disputed:
        given = [one.label for one in groups.get(item, [])]
        agreement = item_agreement(given)
        return Disputed(
            item,
            bodies[item].task,
            1.0 if agreement is None else agreement,
            len(given),
            item in decided,
        )

    order = {event.item: event.seq for event in whole.events if event.kind == "adjudicated"}
    return Disputes(
        open=[disputed(item) for item in to_decide(labels, decided) if item not in control],
        decided=[disputed(item) for item in sorted(decided, key=order.__getitem__, reverse=True)],
        decisions=decided,
        labels=groups,
        comments=comments(whole.events),
        skips=skips(whole.events),
        bodies=bodies,
        people={one.number: one for one in whole.annotators},
    )

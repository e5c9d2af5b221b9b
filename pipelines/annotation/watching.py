"""What somebody who leads a session watches: progress, agreement by task, notes on items.

Everything is computed of one moment of the session. Coefficients of every pair of people, and of
spans by their characters, take longer and are among the results (`annotation.agreement`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from math import ceil, sqrt
from statistics import median
from typing import Literal

from pydantic import Field

from pipelines.annotation.adjudication import overruled
from pipelines.annotation.agreement import AgreementRound, agreement_rounds
from pipelines.annotation.labelling import GivenLabel, comments, decisions, skips, standing_labels
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import TASKS, ItemBody, Task, label_adapter
from pipelines.base import Frozen
from pipelines.evaluation.statistics.agreement import Coefficient, Share, share
from pipelines.store.annotations import Annotator, AnnotatorKind, StoredItem, WholeSession

# How far a session has come: what items still need, and how each person works.


class PersonProgress(Frozen):
    """How one person works.

    `seconds` is all their active time, `median_seconds` that of a label; None where no time is
    known. `gold` is the share of control items that they labelled rightly, before models' verdicts
    were shown to them. `overruled`: of their labels on adjudicated items, those decided otherwise.
    """

    number: int
    name: str
    kind: AnnotatorKind
    labelled: int
    skipped: int
    changed: int
    fast: int
    seconds: float
    median_seconds: float | None
    gold: Share
    overruled: Share


class SessionProgress(Frozen):
    """How far a session has come, without control items.

    `needs` maps each number of missing labels to the number of items that lack that many; 0 is for
    finished items. `missing` is how many labels are missing in all, `stuck_items` the items that
    everybody who joined has labelled or skipped and that still lack some.
    """

    items: int
    finished: int
    missing: int
    needs: dict[int, int] = Field(default_factory=dict)
    skipped: dict[int, int] = Field(default_factory=dict)
    stuck_items: tuple[int, ...] = ()
    people: tuple[PersonProgress, ...] = ()
    gaps: tuple[int, ...] = ()

    @property
    def stuck(self) -> int:
        """How many items are stuck."""
        return len(self.stuck_items)


def session_progress(lead: Lead) -> SessionProgress:
    """Return a session's progress as it is now; `gaps` are items with gaps of the guidelines."""
    return progress_of(lead.whole())


def progress_of(whole: WholeSession) -> SessionProgress:
    """Return the progress of a session that was read already."""
    overlap, items, events = whole.session.overlap, whole.items, whole.events
    ordinary = [one for one in items if one.gold is None]
    needs = Counter(max(0, overlap - one.labels) for one in ordinary)
    annotators, labels = whole.annotators, standing_labels(events)
    skipped = Counter(one.item for one in skips(events))
    decided = decisions(events)
    met = Counter(one.item for one in whole.claims if one.state in ("labelled", "skipped"))
    persons = sum(one.kind == "person" for one in annotators)
    against = overruled(labels, decided)
    blind = standing_labels(events, "blind")
    skipping = Counter(one.annotator for one in skips(events))
    return SessionProgress(
        items=len(ordinary),
        finished=needs.get(0, 0),
        missing=sum(missing * count for missing, count in needs.items()),
        needs=dict(sorted(needs.items())),
        skipped=dict(sorted(skipped.items())),
        stuck_items=tuple(
            one.number
            for one in ordinary
            if one.labels < overlap and 0 < persons <= met[one.number]
        ),
        people=tuple(
            _person(
                one,
                [label for label in labels if label.annotator == one.number],
                skipping[one.number],
                _gold(items, [label for label in blind if label.annotator == one.number]),
                share(*against.get(one.number, (0, 0))),
            )
            for one in annotators
        ),
        gaps=tuple(item for item, decision in sorted(decided.items()) if decision.gap),
    )


def _person(
    annotator: Annotator, labels: Sequence[GivenLabel], skipped: int, gold: Share, against: Share
) -> PersonProgress:
    times = [one.seconds for one in labels if one.seconds is not None]
    return PersonProgress(
        number=annotator.number,
        name=annotator.name,
        kind=annotator.kind,
        labelled=len(labels),
        skipped=skipped,
        changed=sum(one.changes > 0 for one in labels),
        fast=sum(one.fast for one in labels),
        seconds=sum(times),
        median_seconds=median(times) if times else None,
        gold=gold,
        overruled=against,
    )


def _gold(items: Sequence[StoredItem], labels: Sequence[GivenLabel]) -> Share:
    right = {one.number: label_adapter.validate_python(one.gold) for one in items if one.gold}
    own = [one for one in labels if one.item in right]
    return share(sum(one.label == right[one.item] for one in own), len(own))


NoteKind = Literal["stuck", "skip", "comment", "gap"]
"""Nobody is left who can label the item; somebody skipped it, or wrote about it; the guidelines do
not say what to do."""

MOST_ROUNDS = 6
_LEAST_ROUND = 10
"""The number of rounds in which agreement is followed, and the least number of labels in one."""

_EXCERPT = 120
"""Characters of an item's text that a list shows."""


class ItemBrief(Frozen):
    """An item in one line; `run` is the recorded run that it comes from, "" where there is none."""

    number: int
    task: Task
    text: str
    run: str = ""


class Note(Frozen):
    """Something about an item that the lead should read; `who` is a person's name."""

    kind: NoteKind
    item: ItemBrief
    who: str = ""
    text: str = ""


class TaskWatch(Frozen):
    """One task: its items and labels without control items, and how far people agree.

    `now` is Krippendorff's alpha; for spans it is about whether a text has any. `rounds` is alpha
    after more and more labels. `half` is half the width of its interval, and `half_then` what that
    will be once every item has its labels, if people go on as they do; None where it is not known.
    """

    task: Task
    items: int
    finished: int
    given: int
    wanted: int
    gold: int
    now: Coefficient
    rounds: tuple[AgreementRound, ...] = ()
    half: float | None = None
    half_then: float | None = None


class SessionWatch(Frozen):
    """All of it, at one moment. `lacking` is how many people are missing for the overlap, once
    somebody has joined."""

    progress: SessionProgress
    overlap: int
    lacking: int = 0
    tasks: tuple[TaskWatch, ...]
    notes: tuple[Note, ...] = ()


def watch_of(whole: WholeSession) -> SessionWatch:
    """Return what there is to see of a session that was read."""
    labels = standing_labels(whole.events)
    bodies = {item.number: ItemBody.model_validate(item.body) for item in whole.items}
    controls = {item.number for item in whole.items if item.gold is not None}
    # Control items have one right label: agreement on them would flatter.
    ordinary = [one for one in labels if one.item not in controls]
    names = {item.task for item in whole.items}
    present: list[Task] = [*filter(names.__contains__, TASKS)]
    progress = progress_of(whole)
    overlap = whole.session.overlap
    persons = sum(one.kind == "person" for one in whole.annotators)
    lacking = max(0, overlap - persons) if persons else 0
    return SessionWatch(
        progress=progress,
        overlap=overlap,
        lacking=lacking,
        tasks=tuple(_task(task, whole, ordinary, bodies) for task in present),
        # Where people are missing for every item, no item is stuck.
        notes=tuple(_notes(whole, progress, bodies, () if lacking else progress.stuck_items)),
    )


def agreement_now(whole: WholeSession, task: Task) -> Coefficient:
    """Return Krippendorff's alpha of one task, without control items."""
    bodies = {item.number: ItemBody.model_validate(item.body) for item in whole.items}
    controls = {item.number for item in whole.items if item.gold is not None}
    labels = [one for one in standing_labels(whole.events) if one.item not in controls]
    return _now(task, [one for one in labels if bodies[one.item].task == task], bodies)


def _task(
    task: Task, whole: WholeSession, labels: Sequence[GivenLabel], bodies: dict[int, ItemBody]
) -> TaskWatch:
    own = [one for one in labels if bodies[one.item].task == task]
    items = [item for item in whole.items if item.task == task and item.gold is None]
    overlap = whole.session.overlap
    now = _now(task, own, bodies)
    # Where nobody disagreed yet, an interval without a width says nothing of what is to come.
    low, high = now.low, now.high
    half = (high - low) / 2 if low is not None and high is not None and high > low else None
    then = len(items) if overlap > 1 else 0
    size = max(_LEAST_ROUND, ceil(len(own) / MOST_ROUNDS))
    return TaskWatch(
        task=task,
        items=len(items),
        finished=sum(item.labels >= overlap for item in items),
        given=sum(min(item.labels, overlap) for item in items),
        wanted=overlap * len(items),
        gold=sum(item.task == task and item.gold is not None for item in whole.items),
        now=now,
        rounds=tuple(agreement_rounds(task, own, bodies, size)),
        half=half,
        half_then=half * sqrt(now.n / then) if half is not None and then > now.n else None,
    )


def _now(task: Task, own: Sequence[GivenLabel], bodies: dict[int, ItemBody]) -> Coefficient:
    if not own:
        return Coefficient(value=None, why="no_items")
    return agreement_rounds(task, own, bodies, len(own))[-1].so_far


def _notes(
    whole: WholeSession,
    progress: SessionProgress,
    bodies: dict[int, ItemBody],
    stuck: Sequence[int],
) -> list[Note]:
    names = {one.number: one.name for one in whole.annotators}
    items = {item.number: item for item in whole.items}

    def brief(number: int) -> ItemBrief:
        return brief_of(items[number], bodies[number])

    found = [Note(kind="stuck", item=brief(number)) for number in stuck]
    decided = decisions(whole.events)
    found += [
        Note(kind="gap", item=brief(number), text=decided[number].note) for number in progress.gaps
    ]
    found += [
        Note(kind="skip", item=brief(one.item), who=names[one.annotator], text=one.reason)
        for one in reversed(skips(whole.events))
    ]
    found += [
        Note(kind="comment", item=brief(one.item), who=names[one.annotator], text=one.text)
        for one in reversed(comments(whole.events))
    ]
    return found


def brief_of(item: StoredItem, body: ItemBody) -> ItemBrief:
    """Return an item in one line: the piece in question, else the beginning of the text."""
    text = " ".join(body.piece.split())
    short = text if len(text) <= _EXCERPT else text[:_EXCERPT].rstrip() + "…"
    return ItemBrief(number=item.number, task=body.task, text=short, run=body.place.run)

"""How far a session has come: what items still need, and how each person works."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from statistics import median

from pydantic import Field

from pipelines.annotation.adjudication import overruled
from pipelines.annotation.labels import GivenLabel, decisions, skips, standing_labels
from pipelines.annotation.leading import Lead
from pipelines.annotation.types import label_adapter
from pipelines.evaluation.statistics.agreement import Share, share
from pipelines.store.annotation_records import Annotator, AnnotatorKind, StoredItem, WholeSession
from pipelines.types import Frozen


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
    """Return the progress of a session as it is now. `gaps` are items that show gaps of the
    guidelines.
    """
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

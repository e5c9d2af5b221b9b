"""Events of annotation sessions: what is asked to be stored, once however often it is asked.

These functions belong to a transaction in which the row of the session is locked.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, NamedTuple

from sqlalchemy import select
from sqlalchemy.orm import Session

from pipelines.errors import failure
from pipelines.store.annotation_records import EventKind, StoredEvent
from pipelines.store.annotation_tables import AnnotationEventRow, AnnotationSessionRow


class Action(NamedTuple):
    """What somebody does to an item.

    `client` is the page's own name of the request, by which a repeated one is recognised. `seconds`
    is the active time on the item, `fast` that it was too short to have been read. `guidelines` is
    the version by which a label was given, None for the present one. Of a label from elsewhere,
    `at` is when it was given, None for now, and `revealed` that it was given there after models'
    verdicts had been shown.
    """

    client: str
    kind: EventKind
    value: dict[str, Any]
    seconds: float | None = None
    fast: bool = False
    run: str = ""
    at: datetime | None = None
    guidelines: int | None = None
    revealed: bool = False


def repeated(
    session: Session, session_id: str, annotator: int, item: int, action: Action
) -> StoredEvent | None:
    """Return the event that was stored for the same request before, if it was."""
    row = AnnotationEventRow
    query = select(row).where(
        row.session == session_id, row.annotator == annotator, row.client == action.client
    )
    found = session.scalars(query).one_or_none()
    if found is None:
        return None
    if (found.item, found.kind, found.value) != (item, action.kind, action.value):
        raise failure("annotation.reused_client")
    return _event(found)


def append(
    session: Session,
    row: AnnotationSessionRow,
    annotator: int,
    item: int,
    action: Action,
    now: datetime,
    revealed: bool,
) -> StoredEvent:
    """Store an event as the next of the session; `revealed`: they were shown models' verdicts."""
    told = action._asdict()
    at: datetime | None = told.pop("at")
    version: int | None = told.pop("guidelines")
    shown: bool = told.pop("revealed")
    event = AnnotationEventRow(
        session=row.id,
        seq=row.events,
        item=item,
        annotator=annotator,
        at=now if at is None else min(at, now),
        guidelines=row.guidelines if version is None else min(version, row.guidelines),
        overlap=row.overlap,
        revealed=revealed or shown,
        **told,
    )
    session.add(event)
    row.events += 1
    session.flush()
    return _event(event)


def _event(row: AnnotationEventRow) -> StoredEvent:
    return StoredEvent(**{name: getattr(row, name) for name in StoredEvent.model_fields})

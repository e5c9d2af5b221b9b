"""The progress of annotation sessions, counted by the database: for lists, and to notice changes.

No item and no event is read, so that the cost does not depend on the length of the texts.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import Field
from sqlalchemy import case, func, select
from sqlalchemy.orm import Session

from pipelines.store.annotation_tables import (
    AnnotationItemRow,
    AnnotationSessionRow,
    AnnotatorRow,
    LinkRow,
)
from pipelines.types import Frozen


class TaskStanding(Frozen):
    """The progress of the items of one task. `items` does not include the `gold` control items.

    `given` counts labels up to the overlap of each item; `finished` counts the items that have as
    many labels as the overlap.
    """

    items: int = 0
    gold: int = 0
    given: int = 0
    finished: int = 0


class SessionStanding(Frozen):
    """How far a session is. `people` counts those who joined; the rest is as in its row.

    `tasks` has the tasks of which there are items. Two standings of a session are equal where
    nothing was done in it, and nothing changed, between them.
    """

    id: str
    events: int
    overlap: int
    guidelines: int
    closed: datetime | None
    spec: dict[str, Any]
    people: int = 0
    links: int = 0
    tasks: dict[str, TaskStanding] = Field(default_factory=dict)

    @property
    def items(self) -> int:
        """Items without control items."""
        return sum(one.items for one in self.tasks.values())

    @property
    def gold(self) -> int:
        """Control items."""
        return sum(one.gold for one in self.tasks.values())

    @property
    def given(self) -> int:
        """Labels that were wanted and given."""
        return sum(one.given for one in self.tasks.values())

    @property
    def wanted(self) -> int:
        """Labels that are wanted in all."""
        return self.items * self.overlap

    @property
    def share(self) -> float:
        """How much is done, in [0, 1]."""
        return self.given / self.wanted if self.wanted else 0.0


def standings(session: Session, *conditions: Any) -> dict[str, SessionStanding]:
    """Return the sessions that fulfil `conditions` on their rows, by their ids."""
    row, item, person, link = AnnotationSessionRow, AnnotationItemRow, AnnotatorRow, LinkRow
    ordinary = item.gold.is_(None)
    wanted = case((item.labels < row.overlap, item.labels), else_=row.overlap)
    tasks: dict[str, dict[str, TaskStanding]] = {}
    for found in session.execute(
        select(
            item.session,
            item.task,
            func.count().filter(ordinary).label("items"),
            func.count().filter(item.gold.is_not(None)).label("gold"),
            func.coalesce(func.sum(wanted).filter(ordinary), 0).label("given"),
            func.count().filter(ordinary, item.labels >= row.overlap).label("finished"),
        )
        .join(row, row.id == item.session)
        .where(*conditions)
        .group_by(item.session, item.task)
        .order_by(item.task)
    ):
        standing = TaskStanding(
            items=found.items, gold=found.gold, given=int(found.given), finished=found.finished
        )
        tasks.setdefault(found.session, {})[found.task] = standing
    people = _counts(session, person.session, person.kind == "person", *conditions)
    links = _counts(session, link.session, link.role != "lead", *conditions)
    names = ("id", "events", "overlap", "guidelines", "closed", "spec")
    query = select(*(getattr(row, name) for name in names)).where(*conditions)
    return {
        found.id: SessionStanding(
            **found._mapping,
            people=people.get(found.id, 0),
            links=links.get(found.id, 0),
            tasks=tasks.get(found.id, {}),
        )
        for found in session.execute(query)
    }


def _counts(session: Session, of: Any, which: Any, *conditions: Any) -> dict[str, int]:
    """Return how many rows there are that name each session in the column `of`."""
    row = AnnotationSessionRow
    query = select(of, func.count()).join(row, row.id == of).where(which, *conditions).group_by(of)
    return {found[0]: found[1] for found in session.execute(query)}

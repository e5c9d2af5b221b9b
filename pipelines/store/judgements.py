"""What models judged of the answers of evaluations, and what that took.

A judgement is kept under a key of everything that decides it, apart from the evaluation that asked
for it, and is never changed: what was paid for once is found by every evaluation of the owner.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple

from sqlalchemy import func, insert, select, update
from sqlalchemy.orm import Session

from pipelines.errors import failure
from pipelines.store.database import Database
from pipelines.store.tables import (
    INSERT,
    EvaluationJudgementRow,
    EvaluationJudgeRow,
    EvaluationRow,
    JudgementRow,
    JudgingCostRow,
    new_run_id,
)

_AT_ONCE = 500
"""Rows that one statement reads or writes."""


class StoredJudge(NamedTuple):
    """A judge of an evaluation: its fingerprint, its specification, and its calibration."""

    judge: str
    created: datetime
    spec: dict[str, Any]
    calibration: dict[str, Any]


def require_evaluation(session: Session, evaluation: str, owner: str) -> None:
    """Raise NotFoundError where `owner` has no such evaluation."""
    row = session.get(EvaluationRow, evaluation)
    if row is None or row.owner != owner:
        raise failure("storage.no_evaluation")


class JudgementStore:
    """Judgements in the database of a RunStore. Every method blocks; any thread may call it.

    An evaluation belongs to its owner: for anyone else it does not exist (NotFoundError).
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def begin(
        self,
        evaluation: str,
        owner: str,
        judge: str,
        spec: dict[str, Any],
        keys: Iterable[tuple[int, str]],
    ) -> None:
        """Note that a judge judges an evaluation: `keys` are task number and judgement key.

        A task that was noted with another key before has this one. Everything else stays.
        """
        row = EvaluationJudgeRow
        with self._database.write() as session:
            require_evaluation(session, evaluation, owner)
            kind = INSERT[session.get_bind().dialect.name]
            found = {"evaluation": evaluation, "judge": judge, "spec": spec, "calibration": {}}
            session.execute(
                kind(row).values({**found, "created": datetime.now(UTC)}).on_conflict_do_nothing()
            )
            rows = (
                {"evaluation": evaluation, "judge": judge, "number": number, "key": key}
                for number, key in keys
            )
            while some := list(islice(rows, _AT_ONCE)):
                noted = kind(EvaluationJudgementRow).values(some)
                session.execute(
                    noted.on_conflict_do_update(
                        index_elements=["evaluation", "judge", "number"],
                        set_={"key": noted.excluded.key},
                    )
                )

    def judges(self, evaluation: str, owner: str) -> list[StoredJudge]:
        """Return the judges of an evaluation, the first one first."""
        row = EvaluationJudgeRow
        query = (
            select(row.judge, row.created, row.spec, row.calibration)
            .where(row.evaluation == evaluation)
            .order_by(row.created, row.judge)
        )
        with self._database.read() as session:
            require_evaluation(session, evaluation, owner)
            return [StoredJudge(*found) for found in session.execute(query)]

    def missing(self, evaluation: str, owner: str, judge: str) -> list[tuple[int, str]]:
        """Return task number and key of the answers that are still to be judged, in order."""
        row = EvaluationJudgementRow
        query = (
            select(row.number, row.key)
            .outerjoin(JudgementRow, (JudgementRow.key == row.key) & (JudgementRow.owner == owner))
            .where(row.evaluation == evaluation, row.judge == judge, JudgementRow.key.is_(None))
            .order_by(row.number)
        )
        with self._database.read() as session:
            require_evaluation(session, evaluation, owner)
            return [(number, key) for number, key in session.execute(query)]

    def judged(self, evaluation: str, owner: str, judge: str) -> dict[int, dict[str, Any]]:
        """Return a map from task number to what the judge said of its answer, in order."""
        row = EvaluationJudgementRow
        query = (
            select(row.number, JudgementRow.body)
            .join(JudgementRow, (JudgementRow.key == row.key) & (JudgementRow.owner == owner))
            .where(row.evaluation == evaluation, row.judge == judge)
            .order_by(row.number)
        )
        with self._database.read() as session:
            require_evaluation(session, evaluation, owner)
            return {row.number: row.body for row in session.execute(query)}

    def stamp(self, evaluation: str, owner: str) -> str:
        """Return what changes with what there is of an evaluation, judgements and calibrations.

        64 digits; empty where no judge has begun.
        """
        judge, row = EvaluationJudgeRow, EvaluationJudgementRow
        judged = (
            select(func.count())
            .select_from(row)
            .join(JudgementRow, (JudgementRow.key == row.key) & (JudgementRow.owner == owner))
            .where(row.evaluation == evaluation)
        )
        held = (
            select(judge.judge, judge.calibration)
            .where(judge.evaluation == evaluation)
            .order_by(judge.judge)
        )
        with self._database.read() as session:
            require_evaluation(session, evaluation, owner)
            calibrations = [list(one) for one in session.execute(held)]
            if not calibrations:
                return ""
            whole = json.dumps([session.scalar(judged), calibrations], sort_keys=True)
        return sha256(whole.encode()).hexdigest()

    def known(self, owner: str, keys: Sequence[str]) -> dict[str, dict[str, Any]]:
        """Return a map from key to judgement, for those of `keys` that were judged before."""
        row = JudgementRow
        found: dict[str, dict[str, Any]] = {}
        with self._database.read() as session:
            for start in range(0, len(keys), _AT_ONCE):
                some = keys[start : start + _AT_ONCE]
                query = select(row.key, row.body).where(row.owner == owner, row.key.in_(some))
                found.update((key, body) for key, body in session.execute(query))
        return found

    def keep(
        self,
        owner: str,
        key: str,
        judgement: dict[str, Any] | None,
        *,
        evaluation: str,
        judge: str,
        spent: dict[str, Any],
    ) -> None:
        """Keep a judgement and what it took, in one transaction; without one the cost alone.

        The first judgement of a key stays. The cost is counted for `evaluation` and `judge`. Where
        the evaluation was deleted, the judgement is kept all the same; then raises NotFoundError.
        """
        with self._database.write() as session:
            if judgement is not None:
                kind = INSERT[session.get_bind().dialect.name]
                session.execute(
                    kind(JudgementRow)
                    .values(owner=owner, key=key, created=datetime.now(UTC), body=judgement)
                    .on_conflict_do_nothing(index_elements=["owner", "key"])
                )
            # Locked where the database can, so that it is not deleted before the cost is there.
            lock = {"read": True, "key_share": True}
            there = session.get(EvaluationRow, evaluation, with_for_update=lock) is not None
            if there:
                row = {"id": new_run_id(), "evaluation": evaluation, "judge": judge, "spent": spent}
                session.execute(insert(JudgingCostRow), [row])
        if not there:
            raise failure("storage.no_evaluation")

    def spent(self, evaluation: str, owner: str, judge: str) -> list[dict[str, Any]]:
        """Return what was asked of a judge for an evaluation, judgement by judgement, failed
        ones too.
        """
        row = JudgingCostRow
        query = select(row.spent).where(row.evaluation == evaluation, row.judge == judge)
        with self._database.read() as session:
            require_evaluation(session, evaluation, owner)
            return list(session.scalars(query))

    def times_asked(self, evaluation: str, owner: str, judge: str) -> int:
        """Return how many entries `spent` has."""
        row = JudgingCostRow
        query = (
            select(func.count())
            .select_from(row)
            .where(row.evaluation == evaluation, row.judge == judge)
        )
        with self._database.read() as session:
            require_evaluation(session, evaluation, owner)
            return session.scalar(query) or 0

    def calibrate(
        self, evaluation: str, owner: str, judge: str, calibration: dict[str, Any]
    ) -> None:
        """Keep what people's labels say of a judge, in place of what was said before."""
        row = EvaluationJudgeRow
        with self._database.write() as session:
            require_evaluation(session, evaluation, owner)
            session.execute(
                update(row)
                .where(row.evaluation == evaluation, row.judge == judge)
                .values(calibration=calibration)
            )

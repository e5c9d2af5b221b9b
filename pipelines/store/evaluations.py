"""Evaluations: their items, what is to be done, what was answered and what was spent.

What was answered is kept under a key of its own, apart from the evaluation that asked for it, and
nothing of it is ever changed: another evaluation that asks the same finds it. What is missing is
read from an index, so that finding it takes time in proportion to what is missing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import islice
from typing import Any, NamedTuple, TypeVar

from sqlalchemy import delete, func, insert, select, union, update
from sqlalchemy.orm import Session

from pipelines.base import Frozen
from pipelines.errors import failure
from pipelines.store.database import Database
from pipelines.store.tables import (
    INSERT,
    EvaluationAttemptRow,
    EvaluationItemRow,
    EvaluationJudgementRow,
    EvaluationJudgeRow,
    EvaluationRow,
    EvaluationScoresRow,
    EvaluationTaskRow,
    JudgementRow,
    JudgingCostRow,
    OutcomeRow,
    new_run_id,
    to_json,
)

# What models judged of the answers of evaluations, and what that took.
#
# A judgement is kept under a key of everything that decides it, apart from the evaluation that
# asked for it, and is never changed: what was paid for once is found by every evaluation of the
# owner.

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
        """Return what a judge was asked for an evaluation, each judgement, failed ones too."""
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


T = TypeVar("T")
"""Rows that one statement reads or writes."""


class AnswerTask(NamedTuple):
    """One answer that an evaluation needs: system `system` on item `position`, for the `repeat`th
    time; `number` counts the tasks of an evaluation from 0. `key` says what is asked."""

    number: int
    position: int
    system: int
    repeat: int
    key: str


class StoredEvaluation(Frozen):
    """An evaluation as it is listed; `spec` is what it was asked to do."""

    id: str
    name: str
    created: datetime
    spec: dict[str, Any]
    tasks: int
    done: int


class Attempt(NamedTuple):
    """A run that was begun for task `number`; `spent` is empty until it was counted."""

    run: str
    number: int
    spent: dict[str, Any]


class EvaluationStore:
    """Evaluations in the database of a RunStore. Every method blocks; any thread may call it.

    An evaluation belongs to its owner: for anyone else it does not exist (NotFoundError).
    """

    def __init__(self, database: Database) -> None:
        self._database = database
        self.judgements = JudgementStore(database)

    def create(
        self,
        evaluation: str,
        owner: str,
        name: str,
        spec: dict[str, Any],
        items: Iterable[tuple[str, Frozen]],
        tasks: Iterable[AnswerTask],
    ) -> None:
        """Store an evaluation whole, or nothing of it. What was answered already is done."""
        with self._database.write() as session:
            row = {"id": evaluation, "owner": owner, "name": name, "spec": spec}
            session.execute(insert(EvaluationRow), [{**row, "created": datetime.now(UTC)}])
            rows = (
                {"evaluation": evaluation, "position": at, "item": item, "body": to_json(body)}
                for at, (item, body) in enumerate(items)
            )
            for some in _in_parts(rows):
                session.execute(insert(EvaluationItemRow), some)
            for some in _in_parts(tasks):
                known = _known(session, owner, [task.key for task in some])
                session.execute(
                    insert(EvaluationTaskRow),
                    [
                        {"evaluation": evaluation, **task._asdict(), "done": task.key in known}
                        for task in some
                    ],
                )

    def get(self, evaluation: str, owner: str) -> StoredEvaluation:
        """Return one evaluation. Raises NotFoundError."""
        found = self._listed(owner, EvaluationRow.id == evaluation)
        if not found:
            raise failure("storage.no_evaluation")
        return found[0]

    def list(self, owner: str) -> list[StoredEvaluation]:
        """Return those of `owner`, newest first."""
        return self._listed(owner)

    def delete(self, evaluation: str, owner: str) -> None:
        """Delete an evaluation. What was answered, and its runs, stay. Raises NotFoundError."""
        with self._database.write() as session:
            require_evaluation(session, evaluation, owner)
            session.execute(delete(EvaluationRow).where(EvaluationRow.id == evaluation))

    def set_limits(self, evaluation: str, owner: str, limits: dict[str, Any]) -> None:
        """Change the limits of an evaluation's specification. Raises NotFoundError."""
        with self._database.write() as session:
            require_evaluation(session, evaluation, owner)
            row = session.get_one(EvaluationRow, evaluation)
            row.spec = {**row.spec, "limits": limits}

    def items(self, evaluation: str, owner: str, after: int = -1) -> list[dict[str, Any]]:
        """Return the items after position `after` in order, some hundreds at most."""
        row = EvaluationItemRow
        query = (
            select(row.body)
            .where(row.evaluation == evaluation, row.position > after)
            .order_by(row.position)
            .limit(_AT_ONCE)
        )
        with self._database.read() as session:
            require_evaluation(session, evaluation, owner)
            return list(session.scalars(query))

    def item(self, evaluation: str, position: int) -> dict[str, Any]:
        """Return the item at `position`. Raises NotFoundError."""
        with self._database.read() as session:
            row = session.get(EvaluationItemRow, (evaluation, position))
            if row is None:
                raise failure("storage.no_evaluation")
            return row.body

    def open_tasks(
        self, evaluation: str, after: int = -1, limit: int = _AT_ONCE
    ) -> list[AnswerTask]:
        """Return what is missing, from the task after number `after`: `limit` tasks at most."""
        row = EvaluationTaskRow
        query = (
            select(row.number, row.position, row.system, row.repeat, row.key)
            .where(row.evaluation == evaluation, row.done.is_(False), row.number > after)
            .order_by(row.number)
            .limit(limit)
        )
        with self._database.read() as session:
            return [AnswerTask(*found) for found in session.execute(query)]

    def attempt(self, evaluation: str, number: int, run: str) -> None:
        """Store that a task's run is about to begin: whatever happens, its spending is found."""
        with self._database.write() as session:
            session.execute(
                insert(EvaluationAttemptRow),
                [
                    {
                        "evaluation": evaluation,
                        "number": number,
                        "run": run,
                        "counted": False,
                        "spent": {},
                    }
                ],
            )

    def finish(
        self,
        evaluation: str,
        owner: str,
        task: AnswerTask,
        run: str,
        outcome: dict[str, Any] | None,
        spent: dict[str, Any],
    ) -> None:
        """Keep what a run has answered and spent; without an `outcome` the task stays open."""
        with self._database.write() as session:
            session.execute(_counted(run, spent))
            if outcome is None:
                return
            row = {"owner": owner, "key": task.key, "run": run, "body": outcome}
            kind = INSERT[session.get_bind().dialect.name]
            # The first answer stays: who asked for it twice at the same time reads the same.
            session.execute(
                kind(OutcomeRow)
                .values({**row, "created": datetime.now(UTC)})
                .on_conflict_do_nothing(index_elements=["owner", "key"])
            )
            session.execute(_done(evaluation, task))

    def take_answered(
        self, evaluation: str, owner: str, task: AnswerTask
    ) -> tuple[str, dict[str, Any]] | None:
        """Return what answers a task by its key, run and outcome; the task is done then."""
        with self._database.write() as session:
            known = session.get(OutcomeRow, (owner, task.key))
            if known is None:
                return None
            session.execute(_done(evaluation, task))
            return known.run, known.body

    def count(self, run: str, spent: dict[str, Any]) -> None:
        """Keep what an attempt took whose process died."""
        with self._database.write() as session:
            session.execute(_counted(run, spent))

    def attempts(self, evaluation: str, *, counted: bool) -> list[Attempt]:
        """Return the runs that were begun, failed ones too; or those that nobody has counted."""
        row = EvaluationAttemptRow
        query = select(row.run, row.number, row.spent).where(
            row.evaluation == evaluation, row.counted.is_(counted)
        )
        with self._database.read() as session:
            return [Attempt(*found) for found in session.execute(query)]

    def runs_at(self, evaluation: str, owner: str, first: int, last: int) -> list[tuple[int, str]]:
        """Return the runs for the tasks from number `first` to `last`, each with its task's number.

        Those that were begun, and those of other evaluations which answered it.
        """
        tried, task = EvaluationAttemptRow, EvaluationTaskRow
        begun = select(tried.number, tried.run).where(
            tried.evaluation == evaluation, tried.number.between(first, last)
        )
        answered = (
            select(task.number, OutcomeRow.run)
            .join(OutcomeRow, (OutcomeRow.key == task.key) & (OutcomeRow.owner == owner))
            .where(task.evaluation == evaluation, task.number.between(first, last))
        )
        with self._database.read() as session:
            found = session.execute(union(begun, answered))
            return [(number, run) for number, run in found]

    def answered(self, evaluation: str, owner: str) -> list[int]:
        """Return the numbers of the tasks of `outcomes`, in order, without what was answered."""
        row = EvaluationTaskRow
        query = (
            select(row.number)
            .join(OutcomeRow, (OutcomeRow.key == row.key) & (OutcomeRow.owner == owner))
            .where(row.evaluation == evaluation)
            .order_by(row.number)
        )
        with self._database.read() as session:
            require_evaluation(session, evaluation, owner)
            return list(session.scalars(query))

    def outcomes(
        self, evaluation: str, owner: str, after: int = -1
    ) -> list[tuple[AnswerTask, str, dict[str, Any]]]:
        """Return what was answered for some hundred tasks after number `after`, with the run."""
        row = EvaluationTaskRow
        query = (
            select(
                *(row.number, row.position, row.system, row.repeat, row.key),
                *(OutcomeRow.run, OutcomeRow.body),
            )
            .join(OutcomeRow, (OutcomeRow.key == row.key) & (OutcomeRow.owner == owner))
            .where(row.evaluation == evaluation, row.number > after)
            .order_by(row.number)
            .limit(_AT_ONCE)
        )
        with self._database.read() as session:
            require_evaluation(session, evaluation, owner)
            return [
                (AnswerTask(*found[:5]), found[5], found[6]) for found in session.execute(query)
            ]

    def scores(self, evaluation: str, owner: str, code: str) -> Iterator[dict[str, Any]]:
        """Return the blocks of what was computed by this `code`, in order; one is in memory at a
        time. Raises NotFoundError.
        """
        row = EvaluationScoresRow
        these = row.evaluation == evaluation, row.code == code
        with self._database.read() as session:
            require_evaluation(session, evaluation, owner)
            blocks = list(session.scalars(select(row.block).where(*these).order_by(row.block)))

        def read(block: int) -> dict[str, Any] | None:
            with self._database.read() as session:
                return session.scalar(select(row.body).where(*these, row.block == block))

        # One that was computed anew meanwhile is missing.
        return (body for body in map(read, blocks) if body is not None)

    def keep_scores(self, evaluation: str, code: str, blocks: Mapping[int, dict[str, Any]]) -> None:
        """Keep blocks of scores in place of same numbers; NotFoundError if all was deleted."""
        with self._database.write() as session:
            if session.get(EvaluationRow, evaluation) is None:
                raise failure("storage.no_evaluation")
            kind = INSERT[session.get_bind().dialect.name]
            for block, body in blocks.items():
                found = {"code": code, "body": body}
                statement = kind(EvaluationScoresRow).values(
                    evaluation=evaluation, block=block, **found
                )
                session.execute(
                    statement.on_conflict_do_update(
                        index_elements=["evaluation", "block"], set_=found
                    )
                )

    def _listed(self, owner: str, *conditions: Any) -> list[StoredEvaluation]:
        row, task = EvaluationRow, EvaluationTaskRow
        # Both are found in an index of this evaluation's own tasks, so that others cost nothing:
        # tasks are numbered from 0, and those that are open become fewer.
        last = select(func.max(task.number)).where(task.evaluation == row.id).scalar_subquery()
        left = (
            select(func.count())
            .where(task.evaluation == row.id, task.done.is_(False))
            .scalar_subquery()
        )
        query = (
            select(row.id, row.name, row.created, row.spec, last.label("last"), left.label("left"))
            .where(row.owner == owner, *conditions)
            .order_by(row.created.desc(), row.id)
        )
        with self._database.read() as session:
            return [
                StoredEvaluation(
                    id=found.id,
                    name=found.name,
                    created=found.created,
                    spec=found.spec,
                    tasks=_number(found.last),
                    done=_number(found.last) - found.left,
                )
                for found in session.execute(query)
            ]


def _number(last: int | None) -> int:
    return 0 if last is None else last + 1


def _done(evaluation: str, task: AnswerTask) -> Any:
    row = EvaluationTaskRow
    where = row.evaluation == evaluation, row.number == task.number
    return update(row).where(*where).values(done=True)


def _counted(run: str, spent: dict[str, Any]) -> Any:
    row = EvaluationAttemptRow
    return update(row).where(row.run == run).values(spent=spent, counted=True)


def _known(session: Session, owner: str, keys: Sequence[str]) -> set[str]:
    """Return those of `keys` that were answered."""
    query = select(OutcomeRow.key).where(OutcomeRow.owner == owner, OutcomeRow.key.in_(keys))
    return set(session.scalars(query))


def _in_parts(rows: Iterable[T]) -> Iterator[list[T]]:
    rows = iter(rows)
    while some := list(islice(rows, _AT_ONCE)):
        yield some

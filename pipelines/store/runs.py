"""Recorded runs: stored event by event while they happen, listed, loaded, exported."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from pydantic import Field, ValidationError
from sqlalchemy import Row, Select, String, cast, delete, func, insert, select
from sqlalchemy.engine import URL
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from pipelines.base import Frozen, Language
from pipelines.errors import VeriscopeError, failure
from pipelines.run.events import (
    CancelReason,
    Event,
    Judged,
    ModelCalled,
    ModelSpec,
    Retrieved,
    RunCancelled,
    RunSpec,
    RunStarted,
    SpanEnded,
    TerminalEvent,
    TokenWritten,
    Trace,
    Verdict,
    event_adapter,
)
from pipelines.store.annotations import AnnotationLinks, AnnotationStore
from pipelines.store.collections import CollectionStore
from pipelines.store.database import DEFAULT_URL, Database
from pipelines.store.evaluations import EvaluationStore
from pipelines.store.exchange import cancelled_after, export_lines, parse_lines
from pipelines.store.filters import RunFilter, asked, conditions
from pipelines.store.labelling import AnnotationWork
from pipelines.store.labels import OwnerLabels, RunLabels, add_facets, read_labels, record_verdicts
from pipelines.store.migrations import check, upgrade
from pipelines.store.profiles import ProfileStore
from pipelines.store.tables import (
    EventRow,
    ModelStore,
    RunLabelRow,
    RunRow,
    new_run_id,
    refuse_keys_in_run,
    to_json,
)

# How much each owner's runs take, and what is deleted where that is too much.

SHARED = "shared"
"""The owner of what was shared: nobody, so that nobody can change it, and everybody may read it."""

_TOGETHER = 20
"""Runs that are deleted in one transaction, between which others can write."""


def copy_id(run_id: str) -> str:
    """Return the id of the copy that everybody may read."""
    return sha256(f"{SHARED}:{run_id}".encode()).hexdigest()[: len(run_id)]


class StoredRun(NamedTuple):
    """A run with the size of its events; `copied` is that of its copy, 0 if it has none."""

    id: str
    created: datetime
    over: bool
    size: int
    copied: int


class StoredBytes:
    """What runs take in a database. Every method blocks, and may be called in any thread.

    A copy for everybody counts to the owner of the run that was copied, for as long as that run is
    stored. Sizes are the characters of the recorded events: what the database adds is left out.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def of(self, owner: str) -> list[StoredRun]:
        """Return the runs of `owner`, the oldest first."""
        query = (
            select(RunRow.id, RunRow.created, RunRow.status, RunRow.size)
            .where(RunRow.owner == owner)
            .order_by(RunRow.created, RunRow.id)
        )
        with self._database.read() as session:
            runs = session.execute(query).all()
            copies = [copy_id(run.id) for run in runs]
            shared = select(RunRow.id, RunRow.size).where(RunRow.id.in_(copies))
            copied = {row.id: row.size for row in session.execute(shared)}
        return [
            StoredRun(run.id, run.created, run.status != "running", run.size, copied.get(copy, 0))
            for run, copy in zip(runs, copies, strict=True)
        ]

    def keep_within(self, owner: str, most: int) -> int:
        """Delete the oldest runs of `owner` until they take at most `most` bytes; return how many.

        Runs that go on or were shared stay, for a link that was given to others goes on working,
        and so does the newest, which is the one that is looked at.
        """
        if owner == SHARED:
            return 0
        runs = self.of(owner)
        total = sum(run.size + run.copied for run in runs)
        gone: list[str] = []
        for run in runs[:-1]:
            if total <= most:
                break
            if run.over and not run.copied:
                gone.append(run.id)
                total -= run.size
        self._delete(gone)
        return len(gone)

    def keep_all_within(self, most: int) -> int:
        """Delete the oldest runs of all owners until all take at most `most` bytes; return
        how many.

        Runs that go on stay. Shared ones are deleted after all others.
        """
        gone = 0
        while (found := self._oldest(most)) and (deleted := self._delete(found)):
            gone += deleted
        return gone

    def _oldest(self, most: int) -> list[str]:
        """Return the first runs to delete, some of them at most; none where nothing has to be."""
        query = (
            select(RunRow.id, RunRow.size)
            .where(RunRow.status != "running")
            .order_by(RunRow.owner == SHARED, RunRow.created, RunRow.id)
            .limit(_TOGETHER)
        )
        with self._database.read() as session:
            # Not the database's own size, which what is deleted may leave as it is.
            excess = (session.scalar(select(func.sum(RunRow.size))) or 0) - most
            found: list[str] = []
            for run_id, size in session.execute(query):
                if excess <= 0:
                    break
                found.append(run_id)
                excess -= size
        return found

    def _delete(self, runs: list[str]) -> int:
        """Delete runs, unless that was done meanwhile; return how many."""
        if not runs:
            return 0
        statement = delete(RunRow).where(RunRow.id.in_(runs)).returning(RunRow.id)
        with self._database.write() as session:
            return len(session.execute(statement).all())


def size_of(session: Session, run_id: str, first: int) -> int:
    """Return the characters of a run's events from number `first` on, as they are stored."""
    size = func.sum(func.length(cast(EventRow.body, String)))
    query = select(size).where(EventRow.run_id == run_id, EventRow.seq >= first)
    return session.scalar(query) or 0


# Summaries of runs: counts over their events, and the lines of the list of runs.

Status = Literal["running", "finished", "failed", "cancelled"]


MAX_EXCERPT = 160
"""Characters of an answer that a list of runs shows."""


class EventCounts(Frozen):
    """Counts over the events of a run.

    `duration` is the time of the last event in seconds since the start. `model_calls` counts the
    attempts that reached a model, `cached_calls` those that the cache answered. `verdicts` counts
    judgements by verdict; `flags` are the remarks on the answers, each once, sorted. `reason` is
    why the run was cancelled, if it was. `originals` and `answers` count what the methods began
    with and ended with, in the first `MAX_EXCERPT` characters; who abstained ended with nothing.
    """

    methods: tuple[str, ...] = ()
    duration: float = 0.0
    model_calls: int = 0
    cached_calls: int = 0
    retrievals: int = 0
    verdicts: dict[Verdict, int] = Field(default_factory=dict)
    flags: tuple[str, ...] = ()
    reason: CancelReason | None = None
    originals: dict[str, int] = Field(default_factory=dict)
    answers: dict[str, int] = Field(default_factory=dict)


class RunSummary(EventCounts):
    """One line of the list of runs. `created` is when the run entered the store, in UTC.

    `name`, `note`, `starred` and `tags` are its owner's labels; `findings` are the methods that
    judged the answer, each with its last verdict.
    """

    id: str
    question: str
    language: Language
    status: Status
    created: datetime
    name: str = ""
    note: str = ""
    starred: bool = False
    tags: tuple[str, ...] = ()
    findings: tuple[tuple[str, str], ...] = ()

    @property
    def title(self) -> str:
        """Its name, or its question where it has none."""
        return self.name or self.question

    @property
    def original(self) -> str:
        """The beginning of what most methods began with; "" before the first has ended."""
        return max(self.originals, key=self.originals.__getitem__, default="")

    @property
    def corrected(self) -> str:
        """The beginning of what most methods ended with that is not the original; else ""."""
        others = {text: count for text, count in self.answers.items() if text != self.original}
        return max(others, key=others.__getitem__, default="")


_COLUMNS = ("id", "question", "language", "status", "created")
SUMMARY = (*(getattr(RunRow, name) for name in _COLUMNS), RunRow.writer, RunRow.summary)
"""The columns of which `summary_of` makes a line of the list."""


def runs_where(owner: str, where: RunFilter, columns: Sequence[Any]) -> Select[*tuple[Any, ...]]:
    """Return a query for these columns of the runs of `owner` that match `where`."""
    query = select(*columns).select_from(RunRow)
    if where.text or where.starred:
        query = query.outerjoin(RunLabelRow, RunLabelRow.run_id == RunRow.id)
    return query.where(*conditions(owner, where))


def summary_of(run: Row[Any], labels: OwnerLabels, *, alive: bool) -> RunSummary:
    """Return the line of a run, from its row with the columns SUMMARY.

    `alive` says whether the process that writes the run still lives: without it, a run that has not
    ended counts as cancelled.
    """
    told = run.summary | {name: getattr(run, name) for name in _COLUMNS} | labels._asdict()
    if run.status == "running" and not alive:
        told |= {"status": "cancelled", "reason": "interrupted"}
    return RunSummary.model_validate(told)


def tally(events: Sequence[Event], before: EventCounts) -> EventCounts:
    """Return the counts of `before` with `events`, which follow on it, added."""
    # An embedder compares texts; it is not asked anything.
    calls = [e for e in events if isinstance(e, ModelCalled) and e.role != "embedder"]
    cached = sum(call.cached for call in calls)
    verdicts: Counter[Verdict] = Counter(before.verdicts)
    verdicts.update(event.verdict for event in events if isinstance(event, Judged))
    answers = [e.answer for e in events if isinstance(e, SpanEnded) and e.answer is not None]
    flags = {flag for answer in answers for flag in answer.flags}
    originals = Counter(before.originals)
    originals.update(_excerpt(one.original) for one in answers if one.original.strip())
    ended = Counter(before.answers)
    ended.update(_excerpt(one.text) for one in answers if one.text.strip() and not one.abstained)
    return EventCounts(
        methods=before.methods,
        duration=max([before.duration, *(event.time for event in events)]),
        model_calls=before.model_calls + len(calls) - cached,
        cached_calls=before.cached_calls + cached,
        retrievals=before.retrievals + sum(isinstance(event, Retrieved) for event in events),
        verdicts=verdicts,
        flags=tuple(sorted(flags.union(before.flags))),
        reason=events[-1].reason if isinstance(events[-1], RunCancelled) else before.reason,
        originals=originals,
        answers=ended,
    )


def _excerpt(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_EXCERPT else f"{line[:MAX_EXCERPT].rstrip()}…"


def status_after(event: Event) -> str:
    """Return what a run is once `event` is its last: one of `Status`."""
    return event.kind.removeprefix("run_") if isinstance(event, TerminalEvent) else "running"


"""Runs that are deleted in one transaction, between which others can write."""

_LOOKED_FOR = 500
"""Runs that are looked for in one statement."""


class FinishedRun(Frozen):
    """A run that ended well, and the model that answered. `created` as in `RunSummary`.

    `checks` says that it checked a given text.
    """

    id: str
    created: datetime
    main: ModelSpec
    checks: bool = False


class RunStore:
    """Runs and saved models in one database. Every method blocks, and may be called in any thread.

    A run belongs to its owner: for anyone else it does not exist. One whose process died before it
    ended is shown as ended, with the reason "interrupted". All methods raise StorageError when the
    database fails.
    """

    def __init__(self, url: str | URL = DEFAULT_URL) -> None:
        """Open the database at `url`, creating or upgrading it; to read alone where it must be.

        Raises InvalidInputError if the URL names no SQLite file and no PostgreSQL database.
        """
        self._database = Database(url, upgrade, check)
        self.labels = RunLabels(self._database)
        self.models = ModelStore(self._database)
        self.sizes = StoredBytes(self._database)
        self.evaluations = EvaluationStore(self._database)
        self.judgements = self.evaluations.judgements
        self.profiles = ProfileStore(self._database)
        self.collections = CollectionStore(self._database)
        self.annotations = AnnotationStore(self._database)
        self.annotation_work = AnnotationWork(self._database)
        self.annotation_links = AnnotationLinks(self._database)

    @property
    def refusal(self) -> VeriscopeError | None:
        """Why nothing can be stored, where that is known; every attempt to store tries again."""
        return self._database.refusal

    def renew_presence(self) -> None:
        """Make sure that other processes see this one as alive, and its runs as not abandoned."""
        self._database.renew_presence()

    def close(self) -> None:
        """Close every connection. Runs that have not ended count as abandoned from here on."""
        self._database.close()

    def create(self, run_id: str, owner: str, started: RunStarted) -> None:
        """Begin to record a run with its first event.

        Raises InvalidInputError if a model of the run carries a key, ValueError if the id is taken
        or the event is not the first of that run.
        """
        refuse_keys_in_run(started.spec)
        if started.run != run_id or started.seq != 0:
            raise ValueError("The event is not the first of this run.")
        self._database.require_writing()
        self._database.renew_presence()
        with self._database.write() as session:
            if session.get(RunRow, run_id) is not None:
                raise ValueError("A run of this id is stored already.")
            created = datetime.fromtimestamp(started.created, UTC)
            self._insert(session, run_id, owner, created, (started,))

    def append(self, run_id: str, events: Sequence[Event], *, again: bool = False) -> None:
        """Record the events that follow; all of them or, on an error, none.

        `token` events are left out. The event that ends the run sets its status. With `again` they
        may be stored already, because a connection was lost before it could tell; an event that
        ends the run is then the next one, whatever its number.
        Raises NotFoundError if the run was deleted meanwhile, StorageLostError if another process
        took it for abandoned, ValueError if the events do not continue it.
        """
        stored = [event for event in events if not isinstance(event, TokenWritten)]
        if not stored:
            return
        with self._database.write() as session:
            run = session.get(RunRow, run_id, with_for_update=True)
            if run is None:
                raise failure("storage.no_run")
            if run.summary.get("reason") == "interrupted":
                raise failure("storage.lost")
            if again:
                *_, last = stored
                stored = [event for event in stored if event.seq >= run.length]
                if not stored and run.status == "running" and isinstance(last, TerminalEvent):
                    # More events are stored than the caller knows of.
                    stored = [last.model_copy(update={"seq": run.length})]
            if stored:
                _check_continues(run, stored)
                _add(session, run, stored)

    def load(self, run_id: str, owner: str) -> Trace:
        """Return what is stored of a run of `owner`, or a shared one; raises NotFoundError."""
        with self._database.read() as session:
            events = _load_events(session, run_id, owner)
            if not isinstance(events[-1], TerminalEvent):
                run = session.get(RunRow, run_id)
                if run is None or not self._database.presence.is_alive(run.writer, session):
                    events = (*events, cancelled_after(events, "interrupted"))
            return Trace(events=events)

    def specs(self, owner: str, run_ids: Sequence[str]) -> dict[str, RunSpec]:
        """Return the specifications of these runs of `owner`, by id, that can be read."""
        found: dict[str, RunSpec] = {}
        with self._database.read() as session:
            for start in range(0, len(run_ids), _LOOKED_FOR):
                some = run_ids[start : start + _LOOKED_FOR]
                query = select(RunRow.id, RunRow.spec).where(
                    RunRow.owner == owner, RunRow.id.in_(some)
                )
                for run_id, spec in session.execute(query):
                    with suppress(ValidationError):
                        found[run_id] = RunSpec.model_validate(spec)
        return found

    def finished(self, owner: str, limit: int = 50) -> list[FinishedRun]:
        """Return at most `limit` finished runs of `owner`, newest first, those that can be read."""
        query = (
            select(RunRow.id, RunRow.created, RunRow.spec)
            .where(RunRow.owner == owner, RunRow.status == "finished")
            .order_by(RunRow.created.desc(), RunRow.id.desc())
            .limit(max(limit, 0))
        )
        found: list[FinishedRun] = []
        with self._database.read() as session:
            for run_id, created, spec in session.execute(query):
                with suppress(KeyError, ValidationError):
                    main = ModelSpec.model_validate(spec["models"]["main"])
                    checks = spec.get("answer") is not None
                    one = FinishedRun(id=run_id, created=created, main=main, checks=checks)
                    found.append(one)
        return found

    def share(self, run_id: str, owner: str) -> str:
        """Copy a run of `owner` for everybody who knows the copy's id, which is returned.

        A run is copied once; a shared one is its own copy. Raises NotFoundError if this owner has
        no run of that id, InvalidInputError while it goes on.
        """
        events = self.load(run_id, owner).events
        if not isinstance(events[-1], TerminalEvent):
            raise failure("asking.still_running")
        copy = copy_id(run_id)
        # Twice at the same time, it is copied by the one and found by the other.
        with suppress(IntegrityError), self._database.write() as session:
            for known in (run_id, copy):
                row = session.get(RunRow, known)
                if row is not None and row.owner == SHARED:
                    return known
            self._insert(session, copy, SHARED, datetime.now(UTC), events)
        return copy

    def delete(self, run_id: str, owner: str) -> None:
        """Delete a run. Raises NotFoundError if this owner has none of that id."""
        statement = delete(RunRow).where(RunRow.id == run_id, RunRow.owner == owner)
        with self._database.write() as session:
            if session.execute(statement.returning(RunRow.id)).one_or_none() is None:
                raise failure("storage.no_run")

    def delete_many(self, run_ids: Sequence[str], owner: str) -> int:
        """Delete those of these runs that belong to `owner`, and return how many.

        They are deleted in several transactions, so that others can write meanwhile.
        """
        gone = 0
        for at in range(0, len(run_ids), _TOGETHER):
            some = run_ids[at : at + _TOGETHER]
            statement = delete(RunRow).where(RunRow.id.in_(some), RunRow.owner == owner)
            with self._database.write() as session:
                gone += len(session.execute(statement.returning(RunRow.id)).all())
        return gone

    def delete_older_than(self, seconds: float) -> int:
        """Delete the runs of every owner that entered the store more than `seconds` ago; return
        how many.

        Runs that are still going stay.
        """
        statement = delete(RunRow).where(
            RunRow.created < datetime.now(UTC) - timedelta(seconds=seconds),
            RunRow.status != "running",
        )
        with self._database.write() as session:
            return len(session.execute(statement.returning(RunRow.id)).all())

    def export(self, run_id: str, owner: str) -> Iterator[str]:
        """Return the run as JSON lines (see `pipelines.store.exchange`), line ends included.

        Raises NotFoundError, before the first line, if this owner has no run of that id.
        """
        return export_lines(self.load(run_id, owner))

    def import_run(self, lines: str | Iterable[str], owner: str) -> str:
        """Store an exported run as a new run of `owner`; returns its new id.

        A run without an end is completed with `run_cancelled`. Raises InvalidInputError, which
        names the line, if anything is wrong (see `exchange.parse_lines`); nothing is stored then.
        """
        events = parse_lines(lines)
        run_id = new_run_id()
        with self._database.write() as session:
            self._insert(session, run_id, owner, datetime.now(UTC), events)
        return run_id

    def recover(self) -> int:
        """End the runs whose process died, with `run_cancelled` ("interrupted"); return how many.

        Runs that another living process is writing are left alone, so this may be called at any
        time.
        """
        with self._database.write() as session:
            running = select(RunRow).where(RunRow.status == "running").with_for_update()
            runs = session.scalars(running).all()
            alive = {
                writer: self._database.presence.is_alive(writer, session)
                for writer in {run.writer for run in runs}
            }
            abandoned = [run for run in runs if not alive[run.writer]]
            for run in abandoned:
                try:
                    events = _load_events(session, run.id, run.owner)
                except VeriscopeError:
                    # One that nobody can read must not keep the others from being ended.
                    run.status, run.finished = "failed", datetime.now(UTC)
                else:
                    _add(session, run, [cancelled_after(events, "interrupted")])
            return len(abandoned)

    def list(
        self,
        owner: str,
        limit: int = 50,
        text: str | None = None,
        *,
        where: RunFilter | None = None,
        offset: int = 0,
    ) -> list[RunSummary]:
        """Return at most `limit` runs of `owner`, newest first, without the first `offset` of them.

        `where` says which runs are meant, and `text` what their question, name or note has to
        contain (Latin letters in either case). Only summaries are read, no event. Raises
        InvalidInputError if the text is longer than a search may be.
        """
        query = (
            runs_where(owner, where or RunFilter(text=text or ""), SUMMARY)
            .order_by(RunRow.created.desc(), RunRow.id.desc())
            .limit(max(limit, 0))
            .offset(max(offset, 0))
        )
        with self._database.read() as session:
            runs = session.execute(query).all()
            labels = read_labels(session, [run.id for run in runs])
            # Asked of each writer once: there are few, and many runs.
            writers = {run.writer for run in runs if run.status == "running"}
            alive = {one for one in writers if self._database.presence.is_alive(one, session)}
            return [
                summary_of(run, labels.get(run.id, OwnerLabels()), alive=run.writer in alive)
                for run in runs
            ]

    def summary(self, run_id: str, owner: str) -> RunSummary:
        """Return the line of one run. Raises NotFoundError if this owner has none of that id."""
        query = runs_where(owner, RunFilter(), SUMMARY).where(RunRow.id == run_id)
        with self._database.read() as session:
            run = session.execute(query).one_or_none()
            if run is None:
                raise failure("storage.no_run")
            alive = self._database.presence.is_alive(run.writer, session)
            labels = read_labels(session, [run.id]).get(run.id, OwnerLabels())
            return summary_of(run, labels, alive=alive)

    def count(self, owner: str, where: RunFilter | None = None) -> int:
        """Return how many runs of `owner` match `where`; raises InvalidInputError as `list`."""
        query = runs_where(owner, where or RunFilter(), (func.count(),))
        with self._database.read() as session:
            return session.scalar(query) or 0

    def ids(self, owner: str, where: RunFilter | None = None, limit: int = 10_000) -> list[str]:
        """Return the ids of at most `limit` runs of `owner`, newest first."""
        query = (
            runs_where(owner, where or RunFilter(), (RunRow.id,))
            .order_by(RunRow.created.desc(), RunRow.id.desc())
            .limit(max(limit, 0))
        )
        with self._database.read() as session:
            return list(session.scalars(query))

    def owned(self, run_ids: Sequence[str], owner: str) -> list[str]:
        """Return those of these runs, at most 10,000, that this owner has, in the order given."""
        known: set[str] = set()
        with self._database.read() as session:
            for at in range(0, len(run_ids), _LOOKED_FOR):
                some = run_ids[at : at + _LOOKED_FOR]
                query = select(RunRow.id).where(RunRow.id.in_(some), RunRow.owner == owner)
                known.update(session.scalars(query))
        return [run_id for run_id in run_ids if run_id in known]

    def _insert(
        self, session: Session, run_id: str, owner: str, created: datetime, events: Sequence[Event]
    ) -> None:
        header = events[0]
        assert isinstance(header, RunStarted)
        run = RunRow(
            id=run_id,
            owner=owner,
            question=header.spec.question,
            language=header.language,
            status="running",
            created=created,
            finished=None,
            writer=self._database.presence.writer,
            length=0,
            size=0,
            spec=to_json(header.spec),
            summary=to_json(EventCounts(methods=tuple(one.name for one in header.spec.methods))),
        )
        session.add(run)
        session.flush()
        add_facets(session, run, asked(header.spec))
        _add(session, run, events)


def _check_continues(run: RunRow, events: Sequence[Event]) -> None:
    if any(event.run != run.id or isinstance(event, RunStarted) for event in events):
        raise ValueError("The events belong to another run, or begin one.")
    if [event.seq for event in events] != [run.length + step for step in range(len(events))]:
        raise ValueError(f"The next event of this run must have the number {run.length}.")
    if run.status != "running" or any(status_after(event) != "running" for event in events[:-1]):
        raise ValueError("The run has ended: no event can follow.")


def _add(session: Session, run: RunRow, events: Sequence[Event]) -> None:
    """Store `events`, the newest of `run`, and bring the run's own row up to date."""
    columns = {"run", "seq", "kind"}
    rows = [
        {
            "run_id": run.id,
            "seq": event.seq,
            "kind": event.kind,
            "body": to_json(event, exclude=columns),
        }
        for event in events
    ]
    session.execute(insert(EventRow), rows)
    run.size += size_of(session, run.id, events[0].seq)
    run.length += len(events)
    run.summary = to_json(tally(events, EventCounts.model_validate(run.summary)))
    record_verdicts(session, run, events)
    run.status = status_after(events[-1])
    if run.status != "running":
        run.finished = datetime.now(UTC)


def _load_events(session: Session, run_id: str, owner: str) -> tuple[Event, ...]:
    # One statement, so that a run deleted meanwhile is either whole or not there.
    query = (
        select(EventRow.seq, EventRow.kind, EventRow.body)
        .join(RunRow, RunRow.id == EventRow.run_id)
        .where(RunRow.id == run_id, RunRow.owner.in_((owner, SHARED)))
        .order_by(EventRow.seq)
    )
    try:
        events = tuple(
            event_adapter.validate_python({**body, "run": run_id, "seq": seq, "kind": kind})
            for seq, kind, body in session.execute(query)
        )
    except ValidationError as error:
        raise failure("storage.unreadable") from error
    if not events:
        raise failure("storage.no_run")
    return events

"""Labels that owners give their runs (name, note, star, tags), and the values to find runs by."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.run.events import Event, Judged, SpanStarted, Verdict
from pipelines.store.database import Database
from pipelines.store.filters import MAX_FACET, Facet
from pipelines.store.tables import (
    EventRow,
    RunFacetRow,
    RunLabelRow,
    RunRow,
    insert_or_replace,
    looks_like_key,
    portable,
)

MAX_RUN_NAME = 200
"""Characters of a run's name."""

MAX_NOTE = 4_000
"""Characters of a note on a run."""

MAX_TAG = 40
"""Characters of a tag."""

MOST_TAGS = 20
"""Tags of one run."""

_TOGETHER = 500
"""Runs that are looked for in one statement: databases limit its values."""


class KnownValues(NamedTuple):
    """What the runs of an owner can be found by, each sorted."""

    methods: tuple[str, ...] = ()
    models: tuple[str, ...] = ()
    verdicts: tuple[str, ...] = ()
    tags: tuple[str, ...] = ()


class OwnerLabels(NamedTuple):
    """The labels of a run; `findings` are methods with their last verdicts on the answer."""

    name: str = ""
    note: str = ""
    starred: bool = False
    tags: tuple[str, ...] = ()
    findings: tuple[tuple[str, str], ...] = ()


class RunLabels:
    """The labels of every owner's runs, in the database of a RunStore.

    They belong to the owner: they are in no export, no report and no shared copy. Every method
    raises NotFoundError if this owner has no run of that id, and InvalidInputError for a text that
    is too long or looks like a key.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def rename(self, run_id: str, owner: str, name: str) -> None:
        """Name a run; "" deletes the name, and pages show the question again."""
        name = _clean(name, "of_run.name", MAX_RUN_NAME)
        with self._database.write() as session:
            _change(session, run_id, owner, name=name)

    def note(self, run_id: str, owner: str, text: str) -> None:
        """Keep `text` as the note on a run, in place of the one before; "" deletes it."""
        text = _clean(text, "of_run.note", MAX_NOTE, lines=True)
        with self._database.write() as session:
            _change(session, run_id, owner, note=text)

    def star(self, run_id: str, owner: str, starred: bool = True) -> None:
        """Give a run its star, or take it away."""
        with self._database.write() as session:
            _change(session, run_id, owner, starred=starred)

    def save(self, run_id: str, owner: str, *, name: str, note: str, tags: Sequence[str]) -> None:
        """Keep name, note and tags of a run together, in place of those before."""
        name = _clean(name, "of_run.name", MAX_RUN_NAME)
        note = _clean(note, "of_run.note", MAX_NOTE, lines=True)
        wanted = _clean_tags(tags)
        with self._database.write() as session:
            _change(session, run_id, owner, name=name, note=note)
            _drop(session, run_id, ("tag",))
            _add_facets(session, run_id, owner, (("tag", one) for one in wanted))

    def tag(
        self,
        run_ids: Sequence[str],
        owner: str,
        *,
        add: Sequence[str] = (),
        remove: Sequence[str] = (),
    ) -> None:
        """Give all of these runs tags, and take others away; all runs or, on an error, none."""
        added, removed = _clean_tags(add), set(_clean_tags(remove))
        with self._database.write() as session:
            for run_id in dict.fromkeys(run_ids):
                _require(session, run_id, owner)
                before = _values(session, run_id, "tag")
                after = [one for one in dict.fromkeys((*before, *added)) if one not in removed]
                if len(after) > MOST_TAGS:
                    raise failure("storage.many_tags", most=MOST_TAGS)
                _drop(session, run_id, ("tag",))
                _add_facets(session, run_id, owner, (("tag", one) for one in after))

    def known(self, owner: str) -> KnownValues:
        """Return every method, model, verdict and tag of the owner's runs."""
        query = select(RunFacetRow.kind, RunFacetRow.value).where(RunFacetRow.owner == owner)
        found: dict[str, list[str]] = {}
        with self._database.read() as session:
            for kind, value in session.execute(query.distinct()):
                found.setdefault(kind, []).append(value)
        kinds = ("method", "model", "verdict", "tag")
        return KnownValues(*(tuple(sorted(found.get(kind, ()))) for kind in kinds))


def read_labels(session: Session, run_ids: Sequence[str]) -> dict[str, OwnerLabels]:
    """Return the labels of these runs by id, without runs that have none."""
    found: dict[str, OwnerLabels] = {}
    for at in range(0, len(run_ids), _TOGETHER):
        some = run_ids[at : at + _TOGETHER]
        for row in session.scalars(select(RunLabelRow).where(RunLabelRow.run_id.in_(some))):
            found[row.run_id] = OwnerLabels(row.name, row.note, row.starred)
        query = (
            select(RunFacetRow.run_id, RunFacetRow.kind, RunFacetRow.value)
            .where(RunFacetRow.run_id.in_(some), RunFacetRow.kind.in_(("tag", "finding")))
            .order_by(RunFacetRow.run_id, RunFacetRow.value)
        )
        for run_id, kind, value in session.execute(query):
            known = found.get(run_id, OwnerLabels())
            if kind == "tag":
                known = known._replace(tags=(*known.tags, value))
            else:
                method, _, verdict = value.rpartition(":")
                known = known._replace(findings=(*known.findings, (method, verdict)))
            found[run_id] = known
    return found


def add_facets(session: Session, run: RunRow, found: Iterable[tuple[Facet, str]]) -> None:
    """Store the values by which a new run is found."""
    _add_facets(session, run.id, run.owner, found)


def record_verdicts(session: Session, run: RunRow, events: Sequence[Event]) -> None:
    """Store the verdicts on answers among a run's newest `events`, so that it is found by them."""
    judged = [event for event in events if isinstance(event, Judged) and event.what == "answer"]
    if not judged:
        return
    methods = {one.span: one.method for one in events if isinstance(one, SpanStarted)}
    missing = {event.span for event in judged} - methods.keys()
    if missing:
        methods |= _methods_of(session, run.id, missing)
    found: dict[str, Verdict] = {
        methods[event.span]: event.verdict for event in judged if event.span in methods
    }
    known = dict(_split(value) for value in _values(session, run.id, "finding"))
    after: Mapping[str, str] = {**known, **found}
    if after != known:
        _drop(session, run.id, ("finding", "verdict"))
        pairs: list[tuple[Facet, str]] = []
        for method, verdict in after.items():
            pairs.append(("finding", f"{method}:{verdict}"))
            pairs.append(("verdict", verdict))
        _add_facets(session, run.id, run.owner, pairs)


def _methods_of(session: Session, run_id: str, spans: set[str]) -> dict[str, str]:
    """Return the methods of spans that were stored before."""
    span, method = EventRow.body["span"].as_string(), EventRow.body["method"].as_string()
    query = select(span, method).where(
        EventRow.run_id == run_id, EventRow.kind == "span_started", span.in_(spans)
    )
    return {row[0]: row[1] for row in session.execute(query)}


def _split(finding: str) -> tuple[str, str]:
    method, _, verdict = finding.rpartition(":")
    return method, verdict


def _require(session: Session, run_id: str, owner: str) -> None:
    query = select(RunRow.id).where(RunRow.id == run_id, RunRow.owner == owner)
    if session.scalar(query) is None:
        raise failure("storage.no_run")


def _change(session: Session, run_id: str, owner: str, **values: object) -> None:
    _require(session, run_id, owner)
    row = session.get(RunLabelRow, run_id)
    kept = (
        {"name": row.name, "note": row.note, "starred": row.starred}
        if row is not None
        else {"name": "", "note": "", "starred": False}
    )
    insert_or_replace(session, RunLabelRow, {"run_id": run_id}, {**kept, **values})


def _values(session: Session, run_id: str, kind: Facet) -> list[str]:
    query = select(RunFacetRow.value).where(RunFacetRow.run_id == run_id, RunFacetRow.kind == kind)
    return sorted(session.scalars(query))


def _drop(session: Session, run_id: str, kinds: tuple[Facet, ...]) -> None:
    session.execute(
        delete(RunFacetRow).where(RunFacetRow.run_id == run_id, RunFacetRow.kind.in_(kinds))
    )


def _add_facets(
    session: Session, run_id: str, owner: str, found: Iterable[tuple[Facet, str]]
) -> None:
    # Cut and cleaned as the database does it, two values may have become the same.
    pairs = {(kind, portable(value).replace("\x00", "\ufffd")[:MAX_FACET]) for kind, value in found}
    rows = [
        {"run_id": run_id, "kind": kind, "value": value, "owner": owner}
        for kind, value in sorted(pairs)
    ]
    if rows:
        session.execute(insert(RunFacetRow), rows)


def _clean(text: str, what: str, most: int, *, lines: bool = False) -> str:
    text = text.strip() if lines else " ".join(text.split())
    if len(text) > most:
        raise failure("storage.long_label", what=phrase(what), most=most)
    if looks_like_key(text):
        raise failure("storage.key_in_label", what=phrase(what))
    return text


def _clean_tags(tags: Sequence[str]) -> list[str]:
    cleaned = (unicodedata.normalize("NFC", _clean(one, "of_run.tag", MAX_TAG)) for one in tags)
    found = list(dict.fromkeys(filter(None, cleaned)))
    if len(found) > MOST_TAGS:
        raise failure("storage.many_tags", most=MOST_TAGS)
    return found

"""A whole session as JSON lines, to be carried from one store to another.

The first line is a header, each line after it one guideline version, annotator, item, claim or
event, in this order. Exported again from the store into which it was imported, the text is the
same: a session keeps its times, numbers and random order. What stays behind are the links, whose
session it was, and when each item was given out.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import TypeAdapter, ValidationError

from pipelines.annotation.labels import GIVING, Adjudication
from pipelines.annotation.leading import Lead
from pipelines.annotation.types import (
    MAX_CLIENT,
    MOST_OVERLAP,
    Hidden,
    ItemBody,
    Label,
    SessionSpec,
    label_adapter,
    require_fitting,
)
from pipelines.error_words import Fact, PhraseError, phrase, problem_at
from pipelines.errors import VeriscopeError, failure
from pipelines.printable import printable_json
from pipelines.store import RunStore
from pipelines.store.annotation_records import (
    MAX_NAME,
    Annotator,
    Guidelines,
    StoredClaim,
    StoredEvent,
    StoredItem,
    StoredSession,
)
from pipelines.store.tables import portable
from pipelines.types import Frozen

MOST_LINES = 2_000_000
MOST_IN_LINE = 8 * 2**20
"""How large an imported session may be: lines, and characters of a line."""

_KINDS: dict[str, type[Frozen]] = {
    "guidelines": Guidelines,
    "annotator": Annotator,
    "item": StoredItem,
    "claim": StoredClaim,
    "event": StoredEvent,
}
MAX_KEY = 64
"""Characters of the key of an item, and of the name of a run."""

_LEFT_OUT = {"id", "owner", "items"}


class _Header(Frozen):
    """The first line."""

    format: Literal["veriscope-annotation"] = "veriscope-annotation"
    version: Literal[1] = 1
    session: dict[str, Any]


def export_session(lead: Lead) -> Iterator[str]:
    """Yield the lines of a session, each with its line end."""
    whole = lead.whole()
    session = whole.session.model_dump(mode="json", exclude=_LEFT_OUT)
    yield _line(_Header(session=session).model_dump(mode="json"))
    parts: dict[str, Iterable[Frozen]] = {
        "guidelines": whole.guidelines,
        "annotator": whole.annotators,
        "item": whole.items,
        "claim": whole.claims,
        "event": whole.events,
    }
    for kind, values in parts.items():
        for value in values:
            yield _line({"kind": kind, **_named(value)})


def import_session(store: RunStore, owner: str, lines: Iterable[str]) -> Lead:
    """Store an exported session as one of `owner`, whole or not at all.

    The file is not trusted. Raises InvalidInputError, whose message names the line (from 1), at
    the first that is wrong.
    """
    found: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    session: StoredSession | None = None
    checker = _Checker()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if number > MOST_LINES or len(line) > MOST_IN_LINE:
            raise _bad(number, phrase("import.too_large"))
        try:
            told = portable(json.loads(line))
            if session is None:
                session = _session_of(told)
                continue
            kind = told.pop("kind", None) if isinstance(told, dict) else None
            if not isinstance(kind, str) or kind not in _KINDS:
                raise PhraseError("import.unknown_kind", kind=kind)
            value = _KINDS[kind].model_validate(_renamed(kind, told))
            checker.check(value)
        except ValidationError as error:
            raise _bad(number, problem_at(error)) from None
        except PhraseError as error:
            raise _bad(number, error.phrase) from None
        except ValueError as error:
            raise _bad(number, str(error)) from None
        except RecursionError:
            raise _bad(number, phrase("import.too_deep")) from None
        found[kind].append(value)
    if session is None or not found["item"] or not found["guidelines"]:
        raise _bad(1, phrase("import.no_session"))
    session = session.model_copy(update={"guidelines": len(found["guidelines"])})
    made = store.annotations.restore(
        owner,
        session,
        found["guidelines"],
        found["annotator"],
        checker.counted(found["item"]),
        found["claim"],
        found["event"],
    )
    return Lead(store, made, owner)


class _Checker:
    """What the lines of a file say together: numbers without gaps, and nothing that is missing."""

    def __init__(self) -> None:
        self._items: dict[int, ItemBody] = {}
        self._keys: set[str] = set()
        self._controls: set[int] = set()
        self._annotators: set[str] = set()
        self._versions = 0
        self._events = 0
        self._clients: set[tuple[int, str]] = set()
        self._claims: set[tuple[int, int]] = set()
        self._slots: set[tuple[int, int]] = set()
        self._labels: dict[int, int] = {}

    def check(self, value: Any) -> None:
        """Raise ValueError for a line that does not fit those before it."""
        _require_moments(value)
        match value:
            case Guidelines():
                self._versions += 1
                _require(value.version == self._versions, "import.no_version")
            case Annotator():
                name = value.name.strip()
                _require(value.number == len(self._annotators), "import.no_annotator")
                usable = bool(name) and len(value.name) <= MAX_NAME
                _require(usable, "import.no_annotator_name")
                _require(name not in self._annotators, "import.same_annotator")
                self._annotators.add(name)
            case StoredItem():
                self._check_item(value)
            case StoredClaim():
                self._check_claim(value)
            case StoredEvent():
                self._check_event(value)
            case _:
                raise PhraseError("import.unknown")

    def counted(self, items: list[StoredItem]) -> list[StoredItem]:
        """Return the items with the labels that the claims say they have."""
        return [one.model_copy(update={"labels": self._labels.get(one.number, 0)}) for one in items]

    def _check_item(self, value: StoredItem) -> None:
        _require(value.number == len(self._items), "import.no_item")
        _require(value.key not in self._keys, "import.same_item")
        _require(0 < len(value.key) <= MAX_KEY, "import.no_item_key")
        body = ItemBody.model_validate(value.body)
        _require(body.task == value.task, "import.two_tasks")
        Hidden.model_validate(value.hidden)
        if value.gold is not None:
            require_fitting(_label(value.gold), body)
            self._controls.add(value.number)
        _require(value.probability is None or 0 < value.probability <= 1, "import.bad_probability")
        self._keys.add(value.key)
        self._items[value.number] = body

    def _check_claim(self, value: StoredClaim) -> None:
        self._require_known(value.item, value.annotator)
        key = value.item, value.annotator
        _require(key not in self._claims, "import.given_twice")
        self._claims.add(key)
        if value.slot is not None:
            _require(0 <= value.slot < MOST_OVERLAP, "import.bad_place")
            _require((value.item, value.slot) not in self._slots, "import.same_place")
            self._slots.add((value.item, value.slot))
        if value.state == "labelled" and value.item not in self._controls:
            self._labels[value.item] = self._labels.get(value.item, 0) + 1

    def _check_event(self, value: StoredEvent) -> None:
        self._require_known(value.item, value.annotator)
        _require(value.seq == self._events, "import.no_event")
        self._events += 1
        _require((value.annotator, value.client) not in self._clients, "import.same_request")
        _require(0 < len(value.client) <= MAX_CLIENT, "import.no_request_name")
        _require(len(value.run) <= MAX_KEY, "import.long_run_name")
        _require(1 <= value.overlap <= MOST_OVERLAP, "import.bad_overlap", most=MOST_OVERLAP)
        seconds = value.seconds
        _require(seconds is None or 0 <= seconds < 86_400, "import.bad_active_time")
        self._clients.add((value.annotator, value.client))
        _require(1 <= value.guidelines <= self._versions, "import.no_guidelines_version")
        if value.kind in GIVING:
            require_fitting(_label(value.value), self._items[value.item])
        elif value.kind == "adjudicated":
            require_fitting(Adjudication.model_validate(value.value).label, self._items[value.item])

    def _require_known(self, item: int, annotator: int) -> None:
        _require(item in self._items, "import.no_item")
        _require(0 <= annotator < len(self._annotators), "import.no_annotator")


_values: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


def _session_of(told: object) -> StoredSession:
    header = _Header.model_validate(told)
    # Whose it is, and under which name it is stored, is decided here.
    session = StoredSession.model_validate(
        {**header.session, "id": "imported", "owner": "imported", "items": 0}
    )
    SessionSpec.model_validate(session.spec)
    _require_moments(session)
    _require(1 <= session.overlap <= MOST_OVERLAP, "import.bad_overlap", most=MOST_OVERLAP)
    usable = bool(session.name.strip()) and len(session.name) <= MAX_NAME
    _require(usable, "import.no_session_name")
    _require(0 < len(session.seed) <= 32, "import.no_seed")
    return session


def _require_moments(value: Frozen) -> None:
    """Check that every time names its zone, and is one that UTC has: nothing else can be stored."""
    for name in type(value).model_fields:
        moment = getattr(value, name)
        if not isinstance(moment, datetime):
            continue
        _require(moment.tzinfo is not None, "import.no_zone", name=name)
        try:
            moment.astimezone(UTC)
        except OverflowError:
            raise PhraseError("import.bad_time", name=name) from None


def _label(value: object) -> Label:
    return label_adapter.validate_python(value)


def _named(value: Frozen) -> dict[str, Any]:
    """Return a line's fields; the kind of a person or an event gives way to that of the line."""
    told = value.model_dump(mode="json")
    if "kind" in told:
        told["is"] = told.pop("kind")
    return told


def _renamed(kind: str, told: dict[str, Any]) -> dict[str, Any]:
    told = _values.validate_python(told)
    if kind in ("annotator", "event"):
        told["kind"] = told.pop("is", None)
    return told


def _line(value: dict[str, Any]) -> str:
    return printable_json(json.dumps(value, ensure_ascii=False, sort_keys=True)) + "\n"


def _require(condition: bool, problem: str, **facts: object) -> None:
    if not condition:
        raise PhraseError(problem, **facts)


def _bad(line: int, problem: Fact) -> VeriscopeError:
    return failure("annotation.bad_file", problem=problem, line=line)

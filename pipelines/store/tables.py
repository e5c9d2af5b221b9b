"""The tables of the store, what their columns hold, and the saved model configurations.

Timestamps are UTC. No table has a place for a key. After changing a table, write the migration
with `python -m pipelines.store.migrations "what changed"`.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime
from hashlib import blake2b
from math import isfinite
from secrets import token_hex
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from sqlalchemy import (
    JSON,
    BigInteger,
    DateTime,
    ForeignKey,
    Index,
    MetaData,
    String,
    UniqueConstraint,
    select,
)
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect
from sqlalchemy.orm import DeclarativeBase, Mapped, Session, declared_attr, mapped_column
from sqlalchemy.types import TypeDecorator

from pipelines.base import Frozen
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.prompts import Wording, own_prompts
from pipelines.run.events import ModelSpec, RunSpec
from pipelines.store.database import Database

MAX_NAME = 200
"""Characters of a model's name."""

_OWNER = re.compile(r"[0-9a-f]{48}")
_SECRET_NAME = re.compile(r"key|token|secret|passw|pwd|auth|credential|signature|\bsig\b", re.I)
_SECRET_VALUE = re.compile(
    r"\b(?:(?:sk|rk|pk|gsk|xai|pplx|nvapi)[-_][\w-]{16,}|hf_\w{16,}|AIza[\w-]{30,}|AKIA\w{12,})"
    r"|\bBearer\s",
    re.I,
)


def new_run_id() -> str:
    """Return 128 random bits as 32 hexadecimal digits: safe in URLs, file names, commands."""
    return token_hex(16)


def new_owner() -> str:
    """Return a name for a visitor, 192 random bits as 48 hexadecimal digits."""
    return token_hex(24)


def is_owner(name: object) -> bool:
    """Return whether this is a name that `new_owner` can have given."""
    return isinstance(name, str) and bool(_OWNER.fullmatch(name))


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime, kept in UTC also where the database knows no time zones."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        if value is None:
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class CleanText(TypeDecorator[str]):
    """Text with what a PostgreSQL text column refuses replaced by U+FFFD.

    That is the character NUL, and halves of surrogate pairs, which UTF-8 cannot express.
    """

    impl = String
    cache_ok = True

    def process_bind_param(self, value: str | None, dialect: Dialect) -> str | None:
        return None if value is None else _without_surrogates(value).replace("\x00", "\ufffd")


class Base(DeclarativeBase):
    """Base of the tables. Constraints have fixed names, so that migrations can refer to them."""

    metadata = MetaData(
        naming_convention={
            "ix": "ix_%(table_name)s_%(column_0_N_name)s",
            "fk": "fk_%(table_name)s_%(column_0_name)s_%(referred_table_name)s",
            "pk": "pk_%(table_name)s",
        }
    )


def _part_of(table: str, **key: Any) -> Mapped[str]:
    """Return the column with the id of what a row is a part of, and goes with."""
    return mapped_column(CleanText(64), ForeignKey(f"{table}.id", ondelete="CASCADE"), **key)


class RunRow(Base):
    """A run. `created` is when it entered this store, which for an imported run is the import.

    `length` counts its events, hence is the next sequence number; `size` is that of their bodies in
    characters; `writer` names the store object that writes them (see `pipelines.store.database`);
    `summary` is a Tally of `pipelines.store.runs`.
    """

    __tablename__ = "runs"

    id: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    owner: Mapped[str] = mapped_column(CleanText(64))
    question: Mapped[str] = mapped_column(CleanText())
    language: Mapped[str] = mapped_column(CleanText(8))
    status: Mapped[str] = mapped_column(CleanText(16))
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    finished: Mapped[datetime | None] = mapped_column(UtcDateTime())
    writer: Mapped[str] = mapped_column(CleanText(64))
    length: Mapped[int]
    size: Mapped[int]
    spec: Mapped[dict[str, Any]] = mapped_column(JSON)
    summary: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (
        Index(None, "owner", "created", "id"),
        Index(None, "status"),
        Index(None, "created"),
    )


class RunLabelRow(Base):
    """The labels of a run; a run without a row has no name, no note and no star.

    They are in their own table, so that shared copies and exports of a run do not contain them.
    """

    __tablename__ = "run_labels"

    run_id: Mapped[str] = _part_of("runs", primary_key=True)
    name: Mapped[str] = mapped_column(CleanText(200))
    note: Mapped[str] = mapped_column(CleanText())
    starred: Mapped[bool]


class RunFacetRow(Base):
    """A value by which a run is found; `kind` is a `pipelines.store.filters` Facet.

    They are written with the run, so that a list never has to read an event.
    """

    __tablename__ = "run_facets"

    run_id: Mapped[str] = _part_of("runs", primary_key=True)
    kind: Mapped[str] = mapped_column(CleanText(16), primary_key=True)
    value: Mapped[str] = mapped_column(CleanText(200), primary_key=True)
    owner: Mapped[str] = mapped_column(CleanText(64))

    __table_args__ = (Index(None, "owner", "kind", "value"),)


class EventRow(Base):
    """An event of a run; `body` holds the fields that are not columns here."""

    __tablename__ = "events"

    run_id: Mapped[str] = _part_of("runs", primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    kind: Mapped[str] = mapped_column(CleanText(32))
    body: Mapped[dict[str, Any]] = mapped_column(JSON)


class ModelRow(Base):
    """A model configuration under the name its owner sees."""

    __tablename__ = "models"

    owner: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    name: Mapped[str] = mapped_column(CleanText(200), primary_key=True)
    spec: Mapped[dict[str, Any]] = mapped_column(JSON)
    saved: Mapped[datetime] = mapped_column(UtcDateTime())

    __table_args__ = (Index(None, "saved"),)


class ProfileRow(Base):
    """Settings of methods under a name; `body` is a `pipelines.store.profiles` Profile."""

    __tablename__ = "profiles"

    owner: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    name: Mapped[str] = mapped_column(CleanText(200), primary_key=True)
    body: Mapped[dict[str, Any]] = mapped_column(JSON)
    saved: Mapped[datetime] = mapped_column(UtcDateTime())


class EvaluationRow(Base):
    """An evaluation; `spec` is a `pipelines.evaluation.plan` EvaluationSpec."""

    __tablename__ = "evaluations"

    id: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    owner: Mapped[str] = mapped_column(CleanText(64))
    name: Mapped[str] = mapped_column(CleanText(200))
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    spec: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (Index(None, "owner", "created"),)


class EvaluationItemRow(Base):
    """An item of an evaluation's data set, at its `position`; `body` is an Item."""

    __tablename__ = "evaluation_items"

    evaluation: Mapped[str] = _part_of("evaluations", primary_key=True)
    position: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    item: Mapped[str] = mapped_column(CleanText())
    body: Mapped[dict[str, Any]] = mapped_column(JSON)


class EvaluationTaskRow(Base):
    """One answer that an evaluation needs: a system on an item, once for each repeat.

    `key` is that of the outcome which answers it, and `done` says whether there is one.
    """

    __tablename__ = "evaluation_tasks"

    evaluation: Mapped[str] = _part_of("evaluations", primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    position: Mapped[int]
    system: Mapped[int]
    repeat: Mapped[int]
    key: Mapped[str] = mapped_column(CleanText(64))
    done: Mapped[bool]

    __table_args__ = (Index(None, "evaluation", "done", "number"),)


class EvaluationAttemptRow(Base):
    """A run that was begun for a task. `spent` is what it took, once that was `counted`."""

    __tablename__ = "evaluation_attempts"

    run: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    evaluation: Mapped[str] = _part_of("evaluations")
    number: Mapped[int]
    counted: Mapped[bool]
    spent: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (Index(None, "evaluation", "counted"), Index(None, "evaluation", "number"))


class OutcomeRow(Base):
    """What a system answered on an item, found by what was asked; never changed.

    `run` is the recorded run; `body` a `pipelines.evaluation.outcomes` Outcome.
    """

    __tablename__ = "outcomes"

    owner: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    key: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    run: Mapped[str] = mapped_column(CleanText(64))
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    body: Mapped[dict[str, Any]] = mapped_column(JSON)


class EvaluationScoresRow(Base):
    """Scores of some tasks of an evaluation, the `block`th ones, computed from their outcomes.

    They can be computed anew: those of another `code` are. `body` maps the number of a task to what
    was computed, see `pipelines.evaluation.scoring`.
    """

    __tablename__ = "evaluation_scores"

    evaluation: Mapped[str] = _part_of("evaluations", primary_key=True)
    block: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    code: Mapped[str] = mapped_column(CleanText(64))
    body: Mapped[dict[str, Any]] = mapped_column(JSON)


class EvaluationJudgeRow(Base):
    """A model that judges the answers of an evaluation; `judge` is the fingerprint of `spec`.

    `spec` is a `pipelines.evaluation.judging.spec` JudgeSpec; `calibration` what people's labels
    say of its verdicts, empty where nobody gave any.
    """

    __tablename__ = "evaluation_judges"

    evaluation: Mapped[str] = _part_of("evaluations", primary_key=True)
    judge: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    spec: Mapped[dict[str, Any]] = mapped_column(JSON)
    calibration: Mapped[dict[str, Any]] = mapped_column(JSON)


class EvaluationJudgementRow(Base):
    """The answer of task `number` is to be judged; `key` is that of the judgement."""

    __tablename__ = "evaluation_judgements"

    evaluation: Mapped[str] = _part_of("evaluations", primary_key=True)
    judge: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    key: Mapped[str] = mapped_column(CleanText(64))


class JudgementRow(Base):
    """What a judge said of an answer, found by what it was asked; never changed.

    `body` is a `pipelines.evaluation.judging.spec` Judgement.
    """

    __tablename__ = "judgements"

    owner: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    key: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    body: Mapped[dict[str, Any]] = mapped_column(JSON)


class JudgingCostRow(Base):
    """What was asked of a judge for one judgement of an evaluation, where it failed too."""

    __tablename__ = "judging_costs"

    id: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    evaluation: Mapped[str] = _part_of("evaluations")
    judge: Mapped[str] = mapped_column(CleanText(64))
    spent: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (Index(None, "evaluation", "judge"),)


INSERT = {"postgresql": postgresql.insert, "sqlite": sqlite.insert}
"""By dialect, the insertion that can do something else where the row is there already."""


def insert_or_replace(
    session: Session, table: type[Base], key: dict[str, Any], values: dict[str, Any]
) -> None:
    """Store a row under its primary key in one statement, in place of the one that is there."""
    kind = INSERT[session.get_bind().dialect.name]
    statement = kind(table).values(**key, **values)
    session.execute(statement.on_conflict_do_update(index_elements=list(key), set_=values))


class ModelStore:
    """The model configurations of every owner, in the database of a RunStore."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def save(self, owner: str, spec: ModelSpec) -> None:
        """Keep `spec` under its name, in place of one of the same name.

        Raises InvalidInputError if the name is empty or too long or if anything in the
        configuration looks like a key.
        """
        if not spec.name.strip() or len(spec.name) > MAX_NAME:
            raise failure("storage.no_name", most=MAX_NAME)
        refuse_keys(spec)
        found = {"spec": to_json(spec), "saved": datetime.now(UTC)}
        with self._database.write() as session:
            insert_or_replace(session, ModelRow, {"owner": owner, "name": spec.name}, found)

    def delete(self, owner: str, name: str) -> None:
        """Delete a configuration. Raises NotFoundError if this owner has none of that name."""
        with self._database.write() as session:
            row = session.get(ModelRow, (owner, name))
            if row is None:
                raise failure("storage.no_model")
            session.delete(row)

    def list(self, owner: str) -> list[ModelSpec]:
        """Return the configurations of `owner`, by name."""
        query = select(ModelRow.spec).where(ModelRow.owner == owner).order_by(ModelRow.name)
        with self._database.read() as session:
            return [ModelSpec.model_validate(spec) for spec in session.scalars(query)]


def to_json(value: Frozen, exclude: set[str] | None = None) -> Any:
    """Return `value` as JSON data, without the fields in `exclude`.

    Infinite and undefined numbers become the strings "inf", "-inf" and "nan": JSON has no such
    numbers, and a float field reads them back from these strings.
    """
    return portable(value.model_dump(mode="json", exclude=exclude))


def portable(value: Any) -> Any:
    """Return JSON data with what not every database and program can hold replaced, as
    `to_json` says.

    That are also halves of surrogate pairs, which UTF-8 cannot express.
    """
    if isinstance(value, str):
        return _without_surrogates(value)
    if isinstance(value, float):
        return value if isfinite(value) else str(value)
    if isinstance(value, list):
        return [portable(item) for item in value]
    if isinstance(value, dict):
        return {portable(name): portable(item) for name, item in value.items()}
    return value


def _without_surrogates(text: str) -> str:
    if text.isascii():
        return text
    return "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)


def refuse_keys(spec: ModelSpec) -> None:
    """Raise InvalidInputError if `spec` carries something that looks like a key.

    Looked at are user and password, query and fragment of the address, and the shapes that
    providers give their keys, wherever they were pasted. The message does not repeat what was
    found.
    """
    if spec.base_url is not None:
        _refuse_in_address(spec.base_url)
    if any(map(looks_like_key, (spec.name, spec.model, spec.base_url or ""))):
        raise failure("storage.key_found", what=phrase("key.looks_like"))


def looks_like_key(text: str) -> bool:
    """Return whether `text` holds something of the shapes that providers give their keys."""
    return bool(_SECRET_VALUE.search(text))


def refuse_keys_in_run(spec: RunSpec) -> None:
    """Call `refuse_keys` for every model of a run, its prompts, and the address of its search."""
    for model in spec.models.values():
        refuse_keys(model)
    refuse_keys_in_prompts(spec.prompts)
    if spec.evidence.base_url is not None:
        # Wikipedia's address may hold the language as a placeholder.
        _refuse_in_address(spec.evidence.base_url.replace("{language}", "en"))


def refuse_keys_in_prompts(wording: Wording) -> None:
    """Raise InvalidInputError if a prompt of `wording` contains something that looks like a key."""
    for (file, language, key), text in own_prompts(wording).items():
        if looks_like_key(text):
            raise failure("prompts.key", prompt=f"{file}/{key} ({language})")


def _refuse_in_address(address: str) -> None:
    try:
        parts = urlsplit(address.strip())
    except ValueError as error:
        raise failure("storage.no_url") from error
    # Without a scheme and a host, a password cannot be distinguished from a path.
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise failure("storage.no_url")
    if "@" in parts.netloc:
        raise failure("storage.key_found", what=phrase("key.user_in_address"))
    for part in (parts.query, parts.fragment):
        fields = parse_qsl(part, keep_blank_values=True)
        if any(_SECRET_NAME.search(name) for name, _ in fields):
            raise failure("storage.key_found", what=phrase("key.in_address"))


# The tables of annotation sessions. Every one of them belongs to a session and goes with it.


class AnnotationSessionRow(Base):
    """A session. `spec` is a `pipelines.annotation.types` SessionSpec.

    `overlap` is how many people label an item, `guidelines` the newest version of the guidelines,
    both as they are now. `seed` decides the order in which each person gets the items. `events`
    counts the events, hence is the next sequence number. `closed` is when it was closed.
    """

    __tablename__ = "annotation_sessions"

    id: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    owner: Mapped[str] = mapped_column(CleanText(64))
    name: Mapped[str] = mapped_column(CleanText(200))
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    closed: Mapped[datetime | None] = mapped_column(UtcDateTime())
    seed: Mapped[str] = mapped_column(CleanText(32))
    overlap: Mapped[int]
    guidelines: Mapped[int]
    events: Mapped[int]
    spec: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (Index(None, "owner", "created"),)


class _OfSession:
    """The first column of the key of what belongs to a session."""

    @declared_attr
    def session(self) -> Mapped[str]:
        return _part_of("annotation_sessions", primary_key=True, sort_order=-1)


class GuidelinesRow(_OfSession, Base):
    """One version of the guidelines, in Markdown; versions count from 1."""

    __tablename__ = "annotation_guidelines"

    version: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    text: Mapped[str] = mapped_column(CleanText())
    created: Mapped[datetime] = mapped_column(UtcDateTime())


class AnnotatorRow(_OfSession, Base):
    """Somebody whose labels the session holds. Numbers count from 0; a name is unique.

    `kind` is "person", "lead" (who adjudicates too) or "imported".
    """

    __tablename__ = "annotators"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    name: Mapped[str] = mapped_column(CleanText(200))
    kind: Mapped[str] = mapped_column(CleanText(16))
    joined: Mapped[datetime] = mapped_column(UtcDateTime())

    __table_args__ = (UniqueConstraint("session", "name", name="uq_annotators_session_name"),)


class LinkRow(Base):
    """A secret link. `digest` is the SHA-256 of its secret, which is stored nowhere.

    `annotator` is whose link it is; None for one with which people join, and for a lead's.
    """

    __tablename__ = "annotation_links"

    id: Mapped[str] = mapped_column(CleanText(32), primary_key=True)
    session: Mapped[str] = _part_of("annotation_sessions")
    role: Mapped[str] = mapped_column(CleanText(16))
    annotator: Mapped[int | None]
    digest: Mapped[str] = mapped_column(CleanText(64))
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    expires: Mapped[datetime | None] = mapped_column(UtcDateTime())
    revoked: Mapped[datetime | None] = mapped_column(UtcDateTime())

    __table_args__ = (Index(None, "session"),)


class FailedLinkRow(Base):
    """A secret that was tried and was wrong; `subject` is the hash of who tried it, or on what."""

    __tablename__ = "annotation_failed_links"

    id: Mapped[str] = mapped_column(CleanText(32), primary_key=True)
    subject: Mapped[str] = mapped_column(CleanText(64))
    at: Mapped[datetime] = mapped_column(UtcDateTime())

    __table_args__ = (Index(None, "subject", "at"), Index(None, "at"))


class AnnotationItemRow(_OfSession, Base):
    """An item to label, at its number from 0; `body` is a `pipelines.annotation.types` ItemBody.

    `key` is the same for the same item in every session. `hidden` is what models said of it, kept
    apart from what annotators get. `gold` is the right label of a control item. `probability` is
    that with which it was drawn, None where it was chosen otherwise. `labels` counts the people
    whose label stands, without control items.

    The rest is kept so that the next item is found by an index, however many there are, see
    `item_order`: `priority` says which items come first (None: it needs nobody now), `place` is its
    place in the order that everybody walks through from a point of their own, `first` and `second`
    name the texts that it is about ("" where there is none).
    """

    __tablename__ = "annotation_items"

    number: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    key: Mapped[str] = mapped_column(CleanText(64))
    task: Mapped[str] = mapped_column(CleanText(16))
    labels: Mapped[int]
    probability: Mapped[float | None]
    gold: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    body: Mapped[dict[str, Any]] = mapped_column(JSON)
    hidden: Mapped[dict[str, Any]] = mapped_column(JSON)
    priority: Mapped[int | None]
    place: Mapped[int]
    first: Mapped[str] = mapped_column(CleanText(32))
    second: Mapped[str] = mapped_column(CleanText(32))

    __table_args__ = (
        UniqueConstraint("session", "key", name="uq_annotation_items_session_key"),
        Index(None, "session", "priority", "place"),
        Index(None, "session", "first"),
        Index(None, "session", "second"),
    )


CONTROL = -1
"""The priority of a control item."""

UNTOUCHED = 1_000_000
"""The priority of an item that nobody has begun: those that somebody has come before it."""


def item_order(key: str, body: dict[str, Any], gold: object) -> dict[str, Any]:
    """Return the columns of a new item by which it is found, see `AnnotationItemRow`."""
    texts = sorted(text_digests(body))
    return {
        "priority": UNTOUCHED if gold is None else CONTROL,
        "place": int.from_bytes(blake2b(key.encode(), digest_size=4).digest(), "big") >> 1,
        "first": texts[0] if texts else "",
        "second": texts[1] if len(texts) > 1 else "",
    }


def text_digests(body: dict[str, Any]) -> set[str]:
    """Return names of the texts that an item is about: two for a comparison."""
    texts = (text for name in ("text", "other") if (text := body.get(name)))
    return {blake2b(text.encode(errors="replace"), digest_size=16).hexdigest() for text in texts}


class ClaimRow(_OfSession, Base):
    """That somebody was given an item, which the key allows once.

    `slot` is which of the item's places (0 to overlap - 1) is taken; the database refuses that two
    people take the same. It is None for control items, and where the place was given back. `state`
    is "open", "labelled", "skipped" or "lost". An open claim whose lease expired loses its slot
    when the next item is sought for somebody else. `revealed`: what models said was shown.
    """

    __tablename__ = "annotation_claims"

    item: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    annotator: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    slot: Mapped[int | None]
    state: Mapped[str] = mapped_column(CleanText(16))
    taken: Mapped[datetime] = mapped_column(UtcDateTime())
    expires: Mapped[datetime] = mapped_column(UtcDateTime())
    revealed: Mapped[bool]

    __table_args__ = (
        UniqueConstraint("session", "item", "slot", name="uq_annotation_claims_session_item_slot"),
        Index(None, "session", "annotator", "state"),
        Index(None, "session", "state", "expires"),
    )


class AnnotationEventRow(_OfSession, Base):
    """Something that somebody did to an item; never changed or deleted.

    `client` is the page's own name of the request, once for each person. `guidelines` is the
    version by which a label was given, `overlap` that of the session at the time, `seconds` the
    active time, `fast` that it was too short, `revealed` that what models said of the item's text
    had been shown before. `run` is the run that was labelled.
    """

    __tablename__ = "annotation_events"

    seq: Mapped[int] = mapped_column(primary_key=True, autoincrement=False)
    item: Mapped[int]
    annotator: Mapped[int]
    client: Mapped[str] = mapped_column(CleanText(64))
    kind: Mapped[str] = mapped_column(CleanText(16))
    at: Mapped[datetime] = mapped_column(UtcDateTime())
    guidelines: Mapped[int]
    overlap: Mapped[int]
    seconds: Mapped[float | None]
    fast: Mapped[bool]
    revealed: Mapped[bool]
    run: Mapped[str] = mapped_column(CleanText(64))
    value: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (
        UniqueConstraint(
            "session", "annotator", "client", name="uq_annotation_events_session_annotator_client"
        ),
        Index(None, "session", "item"),
    )


# The tables of collections and their documents; the files are in the data folder.


class CollectionRow(Base):
    """A collection. `embedder` is a `pipelines.retrieval.embedders` EmbedderSpec."""

    __tablename__ = "collections"

    id: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    owner: Mapped[str] = mapped_column(CleanText(64))
    name: Mapped[str] = mapped_column(CleanText(200))
    created: Mapped[datetime] = mapped_column(UtcDateTime())
    embedder: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (UniqueConstraint("owner", "name", name="uq_collections_owner_name"),)


class CollectionDocumentRow(Base):
    """A document of a collection, the `number`th that was added to it.

    `digest` is that of the file's content, or of the address of a page not fetched yet; `body`
    holds the other fields, see DocumentFacts in `pipelines.store.collections`.
    """

    __tablename__ = "collection_documents"

    id: Mapped[str] = mapped_column(CleanText(64), primary_key=True)
    collection: Mapped[str] = _part_of("collections")
    number: Mapped[int]
    name: Mapped[str] = mapped_column(CleanText())
    digest: Mapped[str] = mapped_column(CleanText(64))
    size: Mapped[int] = mapped_column(BigInteger())
    added: Mapped[datetime] = mapped_column(UtcDateTime())
    state: Mapped[str] = mapped_column(CleanText(16))
    passages: Mapped[int]
    body: Mapped[dict[str, Any]] = mapped_column(JSON)

    __table_args__ = (Index(None, "collection", "number"),)

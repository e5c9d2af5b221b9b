"""Collections and the list of their documents, each collection its owner's alone.

Lists are in the database, because they are changed by several processes and must survive any of
them; what they list is in files of the data folder, because an index is read memory-mapped from
there and originals of many megabytes would make every copy of the database as large. A file is
written completely before its row, and removed after its row. So every listed file exists, and files
without a row, which a killed process leaves behind, can be deleted safely.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Literal, NamedTuple

from pydantic import Field
from sqlalchemy import case, func, select
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from pipelines.base import Frozen, Language
from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.retrieval.embedders import ENGLISH_EMBEDDER, EmbedderSpec
from pipelines.store.database import Database
from pipelines.store.tables import CollectionDocumentRow, CollectionRow, looks_like_key, to_json

MAX_NAME = 80
"""Characters of a collection's name."""

MAX_COLLECTIONS = 50
"""Collections of one owner."""

MAX_DOCUMENTS = 2_000
"""Documents of a collection."""

MAX_BYTES = 2**30
"""Bytes of all files of a collection."""

_NAMES = 500
"""Names that are looked for by one query."""

DocumentState = Literal["address", "stored", "ready", "refused"]
"""What is known of a document. "address": a web page that is not fetched yet. "stored": a file that
is not read yet. "ready": cut into passages. "refused": cannot be used, see `reason`."""


class StoredCollection(Frozen):
    """A collection, with counts over its documents. `created` is in UTC, `size` in bytes.

    `waiting` counts the documents that are not read yet, `refused` those that cannot be used.
    """

    id: str
    name: str
    created: datetime
    embedder: EmbedderSpec
    documents: int = 0
    waiting: int = 0
    refused: int = 0
    passages: int = 0
    size: int = 0


class DocumentFacts(Frozen):
    """What reading a document found.

    `reason` says why it was refused, with the values of `facts`; `remarks` are things to know about
    a document that was read. `pages` counts its sections. `rules` is the version of the rules by
    which it was prepared.
    """

    kind: str = ""
    title: str = ""
    language: Language = "en"
    pages: int = 0
    characters: int = 0
    reason: str = ""
    remarks: tuple[str, ...] = ()
    facts: dict[str, str | int] = Field(default_factory=dict)
    url: str | None = None
    rules: str = ""


class StoredDocument(DocumentFacts):
    """A document of a collection. `size` is that of its file in bytes, `added` is in UTC."""

    id: str
    number: int
    name: str
    digest: str
    size: int
    added: datetime
    state: DocumentState
    passages: int


class NewDocument(Frozen):
    """A document to be added, whose file is in its place already."""

    id: str
    name: str
    digest: str
    size: int
    state: DocumentState = "stored"
    url: str | None = None


class ListedDocuments(NamedTuple):
    """What became of documents that were added: the ids that are new in the list, and those that
    they replaced. `refusal` says why the rest was not added; None where nothing was refused.
    """

    added: frozenset[str]
    replaced: tuple[str, ...]
    refusal: VeriscopeError | None


class CollectionStore:
    """The collections of every owner, in the database of a RunStore. Every method blocks.

    For anyone but its owner a collection does not exist (NotFoundError).
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    def create(self, owner: str, name: str, embedder: EmbedderSpec) -> str:
        """Create an empty collection; return its id. Raises InvalidInputError for its name."""
        name = checked_name(name)
        _refuse_key(embedder)
        collection = token_hex(16)
        row = CollectionRow(
            id=collection,
            owner=owner,
            name=name,
            created=datetime.now(UTC),
            embedder=to_json(embedder),
        )
        with self._database.write() as session:
            query = select(func.count()).where(CollectionRow.owner == owner)
            if (session.scalar(query) or 0) >= MAX_COLLECTIONS:
                raise failure("library.too_many_collections", most=MAX_COLLECTIONS)
            _refuse_taken(session, owner, name)
            session.add(row)
            _flush(session, name)
        return collection

    def of(self, owner: str) -> list[StoredCollection]:
        """Return the collections of `owner`, sorted by name."""
        return self._list(CollectionRow.owner == owner)

    def get(self, owner: str, collection: str) -> StoredCollection:
        """Return one collection. Raises NotFoundError."""
        found = self._list(CollectionRow.owner == owner, CollectionRow.id == collection)
        if not found:
            raise failure("library.no_collection")
        return found[0]

    def named(self, owner: str, name: str) -> StoredCollection | None:
        """Return the collection of that name, None where there is none."""
        found = self._list(CollectionRow.owner == owner, CollectionRow.name == name)
        return found[0] if found else None

    def change(
        self,
        owner: str,
        collection: str,
        *,
        name: str | None = None,
        embedder: EmbedderSpec | None = None,
    ) -> None:
        """Rename a collection, or give it another embedder."""
        if embedder is not None:
            _refuse_key(embedder)
        with self._database.write() as session:
            row = _owned(session, owner, collection)
            if name is not None and (name := checked_name(name)) != row.name:
                _refuse_taken(session, owner, name)
                row.name = name
            if embedder is not None:
                row.embedder = to_json(embedder)
            _flush(session, row.name)

    def delete(self, owner: str, collection: str) -> None:
        """Delete a collection and the list of its documents. Raises NotFoundError."""
        with self._database.write() as session:
            session.delete(_owned(session, owner, collection))

    def add(self, owner: str, collection: str, documents: Sequence[NewDocument]) -> ListedDocuments:
        """Add documents to the list, in one transaction.

        A document replaces one of the same name; one that is listed with the same content is left
        as it is, so that processes which add the same files at once do not undo each other. Those
        before the first that would be more than MAX_DOCUMENTS documents or MAX_BYTES bytes are
        added. Raises NotFoundError for no such collection.
        """
        row = CollectionDocumentRow
        replaced: list[str] = []
        added: set[str] = set()
        refusal: VeriscopeError | None = None
        with self._database.write() as session:
            _owned(session, owner, collection)
            there = _namesakes(session, collection, [one.name for one in documents])
            query = select(
                func.count(), func.coalesce(func.sum(row.size), 0), func.max(row.number)
            ).where(row.collection == collection)
            count, size, last = session.execute(query).one()
            for document in documents:
                former = there.get(document.name)
                if former is not None and _is_same(former, document):
                    continue
                if former is not None:
                    count, size = count - 1, size - former.size
                if count >= MAX_DOCUMENTS:
                    refusal = failure("library.too_many_documents", most=f"{MAX_DOCUMENTS:,}")
                    break
                if size + document.size > MAX_BYTES:
                    refusal = failure("library.too_much", most=f"{MAX_BYTES // 2**20:,}")
                    break
                if former is not None:
                    replaced.append(former.id)
                    session.delete(former)
                    session.flush()
                last = 0 if last is None else last + 1
                new = row(
                    id=document.id,
                    collection=collection,
                    number=last,
                    name=document.name,
                    digest=document.digest,
                    size=document.size,
                    added=datetime.now(UTC),
                    state=document.state,
                    passages=0,
                    body=to_json(DocumentFacts(url=document.url)),
                )
                session.add(new)
                there[document.name] = new
                added.add(document.id)
                count, size = count + 1, size + document.size
        # What was listed and then replaced by a later one of the same name is not there either.
        return ListedDocuments(frozenset(added), tuple(replaced), refusal)

    def digests(self, owner: str, collection: str, names: Sequence[str]) -> dict[str, str]:
        """Return the digests of the documents of these names that were not refused, by name."""
        with self._database.read() as session:
            _owned(session, owner, collection)
            there = _namesakes(session, collection, names)
            return {name: one.digest for name, one in there.items() if one.state != "refused"}

    def documents(self, owner: str, collection: str) -> list[StoredDocument]:
        """Return the documents of a collection in the order in which they were added."""
        row = CollectionDocumentRow
        query = select(row).where(row.collection == collection).order_by(row.number)
        with self._database.read() as session:
            _owned(session, owner, collection)
            return [_document(one) for one in session.scalars(query)]

    def document(self, owner: str, collection: str, document: str) -> StoredDocument:
        """Return one document. Raises NotFoundError."""
        with self._database.read() as session:
            _owned(session, owner, collection)
            return _document(_listed(session, collection, document))

    def update(
        self,
        owner: str,
        collection: str,
        document: str,
        state: DocumentState,
        facts: DocumentFacts,
        *,
        passages: int = 0,
        digest: str | None = None,
        size: int | None = None,
    ) -> None:
        """Store what reading a document found. Raises NotFoundError where it was deleted."""
        with self._database.write() as session:
            _owned(session, owner, collection)
            row = _listed(session, collection, document)
            row.state, row.passages = state, passages
            row.body = to_json(facts)
            row.digest = row.digest if digest is None else digest
            row.size = row.size if size is None else size

    def remove(self, owner: str, collection: str, document: str) -> None:
        """Delete a document from the list. Raises NotFoundError."""
        with self._database.write() as session:
            _owned(session, owner, collection)
            session.delete(_listed(session, collection, document))

    def all_ids(self) -> set[str]:
        """Return the ids of every owner's collections."""
        with self._database.read() as session:
            return set(session.scalars(select(CollectionRow.id)))

    def _list(self, *which: Any) -> list[StoredCollection]:
        row, of = CollectionRow, CollectionDocumentRow

        def counted(*states: DocumentState) -> Any:
            return func.coalesce(func.sum(case((of.state.in_(states), 1), else_=0)), 0)

        query = (
            select(
                row,
                func.count(of.id),
                counted("address", "stored"),
                counted("refused"),
                func.coalesce(func.sum(of.passages), 0),
                func.coalesce(func.sum(of.size), 0),
            )
            .outerjoin(of, of.collection == row.id)
            .where(*which)
            .group_by(row.id)
            .order_by(row.name)
        )
        with self._database.read() as session:
            return [
                StoredCollection(
                    id=found.id,
                    name=found.name,
                    created=found.created,
                    embedder=_embedder_of(found),
                    documents=documents,
                    waiting=waiting,
                    refused=refused,
                    passages=int(passages),
                    size=int(size),
                )
                for found, documents, waiting, refused, passages, size in session.execute(query)
            ]


def new_document_id() -> str:
    """Return an id that no document has: 128 random bits."""
    return token_hex(16)


def checked_name(name: str) -> str:
    """Return the name of a collection without space around it. Raises InvalidInputError."""
    name = " ".join(name.split())
    if not name or len(name) > MAX_NAME or not name.isprintable():
        raise failure("library.no_name", most=MAX_NAME)
    return name


def _embedder_of(row: CollectionRow) -> EmbedderSpec:
    spec = EmbedderSpec.model_validate(row.embedder)
    if spec.kind != "default" or spec.model:
        return spec
    # Before there were two bundled embedders, this was the only one.
    return spec.model_copy(update={"model": ENGLISH_EMBEDDER})


def _refuse_key(embedder: EmbedderSpec) -> None:
    if looks_like_key(f"{embedder.model} {embedder.base_url or ''}"):
        raise failure("storage.key_found", what=phrase("key.looks_like"))


def _refuse_taken(session: Session, owner: str, name: str) -> None:
    row = CollectionRow
    if session.scalar(select(row.id).where(row.owner == owner, row.name == name)) is not None:
        raise failure("library.name_taken", name=name)


def _flush(session: Session, name: str) -> None:
    try:
        session.flush()
    except IntegrityError:
        # Another process took the name at the same moment.
        raise failure("library.name_taken", name=name) from None


def _owned(session: Session, owner: str, collection: str) -> CollectionRow:
    row = session.get(CollectionRow, collection)
    if row is None or row.owner != owner:
        raise failure("library.no_collection")
    return row


def _namesakes(
    session: Session, collection: str, names: Sequence[str]
) -> dict[str, CollectionDocumentRow]:
    """Return the documents of these names that are listed, by name."""
    row = CollectionDocumentRow
    found: dict[str, CollectionDocumentRow] = {}
    for start in range(0, len(names), _NAMES):
        some = names[start : start + _NAMES]
        query = select(row).where(row.collection == collection, row.name.in_(some))
        found.update({one.name: one for one in session.scalars(query)})
    return found


def _is_same(row: CollectionDocumentRow, document: NewDocument) -> bool:
    """Return whether a document is listed already; one that was refused is tried again."""
    # The digest of a page is known when it has been fetched.
    same = document.state == "address" or row.digest == document.digest
    return same and row.state != "refused"


def _listed(session: Session, collection: str, document: str) -> CollectionDocumentRow:
    row = session.get(CollectionDocumentRow, document)
    if row is None or row.collection != collection:
        raise failure("library.no_document")
    return row


def _document(row: CollectionDocumentRow) -> StoredDocument:
    return StoredDocument.model_validate(
        {
            "id": row.id,
            "number": row.number,
            "name": row.name,
            "digest": row.digest,
            "size": row.size,
            "added": row.added,
            "state": row.state,
            "passages": row.passages,
            **row.body,
        }
    )

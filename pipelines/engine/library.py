"""The libraries that runs retrieve from: the sample, folders, and collections that people fill."""

from __future__ import annotations

import asyncio
import shutil
import threading
from collections import OrderedDict
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from hashlib import sha256
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from pipelines.aio import ended, write_bytes
from pipelines.base import SAMPLE_DATA, Language, Passage
from pipelines.engine.indexing import (
    Indexing,
    IndexingJob,
    IndexingProgress,
    IndexingTask,
    document_folder,
    is_waiting,
    original_of,
    progress_of,
)
from pipelines.engine.pool import Loading
from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.jobs import Jobs
from pipelines.models.providers import SWITCH
from pipelines.remote import read_address, usable_key
from pipelines.retrieval.base import Embedder, RetrievalMode, Retriever, Similarity
from pipelines.retrieval.documents import TextRetriever
from pipelines.retrieval.embedders import Embedders, EmbedderSpec
from pipelines.retrieval.indexes import EmbedderSimilarity, LexicalEmbedder, default_embedder
from pipelines.retrieval.library import (
    LibraryIndex,
    Progress,
    build_index,
    build_name,
    current_index,
    withdraw,
)
from pipelines.retrieval.preparing import PreparedDocument
from pipelines.retrieval.qdrant import QdrantRetriever, configured, open_client
from pipelines.retrieval.reading.parsed import MAX_FILE
from pipelines.retrieval.retriever import LibraryRetriever
from pipelines.retrieval.web import WebSearch, build_web_search, read_addresses
from pipelines.retrieval.worker import SECONDS
from pipelines.run.events import EvidenceSpec
from pipelines.store.collections import (
    CollectionStore,
    ListedDocuments,
    NewDocument,
    StoredCollection,
    new_document_id,
)

# People's own collections: their files, their indexing, and searches of them.
#
# What is listed is in the database, see `pipelines.store.collections`; of each collection the data
# folder holds, under `collections/<id>/`:
#
#     documents/<id>/original    the file as it was added
#     documents/<id>/...         what was read of it, see `pipelines.retrieval.preparing`
#     documents/<id>/vectors-*   its vectors, by embedder
#     index/                     the index of all, see `pipelines.retrieval.library`
#
# Processes that share a database share the documents only where they share that folder too.

_ENDED_SOON = 10.0
"""Seconds that `stop` waits for an indexing to end."""

_RESERVE = 2**29
"""Bytes that documents leave free on the disk: the database needs room too."""

_DELETING = "deleting"
"""A file in the folder of a collection that is being deleted."""

MODES: tuple[RetrievalMode, ...] = ("bm25", "dense", "hybrid")


class Added(NamedTuple):
    """A file that was stored; `id` None where the collection holds the same file already."""

    name: str
    id: str | None


class SearchOutcome(NamedTuple):
    """What a search found, or why it could not search."""

    passages: list[Passage]
    error: VeriscopeError | None = None


class Collections:
    """The collections of every owner. Every method blocks, and may be called in any thread.

    `folder` is where their files are. With `public_only`, pages are fetched from the public
    internet alone. A file may be read for `seconds`.
    """

    def __init__(
        self,
        store: CollectionStore,
        folder: Path,
        embedders: Embedders,
        *,
        public_only: bool = False,
        seconds: float = SECONDS,
    ) -> None:
        self.store = store
        self.embedders = embedders
        self._folder = folder
        self._public_only = public_only
        self._seconds = seconds
        self._open: dict[str, tuple[str | None, LibraryIndex | None]] = {}
        # Reading and embedding keep all cores busy: one collection after the other.
        self._jobs: Jobs[IndexingProgress, None] = Jobs(in_turn=True)

    # Collections

    def create(self, owner: str, name: str, embedder: EmbedderSpec | None = None) -> str:
        """Create an empty collection, and return its id. Raises InvalidInputError."""
        embedder = self.embedders.settled(embedder or EmbedderSpec())
        self.embedders.check(embedder)
        return self.store.create(owner, name, embedder)

    def change(
        self,
        owner: str,
        collection: str,
        *,
        name: str | None = None,
        embedder: EmbedderSpec | None = None,
    ) -> None:
        """Rename a collection, or change its embedder.

        With another embedder it has to be indexed again; until then it is searched by words.
        """
        if embedder is not None:
            embedder = self.embedders.settled(embedder)
            self.embedders.check(embedder)
        if embedder is not None and embedder != self.store.get(owner, collection).embedder:
            self.stop(owner, collection)
        self.store.change(owner, collection, name=name, embedder=embedder)

    def delete(self, owner: str, collection: str) -> None:
        """Delete a collection with everything in it."""
        self.stop(owner, collection)
        place = self._place(collection)
        mark = place / _DELETING
        with suppress(OSError):
            # If this process is killed now, the next one ends what was begun.
            mark.touch()
        try:
            self.store.delete(owner, collection)
        except VeriscopeError:
            mark.unlink(missing_ok=True)
            raise
        self._open.pop(collection, None)
        shutil.rmtree(place, ignore_errors=True)

    # Documents

    def add(self, owner: str, collection: str, name: str, data: bytes) -> Added:
        """Store a file; when this returns it is on the disk, and listed.

        A document of the same name is replaced, one with the same content is left as it is. Raises
        InvalidInputError for one that is too large.
        """
        (added,) = self.add_all(owner, collection, [(name, lambda: data)])
        return added

    def add_all(
        self, owner: str, collection: str, files: Sequence[tuple[str, Callable[[], bytes]]]
    ) -> list[Added]:
        """Store files, each with what reads it, as `add` does, and list them in one transaction.

        Where one of them cannot be read or stored, those before it are there when its error is
        raised.
        """
        named = [(document_name(name), read) for name, read in files]
        known = self.store.digests(owner, collection, [name for name, _ in named])
        given: list[NewDocument] = []
        new: list[NewDocument] = []
        problem: Exception | None = None
        try:
            for name, read in named:
                data = read()
                document = self._checked(name, data)
                if known.get(name) != document.digest:
                    self._keep_file(collection, document, data)
                    new.append(document)
                given.append(document)
        except Exception as error:
            problem = error
        added = self._add_to_list(owner, collection, new, problem)
        return [Added(one.name, one.id if one.id in added else None) for one in given]

    def _checked(self, name: str, data: bytes) -> NewDocument:
        """Return a file as a document. Raises VeriscopeError where there is no room for it."""
        if len(data) > MAX_FILE:
            raise failure("library.file_too_large", file=name, most=MAX_FILE // 2**20)
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if shutil.disk_usage(self._folder).free < _RESERVE + len(data):
            raise failure("library.not_kept", file=name, reason=phrase("detail.disk_nearly_full"))
        digest = sha256(data).hexdigest()
        return NewDocument(id=new_document_id(), name=name, digest=digest, size=len(data))

    def _keep_file(self, collection: str, document: NewDocument, data: bytes) -> None:
        folder = document_folder(self._place(collection), document.id)
        try:
            folder.mkdir(mode=0o700, parents=True)
            write_bytes(original_of(self._place(collection), document.id), data)
        except OSError as error:
            shutil.rmtree(folder, ignore_errors=True)
            reason = error.strerror or type(error).__name__
            raise failure("library.not_kept", file=document.name, reason=reason) from error

    def _add_to_list(
        self,
        owner: str,
        collection: str,
        new: Sequence[NewDocument],
        problem: Exception | None = None,
    ) -> frozenset[str]:
        """List documents and return the ids that are new in the list; raises `problem` then.

        The files of those that were not listed are removed.
        """
        listed = ListedDocuments(frozenset(), (), None)
        try:
            listed = self.store.add(owner, collection, new)
        finally:
            for one in new:
                if one.id not in listed.added:
                    folder = document_folder(self._place(collection), one.id)
                    shutil.rmtree(folder, ignore_errors=True)
        self._forget(collection, listed.replaced)
        if problem := problem or listed.refusal:
            raise problem
        return listed.added

    def add_addresses(self, owner: str, collection: str, text: str) -> list[Added]:
        """List pages to be fetched when the collection is indexed: one address a line.

        Those that are listed and were not refused are left as they are.
        """
        new: list[NewDocument] = []
        for url in read_addresses(text):
            document, digest = new_document_id(), sha256(url.encode()).hexdigest()
            new.append(
                NewDocument(id=document, name=url, digest=digest, size=0, state="address", url=url)
            )
        added = self._add_to_list(owner, collection, new)
        return [Added(one.name, one.id if one.id in added else None) for one in new]

    def remove(self, owner: str, collection: str, document: str) -> None:
        """Delete a document. From now on no search finds it: the index is made anew first."""
        self.store.remove(owner, collection, document)
        self._forget(collection, [document])

    def document(self, owner: str, collection: str, document: str) -> PreparedDocument:
        """Return what was read of a document; raises NotFoundError for none or a damaged one."""
        self.store.document(owner, collection, document)
        try:
            return PreparedDocument(document_folder(self._place(collection), document))
        except (OSError, ValueError):
            raise failure("library.no_document") from None

    # Indexing

    def index(self, owner: str, collection: str, key: str | None = None) -> IndexingJob:
        """Start or continue indexing; returns the job that is at it where there is one.

        `key` is for the embedding service.
        """
        stored = self.store.get(owner, collection)
        known = self._jobs.get(collection)
        if known is not None and known.going_on:
            return known
        task = IndexingTask(
            owner=owner,
            collection=collection,
            name=stored.name,
            folder=self._place(collection),
            embedder=self.embedders.get(stored.embedder, key),
            identity=self.embedders.identity(stored.embedder),
            public_only=self._public_only,
            seconds=self._seconds,
        )
        return self._jobs.start(
            collection, lambda job: Indexing(job, task, self.store).run(), IndexingProgress()
        )

    def stop(self, owner: str, collection: str) -> None:
        """Stop this process's indexing of a collection, if any, and wait until it has ended.

        It waits `_SOON` seconds at most: a download or a slow service cannot be interrupted.
        """
        self.store.get(owner, collection)
        job = self._jobs.get(collection)
        if job is not None:
            job.stop()
            job.wait(_ENDED_SOON)

    def progress(self, owner: str, collection: str) -> IndexingProgress | None:
        """Return how far this process's indexing is, or how its last one ended; None for none."""
        self.store.get(owner, collection)
        job = self._jobs.get(collection)
        return None if job is None else progress_of(job)

    def is_current(self, owner: str, collection: str) -> bool:
        """Return whether the index holds what the collection does, by its embedder."""
        stored = self.store.get(owner, collection)
        documents = self.store.documents(owner, collection)
        if any(map(is_waiting, documents)):
            return False
        ready = [one.id for one in documents if one.state == "ready"]
        index = self._index(collection)
        if index is None:
            return not ready
        held = [entry.id for entry in index.manifest.documents]
        identity = self.embedders.identity(stored.embedder)
        return held == ready and index.manifest.embedder == identity

    def build(self, collection: str) -> str | None:
        """Return the name of the index in use, another after every build; None without one."""
        return build_name(self._place(collection) / "index")

    # Searching

    def searchable(self, owner: str) -> list[StoredCollection]:
        """Return the collections that have an index."""
        return [one for one in self.store.of(owner) if build_name(self._place(one.id) / "index")]

    def evidence(self, owner: str, collection: str, mode: RetrievalMode) -> EvidenceSpec:
        """Return the collection as it is now, as the evidence of a run."""
        stored = self.store.get(owner, collection)
        return EvidenceSpec(
            library=stored.name, mode=mode, collection=collection, edition=self._edition(stored)
        )

    def pinned(self, evidence: EvidenceSpec, owner: str) -> EvidenceSpec:
        """Return the evidence with what a run records of it.

        Raises NotFoundError for a collection that is not this owner's, and InvalidInputError for
        one that is not indexed, or not what it was when the evidence was chosen.
        """
        if evidence.collection is None:
            return evidence
        edition = self._edition(self.store.get(owner, evidence.collection))
        if evidence.edition and evidence.edition != edition:
            raise failure("library.changed", name=evidence.library)
        return evidence.model_copy(update={"edition": edition})

    def retriever(self, evidence: EvidenceSpec, owner: str, key: str | None = None) -> Retriever:
        """Return what searches a collection, which is looked for when it is first searched."""
        return _CollectionRetriever(self, evidence, owner, key)

    def open(
        self, owner: str, collection: str, mode: RetrievalMode, key: str | None = None
    ) -> LibraryRetriever:
        """Return a search of the index; raises NotFoundError, and InvalidInputError for none."""
        stored = self.store.get(owner, collection)
        index = self._index(collection)
        if index is None:
            raise failure("library.not_indexed", name=stored.name)
        embedder = self.embedders.get(stored.embedder, key)
        if index.manifest.embedder != self.embedders.identity(stored.embedder):
            # Vectors of the embedder before, until the collection is indexed again.
            index, embedder = replace(index, dense=None), None
        return LibraryRetriever(replace(index, embedder=embedder), mode)

    async def search(
        self, owner: str, collection: str, query: str, k: int, key: str | None = None
    ) -> dict[RetrievalMode, SearchOutcome]:
        """Return the first `k` passages by words, by meaning and by both, each by itself."""
        found: dict[RetrievalMode, SearchOutcome] = {}
        for mode in MODES:
            try:
                retriever = await asyncio.to_thread(self.open, owner, collection, mode, key)
                found[mode] = SearchOutcome(await retriever.search(query, k))
            except VeriscopeError as error:
                found[mode] = SearchOutcome([], error)
        return found

    def reads(self, evidence: EvidenceSpec, owner: str, language: Language) -> bool:
        """Return whether passages in `language` have vectors in the collection of `evidence`."""
        if evidence.collection is None:
            return False
        try:
            retriever = self.open(owner, evidence.collection, "dense")
        except VeriscopeError:
            return False
        return language in retriever.languages

    def close(self) -> None:
        """Stop every indexing; each can be continued."""
        self._jobs.clear(_ENDED_SOON)

    def sweep(self) -> None:
        """Delete what is left of collections whose deletion was begun and not ended.

        Others stay, listed here or not: the folder may belong to several databases.
        """
        begun = [mark.parent for mark in self._folder.glob(f"*/{_DELETING}")]
        if not begun:
            return
        listed = self.store.all_ids()
        for place in begun:
            if place.name not in listed:
                shutil.rmtree(place, ignore_errors=True)

    def _place(self, collection: str) -> Path:
        return self._folder / collection

    def _index(self, collection: str) -> LibraryIndex | None:
        target = self._place(collection) / "index"
        build = build_name(target)
        known = self._open.get(collection)
        if known is None or known[0] != build or build is None:
            known = self._open[collection] = build, current_index(target)
        return known[1]

    def _edition(self, stored: StoredCollection) -> str:
        index = self._index(stored.id)
        if index is None:
            raise failure("library.not_indexed", name=stored.name)
        parts = [index.manifest.rules, index.manifest.embedder or ""]
        parts += [f"{entry.id} {entry.digest}" for entry in index.manifest.documents]
        return sha256("\n".join(parts).encode()).hexdigest()[:16]

    def _forget(self, collection: str, documents: Sequence[str]) -> None:
        """Forget documents that were deleted: no search finds them any more, and their files go."""
        if not documents:
            return
        index = self._index(collection)
        if index and any(entry.id in documents for entry in index.manifest.documents):
            withdraw(self._place(collection) / "index")
        for document in documents:
            folder = document_folder(self._place(collection), document)
            shutil.rmtree(folder, ignore_errors=True)


class _CollectionRetriever(Retriever):
    """Opened by the first search: a method that does not search never waits."""

    def __init__(
        self, collections: Collections, evidence: EvidenceSpec, owner: str, key: str | None
    ) -> None:
        self.name = evidence.library
        self._collections = collections
        self._evidence = evidence
        self._owner = owner
        self._key = key
        self._opened: LibraryRetriever | None = None

    async def search(self, query: str, k: int) -> list[Passage]:
        if self._opened is None:
            evidence = self._evidence
            assert evidence.collection is not None
            self._opened = await asyncio.to_thread(
                self._collections.open, self._owner, evidence.collection, evidence.mode, self._key
            )
            self.name = self._opened.name
        return await self._opened.search(query, k)


def document_name(name: str) -> str:
    """Return the name of a document: of a path its parts, without those that lead elsewhere."""
    parts = PurePosixPath(name.replace("\\", "/")).parts
    kept = [part for part in parts if part not in ("/", "..", ".")]
    joined = "/".join(kept) or "file"
    clean = "".join(one if one.isprintable() else "\ufffd" for one in joined)
    return clean[-300:]


SAMPLE_LIBRARY = SAMPLE_DATA / "library"
"""The articles this project ships, known as the library "sample"."""

_MOST_SEARCHES = 50
"""Searches of the web that are kept, each with its connections: visitors bring ever new keys."""

_SOON = 0.5
"""Seconds that closing waits for an index that is being built."""


class _ClosedError(Exception):
    """Nobody waits for the index any more."""


class _OpenedBySearching(Retriever):
    """A library's retriever before its index is open: a method that does not search never waits."""

    def __init__(self, evidence: EvidenceSpec, libraries: Libraries) -> None:
        self.name = evidence.library
        self._evidence = evidence
        self._libraries = libraries

    async def search(self, query: str, k: int) -> list[Passage]:
        retriever = await self._libraries.retriever(self._evidence)
        self.name = retriever.name
        return await retriever.search(query, k)


class Libraries:
    """Libraries by name. `indexes` is where their indexes are kept.

    `find_embedder` gives what makes vectors, or None to search by words alone. Without
    `any_address`, searches of the web are made at their public addresses alone.
    """

    def __init__(
        self,
        indexes: Path,
        folders: dict[str, Path] | None = None,
        find_embedder: Callable[[], Embedder | None] = default_embedder,
        *,
        any_address: bool = True,
    ) -> None:
        self._indexes = indexes
        self._any_address = any_address
        self._find_embedder = find_embedder
        self._folders = {"sample": SAMPLE_LIBRARY} | (folders or {})
        self._open: dict[str, LibraryIndex] = {}
        self._lock = asyncio.Lock()
        self._loading: dict[str, Loading] = {}
        self._opening: set[asyncio.Task[None]] = set()
        self._closing = threading.Event()
        self.collections: Collections | None = None
        """The owners' own ones, where the service has any."""
        self._qdrant: dict[tuple[str, str | None], Any] = {}
        self._web: OrderedDict[tuple[str, str | None, str | None], WebSearch] = OrderedDict()

    def own(self, store: CollectionStore, folder: Path) -> Collections:
        """Return the owners' collections that `store` lists, with their files in `folder`."""
        public_only = not self._any_address
        embedders = Embedders(self._find_embedder, public_only=public_only, switch=SWITCH)
        self.collections = Collections(store, folder, embedders, public_only=public_only)
        return self.collections

    def for_another_loop(self) -> Libraries:
        """Return the same libraries for another event loop; those that are open are shared."""
        other = Libraries(
            self._indexes, self._folders, self._find_embedder, any_address=self._any_address
        )
        other._open.update(self._open)
        other.collections = self.collections
        return other

    @property
    def names(self) -> list[str]:
        """Every library that can be chosen."""
        return list(self._folders)

    def folder(self, name: str) -> Path:
        """Return the folder of the library of that name. Raises NotFoundError."""
        if name not in self._folders:
            raise failure("library.unknown", name=name)
        return self._folders[name]

    def loading(self) -> list[Loading]:
        """Return what is being indexed right now; safe to call from any thread."""
        return list(self._loading.values())

    def search_in(
        self, evidence: EvidenceSpec, key: str | None = None, *, owner: str = ""
    ) -> Retriever:
        """Return what searches the chosen evidence; a library is opened by the first search.

        `key` is for a search of the web that needs one, or the embedding service of a collection,
        which must be the `owner`'s. Raises NotFoundError at once for an unknown library, and
        InvalidInputError for a given text without a word, or an address that is not allowed.
        """
        if evidence.source == "given":
            return TextRetriever(evidence.text)
        if evidence.source == "library" and evidence.collection is not None:
            return self._own().retriever(evidence, owner, key)
        if evidence.source == "library":
            self.folder(evidence.library)
            return _OpenedBySearching(evidence, self)
        ours = configured() if evidence.source == "qdrant" else None
        is_ours = ours is not None and ours.url == evidence.base_url
        if evidence.base_url is not None and not self._any_address and not is_ours:
            raise failure("restricted.address", switch=SWITCH)
        if evidence.source == "qdrant":
            return self._in_qdrant(evidence, key)
        # One for all runs with the same key: it bounds how much is asked at the same time.
        service = (evidence.source, evidence.base_url, key)
        if service not in self._web:
            self._web[service] = build_web_search(
                evidence.source, key=key, base_url=evidence.base_url
            )
        self._web.move_to_end(service)
        while len(self._web) > _MOST_SEARCHES:
            # A run that uses it keeps it; its connections go with the last of these.
            self._web.popitem(last=False)
        return self._web[service]

    def _in_qdrant(self, evidence: EvidenceSpec, key: str | None) -> Retriever:
        """Return a search of a Qdrant server, with one client for all runs with the same key."""
        example = "http://localhost:6333"
        address = read_address(
            evidence.base_url or "", example=example, what=phrase("server.qdrant")
        )
        known = configured()
        if key is None and known is not None and known.url == address.url:
            # The key of the environment is sent to the server of the environment alone.
            key = known.key
        server = address.url, key
        if server not in self._qdrant:
            self._qdrant[server] = open_client(address.url, usable_key(key, "Qdrant"))
        return QdrantRetriever(
            self._qdrant[server], evidence.library, evidence.mode, self._find_embedder()
        )

    def open_soon(self, evidence: EvidenceSpec) -> asyncio.Task[None]:
        """Open the library of `evidence`, if it is one, while other things are done."""

        async def open_it() -> None:
            # Errors are ignored here; the first search raises them again.
            if evidence.source == "library" and evidence.collection is None:
                with suppress(VeriscopeError, _ClosedError):
                    await self.retriever(evidence)

        task = asyncio.create_task(open_it())
        self._opening.add(task)
        task.add_done_callback(self._opening.discard)
        return task

    async def aclose(self) -> None:
        """End what is being indexed, and close the connections of every search of the web.

        What cannot be ended soon, such as the import of PyTorch, goes on by itself: it ends before
        anything is written.
        """
        self._closing.set()
        if self._opening:
            await asyncio.wait(self._opening, timeout=_SOON)
        await ended(*self._opening)
        while self._web:
            await self._web.popitem()[1].aclose()
        while self._qdrant:
            await self._qdrant.popitem()[1].close()

    async def dense_search(
        self, evidence: EvidenceSpec, language: Language, key: str | None = None, *, owner: str = ""
    ) -> Retriever | None:
        """Return a search of the library by vectors, None where there are none in `language`."""
        if evidence.collection is not None:
            own = self._own()
            if not await asyncio.to_thread(own.reads, evidence, owner, language):
                return None
            return own.retriever(evidence.model_copy(update={"mode": "dense"}), owner, key)
        if evidence.source != "library" or self._embedder(language) is None:
            # Of what a Qdrant server holds it is known only when it is asked.
            return None
        return _OpenedBySearching(evidence.model_copy(update={"mode": "dense"}), self)

    def similarity(self, language: Language) -> Similarity:
        """Return what compares texts in `language`: by meaning with an embedder, else by words."""
        return EmbedderSimilarity(self._embedder(language) or LexicalEmbedder())

    def _embedder(self, language: Language) -> Embedder | None:
        embedder = self._find_embedder()
        return embedder if embedder is not None and language in embedder.languages else None

    async def retriever(self, evidence: EvidenceSpec) -> Retriever:
        """Return the library's retriever; its index is built or updated at first use."""
        folder = self.folder(evidence.library)
        async with self._lock:
            if evidence.library not in self._open:
                index = await asyncio.to_thread(self._build, evidence.library, folder)
                self._open[evidence.library] = index
        return LibraryRetriever(self._open[evidence.library], evidence.mode)

    async def index(
        self, name: str, *, rebuild: bool = False, progress: Progress | None = None
    ) -> LibraryIndex:
        """Bring the index of a library up to date, or rebuild it."""
        folder = self.folder(name)
        async with self._lock:
            self._open.pop(name, None)
            target, embedder = self._indexes / name, self._find_embedder()
            tell = self._until_closed(progress or (lambda done, total: None))
            return await asyncio.to_thread(
                build_index, folder, target, embedder, tell, rebuild=rebuild
            )

    def _until_closed(self, progress: Progress) -> Progress:
        """Return `progress`, which ends building an index where nobody waits for it any more."""

        def tell(done: int, total: int) -> None:
            if self._closing.is_set():
                raise _ClosedError
            progress(done, total)

        return tell

    def _own(self) -> Collections:
        if self.collections is None:
            raise failure("library.no_collection")
        return self.collections

    def _build(self, name: str, folder: Path) -> LibraryIndex:
        def progress(done: int, total: int) -> None:
            self._loading[name] = Loading(name, "index", done / total if total else 1.0)

        progress(0, 0)
        try:
            embedder = self._find_embedder()
            tell = self._until_closed(progress)
            return build_index(folder, self._indexes / name, embedder, progress=tell)
        finally:
            self._loading.pop(name, None)

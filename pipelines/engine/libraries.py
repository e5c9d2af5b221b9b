"""The libraries that can be searched, each indexed when it is first asked for."""

from __future__ import annotations

import asyncio
import threading
from collections import OrderedDict
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from pipelines.concurrency import ended
from pipelines.engine.collections import Collections
from pipelines.engine.pool import Loading
from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.models.restricted import SWITCH
from pipelines.paths import SAMPLE_DATA
from pipelines.remote.address import read_address, usable_key
from pipelines.retrieval.base import Embedder, Retriever, Similarity
from pipelines.retrieval.bm25 import LexicalEmbedder
from pipelines.retrieval.dense import EmbedderSimilarity, default_embedder
from pipelines.retrieval.embedders import Embedders
from pipelines.retrieval.library import (
    LibraryIndex,
    Progress,
    build_index,
)
from pipelines.retrieval.passages import TextRetriever
from pipelines.retrieval.qdrant import QdrantRetriever, configured, open_client
from pipelines.retrieval.retriever import LibraryRetriever
from pipelines.retrieval.web.base import WebSearch
from pipelines.retrieval.web.providers import build_web_search
from pipelines.run.spec import EvidenceSpec
from pipelines.store.collections import CollectionStore
from pipelines.types import Language, Passage

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
        """Return the same libraries for use on another event loop; those that are open
        are shared.
        """
        other = Libraries(
            self._indexes,
            self._folders,
            self._find_embedder,
            any_address=self._any_address,
        )
        other._open.update(self._open)
        other.collections = self.collections
        return other

    @property
    def names(self) -> list[str]:
        """Every library that can be chosen."""
        return list(self._folders)

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
            self._folder(evidence.library)
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
        """Return a search of a Qdrant server, with one client for all runs that have the
        same key.
        """
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
        self,
        evidence: EvidenceSpec,
        language: Language,
        key: str | None = None,
        *,
        owner: str = "",
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
        """Return what compares texts in `language`: by meaning where an embedder reads it,
        else words.
        """
        return EmbedderSimilarity(self._embedder(language) or LexicalEmbedder())

    def _embedder(self, language: Language) -> Embedder | None:
        embedder = self._find_embedder()
        return embedder if embedder is not None and language in embedder.languages else None

    async def retriever(self, evidence: EvidenceSpec) -> Retriever:
        """Return the library's retriever; its index is built, or brought up to date, at
        first use.
        """
        folder = self._folder(evidence.library)
        async with self._lock:
            if evidence.library not in self._open:
                index = await asyncio.to_thread(self._build, evidence.library, folder)
                self._open[evidence.library] = index
        return LibraryRetriever(self._open[evidence.library], evidence.mode)

    async def index(
        self, name: str, *, rebuild: bool = False, progress: Progress | None = None
    ) -> LibraryIndex:
        """Bring the index of a library up to date, or rebuild it."""
        folder = self._folder(name)
        async with self._lock:
            self._open.pop(name, None)
            target, embedder = self._indexes / name, self._find_embedder()
            tell = self._until_closed(progress or (lambda done, total: None))
            return await asyncio.to_thread(
                build_index, folder, target, embedder, tell, rebuild=rebuild
            )

    def _until_closed(self, progress: Progress) -> Progress:
        """Return `progress`, which ends the building of an index where nobody waits for it
        any more.
        """

        def tell(done: int, total: int) -> None:
            if self._closing.is_set():
                raise _ClosedError
            progress(done, total)

        return tell

    def _own(self) -> Collections:
        if self.collections is None:
            raise failure("library.no_collection")
        return self.collections

    def _folder(self, name: str) -> Path:
        if name not in self._folders:
            raise failure("library.unknown", name=name)
        return self._folders[name]

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

"""What all web searches share: queries are trimmed, finds become ranked passages."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Iterable
from hashlib import sha256
from typing import ClassVar, NamedTuple
from urllib.parse import urlsplit

from pipelines.retrieval.base import Retriever
from pipelines.retrieval.web.errors import required_key
from pipelines.retrieval.web.http import Sleep, WebClient
from pipelines.types import Passage

__all__ = ["USER_AGENT", "Find", "WebSearch", "one_line", "web_address"]

USER_AGENT = "Veriscope/0.1 (open-source workbench on language-model hallucinations)"
"""How the searches introduce themselves, as services ask of programs."""


class Find(NamedTuple):
    """Something a service found. `kind` tells its finds apart, such as "organic"."""

    kind: str
    title: str
    text: str
    url: str | None


class WebSearch(Retriever):
    """A search service on the web.

    Services report no scores, so a passage's `score` is the reciprocal of its rank. Its `source` is
    the service and the kind of find ("serper:organic"), its `id` a hash of address and text: the
    same find has the same id in every search. `base_url` replaces the service's own address.
    Raises InvalidInputError for a `base_url` that is none, and for a service that needs a key
    MissingKeyError, or AuthenticationError for one that cannot be a key.
    """

    id: ClassVar[str]
    title: ClassVar[str]
    default_url: ClassVar[str]
    needs_key: ClassVar[bool] = False
    user_agent: ClassVar[str] = USER_AGENT
    longest_query: ClassVar[int]
    """Characters of a query that the service takes; what is longer is cut between words."""

    def __init__(
        self,
        *,
        key: str | None = None,
        base_url: str | None = None,
        timeout: float = 20.0,
        sleep: Sleep = asyncio.sleep,
    ) -> None:
        self.name = self.title
        self._key = required_key(key, self.title) if self.needs_key else None
        self._base_url = (base_url or self.default_url).strip().rstrip("/")
        self._client = WebClient(
            self.title,
            self._base_url,
            key=self._key,
            user_agent=self.user_agent,
            timeout=timeout,
            sleep=sleep,
        )

    async def search(self, query: str, k: int) -> list[Passage]:
        """At most `k` passages, best first; none, and no request, for an empty query."""
        query = _trimmed(query, self.longest_query)
        if k <= 0 or not query:
            return []
        return self._ranked(await self.find(query, k))

    @abstractmethod
    async def find(self, query: str, k: int) -> list[Find]:
        """What the service finds for a trimmed `query`, best first; `k` is at least 1."""

    async def aclose(self) -> None:
        """Close the connections opened in the running event loop."""
        await self._client.aclose()

    def _ranked(self, finds: Iterable[Find]) -> list[Passage]:
        passages: dict[str, Passage] = {}
        for find in finds:
            digest = sha256(f"{find.url or ''}\n{find.text}".encode()).hexdigest()[:16]
            rank = len(passages) + 1
            passages.setdefault(
                digest,
                Passage(
                    id=f"{self.id}:{digest}",
                    title=find.title,
                    text=find.text,
                    source=f"{self.id}:{find.kind}",
                    url=find.url,
                    end=len(find.text),
                    score=1 / rank,
                    rank=rank,
                ),
            )
        return list(passages.values())


def one_line(text: str | None) -> str:
    """`text` with every run of white space made one space; empty for None."""
    return " ".join((text or "").split())


def web_address(link: str | None) -> str | None:
    """`link` if it is an absolute http(s) address, else None."""
    try:
        parts = urlsplit(link or "")
    except ValueError:
        return None
    return link if parts.scheme in ("http", "https") and parts.netloc else None


def _trimmed(query: str, longest: int) -> str:
    # Half a surrogate pair, which a model may write, cannot be sent.
    query = one_line(query.encode("utf-8", "ignore").decode())
    if len(query) <= longest:
        return query
    # Chinese has no spaces to cut at.
    head, space, _ = query[: longest + 1].rpartition(" ")
    return head if space else query[:longest]

"""What all web searches share: bounded requests, typed errors, and finds as ranked passages."""

from __future__ import annotations

import asyncio
import json
from abc import abstractmethod
from collections.abc import Callable, Iterable, Mapping
from hashlib import sha256
from http.cookiejar import CookieJar, DefaultCookiePolicy
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar
from urllib.parse import urlsplit
from weakref import WeakKeyDictionary

import httpx2

from pipelines.error_words import Fact, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.remote.address import read_address, usable_key
from pipelines.remote.failures import (
    CUT_OFF,
    connection_failure,
    later,
    retry_after,
    server_words,
    showable,
)
from pipelines.remote.retry import RetryPolicy, Sleep, not_again
from pipelines.retrieval.base import Retriever
from pipelines.types import Passage

USER_AGENT = "Veriscope/0.1 (open-source workbench on language-model hallucinations)"
"""The User-Agent of the searches: services ask programs to name themselves."""

LONGEST_REPLY = 2**20
"""Bytes of an answer, decompressed, that are read before it is given up."""

_AT_ONCE = 4
_CONNECT_SECONDS = 10.0
_MAX_REDIRECTS = 3

T = TypeVar("T")


class Find(NamedTuple):
    """Something a service found. `kind` is the service's own, such as "organic"."""

    kind: str
    title: str
    text: str
    url: str | None


class Reply(NamedTuple):
    """An answer with a status of success."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class WebSearch(Retriever):
    """A search service on the web, asked at most four times at once.

    Services report no scores, so a passage's `score` is the reciprocal of its rank. Its `source` is
    the service and the kind of find ("serper:organic"), its `id` a hash of address and text: the
    same find has the same id in every search. `base_url` replaces the service's own address.
    Raises InvalidInputError for a `base_url` that is none, and for a service that needs a key
    MissingKeyError, or AuthenticationError for one that cannot be a key.

    Cancelling a search ends its request. A retryable failure is tried again up to twice, after
    about 1 and then 2 seconds or as long as the service asks for, if that is no more than 30;
    `sleep` does the waiting. `timeout` is in seconds and bounds one attempt as a whole. No cookies
    are kept. With a key redirects are not followed, as the key would be sent along; without, at
    most three are. The environment's proxy is used except for an address on this machine.
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
        self._key = usable_key(key, self.title) if self.needs_key else None
        self._address = read_address(
            base_url or self.default_url,
            what=phrase("server.search"),
            example="https://example.com",
            placeholder="{language}",
        )
        if self.needs_key and self._key is None:
            raise self.error("no_key")
        self._timeout = timeout
        self._retry = RetryPolicy(attempts=3, pause=1.0, sleep=sleep)
        # A connection belongs to the event loop it was opened in, and so does a semaphore.
        self._opened = WeakKeyDictionary[
            asyncio.AbstractEventLoop, tuple[httpx2.AsyncClient, asyncio.Semaphore]
        ]()

    async def search(self, query: str, k: int) -> list[Passage]:
        """Return at most `k` passages, best first; none, and no request, for an empty query."""
        query = _trimmed(query, self.longest_query)
        if k <= 0 or not query:
            return []
        return self._ranked(await self.find(query, k))

    @abstractmethod
    async def find(self, query: str, k: int) -> list[Find]:
        """Return what the service finds for a trimmed `query`, best first; `k` is at least 1."""

    async def aclose(self) -> None:
        """Close the connections opened in the running event loop; another search opens new ones."""
        if opened := self._opened.pop(asyncio.get_running_loop(), None):
            await opened[0].aclose()

    async def ask(
        self,
        method: Literal["GET", "POST"],
        path: str,
        read: Callable[[Reply], T],
        *,
        language: str = "",
        **content: Any,
    ) -> T:
        """Return what `read` makes of the answer; a ValueError it raises means a malformed one.

        `path` follows the service's address, in which `language` fills the place of "{language}".
        `content` is what httpx2 takes: `params`, `data`, `json`, `headers`. Raises the typed errors
        of `error` and whatever typed error `read` raises.
        """
        url = self._address.url.replace("{language}", language) + path

        async def attempt(_: int) -> T:
            reply = await self._send(method, url, content)
            try:
                return read(reply)
            except ValueError as error:
                raise self.error("invalid", phrase("detail.unreadable_answer")) from error

        return await self._retry.run(attempt)

    async def _send(self, method: str, url: str, content: Mapping[str, Any]) -> Reply:
        client, slots = self._connections()
        async with slots:
            try:
                async with (
                    asyncio.timeout(self._timeout),
                    client.stream(method, url, **content) as response,
                ):
                    body = await self._body(response)
            except TimeoutError as error:
                # It had all the time that a search may take.
                raise not_again(self.error("timeout")) from error
            except httpx2.HTTPError as error:
                kind = connection_failure(error)
                found = self.error(kind) if kind else self.error("invalid", CUT_OFF)
                raise (not_again(found) if kind == "timeout" else found) from error
        if not 200 <= response.status_code < 300:
            raise self._refusal(response.status_code, response.headers, body)
        return Reply(response.status_code, response.headers, body)

    async def _body(self, response: httpx2.Response) -> bytes:
        body = bytearray()
        async for piece in response.aiter_bytes():
            body += piece
            if len(body) > LONGEST_REPLY:
                detail = phrase("detail.long_answer", most=LONGEST_REPLY // 1024)
                raise self.error("invalid", detail)
        return bytes(body)

    def error(
        self, kind: str, detail: Fact = "", headers: Mapping[str, str] | None = None
    ) -> VeriscopeError:
        """Return the error of this kind ("search.KIND" in assets/errors.toml); `detail` says more.

        `headers` of the answer may say how long to wait before the next search. The key never
        appears in an error, even if it is echoed.
        """
        wait = retry_after(headers or {})
        if isinstance(detail, str):
            detail = showable(detail, self._key)
        error = failure(
            f"search.{kind}",
            self.title,
            service=self.title,
            host=self._address.host,
            detail=phrase("detail.in_brackets", words=detail) if detail else "",
            when=later(wait),
        )
        error.retry_after = wait
        return error

    def _refusal(self, status: int, headers: Mapping[str, str], body: bytes) -> VeriscopeError:
        # A service that refuses a key may quote it, in part or in another form.
        if status in (401, 403):
            return self.error(
                "wrong_key" if self._key else "not_served", phrase("detail.status", status=status)
            )
        text = body.decode("utf-8", "replace")
        try:
            said = server_words(json.loads(text))
        except (ValueError, RecursionError):
            said = server_words(text)
        if status == 429:
            return self.error("slow_down", said, headers)
        if status == 408:
            return self.error("timeout")
        if status < 400:
            return self.error("redirected")
        said = showable(said, self._key)
        detail = phrase("detail.status", status=status)
        if said:
            detail = phrase("detail.status_said", status=status, said=said)
        return self.error("failed" if status >= 500 else "refused", detail)

    def _connections(self) -> tuple[httpx2.AsyncClient, asyncio.Semaphore]:
        loop = asyncio.get_running_loop()
        opened = self._opened.get(loop)
        if opened is None:
            client = httpx2.AsyncClient(
                headers={"user-agent": self.user_agent},
                cookies=CookieJar(DefaultCookiePolicy(allowed_domains=[])),
                timeout=httpx2.Timeout(self._timeout, connect=_CONNECT_SECONDS),
                follow_redirects=self._key is None,
                max_redirects=_MAX_REDIRECTS,
                trust_env=not self._address.on_this_machine,
                verify=self._address.encrypted,
            )
            opened = self._opened[loop] = client, asyncio.Semaphore(_AT_ONCE)
        return opened

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
    """Return `text` with every run of white space made one space; empty for None."""
    return " ".join((text or "").split())


def web_address(link: str | None) -> str | None:
    """Return `link` if it is an absolute http(s) address, else None."""
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

"""Evidence from the web: searches by name, and pages that people name, all within bounds."""

from __future__ import annotations

import asyncio
import json
import re
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from hashlib import sha256
from html.parser import HTMLParser
from http.cookiejar import CookieJar, DefaultCookiePolicy
from itertools import accumulate, takewhile
from typing import Any, ClassVar, Literal, NamedTuple, TypeVar
from urllib.parse import SplitResult, parse_qs, urljoin, urlsplit
from weakref import WeakKeyDictionary

import httpx2
from pydantic import BaseModel, Field

from pipelines.base import Language, Passage
from pipelines.error_words import Fact, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.remote import (
    CUT_OFF,
    HEADERS,
    MOST_BYTES,
    PublicTransport,
    RetryPolicy,
    Sleep,
    TooLargeError,
    bounded,
    connection_failure,
    later,
    not_again,
    read_address,
    retry_after,
    server_words,
    showable,
    usable_key,
)
from pipelines.retrieval.base import Retriever
from pipelines.retrieval.indexes import query_terms
from pipelines.retrieval.reading.parsed import RefusedError
from pipelines.text.languages import detect_language

# What all web searches share: bounded requests, typed errors, and finds as ranked passages.

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


# Pages and files fetched from addresses that people give, within limits.

MAX_PAGE = MOST_BYTES
"""Bytes of what is fetched from one address."""

MAX_ADDRESSES = 200
"""Addresses that are added at once."""

SECONDS = 30.0
"""How long fetching may take, redirects and all."""

_REDIRECTS = 5
_LONGEST = 2000


class Page(NamedTuple):
    """What an address gave; `url` is where it came from after redirects."""

    url: str
    data: bytes


def read_addresses(text: str) -> list[str]:
    """Return the addresses of a list, one a line, each once; empty lines and those with # are
    left out.

    Raises InvalidInputError, which names the line that is none.
    """
    found: list[str] = []
    for line in map(str.strip, text.splitlines()):
        if not line or line.startswith("#"):
            continue
        try:
            parts = urlsplit(line)
            # A name or a password for the site would be kept with the collection.
            usable = parts.scheme in ("http", "https") and parts.hostname
            usable = usable and "@" not in parts.netloc
        except ValueError:
            usable = False
        if not usable or len(line) > _LONGEST or not line.isprintable() or " " in line:
            raise failure("library.no_address", line=line[:200])
        found.append(line)
    found = list(dict.fromkeys(found))
    if len(found) > MAX_ADDRESSES:
        raise failure("library.too_many_addresses", count=len(found), most=MAX_ADDRESSES)
    return found


async def fetch(url: str, *, public_only: bool, seconds: float = SECONDS) -> Page:
    """Return what is at `url`. With `public_only` it must be on the public internet, after
    redirects too.

    Raises RefusedError with the reason "address" or "too_large".
    """
    try:
        async with asyncio.timeout(seconds), _client(public_only) as client:
            reply = await client.get(url)
            data = reply.content
    except TooLargeError:
        raise RefusedError("too_large", most=MAX_PAGE // 1_000_000) from None
    except TimeoutError:
        raise RefusedError("address", said=f"no answer within {seconds:.0f} s") from None
    except (httpx2.HTTPError, httpx2.InvalidURL, UnicodeError) as error:
        kind = connection_failure(error)
        raise RefusedError("address", said=_words(kind, error)) from None
    if reply.status_code != 200:
        raise RefusedError("address", said=f"status {reply.status_code}")
    return Page(str(reply.url), data)


def _client(public_only: bool) -> httpx2.AsyncClient:
    headers: Sequence[tuple[str, str]] = [
        *HEADERS.items(),
        ("User-Agent", USER_AGENT),
        ("Accept", "text/html,application/xhtml+xml,application/pdf,text/*;q=0.9,*/*;q=0.5"),
    ]
    inner = httpx2.AsyncHTTPTransport(trust_env=False) if public_only else None
    return httpx2.AsyncClient(
        headers=list(headers),
        timeout=httpx2.Timeout(SECONDS, connect=10.0),
        follow_redirects=True,
        max_redirects=_REDIRECTS,
        event_hooks={"response": [bounded]},
        # Past the proxy of the environment where strangers name addresses: it stands inside.
        trust_env=not public_only,
        transport=PublicTransport(inner) if inner is not None else None,
    )


def _words(kind: str | None, error: Exception) -> str:
    known = {
        "no_connection": "no connection",
        "timeout": "no answer in time",
        "redirected": "too many redirects",
        "unsendable": "not an address that can be asked",
    }
    return known.get(kind or "") or type(error).__name__


# The search services, by name: Serper (Google), DuckDuckGo and Wikipedia.

_MOST_RESULTS = 100

_COUNTRY: dict[Language, dict[str, str]] = {
    "en": {"gl": "us", "hl": "en"},
    "zh": {"gl": "cn", "hl": "zh-cn"},
}
"""Country and interface language of a search by the language of its query."""


class SerperSearch(WebSearch):
    """Google's results through Serper (https://serper.dev), which needs a key.

    Answer box, knowledge graph and organic results of a Google search, in this order.

    `k` bounds the organic results. The answer box and the knowledge graph, one passage each, come
    on top of them where Google shows them, so that there can be `k + 2` passages. A knowledge
    graph links to where its description is from, or else to its subject's own site.
    """

    id = "serper"
    title = "Serper"
    default_url = "https://google.serper.dev"
    needs_key = True
    longest_query = 500

    async def find(self, query: str, k: int) -> list[Find]:
        reply = await self.ask(
            "POST",
            "/search",
            lambda reply: _SerperReply.model_validate_json(reply.body),
            json={"q": query, "num": min(k, _MOST_RESULTS)} | _COUNTRY[detect_language(query)],
            headers={"x-api-key": self._key or ""},
        )
        return [find for find in _serper_finds(reply, query, k) if find.text]


class _Shown(BaseModel):
    """An answer box, a knowledge graph or an organic result: each has some of these."""

    title: str | None = None
    answer: str | int | float | None = None
    snippet: str | None = None
    link: str | None = None
    type: str | None = None
    description: str | None = None
    website: str | None = None
    descriptionLink: str | None = None  # noqa: N815
    date: str | None = None
    attributes: dict[str, Any] | None = None


class _SerperReply(BaseModel):
    answerBox: _Shown | None = None  # noqa: N815
    knowledgeGraph: _Shown | None = None  # noqa: N815
    organic: list[_Shown] | None = None


def _serper_finds(reply: _SerperReply, query: str, k: int) -> Iterator[Find]:
    if box := reply.answerBox:
        answer = "" if box.answer is None else one_line(str(box.answer))
        snippet = one_line(box.snippet)
        text = snippet if answer in snippet else f"{answer}\n{snippet}".strip()
        yield Find("answer_box", one_line(box.title) or query, text, web_address(box.link))
    if graph := reply.knowledgeGraph:
        title, kind = one_line(graph.title), one_line(graph.type)
        about = [one_line(graph.description), *_attributes(graph.attributes)]
        # Title and type alone say something: who someone is.
        if kind or any(about):
            head = f"{title} ({kind})" if title and kind else title or kind
            yield Find(
                "knowledge_graph",
                title or query,
                "\n".join(filter(None, [head, *about])),
                web_address(graph.descriptionLink) or web_address(graph.website),
            )
    for result in (reply.organic or [])[:k]:
        said = [one_line(result.snippet), *_attributes(result.attributes)]
        date = one_line(result.date)
        # A date by itself is no evidence.
        if date and any(said):
            said[0] = f"{date} — {said[0]}" if said[0] else date
        yield Find(
            "organic",
            one_line(result.title) or query,
            "\n".join(filter(None, said)),
            web_address(result.link),
        )


def _attributes(attributes: dict[str, Any] | None) -> list[str]:
    return [
        f"{one_line(name)}: {one_line(str(value))}"
        for name, value in (attributes or {}).items()
        if isinstance(value, str | int | float) and one_line(str(value))
    ]


_REGION: dict[Language, str] = {"en": "us-en", "zh": "cn-zh"}
_HOME = "https://duckduckgo.com/"
_BREAKS = frozenset({"br", "hr", "li", "p"})
_PARTS = {
    "result__a": "title",
    "zci__heading": "title",
    "result__snippet": "snippet",
    "zci__result": "abstract",
}
"""What the text of an element is part of, by the element's class."""


class DuckDuckGoSearch(WebSearch):
    """DuckDuckGo without a key, through its page for browsers without scripts.

    The page's abstract, where it shows one, then its results without the advertisements: together
    at most `k`, and no more than the first page holds, about ten. DuckDuckGo shows a puzzle for
    humans to a program that searches a lot: that is a RateLimitError, and not tried again.
    """

    id = "duckduckgo"
    title = "DuckDuckGo"
    default_url = "https://html.duckduckgo.com"
    user_agent = f"Mozilla/5.0 (compatible; {USER_AGENT.replace(' (', '; ')}"
    longest_query = 500

    async def find(self, query: str, k: int) -> list[Find]:
        page = await self.ask(
            "POST",
            "/html/",
            _read_page,
            data={"q": query, "b": "", "kl": _REGION[detect_language(query)]},
        )
        finds = [*page.abstract, *page.results]
        if page.puzzle and not page.results:
            raise self.error("slow_down", "it wants to see a human")
        return finds[:k]


class _PageReader(HTMLParser):
    """Reads a page of results. `known` says whether it is one at all."""

    def __init__(self) -> None:
        super().__init__()
        self.abstract: list[Find] = []
        self.results: list[Find] = []
        self.puzzle = False
        self.known = False
        self._texts: dict[str, str] = {}
        self._link = ""
        self._advertisement = False
        # The part that is being read, the tag of its element, and how many of that tag are open.
        self._part = ""
        self._tag = ""
        self._open = 0
        self._skipping = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        marks = {*attributes.get("class", "").split(), attributes.get("id", "")}
        self.puzzle |= "challenge-form" in marks or any(
            mark.startswith("anomaly-modal") for mark in marks
        )
        self.known |= not marks.isdisjoint({"links", "no-results"})
        if not marks.isdisjoint({"result", "zci"}):
            self.finish()
            self._advertisement = "result--ad" in marks
        if mark := next(filter(_PARTS.__contains__, marks), None):
            self._part, self._tag, self._open = _PARTS[mark], tag, 0
        self._open += tag == self._tag
        if tag == "a" and self._part == "title":
            self._link = attributes.get("href", "")
        # Links inside an abstract lead on to its source ("More at …").
        self._skipping |= tag == "a" and self._part == "abstract"
        if tag in _BREAKS:
            self.handle_data(" ")

    def handle_endtag(self, tag: str) -> None:
        self._skipping &= tag != "a"
        self._open -= tag == self._tag
        if self._open <= 0:
            self._part = self._tag = ""

    def handle_data(self, data: str) -> None:
        if self._part and not self._skipping:
            self._texts[self._part] = self._texts.get(self._part, "") + data

    def finish(self) -> None:
        """Take up what was read since the last result began."""
        texts = {part: one_line(text) for part, text in self._texts.items()}
        title = texts.get("title", "")
        url = _target(self._link)
        if texts.get("abstract"):
            self.abstract.append(Find("abstract", title, texts["abstract"], url))
        elif texts.get("snippet") and url and not self._advertisement:
            self.results.append(Find("organic", title or url, texts["snippet"], url))
        self._texts, self._link, self._part, self._tag = {}, "", "", ""


def _read_page(reply: Reply) -> _PageReader:
    page = _PageReader()
    page.feed(reply.body.decode("utf-8", "replace"))
    page.close()
    page.finish()
    page.puzzle |= reply.status == 202
    if not page.puzzle and not page.known and not page.abstract:
        raise ValueError("not a page of results")
    return page


def _target(link: str) -> str | None:
    """Return where a link of the page leads; None for an advertisement's or none at all."""
    try:
        parts = urlsplit(urljoin(_HOME, link.strip()))
        if _is_duckduckgo(parts) and parts.path == "/l/":
            parts = urlsplit(parse_qs(parts.query).get("uddg", [""])[0])
    except ValueError:
        return None
    # What its own script leads to is an advertisement.
    if _is_duckduckgo(parts) and parts.path in ("/l/", "/y.js"):
        return None
    return web_address(parts.geturl())


def _is_duckduckgo(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    return host == "duckduckgo.com" or host.endswith(".duckduckgo.com")


_LONGEST_EXTRACT = 1200
"""Characters of an introduction, the most that TextExtracts gives."""

_MOST_EXTRACTS = 20

_READS: dict[Language, str] = {"en": "en", "zh": "zh-CN,zh;q=0.9"}
"""Chinese articles are stored in the script they were written in and converted to the reader's."""

# Operators of CirrusSearch that a sentence holds by chance: phrases, wildcards, fuzziness,
# negation, and words before a colon.
_OPERATORS = re.compile(r'["“”*~!?\\:]|(?<!\S)-')


class WikipediaSearch(WebSearch):
    """The introductions of the articles found, in Wikipedia of the query's language.

    Searched through the action API of MediaWiki (https://www.mediawiki.org/wiki/API).

    Each passage is the beginning of an introduction, at most about 1200 characters, with the
    article's address; at most 20 are given. Pages that only list the meanings of a word are left
    out. An article has to hold every word of the query; when none does, as happens with whole
    sentences, one that holds any of its content words is taken. A `base_url` may hold "{language}".
    """

    id = "wikipedia"
    title = "Wikipedia"
    default_url = "https://{language}.wikipedia.org"
    longest_query = 300

    async def find(self, query: str, k: int) -> list[Find]:
        language = detect_language(query)
        finds = await self._articles(one_line(_OPERATORS.sub(" ", query)), k, language)
        if not finds:
            # The Chinese dictionary takes a moment to load.
            words = list(dict.fromkeys(await asyncio.to_thread(query_terms, query)))
            if len(words) > 1:
                joined = accumulate(words, "{} OR {}".format)
                fitting = takewhile(lambda one: len(one) <= self.longest_query, joined)
                finds = await self._articles(max(fitting, key=len, default=words[0]), k, language)
        return finds

    async def _articles(self, query: str, k: int, language: Language) -> list[Find]:
        if not query:
            return []
        reply = await self.ask(
            "GET",
            "/w/api.php",
            self._read,
            language=language,
            params={
                "action": "query",
                "format": "json",
                "formatversion": 2,
                "generator": "search",
                "gsrsearch": query,
                "gsrlimit": min(k, _MOST_EXTRACTS),
                "gsrnamespace": 0,
                "prop": "extracts|info|pageprops",
                "exintro": 1,
                "explaintext": 1,
                "exchars": _LONGEST_EXTRACT,
                "exlimit": "max",
                "inprop": "url",
                "ppprop": "disambiguation",
            },
            headers={"accept-language": _READS[language]},
        )
        pages = reply.query.pages if reply.query else []
        finds = [
            Find(language, page.title, text, web_address(page.fullurl))
            for page in sorted(pages, key=lambda page: page.index)
            if (text := "\n".join(filter(None, map(one_line, page.extract.splitlines()))))
            and "disambiguation" not in page.pageprops
        ]
        return finds[:k]

    def _read(self, reply: Reply) -> _WikipediaReply:
        """Read the reply: MediaWiki answers with status 200 even where it refuses."""
        read = _WikipediaReply.model_validate_json(reply.body)
        if error := read.error:
            detail = error.info or error.code
            if error.code in ("ratelimited", "maxlag"):
                raise self.error("slow_down", detail, reply.headers)
            failed = re.search(r"internal_api_error|busy|timeout|readonly|backend", error.code)
            raise self.error("failed" if failed else "refused", detail)
        return read


class _Page(BaseModel):
    title: str
    index: int = 0
    extract: str = ""
    fullurl: str | None = None
    pageprops: dict[str, str] = Field(default_factory=dict)


class _Query(BaseModel):
    pages: list[_Page] = Field(default_factory=list)


class _Error(BaseModel):
    code: str
    info: str = ""


class _WikipediaReply(BaseModel):
    query: _Query | None = None
    error: _Error | None = None


WEB_SEARCHES: dict[str, type[WebSearch]] = {
    search.id: search for search in (SerperSearch, DuckDuckGoSearch, WikipediaSearch)
}
"""The services that can be searched, by name."""


def build_web_search(
    name: str, *, key: str | None = None, base_url: str | None = None
) -> WebSearch:
    """Return the search called `name`; a key it does not need is left unused.

    Raises NotFoundError for a name that is not in `WEB_SEARCHES`, MissingKeyError where a key is
    needed and AuthenticationError where it cannot be one, InvalidInputError for a bad address.
    """
    if name not in WEB_SEARCHES:
        raise failure("search.no_service", name=name, names=[*WEB_SEARCHES])
    return WEB_SEARCHES[name](key=key, base_url=base_url)

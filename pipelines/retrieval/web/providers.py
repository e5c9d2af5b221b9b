"""The search services, by name: Serper (Google), DuckDuckGo and Wikipedia."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator
from html.parser import HTMLParser
from itertools import accumulate, takewhile
from typing import Any
from urllib.parse import SplitResult, parse_qs, urljoin, urlsplit

from pydantic import BaseModel, Field

from pipelines.errors import failure
from pipelines.retrieval.bm25 import query_terms
from pipelines.retrieval.web.base import USER_AGENT, Find, Reply, WebSearch, one_line, web_address
from pipelines.text.languages import detect_language
from pipelines.types import Language

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
    """Return where a link of the page leads in the end; None for an advertisement's or
    none at all.
    """
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

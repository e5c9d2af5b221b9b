"""DuckDuckGo without a key, through its page for browsers without scripts."""

from __future__ import annotations

from collections import Counter
from html.parser import HTMLParser
from typing import NamedTuple
from urllib.parse import SplitResult, parse_qs, urljoin, urlsplit

from pipelines.retrieval.web.base import USER_AGENT, Find, WebSearch, one_line, web_address
from pipelines.retrieval.web.http import Reply
from pipelines.text.languages import detect_language
from pipelines.types import Language

__all__ = ["DuckDuckGoSearch"]

_REGION: dict[Language, str] = {"en": "us-en", "zh": "cn-zh"}
_HOME = "https://duckduckgo.com/"
_VOID = frozenset({"br", "hr", "img", "input", "link", "meta", "wbr"})
"""Elements without an end tag, as far as the page uses them."""

_BREAKS = frozenset({"br", "hr", "li", "p"})


class DuckDuckGoSearch(WebSearch):
    """The page's abstract, where it shows one, then its results without the advertisements.

    Abstract and results together are at most `k`, and no more than the first page holds, about
    ten. DuckDuckGo shows a puzzle for humans to a program that searches a lot: that is a
    RateLimitError, and not tried again.
    """

    id = "duckduckgo"
    title = "DuckDuckGo"
    default_url = "https://html.duckduckgo.com"
    user_agent = f"Mozilla/5.0 (compatible; {USER_AGENT.replace(' (', '; ')}"
    longest_query = 500

    async def find(self, query: str, k: int) -> list[Find]:
        page = await self._client.ask(
            "POST",
            f"{self._base_url}/html/",
            _read,
            data={"q": query, "b": "", "kl": _REGION[detect_language(query)]},
        )
        if page.puzzle:
            raise self._client.errors.slow_down("it wants to see a human")
        return page.finds[:k]


class _Page(NamedTuple):
    finds: list[Find]
    puzzle: bool


class _Element(NamedTuple):
    """An open element: its tag, what its text is part of, and whether it is a result's whole."""

    tag: str
    part: str | None
    is_result: bool


class _Reader(HTMLParser):
    """Reads a page of results. `known` tells whether it is one at all."""

    def __init__(self) -> None:
        super().__init__()
        self.abstract: list[Find] = []
        self.results: list[Find] = []
        self.puzzle = False
        self.known = False
        self._open: list[_Element] = []
        self._tags: Counter[str] = Counter()
        self._text: dict[str, str] = {}
        self._link = ""
        self._advertisement = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = {name: value or "" for name, value in attrs}
        classes = set(attributes.get("class", "").split())
        marks = classes | {attributes.get("id", "")}
        self.puzzle |= "challenge-form" in marks or any(
            mark.startswith("anomaly-modal") for mark in marks
        )
        self.known |= not marks.isdisjoint({"links", "no-results"})
        if tag in _BREAKS:
            self.handle_data(" ")
        if tag in _VOID:
            return
        whole = next((name for name in ("result", "zci") if name in classes), None)
        if whole:
            self._text, self._link = {}, ""
            self._advertisement = "result--ad" in classes
        part = self._part(tag, marks)
        if tag == "a" and (part == "title" or "result__a" in classes):
            self._link = attributes.get("href", "")
        self._open.append(_Element(tag, part, bool(whole)))
        self._tags[tag] += 1

    def handle_endtag(self, tag: str) -> None:
        # Elements left open inside an element end with it; an end without a beginning is nothing.
        while self._tags[tag]:
            element = self._open.pop()
            self._tags[element.tag] -= 1
            if element.is_result:
                self._finish()
            if element.tag == tag:
                return

    def handle_data(self, data: str) -> None:
        part = self._open[-1].part if self._open else None
        if part:
            self._text[part] = self._text.get(part, "") + data

    def close(self) -> None:
        super().close()
        if any(element.is_result for element in self._open):
            self._finish()

    def _part(self, tag: str, marks: set[str]) -> str | None:
        around = self._open[-1].part if self._open else None
        if not marks.isdisjoint({"result__a", "zci__heading"}):
            return "title"
        if "result__snippet" in marks:
            return "snippet"
        if "zci__result" in marks:
            return "abstract"
        # Links inside an abstract lead on to its source ("More at …").
        return None if around == "abstract" and tag == "a" else around

    def _finish(self) -> None:
        texts = {part: one_line(text) for part, text in self._text.items()}
        title = texts.get("title", "")
        url = _unwrapped(self._link)
        if texts.get("abstract"):
            self.abstract.append(Find("abstract", title, texts["abstract"], url))
        elif texts.get("snippet") and url and not self._advertisement:
            self.results.append(Find("organic", title or url, texts["snippet"], url))
        self._text, self._link, self._advertisement = {}, "", False


def _read(reply: Reply) -> _Page:
    reader = _Reader()
    reader.feed(reply.body.decode("utf-8", "replace"))
    reader.close()
    puzzle = reader.puzzle or reply.status == 202
    if not puzzle and not reader.known and not reader.abstract:
        raise ValueError("not a page of results")
    return _Page([*reader.abstract, *reader.results], puzzle and not reader.results)


def _unwrapped(link: str) -> str | None:
    """Where a link of the page leads in the end; None for an advertisement's or none at all."""
    try:
        parts = urlsplit(urljoin(_HOME, link.strip()))
        if _is_ours(parts) and parts.path == "/l/":
            parts = urlsplit(parse_qs(parts.query).get("uddg", [""])[0])
    except ValueError:
        return None
    # What its own script leads to is an advertisement.
    if _is_ours(parts) and parts.path in ("/l/", "/y.js"):
        return None
    return web_address(parts.geturl())


def _is_ours(parts: SplitResult) -> bool:
    host = parts.hostname or ""
    return host == "duckduckgo.com" or host.endswith(".duckduckgo.com")

"""Wikipedia, searched through the action API of MediaWiki (https://www.mediawiki.org/wiki/API)."""

from __future__ import annotations

import asyncio
import re

from pydantic import BaseModel, Field

from pipelines.errors import VeriscopeError
from pipelines.retrieval.tokens import query_terms
from pipelines.retrieval.web.base import Find, WebSearch, one_line, web_address
from pipelines.retrieval.web.http import Reply
from pipelines.text.languages import detect_language
from pipelines.types import Language

__all__ = ["WikipediaSearch"]

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

    Each passage is the beginning of an introduction, at most about 1200 characters, with the
    article's address; at most 20 are given. Pages that only list the meanings of a word are left
    out. An article has to hold every word of the query; when none does, as happens with whole
    sentences, one that holds any of its content words will do. A `base_url` may hold "{language}".
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
                finds = await self._articles(_any_of(words, self.longest_query), k, language)
        return finds

    async def _articles(self, query: str, k: int, language: Language) -> list[Find]:
        if not query:
            return []
        reply = await self._client.ask(
            "GET",
            f"{self._base_url.replace('{language}', language)}/w/api.php",
            self._read,
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
            if (text := _paragraphs(page.extract)) and "disambiguation" not in page.pageprops
        ]
        return finds[:k]

    def _read(self, reply: Reply) -> _Reply:
        read = _Reply.model_validate_json(reply.body)
        if read.error:
            raise self._refusal(read.error, reply)
        return read

    def _refusal(self, error: _Error, reply: Reply) -> VeriscopeError:
        """MediaWiki answers with status 200 even where it refuses."""
        told = error.info or error.code
        if error.code in ("ratelimited", "maxlag"):
            return self._client.errors.slow_down(told, reply.headers)
        if re.search(r"internal_api_error|busy|timeout|readonly|backend", error.code):
            return self._client.errors.failed(told)
        return self._client.errors.refused(told)


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


class _Reply(BaseModel):
    query: _Query | None = None
    error: _Error | None = None


def _paragraphs(extract: str) -> str:
    return "\n".join(filter(None, map(one_line, extract.splitlines())))


def _any_of(words: list[str], longest: int) -> str:
    """As many of `words` as fit, joined so that one is enough."""
    query = words[0]
    for word in words[1:]:
        longer = f"{query} OR {word}"
        if len(longer) > longest:
            break
        query = longer
    return query

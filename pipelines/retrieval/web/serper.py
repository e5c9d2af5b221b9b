"""Google's results through Serper (https://serper.dev), which wants a key."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pydantic import BaseModel

from pipelines.retrieval.web.base import Find, WebSearch, one_line, web_address
from pipelines.text.languages import detect_language
from pipelines.types import Language

__all__ = ["SerperSearch"]

_MOST_RESULTS = 100

_PLACE: dict[Language, dict[str, str]] = {
    "en": {"gl": "us", "hl": "en"},
    "zh": {"gl": "cn", "hl": "zh-cn"},
}
"""Country and interface language of a search by the language of its query."""


class SerperSearch(WebSearch):
    """Answer box, knowledge graph and organic results of a Google search, in this order.

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
        reply = await self._client.ask(
            "POST",
            f"{self._base_url}/search",
            lambda reply: _Reply.model_validate_json(reply.body),
            json={"q": query, "num": min(k, _MOST_RESULTS)} | _PLACE[detect_language(query)],
            headers={"x-api-key": self._key or ""},
        )
        return [find for find in _finds(reply, query, k) if find.text]


class _AnswerBox(BaseModel):
    title: str | None = None
    answer: str | int | float | None = None
    snippet: str | None = None
    link: str | None = None


class _KnowledgeGraph(BaseModel):
    title: str | None = None
    type: str | None = None
    description: str | None = None
    website: str | None = None
    descriptionLink: str | None = None  # noqa: N815
    attributes: dict[str, Any] | None = None


class _Organic(BaseModel):
    title: str | None = None
    link: str | None = None
    snippet: str | None = None
    date: str | None = None
    attributes: dict[str, Any] | None = None


class _Reply(BaseModel):
    answerBox: _AnswerBox | None = None  # noqa: N815
    knowledgeGraph: _KnowledgeGraph | None = None  # noqa: N815
    organic: list[_Organic] | None = None


def _finds(reply: _Reply, query: str, k: int) -> Iterator[Find]:
    if box := reply.answerBox:
        answer = "" if box.answer is None else one_line(str(box.answer))
        snippet = one_line(box.snippet)
        told = snippet if answer in snippet else f"{answer}\n{snippet}".strip()
        yield Find("answer_box", one_line(box.title) or query, told, web_address(box.link))
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
        told = [one_line(result.snippet), *_attributes(result.attributes)]
        date = one_line(result.date)
        # A date by itself is no evidence.
        if date and any(told):
            told[0] = f"{date} — {told[0]}" if told[0] else date
        yield Find(
            "organic",
            one_line(result.title) or query,
            "\n".join(filter(None, told)),
            web_address(result.link),
        )


def _attributes(attributes: dict[str, Any] | None) -> list[str]:
    return [
        f"{one_line(name)}: {one_line(str(value))}"
        for name, value in (attributes or {}).items()
        if isinstance(value, str | int | float) and one_line(str(value))
    ]

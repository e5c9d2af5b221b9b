"""Texts that came with a question or an answer as its evidence, under whatever name a program keeps
them: "context_docs", "groundingMetadata", "sourceAttributions", "参考资料".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from pipelines.text import has_han

_DEEPEST = 8

_EVIDENCE = frozenset({
    "document", "doc", "source", "context", "passage", "chunk", "snippet", "citation", "evidence",
    "attribution", "grounding", "retrieval", "retrieved", "retriever", "knowledge", "node",
    "article", "attachment", "quote", "quotation", "excerpt", "paragraph",
})  # fmt: skip
"""Words of names that say that evidence is there, in the singular."""

_OBJECTS = frozenset({"reference"})
"""Words that say so of objects: a text under such a name is a right answer."""

_SEARCHES = frozenset({"search", "retrieval", "retriever"})
_FOUND = frozenset({"result", "hit", "match", "item"})
_RANKED = frozenset({"url", "link", "score", "rank", "distance", "title"})
"""Words of names that results of a search have, and other results do not."""

_NO_TEXT = frozenset({
    "query", "question", "prompt", "entry", "call", "id", "uuid", "url", "uri", "link", "count",
    "number", "total", "score", "type", "kind", "time", "date", "usage", "token", "model", "title",
    "name", "window", "length", "size", "limit", "language", "lang", "cutoff", "config", "setting",
    "parameter", "schema", "format", "embedding", "index", "rank", "filter", "status", "error",
    "version", "enabled", "mode", "history", "message", "answer", "input", "response", "support",
    "segment", "combined",
})  # fmt: skip
"""Words of names of what is told about evidence, and of what is none."""

_EVIDENCE_ZH = re.compile(r"资料|文档|段落|上下文|参考|引用|检索|知识|来源|证据|文献|原文")
_NO_TEXT_ZH = re.compile(r"问题|查询|编号|标题|名称|链接|地址|数量|时间|答案|回答")

_TEXTS = (
    "text", "content", "contents", "page_content", "pageContent", "cited_text", "snippet",
    "extracted_content", "passage", "chunk", "quote", "excerpt", "extract", "body", "highlight",
    "paragraph", "summary", "description", "正文", "内容", "文本",
)  # fmt: skip
_SAID_ELSEWHERE = frozenset(
    {"messages", "history", "chat_history", "tools", "tool_calls", "logprobs", "usage", "replies"}
)
_ADDRESS = re.compile(r"\w+://\S*|www\.\S+")
_FEW_WORDS, _FEW_CHARACTERS = 3, 6


def attached_texts(value: Any) -> list[str]:
    """Return the texts of evidence in an object, a list of objects, or JSON of these: the nearest
    ones, each once. Addresses, names and numbers are no texts, and neither is what a message says.
    """
    return list(dict.fromkeys(_attached(value, _DEEPEST)))


def _attached(value: Any, deeper: int) -> Iterator[str]:
    value = read_json(value)
    if isinstance(value, list):
        for one in value if deeper else ():
            if isinstance(one, Mapping | list):
                yield from _attached(one, deeper - 1)
    elif isinstance(value, Mapping):
        for name, held in value.items():
            found = list(_texts(held, _DEEPEST)) if _is_evidence(str(name), held) else []
            yield from found
            # What is said of evidence may hold the evidence itself.
            if not found and deeper and name not in _SAID_ELSEWHERE:
                inner = read_json(held)
                if isinstance(inner, Mapping | list):
                    yield from _attached(inner, deeper - 1)


def _is_evidence(name: str, held: Any) -> bool:
    if _tells_about(name):
        return False
    words = _words(name)
    found = words & _EVIDENCE or (words & _SEARCHES and words & _FOUND)
    if found or _EVIDENCE_ZH.search(name):
        return True
    held = read_json(held)
    listed = isinstance(held, list)
    objects = held if listed else [held]
    if not objects or not all(isinstance(one, Mapping) for one in objects):
        return False
    ranked = listed and all(any(_words(str(name)) & _RANKED for name in one) for one in objects)
    return bool(words & _OBJECTS or (words & _FOUND and ranked))


def _tells_about(name: str) -> bool:
    """Return whether a name is one of what is told about evidence, or of no evidence at all."""
    return bool(_words(name) & _NO_TEXT or _NO_TEXT_ZH.search(name))


def _words(name: str) -> set[str]:
    """Return the English words of a name, in the singular: "cited_text", "contextItems"."""
    words = re.findall(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])", name)
    return {_ENDING.sub(_singular, word.lower()) for word in words}


_ENDING = re.compile(r"(?:(?<=[^aeiou])ies|(?<=ch)es|(?<=[^su])s)$")


def _singular(ending: re.Match[str]) -> str:
    return "y" if ending[0] == "ies" else ""


def _texts(value: Any, deeper: int) -> Iterator[str]:
    """Yield the texts in a piece of evidence, of an object what its usual names hold."""
    value = read_json(value)
    if isinstance(value, str):
        if _is_text(value):
            yield value.strip()
    elif isinstance(value, list):
        for one in value if deeper else ():
            yield from _texts(one, deeper - 1)
    elif isinstance(value, Mapping) and deeper and not _is_right_answer(value):
        usual = (name for name in value if str(name).rpartition(".")[2] in _TEXTS)
        for name in sorted(usual, key=lambda one: _TEXTS.index(str(one).rpartition(".")[2])):
            if found := list(_texts(value[name], deeper - 1)):
                yield from found
                return
        told = [one for name, one in value.items() if not _tells_about(str(name))]
        inner = (read_json(one) for one in told)
        found = [
            text
            for one in inner
            if isinstance(one, Mapping | list)
            for text in _texts(one, deeper - 1)
        ]
        plain = [one.strip() for one in told if isinstance(one, str) and _is_text(one)]
        yield from found or sorted(plain, key=len)[-1:]


def _is_right_answer(value: Mapping[str, Any]) -> bool:
    """Return whether a reference is an answer that is marked as correct, as HELM does it."""
    tags = value.get("tags")
    return isinstance(tags, list) and "correct" in tags


def _is_text(value: str) -> bool:
    if _ADDRESS.fullmatch(value.strip()):
        return False
    return len(value.split()) >= _FEW_WORDS or (has_han(value) and len(value) >= _FEW_CHARACTERS)


def read_json(value: Any) -> Any:
    """Return what JSON in a text holds; anything else as it is."""
    if isinstance(value, str) and value.lstrip()[:1] in ("{", "["):
        try:
            return json.loads(value)
        except (ValueError, RecursionError):
            return value
    return value

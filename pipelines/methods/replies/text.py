"""What a reply comes down to: its visible text, JSON in it, refusals and "nothing to list"."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from typing import Any

from pipelines.text.wording import without_thinking

__all__ = [
    "embedded_json",
    "is_citation",
    "is_nothing",
    "is_refusal",
    "load_json",
    "parse_json",
    "visible",
]

_WHOLE_FENCE = re.compile(r"\A\s*(`{3,}|~{3,})[\w-]*[ \t]*\n(.*?)\n?\s*(?:\1\s*)?\Z", re.S)
_FENCED = re.compile(r"^[ \t]*(`{3,}|~{3,})[\w-]*[ \t]*\n(.*?)(?:^[ \t]*\1|\Z)", re.S | re.M)
_EMPHASIS = ("***", "**", "__", "*", "_", "`")
_QUOTES = {'"': '"', "“": "”", "„": "“", "‘": "’", "「": "」", "『": "』", "«": "»", "'": "'"}


def visible(text: str) -> str:
    """`text` without thinking blocks, trimmed, out of one code fence, one emphasis and one quote.

    A block that was never closed reaches to the end, one that was never opened to the beginning.
    Emphasis and quotation marks go only when the pair surrounds everything.
    """
    text = without_thinking(text).strip()
    fence = _WHOLE_FENCE.match(text)
    if fence and fence[1] not in fence[2]:
        text = fence[2].strip()
    return _unquoted(_unemphasised(text))


def _unemphasised(text: str) -> str:
    for mark in _EMPHASIS:
        inner = text[len(mark) : -len(mark)]
        if text.startswith(mark) and text.endswith(mark) and inner and mark not in inner:
            return inner.strip()
    return text


def _unquoted(text: str) -> str:
    closing = _QUOTES.get(text[:1])
    inner = text[1:-1]
    if closing is None or not inner.strip() or text[-1] != closing:
        return text
    # Apostrophes inside words do not end what stands between single quotes.
    bare = re.sub(r"(?<=\w)['’](?=\w)", "", inner) if closing in "'’" else inner
    return text if text[0] in bare or closing in bare else inner.strip()


_CANNOT = (
    r"(?:can(?:no|['’])?t|can not|could(?:n['’]t| not)|won['’]t|will not|"
    r"(?:am|['’]m|are|['’]re) (?:unable|not (?:able|comfortable|allowed|programmed)))"
)
_REFUSAL = re.compile(
    rf"(?:(?:i['’]m|i am|we['’]re|we are)?\s*(?:very |so |really )?(?:sorry|afraid)|i apologi[sz]e|"
    rf"my apologies|apologies|unfortunately|regrettably)\b[^\n]{{0,80}}?\b(?:i|we)\b\s*{_CANNOT}\b|"
    r"(?:i['’]m|i am)?\s*sorry[\s.!]*\Z|"
    rf"(?:i|we)\s*{_CANNOT}\s+(?:\w+\s+){{0,2}}?(?:assist|help|provide|compl(?:y|ete)|fulfil|answer|"
    r"generate|create|engage|continue|do|give|write|discuss|respond|extract|verify)|"
    r"as an? (?:ai|artificial|large language|language)\b|"
    r"(?:非常|很|十分)?(?:抱歉|对不起|不好意思|遗憾)[^\n]{0,30}?(?:无法|不能|没法|不便|不可以|不会)|"
    r"(?:非常|很|十分)?(?:抱歉|对不起)[。！!.\s]*\Z|"
    r"(?:我|我们|本人)?(?:无法|不能|没法|没有办法|不便)(?:为您|为你|给您|给你|向您)?"
    r"(?:提供|回答|协助|帮助|帮您|满足|完成|生成|执行|讨论|给出|继续)|"
    r"(?:作为|我是)一?[个名款位]?\s*(?:ai|人工智能|大?语言模型|大模型)",
    re.I,
)


def is_refusal(text: str) -> bool:
    """Whether the reply declines the task: begins with an apology or with being unable to."""
    return bool(_REFUSAL.match(visible(text)))


_NOUNS = (
    r"(?:(?:fact(?:ual)?|concept|claim|entit(?:y|ie)|item|result|statement|detail|information|"
    r"question|quer(?:y|ie)|answer|element)s?)"
)
_NOTHING = re.compile(
    r"(?:[\w ]{1,24}: ?)?(?:none|null|nil|nothing|n ?/ ?a|n\.a|not applicable|empty|"
    r"无|没有|暂无|空|无内容|不适用)"
    r"(?: (?:found|here|at all|to (?:check|extract|list|report|verify))|了)?|"
    rf"(?:there (?:is|are) |it (?:has|contains) |the sentence (?:has|contains) )?no "
    rf"(?:[\w-]+ ){{0,3}}?{_NOUNS}(?: (?:in|to|found|here|that|can|were|was|are|is)\b[^\n]*)?|"
    r"(?:(?:这|该|本|此)?句(?:话|子)?|句中|其)?(?:中|里)?(?:并)?(?:没有|不含|不包含|未包含|无)"
    r"(?!法)(?:任何|其他)?[^。,\n]{0,10}?(?:概念|事实|内容|实体|信息|陈述|项目|问题)",
    re.I,
)


def is_nothing(text: str) -> bool:
    """Whether the reply says that there is nothing to list; an empty reply says nothing at all."""
    plain = unicodedata.normalize("NFKC", visible(text))
    is_json, value = load_json(plain)
    if is_json:
        only = [*value.values()] if isinstance(value, dict) else [value]
        return only in ([], [[]], [None])
    return bool(_NOTHING.fullmatch(plain.strip(" \t\n.,;:!。、*-\"'()[]")))


_TRAILING_COMMA = re.compile(r",(\s*[\]}])")
_OPENING = re.compile(r"[\[{]")
_MOST_STARTS = 64


def load_json(text: str) -> tuple[bool, Any]:
    """Whether the whole of `text` is a JSON value, and the value."""
    for attempt in (text, _TRAILING_COMMA.sub(r"\1", text)):
        try:
            return True, json.loads(attempt)
        except (ValueError, RecursionError):
            continue
    return False, None


def parse_json(text: str) -> Any | None:
    """The first JSON value of the reply, None when it holds none.

    The reply as a whole or a fenced block may be any value; within prose an object or array is
    looked for, and arrays of numbers, which citations look like, come last. Commas before a
    closing bracket are forgiven.
    """
    text = visible(text)
    for whole in (text, *(match[2] for match in _FENCED.finditer(text))):
        is_json, value = load_json(whole)
        if is_json:
            return value
    found = [value for _, value in embedded_json(text)]
    return next((one for one in found if not is_citation(one)), found[0] if found else None)


def embedded_json(text: str) -> Iterator[tuple[str, Any]]:
    """The objects and arrays that stand in `text`, each with the text before it."""
    text = _TRAILING_COMMA.sub(r"\1", text)
    decoder, past = json.JSONDecoder(), 0
    for number, opening in enumerate(_OPENING.finditer(text)):
        if number == _MOST_STARTS:
            return
        start = opening.start()
        if start < past:
            continue
        try:
            value, past = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        yield text[:start], value


def is_citation(value: Any) -> bool:
    """Whether a JSON value looks like the citation [1] or [1, 2]."""
    return isinstance(value, list) and all(isinstance(one, int) for one in value)

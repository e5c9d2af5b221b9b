"""Reads what models really write: lists, labelled fields and JSON, with or without decoration.

Nothing here guesses: what cannot be read comes back empty, and the caller says so.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from pipelines.methods.replies.lists import parse_list
from pipelines.methods.replies.text import is_nothing, is_refusal, parse_json, visible

__all__ = [
    "declines",
    "is_nothing",
    "is_refusal",
    "parse_fields",
    "parse_json",
    "parse_list",
    "visible",
]


def parse_fields(text: str, names: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """The labelled parts of the reply: name -> text, for each name that has a label there.

    `names` gives the labels accepted for each name, in any case. A label stands at the beginning
    of a line or, capitalised, further on; bare, emphasised or bracketed with a colon of either
    width, or as a heading of its own. Its field runs to the next label; the parts of a label that
    occurs twice are joined by a line break. A JSON object is read by its keys, which may also be
    the names themselves.
    """
    text = visible(text)
    accepted = {_label(label): name for name, labels in names.items() for label in labels}
    value = parse_json(text)
    if isinstance(value, dict):
        keys = {_label(name): name for name in names} | accepted
        read = {
            keys[_label(key)]: _text(part) for key, part in value.items() if _label(key) in keys
        }
        if read:
            return {name: part for name, part in read.items() if part}
    if not accepted:
        return {}
    starts = list(_labels(accepted).finditer(text))
    ends = [*(start.start() for start in starts), len(text)][1:]
    fields: dict[str, str] = {}
    for start, end in zip(starts, ends, strict=True):
        name = accepted.get(_label(start["label"]))
        part = _loose(text[start.end() : end])
        if name is not None and part:
            fields[name] = f"{fields[name]}\n{part}" if name in fields else part
    return fields


def _label(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).replace("_", " ").casefold().split())


def _text(value: Any) -> str:
    if value is None:
        return ""
    return visible(value) if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


_OPENED = r"(?P<opened>#{1,6}[ \t]+[【\[*_`]{0,3}|[【\[*_`]{1,3})?"


def _labels(labels: Iterable[str]) -> re.Pattern[str]:
    words = sorted(labels, key=len, reverse=True)
    label = "|".join(re.escape(word).replace(r"\ ", r"[\s_]+") for word in words)
    return re.compile(
        # At the beginning of a line, behind a sentence, or capitalised behind white space.
        r"(?:^[ \t]*(?:(?:[-*+•>]|\d{1,2}[.)、])[ \t]+)*|(?<=[.。!！?？;；|])|(?=[【\[])|"
        r"(?<=\s)(?-i:(?=[【\[*_`]{0,3}[^\Wa-z])))"
        rf"{_OPENED}\s*(?P<label>{label})\s*?[】\]*_`]{{0,3}}[ \t]*"
        # Only what is set apart can do without a colon: [Verdict] True, or a heading.
        r"(?:(?:[:：=]|[-–—](?=\s))[*_`]{0,3}|(?<=[】\]])|(?(opened)$|(?!)))",
        re.I | re.M,
    )


def _loose(part: str) -> str:
    part = visible(part)
    for mark in ("**", "__"):
        if part.count(mark) % 2:
            part = part.removeprefix(mark).removesuffix(mark).strip()
    return part


_DECLINES = re.compile(
    r"(?:(?:i['’]m |i am )?sorry[,. ]+(?:but )?)?"
    r"(?:i (?:really |honestly )?(?:do not|don['’]?t) "
    r"(?:know|have (?:an|any|enough|sufficient|that|the)\b)|"
    r"i(?:['’]m| am) (?:not |un)(?:sure|certain|aware)|"
    r"i have no (?:idea|comment|information|knowledge)|no (?:idea|comment)\b|"
    r"ich wei(?:ß|ss) (?:es |das )?(?:leider )?nicht|je ne (?:le )?sais pas|no (?:lo )?s[eé]\b)|"
    r"(?:(?:抱歉|对不起|很遗憾)[，,]?)?我?(?:也|并|真的)?"
    r"(?:不知道|不清楚|不确定|不了解|没有答案|无可奉告)|"
    r"(?:すみません、?)?(?:わかりません|分かりません|知りません)",
    re.I,
)


def declines(answer: str) -> bool:
    """Whether an answer gives none: a refusal, or "I don't know"."""
    return is_refusal(answer) or _DECLINES.match(answer.strip()) is not None

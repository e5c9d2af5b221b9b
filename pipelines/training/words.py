"""The words that training pairs are made with (`assets/judge/words.toml`)."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path
from random import Random
from typing import Any

__all__ = ["base_forms", "exchanged", "said_otherwise", "turned_round"]

_FILE = Path(__file__).parents[2] / "assets" / "judge" / "words.toml"


def base_forms() -> dict[str, str]:
    """Past forms of verbs with their base forms: "wrote" to "write"."""
    return _data()["base_forms"]


def exchanged(sentence: str, random: Random) -> str | None:
    """`sentence` with one word replaced by another of its group; None where it has no such word."""
    return _replaced(sentence, _exchangeable(), random)


def turned_round(sentence: str, random: Random) -> str | None:
    """`sentence` with one word replaced by its opposite; None where it has no such word."""
    return _replaced(sentence, _opposites(), random)


def said_otherwise(sentence: str, random: Random) -> str | None:
    """`sentence` in other words that say nearly the same; None where none are known."""
    return _replaced(sentence, _same(), random)


def _replaced(sentence: str, others: Mapping[str, tuple[str, ...]], random: Random) -> str | None:
    places = [m for m in _pattern(tuple(others)).finditer(sentence) if m[0] in others]
    if not places:
        return None
    place = random.choice(places)
    other = random.choice(others[place[0]])
    head, tail = sentence[: place.start()], sentence[place.end() :]
    # "a lawyer" becomes "an actor".
    if (article := re.search(r"\b([Aa])n? $", head)) is not None:
        head = f"{head[: article.start()]}{article[1]}{'n' if other[0] in 'aeiouAEIO' else ''} "
    return head + other + tail


@cache
def _pattern(words: tuple[str, ...]) -> re.Pattern[str]:
    longest_first = sorted(words, key=len, reverse=True)
    return re.compile(r"(?<!\w)(?:" + "|".join(map(re.escape, longest_first)) + r")(?!\w)")


@cache
def _data() -> dict[str, dict[str, Any]]:
    return tomllib.loads(_FILE.read_text(encoding="utf-8"))


def _rivals(sets: Iterable[Iterable[str]]) -> dict[str, tuple[str, ...]]:
    rivals: dict[str, tuple[str, ...]] = {}
    for words in sets:
        members = tuple(words)
        for word in members:
            others = tuple(other for other in members if other != word)
            rivals[word] = (*rivals.get(word, ()), *others)
    capitals = {word.capitalize(): tuple(o.capitalize() for o in o_) for word, o_ in rivals.items()}
    return capitals | rivals


@cache
def _exchangeable() -> dict[str, tuple[str, ...]]:
    return _rivals(_data()["exchangeable"].values())


@cache
def _opposites() -> dict[str, tuple[str, ...]]:
    return _rivals(_data()["opposites"]["pairs"])


@cache
def _same() -> dict[str, tuple[str, ...]]:
    return _rivals(_data()["same"]["sets"])

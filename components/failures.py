"""Why something failed, in the language of a page.

An error holds its English words alone, also where it was recorded. Where assets/failures.toml has
Chinese words for it, its facts are read back from the English ones.
"""

from __future__ import annotations

import re
from functools import cache
from string import Formatter

from components.messages import Catalogue
from pipelines.errors import ErrorInfo, failure_words


def explained(error: ErrorInfo, t: Catalogue) -> str:
    """What happened and what to do about it; in English where there are no other words."""
    said = f"{error.message} {error.remedy}".strip()
    if t.language == "en":
        return said
    for pattern, chinese in _translated():
        if found := pattern.fullmatch(said):
            return chinese.format_map(found.groupdict())
    return said


@cache
def _translated() -> list[tuple[re.Pattern[str], str]]:
    """Each failure that has Chinese words: what its English ones look like, and the Chinese."""
    return [
        (_pattern(f"{said['message']} {said['remedy']}"), said["chinese"])
        for group in failure_words().values()
        for said in group.values()
        if "chinese" in said
    ]


def _pattern(words: str) -> re.Pattern[str]:
    """`words` with a group for each fact. One that is written as Python does is in quotes."""
    known: set[str] = set()
    parts: list[str] = []
    for literal, name, _, conversion in Formatter().parse(words):
        parts.append(re.escape(literal))
        if name is None:
            continue
        group = f"(?P={name})" if name in known else f"(?P<{name}>.*)"
        parts.append(f"['\"]{group}['\"]" if conversion == "r" else group)
        known.add(name)
    return re.compile("".join(parts), re.DOTALL)

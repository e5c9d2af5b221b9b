"""Prompts as data: `assets/prompts/<name>.toml`, one table a language, one entry a prompt.

Placeholders are written `$question`; the hash of a whole file goes into every trace, so that a
recorded run says which wording produced it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from hashlib import sha256
from string import Template

from pipelines.paths import ASSETS
from pipelines.types import Language, Message, Passage

_FOLDER = ASSETS / "prompts"


class Prompts:
    """The prompts of one method in every language it speaks."""

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.hash = sha256(source.encode()).hexdigest()[:16]
        self._texts: dict[str, dict[str, str]] = tomllib.loads(source)

    def fill(self, language: Language, key: str, **values: str) -> str:
        """The prompt `key` with its placeholders filled; a missing value is a KeyError."""
        return Template(self._texts[language][key]).substitute(values).strip()

    def turns(self, language: Language, *keys: str, **values: str) -> tuple[Message, ...]:
        """The request of the last key; of two keys the first one gives the instructions."""
        *system, user = (self.fill(language, key, **values) for key in keys)
        return (
            *(Message(role="system", content=one) for one in system),
            Message(role="user", content=user),
        )

    def listed(self, language: Language, passages: Sequence[Passage]) -> str:
        """The prompt `passage` for each of `passages`, numbered in their order.

        Where there is a prompt `untitled`, it words passages without a title.
        """
        untitled = "untitled" if "untitled" in self._texts[language] else "passage"
        return "\n".join(
            self.fill(
                language,
                "passage" if one.title else untitled,
                rank=str(rank),
                title=one.title,
                text=one.text,
            )
            for rank, one in enumerate(passages, start=1)
        )


@cache
def load_prompts(name: str) -> Prompts:
    """The prompts of the method `name`, read once."""
    return Prompts(name, (_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))

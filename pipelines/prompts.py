"""Prompts as data: `assets/prompts/<name>.toml`, a table for each language with its prompts.

Placeholders are written `$question`, a dollar sign `$$`. A language may have demonstrations, the
tables `shots`: each holds the name of its set (`of`), a value for every placeholder of the prompt
that it demonstrates, and the `reply` that a model should write. The hash of the whole file goes
into every trace, so that a recorded run says which wording produced it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from hashlib import sha256
from string import Template
from typing import Any

from pipelines.paths import ASSETS
from pipelines.types import Language, Message, Passage

_FOLDER = ASSETS / "prompts"


class Prompts:
    """The prompts of one file, in every language that it holds.

    `hash` is the first 16 hexadecimal digits of the SHA-256 of `source`, the text of the file.
    """

    def __init__(self, name: str, source: str) -> None:
        self.name = name
        self.hash = sha256(source.encode()).hexdigest()[:16]
        self._texts: dict[str, dict[str, Any]] = tomllib.loads(source)

    @property
    def languages(self) -> frozenset[str]:
        """The languages that the file holds."""
        return frozenset(self._texts)

    def fill(self, language: Language, key: str, **values: str) -> str:
        """The prompt `key` with its placeholders filled, without white space around it.

        Values that it has no placeholder for are ignored. Raises KeyError for a language or a
        prompt that the file does not hold, and for a missing value.
        """
        return Template(self._texts[language][key]).substitute(values).strip()

    def turns(
        self, language: Language, *keys: str, shots: str = "", **values: str
    ) -> tuple[Message, ...]:
        """A chat that ends with the prompt of the last key, as the user's turn.

        The prompts of the other keys stand first, as system turns. Then come the demonstrations of
        the set `shots`, if one is named, each as the last key's prompt and the reply to it. What is
        the same in every request comes first, so that backends need not read it again.
        """
        *system, user = (self.fill(language, key, **values) for key in keys)
        return (
            *(Message(role="system", content=one) for one in system),
            *(self._demonstrations(language, shots, keys[-1]) if shots else ()),
            Message(role="user", content=user),
        )

    def shots(self, language: Language, name: str) -> list[dict[str, str]]:
        """The demonstrations of the set `name`, in the order of the file; none for another name.

        Each holds `of`, the values of a prompt's placeholders, and `reply`.
        """
        return [shot for shot in self._texts[language].get("shots", ()) if shot["of"] == name]

    def _demonstrations(self, language: Language, shots: str, key: str) -> Iterator[Message]:
        for shot in self.shots(language, shots):
            yield Message(role="user", content=self.fill(language, key, **shot))
            yield Message(role="assistant", content=shot["reply"].strip())

    def listed(self, language: Language, passages: Sequence[Passage]) -> str:
        """The prompt `passage` for each of `passages`, numbered from 1 in their order.

        Passages without a title are worded by the prompt `untitled`, where the file has one.
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
    """The prompts in `assets/prompts/<name>.toml`, read once."""
    return Prompts(name, (_FOLDER / f"{name}.toml").read_text(encoding="utf-8"))

"""A conversation as texts to check: each answer of the assistant, with what it answers and what it
had to go by.

The question of a turn is what the user said last; where that does not stand alone ("And when was
she born?"), what was said before it stands in front of it. Its sources are what tools and documents
said until then. Earlier answers of the assistant are no sources: they are checked themselves.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from pydantic import Field

from pipelines.base import Frozen, Language
from pipelines.engine.checking import TextToCheck, problem_of
from pipelines.engine.messages import Utterance
from pipelines.run.events import MAX_SOURCES
from pipelines.text import has_han, split_sentences, without_thinking

_MOST_BEFORE = 600
"""Characters of what was said before, in front of a question that does not stand alone."""

_MOST_OF_ANSWER = 200
_LONG = 300
"""Characters from which on what a user says holds a text beside the question."""

_POINTS_BACK = re.compile(
    r"\b(?:he|she|it|its|they|him|her|his|their|them|this|that|these|those|there|then|one|ones"
    r"|former|latter|same|else)\b",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"^\W*(?:and|but|so|or|what about|how about|why|since when)\b", re.IGNORECASE)
_POINTS_BACK_ZH = re.compile(r"[他她它]们?|这|那|其|该|此")
_FEW_WORDS, _FEW_CHARACTERS = 4, 6


class ConversationTurn(Frozen):
    """An answer of the assistant as a text to check; `number` counts its answers from 1."""

    number: int = Field(ge=1)
    given: TextToCheck


def turns_of(
    messages: Sequence[Utterance],
    *,
    sources: tuple[str, ...] = (),
    language: Language | None = None,
) -> list[ConversationTurn]:
    """Return every answer of a conversation as a text to check, with its context.

    `sources` hold for every turn. Answers without a word, such as calls of tools, are left out.
    """
    turns: list[ConversationTurn] = []
    said = list(sources)
    question = asked = ""
    last = ""
    for one in messages:
        said += one.documents
        if one.speaker == "tool":
            said += [one.text] if one.text.strip() else []
        elif one.speaker == "user":
            asked, pasted = _asked(one.text)
            said += [pasted] if pasted else []
            question = _with_context(asked, question, last)
        elif one.speaker == "assistant" and one.text.strip():
            text = without_thinking(one.text).strip()
            if not text:
                continue
            given = TextToCheck(
                text=text, question=question, sources=_newest(said, sources), language=language
            )
            wrong = problem_of(given)
            if wrong is not None and wrong.name in ("repeats", "long_question"):
                # What it says was said before it.
                given = given.model_copy(update={"question": asked[-_MOST_BEFORE:]})
            turns.append(ConversationTurn(number=len(turns) + 1, given=given))
            last = text
    return turns


def _newest(said: Sequence[str], kept: Sequence[str]) -> tuple[str, ...]:
    """Return the sources of a turn; where they are too long, the oldest of those found give way."""
    found = list(dict.fromkeys(one.strip() for one in said if one.strip()))
    room = MAX_SOURCES - sum(len(one) + 2 for one in kept)
    chosen: list[str] = []
    for one in reversed([text for text in found if text not in kept]):
        if len(one) + 2 > room:
            break
        room -= len(one) + 2
        chosen.append(one)
    return (*kept, *reversed(chosen))


def _asked(text: str) -> tuple[str, str]:
    """Return what is asked, and the text that came with it: of a long message that holds a text,
    the paragraph with the last question, else the shorter one of the first and the last.
    """
    text = text.strip()
    parts = [part.strip() for part in re.split(r"\n\s*\n|\n(?=\S)", text) if part.strip()]
    if len(text) <= _LONG or len(parts) < 2:
        return text, ""
    asking = [part for part in parts if part.endswith(("?", "？"))]
    chosen = asking[-1] if asking else min(parts[0], parts[-1], key=len)
    if len(chosen) > _LONG:
        return text, ""
    return chosen, "\n".join(part for part in parts if part is not chosen)


def _with_context(asked: str, before: str, answered: str) -> str:
    """Return a question that stands alone: with earlier turns if its words point back to them."""
    if not before or not _depends(asked):
        return asked
    first = next((span.text for span in split_sentences(answered)), "")[:_MOST_OF_ANSWER]
    context = " ".join(filter(None, (before, first)))
    if len(context) > _MOST_BEFORE:
        # Its end: the beginning of a long conversation is about something else.
        context = context[-_MOST_BEFORE:].partition(" ")[2] or context[-_MOST_BEFORE:]
    return f"{context} {asked}".strip()


def _depends(asked: str) -> bool:
    if has_han(asked):
        return len(asked.strip("？?。 ")) <= _FEW_CHARACTERS or points_back(asked)
    few = len(asked.split()) <= _FEW_WORDS
    named = any(word[:1].isupper() for word in asked.split()[1:])
    return bool(_GOES_ON.search(asked)) or points_back(asked) or (few and not named)


def points_back(text: str) -> bool:
    """Return whether a word of `text` means something that was said before it, such as "she"."""
    return bool((_POINTS_BACK_ZH if has_han(text) else _POINTS_BACK).search(text))

"""How Rowen reads translations, has a question answered, and binds the form of paraphrases."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, Literal

from pipelines.base import FilledText, Language, Message
from pipelines.methods.base import load_wording
from pipelines.methods.replies.paraphrases import MAX_PARAPHRASE, asks, written_in
from pipelines.methods.replies.parsing import is_refusal
from pipelines.methods.writing import ask
from pipelines.prompts import load_prompts
from pipelines.run.findings import TargetLanguage
from pipelines.run.scope import Scope
from pipelines.text import text_key
from pipelines.text.languages import HAN

_LATIN_WORD, _HAN_WORD = re.compile("[A-Za-z]{2,}"), re.compile(f"[{HAN}]+")
_STAYS = re.compile("(?<![A-Za-z])[A-Z]{2,}(?![A-Za-z])|(?<=《)[^》]+(?=》)")


def why_no_translation(
    text: str, original: str, code: TargetLanguage
) -> Literal["", "language", "statement", "unusable"]:
    """Return why `text` cannot be the translation of `original` into the language `code`; ""
    if it can.

    A translation is in its language alone. Between Chinese and English only an abbreviation and a
    quoted title may stay as they are in the original. What translates a question asks.
    """
    if not text or is_refusal(text) or len(text) > MAX_PARAPHRASE:
        return "unusable"
    if text_key(text) == text_key(original) or not written_in(text, code):
        return "language"
    left = _LATIN_WORD if code == "zh" else _HAN_WORD
    stays = _STAYS.findall(original)
    if code != "ja" and any(word not in stays for word in left.findall(text)):
        return "language"
    return "statement" if asks(original) and not asks(text) else ""


def loses_any(translation: str, kept: Iterable[str]) -> bool:
    """Return whether a name or figure that a translation has to keep is missing from it."""
    text = _plain(translation)
    return any(_plain(one) not in text for one in kept)


def _plain(text: str) -> str:
    return re.sub(r"^the\s|[\W_]", "", text.casefold())


def translation_pattern(original: str, code: Language) -> str:
    """Return a regular expression, from ^ to $, of questions in `code` alone: see
    `why_no_translation`.

    Left to itself, a small model writes "Who designed the 埃菲尔铁塔?".
    """
    letters = "[0-9A-Za-z ,.'()%:;-]" if code == "en" else f"[0-9{HAN}，、·《》（）：；%.-]"
    stays = [word for word in _STAYS.findall(original) if re.fullmatch(rf"[A-Z{HAN}]+", word)]
    return rf"^({'|'.join([letters, *stays])})+{'[?]' if code == 'en' else '？'}$"


# How Rowen has a question answered: reasoning first, then the answer alone, in any language.

PROMPTS = load_prompts("rowen")

SHORT_TOKENS = 96
"""Longest short answer, translation or query, in tokens."""


async def answer_question(
    step: Scope,
    text: str,
    code: TargetLanguage,
    *,
    reasoned: bool,
    shown: bool = False,
    max_tokens: int,
    **options: Any,
) -> str:
    """Return the short answer to a question, after reasoning where `reasoned`; "" for none.

    With `shown`, an answer without reasoning is demonstrated: it is that alone, no sentence, and so
    can be compared. `options` are the role that answers, and those of its requests.
    """
    messages, reasoning = question_messages("reason", text, code), ""
    if reasoned:
        reasoning = await ask(step, messages, max_tokens=max_tokens, **options)
    asked = short_messages(messages, reasoning, code)
    if shown and not reasoning:
        shots = PROMPTS.shots(_words(code), "single")
        turns = ((one["question"], one["reply"]) for one in shots)
        asked = (
            asked[0],
            *(
                Message(role=role, content=content)
                for turn in turns
                for role, content in zip(("user", "assistant"), turn, strict=True)
            ),
            *asked[1:],
        )
    return await ask(step, asked, max_tokens=SHORT_TOKENS, **options)


def question_messages(key: str, text: str, code: TargetLanguage) -> tuple[Message, ...]:
    """Return messages that ask a question under the prompt "reason", to think it through, or
    "single".
    """
    words = _words(code)
    system = PROMPTS.fill(words, key)
    if words != code:
        name = PROMPTS.fill(words, f"language_{code}")
        system = FilledText.joined("\n", (system, PROMPTS.fill(words, "in_language", name=name)))
    return (Message(role="system", content=system), Message(role="user", content=text))


def short_messages(
    messages: Sequence[Message], reasoning: str, code: TargetLanguage
) -> tuple[Message, ...]:
    """Return the second turn, for the answer alone; without a reasoning it is the only one."""
    if not reasoning:
        return question_messages("single", messages[-1].text, code)
    said = Message(role="assistant", content=reasoning)
    return (*messages, said, *PROMPTS.turns(_words(code), "short"))


def _words(code: TargetLanguage) -> Language:
    """Return the language of the prompts that ask in `code`."""
    return "zh" if code == "zh" else "en"


# The form that a weak model's paraphrases are bound to: the question's kind, and its names.
#
# Left to itself, a small model paraphrases "Where did Ada Brandt die?" as "Who was the oldest
# man?". A server that keeps replies to a grammar writes only questions that begin as one of this
# kind may begin, and that name what the question names and nothing else. English only.

_FORMS_WORDING = load_wording("rowen")
_KINDS = [
    (re.compile(rf"(?:{kind['asks']})\b", re.I), tuple(kind["begins"]))
    for kind in _FORMS_WORDING.entries["openings"]
]
_NAME = re.compile(r"[A-Z][\w.-]*(?:(?: (?:of|the|de|van|von|da))? [A-Z][\w.-]*)*|\d[\d.,]*\d|\d")
_NOUN_ENDS = _FORMS_WORDING.pattern("noun_ends").pattern
_NAMED = re.compile(
    rf"(?:(\w+) )?(?:which|what) (?!{_NOUN_ENDS}\b)(.+?)(?: {_NOUN_ENDS}\b|\?|$)", re.I
)
_SPECIAL = re.compile(r"[.\\+*?\[\](){}|^$/]")
_MAX_NOUN = 3
_MOST_WORDS = (6, 12)
"""Words on each side of the name that has to be there: as many as the question has, within these
two numbers."""


def question_pattern(question: str) -> str:
    """Return a regular expression, from ^ to $, of the questions that can be paraphrases of
    `question`.

    They have the longest of its names, or else its number. What else is written with capitals or
    figures is the question's, so that no name and no number is made up.
    """
    before, noun = _asked_for(question)
    # The first word of a question is no name.
    names = set(_NAME.findall(question.partition(" ")[2].replace(noun, "")))
    known = names | {part for name in names for part in name.split() if not part.islower()}
    ordered = sorted(known, key=lambda name: (name[0].isdigit(), -len(name), name))
    word = "[a-z][a-z'-]{0,14}"
    # Groups that capture nothing are not understood by every server.
    choice = "|".join([word, *(_literal(name) + "('s)?" for name in ordered)])
    words = f"( ({choice}))"
    least, most = _MOST_WORDS
    around = f"{words}{{0,{min(max(len(question.split()), least), most)}}}"
    said = f"{around} {_literal(ordered[0])}('s)?{around}" if ordered else around
    begins = "|".join(map(_literal, _openings(question, before, noun)))
    return rf"^({begins}){said}\?$"


def _asked_for(question: str) -> tuple[str, str]:
    """Return what stands after "which" or "what", and the preposition before that; each
    may be "".
    """
    found = _NAMED.match(question.strip())
    if found is None:
        return "", ""
    words = found[2].split()
    if len(words) > _MAX_NOUN:
        # No verb that helps ends it: "Which East Arlen journal published the first ..."
        words = words[: 1 + sum(1 for _ in takewhile(str.istitle, words))]
    return found[1] or "", " ".join(words)


def _openings(question: str, before: str, noun: str) -> list[str]:
    """Return how a question of this kind may begin."""
    text = question.strip()
    found = next((begins for asks, begins in _KINDS if asks.match(text)), None)
    if found is None:
        return [text.partition(" ")[0]]
    filled = (_filled(begin, before, noun) for begin in found)
    return list(dict.fromkeys(begin for begin in filled if begin))


def _filled(begin: str, before: str, noun: str) -> str:
    if ("${noun}" in begin and not noun) or ("${before}" in begin and not before):
        return ""
    return begin.replace("${noun}", noun).replace("${before}", before)


def _literal(text: str) -> str:
    return _SPECIAL.sub(r"\\\g<0>", text)

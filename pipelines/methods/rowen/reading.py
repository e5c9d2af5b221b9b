"""How Rowen reads what a model wrote: paraphrases and translations."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from itertools import takewhile
from typing import Any, Literal

from pipelines.base import FilledText, Language, Message
from pipelines.methods.base import Question, load_wording
from pipelines.methods.replies.lists import parse_list
from pipelines.methods.replies.parsing import asked_kind, is_refusal
from pipelines.methods.writing import ask
from pipelines.prompts import load_prompts
from pipelines.run.findings import DiscardReason, TargetLanguage
from pipelines.run.scope import Scope
from pipelines.text import detect_language, text_key
from pipelines.text.bilingual_names import invented_words
from pipelines.text.languages import HAN

_MAX_PARAPHRASE = 600
_MIN_WORDS = 3
_WORD = re.compile(rf"[{HAN}]|[^\W{HAN}]+")

_NUMBER = re.compile(r"\A(?:\d{1,2}(?:[.)] +|[、．）] *)|[(（]\d{1,2}[)）] *)(?=\D)")
_ENDS_WITH_A_QUESTION = re.compile(r"[?？][^\w?？]*\Z")
_LATIN_WORD, _HAN_WORD = re.compile("[A-Za-z]{2,}"), re.compile(f"[{HAN}]+")
_STAYS = re.compile("(?<![A-Za-z])[A-Z]{2,}(?![A-Za-z])|(?<=《)[^》]+(?=》)")
_KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")

_WHO: dict[Language, re.Pattern[str]] = {
    "en": re.compile(r"\bwho(?:m|se)?\b", re.I),
    "zh": re.compile("谁"),
}
_WORDING = load_wording("rowen")
_NO_WORD = _WORDING.pattern("no_word")
_QUESTION_FORM = {code: _WORDING.pattern(f"question_{code}") for code in ("en", "zh")}
_FUNCTION_WORDS: dict[TargetLanguage, frozenset[str]] = {
    code: frozenset(listed.split()) for code, listed in _WORDING.entries["function_words"].items()
}


def paraphrases_in(
    reply: str, question: Question, known: Iterable[str] = ()
) -> tuple[list[str], list[tuple[str, DiscardReason]]]:
    """Return the usable new paraphrases of a reply, and what was discarded, each with its reason.

    A paraphrase asks something in the question's language. Discarded are the question itself,
    repetitions of it or of what is `known`, single words, whole essays, and what asks nothing for
    certain: numbers and dates without a word beside them, statements, a question with its answer.
    """
    keys = {text_key(text) for text in (question.text, *known)}
    taken: list[str] = []
    discarded: list[tuple[str, DiscardReason]] = []
    for item in parse_list(reply):
        # In JSON, too, models number what they list.
        text = _NUMBER.sub("", " ".join(item.split()))
        reason = _why_not(text, question, keys)
        if reason is None:
            keys.add(text_key(text))
            taken.append(text)
        else:
            discarded.append((text, reason))
    return taken, discarded


def _why_not(text: str, question: Question, known: set[str]) -> DiscardReason | None:
    language = question.language
    words = _WORD.findall(text)
    said = any(_NO_WORD.fullmatch(word) is None for word in words)
    if not said or len(words) < _MIN_WORDS or len(text) > _MAX_PARAPHRASE:
        return "unusable"
    if text_key(text) in known:
        return "repeated"
    if not written_in(text, language):
        return "language"
    if language == "en" and not {*invented_words(text)} <= {*invented_words(question.text)}:
        return "unusable"
    if _asks_otherwise(text, question):
        return "meaning"
    form = not re.search("[?？]", text) and _QUESTION_FORM[language].match(text)
    return None if asks(text) or form else "statement"


def _asks_otherwise(text: str, question: Question) -> bool:
    """Return whether a text asks for another kind of thing than the question: for a time, not
    a person.
    """
    kind, own = (_kind_of(one, question.language) for one in (text, question.text))
    return None not in (kind, own) and kind != own


def _kind_of(text: str, language: Language) -> str | None:
    found = asked_kind(Question(text=text, language=language))
    return found or ("person" if _WHO[language].search(text) else None)


def asks(text: str) -> bool:
    """Return whether a text ends with a question mark: what follows one would be an answer."""
    return _ENDS_WITH_A_QUESTION.search(text) is not None


def why_no_translation(
    text: str, original: str, code: TargetLanguage
) -> Literal["", "language", "statement", "unusable"]:
    """Return why `text` cannot be the translation of `original` into the language `code`; ""
    if it can.

    A translation is in its language alone. Between Chinese and English only an abbreviation and a
    quoted title may stay as they are in the original. What translates a question asks.
    """
    if not text or is_refusal(text) or len(text) > _MAX_PARAPHRASE:
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


def written_in(text: str, code: TargetLanguage) -> bool:
    """Return whether `text` can be of that language: by its script, then by its function words.

    Japanese has kana, which Chinese has not. Of the others, a text without any function word may be
    of each of them.
    """
    kana = _KANA.search(text) is not None
    if code == "ja":
        return kana
    if kana or detect_language(text) != ("zh" if code == "zh" else "en"):
        return False
    if code == "zh":
        return True
    words = re.findall(r"[^\W\d_]+", text.casefold())
    hits = {one: sum(word in listed for word in words) for one, listed in _FUNCTION_WORDS.items()}
    return hits[code] == max(hits.values())


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

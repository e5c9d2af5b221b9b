"""How other forms of a question are read from a reply.

Rowen compares the answers to such paraphrases, and HAARAG searches for them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

from pipelines.base import Language
from pipelines.methods.base import Question, load_wording
from pipelines.methods.replies.lists import parse_list
from pipelines.methods.replies.parsing import asked_kind
from pipelines.run.findings import DiscardReason, TargetLanguage
from pipelines.text import detect_language, text_key
from pipelines.text.bilingual_names import invented_words
from pipelines.text.languages import HAN

MAX_PARAPHRASE = 600
"""Characters of the longest question that is taken for a paraphrase or its translation."""

_MIN_WORDS = 3
_WORD = re.compile(rf"[{HAN}]|[^\W{HAN}]+")
_NUMBER = re.compile(r"\A(?:\d{1,2}(?:[.)] +|[、．）] *)|[(（]\d{1,2}[)）] *)(?=\D)")
_ENDS_WITH_A_QUESTION = re.compile(r"[?？][^\w?？]*\Z")
_KANA = re.compile(r"[\u3041-\u3096\u30a1-\u30fa]")

_WHO: dict[Language, re.Pattern[str]] = {
    "en": re.compile(r"\bwho(?:m|se)?\b", re.I),
    "zh": re.compile("谁"),
}
_WORDING = load_wording("paraphrases")
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
    if not said or len(words) < _MIN_WORDS or len(text) > MAX_PARAPHRASE:
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

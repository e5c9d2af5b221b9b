"""Ordinary English words, to tell a name from a word that merely opens a sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipelines.text.lexicon import words

__all__ = ["ACRONYMS", "is_common", "is_function_word", "may_modify"]

ACRONYMS = words("en_common", "acronyms")
_FUNCTION_WORDS = words("en_common", "function_words")
_COMMON = _FUNCTION_WORDS | words("en_common", "nouns", "others", "past_verbs")
_PAST_VERBS = words("en_common", "past_verbs")
_ABSTRACT_ENDING = re.compile(
    r"(?:[ts]ions?|ness(?:es)?|ments?|ings?|isms?|ities|ity|olog(?:y|ies|ists?)|ograph(?:y|ies)|"
    r"nomy|etry|ysis|yses|osis|itis|ically|[aeo]usly|fully|[ai]bly|[ai]ble|ships?|hoods?|[ct]ious|"
    r"less|ances?|ences?|ics|cillins?|phyll|ivity|wards?|wise|ware|oids?|gens?|genic|esis)$"
)
_SHORTEST_ABSTRACT = 7
_VERB_ENDING = re.compile(r"(?:ed|s|ly)$")


def is_function_word(word: str) -> bool:
    """Whether `word`, in any case, is a pronoun, preposition, conjunction, adverb or the like."""
    return word.lower() in _FUNCTION_WORDS


def is_common(word: str) -> bool:
    """Whether `word` or its base form is an ordinary word, or is built like an abstract noun."""
    lowered = word.lower()
    if any(form in _COMMON for form in _base_forms(lowered)):
        return True
    return len(lowered) >= _SHORTEST_ABSTRACT and _ABSTRACT_ENDING.search(lowered) is not None


def may_modify(following: str) -> bool:
    """Whether `following`, the lower-case word after a name, can be a noun the name qualifies.

    "Tesla cars" and "the Danube delta" against "Tesla sold", "Mozart died" and "the Danube is".
    """
    if not following[:1].islower() or following in _FUNCTION_WORDS or following in _PAST_VERBS:
        return False
    if _VERB_ENDING.search(following) is None or following.endswith(("ics", "ss", "us")):
        return True
    return following.removesuffix("s") in _NOUNS


def _base_forms(word: str) -> Iterator[str]:
    yield word
    for ending, endings in _ENDINGS:
        if word.endswith(ending):
            stem = word[: -len(ending)]
            yield from (stem + other for other in endings)
            if len(stem) > 2 and stem[-1] == stem[-2]:
                yield stem[:-1]


_NOUNS = words("en_common", "nouns")
_ENDINGS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("ies", ("y",)),
    ("es", ("", "e")),
    ("s", ("",)),
    ("ied", ("y",)),
    ("ed", ("", "e")),
    ("ing", ("", "e")),
    ("ily", ("y",)),
    ("ly", ("", "le")),
    ("ier", ("y",)),
    ("iest", ("y",)),
    ("er", ("", "e")),
    ("est", ("", "e")),
)

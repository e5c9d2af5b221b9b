"""Whom a pronoun in a sentence of a given text means, by the sentences before it (ours).

A claim is looked up and judged alone. "She studied physics." finds nothing about Marie Curie, and a
judge that reads it beside the right passage cannot know that it is about her. So the name that the
nearest sentence before it begins with takes the pronoun's place, and where no sentence before it
names anybody, that of the question. A Chinese text is about whom its first sentence begins with.
"""

from __future__ import annotations

import re

from pipelines.methods.subjects import SMALL_WORDS, chinese_head, leading_name, words_of
from pipelines.text import split_sentences
from pipelines.text.languages import has_han

_PRONOUN = re.compile(r"\b(?:he|she|it|his|her|its)\b", re.IGNORECASE)
_PRONOUN_ZH = re.compile(r"\A[他她它](?!们)")
_OWNED = {"his", "her", "its"}
# "It is said that", "It was in 1903 that": there "it" means nothing.
_NOBODY = re.compile(r"\bit\s+(?:is|was|has been)\b.*\b(?:that|who|to)\b", re.IGNORECASE)
_ARTICLE = re.compile(r"the\s+", re.IGNORECASE)


def named(claim: str, context: str, subject: str = "") -> str:
    """Return `claim` with the name that its first pronoun means, where no name stands before that.

    The name is that of `context`, or else the `subject` of the question where that is a name. The
    claim stays as it is where there is no pronoun or no such name.
    """
    if has_han(claim):
        spans = split_sentences(context)
        name = chinese_head(spans[0].text if spans else subject)
        return _PRONOUN_ZH.sub(name, claim, count=1) if name else claim
    found = _PRONOUN.search(claim)
    if found is None or _NOBODY.match(claim[found.start() :]):
        return claim
    if any(_is_name(word) for word in words_of(claim[: found.start()])):
        return claim
    name = _latest_name(context) or (subject if any(map(_is_name, words_of(subject))) else "")
    if not name:
        return claim
    owner = "'s" if found[0].casefold() in _OWNED else ""
    text = f"{claim[: found.start()]}{name}{owner}{claim[found.end() :]}"
    return f"{text[:1].upper()}{text[1:]}"


def _latest_name(context: str) -> str:
    """Return the name that the last sentence begins with, of those that begin with one; ""
    for none.
    """
    for sentence in reversed(split_sentences(context)):
        article = _ARTICLE.match(sentence.text)
        words = words_of(sentence.text[article.end() :] if article else sentence.text)
        name = leading_name(words)
        if name and f"{name[-1]}'s" in sentence.text.replace("’", "'"):
            # "Marie Curie's husband" is somebody else.
            return ""
        if name and _is_name(name[0]) and not name[-1][0].isdigit():
            return f"{'the ' if article else ''}{' '.join(name)}"
    return ""


def _is_name(word: str) -> bool:
    return word[0].isupper() and word.casefold() not in SMALL_WORDS and not _PRONOUN.fullmatch(word)

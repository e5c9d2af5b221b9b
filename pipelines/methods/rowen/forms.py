"""The form that a weak model's paraphrases are bound to: the question's kind, and its names.

Left to itself, a small model paraphrases "Where did Ada Brandt die?" as "Who was the oldest man?".
A server that keeps replies to a grammar writes only questions that begin as one of this kind may
begin, and that name what the question names and nothing else. English only.
"""

from __future__ import annotations

import re
from itertools import takewhile

from pipelines.methods.wording import load_wording

_WORDING = load_wording("rowen")
_KINDS = [
    (re.compile(rf"(?:{kind['asks']})\b", re.I), tuple(kind["begins"]))
    for kind in _WORDING.entries["openings"]
]
_NAME = re.compile(r"[A-Z][\w.-]*(?:(?: (?:of|the|de|van|von|da))? [A-Z][\w.-]*)*|\d[\d.,]*\d|\d")
_NOUN_ENDS = _WORDING.pattern("noun_ends").pattern
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

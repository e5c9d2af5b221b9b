"""The claim that a concept is checked by: its sentence, as little else in it as leaves it whole.

A judge reads the claim alone, so it has to be a sentence that somebody could have written. What
else a sentence tells is left out only where it stands apart: a phrase of time or place, what stands
between brackets or commas, one of two things joined by "and". Where that is in doubt it
stays, and is judged with the concept. In Chinese the clause of the concept is taken, with the name
that the sentence begins with.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise

from pipelines.methods.ever.references import named
from pipelines.methods.subjects import AUXILIARIES, chinese_head, find_concept, is_past
from pipelines.text import Span
from pipelines.text.chinese import tagged_words
from pipelines.text.languages import has_han

BLANK = "____"

_PHRASE = r"(?:in|on|at|during|since|until|near|around|before|after|by)"
_FILLING = r"(?:(?:the|about|around|early|late|mid|nearby)\s+)*"
_OPENING = re.compile(rf"\A{_PHRASE}\s+{_FILLING}\Z", re.I)
_AFTER_OPENING = re.compile(r",?\s+(?=(?-i:[A-Z])|the\s|an?\s)", re.I)
_TRAILING = re.compile(rf"(?P<last>\S+?)(?P<cut>,?\s+(?P<word>{_PHRASE})\s+{_FILLING})\Z", re.I)
_AFTER_TRAILING = re.compile(rf"\s*(?:[;:.!?]|\Z)|\s+(?:{_PHRASE}|as|for|with|to|from)\b", re.I)
_APPOSED = re.compile(r",\s+(?:an?\s+|the\s+)?(?:[a-z-]+\s+){0,2}\Z")
_JOINED = re.compile(r"\s+and\s+(?:an?\s+|the\s+)?\Z")
_BRACKETS = re.compile(r"\s*[(（][^()（）]*[)）]")
_ENDING = re.compile(r"(?P<before>[\w’'-]+\s+[\w’'-]+),?(?P<cut>\s+(?P<word>[a-z]+))\Z")
_BE = re.compile(r"\b(?:is|are|was|were|been|be)\b", re.I)
_TIDIED = (
    (re.compile(r"\s+"), " "),
    (re.compile(r"\s+([.,;:!?)])"), r"\1"),
    (re.compile(r"[,;:]+(?=[,;:.!?])"), ""),
    (re.compile(r"\ba(?=\s+[aeio])"), "an"),
    (re.compile(r"\ban(?=\s+[^aeiouhAEIOUHXSFLMNR8])"), "a"),
)
_DATES = re.compile(
    r"\A(?P<name>[^()（）]{2,60}?)\s*[(（](?P<born>[^()（）–—-]*\d[^()（）–—-]*?)\s*(?:[–—-]|－)\s*"
    r"(?P<died>[^()（）–—-]*\d[^()（）–—-]*)[)）](?P<rest>.*)",
    re.S,
)
_LIVES = re.compile(r"\b(?:born|died|was an?|is an?)\b|出生|生于|卒|逝世|人|家")


def claim_about(
    sentence: str, concept: Span, others: Iterable[Span], context: str = "", subject: str = ""
) -> str:
    """Return what a sentence says with this concept, without those `others` that stand apart.

    A pronoun gives way to the name that it means, by the text before (`context`) or, where that
    names nobody, by what the question is about (`subject`).
    """
    claim = _life_date(sentence, concept) or (
        _clause(sentence, concept)
        if has_han(sentence)
        else _without_asides(sentence, concept, others)
    )
    return named(claim, context, subject)


def blanked(claim: str, concept: str) -> str:
    """Return the claim with a blank in the place of the concept."""
    place = find_concept(claim, concept)
    return f"{claim[: place[0]]}{BLANK}{claim[place[1] :]}" if place else claim


def _life_date(sentence: str, concept: Span) -> str:
    """Return the claim about one of the two dates behind a person's name; "" where it is none
    of them.
    """
    found = _DATES.match(sentence)
    if found is None or not _LIVES.search(found["rest"]):
        return ""
    name = found["name"].strip()
    if found.start("born") <= concept.start < found.end("born"):
        words = ("was born", "生于")
    elif found.start("died") <= concept.start < found.end("died"):
        words = ("died", "卒于")
    else:
        return ""
    if has_han(name):
        return f"{name}{words[1]}{concept.text}。"
    at = "in" if concept.text.strip().isdigit() else "on"
    return f"{name} {words[0]} {at} {concept.text}."


def _without_asides(sentence: str, concept: Span, others: Iterable[Span]) -> str:
    cuts = [cut for other in others if (cut := _aside(sentence, other, concept)) is not None]
    cuts += [
        found.span()
        for found in _BRACKETS.finditer(sentence)
        if not found.start() <= concept.start < found.end()
    ]
    text = sentence
    for start, end in sorted(cuts, reverse=True):
        # What was cut already reaches to the end of what is left.
        text = text[:start] + text[max(start, end) :]
    for pattern, replacement in _TIDIED if cuts else ():
        text = pattern.sub(replacement, text)
    text = text.strip()
    if sentence[-1:] in ".!?" and text[-1:] not in ".!?":
        text += sentence[-1]
    whole = find_concept(text, concept.text) is not None and len(text.split()) > 2
    return f"{text[:1].upper()}{text[1:]}" if whole else sentence


def _aside(sentence: str, other: Span, concept: Span) -> tuple[int, int] | None:
    """Return where the phrase of another concept stands, if the sentence is whole without it."""
    if other.start < concept.end and concept.start < other.end:
        return None
    before, after = sentence[: other.start], sentence[other.end :]
    opening = _AFTER_OPENING.match(after) if _OPENING.match(before) else None
    if opening:
        return 0, other.end + opening.end()
    trailing = _TRAILING.search(before)
    if trailing and _AFTER_TRAILING.match(after):
        ends = trailing["last"].casefold() in AUXILIARIES
        participle = _ENDING.search(before[: trailing.start("cut")])
        finite = _has_auxiliary(before)
        past = participle is not None and is_past(participle["word"])
        if participle and past and finite and not _has_auxiliary(participle["before"]):
            # "A chemist born in 1931": without its date the participle would be left over.
            return participle.start("cut"), other.end
        agent = trailing["word"].casefold() == "by" and not _BE.search(before)
        # "Ada lived in Bergen": without the place the verb would stand alone.
        last = trailing["last"]
        verb = is_past(last) or (last.islower() and last.endswith("s"))
        alone = verb and concept.start < other.start
        if not ends and not agent and not alone:
            return trailing.start("cut"), other.end
    apposed = _APPOSED.search(before)
    if apposed and after.startswith(",") and not _APPOSED.search(before[: apposed.start()] + " "):
        return apposed.start(), other.end + 1
    joined = _JOINED.search(before)
    if joined and concept.end == joined.start():
        return joined.start(), other.end
    following = re.match(r"\s+and\s+(?:an?\s+|the\s+)?", after)
    if following and other.end + following.end() == concept.start:
        return other.start, concept.start
    return None


def _has_auxiliary(text: str) -> bool:
    """Return whether an English text holds an auxiliary, such as "was"."""
    return any(word.casefold() in AUXILIARIES for word in text.split())


def _clause(sentence: str, concept: Span) -> str:
    """Return the clause of a Chinese sentence that holds the concept, with the sentence's
    subject.
    """
    ends = [0, *(match.end() for match in re.finditer("[，；]", sentence)), len(sentence)]
    spans = [(a, b) for a, b in pairwise(ends) if a <= concept.start < b]
    if not spans or concept.end > spans[0][1] or len(ends) == 2:
        return sentence
    start, end = spans[0]
    clause = sentence[start:end].rstrip("，；。") + "。"
    tags = [word.tag[:1] for word in tagged_words(clause)]
    if start == 0:
        # A time or a place that only opens the sentence claims nothing.
        return clause if "v" in tags else sentence
    head = chinese_head(sentence)
    if head and tags[:1] and tags[0] in "vdp":
        return f"{head}{clause}"
    return sentence

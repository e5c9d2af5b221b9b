"""Rewrites that leave a sentence as true as it was, by rule: shorter, turned, in other words."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from pipelines.training.words import base_forms, said_otherwise

__all__ = ["REWRITES", "asked_about", "claims_in", "is_person", "named", "rewritten", "told_of"]

_WORDS = [
    "one",
    "two",
    "three",
    "four",
    "five",
    "six",
    "seven",
    "eight",
    "nine",
    "ten",
    "eleven",
    "twelve",
]
_MONTHS = "January|February|March|April|May|June|July|August|September|October|November|December"
_YEAR = r"\d{3,4}"
_LEADING = re.compile(
    r"^((?:In|On|During|At|After|Before|From|By|Since|Until) [^,]{3,40}), (\w.*)$"
)
_TRAILING = re.compile(r"^(.{25,}?), (?:which|who|where|whose|while|when|although|but) .*([.!?])$")
_AND_VERB = re.compile(r"^(.{20,}?),? and (?:was|were|is|are|has|had|\w+ed) .*([.!?])$")
_ASIDE = re.compile(r" \([^()]*\)")
_APPOSED = re.compile(r"^((?:[A-Z][\w.'-]+ ?){1,4}), ((?:an?|the) [^,]{4,60}), (.+)$")
_PASSIVE = re.compile(
    r"^(.{3,60}?) was (founded|designed|written|directed|discovered|invented|built|painted|composed"
    r"|developed|created|published|produced|opened|led) by ([A-Z][^,.;]{2,50}?)( in \d{4})?\.$"
)
_PERSON = re.compile(r"(?:[A-Z][\w.'’-]+ ){1,3}[A-Z][\w.'’-]+")
_SMALL = re.compile(
    r"(?:The|An?|This|These|His|Her|Its|Their|Some|Many|Most|He|She|It|They)(?![\w'’-])"
)
_PLAIN = re.compile(
    r"^((?:The |A |An |Its |His |Her )?[A-Z\d][\w.'’-]*"
    r"(?: (?!is |was |are |were |has |had )[\w.'’-]+){0,6})"
    r" (is|was|are|were|has|had|can|could|will|would) ([^;:]{3,})[.]$"
)
_PAST = base_forms()
_DID = re.compile(
    rf"^(?!.* and (?:is|was|has|had|could|\w+ed|{'|'.join(_PAST)})\b)"
    r"((?:The |His |Her )?[A-Z][\w.'’-]*(?: [A-Z\d][\w.'’-]*| of| the| von| van| de){0,5})"
    rf" ({'|'.join(_PAST)})\b((?: [^;:]+)?)[.]$"
)
_ACTIVE = {"written": "wrote", "built": "built", "led": "led"}


def rewritten(sentence: str, random: Random, times: int) -> str:
    """`sentence` after up to `times` rewrites drawn at random; some may not apply."""
    for rewrite in random.sample(REWRITES, min(times, len(REWRITES))):
        sentence = rewrite(sentence, random) or sentence
    return sentence


def named(sentence: str, title: str) -> str:
    """`sentence` with `title` for the pronoun it begins with."""
    found = re.match(r"(He|She|It|His|Her|Its)\b(?! (?:is|was)\b.* that\b)", sentence)
    if found is None or not title:
        return sentence
    # Of a thing nobody says "he", and what "it" is in a life nobody knows.
    if is_person(title) == (found[1] in ("It", "Its")):
        return sentence
    possessive = found[1] in ("His", "Its") or (
        found[1] == "Her" and not re.match(r"Her (is|was)\b", sentence)
    )
    return f"{title}{chr(39) + 's' if possessive else ''}{sentence[found.end() :]}"


def is_person(title: str) -> bool:
    """Whether `title` looks like a person's name: two to four capitalised words."""
    return _PERSON.fullmatch(title) is not None


def claims_in(sentence: str, title: str) -> list[str]:
    """Smaller statements that `sentence` makes by the way: years of a life, what somebody was."""
    claims: list[str] = []
    life = re.match(rf"^(.{{3,50}}?) \([^()]*?({_YEAR})\)?\s?[–-]\s?[^()]*?({_YEAR})\)", sentence)
    if life is not None:
        claims += [f"{life[1]} was born in {life[2]}.", f"{life[1]} died in {life[3]}."]
    born = re.match(rf"^(.{{3,50}}?) \(born [^()]*?({_YEAR})\)", sentence)
    if born is not None:
        claims.append(f"{born[1]} was born in {born[2]}.")
    was = re.match(
        r"^(.{3,60}?)(?: \([^()]*\))? (was|is) (an? [^,;.(]{4,70}?)(?:[,.;]| who )", sentence
    )
    if was is not None and not was[1].startswith(("There", "It ")):
        claims.append(f"{was[1]} {was[2]} {was[3].strip()}.")
    apposed = _APPOSED.match(sentence)
    if apposed is not None:
        claims.append(f"{apposed[1].strip()} was {apposed[2]}.")
    return [named(claim, title) for claim in claims]


def told_of(sentence: str, subject: str, other: str) -> str | None:
    """`sentence`, which is about `subject`, said of `other`; None where it names no `subject`."""
    whole = named(sentence, subject)
    last = re.escape(subject.split()[-1])
    names = rf"\b(?:{re.escape(subject)}|(?:[A-Z][\w.'-]+ ){{0,3}}{last})\b"
    told = re.sub(names, other, whole, count=1)
    if told == whole:
        return None
    # Later on in the sentence the last name does.
    return re.sub(rf"\b{last}\b", other.split()[-1], told)


def asked_about(statement: str) -> str | None:
    """`statement` as a question to answer yes or no; None where no rule knows how to ask it."""
    if found := _DID.match(statement):
        subject, past, rest = found.groups()
        verb, rest = "did", f"{_PAST[past]}{rest}"
    elif found := _PLAIN.match(statement):
        subject, verb, rest = found.groups()
    else:
        return None
    if _SMALL.match(subject):
        subject = subject[0].lower() + subject[1:]
    return f"{verb.capitalize()} {subject} {rest}?"


def _without_aside(sentence: str, random: Random) -> str | None:
    shorter = _ASIDE.sub("", sentence)
    return shorter if shorter != sentence else None


def _leading_moved(sentence: str, random: Random) -> str | None:
    found = _LEADING.match(sentence)
    if found is None:
        return None
    lead, rest = found[1], found[2]
    rest = rest[0].upper() + rest[1:]
    if random.random() < 0.5:
        return rest
    return f"{rest[:-1]} {lead[0].lower()}{lead[1:]}{rest[-1]}"


def _trailing_left_out(sentence: str, random: Random) -> str | None:
    found = _TRAILING.match(sentence) or _AND_VERB.match(sentence)
    return found[1] + found[2] if found else None


def _active(sentence: str, random: Random) -> str | None:
    found = _PASSIVE.match(sentence)
    if found is None:
        return None
    thing = found[1] if found[1].split()[0] not in ("The", "It", "A", "An") else found[1].lower()
    verb = _ACTIVE.get(found[2], found[2])
    return f"{found[3]} {verb} {thing}{found[4] or ''}."


def _numbers(sentence: str, random: Random) -> str | None:
    def digits(found: re.Match[str]) -> str:
        return str(_WORDS.index(found[0]) + 1)

    def words(found: re.Match[str]) -> str:
        return _WORDS[int(found[0]) - 1]

    pattern, change = random.choice(
        [
            (r"\b(" + "|".join(_WORDS[1:]) + r")\b", digits),
            (r"(?<![.:,\d] )\b([2-9]|1[0-2])\b(?![.,:]\d| (?:" + _MONTHS + r"))", words),
        ]
    )
    changed = re.sub(pattern, change, sentence, count=1)
    if "," in changed and changed == sentence:
        changed = re.sub(r"(?<=\d),(?=\d{3})", "", sentence)
    return changed if changed != sentence else None


REWRITES: tuple[Callable[[str, Random], str | None], ...] = (
    _without_aside,
    _leading_moved,
    _trailing_left_out,
    _active,
    _numbers,
    said_otherwise,
)
"""Each takes a sentence and gives it back changed, or None where it does not apply."""

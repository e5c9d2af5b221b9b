"""A question asked in other words, by rule: what the adapter learns paraphrasing from.

The rules know the common shapes of a question of fact. For a question of another shape there are
few or no other wordings, and it is not trained on. Words and forms are in `questions.toml`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from research.judge.rewriting import PAST_FORMS

_BE = r"is|was|are|were"
_YEAR = re.compile(
    r"(?:When|(?:(?:In|On|During) )?(?:what|which|What|Which) (year|month|day|date|century|decade))"
)
_DONE = re.compile(
    rf"(?P<be>{_BE}) (?P<subject>.+?) (?P<done>\w{{2,}}ed|born|built|made|written|held|won|found"
    r"|taken|given|known|sold|begun|set|led|lost|kept|drawn|chosen|brought)\b(?P<rest>.*)"
)
_WORDS: dict[str, Any] = tomllib.loads(
    Path(__file__).with_name("questions.toml").read_text(encoding="utf-8")
)
SHAPES: list[str] = _WORDS["shapes"]
"""Shapes of questions of fact, with places for names of several kinds."""

_IRREGULAR: dict[str, str] = {**_WORDS["irregular"], **PAST_FORMS}
_PAST = {verb: _IRREGULAR.get(verb, f"{verb.removesuffix('e')}ed") for verb in _WORDS["verbs"]}
"""The past of verbs after "did"; a question with another verb is not turned into a statement."""

_DID = re.compile(rf"did (?P<subject>.+?) (?P<verb>{'|'.join(_PAST)})(?P<rest>(?: .+)?)")
_BE_OF = re.compile(rf"(?P<be>{_BE}) (?P<rest>the .+)")
_WHO = re.compile(
    r"(?P<verb>[a-z]{2,}ed|wrote|made|led|won|held|took|sang|ran|became) (?P<rest>.+)"
)
_ASKING = "did|does|do|can|could|would|will|has|have|had"
_REST = rf"(?P<rest>(?:{_BE}|{_ASKING}|[a-z]{{2,}}ed|wrote|made|led|won|held|took|ran|became) .+)"
_NOUN = rf"(?P<noun>(?!{_BE}|{_ASKING})[a-z]+(?: (?!(?:{_BE}|{_ASKING}|of|in|to) )[a-z]+)??)"
_MANY = re.compile(rf"How many {_NOUN} {_REST}")
_KIND = re.compile(rf"(?:What|Which) {_NOUN} {_REST}")
_HANGING = re.compile(r" (?:of|in|to|for|at|on|by|with|from|as|about|into|off)$")
_NAME = r"(?P<subject>(?:the )?[A-Z][\w.'-]*(?: [A-Z][\w.'-]*)*)"
_ASKED = re.compile(rf"(?P<be>Is|Was|Are|Were) {_NAME} (?P<rest>(?!and |or |of ).+)")
_ASKED_DID = re.compile(rf"Did {_NAME} (?!and |or |of )(?P<verb>{'|'.join(_PAST)})\b(?P<rest>.*)")
_MOST_WORDS = 18


def rewordings(question: str) -> list[str]:
    """Return `question` in other words, each once; without it itself. None where no rule
    applies."""
    asked = " ".join(question.split()).rstrip("?. ")
    if len(asked.split()) > _MOST_WORDS or not re.fullmatch(r"[\w ,.'&-]+", asked):
        return []
    found = (f"{' '.join(text.split())}?" for text in _found(asked) if text)
    return [text for text in dict.fromkeys(found) if text.casefold() != f"{asked}?".casefold()]


def _found(asked: str) -> Iterator[str]:
    if time := _YEAR.match(asked):
        yield from _when(asked[time.end() :].strip(), time[1])
    elif asked.startswith("Where "):
        yield from _where(asked.removeprefix("Where "))
    elif asked.startswith("Who "):
        yield from _who(asked.removeprefix("Who "))
    elif found := _MANY.fullmatch(asked):
        yield from _how_many(found["noun"], found["rest"])
    elif found := _ASKED.fullmatch(asked):
        told = f"{found['subject']} {found['be'].lower()} {found['rest']}"
        yield from _forms("is_it", stated=told)
    elif found := _ASKED_DID.fullmatch(asked):
        told = f"{found['subject']} {_PAST[found['verb']]}{found['rest']}"
        yield from _forms("is_it", stated=told)
    elif asked.startswith(("What is ", "What was ", "What are ", "What were ")):
        yield from _what_is(asked.removeprefix("What "))
    elif found := _KIND.fullmatch(asked):
        yield from _of_a_kind(found["noun"], found["rest"])


def _told(clause: str) -> tuple[str, str]:
    """Return what a question's clause states, and "is" or "was"; ("", "") where no rule applies."""
    if found := _DONE.fullmatch(clause):
        stated = f"{found['subject']} {found['be']} {found['done']}{found['rest']}"
        return stated, "was" if found["be"] in ("was", "were") else "is"
    if found := _DID.fullmatch(clause):
        return f"{found['subject']} {_PAST[found['verb']]}{found['rest']}", "was"
    return "", ""


def _forms(shape: str, **parts: str) -> list[str]:
    return [form.format(**parts) for form in _WORDS["forms"][shape]]


def _when(clause: str, unit: str | None) -> list[str]:
    stated, be = _told(clause)
    parts = {"clause": clause, "unit": unit or "year", "stated": stated, "be": be}
    return _forms("when", **parts) + (_forms("when_stated", **parts) if stated else [])


def _where(clause: str) -> list[str]:
    stated, be = _told(clause)
    told = _forms("where_stated", stated=stated, be=be) if stated else []
    return _forms("where", clause=clause) + told


def _who(clause: str) -> list[str]:
    if found := _BE_OF.fullmatch(clause):
        of_one = found["be"] in ("is", "was")
        return _forms("who_is", **found.groupdict()) if of_one else []
    if (found := _WHO.fullmatch(clause)) is None:
        return []
    rest, verb = found["rest"], found["verb"]
    # "Who founded the town in 1832" with what stands after the object left where it is.
    turned = (
        verb.endswith("ed") and re.match(r"(?:the |a |an |[A-Z])", rest) and " " not in rest[4:]
    )
    return _forms("who_did", clause=clause) + (
        _forms("by_whom", rest=rest, verb=verb) if turned else []
    )


def _how_many(noun: str, rest: str) -> list[str]:
    stated, _ = _told(rest)
    if re.match(rf"(?!(?:{_ASKING}) )", rest):
        stated = stated or rest
    told = _forms("how_many_stated", noun=noun, stated=stated) if stated else []
    return _forms("how_many", noun=noun, rest=rest) + told


def _what_is(clause: str) -> list[str]:
    found, name = _BE_OF.fullmatch(clause), "the name of "
    hanging = clause.endswith((" of", " in", " to", " for"))
    if found is None or hanging or not found["rest"].startswith(name):
        return []
    return _forms("name", be=found["be"], named=found["rest"].removeprefix(name))


def _of_a_kind(noun: str, rest: str) -> list[str]:
    stated, _ = _told(rest)
    # "What town is Ada Brandt from" is no statement with its words in this order.
    if re.match(rf"(?!(?:{_ASKING}) )", rest) and not _HANGING.search(rest):
        stated = stated or (rest if re.match(rf"(?!(?:{_BE}) (?:the |an? |[A-Z]))", rest) else "")
    told = _forms("kind_stated", noun=noun, stated=stated) if stated else []
    return _forms("kind", noun=noun, rest=rest) + told

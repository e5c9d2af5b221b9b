"""A question asked in other words, by rule: what the adapter learns paraphrasing from.

The rules know the common shapes of a question of fact. For a question of another shape there are
few or no other wordings, and it is not trained on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipelines.research.judge.rewriting import PAST_FORMS

_BE = r"is|was|are|were"
_YEAR = re.compile(
    r"(?:When|(?:(?:In|On|During) )?(?:what|which|What|Which) (year|month|day|date|century|decade))"
)
_DONE = re.compile(
    rf"(?P<be>{_BE}) (?P<subject>.+?) (?P<done>\w{{2,}}ed|born|built|made|written|held|won|found"
    r"|taken|given|known|sold|begun|set|led|lost|kept|drawn|chosen|brought)\b(?P<rest>.*)"
)
_VERBS = (
    *("appear", "arrive", "attend", "become", "begin", "break", "bring", "build", "buy"),
    *("cease", "choose", "come", "compose", "create", "defeat", "design", "develop", "die"),
    *("discover", "draw", "end", "establish", "fall", "find", "found", "give", "go", "grow"),
    *("happen", "have", "hold", "introduce", "invent", "join", "land", "lead", "leave", "live"),
    *("lose", "make", "marry", "meet", "move", "occupy", "open", "paint", "play", "produce"),
    *("publish", "receive", "release", "retire", "run", "sail", "sell", "sign", "sing", "sink"),
    *("start", "study", "take", "teach", "train", "travel", "visit", "win", "work", "write"),
)
_IRREGULAR = {
    **{"break": "broke", "bring": "brought", "build": "built", "buy": "bought"},
    **{"choose": "chose", "draw": "drew", "find": "found", "have": "had", "occupy": "occupied"},
    **{"sink": "sank"},
    **PAST_FORMS,
}
_PAST = {verb: _IRREGULAR.get(verb, f"{verb.removesuffix('e')}ed") for verb in _VERBS}
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
        yield from _is_it(f"{found['subject']} {found['be'].lower()} {found['rest']}")
    elif found := _ASKED_DID.fullmatch(asked):
        yield from _is_it(f"{found['subject']} {_PAST[found['verb']]}{found['rest']}")
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


def _when(clause: str, unit: str | None) -> Iterator[str]:
    stated, be = _told(clause)
    unit = unit or "year"
    yield from (f"In which {unit} {clause}", f"In what {unit} {clause}", f"When {clause}")
    yield f"What {unit} {clause}"
    if stated:
        yield f"What {be} the {unit} in which {stated}"
        yield f"When {be} it that {stated}"
        yield f"In which {unit} {be} it that {stated}"
        yield f"What {be} the {unit} when {stated}"


def _where(clause: str) -> Iterator[str]:
    stated, be = _told(clause)
    yield from (f"In which place {clause}", f"In what place {clause}", f"At which place {clause}")
    if stated:
        yield f"What {be} the place where {stated}"
        yield f"Where {be} it that {stated}"
        yield f"What place {be} it where {stated}"
        yield f"Which place {be} it where {stated}"


def _who(clause: str) -> Iterator[str]:
    if found := _BE_OF.fullmatch(clause):
        be, rest = found["be"], found["rest"]
        if be in ("is", "was"):
            yield f"Which person {be} {rest}"
            yield from (f"What is the name of {rest}", f"What was the name of {rest}")
            yield f"Who {be} it that {be} {rest}"
            yield f"What is the name of the person who {be} {rest}"
            yield f"Who is the person who {be} {rest}"
            yield f"Which person is it that {be} {rest}"
    elif found := _WHO.fullmatch(clause):
        rest = found["rest"]
        yield from (f"Which person {clause}", f"Who was it that {clause}")
        yield f"What is the name of the person who {clause}"
        yield f"What was the name of the person who {clause}"
        yield f"Who was the person who {clause}"
        yield f"Which person was it that {clause}"
        if found["verb"].endswith("ed") and re.match(r"(?:the |a |an |[A-Z])", rest):
            # "Who founded the town in 1832" with what stands after the object left where it is.
            yield f"By whom was {rest} {found['verb']}" if " " not in rest[4:] else ""


def _how_many(noun: str, rest: str) -> Iterator[str]:
    yield from (f"What number of {noun} {rest}", f"About how many {noun} {rest}")
    stated, _ = _told(rest)
    if re.match(rf"(?!(?:{_ASKING}) )", rest):
        stated = stated or rest
    if stated:
        yield f"What is the number of {noun} that {stated}"
        yield f"What was the number of {noun} that {stated}"
        yield f"How large was the number of {noun} that {stated}"
        yield f"How many {noun} was it that {stated}"
        yield f"How great is the number of {noun} that {stated}"


def _what_is(clause: str) -> Iterator[str]:
    found = _BE_OF.fullmatch(clause)
    if found is None or " of " not in clause or clause.endswith((" of", " in", " to", " for")):
        return
    be, rest = found["be"], found["rest"]
    if rest.startswith("the name of "):
        named = rest.removeprefix("the name of ")
        yield from (f"What {be} {named} called", f"What name {be} given to {named}")
        yield from (f"Which name does {named} have", f"By what name {be} {named} known")
        yield from (f"Which name {be} that of {named}", f"What {be} the name given to {named}")


def _of_a_kind(noun: str, rest: str) -> Iterator[str]:
    stated, _ = _told(rest)
    # "What town is Ada Brandt from" is no statement with its words in this order.
    if re.match(rf"(?!(?:{_ASKING}) )", rest) and not _HANGING.search(rest):
        stated = stated or (rest if re.match(rf"(?!(?:{_BE}) (?:the |an? |[A-Z]))", rest) else "")
    yield from (f"What {noun} {rest}", f"Which {noun} {rest}")
    if stated:
        yield f"Which {noun} is it that {stated}"
        yield f"Which {noun} was it that {stated}"
        yield f"What is the {noun} that {stated}"
        yield f"What was the {noun} that {stated}"
        yield f"What is the name of the {noun} that {stated}"
        yield f"What was the name of the {noun} that {stated}"


def _is_it(stated: str) -> Iterator[str]:
    for opening in (
        *("Is it true that", "Is it correct that", "Is it right that", "Is it a fact that"),
        *("Can it be said that", "Could one say that", "Was it the case that"),
    ):
        yield f"{opening} {stated}"

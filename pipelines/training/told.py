"""Questions with their answers as statements, by rule.

Whoever asks about a text seldom uses its words: such statements say the same in other words.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from pipelines.training.examples import Example

__all__ = ["told", "told_pairs"]

_BE = r"is|was|are|were"
_DOES = r"(?:wrote|made|led|won|held|took|gave|sang|ran|became|came|began|has|had|\w{2,}ed|\w{3,}s)"
_DONE = (
    r"\w{2,}ed|born|built|made|written|held|won|found|taken|given|known|sold|bought|sent|begun|shown"
    r"|set|led|lost|spent|kept|left|drawn|chosen|brought|put|cut|struck|sung|spoken"
)
_TIME = (
    r"(?:When|(?:In|On|During|By)? ?(?:[Ww]hat|[Ww]hich) (?:year|month|day|date|century|decade))"
)
_PLACE = r"(?:Where|(?:In|At)? ?(?:[Ww]hat|[Ww]hich) (?:city|town|country|state|place|continent))"
_PREPOSITIONS = ("in ", "on ", "at ", "by ", "from ", "to ", "during ", "near ", "since ", "after ")

_LONGEST_ANSWER = 8

_OF_A_KIND = re.compile(rf"(?:What|Which) ((?:[\w'’-]+ ){{1,6}}?)({_BE}) (.+)")
_WHAT_IS = re.compile(rf"(?:Who|What|Which) ({_BE}) (.+)")
_WHO_DOES = re.compile(rf"(?:Who|(?:What|Which)(?: [\w'’-]+){{0,3}}?) ((?:{_DOES}) .+)")
_HOW_MANY = re.compile(rf"How many ((?:[\w'’-]+ ){{1,3}}?(?:{_BE}|{_DOES}) .+)")
_WHEN_OR_WHERE = re.compile(rf"({_TIME}|{_PLACE}) ({_BE}) (.+?) ({_DONE})((?: .+)?)")
_TURNED = re.compile(
    r"\b(?:did|does|do|can|could|would|should|must|may|will)\b|\b(?:in|on|at|by|to|from|for|with|as|of)$"
)
"""Questions in which the verb has changed its place, or a preposition waits for the answer."""

_SUBJECT = re.compile(
    r"(?:the|an?|his|her|its|their|one|another|some)\b|[A-Z]\w*'s ", re.IGNORECASE
)


def told(question: str, answer: str) -> str | None:
    """`answer` to `question` as one statement; None where no rule knows how to put it.

    The rules look at the question alone: of two answers, both or neither become statements.
    """
    asked = " ".join(question.split()).rstrip("?. ")
    answer = " ".join(answer.split()).rstrip(".")
    if not asked or not answer or "," in asked or _TURNED.search(asked):
        return None
    said = _at_a_time_or_place(asked, answer) or _as_subject(asked, answer)
    return f"{said[0].upper()}{said[1:]}." if said else None


def told_pairs(answered: Iterable[Example]) -> Iterator[Example]:
    """Short answers among pairs, put as statements that need no question."""
    for pair in answered:
        if len(pair.statement.split()) > _LONGEST_ANSWER:
            continue
        statement = told(pair.question, pair.statement)
        if statement is None:
            continue
        answer = pair.statement.rstrip(".")
        at = statement.lower().find(answer.lower())
        wrong = pair.wrong
        if wrong:
            wrong = ((at, at + len(answer)),) if at >= 0 else None
        yield pair.model_copy(
            update={"statement": statement, "question": "", "make": "told", "wrong": wrong}
        )


def _at_a_time_or_place(asked: str, answer: str) -> str | None:
    found = _WHEN_OR_WHERE.fullmatch(asked)
    if found is None:
        return None
    _, be, subject, done, rest = found.groups()
    placed = answer if answer.lower().startswith(_PREPOSITIONS) else f"in {answer}"
    if re.match(r"\d{1,2} [A-Z]|[A-Z]\w+ \d{1,2}\b", answer):
        placed = f"on {answer}"
    return f"{subject} {be} {done}{rest} {placed}"


def _as_subject(asked: str, answer: str) -> str | None:
    if found := _HOW_MANY.fullmatch(asked):
        return f"{answer} {found[1]}"
    if found := _WHAT_IS.fullmatch(asked):
        be, rest = found.groups()
        # "What was the name of it" turns round, "Who was killed in it" does not.
        return f"{rest} {be} {answer}" if _SUBJECT.match(rest) else f"{answer} {be} {rest}"
    if found := _OF_A_KIND.fullmatch(asked):
        return f"{answer} {found[2]} {found[3]}"
    if found := _WHO_DOES.fullmatch(asked):
        return f"{answer} {found[1]}"
    return None

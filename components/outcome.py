"""What becomes of a run's original answer: what most methods answer in the end, in a line.

Methods say the same in different words: one quotes a sentence, another writes a name. Two answers
count as the same where one has all the content words that the other says beyond the question. Pure.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

from components.run.ask import MethodRow
from pipelines.base import Language
from pipelines.methods.base import Question
from pipelines.methods.replies.lists import asks_yes_or_no, says_yes
from pipelines.methods.subjects import chinese_names, said_beyond
from pipelines.retrieval.indexes import content_terms
from pipelines.run.events import DOUBTS

OutcomeKind = Literal["open", "corrected", "confirmed", "unanswered", "none"]

_LISTED = re.compile(r"[,;，；、\n]|\band\b|[和与及]")
_QUOTED = re.compile(r"[“\"](?P<text>.+?)[”\"]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class FinalAnswer:
    """What most methods answer in the end.

    `kind` is "corrected" where that differs from the original, "confirmed" where it says the same,
    "unanswered" where every method that looked for an answer ended without one, "open" while none
    has ended, and "none" where no method rewrites. `answer` is the one of these answers
    that says least beyond the question, `phrase` what that is ("" for a quotation, which says it
    whole); `methods` are those who say it, `asked` all who ended with an answer or without.
    """

    kind: OutcomeKind
    answer: str = ""
    phrase: str = ""
    methods: tuple[str, ...] = ()
    asked: int = 0


def outcome_of(
    rows: Iterable[MethodRow], original: str, question: str, language: Language
) -> FinalAnswer:
    """Return what most of the methods of `rows` answer in the end, by the content words that
    they say beyond the question; of equally many, what is said in the fewest words.
    """
    # What only answers from memory is the original.
    seeking = [row for row in rows if row.rewrites and (row.judges or row.retrievals)]
    ended = [row for row in seeking if row.status == "done"]
    if not ended:
        return FinalAnswer("open" if any(_goes_on(row) for row in seeking) else "none")
    asked = Question(text=question, language=language)
    known, polar = frozenset(content_terms(question)), asks_yes_or_no(asked)
    answers = {row.method: row.answer for row in ended if row.answer and not _found_none(row)}
    said = {name: _said(text, known, polar=polar) for name, text in answers.items()}
    cores = sorted((name for name in said if said[name]), key=lambda name: len(said[name]))
    if not cores:
        going_on = any(_goes_on(row) for row in seeking)
        return FinalAnswer("open" if going_on else "unanswered", asked=len(ended))
    supporters = {core: tuple(name for name in said if said[core] <= said[name]) for core in cores}
    core = max(cores, key=lambda name: len(supporters[name]))
    # What says something else besides would stand for those who do not say it.
    shortest = min(supporters[core], key=lambda name: (len(said[name]), len(answers[name])))
    answer = answers[shortest]
    same = bool(original) and said[core] <= _said(original, known, polar=polar)
    same = same and not _lists_another(original, answer, language)
    phrase = "" if _QUOTED.search(answer) else said_beyond(answer, question)
    return FinalAnswer(
        kind="confirmed" if same else "corrected",
        answer=answer,
        phrase=phrase,
        methods=supporters[core],
        asked=len(ended),
    )


def _lists_another(original: str, answer: str, language: Language) -> bool:
    """Return whether the original lists a name among those of the answer that the answer lacks."""
    kept = frozenset(content_terms(answer))
    listed = [(one, frozenset(content_terms(one))) for one in _LISTED.split(original)]
    shared = [place for place, (_, terms) in enumerate(listed) if terms & kept]
    between = listed[shared[0] : shared[-1]] if shared else []
    return any(terms and not terms & kept and _is_name(one, language) for one, terms in between)


def _is_name(text: str, language: Language) -> bool:
    if language == "zh":
        return chinese_names(text) == [text.strip()]
    return all(word[:1].isupper() for word in text.split())


def _found_none(row: MethodRow) -> bool:
    """Return whether a method gave no answer, or left one that it doubts because no passage
    answers.
    """
    return row.abstained or (row.verdict in DOUBTS and "correction_none" in row.flags)


def _goes_on(row: MethodRow) -> bool:
    return row.status in ("waiting", "running")


def _said(answer: str, known: frozenset[str], *, polar: bool) -> frozenset[str]:
    """Return the content words that an answer says beyond the question; yes or no where that
    is asked.
    """
    if polar and (yes := says_yes(answer)) is not None:
        return frozenset({"yes" if yes else "no"})
    quoted = _QUOTED.search(answer)
    return frozenset(content_terms(quoted["text"] if quoted else answer)) - known

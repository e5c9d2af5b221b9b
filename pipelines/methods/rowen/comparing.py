"""The equivalence operator C: do two answers agree as answers to a question?"""

from __future__ import annotations

from pipelines.calibration import calibrated
from pipelines.errors import VeriscopeError
from pipelines.methods.replies.asked import figures_in
from pipelines.methods.replies.parsing import declines
from pipelines.methods.replies.questions import says_yes
from pipelines.methods.replies.verdicts import TRUE_FALSE, claim_of_answers, decide_between
from pipelines.methods.rowen import asking
from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES
from pipelines.text import has_han
from pipelines.text.bilingual_names import share_a_name
from pipelines.types import Choice, Language

EMBEDDER = "embedder"
"""In place of a role: two answers agree where they have the same figure or name, else where their
cosine reaches the fitted minimum."""

_SAME = calibrated("rowen", "multilingual-e5-small", "answer") or 1.0


async def compared(
    step: Scope,
    language: Language,
    prompt: str,
    question: str,
    first: str,
    second: str,
    *,
    yes_no: bool,
    role: str,
) -> tuple[str, float | None, Choice | None]:
    """Return how the two answers were compared, C, and what the model of `role` chose.

    C is 1.0, 0.0 or None where nothing was decided. A refusal agrees with nothing; where the
    question is one of `yes_no`, yes and no are compared without a call. `prompt` is the prompt to
    compare with, "same_cl" or "same_cm".
    """
    if declines(first) or declines(second):
        return "refusal", 0.0, None
    if yes_no:
        said = says_yes(first), says_yes(second)
        if None not in said:
            return "yes_no", float(said[0] == said[1]), None
    if role == EMBEDDER:
        for how, same in (
            ("figures", _same_figures(question, first, second)),
            ("names", _same_names(question, first, second)),
        ):
            if same is not None:
                return how, float(same), None
        return await _by_meaning(step, first, second)
    try:
        choice = await decide_between(
            step,
            asking.PROMPTS.turns(language, prompt, question=question, first=first, second=second),
            TRUE_FALSE[language],
            reminder=asking.PROMPTS.fill(language, "reminder"),
            role=role,
            claim=claim_of_answers(question, first, second),
        )
    except VeriscopeError:
        return "failed", None, None
    hard = None if choice.best is None else float(choice.best == "true")
    how = "judge" if role in JUDGES else "model" if role == "main" else role
    return how, hard, choice


def _same_figures(question: str, first: str, second: str) -> bool | None:
    """Return whether two answers share a figure that is new; None where one has no such figure."""
    known = figures_in(question)
    one, other = (figures_in(text) - known for text in (first, second))
    return bool(one & other) if one and other else None


def _same_names(question: str, first: str, second: str) -> bool | None:
    """Return whether an English and a Chinese answer name the same: cities are near in
    meaning, too.
    """
    if has_han(first) == has_han(second):
        return None
    chinese, english = (first, second) if has_han(first) else (second, first)
    return share_a_name(chinese, english, question)


async def _by_meaning(
    step: Scope, first: str, second: str
) -> tuple[str, float | None, Choice | None]:
    try:
        ((cosine,),) = await step.similarities([first], [second])
    except VeriscopeError:
        return "failed", None, None
    return "similarity", float(cosine >= _SAME), None

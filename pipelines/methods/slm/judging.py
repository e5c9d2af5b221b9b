"""Asking a small model whether one statement of an answer is correct: the call of the SLM check."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.calibration import calibration
from pipelines.methods.replies.verdicts import YES_NO, claim_of
from pipelines.models.base import ChoiceRequest
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES
from pipelines.types import Choice, Language, Message, Passage


def judge_request(
    question: str,
    context: Sequence[Passage],
    statement: str,
    language: Language,
    *,
    reproducible: bool = False,
    known: bool = True,
    adapted: bool = False,
) -> ChoiceRequest:
    """Return the request for P(yes | question, context, statement).

    A model made to judge reads no question where that is not `known`; one with an adapter for
    verdicts is asked with it where this is `adapted`.

    Instructions, context and question come first and are the same for every statement, so that a
    server computes them once; the statement is the very last part.
    """
    prompts = load_prompts("slm")
    asked = prompts.fill(language, "question", question=question, statement=statement)
    if context:
        listed = prompts.listed(language, context)
        asked = prompts.fill(language, "context", passages=listed, question=asked)
    system = prompts.fill(language, "system" if context else "system_alone")
    return ChoiceRequest(
        messages=(Message(role="system", content=system), Message(role="user", content=asked)),
        options=YES_NO[language],
        claim=claim_of(statement, context, question if known else ""),
        reproducible=reproducible,
        adapted=adapted,
    )


async def judge_sentence(
    step: Scope,
    role: str,
    question: str,
    context: Sequence[Passage],
    sentence: str,
    language: Language,
) -> Choice:
    """Return what the model of `role` says about one sentence, as first-token probabilities of
    yes and no.

    A model that gives no probabilities is read by its text: P(yes) is then 0 or 1 (`source`
    "text"), and `best` is None when the text names neither.
    """
    known = step.given is None or (step.given.asked and not step.given.alone)
    model = step.model(role)
    most = calibration("habits").get(model.name, {}).get("judge", {}).get("passages")
    request = judge_request(
        question,
        context[:most],
        sentence,
        language,
        reproducible=step.reproducible,
        known=known,
        adapted="judge" in model.capabilities.adapted,
    )
    return await model.choose(request)


def taught_judges(scope: Scope, language: Language) -> list[str]:
    """Return the roles of language models that an adapter has taught verdicts of this kind."""
    able = ((role, scope.model(role).capabilities) for role in JUDGES if scope.has_model(role))
    return [role for role, can in able if "judge" in can.adapted and language in can.languages]


def probability_of_yes(choice: Choice) -> float | None:
    """Return P(yes) over all spellings, in [0, 1]; None when the judge said neither yes nor no."""
    return None if choice.best is None else choice.probabilities["yes"]

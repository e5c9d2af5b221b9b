"""SelfCheckGPT by question answering: do samples answer questions about a sentence as it does?

Source: SelfCheckGPT (Manakul, Liusie and Gales, EMNLP 2023), section 5.2, after MQAG (Manakul,
Liusie and Gales 2023). Multiple-choice questions are written about a sentence and answered twice:
by the answer that holds it, and by each sample. N_m samples agree and N_n do not, each counted by
how answerable the question is by that sample, alpha_n in [0, 1]. With the reliability beta of an
answer, and gamma = beta / (1 - beta), a question scores

    S(q) = gamma^N_n / (gamma^N_m + gamma^N_n), in [0, 1]

and a sentence the mean over its questions. The paper trains models for each part. Here the main
model writes the questions and answers them, and alpha_n is 1 minus its probability that the text
does not say. So this variant needs a model that writes JSON and answers by a text: with the
embedded model most sentences stay without a score.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log
from string import ascii_uppercase
from typing import Any, NamedTuple

from pipelines.concurrency import together
from pipelines.errors import VeriscopeError
from pipelines.methods.replies.parsing import parse_json
from pipelines.methods.replies.verdicts import decide_between
from pipelines.methods.writing import ask
from pipelines.models.base import Option
from pipelines.prompts import load_prompts
from pipelines.run.scope import Scope
from pipelines.text import text_key
from pipelines.types import FilledText, Language

PROMPTS = load_prompts("selfcheck_qa")

BETA = 0.8
"""How reliable an answer is taken to be (both of the paper's, in the authors' code)."""

_TOKENS = 512
"""Tokens of a reply with questions: enough for five (ours)."""

_MAX_OPTIONS = 6

_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "questions": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {
                    "question": {"type": "string"},
                    "right": {"type": "string"},
                    "wrong": {"type": "array", "items": {"type": "string"}},
                },
                "required": ["question", "right", "wrong"],
                "additionalProperties": False,
            },
        }
    },
    "required": ["questions"],
    "additionalProperties": False,
}


class ChoiceQuestion(NamedTuple):
    """A question and its options, two or more, in the order of their words."""

    text: str
    options: tuple[str, ...]


class _Chosen(NamedTuple):
    """The number of the option that a text gives, and how answerable it makes the question."""

    option: int
    alpha: float


def read_questions(reply: str, most: int) -> list[ChoiceQuestion]:
    """Return the questions of a reply, at most `most`; those without two different options
    left out.

    The right answer is not remembered: what counts is what the text answers. Options are put in
    the order of their words, so that their place says nothing.
    """
    value = parse_json(reply)
    listed = value.get("questions") if isinstance(value, dict) else value
    found: list[ChoiceQuestion] = []
    for one in listed if isinstance(listed, list) else ():
        if not isinstance(one, dict):
            continue
        wrong = one.get("wrong")
        given = [one.get("right"), *(wrong if isinstance(wrong, list) else ())]
        options = {
            text_key(text): text.strip() for text in given if isinstance(text, str) and text.strip()
        }
        question = one.get("question")
        if isinstance(question, str) and question.strip() and len(options) > 1:
            kept = sorted(list(options.values())[:_MAX_OPTIONS])
            found.append(ChoiceQuestion(question.strip(), tuple(kept)))
    return found[:most]


def question_score(agreeing: float, differing: float, beta: float = BETA) -> float:
    """Return S(q) from the counts of samples that agree and differ, each weighted by
    answerability.
    """
    gamma = log(beta / (1 - beta))
    return 1 / (1 + exp(gamma * (agreeing - differing)))


async def sentence_scores(
    step: Scope, language: Language, answer: str, sentence: str, samples: Sequence[str], count: int
) -> list[float]:
    """Return S(q) of every question about `sentence` that the answer itself answers; []
    without any.
    """
    asked = PROMPTS.turns(language, "questions", text=answer, sentence=sentence, count=str(count))
    schema = _SCHEMA if step.model().capabilities.structured_output else None
    try:
        reply = await ask(step, asked, max_tokens=_TOKENS, json_schema=schema)
    except VeriscopeError:
        # Recorded with the call.
        return []
    questions = read_questions(reply, count)
    found = await together(*(_scored(step, language, answer, one, samples) for one in questions))
    return [score for score in found if score is not None]


async def _scored(
    step: Scope, language: Language, answer: str, question: ChoiceQuestion, samples: Sequence[str]
) -> float | None:
    own = await _chosen(step, language, answer, question)
    if own is None:
        return None
    others = await together(*(_chosen(step, language, one, question) for one in samples))
    known = [one for one in others if one is not None]
    if not known:
        return None
    agreeing = sum(one.alpha for one in known if one.option == own.option)
    differing = sum(one.alpha for one in known if one.option != own.option)
    return question_score(agreeing, differing)


async def _chosen(
    step: Scope, language: Language, text: str, question: ChoiceQuestion
) -> _Chosen | None:
    """Return what `text` answers; None where it does not say, or where no letter was given."""
    letters: list[str] = list(ascii_uppercase[: len(question.options)])
    unsaid = ascii_uppercase[len(question.options)]
    texts = [*question.options, PROMPTS.fill(language, "not_said")]
    lines = [
        PROMPTS.fill(language, "option", letter=letter, text=one)
        for letter, one in zip([*letters, unsaid], texts, strict=True)
    ]
    try:
        choice = await decide_between(
            step,
            PROMPTS.turns(
                language,
                "answer",
                text=text,
                question=question.text,
                options=FilledText.joined("\n", lines),
            ),
            [Option(label=one, spellings=(one,)) for one in (*letters, unsaid)],
            reminder=PROMPTS.fill(language, "reminder", letters=", ".join([*letters, unsaid])),
        )
    except VeriscopeError:
        # Recorded with the call.
        return None
    best = choice.best
    if best is None or best == unsaid:
        return None
    total = sum(choice.probabilities.values())
    return _Chosen(letters.index(best), 1 - choice.probabilities[unsaid] / total)

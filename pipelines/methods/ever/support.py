"""EVER's support check: does the evidence answer a validation question True, False or NEI?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from pipelines.errors import VeriscopeError
from pipelines.methods.base import Question
from pipelines.methods.checkers import checker
from pipelines.methods.ever.calls import PROMPTS, distinct, numbered, together
from pipelines.methods.ever.record import ConceptCheck
from pipelines.methods.ever.settings import EverSettings
from pipelines.methods.replies.claims import claim_of_question
from pipelines.methods.replies.verdicts import TRUE_FALSE_NEI, Reasoned, reason_then_decide
from pipelines.models.base import ChoiceRequest
from pipelines.run.events import Score, Verdict
from pipelines.run.scope import Scope
from pipelines.types import Choice, Message, Passage

__all__ = ["SAMPLING_TEMPERATURE", "Known", "Support", "checking_role", "supported"]

SAMPLING_TEMPERATURE = 0.3
"""Of the verdicts that a majority is taken of (code)."""

_VERDICTS: dict[str, Verdict] = {
    "true": "supported",
    "false": "contradicted",
    "nei": "not_enough",
}
_LABELS = {"reasoning": ("Reasoning", "推理"), "verdict": ("Verdict", "判断")}


@dataclass(frozen=True)
class Support:
    """A concept with its verdict, the evidence behind it and the numbers that go with it."""

    concept: ConceptCheck
    evidence: tuple[Passage, ...]
    scores: tuple[Score, ...]


Known = dict[str, Support]
"""What a run has found out so far, by validation question."""


def checking_role(scope: Scope, question: Question, settings: EverSettings) -> str:
    """Who answers the validation questions; only the main model can answer from memory."""
    if settings.variant == "nrg_sq":
        return "main"
    return checker(scope, {question.language}, settings.checked_by)


async def supported(
    own: Scope,
    question: Question,
    settings: EverSettings,
    found: ConceptCheck,
    known: Known,
    sentence: str,
) -> Support:
    """Answer the validation question of `found`: from passages (ER) or from memory (SQ).

    `sentence` is what the question was made from.

    Nothing found is NEI, and no call is made; a search that failed and a verdict that cannot be
    read leave the concept unchecked. Every other verdict is added to `known`: the same question
    has the same evidence, so it is neither searched for nor asked a second time.
    """
    earlier = known.get(found.question)
    if earlier is not None:
        return _reused(earlier, found)
    support = await _supported(own, question, settings, found, sentence)
    if support.concept.verdict != "unchecked":
        known.setdefault(found.question, support)
    return support


def _reused(earlier: Support, found: ConceptCheck) -> Support:
    source = earlier.concept
    update = source.model_dump(include={"verdict", "reason", "reasoning", "evidence", "by"})
    scores = (score.model_copy(update={"behind": (source.span,)}) for score in earlier.scores)
    concept = found.model_copy(update={**update, "reused": source.span})
    return Support(concept, earlier.evidence, tuple(scores))


async def _supported(
    own: Scope, question: Question, settings: EverSettings, found: ConceptCheck, sentence: str
) -> Support:
    if settings.variant == "nrg_sq":
        found, scores = await _decided(own, question, settings, found, ())
        return Support(found, _recalled(own, found), scores)
    passages, found = await _retrieved(own, settings, found)
    if found.reason:
        return Support(found, (), ())
    role = checking_role(own, question, settings)
    if role == "main":
        found, scores = await _decided(own, question, settings, found, passages)
    else:
        found, scores = await _judged(own, role, question, found, passages, sentence)
    return Support(found, passages, scores)


async def _retrieved(
    own: Scope, settings: EverSettings, found: ConceptCheck
) -> tuple[tuple[Passage, ...], ConceptCheck]:
    try:
        passages = distinct(await own.search(found.question, settings.passages))
    except VeriscopeError:
        # Not having looked is no finding: the concept is neither borne out nor doubtful.
        return (), found.model_copy(update={"reason": "search_failed"})
    if not passages:
        update = {"verdict": "not_enough", "reason": "no_evidence"}
        return (), found.model_copy(update=update)
    ids = tuple(passage.id for passage in passages)
    return passages, found.model_copy(update={"evidence": ids})


async def _judged(
    own: Scope,
    role: str,
    question: Question,
    found: ConceptCheck,
    passages: Sequence[Passage],
    sentence: str,
) -> tuple[ConceptCheck, tuple[Score, ...]]:
    """The verdict of a judge: one reading, no reasoning."""
    model = own.model(role)
    choice = await model.choose(
        ChoiceRequest(
            messages=_asked(question, found, passages),
            options=TRUE_FALSE_NEI[question.language],
            claim=claim_of_question(found.question, sentence, passages),
            reproducible=own.reproducible,
        )
    )
    label = choice.best
    if label is None:
        return found.model_copy(update={"reason": "unreadable", "by": model.name}), ()
    update = {"verdict": _VERDICTS[label], "by": model.name}
    return found.model_copy(update=update), (_probability(choice, label),)


def _asked(
    question: Question, found: ConceptCheck, passages: Sequence[Passage]
) -> tuple[Message, ...]:
    language = question.language
    content = (
        PROMPTS.fill(
            language, "verify", passages=numbered(language, passages), question=found.question
        )
        if passages
        else PROMPTS.fill(language, "recall", question=found.question)
    )
    return (Message(role="user", content=content),)


async def _decided(
    own: Scope,
    question: Question,
    settings: EverSettings,
    found: ConceptCheck,
    passages: Sequence[Passage],
) -> tuple[ConceptCheck, tuple[Score, ...]]:
    language, draws = question.language, settings.samples
    drawn = await together(
        reason_then_decide(
            own,
            _asked(question, found, passages),
            TRUE_FALSE_NEI[language],
            labels=_LABELS,
            reminder=PROMPTS.fill(language, "verdict_again"),
            temperature=SAMPLING_TEMPERATURE if draws > 1 else 0.0,
            sample=number if draws > 1 else None,
        )
        for number in range(draws)
    )
    # Replies that name no verdict vote too, for nothing: one True among three is no majority.
    votes = Counter(one.label for one in drawn).most_common(2)
    (label, count), tied = votes[0], len(votes) == 2 and votes[0][1] == votes[1][1]
    if label is None or tied:
        reason = "tie" if tied else "unreadable"
        update = {"reason": reason, "reasoning": drawn[0].reasoning or drawn[0].text}
        return found.model_copy(update=update), ()
    chosen = next(one for one in drawn if one.label == label)
    update = {"verdict": _VERDICTS[label], "reasoning": chosen.reasoning}
    return found.model_copy(update=update), _scores(chosen, label, count, draws)


def _scores(chosen: Reasoned, label: str, count: int, draws: int) -> tuple[Score, ...]:
    if draws > 1:
        return (
            Score(
                name="verdict_share",
                value=count / draws,
                formula="ever.verdict_share",
                inputs=(float(count), float(draws)),
            ),
        )
    choice = chosen.choice
    if choice is None or choice.source != "logprobs":
        return ()
    return (_probability(choice, label),)


def _probability(choice: Choice, label: str) -> Score:
    return Score(
        name="verdict_probability",
        value=choice.probabilities[label],
        formula="ever.verdict_probability",
        inputs=tuple(choice.probabilities.values()),
    )


def _recalled(own: Scope, found: ConceptCheck) -> tuple[Passage, ...]:
    """What the model recalled, in the place that passages take where they are retrieved."""
    if not found.reasoning:
        return ()
    return (
        Passage(
            id=f"recalled-{own.id}",
            title=found.text,
            text=found.reasoning,
            source="recalled",
            rank=1,
        ),
    )

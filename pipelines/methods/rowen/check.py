"""Rowen's check: paraphrase, answer in two languages and by two models, compare each pair.

Nothing waits for what it does not need: every paraphrase goes its own way, its answers are written
at the same time, and a pair is compared as soon as both of its answers exist.
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import fsum
from typing import Any, Literal

from pipelines.aio import ended, together
from pipelines.base import Choice, Language, calibrated
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Demonstrations, Question
from pipelines.methods.replies.lists import asks_yes_or_no, says_yes, shares_words
from pipelines.methods.replies.paraphrases import paraphrases_in
from pipelines.methods.replies.parsing import declines, figures_in
from pipelines.methods.replies.verdicts import TRUE_FALSE, claim_of_answers, decide_between, truth
from pipelines.methods.rowen import reading
from pipelines.methods.rowen import reading as asking
from pipelines.methods.rowen.reading import question_pattern
from pipelines.methods.rowen.settings import RowenSettings
from pipelines.methods.rowen.translating import translation_of
from pipelines.methods.writing import ask_list, demonstrates, needs_help
from pipelines.retrieval.indexes import LexicalEmbedder
from pipelines.run.events import JUDGES, Score, Verdict
from pipelines.run.findings import (
    SIDES,
    PairCompared,
    ParaphraseDiscarded,
    ParaphraseTaken,
    RowenPlan,
    Side,
    Variant,
)
from pipelines.run.scope import Scope
from pipelines.text import has_han
from pipelines.text.bilingual_names import share_a_name

# The equivalence operator C: do two answers agree as answers to a question?

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
            reading.PROMPTS.turns(language, prompt, question=question, first=first, second=second),
            TRUE_FALSE[language],
            reminder=reading.PROMPTS.fill(language, "reminder"),
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


# When Rowen retrieves: the consistency scores, and the decision that follows. Pure.
#
# Source: the Rowen paper's section on deciding when to retrieve. C is 1.0 where two answers agree
# as answers to the question and 0.0 where they do not:
#
#     Z_CL = mean_j C(P^j, P_T^j)    Z_CM = mean_j C(P^j, P_V^j)    Z_Hybrid = Z_CL + alpha * Z_CM
#
# Evidence is retrieved when Z is below the threshold. Pairs that could not be decided are left out
# of their mean. Where one comparison of the hybrid decided no pair at all, the other one decides
# alone, against its own threshold (ours).


@dataclass(frozen=True)
class ComparedPair:
    """A compared pair and the span in which it was judged."""

    compared: PairCompared
    span: str


@dataclass(frozen=True)
class Conclusion:
    """What the pairs lead to.

    `variant` is the one that decided. `verdict` is "unchecked" where no pair was decided; evidence
    is retrieved then, too. `scores` begin with the one that decides it and are empty where there
    was no paraphrase to compare answers to.
    """

    variant: Variant
    retrieve: bool
    verdict: Verdict
    scores: tuple[Score, ...]


def conclude(
    settings: RowenSettings,
    variant: Variant,
    pairs: Sequence[ComparedPair],
    *,
    stands_in: bool = False,
    weak: bool = False,
) -> Conclusion:
    """Return the scores and whether to retrieve, for the pairs that `variant` compared.

    With `stands_in`, "cm" compared second answers of the main model, which its score says. A `weak`
    main model has its own threshold.
    """
    variant, z = _decided(settings, variant, _values(settings, variant, pairs))
    threshold = settings.threshold_for(variant, weak=weak)
    retrieve = z is None or z < threshold
    return Conclusion(
        variant=variant,
        retrieve=retrieve,
        verdict="unchecked" if z is None else "doubtful" if retrieve else "confident",
        scores=_scores(settings, variant, pairs, z, threshold, stands_in=stands_in)
        if pairs
        else (),
    )


def is_certain(
    settings: RowenSettings,
    variant: Variant,
    pairs: Sequence[ComparedPair],
    planned: int,
    *,
    weak: bool = False,
) -> bool:
    """Return whether no outcome of the comparisons left, of `planned` a side, can change the
    decision.

    Each may yet be anything in [0, 1], or stay undecided, which moves the mean less than 0 or 1.
    Which variant decides is certain once every side has a decided pair or none left.
    """
    values = _values(settings, variant, pairs)
    left = {side: planned - sum(p.compared.side == side for p in pairs) for side in values}
    if not any(left.values()):
        return True
    if not all(values[side] or not left[side] for side in values):
        return False
    (decides, low), (_, high) = (
        _decided(settings, variant, {s: [*values[s], *[rest] * left[s]] for s in values})
        for rest in (0.0, 1.0)
    )
    threshold = settings.threshold_for(decides, weak=weak)
    return (low is not None and low >= threshold) or (high is not None and high < threshold)


def _values(
    settings: RowenSettings, variant: Variant, pairs: Sequence[ComparedPair]
) -> dict[Side, list[float]]:
    """Return C of the decided pairs of each side, in the order of their paraphrases."""
    found: dict[Side, list[float]] = {side: [] for side in SIDES[variant]}
    for side, values in found.items():
        known = (pair.compared.value(soft=settings.soft) for pair in _of_side(pairs, side))
        values += [value for value in known if value is not None]
    return found


def _of_side(pairs: Sequence[ComparedPair], side: Side) -> list[ComparedPair]:
    chosen = (pair for pair in pairs if pair.compared.side == side)
    return sorted(chosen, key=lambda pair: pair.compared.index)


def _decided(
    settings: RowenSettings, variant: Variant, values: dict[Side, list[float]]
) -> tuple[Variant, float | None]:
    """Return the variant that decides, and its Z; None where no pair was decided.

    Of two sides, one that decided nothing leaves the decision to the other.
    """
    means: dict[Side, float] = {s: fsum(each) / len(each) for s, each in values.items() if each}
    if not means:
        return variant, None
    if len(means) == 1:
        ((side, z),) = means.items()
        return side, round(z, 9)
    # A tie must be one: 0.7 + 0.1 is 0.7999999999999999 in floating point, and not below 0.8.
    return variant, round(means["cl"] + settings.alpha * means["cm"], 9)


def _scores(
    settings: RowenSettings,
    variant: Variant,
    pairs: Sequence[ComparedPair],
    z: float | None,
    threshold: float,
    *,
    stands_in: bool,
) -> tuple[Score, ...]:
    flagged, alone = z is not None and z < threshold, variant != "hybrid"
    parts = [
        Score(
            name="rowen_again" if side == "cm" and stands_in else f"rowen_{side}",
            value=_decided(settings, side, {side: values})[1],
            threshold=threshold if alone else None,
            flagged=alone and flagged,
            formula=f"rowen.{side}",
            inputs=tuple(values),
            behind=tuple(pair.span for pair in _of_side(pairs, side)),
        )
        for side, values in _values(settings, variant, pairs).items()
    ]
    if alone:
        return tuple(parts)
    scale = 1.0 + settings.alpha
    behind = tuple(span for part in parts for span in part.behind)
    hybrid = Score(
        name="rowen_hybrid",
        value=z,
        threshold=threshold,
        flagged=flagged,
        high=scale,
        formula="rowen.hybrid",
        inputs=(*(part.value for part in parts if part.value is not None), settings.alpha),
        behind=behind,
    )
    normalised = Score(
        name="rowen_normalised",
        value=None if z is None else z / scale,
        threshold=threshold / scale,
        flagged=flagged,
        formula="rowen.normalised",
        inputs=() if z is None else (z, settings.alpha),
        behind=behind,
    )
    return (hybrid, *parts, normalised)


# Questions that mean the same as the question: written by the main model, read, sorted out.


async def paraphrases_of(
    scope: Scope,
    question: Question,
    k: int,
    *,
    min_similarity: float,
    temperature: float,
    demonstrations: Demonstrations,
) -> list[ParaphraseTaken]:
    """Return at most `k` paraphrases; asked for once more where there are fewer.

    Those with a cosine below `min_similarity` are discarded, which is recorded.
    """
    found: list[ParaphraseTaken] = []
    async with scope.span("paraphrase") as step:
        for attempt in range(2):
            missing = k - len(found)
            if not missing:
                break
            known = [one.text for one in found]
            shots = ""
            if demonstrates(step, demonstrations, "paraphrase"):
                # What is demonstrated is copied: the question's own kind is shown.
                shots = "paraphrase_yes_no" if asks_yes_or_no(question) else "paraphrase"
            asked = asking.PROMPTS.turns(
                question.language,
                "paraphrase_more" if known and not shots else "paraphrase",
                shots=shots,
                question=question.text,
                count=str(missing),
                had="\n".join(f"- {text}" for text in known),
            )
            # Of 48 paraphrases asked of the embedded model (4 sample questions, 2 draws of 6)
            # 12 were questions with a schema and 1 without.
            bound = bool(shots) and question.language == "en" and needs_help(step, "form")
            reply = await ask_list(
                step,
                asked,
                "questions",
                exactly=missing,
                pattern=question_pattern(question.text) if bound else None,
                max_tokens=asking.SHORT_TOKENS * (missing + 1),
                temperature=temperature,
                sample=attempt,
            )
            found += await _usable(step, question, min_similarity, reply, known)
    return found[:k]


async def _usable(
    step: Scope, question: Question, least: float, reply: str, known: Sequence[str]
) -> list[ParaphraseTaken]:
    """Return the paraphrases of a reply that are near to the question; records what is
    discarded.
    """
    taken, discarded = paraphrases_in(reply, question, known)
    for text, reason in discarded:
        _discard(step, text, ParaphraseDiscarded(reason=reason))
    usable = []
    for text, cosine in zip(taken, await _similarities(step, question, least, taken), strict=True):
        if cosine is not None:
            near = cosine >= least
        else:
            near = not least or shares_words(text, question.text)
        if near:
            usable.append(ParaphraseTaken(text=text, similarity=cosine))
        else:
            _discard(step, text, ParaphraseDiscarded(reason="meaning", similarity=cosine))
    return usable


async def _similarities(
    step: Scope, question: Question, least: float, texts: Sequence[str]
) -> Iterable[float | None]:
    """Return the cosine of each text with the question; None where nothing compares meanings."""
    by_words = step.embedder in (None, LexicalEmbedder.name)
    if texts and least and not by_words:
        try:
            (row,) = await step.similarities([question.text], texts)
        except VeriscopeError:
            # Recorded with its call. Shared words have to do.
            return [None] * len(texts)
        return row
    return [None] * len(texts)


def _discard(step: Scope, text: str, why: ParaphraseDiscarded) -> None:
    step.judged("paraphrase", text, verdict="unchecked", detail=why)


_AnswerSide = Literal["source", "target", "verifier"]

_STAND_IN_TEMPERATURE = 1.0
"""A stand-in is the main model once more: only a draw at random can disagree with it."""

_WEAK_STAND_IN_TEMPERATURE = 0.3
"""What a weak model draws at 1.0 is mostly noise, which agrees with nothing (ours)."""


@dataclass(frozen=True)
class _Given:
    """An answer, and the spans its calls were made in. `lost` says why there can be none."""

    text: str
    spans: tuple[str, ...] = ()
    lost: str = ""


class RowenCheck:
    """One run of the check; `paraphrases` and `pairs` grow while it goes on."""

    def __init__(self, question: Question, scope: Scope, settings: RowenSettings, plan: RowenPlan):
        self.question = question
        self.scope = scope
        self.settings = settings
        self.plan = plan
        self.paraphrases: list[str] = []
        self.pairs: list[ComparedPair] = []
        self._yes_no = asks_yes_or_no(question)
        self.weak = scope.model().capabilities.weak
        # Both comparisons need them: of the verifier, where it is its languages that are compared.
        self._shared_sides: tuple[_AnswerSide, ...] = ("source",)
        if plan.speaker == "verifier":
            self._shared_sides = ("source", "verifier")
        self._reasons = settings.reasons(weak=needs_help(scope, "reason"))

    async def run(self) -> None:
        """Make every comparison of the plan; with early stop, as many as the decision needs.

        With early stop the paraphrases count in their order, whichever is compared first. So the
        same pairs decide when the run is re-evaluated from its record.
        """
        async with self.scope.span("check", detail=self.plan) as step:
            taken = await paraphrases_of(
                step,
                self.question,
                self.settings.k,
                min_similarity=self.settings.min_similarity,
                temperature=self.settings.temperature,
                demonstrations=self.settings.demonstrations,
            )
            self.paraphrases = [paraphrase.text for paraphrase in taken]
            # Evidence is searched for with all of them, however few are compared.
            taken = taken[: self.settings.compared]
            if not self.settings.early_stop:
                await together(*(self._pair(step, n, one) for n, one in enumerate(taken)))
                return
            turns = [asyncio.Event() for _ in taken]
            tasks = [
                asyncio.ensure_future(self._pair(step, n, one, turns[n]))
                for n, one in enumerate(taken)
            ]
            try:
                for turn, task in zip(turns, tasks, strict=True):
                    turn.set()
                    await task
                    if self._is_certain(len(taken)):
                        break
            finally:
                await ended(*tasks)

    def _is_certain(self, planned: int) -> bool:
        return is_certain(self.settings, self.plan.variant, self.pairs, planned, weak=self.weak)

    async def _pair(
        self, scope: Scope, index: int, taken: ParaphraseTaken, turn: asyncio.Event | None = None
    ) -> None:
        async with scope.span("pair", index=index, detail=taken) as step:
            known: dict[_AnswerSide, asyncio.Future[_Given]] = {
                side: asyncio.ensure_future(
                    self._tried(self._answer(step, index, side, taken.text))
                )
                for side in self._shared_sides
            }
            try:
                await together(
                    *(self._side(step, index, taken.text, s, known, turn) for s in self.plan.sides)
                )
            finally:
                await ended(*known.values())

    async def _side(
        self,
        scope: Scope,
        index: int,
        text: str,
        side: Side,
        known: Mapping[_AnswerSide, asyncio.Future[_Given]],
        turn: asyncio.Event | None,
    ) -> None:
        # Both sides wait for the same answer; a side that is cancelled does not cancel it.
        speaks: _AnswerSide = "verifier" if self.plan.speaker == "verifier" else "source"
        first = asyncio.shield(known[speaks if side == "cl" else "source"])
        if side == "cl":
            answers = await together(first, self._tried(self._translated(scope, index, text)))
        elif "verifier" in known:
            answers = await together(first, asyncio.shield(known["verifier"]))
        else:
            other = self._answer(scope, index, "verifier", text)
            answers = await together(first, self._tried(other))
        async with scope.span("judge", index=index, side=side) as step:
            how, hard, choice = await self._compared(step, side, text, *answers)
            if turn is not None:
                await turn.wait()
            soft, inputs = None, ()
            if choice is not None:
                inputs = tuple(choice.probabilities.get(label, 0.0) for label in ("true", "false"))
                soft = truth(choice)
            compared = PairCompared(side=side, index=index, hard=hard, soft=soft, source=how)
            score = Score(
                name="rowen_same",
                value=hard if soft is None else soft,
                formula="" if soft is None else "rowen.same",
                inputs=inputs,
                behind=(step.id, *dict.fromkeys(span for one in answers for span in one.spans)),
            )
            step.judged(
                "pair",
                " | ".join(answer.text for answer in answers),
                label=side,
                verdict="unchecked" if hard is None else "supported" if hard else "contradicted",
                scores=(score,),
                detail=compared,
            )
            self.pairs.append(ComparedPair(compared, step.id))

    async def _compared(
        self, step: Scope, side: Side, text: str, *answers: _Given
    ) -> tuple[str, float | None, Choice | None]:
        """Return how two answers were compared, the equivalence operator C, and what a
        model chose.
        """
        first, second = (answer.text for answer in answers)
        if not first or not second:
            return next((answer.lost for answer in answers if answer.lost), "empty"), None, None
        return await compared(
            step,
            self.plan.source,
            f"same_{side}",
            text,
            first,
            second,
            yes_no=self._yes_no,
            role=(side == "cl" and self.plan.across) or self.plan.by,
        )

    async def _translated(self, scope: Scope, index: int, text: str) -> _Given:
        """Return what the model answers in the target language."""
        plan = self.plan
        async with scope.span("translate", index=index, language=plan.target) as step:
            translation = await translation_of(
                step,
                text,
                plan.source,
                plan.target,
                min_similarity=self.settings.min_translation,
                demonstrations=self.settings.demonstrations,
                role=plan.speaker,
            )
        if not translation:
            return _Given("", (step.id,), "untranslated")
        given = await self._answer(scope, index, "target", translation)
        return _Given(given.text, (step.id, *given.spans))

    async def _answer(self, scope: Scope, index: int, side: _AnswerSide, text: str) -> _Given:
        options: dict[str, Any] = {"role": self.plan.speaker} if side == "target" else {}
        if side == "verifier" and self.plan.verifier == "model":
            options = {"role": "verifier"}
        elif side == "verifier":
            warm = _WEAK_STAND_IN_TEMPERATURE if self.weak else _STAND_IN_TEMPERATURE
            # An answer that the service gave before agrees with itself.
            options = {"temperature": warm, "sample": index, "drawn": True}
        async with scope.span("answer", index=index, side=side) as step:
            answer = await reading.answer_question(
                step,
                text,
                self.plan.target if side == "target" else self.plan.source,
                reasoned=self._reasons,
                shown=demonstrates(
                    step, self.settings.demonstrations, "single", options.get("role", "main")
                ),
                max_tokens=self.settings.max_tokens,
                **options,
            )
        return _Given(answer, (step.id,))

    async def _tried(self, answer: Coroutine[Any, Any, _Given]) -> _Given:
        """Return the answer, or that the calls for it failed."""
        try:
            return await answer
        except VeriscopeError:
            return _Given("", lost="failed")

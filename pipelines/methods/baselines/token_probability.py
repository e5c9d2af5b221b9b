"""Token probability: how improbable were the tokens of a sentence, or how undecided the model?

Source: SelfCheckGPT (Manakul, Liusie and Gales, EMNLP 2023), section 4, the grey-box baselines. For
the tokens j of a sentence, with probability p_j and entropy H_j over the vocabulary, both in nats:

    Avg(-log p) = -1/J sum_j log p_j    Max(-log p) = max_j -log p_j
    Avg(H) = 1/J sum_j H_j              Max(H) = max_j H_j

All are at least 0 and have no upper bound. The score of the answer is the same over all its tokens.
Where the answer was given, or the model reports no probabilities, they are read by teacher forcing:
a model is asked how probable it finds each token of the text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from pydantic import Field

from pipelines.base import Answer, Token
from pipelines.errors import failure
from pipelines.methods.base import AnswerTokens, Method, Need, Question, Settings, Stage
from pipelines.methods.baselines.shared import (
    CheckedAnswer,
    judge_answer,
    judge_sentences,
    mean,
    scored,
    take_subject,
    unchecked,
)
from pipelines.models.base import ScoreRequest
from pipelines.prompts import load_prompts
from pipelines.run.events import Score
from pipelines.run.scope import Scope
from pipelines.text import by_characters, tokens_covering

TokenMeasure = Literal["logprob_avg", "logprob_max", "entropy_avg", "entropy_max"]

MEASURES: tuple[TokenMeasure, ...] = get_args(TokenMeasure)
"""The four baselines of the paper, in its order."""

_THRESHOLDS: dict[TokenMeasure, float] = {
    "logprob_avg": 0.7,
    "logprob_max": 2.3,
    "entropy_avg": 0.7,
    "entropy_max": 2.3,
}
"""ln 2 and ln 10, rounded: a probability of 1/2 or 1/10, or as undecided as between 2 or 10."""


class TokenProbabilitySettings(Settings):
    """Settings of the token probability baselines."""

    REPLAYABLE = ("measure", "threshold")

    measure: TokenMeasure = Field(
        "logprob_max",
        description="Which number decides (paper: the maximum of -log p does best).",
    )
    threshold: float | None = Field(
        None,
        ge=0,
        le=20,
        description="Doubtful above this, in nats (none: 0.7 for averages, a probability of one"
        " half; 2.3 for maxima, a probability of one tenth; ours, the paper only ranks).",
    )
    source: Literal["auto", "logprobs", "proxy"] = Field(
        "auto",
        description="Whose probabilities count: those of the model that wrote the answer (paper),"
        " or those of a proxy model that reads it (paper: LLaMA as a proxy); auto takes the first"
        " that there are.",
    )
    max_tokens: AnswerTokens = 128

    def effective_default(self, name: str) -> Mapping[str, float]:
        """Return the default in force: an unset threshold is that of the measure."""
        if name != "threshold":
            return {}
        return {f"measure.{self.measure}": _THRESHOLDS[self.measure]}

    def threshold_in_use(self) -> float:
        """Return the threshold set, else that of the measure."""
        return _THRESHOLDS[self.measure] if self.threshold is None else self.threshold


@dataclass(frozen=True)
class _Measured:
    """The tokens of the answer, the span they were measured in, and remarks on whose they are."""

    tokens: tuple[Token, ...]
    span: str
    flags: tuple[str, ...] = ()


class TokenProbability(Method[TokenProbabilitySettings]):
    """Average and maximum of token surprisal and entropy."""

    name = "token_probability"
    page = "baselines"
    rewrites = False
    baseline = True
    roles = ("proxy",)
    effort = 1
    starts_from = "direct"
    checks = "text"
    settings_type = TokenProbabilitySettings
    flow = (
        Stage("draft"),
        Stage("score_tokens"),
    )
    prompts = (load_prompts("direct"),)

    def needs(self, settings: TokenProbabilitySettings) -> tuple[Need, ...]:
        needs = [Need(reason="model")]
        if settings.source == "logprobs":
            needs.append(Need(reason="logprobs"))
        if settings.source == "proxy":
            needs.append(Need(reason="proxy", role="proxy"))
        return tuple(needs)

    def needs_for_text(
        self, settings: TokenProbabilitySettings, *, asked: bool
    ) -> tuple[Need, ...]:
        role, others = {
            "auto": ("main", ("proxy",)),
            "logprobs": ("main", ()),
            "proxy": ("proxy", ()),
        }[settings.source]
        return Need(reason="model"), Need(reason="scores", role=role, others=others)

    async def run(
        self, question: Question, scope: Scope, settings: TokenProbabilitySettings
    ) -> Answer:
        subject = await take_subject(question, scope, settings.max_tokens)
        if not subject.sentences:
            return unchecked(scope, subject)
        async with scope.span("score_tokens") as step:
            measured = await _measure(step, subject, settings)
            spans = [(token.start, token.end) for token in measured.tokens]
            scores: list[list[Score]] = []
            for sentence in subject.sentences:
                covered = tokens_covering(spans, sentence.start, sentence.end)
                inside = by_characters([measured.tokens[index] for index in covered])
                scores.append(_scores(inside, settings, measured.span))
            counts = judge_sentences(step, subject, scores)
            # The values of every token stand with its sentence.
            whole = [
                score.model_copy(update={"inputs": ()})
                for score in _scores(by_characters(measured.tokens), settings, measured.span)
            ]
        return judge_answer(scope, subject, whole, measured.flags, counts)


async def _measure(
    step: Scope, subject: CheckedAnswer, settings: TokenProbabilitySettings
) -> _Measured:
    """Return the tokens of the answer with their probabilities, by what `settings` want.

    Raises CapabilityError where no model here gives any.
    """
    own = subject.generation.tokens
    if settings.source != "proxy" and own is not None:
        return _Measured(own, subject.span, _entropy_flags(own))
    has_proxy = step.has_model("proxy") and step.model("proxy").capabilities.scores
    if settings.source != "logprobs" and (has_proxy or settings.source == "proxy"):
        role, flag = "proxy", "tokens_proxy"
    elif step.model().capabilities.scores:
        role, flag = "main", "tokens_read"
    else:
        raise failure("asking.no_logprobs", name=step.model().name)
    request = ScoreRequest(
        messages=subject.messages, text=subject.text, reproducible=step.reproducible
    )
    read = (await step.model(role).score(request)).tokens or ()
    return _Measured(read, step.id, (flag, *_entropy_flags(read)))


def _entropy_flags(tokens: Sequence[Token]) -> tuple[str, ...]:
    """Return whether entropies are computed over the most probable tokens alone."""
    partial = any(token.entropy is not None and token.top_k is not None for token in tokens)
    return ("entropy_of_top_k",) if partial else ()


def _scores(tokens: Sequence[Token], settings: TokenProbabilitySettings, span: str) -> list[Score]:
    """Return the four numbers of these tokens, the one that decides first with its threshold.

    Those of tokens of which one has no log-probability, or no entropy, are unknown.
    """
    chosen = settings.measure
    surprisals = _known([None if t.logprob is None else max(0.0, -t.logprob) for t in tokens])
    entropies = _known([token.entropy for token in tokens])
    found: list[Score] = []
    for measure in (chosen, *(one for one in MEASURES if one != chosen)):
        kind, pooling = measure.split("_")
        values = surprisals if kind == "logprob" else entropies
        value = None if not values else max(values) if pooling == "max" else mean(values)
        found.append(
            scored(
                f"token_{measure}",
                value,
                bad="above",
                threshold=settings.threshold_in_use() if measure == chosen else None,
                high=None,
                formula=f"token_{measure}",
                inputs=values,
                behind=[span],
            )
        )
    return found


def _known(values: Sequence[float | None]) -> list[float]:
    """Return the values; none where one of them is not known."""
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []

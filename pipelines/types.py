"""The values that everything else exchanges: messages, tokens, generations, passages, answers.

All are immutable and serialise to JSON without loss, because a recorded run is made of them.
Conventions: probabilities lie in [0, 1], log-probabilities are natural logarithms (<= 0),
entropies are in nats, and character offsets are Python string indices, half-open [start, end).
"""

from __future__ import annotations

from math import exp
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

Language = Literal["en", "zh"]
Role = Literal["system", "user", "assistant"]
FinishReason = Literal["stop", "length", "watcher", "filter"]


class Frozen(BaseModel):
    """Base of every stored value: immutable, and strict about unknown fields."""

    model_config = ConfigDict(frozen=True, extra="forbid")


LOGPROB_ROUNDING = 1e-3
"""How far above 0 the rounding of a log-probability may reach."""


def _at_most_zero(value: float) -> float:
    # Not a bound of the field, which a number that is none would pass.
    if not value <= LOGPROB_ROUNDING:
        raise ValueError("a log-probability is 0 or less")
    return value


LogProbability = Annotated[float, AfterValidator(_at_most_zero)]
"""A natural logarithm of a probability; minus infinity is that of 0."""

Offset = Annotated[int, Field(ge=0)]
"""A string index."""


class Message(Frozen):
    """One turn of a chat. A final assistant message is a prefix for the model to go on from."""

    role: Role
    content: str


class Alternative(Frozen):
    """A token the model could have written instead, with its log-probability."""

    text: str
    logprob: LogProbability

    @property
    def probability(self) -> float:
        """The probability in [0, 1]."""
        return min(1.0, exp(self.logprob))


class Token(Frozen):
    """One generated token, its place in the generated text and what the model thought of it.

    `start` and `end` span every character the token contributes at least one byte to, so the
    spans of byte-level tokens that share a Chinese character overlap. `entropy` is the predictive
    entropy of the position over the full vocabulary when `top_k` is None; otherwise it is computed
    over the `top_k` reported tokens with the remaining probability `tail_mass` taken as one more
    outcome, which makes it a lower bound. None means that the backend reported nothing.
    """

    text: str
    start: Offset
    end: Offset
    logprob: LogProbability | None = None
    entropy: float | None = None
    top_k: int | None = None
    tail_mass: float = 0.0
    alternatives: tuple[Alternative, ...] = ()

    @property
    def probability(self) -> float | None:
        """The token's probability in [0, 1], or None when the backend reported none."""
        return None if self.logprob is None else min(1.0, exp(self.logprob))


class Usage(Frozen):
    """Tokens a call consumed, as the backend counted them."""

    prompt_tokens: Annotated[int, Field(ge=0)] = 0
    completion_tokens: Annotated[int, Field(ge=0)] = 0


class Generation(Frozen):
    """A text a model wrote. `tokens` is None when the backend gives no per-token data.

    `batch_size` is the number of sequences decoded together with this one, where the backend
    knows it.
    """

    text: str
    tokens: tuple[Token, ...] | None = None
    usage: Usage = Usage()
    finish_reason: FinishReason = "stop"
    batch_size: int | None = None


class UnsupportedSpan(Frozen):
    """A piece [start, end) of a statement that a judge does not find supported by the evidence.

    `doubt`, in [0, 1], is that of its most doubtful word.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    start: Offset
    end: Offset
    doubt: float


class Choice(Frozen):
    """How a model distributed its belief over a closed set of options.

    `probabilities` maps option label to probability; `other_mass` is what fell on no option
    (1.0 when a text reply could not be parsed). `source` says whether the numbers are first-token
    probabilities, those of a model made to judge, or a parsed text, where an option counts 1.0 and
    the rest 0.0. `unsupported` are pieces of the claim's statement, in order; None where the model
    does not look at single words.
    """

    model_config = ConfigDict(allow_inf_nan=False)

    probabilities: dict[str, float]
    other_mass: float
    source: Literal["logprobs", "judge", "text"]
    text: str = ""
    unsupported: tuple[UnsupportedSpan, ...] | None = None

    @property
    def best(self) -> str | None:
        """The most probable option, or None when nothing could be decided."""
        label = max(self.probabilities, key=self.probabilities.__getitem__, default=None)
        return label if label is not None and self.probabilities[label] > 0 else None


class Passage(Frozen):
    """A retrieved piece of a document.

    `start` and `end` are offsets in the document's text; `score` is the retriever's own (higher is
    better, not comparable between retrievers); `rank` counts from 1.
    """

    id: str
    title: str
    text: str
    source: str
    url: str | None = None
    start: int = 0
    end: int = 0
    score: float = 0.0
    rank: int = 0
    scores: dict[str, float] = Field(default_factory=dict)


class Answer(Frozen):
    """What a method answers: its final text beside the original it started from.

    `short` is the bare answer where the method asks for one; `flags` are catalogue keys of remarks
    on the answer, such as "unverified".
    """

    text: str
    original: str
    short: str | None = None
    abstained: bool = False
    flags: tuple[str, ...] = ()
    details: dict[str, Any] = Field(default_factory=dict)

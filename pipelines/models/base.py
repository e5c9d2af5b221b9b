"""What a model is to the rest of the engine: three calls, and a statement of what it can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, Literal

from pipelines.errors import CapabilityError
from pipelines.types import Choice, Frozen, Generation, Language, Message, Token


class Capabilities(Frozen):
    """What a model can do, declared by its backend or found by the probe.

    `top_logprobs` is the largest number of alternatives the backend reports per token, None for
    the full vocabulary; `prefill` says that a final assistant message is continued rather than
    answered; `scores` that a given text can be teacher-forced; `judges` is False where its verdicts
    were measured to be worth no more than chance; `writes` is False for models made to judge.
    """

    languages: frozenset[Language] = frozenset({"en"})
    logprobs: bool = False
    top_logprobs: int | None = 0
    structured_output: bool = False
    streaming: bool = True
    prefill: bool = False
    scores: bool = False
    full_entropy: bool = False
    judges: bool = True
    writes: bool = True


class GenerationRequest(Frozen):
    """Ask for `n` texts that continue `messages`.

    `temperature` 0 is greedy. `sample` tells repeated draws of the same prompt apart: without it a
    request above temperature 0 is never cached. `json_schema` constrains the output where the
    backend can. `reproducible` asks for one sequence at a time in float32.
    """

    messages: tuple[Message, ...]
    n: int = 1
    temperature: float = 0.0
    max_tokens: int = 256
    stop: tuple[str, ...] = ()
    logprobs: bool = False
    top_k: int = 10
    json_schema: dict[str, Any] | None = None
    seed: int = 0
    sample: int | None = None
    reproducible: bool = False


class Option(Frozen):
    """One option of a closed choice with every spelling that counts for it, e.g. YES, Yes, 是."""

    label: str
    spellings: tuple[str, ...]


Relation = Literal["support", "same"]


class Claim(Frozen):
    """What a closed question is about, for models that judge without reading a prompt.

    `statement` answers `question`, or stands for itself where that is empty. Under the relation
    "support" the question is whether `evidence` bears it out; under "same" whether `evidence`,
    another answer, says the same.
    """

    statement: str
    evidence: tuple[str, ...]
    question: str = ""
    relation: Relation = "support"


class ChoiceRequest(Frozen):
    """Ask which of `options` the model would answer first. `claim` says the same without a prompt.

    Models made to judge know the options by their labels: true, false and nei, or yes and no.
    """

    messages: tuple[Message, ...]
    options: tuple[Option, ...]
    claim: Claim | None = None
    reproducible: bool = False


class ScoreRequest(Frozen):
    """Ask for the probability of every token of `text` as the reply to `messages`."""

    messages: tuple[Message, ...]
    text: str
    top_k: int = 10
    reproducible: bool = False


ModelRequest = GenerationRequest | ChoiceRequest | ScoreRequest


class SimilarityRequest(Frozen):
    """Ask an embedder for the cosine of every text of `left` with every text of `right`."""

    left: tuple[str, ...]
    right: tuple[str, ...]


class Delta(Frozen):
    """A piece of text as it is written; `tokens` carry offsets in the whole text so far.

    `restart` tells the reader to forget the pieces before: the call is being tried again.
    """

    text: str
    tokens: tuple[Token, ...] = ()
    restart: bool = False


Watcher = Callable[[Delta], bool | None]
"""Receives each Delta; returning True ends the writing there (finish reason "watcher")."""


class Model(ABC):
    """A language model. Backends implement `generate`; the rest has defaults built on it.

    A failed call raises one of `pipelines.errors`; cancelling the awaiting task ends the work.
    What an `illustration` answers was written by hand.
    """

    name: str
    illustration: ClassVar[bool] = False

    @property
    @abstractmethod
    def capabilities(self) -> Capabilities:
        """What this model can do."""

    @abstractmethod
    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """Write `request.n` texts; `watch` sees the first one grow."""

    async def choose(self, request: ChoiceRequest) -> Choice:
        """Probability of each option as the reply's beginning (see `pipelines.models.choice`)."""
        from pipelines.models.choice import choose_by_generating

        return await choose_by_generating(self, request)

    async def score(self, request: ScoreRequest) -> Generation:
        """`request.text` with the probability the model gives each of its tokens."""
        raise CapabilityError(
            f"{self.name} cannot score a given text.",
            remedy="Choose a local model for this, or measure confidence by sampling.",
            provider=self.name,
        )

    async def aclose(self) -> None:  # noqa: B027 - most backends hold nothing open
        """Release what the model holds."""

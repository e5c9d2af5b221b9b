"""What a model is to the rest of the engine: three calls, and a statement of what it can do."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection
from typing import Annotated, Any, ClassVar, Literal, TypedDict, Unpack

from pydantic import Field, PlainSerializer

from pipelines.errors import failure
from pipelines.types import Choice, Frozen, Generation, Language, Message, Token

AdaptedStep = Literal["extract", "revise", "judge", "translate"]
"""What an adapter can be trained for: concepts, a revised sentence, a verdict, a translation."""


class Overrides(TypedDict, total=False):
    """What may be known better about one model than its backend assumes, see `Capabilities`."""

    top_logprobs: int | None
    prefill: bool | None
    structured_output: bool | None
    languages: Collection[Language] | None
    judges: bool | None
    weak: bool | None
    adapted: tuple[AdaptedStep, ...] | None


class Capabilities(Frozen):
    """What a model can do, declared by its backend or found by the probe.

    `top_logprobs` is the largest number of alternatives the backend reports per token, None for
    the full vocabulary; `prefill` says that a final assistant message is continued rather than
    answered; `scores` that a given text can be teacher-forced; `judges` is False where its verdicts
    were measured to be no better than chance; `writes` is False for models made to judge. `weak`
    is True where the model was measured, or found by the probe, not to follow instructions without
    demonstrations; `adapted` are the steps that it does better with its adapter, which a request
    can switch on.
    """

    # A set has another order in every process; what is stored and exported must not.
    languages: Annotated[frozenset[Language], PlainSerializer(sorted, when_used="json")] = (
        frozenset({"en"})
    )
    logprobs: bool = False
    top_logprobs: int | None = 0
    structured_output: bool = False
    streaming: bool = True
    prefill: bool = False
    scores: bool = False
    judges: bool = True
    writes: bool = True
    weak: bool = False
    adapted: tuple[AdaptedStep, ...] = ()

    def overridden(self, **known: Unpack[Overrides]) -> Capabilities:
        """Return these abilities with what is known better about one model; None changes nothing.

        `top_logprobs` 0 says that there are no log-probabilities at all.
        """
        update: dict[str, object] = {name: one for name, one in known.items() if one is not None}
        if (alternatives := known.get("top_logprobs")) is not None:
            update["logprobs"] = alternatives > 0
        update["languages"] = frozenset(known.get("languages") or self.languages)
        return self.model_copy(update=update)


EMBEDDED_NAME = "SmolLM2-135M-Instruct"
"""The bundled language model, and what people see as its name."""

DASHSCOPE_URL = "https://dashscope.aliyuncs.com/api/v1"
"""The address of DashScope for mainland China; keys of other regions need the address of theirs,
such as https://dashscope-intl.aliyuncs.com/api/v1."""

_BOTH: frozenset[Language] = frozenset({"en", "zh"})

OPENAI = Capabilities(languages=_BOTH, logprobs=True, top_logprobs=20, structured_output=True)
"""What an OpenAI-compatible server is taken to offer until the probe has been there."""

DASHSCOPE = OPENAI.overridden(top_logprobs=5)
"""The same for DashScope, which reports at most five alternatives."""

LLAMA_CPP = OPENAI.overridden(top_logprobs=100, prefill=True).model_copy(update={"scores": True})
"""What llama.cpp offers in this process, whatever the model."""

TRANSFORMERS = Capabilities(
    languages=_BOTH, logprobs=True, top_logprobs=None, prefill=True, scores=True
)
"""What transformers offers, whatever the model: the whole distribution."""

JUDGE = Capabilities(streaming=False, writes=False)
"""What a model made to judge offers: verdicts on claims, in English unless it says otherwise."""


class GenerationRequest(Frozen):
    """Ask for `n` texts that continue `messages`.

    `temperature` 0 is greedy. `sample` numbers repeated draws of the same prompt: without it a
    request above temperature 0 is never cached. `json_schema` constrains the output where the
    backend can. `reproducible` asks for one sequence at a time in float32. `adapted` switches the
    model's adapter on; without one it changes nothing.
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
    adapted: bool = False

    @property
    def is_random(self) -> bool:
        """Whether the same request may be answered differently each time: nothing numbers the
        draw."""
        return self.temperature > 0 and self.sample is None


class Option(Frozen):
    """One option of a closed choice with every spelling that counts for it, e.g. YES, Yes, 是."""

    label: str
    spellings: tuple[str, ...]


Relation = Literal["support", "same"]


class Claim(Frozen):
    """What a closed question is about, for models that judge without reading a prompt.

    `statement` answers `question`, or stands for itself where that is empty. Under the relation
    "support" the question is whether `evidence` supports it; under "same" whether `evidence`,
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
    adapted: bool = False


class ScoreRequest(Frozen):
    """Ask for the probability of every token of `text` as the reply to `messages`."""

    messages: tuple[Message, ...]
    text: str
    top_k: int = 10
    reproducible: bool = False


ModelRequest = GenerationRequest | ChoiceRequest | ScoreRequest


class SimilarityRequest(Frozen):
    """Ask an embedder for the cosine of every text of `left` with every text of `right`.

    The first `asked` texts of `left` are questions, which some embedders embed otherwise.
    """

    left: tuple[str, ...]
    right: tuple[str, ...]
    asked: Annotated[int, Field(ge=0, exclude_if=lambda asked: not asked)] = 0


class Delta(Frozen):
    """A piece of text as it is written; `tokens` carry offsets in the whole text so far.

    `restart` tells the reader to forget the pieces before: the call is being tried again.
    """

    text: str
    tokens: tuple[Token, ...] = ()
    restart: bool = False


Watcher = Callable[[Delta], bool | None]
"""Receives each Delta; returning True ends the writing there (finish reason "watcher")."""


Progress = Callable[[str, float], None]
"""Receives the stage of loading ("load", "downloading" or "loading") and its fraction in [0, 1]; it
is called in the thread that loads."""


def no_progress(stage: str, fraction: float) -> None:
    """Tell nobody: a `Progress` for those who show none."""


class Model(ABC):
    """A language model. Backends implement `generate`; the rest has defaults built on it.

    A failed call raises one of `pipelines.errors`; cancelling the awaiting task ends the work.
    What an `illustration` answers was written by hand.
    """

    name: str
    illustration: ClassVar[bool] = False
    _capabilities: Capabilities

    @property
    def capabilities(self) -> Capabilities:
        """What this model can do."""
        return self._capabilities

    @abstractmethod
    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        """Write `request.n` texts; `watch` sees the first one grow."""

    async def choose(self, request: ChoiceRequest) -> Choice:
        """Return the probability of each option as the reply's beginning (see
        `pipelines.models.choice`).
        """
        from pipelines.models.choice import choose_by_generating

        return await choose_by_generating(self, request)

    async def score(self, request: ScoreRequest) -> Generation:
        """Return `request.text` with the probability the model gives each of its tokens."""
        raise failure("asking.no_scores", self.name, name=self.name)

    async def prepare(self) -> None:  # noqa: B027 - most backends need no preparation
        """Load what the first call would otherwise have to wait for; raises what loading raises."""

    async def aclose(self) -> None:  # noqa: B027 - most backends hold nothing open
        """Release what the model holds."""

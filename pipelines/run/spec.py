"""What to run: the question, the methods, the models behind each role, the evidence."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pipelines.models.base import Capabilities
from pipelines.types import Frozen, Language

ModelKind = Literal["embedded", "local", "openai", "dashscope", "judge", "scripted"]
EvidenceMode = Literal["bm25", "dense", "hybrid"]
EvidenceSource = Literal["library", "given", "serper", "duckduckgo", "wikipedia"]

MAX_TEXT = 8000
"""Characters of a text that is given as evidence."""

JUDGES = ("judge_1", "judge_2", "judge_3")
"""The roles of small models that judge an answer."""

ROLES = ("main", "verifier", *JUDGES, "proxy")
"""Every role a model can be given: writer, second opinion, judges, scorer of given texts."""


class ModelSpec(Frozen):
    """A configured model. Keys are never part of it: they travel beside the spec, per session.

    `model` is the provider's id, a hub id, a folder, a GGUF file or a script, by kind; `name` is
    what people see; `base_url` is a server's. `top_logprobs`, `prefill` and `languages` override
    what the backend assumes, normally with what the capability probe found. The kind `local` with
    the model "embedded" runs the embedded weights by transformers, which can score a given text.
    The kind `judge` does not write: "trained", "similarity" or "overlap".
    """

    kind: ModelKind = "embedded"
    name: str = "SmolLM2-135M-Instruct"
    model: str = ""
    base_url: str | None = None
    top_logprobs: int | None = None
    prefill: bool | None = None
    structured_output: bool | None = None
    languages: tuple[Language, ...] | None = None

    def with_capabilities(self, found: Capabilities) -> ModelSpec:
        """This configuration with what the capability probe found."""
        return self.model_copy(
            update={
                "top_logprobs": found.top_logprobs if found.logprobs else 0,
                "prefill": found.prefill,
                "structured_output": found.structured_output,
                "languages": tuple(sorted(found.languages)),
            }
        )


BUILT_IN: tuple[ModelSpec, ...] = (
    ModelSpec(),
    ModelSpec(
        kind="local",
        name="SmolLM2-135M-Instruct (transformers)",
        model="embedded",
        languages=("en",),
    ),
    ModelSpec(kind="judge", name="Veriscope judge", model="trained", languages=("en",)),
    ModelSpec(
        kind="judge",
        name="Similarity (all-MiniLM-L6-v2)",
        model="similarity",
        languages=("en",),
    ),
    ModelSpec(kind="judge", name="Word overlap", model="overlap", languages=("en", "zh")),
)
"""The models that come along: the default, the same weights for scoring a given text, judges."""


class EvidenceSpec(Frozen):
    """Where passages come from: a library and how it is searched, a text, or a search of the web.

    `text` is the given text; `base_url` another address of the web search than its public one.
    """

    source: EvidenceSource = "library"
    library: str = "sample"
    mode: EvidenceMode = "hybrid"
    text: Annotated[str, Field(max_length=MAX_TEXT)] = ""
    base_url: str | None = None

    @property
    def name(self) -> str:
        """What people see: the library, "given", or the web search."""
        return self.library if self.source == "library" else self.source


class MethodSpec(Frozen):
    """A method by its registered name, with the settings that differ from its defaults."""

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)


class RunSpec(Frozen):
    """Everything that determines a run.

    `language` None lets the question decide. `models` maps a role (see `ROLES`) to a model; "main"
    must be there.
    """

    question: str
    methods: tuple[MethodSpec, ...]
    models: dict[str, ModelSpec] = Field(default_factory=lambda: {"main": ModelSpec()})
    evidence: EvidenceSpec = EvidenceSpec()
    language: Language | None = None
    seed: int = 0
    reproducible: bool = False

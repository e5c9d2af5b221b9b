"""What to run: the question, the methods, the models behind each role, the evidence."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from pipelines.models.providers import ModelSpec
from pipelines.retrieval.base import RetrievalMode
from pipelines.run.calibrations import Calibrations
from pipelines.types import Frozen, Language

EvidenceSource = Literal["library", "given", "qdrant", "serper", "duckduckgo", "wikipedia"]

MAX_QUESTION = 4000
"""Longest question, in characters: more does not fit a small model's context with passages."""

MAX_TEXT = 8000
"""Characters of a text that is given to be checked, or to be read by a method's setting."""

MAX_SOURCES = 20_000
"""Characters of all texts that are given as evidence of one run."""

JUDGES = ("judge_1", "judge_2", "judge_3")
"""The roles of small models that judge an answer."""

ROLES = ("main", "verifier", *JUDGES, "proxy")
"""Every role a model can be given: writer, second opinion, judges, scorer of given texts."""


class EvidenceSpec(Frozen):
    """Where passages come from: a library and how it is searched, a text, or a search of the web.

    `text` is the given text; `base_url` another address of the web search than its public one. With
    the source "qdrant", `library` is a collection of the Qdrant server at `base_url`. With
    `collection`, the id of one of the owner's own, `library` is its name, and `edition` tells what
    it held: other documents or another embedder are another edition.
    """

    source: EvidenceSource = "library"
    library: str = "sample"
    mode: RetrievalMode = "hybrid"
    text: Annotated[str, Field(max_length=MAX_SOURCES)] = ""
    base_url: str | None = None
    collection: str | None = None
    edition: str = ""

    @property
    def name(self) -> str:
        """What people see: the library or collection, "given", or the web search."""
        return self.library if self.source in ("library", "qdrant") else self.source

    @property
    def on_the_web(self) -> bool:
        """Whether passages come from a search of the web."""
        return self.source not in ("library", "given", "qdrant")


class MethodSpec(Frozen):
    """A method by its registered name, with the settings that differ from its defaults."""

    name: str
    settings: dict[str, Any] = Field(default_factory=dict)


class GivenAnswer(Frozen):
    """An answer that is there already: methods check it instead of writing a first draft.

    `samples` are other answers of the model that wrote it, for methods that compare samples.
    `asked` is False where nobody knows what it answers: the run's question then only stands in
    prompts where a question has to stand, and what is searched for is the text. `alone` says that
    judges read its sentences without the question, because only the whole text answers that.
    """

    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    samples: tuple[Annotated[str, Field(max_length=MAX_TEXT)], ...] = ()
    asked: bool = True
    alone: bool = False


class RunSpec(Frozen):
    """Everything that determines a run.

    `language` None lets the question decide. `models` maps a role (see `ROLES`) to a model; "main"
    must be there. `answer` is a given answer to the question, None where methods write one.
    `prompts` are texts in place of shipped prompts: prompt file to language to prompt to text, see
    `pipelines.prompts.Wording`. `profile` names the saved profile whose settings these are, and
    `calibrations` are those of a profile that hold for these methods; both change nothing that the
    methods do.
    """

    question: str
    methods: tuple[MethodSpec, ...]
    models: dict[str, ModelSpec] = Field(default_factory=lambda: {"main": ModelSpec()})
    evidence: EvidenceSpec = EvidenceSpec()
    language: Language | None = None
    answer: GivenAnswer | None = None
    seed: int = 0
    reproducible: bool = False
    prompts: Annotated[
        dict[str, dict[str, dict[str, str]]],
        Field(exclude_if=lambda prompts: not prompts),
    ] = Field(default_factory=dict)
    profile: str = ""
    calibrations: Calibrations = ()

"""The event stream of a run: everything a screen shows is folded from these.

An event belongs to a span, and spans form a tree: the run, its methods, their steps. `seq` counts
from 0 without gaps over stored events; `time` is seconds since the run started (monotonic clock).
`token` events are shown live and never stored.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from pipelines.base import (
    Answer,
    Choice,
    Frozen,
    Generation,
    Language,
    Offset,
    Passage,
    Token,
    minilm_folder,
)
from pipelines.errors import ErrorInfo
from pipelines.models.base import ChoiceRequest, GenerationRequest, ScoreRequest, SimilarityRequest
from pipelines.models.catalogue import LARGE_MODEL, SMALL_MODEL, catalogue_entry, fetched_file
from pipelines.models.providers import PROVIDERS, ModelSpec, model_spec
from pipelines.retrieval.base import RetrievalMode
from pipelines.run.calibrations import Calibrations
from pipelines.run.findings import Finding, StepDetail
from pipelines.text import Entity
from pipelines.text.citations import Citation

# What to run: the question, the methods, the models behind each role, the evidence.

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
    `citations` are those of the text, each with the given source that it means.
    """

    text: Annotated[str, Field(min_length=1, max_length=MAX_TEXT)]
    samples: tuple[Annotated[str, Field(max_length=MAX_TEXT)], ...] = ()
    asked: bool = True
    alone: bool = False
    citations: Annotated[
        tuple[Citation, ...], Field(exclude_if=lambda citations: not citations)
    ] = ()


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
        dict[str, dict[str, dict[str, str]]], Field(exclude_if=lambda prompts: not prompts)
    ] = Field(default_factory=dict)
    profile: str = ""
    calibrations: Calibrations = ()


Outcome = Literal["ok", "failed", "cancelled"]
Verdict = Literal[
    "supported",
    "contradicted",
    "not_enough",
    "doubtful",
    "confident",
    "aligned",
    "not_aligned",
    "unchecked",
]
DOUBTS: frozenset[Verdict] = frozenset({"contradicted", "doubtful", "not_enough", "not_aligned"})
"""The verdicts by which a method doubts what it looked at."""
ABOUT: frozenset[Verdict] = frozenset({"aligned", "not_aligned"})
"""The verdicts on what a text is about. A wrong text can be about its evidence as well as a right
one, so they say nothing of its truth and count in no agreement."""

_WritingStep = Literal["draft", "take_answer", "reason", "sample"]
_SharedStep = Literal["retrieve", "nearest", "conclude"]
_DradStep = Literal["detect", "correct", "resume"]
_RowenCheck = Literal["check", "paraphrase", "pair", "answer", "translate", "judge", "decide"]
_RowenRepair = Literal["query", "search", "repair"]
_EverSentence = Literal["sentence", "next_sentence", "speculate", "rectify", "candidates"]
_EverCheck = Literal["verify", "extract", "concept", "statement"]
_HaaragStep = Literal["rephrase", "align", "entail", "refine"]
_SlmStep = Literal["ask_judges", "judge_sentence", "judge_response"]
_DetectorStep = Literal["score_tokens", "compare_samples", "cluster", "ask_model", "judge_citation"]
_CorrectorStep = Literal["plan", "knowledge", "debate", "edit", "critique", "classify"]
StepName = Literal[
    "method",
    _WritingStep,
    _SharedStep,
    _DradStep,
    _RowenCheck,
    _RowenRepair,
    _EverSentence,
    _EverCheck,
    _HaaragStep,
    _SlmStep,
    _DetectorStep,
    _CorrectorStep,
]
"""What a span is about; a screen words it under `step.*`."""

What = Literal[
    "answer",
    "sentence",
    "entity",
    "concepts",
    "concept",
    "paraphrase",
    "translation",
    "pair",
    "retrieval",
    "alignment",
    "cell",
    "whole",
    "correction",
    "question",
    "knowledge",
    "citation",
]
"""What a verdict is about. "cell" is one judge on one sentence, "whole" on the whole response;
"correction" is on a sentence of the evidence that takes the place of an answer, "question" on the
answer as far as one question about it tells, "knowledge" on what a model wrote down beforehand,
"citation" on a sentence by the very source that it cites."""

RevisionReason = Literal[
    "original",
    "corrected",
    "resumed",
    "repaired",
    "refined",
    "quoted",
    "written",
    "revise",
    "rewrite",
    "revise_and_rewrite",
    "candidate",
    "dropped",
    "abstained",
    "ended",
]
"""Why a method has a new draft."""


class EventBase(Frozen):
    """Fields of every event. The root span has no parent."""

    run: str
    span: str
    parent: str | None
    seq: int
    time: float


class RunStarted(EventBase):
    """The run's header: what was asked for and what it runs on.

    `created` is seconds since the epoch; `prompts` maps a prompt's name to the hash of its text.
    """

    kind: Literal["run_started"] = "run_started"
    spec: RunSpec
    language: Language
    created: float
    versions: dict[str, str]
    prompts: dict[str, str]


class Place(Frozen):
    """Which of several like things a step or a draft is about; what does not apply is None.

    `draft` counts a method's drafts, `sentence` sentences, `index` parallel pieces such as
    paraphrases, `round` repetitions, each from 0. `side` is one side of a comparison, `role` a
    model's role, `language` the language a text is put into. `start` and `end` are offsets in the
    draft.
    """

    draft: int | None = None
    sentence: int | None = None
    index: int | None = None
    round: int | None = None
    side: Literal["source", "target", "verifier", "cl", "cm"] | None = None
    role: str | None = None
    language: str | None = None
    start: Offset | None = None
    end: Offset | None = None


class SpanStarted(EventBase):
    """A method (named "method") or one of its steps begins."""

    kind: Literal["span_started"] = "span_started"
    method: str
    name: StepName
    at: Place = Place()
    detail: StepDetail | None = None


class SpanEnded(EventBase):
    """A span is over. A method's span carries its answer."""

    kind: Literal["span_ended"] = "span_ended"
    outcome: Outcome
    error: ErrorInfo | None = None
    answer: Answer | None = None


class ModelCalled(EventBase):
    """One attempt of a model call, successful or not; a cache hit is an attempt too.

    `started` is in seconds since the run started; `queued` is how much of the duration was spent
    waiting for a free slot; `in_flight` how many calls the model was busy with, this one
    included, over all runs, and 0 for a call that a limit of the run refused. An embedder's call
    has the role "embedder" and carries `similarities`: cosines in [-1, 1], one row for each text of
    the request's left side.
    """

    kind: Literal["model_called"] = "model_called"
    role: str
    model: str
    request: GenerationRequest | ChoiceRequest | ScoreRequest | SimilarityRequest
    attempt: int
    cached: bool = False
    started: float
    queued: float = 0.0
    in_flight: int = 1
    generations: tuple[Generation, ...] = ()
    choice: Choice | None = None
    similarities: tuple[tuple[float, ...], ...] | None = None
    error: ErrorInfo | None = None


class Retrieved(EventBase):
    """One search and what it found; an empty list is a valid result.

    `dense` says that the search was by vectors, whichever search was chosen.
    """

    kind: Literal["retrieved"] = "retrieved"
    retriever: str
    query: str
    k: int
    dense: bool = False
    started: float
    passages: tuple[Passage, ...]
    error: ErrorInfo | None = None


class EntitiesFound(EventBase):
    """The named entities of a text, and what found them: part of the record, so that a run can be
    re-evaluated alike where another recognizer is installed."""

    kind: Literal["entities"] = "entities"
    recognizer: str
    text: str
    entities: tuple[Entity, ...]


class TokenWritten(EventBase):
    """A piece of a text being written. `restart` discards the pieces before it."""

    kind: Literal["token"] = "token"
    text: str
    tokens: tuple[Token, ...] = ()
    restart: bool = False


MOST_SCORES = 100
"""Numbers behind one verdict; methods give fewer than ten."""


class Score(Frozen):
    """A number with its meaning: flagged when it lies on the wrong side of its threshold.

    `bad` says which side that is; `formula` is a catalogue key, `inputs` the numbers it used and
    `behind` the spans whose calls they came from (none: the span in which it was recorded).
    """

    name: str
    value: float | None
    threshold: float | None = None
    bad: Literal["below", "above"] = "below"
    flagged: bool = False
    low: float = 0.0
    high: float | None = 1.0
    formula: str = ""
    inputs: tuple[float, ...] = ()
    behind: tuple[str, ...] = ()

    def record(self) -> dict[str, Any]:
        """Return it for files and programs, without what it came from."""
        kept = {"name", "value", "threshold", "bad", "low", "high"}
        return self.model_dump(include=kept)


class Judged(EventBase):
    """A verdict on a piece of text: an entity, a sentence, a pair of answers, or "answer".

    A method that checks its original answer ends the checking with a verdict on "answer", whose
    first score is the number that decided it: this is what overviews show. `start` and `end` are
    offsets in the text of draft `draft`, counted from 0 (the original). `label` is an entity's
    kind or a judge's name.
    """

    kind: Literal["judged"] = "judged"
    what: What
    text: str
    start: Offset
    end: Offset
    draft: int = 0
    label: str = ""
    sentence: int | None = None
    verdict: Verdict
    scores: Annotated[tuple[Score, ...], Field(max_length=MOST_SCORES)] = ()
    detail: Finding | None = None

    @property
    def deciding(self) -> Score:
        """The score that decided; one without a number where none was recorded."""
        return self.scores[0] if self.scores else Score(name=self.what, value=None)


class Revised(EventBase):
    """The method replaced its draft. Text before `start` is unchanged in both.

    `generation` is the whole new draft; tokens of the untouched beginning keep their values. `at`
    names the sentence that changed, where there is one.
    """

    kind: Literal["revised"] = "revised"
    draft: int
    before: str
    after: str
    start: Offset
    reason: RevisionReason
    generation: Generation
    at: Place = Place()


class RunFinished(EventBase):
    """The run is complete; at least one method answered. Maps method name to answer."""

    kind: Literal["run_finished"] = "run_finished"
    answers: dict[str, Answer]


class RunFailed(EventBase):
    """Nothing could be answered. What was recorded before stays."""

    kind: Literal["run_failed"] = "run_failed"
    error: ErrorInfo


CancelReason = Literal[
    "stopped", "unwatched", "shutdown", "time_limit", "token_limit", "interrupted"
]
"""Why a run was ended before its end; "interrupted": its process ended without ending it."""


class RunCancelled(EventBase):
    """Stopped by the visitor, because nobody was watching any more, or at a limit of runs here."""

    kind: Literal["run_cancelled"] = "run_cancelled"
    reason: CancelReason


TerminalEvent = RunFinished | RunFailed | RunCancelled
Event = Annotated[
    RunStarted
    | SpanStarted
    | SpanEnded
    | ModelCalled
    | Retrieved
    | EntitiesFound
    | TokenWritten
    | Judged
    | Revised
    | RunFinished
    | RunFailed
    | RunCancelled,
    Field(discriminator="kind"),
]
event_adapter: TypeAdapter[Event] = TypeAdapter(Event)
"""Parses and serialises any event; its `kind` says which."""


# A recorded run: its header and its events, in order.


class Trace(Frozen):
    """The stored events of one run. The first is `run_started`, the last terminal once it ended."""

    events: tuple[Event, ...]

    @property
    def header(self) -> RunStarted:
        """What was asked for and what it ran on."""
        first = self.events[0]
        if not isinstance(first, RunStarted):
            raise ValueError("A trace begins with run_started.")
        return first

    @property
    def terminal(self) -> TerminalEvent | None:
        """The event that ended the run, or None while it runs."""
        last = self.events[-1]
        return last if isinstance(last, TerminalEvent) else None

    def of_method(self, method: str) -> tuple[Event, ...]:
        """Return the events inside the span of one method, the span's own included."""
        return tuple(self._within(method))

    def _within(self, method: str) -> Iterator[Event]:
        inside: set[str] = set()
        for event in self.events:
            if isinstance(event, SpanStarted):
                is_root = event.name == "method" and event.method == method
                if is_root or event.parent in inside:
                    inside.add(event.span)
            if event.span in inside:
                yield event


# Which models the roles are given to unless others are chosen.


def default_models(language: Language | None = None) -> dict[str, ModelSpec]:
    """Return a map from role to model: all of them run on this machine, and need neither key
    nor hub.

    With the `language` of a run they are those of that language, see `by_language`; without one,
    the bundled model is the main one.

    The bundled judge and word overlap judge: beside these two, similarity makes the SLM check
    worse on data (`docs/measurements.md`). Where the embedded encoder is not installed, word
    overlap judges alone.
    """
    panel = ("trained", "overlap") if minilm_folder() else ("overlap",)
    judges = [spec for spec in PROVIDERS["judge"].bundled if spec.model in panel]
    models = {"main": ModelSpec(), **dict(zip(JUDGES, judges, strict=False))}
    return models if language is None else by_language(models, language)


def by_language(models: Mapping[str, ModelSpec], language: Language) -> dict[str, ModelSpec]:
    """Return `models` for a question in `language`, where nobody chose otherwise.

    The bundled model speaks English only, and measures better there than the small model of both
    languages (`docs/models.md`); in Chinese that one writes where it is here, else the larger one.
    The verifier is another model that speaks the language: the larger one, else in English the
    small or the bundled one. One of the two judges beside the bundled judge; that one reads English
    only, so that in Chinese it judges alone. A model that somebody chose gets no verifier and no
    judge that nobody chose.
    """
    small, large = _fetched(SMALL_MODEL), _fetched(LARGE_MODEL)
    main = models["main"]
    if main == ModelSpec() and language != "en":
        main = small or large or main
    found = {**models, "main": main}
    if "verifier" not in found and is_default(main):
        # A smaller second opinion than the writer's own is none in Chinese.
        others = (large, small, ModelSpec()) if language == "en" else (large,)
        own = main.without_capabilities()
        fit = (one for one in others if one is not None and one.without_capabilities() != own)
        second = next(fit, None)
        found |= {"verifier": second} if second is not None else {}
    if is_default(main):
        others = {role: spec for role, spec in found.items() if role not in JUDGES}
        found = others | _judges(found, language)
    return found


def _judges(models: Mapping[str, ModelSpec], language: Language) -> dict[str, ModelSpec]:
    """Return the judges of `models`, with a language model among them where nobody chose others."""
    chosen = {role: spec for role, spec in models.items() if role in JUDGES}
    usual = {role: spec for role, spec in default_models().items() if role in JUDGES}
    judge = _fetched(LARGE_MODEL) or _fetched(SMALL_MODEL)
    if judge is None or chosen != usual:
        return chosen
    return {**chosen, JUDGES[len(usual)]: judge} if language == "en" else {JUDGES[0]: judge}


def is_default(main: ModelSpec) -> bool:
    """Return whether a main model is one of those that nobody needs to choose."""
    usual = (ModelSpec(), _fetched(SMALL_MODEL), _fetched(LARGE_MODEL))
    return main.without_capabilities() in [
        one.without_capabilities() for one in usual if one is not None
    ]


def _fetched(name: str) -> ModelSpec | None:
    """Return the model of `assets/pieces.toml` of that name, None where its file is not here."""
    return model_spec(catalogue_entry(name)) if fetched_file(name) is not None else None

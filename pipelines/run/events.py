"""The event stream of a run: everything a screen shows is folded from these.

An event belongs to a span, and spans form a tree: the run, its methods, their steps. `seq` counts
from 0 without gaps over stored events; `time` is seconds since the run started (monotonic clock).
`token` events are shown live and never stored.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field, TypeAdapter

from pipelines.errors import ErrorInfo
from pipelines.models.base import ChoiceRequest, GenerationRequest, ScoreRequest, SimilarityRequest
from pipelines.run.findings import Finding, StepDetail
from pipelines.run.spec import RunSpec
from pipelines.text import Entity
from pipelines.types import Answer, Choice, Frozen, Generation, Language, Offset, Passage, Token

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
_DetectorStep = Literal["score_tokens", "compare_samples", "cluster", "ask_model"]
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
]
"""What a verdict is about. "cell" is one judge on one sentence, "whole" on the whole response;
"correction" is on a sentence of the evidence that takes the place of an answer, "question" on the
answer as far as one question about it tells, "knowledge" on what a model wrote down beforehand."""

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

"""What methods report beside verdicts and scores, typed: one model for each kind of report.

An event carries at most one of these as its `detail`. Views and the re-evaluation read runs through
them, so whatever a page must show about a method has a field here. Probabilities lie in [0, 1],
entropies are in nats, cosines in [-1, 1]; offsets are half-open [start, end) string indices.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, JsonValue, model_validator

from pipelines.base import Frozen, Language, Offset
from pipelines.error_words import PhraseError
from pipelines.errors import ErrorInfo
from pipelines.models.base import Capabilities

# What HAARAG and the SLM check report: how a text stands to what was found, and what judges say.
#
# The fields are read as in `findings.py`, which names these models among what an event may carry.

# --- HAARAG ---------------------------------------------------------------------------------------

ChunkOutcome = Literal["kept", "low", "duplicate", "surplus", "given"]
"""What the filter did with a chunk: taken into the context, or left out because it is too far from
the queries, nearly the same as a better one, one too many, or was given for an earlier answer."""

DraftStatus = Literal[
    "supported",
    "aligned",
    "not_aligned",
    "doubtful",
    "insufficient",
    "nothing",
    "empty",
    "unchecked",
]
"""How a draft stands to its context: aligned or not by C_a, and supported or doubtful where the
judges decide; "insufficient" only says that the context does not suffice, "nothing" states
nothing that could be checked, "empty" is none, and
"unchecked" could be measured against no threshold or was not judged."""

LoopEnd = Literal["aligned", "unchecked", "iterations", "nothing_new", "nothing_found", "corrected"]
"""Why no further answer is written: the last one aligns or cannot be checked, the iterations are
used up, no chunk is left that was not given yet, nothing was found at all, or a sentence of the
evidence took the place of a draft that the judge did not find supported by it."""


class SearchRound(Frozen):
    """A round of searching: how many chunks per query, and what was added to the queries.

    `parts` are unsupported parts of the answer, `rephrase` asks for other forms of the question.
    """

    kind: Literal["round"] = "round"
    depth: int
    parts: tuple[str, ...] = ()
    rephrase: bool = False


class ChunkRated(Frozen):
    """A chunk with its largest cosine over the queries, in [-1, 1]; `query` is that query's index.

    `like` is the id of the better chunk that a duplicate resembles.
    """

    id: str
    similarity: float
    query: int
    outcome: ChunkOutcome
    like: str = ""


class RetrievalRated(Frozen):
    """The chunks found so far, best first, and the queries they were found for.

    The first `forms` queries are forms of the question, the others parts of an answer.
    """

    kind: Literal["retrieval"] = "retrieval"
    depth: int
    queries: tuple[str, ...]
    chunks: tuple[ChunkRated, ...]
    forms: int

    @model_validator(mode="after")
    def _check(self) -> Self:
        if not all(0 <= chunk.query < len(self.queries) for chunk in self.chunks):
            raise PhraseError("chunk.no_query")
        return self


class AlignmentStarted(Frozen):
    """What is aligned: how many sentences with how many chunks.

    `weak` says that a judge whose opinion is asked was measured to judge no better than chance.
    """

    kind: Literal["align"] = "align"
    sentences: int = 0
    chunks: int = 0
    weak: bool = False


class AlignmentRated(Frozen):
    """What follows from a draft's alignment.

    `low_retrieval` says that C_r was still below tau_r when the draft was written, so that it does
    not count as supported however well it aligns. `judged` says that the judges decide, and
    `nothing_added` that the answer does not align better than its question alone.
    """

    kind: Literal["alignment"] = "alignment"
    status: DraftStatus
    low_retrieval: bool = False
    judged: bool = False
    nothing_added: bool = False


class SentenceAligned(Frozen):
    """The chunk nearest to a sentence, and the nearest sentence of the evidence.

    `chunk` and `evidence_chunk` are passage ids; `start` and `end` are the evidence sentence's
    offsets in its chunk. `judged` says that the judges decide, and `claims` is False for a sentence
    that claims nothing which could be checked.
    """

    kind: Literal["aligned"] = "aligned"
    chunk: str
    evidence: str = ""
    evidence_chunk: str = ""
    start: Offset = 0
    end: Offset = 0
    judged: bool = False
    claims: bool = True


class LoopEnded(Frozen):
    """Why the loop ended; the draft that is the answer is the place of its step."""

    kind: Literal["loop_end"] = "loop_end"
    stopped: LoopEnd


# --- SLM check ------------------------------------------------------------------------------------


class JudgeScale(Frozen):
    """Mean and standard deviation of a judge's earlier scores, `n` of them, and what they are.

    "calibrated" ships with the project, "history" comes from the visitor's earlier runs; "neutral"
    stands in where nothing is known: a judge whose scores are spread evenly over [0, 1].
    """

    mu: float = 0.5
    sigma: float = 12**-0.5
    n: int = 0
    source: Literal["calibrated", "history", "neutral"] = "neutral"


class Statement(Frozen):
    """A sentence of the answer, the characters [start, end) of it."""

    text: str
    start: Offset
    end: Offset


class PanelJudge(Frozen):
    """A model that judges. `scale` is what its scores are measured against.

    `also` are further roles the same model was given: it is asked once.
    """

    role: str
    name: str
    scale: JudgeScale = JudgeScale()
    also: tuple[str, ...] = ()


MOST_JUDGES = 20
"""Judges of one panel; there are three roles for them."""


class JudgePanel(Frozen):
    """What is judged by which models: everything that is known before the judges are asked.

    `flags` are remarks on the answer; `left_out` names judges that do not speak its language.
    """

    kind: Literal["panel"] = "panel"
    text: str
    sentences: tuple[Statement, ...]
    judges: Annotated[tuple[PanelJudge, ...], Field(max_length=MOST_JUDGES)]
    flags: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()


class CellJudged(Frozen):
    """What one judge said about one sentence, or about the whole response.

    `p_no` is the probability of no, `other_mass` that of all words that are neither. P(yes) is the
    event's score, None where the judge said neither or where the call failed (`error`); `z` is its
    distance from the judge's mean in standard deviations.
    """

    kind: Literal["cell"] = "cell"
    role: str
    p_no: float = 0.0
    other_mass: float = 0.0
    z: float | None = None
    source: Literal["logprobs", "judge", "text"] = "logprobs"
    error: ErrorInfo | None = None


ThresholdSource = Literal["set", "calibrated", "statements", "borrowed", "neutral", "missing"]
"""A threshold is borrowed where it was measured with another scale or floor. As soon as one judge
was never measured it is that of statements about the library, where these judges have one, else
neutral: the score of P(yes) = 0.5."""


class SlmVerdict(Frozen):
    """Where the threshold on the response's score comes from."""

    kind: Literal["slm_verdict"] = "slm_verdict"
    threshold_source: ThresholdSource = "missing"


# --- Every method ---------------------------------------------------------------------------------


class MethodStarted(Frozen):
    """What a method runs with: its settings, the capabilities of its models, its embedder.

    `models` maps a role to what its model can do; `embedder` names the model whose cosines are
    used, None where texts cannot be compared.
    """

    kind: Literal["method"] = "method"
    settings: dict[str, JsonValue] = Field(default_factory=dict)
    models: dict[str, Capabilities] = Field(default_factory=dict)
    embedder: str | None = None


CorrectionForm = Literal["kept", "shortened", "quoted", "none"]
"""What became of a text by the nearest sentence of the evidence: it stays, because the sentence
supports it or says the same yes or no; what the model answered from the sentence alone takes its
place; the quoted sentence does; or nothing was done, because no sentence is near the question."""


class SentenceAlso(Frozen):
    """A second sentence that is quoted: it stands at [`start`, `end`) of its passage's text."""

    passage: str
    title: str = ""
    sentence: str
    start: Offset
    end: Offset


class SentenceChosen(Frozen):
    """The sentence of the evidence nearest to the question, and what was made of it.

    `passage` is the id of its passage, in whose text it stands at [`start`, `end`); `title` is that
    passage's. `asked_yes_no` says that the question is one of yes or no, and `denies` that the
    sentence denies what the question asks ("never", "no effect"), which the judge does not read
    reliably. `shortened` is what the model answered from the sentence; "" where it gave no answer
    in one sentence, or was not asked. `also` is quoted beside it: what answers a second part of the
    question, or another source with another figure.
    """

    kind: Literal["nearest"] = "nearest"
    form: CorrectionForm
    passage: str = ""
    title: str = ""
    sentence: str = ""
    start: Offset = 0
    end: Offset = 0
    asked_yes_no: bool = False
    denies: bool = False
    shortened: str = ""
    also: Annotated[tuple[SentenceAlso, ...], Field(exclude_if=lambda also: not also)] = ()


# --- DRAD -----------------------------------------------------------------------------------------

ConfidenceSource = Literal["logprobs", "samples", "proxy"]
"""What P(E) is computed from: the model's own token probabilities, agreement of samples, or the
probabilities that a proxy model gives to the same text."""

EntropyThresholdSource = Literal["set", "calibrated", "reworded", "missing", "off"]
"""Where theta_2 comes from. "set": a user set it. "calibrated": it was calibrated for this model
and its top-k. "reworded": the same, but with other prompts than this run uses. "missing": none was
calibrated, so only P(E) decides. "off": the entropy does not decide."""


class DraftMeasured(Frozen):
    """What the confidence in the entities of the drafts is computed from."""

    kind: Literal["draft"] = "draft"
    confidence: ConfidenceSource = "logprobs"


class DetectorThresholds(Frozen):
    """The thresholds that the entities of a draft are compared with.

    An entity is doubtful where P(E) < `theta_1` in [0, 1] or H(E) > `theta_2` in nats; without
    `theta_2` only P(E) decides. `model` gave the probabilities; `entropies` says what the entropies
    of its tokens are computed over: "full" (the whole vocabulary), k as a decimal number (the k
    most probable tokens), or "" where there are none. `confidence` names the stand-in that took
    over during the run, because a reply came without log-probabilities; None where none did.
    """

    kind: Literal["thresholds"] = "thresholds"
    confidence: ConfidenceSource | None = None
    theta_1: float
    theta_2: float | None = None
    theta_2_source: EntropyThresholdSource = "missing"
    model: str = ""
    entropies: str = ""


class EntityReading(Frozen):
    """An entity and what the model thought while writing it; no threshold applied yet.

    `start` and `end` are its offsets in the draft, `first` and `stop` delimit its tokens.
    `sentence` counts sentences from 0; `sentence_start` is the offset of the entity's sentence,
    which stays the same when a later part of the text is rewritten. `probabilities` in [0, 1] and
    `entropies` in nats are those of its tokens. `repeats` marks an entity that only repeats the
    question.
    """

    kind: Literal["entity"] = "entity"
    text: str
    start: Offset
    end: Offset
    label: str
    first: Offset
    stop: Offset
    sentence: int
    sentence_start: Offset
    probabilities: tuple[float, ...]
    entropies: tuple[float, ...]
    repeats: bool = False


# --- Rowen ----------------------------------------------------------------------------------------

Side = Literal["cl", "cm"]
"""The two comparisons: across languages (CL), and with another model (CM)."""

Variant = Literal["hybrid", "cl", "cm"]
TargetLanguage = Literal["en", "zh", "de", "fr", "es", "ja"]
VerifierKind = Literal["model", "stand_in", "same_model", "language"]
"""The verifier is a model of its own, or the main model stands in: none was chosen, the same model
was chosen, or the chosen one does not speak the question's language."""


class RowenPlan(Frozen):
    """How one run of Rowen goes about its check.

    `by` is the role that compares two answers and `judge` its model's name where that is a judge;
    `across` is what compares answers in two languages, where that is another role, or "embedder";
    `speaker` is the role whose answers in two languages are compared;
    `weak` marks a main model that compares although its verdicts were measured to be no better than
    chance.
    """

    kind: Literal["rowen_plan"] = "rowen_plan"
    variant: Variant
    source: Language
    target: TargetLanguage
    verifier: VerifierKind
    weak: bool = False
    by: str = "main"
    judge: str = ""
    across: str = ""
    speaker: Literal["main", "verifier"] = "main"

    @property
    def sides(self) -> tuple[Side, ...]:
        """The comparisons this run makes."""
        return SIDES[self.variant]

    @property
    def stands_in(self) -> bool:
        """Whether the main model's second answers stand for those of a verifier."""
        return "cm" in self.sides and self.verifier != "model"

    @property
    def languages(self) -> frozenset[str]:
        """The languages of the answers that are compared."""
        return frozenset({self.source, self.target} if "cl" in self.sides else {self.source})


SIDES: dict[Variant, tuple[Side, ...]] = {"hybrid": ("cl", "cm"), "cl": ("cl",), "cm": ("cm",)}
"""The comparisons that each variant makes."""


class ParaphraseTaken(Frozen):
    """A paraphrase of the question that is answered and compared.

    `similarity` is its cosine with the question in [-1, 1], None where nothing embeds the language.
    """

    kind: Literal["paraphrase"] = "paraphrase"
    text: str
    similarity: float | None = None


DiscardReason = Literal["statement", "language", "meaning", "repeated", "unusable"]
"""Why a text is no paraphrase: it asks nothing, is in another language, has too little to do with
the question, says the same words again, or is too short, too long or nothing but a number or date.
"""


class ParaphraseDiscarded(Frozen):
    """A text that the model wrote as a paraphrase and that is not used.

    `similarity` is its cosine with the question, where that was computed.
    """

    kind: Literal["discarded"] = "discarded"
    reason: DiscardReason
    similarity: float | None = None


class TranslationRead(Frozen):
    """A text that was written as the translation of a paraphrase, and whether it is used.

    `reason` says why it is not: it is in another language or in more than one, asks nothing
    although it translates a question, loses a name or a figure, is far from what it translates,
    farther than another try, or is none at all; "" for one that is used. `similarity` is its cosine
    with that, in [-1, 1], None where it was not computed. `names` were given to the model in the
    other language.
    """

    kind: Literal["translation"] = "translation"
    reason: Literal["", "language", "statement", "names", "meaning", "farther", "unusable"] = ""
    similarity: float | None = None
    names: tuple[str, ...] = ()


class PairCompared(Frozen):
    """Two answers to one paraphrase and whether they agree as answers to the question.

    `index` counts paraphrases from 0. `hard` is 1.0, 0.0 or None where undecided; `soft` the
    probability of True in [0, 1] where a model was asked. `source` tells how it was decided: by the
    "model", by a "judge", by the "verifier", by "similarity", by comparing "yes_no" answers or the
    "figures" or "names" in them, or why it was not: "refusal" (which counts as no agreement), and
    "empty", "untranslated" or "failed" (undecided).
    """

    kind: Literal["pair"] = "pair"
    side: Side
    index: int
    hard: float | None
    soft: float | None
    source: str

    def value(self, *, soft: bool) -> float | None:
        """Return C of this pair, by the hard or the soft operator; None where undecided."""
        return self.soft if soft and self.soft is not None else self.hard


class RowenVerdict(Frozen):
    """Which variant decided, and whether evidence is retrieved.

    The verdict's scores hold the numbers, its first one Z and the threshold. It is retrieved also
    for an answer that states nothing, whatever Z is. `variant` is None
    where nothing was compared because the model does not speak the question's language; it differs
    from the plan's where one side of the hybrid decided no pair.
    """

    kind: Literal["rowen_verdict"] = "rowen_verdict"
    variant: Variant | None = None
    retrieve: bool = False


MOST_PASSAGES = 1000
"""Passages that one repair is given; settings allow a few."""


class RepairStarted(Frozen):
    """The ids of the passages that the repair is given, best first."""

    kind: Literal["repair"] = "repair"
    passages: Annotated[tuple[str, ...], Field(max_length=MOST_PASSAGES)] = ()


# --- EVER -----------------------------------------------------------------------------------------

Attempt = Literal["draft", "rectified", "candidate"]
"""Which text of a sentence is checked: as first written, rectified, or another possible answer."""

Listed = Literal["read", "none", "unreadable", "entities", "beyond"]
"""Whether a model's list of concepts was read, said to be empty, or could not be read; "entities":
the entities of the sentence complete the list of a weak model; "beyond": there is neither, and what
the sentence says beyond the question is its concept."""

Stopped = Literal["finished", "limit", "same", "unusable", "nothing_near", "corrected"]
"""Why a sentence is not rectified any further: nothing more is to be done, the limit on
rectifications is reached, the model changed nothing, what it wrote is no sentence to use, no
sentence of the evidence is near the question, or one took its place and the answer ends with it."""


MOST_CONCEPTS = 200
"""Concepts of one sentence; the setting that limits them allows fewer."""


class ConceptsListed(Frozen):
    """The concepts of a sentence that are checked in one round.

    `round` counts the checks of the same sentence from 0. `text` is what was checked, `places` the
    concepts' offsets in it, `left_out` how many concepts the limit left unchecked, `dropped` how
    many were listed that are no part of it, or 1 for a list that could not be read.
    """

    kind: Literal["concepts"] = "concepts"
    round: int
    text: str
    attempt: Attempt = "draft"
    listed: Listed = "read"
    places: Annotated[tuple[tuple[Offset, Offset], ...], Field(max_length=MOST_CONCEPTS)] = ()
    left_out: int = 0
    dropped: int = 0


class ConceptVerified(Frozen):
    """A concept and the answer to its validation question.

    `at` are the concept's offsets in the text that was checked. `claim` is what yes to `question`
    claims, which is what a judge reads; `fallback` marks a question made from a template because
    the model's own could not be used. `by` is the judge that gave the verdict, empty where the main
    model checked itself. `reason` says why nothing was asked or decided: "no_evidence" (not enough,
    without a call), "unsettled" (not enough, and without a score: one reading supports what another
    does not), "search_failed", "unreadable", "tie" or "repeated" (unchecked). `evidence` holds ids
    of passages in the order in which they were given; `incomplete` says that one of two searches
    failed. `reused` is the span in which the same question was answered before.
    """

    kind: Literal["concept"] = "concept"
    round: int
    at: tuple[Offset, Offset]
    question: str = ""
    claim: str = ""
    fallback: bool = False
    reason: str = ""
    reasoning: str = ""
    evidence: tuple[str, ...] = ()
    incomplete: bool = False
    reused: str = ""
    by: str = ""


class SentenceVerified(Frozen):
    """How a sentence ended: why it stopped, and what became of a sentence written ahead.

    `dropped` marks an item of a list that is left out of the answer, `last` the last sentence.
    """

    kind: Literal["ever_sentence"] = "ever_sentence"
    stopped: Stopped = "finished"
    dropped: bool = False
    last: bool = False
    speculation: Literal["", "kept", "discarded"] = ""


# --- Correcting baselines -------------------------------------------------------------------------


class QuestionAnswered(Frozen):
    """What a question about an answer, or a critique of it, came to.

    `answer` is what the model said, "" where only evidence was read; `passages` are the ids of the
    passages that were read.
    """

    kind: Literal["question"] = "question"
    answer: str = ""
    passages: Annotated[tuple[str, ...], Field(max_length=MOST_PASSAGES)] = ()


CitationState = Literal["supported", "not_by_source", "source_missing", "unchecked"]
"""What became of a citation: its source supports the sentence or does not, there is no such source,
or nobody could judge it."""


class CitationJudged(Frozen):
    """A sentence by one source that it cites.

    `citation` counts the citations of the given answer from 0. `jointly` says that the sentence is
    supported by what it cites together, and by none of it alone. `elsewhere` is another of the
    sources, counted from 1, that the sentence rests on, where its own does not support it; 0: none.
    `evidence` is the sentence of the cited source that says most of it.
    """

    kind: Literal["citation"] = "citation"
    citation: int = Field(ge=0)
    state: CitationState
    jointly: bool = False
    elsewhere: int = Field(0, ge=0)
    evidence: str = ""


StepDetail = Annotated[
    MethodStarted
    | DraftMeasured
    | DetectorThresholds
    | RowenPlan
    | ParaphraseTaken
    | RepairStarted
    | SearchRound
    | AlignmentStarted
    | LoopEnded
    | JudgePanel,
    Field(discriminator="kind"),
]
"""What the beginning of a span may carry."""

Finding = Annotated[
    EntityReading
    | PairCompared
    | ParaphraseDiscarded
    | TranslationRead
    | RowenVerdict
    | ConceptsListed
    | ConceptVerified
    | SentenceVerified
    | RetrievalRated
    | AlignmentRated
    | SentenceAligned
    | CellJudged
    | SlmVerdict
    | SentenceChosen
    | QuestionAnswered
    | CitationJudged,
    Field(discriminator="kind"),
]
"""What a verdict may carry."""

"""What HAARAG and the SLM check report: how a text stands to what was found, and what judges say.

The fields are read as in `findings.py`, which names these models among what an event may carry.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from pipelines.error_words import PhraseError
from pipelines.errors import ErrorInfo
from pipelines.types import Frozen, Offset

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


ThresholdSource = Literal["set", "calibrated", "borrowed", "neutral", "missing"]
"""A threshold is borrowed where it was measured with another scale or floor, neutral (the score of
P(yes) = 0.5) as soon as one judge was never measured."""


class SlmVerdict(Frozen):
    """Where the threshold on the response's score comes from."""

    kind: Literal["slm_verdict"] = "slm_verdict"
    threshold_source: ThresholdSource = "missing"

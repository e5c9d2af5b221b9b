"""HAARAG's numbers: retrieval confidence, the filter, and the alignment of answer and evidence.

Everything is computed from recorded cosines, so that a recorded run gives the same numbers again.
Source: the HAARAG paper, steps 3 to 8. Ours where the paper is silent: C_r is a mean over the best
k chunks, the evidence's vector is the mean of the chunks' vectors, and sentences are aligned too.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import fsum, sqrt
from typing import Literal

from pipelines.retrieval.passages import indexed_text
from pipelines.text import Span
from pipelines.types import Frozen, Passage

__all__ = [
    "Alignment",
    "Chunk",
    "Compared",
    "Found",
    "Retrieval",
    "SentenceAlignment",
    "align",
    "rate_retrieval",
]

Matrix = tuple[tuple[float, ...], ...]
Outcome = Literal["kept", "low", "duplicate", "surplus"]

_NO_LENGTH = 1e-9
# A mean vector shorter than this has no direction: texts without a word have no vector at all.


class Found(Frozen):
    """What one round of searching brought: the union over all queries so far.

    `to_queries` holds cosines [query][chunk], `between` those of the chunks, [chunk][chunk].
    `failed` says that no search of the round came to an end.
    """

    queries: tuple[str, ...]
    passages: tuple[Passage, ...] = ()
    to_queries: Matrix = ()
    between: Matrix = ()
    failed: bool = False


class Chunk(Frozen):
    """A chunk with its largest similarity over the queries, and what the filter made of it.

    `query` is the index of the query it is nearest to; `like` names the better chunk that a
    duplicate resembles.
    """

    passage: Passage
    similarity: float
    query: int
    outcome: Outcome
    like: str = ""


class Retrieval(Frozen):
    """A round's chunks, best first, and what they say about it.

    `confidence` is C_r, the mean of `counted` similarities; `spread` their standard deviation;
    `diversity` 1 - the mean cosine between those chunks. None where there is nothing to compute.
    """

    queries: tuple[str, ...]
    chunks: tuple[Chunk, ...] = ()
    counted: tuple[float, ...] = ()
    confidence: float | None = None
    spread: float | None = None
    diversity: float | None = None
    failed: bool = False

    @property
    def context(self) -> tuple[Passage, ...]:
        """The chunks that the model is given, best first."""
        return tuple(chunk.passage for chunk in self.chunks if chunk.outcome == "kept")

    @property
    def holds(self) -> frozenset[str]:
        """The context's texts, by which one context is told from another."""
        return frozenset(indexed_text(passage) for passage in self.context)


class Compared(Frozen):
    """The recorded cosines of one draft: of the answer, its sentences and the context.

    `to_chunks` holds one row for the answer and one a sentence, [row][chunk]; `to_evidence` the
    same against the context's sentences; `between` is [chunk][chunk]. `evidence` says which chunk
    each of the context's sentences is from, and where it stands in that chunk's text. `entailed`
    is the judges' mean P(yes) of each sentence where they were asked, None where they said nothing.
    """

    text: str
    sentences: tuple[Span, ...] = ()
    passages: tuple[Passage, ...] = ()
    evidence: tuple[tuple[int, Span], ...] = ()
    to_chunks: Matrix = ()
    to_evidence: Matrix = ()
    between: Matrix = ()
    entailed: tuple[float | None, ...] = ()


class SentenceAlignment(Frozen):
    """A sentence with its nearest chunk, and the nearest sentence of the whole context."""

    span: Span
    cosine: float
    passage: Passage
    evidence: Span | None = None
    evidence_passage: Passage | None = None
    evidence_cosine: float | None = None
    entailed: float | None = None


class Alignment(Frozen):
    """C_a of a draft and the two means it comes from, and its sentences one by one.

    `value` is `to_context / sqrt(within)`: the cosine of the answer and the mean of the chunks'
    vectors, which is None for an empty answer and for chunks that have no vector.
    """

    text: str
    value: float | None = None
    to_context: float | None = None
    within: float | None = None
    sentences: tuple[SentenceAlignment, ...] = ()


def rate_retrieval(
    found: Found, *, k: int, min_similarity: float, duplicate_similarity: float
) -> Retrieval:
    """C_r of a round, and which chunks make the context: at most `k`, low and repeated ones not.

    Low is what falls below `min_similarity` times the best similarity (times 0 where that is
    negative). C_r counts repeated chunks, as the paper's filter comes after it.
    """
    columns = list(zip(*found.to_queries, strict=True))
    best = [max(column) for column in columns]
    floor = min_similarity * max(0.0, *best) if best else 0.0
    order = sorted(range(len(best)), key=lambda at: (-best[at], at))
    kept: list[int] = []
    chunks: list[Chunk] = []
    for at in order:
        twin = next((o for o in kept if found.between[at][o] >= duplicate_similarity), None)
        outcome: Outcome = "kept"
        if best[at] < floor:
            outcome = "low"
        elif twin is not None:
            outcome = "duplicate"
        elif len(kept) == k:
            outcome = "surplus"
        else:
            kept.append(at)
        chunks.append(
            Chunk(
                passage=found.passages[at],
                similarity=best[at],
                query=columns[at].index(best[at]),
                outcome=outcome,
                like=found.passages[twin].id if outcome == "duplicate" and twin is not None else "",
            )
        )
    counted = [at for at in order if best[at] >= floor][:k]
    similarities = tuple(best[at] for at in counted)
    mean = _mean(similarities)
    pairs = [found.between[one][two] for one in counted for two in counted if one < two]
    together = _mean(pairs)
    return Retrieval(
        queries=found.queries,
        chunks=tuple(chunks),
        counted=similarities,
        confidence=mean,
        spread=None
        if mean is None
        else sqrt(fsum((s - mean) ** 2 for s in similarities) / len(similarities)),
        diversity=None if together is None else 1 - together,
        failed=found.failed,
    )


def align(compared: Compared) -> Alignment:
    """C_a of the answer, and of each sentence its nearest chunk and evidence sentence.

    For unit vectors the cosine of an answer r with the mean of chunks c is
    mean_i(r . c_i) / sqrt(mean_ij(c_i . c_j)), so that cosines alone are enough.
    """
    if not compared.to_chunks or not compared.passages:
        return Alignment(text=compared.text)
    answer, *rows = compared.to_chunks
    to_context = fsum(answer) / len(answer)
    within = fsum(value for row in compared.between for value in row) / len(answer) ** 2
    value = None
    if within > _NO_LENGTH:
        value = max(-1.0, min(1.0, to_context / sqrt(within)))
    return Alignment(
        text=compared.text,
        value=value,
        to_context=to_context,
        within=within,
        sentences=tuple(
            _align_sentence(compared, number, span, row)
            for number, (span, row) in enumerate(
                zip(compared.sentences, rows, strict=True), start=1
            )
        ),
    )


def _align_sentence(
    compared: Compared, number: int, span: Span, row: Sequence[float]
) -> SentenceAlignment:
    nearest = max(range(len(row)), key=row.__getitem__)
    found = SentenceAlignment(
        span=span,
        cosine=row[nearest],
        passage=compared.passages[nearest],
        entailed=compared.entailed[number - 1] if compared.entailed else None,
    )
    if not compared.evidence:
        return found
    cosines = compared.to_evidence[number]
    best = max(range(len(cosines)), key=cosines.__getitem__)
    chunk, evidence = compared.evidence[best]
    return found.model_copy(
        update={
            "evidence": evidence,
            "evidence_passage": compared.passages[chunk],
            "evidence_cosine": cosines[best],
        }
    )


def _mean(values: Sequence[float]) -> float | None:
    return fsum(values) / len(values) if values else None

"""How well an answer aligns with its context: C_a, each sentence's evidence, and what follows.

Source: the HAARAG paper, steps 7 and 8. Ours where the paper is silent: the answer is compared
together with its question, because "In 2013." alone has nothing in common with any passage; the
context's vector is the mean of its chunks' vectors; sentences are aligned too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt

from pipelines.methods.haarag.claims import claims_something, says_nothing
from pipelines.retrieval.base import Matrix
from pipelines.retrieval.passages import indexed_text
from pipelines.run.events import Score, Verdict
from pipelines.run.findings import DraftStatus
from pipelines.text import Span, split_sentences
from pipelines.types import Language, Passage

__all__ = [
    "ENTAILED",
    "Alignment",
    "AlignmentRules",
    "Comparison",
    "SentenceAlignment",
    "aligned_text",
    "context_cosine",
]

ENTAILED = 0.5
"""The judges find a sentence supported when their mean P(yes) reaches this (ours)."""

_NO_LENGTH = 1e-9
# A mean vector shorter than this has no direction: texts without a word have no vector at all.


def aligned_text(question: str, answer: str, language: Language) -> str:
    """What is compared with the context for an answer, or for a sentence of it."""
    return f"{question}{'' if language == 'zh' else ' '}{answer}"


def context_cosine(
    to_chunks: Sequence[float], between: Sequence[Sequence[float]]
) -> tuple[float | None, float, float]:
    """The cosine of a text and the mean of the chunks' vectors, and the two means it comes from.

    `to_chunks` are the cosines of the text and each chunk, `between` those of the chunks, all of
    unit vectors r and c: mean_i(r . c_i) / sqrt(mean_ij(c_i . c_j)), so that cosines alone are
    enough. The first is None for chunks that have no vector.
    """
    count = len(to_chunks)
    to_context = fsum(to_chunks) / count
    within = fsum(value for row in between for value in row) / count**2
    if within <= _NO_LENGTH:
        return None, to_context, within
    return max(-1.0, min(1.0, to_context / sqrt(within))), to_context, within


@dataclass(frozen=True)
class AlignmentRules:
    """What an alignment is measured against.

    `tau_a` is None where the embedder was never calibrated. With `judges_decide` a sentence that
    the judges do not find supported makes the answer doubtful.
    """

    tau_a: float | None
    judges_decide: bool = False


@dataclass(frozen=True)
class SentenceAlignment:
    """A sentence with its alignment, its nearest chunk and the nearest sentence of the context.

    `value` is C_a of question and sentence, computed as for the whole answer; `cosine` that of the
    two with `passage` alone. `evidence_cosine` is that of the sentence without the question with
    `evidence`, a sentence of `evidence_passage`. `entailed` is the judges' mean P(yes), None where
    they were not asked or said neither yes nor no. `claims` is False for a sentence that only says
    that the context does not suffice.
    """

    span: Span
    claims: bool
    value: float | None
    cosine: float
    passage: Passage
    evidence: Span | None = None
    evidence_passage: Passage | None = None
    evidence_cosine: float | None = None
    entailed: float | None = None

    def verdict(self, rules: AlignmentRules) -> Verdict:
        """By its alignment, and by the judges where they decide."""
        if not self.claims:
            return "unchecked"
        entailed = self.entailed if rules.judges_decide else None
        if _below(self.value, rules.tau_a) or _below(entailed, ENTAILED):
            return "doubtful"
        measured = self.value is not None and rules.tau_a is not None
        return "supported" if measured or entailed is not None else "unchecked"

    def rests_on(self, rules: AlignmentRules) -> bool:
        """Whether the sentence would align with its nearest chunk as the whole context."""
        objected = rules.judges_decide and _below(self.entailed, ENTAILED)
        return self.claims and not objected and _reaches(self.cosine, rules.tau_a)

    def scores(self, rules: AlignmentRules) -> tuple[Score, ...]:
        """C_a of the sentence, the nearest evidence sentence's cosine, and the judges' P(yes)."""
        tau_a = rules.tau_a if self.claims else None
        scores = [
            Score(
                name="sentence_alignment",
                value=self.value,
                threshold=tau_a,
                flagged=_below(self.value, tau_a),
                formula="haarag_sentence",
            ),
            Score(name="sentence_evidence", value=self.evidence_cosine, formula="haarag_evidence"),
        ]
        if self.entailed is not None:
            scores.append(_entailment(self.entailed))
        return tuple(scores)


@dataclass(frozen=True)
class Alignment:
    """C_a of a draft, the two means it comes from, and its sentences one by one.

    `value` is None for a draft that claims nothing and for chunks that have no vector.
    """

    text: str
    value: float | None = None
    to_context: float | None = None
    within: float | None = None
    sentences: tuple[SentenceAlignment, ...] = ()

    def status(self, rules: AlignmentRules) -> DraftStatus:
        """What is to be thought of the draft."""
        if not self.text.strip():
            return "empty"
        if says_nothing(self.text):
            return "insufficient"
        entailed = self._entailed(rules)
        if _below(self.value, rules.tau_a) or any(_below(one, ENTAILED) for one in entailed):
            return "doubtful"
        measured = self.value is not None and rules.tau_a is not None
        return "supported" if measured or entailed else "unchecked"

    def score(self, rules: AlignmentRules) -> Score:
        """C_a against its threshold; a draft that claims nothing is measured against none."""
        tau_a = rules.tau_a if self.value is not None else None
        parts = (self.to_context, self.within)
        return Score(
            name="evidence_alignment",
            value=self.value,
            threshold=tau_a,
            flagged=_below(self.value, tau_a),
            formula="haarag_alignment",
            inputs=tuple(part for part in parts if part is not None),
        )

    def deciding_score(self, rules: AlignmentRules) -> Score:
        """C_a, or the lowest P(yes) where only the judges object."""
        score, entailed = self.score(rules), self._entailed(rules)
        if not score.flagged and entailed and min(entailed) < ENTAILED:
            return _entailment(min(entailed))
        return score

    def doubted(self, rules: AlignmentRules) -> tuple[str, ...]:
        """What lacks support: the doubtful sentences, or the whole answer when each one passes."""
        sentences = (s.span.text for s in self.sentences if s.verdict(rules) == "doubtful")
        return tuple(dict.fromkeys(sentences)) or (self.text,)

    def supporting(self, rules: AlignmentRules) -> frozenset[str]:
        """The chunks that sentences rest on, as they were indexed."""
        return frozenset(indexed_text(s.passage) for s in self.sentences if s.rests_on(rules))

    def _entailed(self, rules: AlignmentRules) -> list[float]:
        if not rules.judges_decide:
            return []
        return [one.entailed for one in self.sentences if one.entailed is not None]


class Comparison:
    """Which texts are compared for a draft, and what their cosines say about it.

    `left` and `right` are the texts of one request: the answer and its sentences with the question,
    the sentences alone and the chunks, against the chunks and their sentences.
    """

    def __init__(
        self, question: str, text: str, context: Sequence[Passage], language: Language
    ) -> None:
        self.text = text
        self.context = tuple(context)
        self.sentences = split_sentences(text)
        # A sentence that stands in several chunks counts for the best of them.
        first: dict[str, tuple[Passage, Span]] = {}
        for passage in context:
            for span in split_sentences(passage.text):
                first.setdefault(span.text, (passage, span))
        self._evidence = list(first.values())
        chunks = tuple(indexed_text(passage) for passage in context)
        alone = [span.text for span in self.sentences]
        self.left = (
            *(aligned_text(question, one, language) for one in (text, *alone)),
            *alone,
            *chunks,
        )
        self.right = (*chunks, *first)

    def align(self, cosines: Matrix, entailed: Sequence[float | None]) -> Alignment:
        """The draft's alignment from the `cosines` of the request and the judges' P(yes)."""
        chunks, count = len(self.context), len(self.sentences)
        whole, *rows = (row[:chunks] for row in cosines[: 1 + count])
        alone = [row[chunks:] for row in cosines[1 + count : 1 + 2 * count]]
        between = [row[:chunks] for row in cosines[1 + 2 * count :]]
        value, to_context, within = context_cosine(whole, between)
        sentences = (
            self._sentence(number, row, between, alone[number], entailed[number])
            for number, row in enumerate(rows)
        )
        return Alignment(self.text, value, to_context, within, tuple(sentences))

    def _sentence(
        self,
        number: int,
        to_chunks: Sequence[float],
        between: Sequence[Sequence[float]],
        to_evidence: Sequence[float],
        entailed: float | None,
    ) -> SentenceAlignment:
        nearest = max(range(len(to_chunks)), key=to_chunks.__getitem__)
        passage, evidence, cosine = None, None, None
        if to_evidence:
            best = max(range(len(to_evidence)), key=to_evidence.__getitem__)
            (passage, evidence), cosine = self._evidence[best], to_evidence[best]
        return SentenceAlignment(
            span=self.sentences[number],
            claims=claims_something(self.sentences[number].text),
            value=context_cosine(to_chunks, between)[0],
            cosine=to_chunks[nearest],
            passage=self.context[nearest],
            evidence=evidence,
            evidence_passage=passage,
            evidence_cosine=cosine,
            entailed=entailed,
        )


def _entailment(value: float) -> Score:
    return Score(
        name="entailment",
        value=value,
        threshold=ENTAILED,
        flagged=value < ENTAILED,
        formula="haarag_entailment",
    )


def _below(value: float | None, threshold: float | None) -> bool:
    return value is not None and threshold is not None and value < threshold


def _reaches(value: float, threshold: float | None) -> bool:
    return threshold is not None and value >= threshold

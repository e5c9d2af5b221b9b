"""How well an answer aligns with its context: C_a, each sentence's evidence, and what follows.

Source: the HAARAG paper, steps 7 and 8. Ours where the paper is silent: the answer is compared
together with its question, because "In 2013." alone has nothing in common with any passage; the
context's vector is the mean of its chunks' vectors; sentences are aligned too.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Literal

from pipelines.methods.replies.parsing import is_refusal
from pipelines.methods.wording import load_wording
from pipelines.retrieval.base import Matrix
from pipelines.retrieval.passages import indexed_text
from pipelines.run.events import Score, Verdict
from pipelines.run.grounding import DraftStatus
from pipelines.text import Span, split_sentences
from pipelines.types import Language, Passage

ENTAILED = 0.5
"""The judges find a sentence supported when their mean P(yes) reaches this (ours)."""

_NO_LENGTH = 1e-9
# A mean vector shorter than this has no direction: texts without a word have no vector at all.

_WORDING = load_wording("haarag")
_APOLOGY, _INSUFFICIENT = _WORDING.pattern("sorry"), _WORDING.pattern("insufficient")
_REMARK, _GOES_ON = _WORDING.pattern("remark"), _WORDING.pattern("goes_on")
_CLAUSE_ENDS = re.compile(r"[，；：]|[;:—]")


def aligned_text(question: str, answer: str, language: Language) -> str:
    """What is compared with the context for an answer, or for a sentence of it."""
    return f"{question}{'' if language == 'zh' else ' '}{answer}" if question else answer


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


def is_low(value: float | None, threshold: float | None) -> bool:
    """Whether a value is below its threshold; never where one of the two is not known."""
    return value is not None and threshold is not None and value < threshold


@dataclass(frozen=True)
class AlignmentRules:
    """What an alignment is measured against.

    `tau_a` is None where the embedder was never calibrated. With `judges_decide` a sentence that
    the judges do not find supported makes the answer doubtful, and nothing is supported on which
    they gave no opinion.
    """

    tau_a: float | None
    judges_decide: bool = False

    def counted(self, entailed: Sequence[float | None]) -> list[float]:
        """Those P(yes) of the judges that decide anything."""
        return [value for value in entailed if value is not None] if self.judges_decide else []

    def verdict(
        self, value: float | None, entailed: Sequence[float | None]
    ) -> Literal["supported", "doubtful", "unchecked"]:
        """By the alignment `value`, and by the judges where they decide."""
        counted = self.counted(entailed)
        if is_low(value, self.tau_a) or any(p_yes < ENTAILED for p_yes in counted):
            return "doubtful"
        if self.judges_decide and len(counted) < len(entailed):
            return "unchecked"
        measured = value is not None and self.tau_a is not None
        return "supported" if measured or counted else "unchecked"


@dataclass(frozen=True)
class SentenceAlignment:
    """A sentence with its alignment, its nearest chunk and the nearest sentence of the context.

    `value` is C_a of question and sentence, computed as for the whole answer; `cosine` that of the
    two with `passage` alone. `evidence` is the sentence of the context that is nearest to this one
    without the question, with its passage and the cosine. `entailed` is the judges' mean P(yes),
    None where they were not asked or said neither yes nor no. `claims` is False for a sentence that
    only says that the context does not suffice, or only names the source of a quotation.
    """

    span: Span
    claims: bool
    value: float | None
    cosine: float
    passage: Passage
    evidence: tuple[Passage, Span, float] | None = None
    entailed: float | None = None

    def verdict(self, rules: AlignmentRules) -> Verdict:
        """By its alignment, and by the judges where they decide."""
        return rules.verdict(self.value, [self.entailed]) if self.claims else "unchecked"

    def rests_on(self, rules: AlignmentRules) -> bool:
        """Whether the sentence would align with its nearest chunk as the whole context."""
        alone = rules.tau_a is not None and rules.verdict(self.cosine, [self.entailed])
        return self.claims and alone == "supported"

    def scores(self, rules: AlignmentRules) -> tuple[Score, ...]:
        """C_a of the sentence, the nearest evidence sentence's cosine, and the judges' P(yes)."""
        nearest = None if self.evidence is None else self.evidence[2]
        tau_a = rules.tau_a if self.claims else None
        return (
            _below("sentence_alignment", self.value, tau_a, "haarag_sentence"),
            Score(name="sentence_evidence", value=nearest, formula="haarag_evidence"),
            *(() if self.entailed is None else (_entailment(self.entailed),)),
        )


@dataclass(frozen=True)
class Alignment:
    """C_a of a draft, the two means it comes from, and its sentences one by one.

    `value` is None for a draft that claims nothing and for chunks that have no vector.
    """

    text: str
    value: float | None = None
    means: tuple[float, ...] = ()
    sentences: tuple[SentenceAlignment, ...] = ()

    def status(self, rules: AlignmentRules) -> DraftStatus:
        """What is to be thought of the draft."""
        if not self.text.strip():
            return "empty"
        if says_nothing(self.text):
            return "insufficient"
        return rules.verdict(self.value, [s.entailed for s in self.sentences if s.claims])

    def score(self, rules: AlignmentRules) -> Score:
        """C_a against its threshold; a draft that claims nothing is measured against none."""
        tau_a = rules.tau_a if self.value is not None else None
        return _below("evidence_alignment", self.value, tau_a, "haarag_alignment", self.means)

    def deciding_score(self, rules: AlignmentRules) -> Score:
        """C_a, or the lowest P(yes) where only the judges object."""
        score = self.score(rules)
        lowest = min(rules.counted([s.entailed for s in self.sentences]), default=ENTAILED)
        return score if score.flagged or lowest >= ENTAILED else _entailment(lowest)

    def doubted(self, rules: AlignmentRules) -> tuple[str, ...]:
        """What lacks support: the doubtful sentences, or the whole answer when each one passes."""
        sentences = (s.span.text for s in self.sentences if s.verdict(rules) == "doubtful")
        return tuple(dict.fromkeys(sentences)) or (self.text,)

    def supporting(self, rules: AlignmentRules) -> frozenset[str]:
        """The chunks that sentences rest on, as they were indexed."""
        return frozenset(indexed_text(s.passage) for s in self.sentences if s.rests_on(rules))


class Comparison:
    """Which texts are compared for a draft, and what their cosines say about it.

    `left` and `right` are the texts of one request: the answer and its sentences with the question,
    the sentences alone and the chunks, against the chunks and their sentences.
    """

    def __init__(
        self, question: str, text: str, context: Sequence[Passage], language: Language
    ) -> None:
        self.text = text
        self.context = context
        self.sentences = split_sentences(text)
        # A sentence that stands in several chunks counts for the best of them.
        first: dict[str, tuple[Passage, Span]] = {}
        for passage in context:
            for span in split_sentences(passage.text):
                first.setdefault(span.text, (passage, span))
        self._evidence = list(first.values())
        chunks = tuple(indexed_text(passage) for passage in context)
        alone = [span.text for span in self.sentences]
        asked = (aligned_text(question, answer, language) for answer in (text, *alone))
        self.left = (*asked, *alone, *chunks)
        self.right = (*chunks, *first)

    def align(self, cosines: Matrix, entailed: Sequence[float | None]) -> Alignment:
        """The draft's alignment from the `cosines` of the request and the judges' P(yes)."""
        chunks, count = len(self.context), len(self.sentences)
        whole, *rows = (row[:chunks] for row in cosines[: 1 + count])
        alone = [row[chunks:] for row in cosines[1 + count : 1 + 2 * count]]
        between = [row[:chunks] for row in cosines[1 + 2 * count :]]
        value, *means = context_cosine(whole, between)
        sentences: list[SentenceAlignment] = []
        for span, row, to_evidence, said in zip(self.sentences, rows, alone, entailed, strict=True):
            evidence = None
            if to_evidence:
                best = max(range(len(to_evidence)), key=to_evidence.__getitem__)
                evidence = (*self._evidence[best], to_evidence[best])
            nearest = max(range(chunks), key=row.__getitem__)
            sentences.append(
                SentenceAlignment(
                    span=span,
                    claims=claims_something(span.text),
                    value=context_cosine(row, between)[0],
                    cosine=row[nearest],
                    passage=self.context[nearest],
                    evidence=evidence,
                    entailed=said,
                )
            )
        return Alignment(self.text, value, tuple(means), tuple(sentences))


def _entailment(value: float) -> Score:
    return _below("entailment", value, ENTAILED, "haarag_entailment")


def _below(
    name: str,
    value: float | None,
    threshold: float | None,
    formula: str,
    inputs: tuple[float, ...] = (),
) -> Score:
    """A score that is flagged below its threshold."""
    return Score(
        name=name,
        value=value,
        threshold=threshold,
        flagged=is_low(value, threshold),
        formula=formula,
        inputs=inputs,
    )


# --- Whether anything is claimed ------------------------------------------------------------------


def says_nothing(text: str) -> bool:
    """Whether all that `text` says is that the context does not suffice; an empty text does not."""
    sentences = [span.text for span in split_sentences(text)]
    insufficient = any(_is_insufficient(sentence) for sentence in sentences)
    return insufficient and not any(claims_something(sentence) for sentence in sentences)


def claims_something(sentence: str) -> bool:
    """Whether a sentence says more than that the context does not suffice, or than a source."""
    return not _is_insufficient(sentence) and _REMARK.match(sentence) is None


def _is_insufficient(sentence: str) -> bool:
    bare = sentence.strip().strip("\"'“”‘’「」 ")
    match = _INSUFFICIENT.match(bare)
    if match is None:
        apology = _APOLOGY.match(bare)
        said = bare[apology.end() :] if apology else bare
        return is_refusal(bare) and _GOES_ON.search(said) is None
    # Chinese joins sentences by commas: "资料没有提到他的出生地，他出生在芝加哥。"
    rest = [clause.strip() for clause in _CLAUSE_ENDS.split(bare[match.end() :])[1:]]
    return _GOES_ON.search(bare, match.end()) is None and all(
        not clause or _INSUFFICIENT.match(clause) or _REMARK.match(clause) for clause in rest
    )

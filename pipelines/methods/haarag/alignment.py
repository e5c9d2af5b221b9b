"""How well an answer aligns with its context: C_a, each sentence's evidence, and what follows.

Source: the HAARAG paper, steps 7 and 8. Ours where the paper is silent: the answer is compared
together with its question, because "In 2013." alone has nothing in common with any passage, and
against what the question alone would score; the context's vector is the mean of its chunks'
vectors; sentences are aligned too.

A cosine says what a text is about, and a wrong answer is about the same as the right one. So by it
a text is aligned or not; it is supported only where judges find that the context entails it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from math import fsum, sqrt
from typing import Final, NamedTuple

from pipelines.base import Language, Passage
from pipelines.methods.base import load_wording
from pipelines.methods.replies.parsing import is_refusal
from pipelines.retrieval.base import Matrix
from pipelines.retrieval.documents import indexed_text
from pipelines.run.events import Score, Verdict
from pipelines.run.findings import DraftStatus
from pipelines.text import Span, has_han, split_sentences

ENTAILED, SUPPORTED = 0.5, 0.6
"""Mean P(yes) of the judges below which they doubt a statement, and from which on a sentence is
supported (ours, measured in docs/verdicts.md); between the two it is only aligned."""

_BARE, _BARE_HAN = 4, 8
# Words, and characters of Chinese, of the longest answer that is taken for no statement (ours).

NOTHING: Final = ("empty", "insufficient", "nothing")
"""What a draft is that claims nothing."""

_NO_LENGTH = 1e-9
# A mean vector shorter than this has no direction: texts without a word have no vector at all.

_WORDING = load_wording("haarag")
_APOLOGY, _INSUFFICIENT = _WORDING.pattern("sorry"), _WORDING.pattern("insufficient")
_REMARK, _GOES_ON = _WORDING.pattern("remark"), _WORDING.pattern("goes_on")
_CLAUSE_ENDS = re.compile(r"[，；：]|[;:—]")


def aligned_text(question: str, answer: str, language: Language) -> str:
    """Return what is compared with the context for an answer, or for a sentence of it."""
    return f"{question}{'' if language == 'zh' else ' '}{answer}" if question else answer


def context_cosine(
    to_chunks: Sequence[float], between: Sequence[Sequence[float]]
) -> tuple[float | None, float, float]:
    """Return the cosine of a text and the mean of the chunks' vectors, and the two means it
    comes from.

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
    """Return whether a value is below its threshold; never where one of the two is not known."""
    return value is not None and threshold is not None and value < threshold


class MeanSupport(NamedTuple):
    """The judges' mean P(yes) of a sentence, None where they gave none.

    `bare` says that the sentence is an answer in a few words, or taken from the context. The
    judges' doubt of a few words is no better than chance (docs/verdicts.md): it keeps them from
    being supported, and no more.
    """

    p_yes: float | None
    bare: bool = False

    @property
    def doubts(self) -> bool:
        """Whether the judges do not find a statement supported."""
        return self.p_yes is not None and self.p_yes < ENTAILED and not self.bare


@dataclass(frozen=True)
class AlignmentRules:
    """What an alignment is measured against.

    `tau_a` is None where the embedder was never calibrated. With `judges_decide` a text is
    supported where it aligns and the judges find every sentence of it supported; a statement that
    they do not find so makes it doubtful, and one on which they gave no opinion leaves it
    unchecked. Without, a text is aligned or not aligned (paper); with `floored` it is aligned only
    where it aligns better than its question alone (ours).
    """

    tau_a: float | None
    judges_decide: bool = False
    floored: bool = False

    def counted(self, opinions: Sequence[MeanSupport]) -> list[float]:
        """Return those P(yes) of the judges that decide anything."""
        return [one.p_yes for one in opinions if one.p_yes is not None and self.judges_decide]

    def verdict(
        self, value: float | None, opinions: Sequence[MeanSupport], floor: float | None = None
    ) -> Verdict:
        """Return the verdict by the alignment `value`, and by the judges where they decide.

        `floor` is the alignment of the question alone. Of an answer that adds nothing to it the
        alignment says nothing; that is no doubt, because most right answers of one word add
        nothing (docs/verdicts.md).
        """
        counted = self.counted(opinions)
        if self.judges_decide and any(one.doubts for one in opinions):
            return "doubtful"
        if is_low(value, self.tau_a):
            return "not_aligned"
        if self.judges_decide and len(counted) < len(opinions):
            return "unchecked"
        if counted and all(p_yes >= SUPPORTED for p_yes in counted):
            return "supported"
        measured = value is not None and self.tau_a is not None
        return "aligned" if measured and not self.adds_nothing(value, floor) else "unchecked"

    def adds_nothing(self, value: float | None, floor: float | None) -> bool:
        """Return whether an answer aligns no better than its question alone, where that matters."""
        return self.floored and value is not None and floor is not None and value <= floor


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
    bare: bool = False

    @property
    def opinion(self) -> MeanSupport:
        """The judges' opinion on the sentence."""
        return MeanSupport(self.entailed, self.bare)

    def verdict(self, rules: AlignmentRules) -> Verdict:
        """Return the verdict by its alignment, and by the judges where they decide."""
        return rules.verdict(self.value, [self.opinion]) if self.claims else "unchecked"

    def rests_on(self, rules: AlignmentRules) -> bool:
        """Return whether the sentence would align with its nearest chunk as the whole context."""
        alone = rules.verdict(self.cosine, [self.opinion])
        return self.claims and rules.tau_a is not None and alone in ("supported", "aligned")

    def scores(self, rules: AlignmentRules) -> tuple[Score, ...]:
        """Return C_a of the sentence, the nearest evidence sentence's cosine, and the
        judges' P(yes).
        """
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

    `value` is None for a draft that claims nothing and for chunks that have no vector; `floor` is
    what the question alone would score, None where there is no question, and `alone` what the best
    of its sentences scores without the question; `nothing` says that the draft states nothing.
    """

    text: str
    value: float | None = None
    floor: float | None = None
    alone: float | None = None
    means: tuple[float, ...] = ()
    sentences: tuple[SentenceAlignment, ...] = ()
    nothing: bool = False

    def status(self, rules: AlignmentRules) -> DraftStatus:
        """Return what is to be thought of the draft."""
        if not self.text.strip():
            return "empty"
        if says_nothing(self.text):
            return "insufficient"
        if self.nothing:
            return "nothing"
        verdict = rules.verdict(self.value, self.opinions, self.floor_for(rules))
        return "unchecked" if verdict in ("contradicted", "not_enough", "confident") else verdict

    def floor_for(self, rules: AlignmentRules) -> float | None:
        """Return what it has to exceed: nothing where a sentence of it aligns by itself."""
        owes = self.alone is None or is_low(self.alone, rules.tau_a)
        return self.floor if owes else None

    def adds_nothing(self, rules: AlignmentRules) -> bool:
        """Return whether it owes its alignment to the question alone, where that matters."""
        return rules.adds_nothing(self.value, self.floor_for(rules))

    @property
    def opinions(self) -> list[MeanSupport]:
        """What the judges say of its sentences that claim something."""
        return [one.opinion for one in self.sentences if one.claims]

    def score(self, rules: AlignmentRules) -> Score:
        """Return C_a against its threshold; a draft that claims nothing is measured
        against none.
        """
        tau_a = rules.tau_a if self.value is not None else None
        return _below("evidence_alignment", self.value, tau_a, "haarag_alignment", self.means)

    def scores(self, rules: AlignmentRules) -> tuple[Score, ...]:
        """Return C_a, and what the question alone would score."""
        floor = Score(name="question_alignment", value=self.floor, formula="haarag_question")
        return (self.score(rules), *(() if self.floor is None else (floor,)))

    def deciding_score(self, rules: AlignmentRules) -> Score:
        """Return the lowest P(yes) where the judges decide, unless only C_a objects; else C_a."""
        score = self.score(rules)
        counted = rules.counted(self.opinions)
        if not counted or (score.flagged and min(counted) >= ENTAILED):
            return score
        return _entailment(min(counted))

    def doubted(self, rules: AlignmentRules) -> tuple[str, ...]:
        """Return what lacks support: the doubtful sentences, or the whole answer when each
        one passes.
        """
        doubts = ("doubtful", "not_aligned")
        sentences = (s.span.text for s in self.sentences if s.verdict(rules) in doubts)
        return tuple(dict.fromkeys(sentences)) or (self.text,)

    def supporting(self, rules: AlignmentRules) -> frozenset[str]:
        """Return the chunks that sentences rest on, as they were indexed."""
        return frozenset(indexed_text(s.passage) for s in self.sentences if s.rests_on(rules))


class DraftComparison:
    """Which texts are compared for a draft, and what their cosines say about it.

    `left` and `right` are the texts of one request: the answer and its sentences with the question,
    the sentences alone, the question alone and the chunks, against the chunks and their sentences.
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
        self._asked = (question,) if question else ()
        self.left = (*asked, *alone, *self._asked, *chunks)
        self.right = (*chunks, *first)

    def align(
        self, cosines: Matrix, entailed: Sequence[float | None], *, taken: bool = False
    ) -> Alignment:
        """Return the draft's alignment from the `cosines` of the request and the judges' P(yes).

        `taken` says that the draft is a sentence of the context, or was found to say the same: the
        judges' doubt counts no more than that of a few words.
        """
        chunks, count = len(self.context), len(self.sentences)
        whole, *rows = (row[:chunks] for row in cosines[: 1 + count])
        by_itself = cosines[1 + count : 1 + 2 * count]
        alone = [row[chunks:] for row in by_itself]
        between = [row[:chunks] for row in cosines[-chunks:]]
        value, *means = context_cosine(whole, between)
        floor = None
        if self._asked:
            floor, *_ = context_cosine(cosines[1 + 2 * count][:chunks], between)
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
                    bare=taken or (bool(self._asked) and count == 1 and _is_bare(span.text)),
                )
            )
        stand = [context_cosine(row[:chunks], between)[0] for row in by_itself]
        best = max((one for one in stand if one is not None), default=None)
        return Alignment(self.text, value, floor, best, tuple(means), tuple(sentences))


def _entailment(value: float) -> Score:
    return _below("entailment", value, ENTAILED, "haarag_entailment")


def _below(
    name: str,
    value: float | None,
    threshold: float | None,
    formula: str,
    inputs: tuple[float, ...] = (),
) -> Score:
    """Return a score that is flagged below its threshold."""
    return Score(
        name=name,
        value=value,
        threshold=threshold,
        flagged=is_low(value, threshold),
        formula=formula,
        inputs=inputs,
    )


def _is_bare(sentence: str) -> bool:
    if has_han(sentence):
        return len(sentence) <= _BARE_HAN
    return len(sentence.split()) <= _BARE


# --- Whether anything is claimed ------------------------------------------------------------------


def says_nothing(text: str) -> bool:
    """Return whether all that `text` says is that the context does not suffice; an empty text
    does not.
    """
    sentences = [span.text for span in split_sentences(text)]
    insufficient = any(_is_insufficient(sentence) for sentence in sentences)
    return insufficient and not any(claims_something(sentence) for sentence in sentences)


def claims_something(sentence: str) -> bool:
    """Return whether a sentence says more than that the context does not suffice, or than
    a source.
    """
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

"""HAARAG's decisions: whether to widen, whether an answer holds, what to search for next.

Live runs and decisions taken again go through the same functions.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Literal

from pipelines.methods.haarag.scores import Alignment, Retrieval, SentenceAlignment
from pipelines.methods.haarag.settings import HaaragSettings, default_threshold
from pipelines.prompts import load_prompts
from pipelines.run.events import Score, Verdict
from pipelines.types import Answer, Frozen, Language

__all__ = [
    "ENTAILED",
    "PROMPTS",
    "Refinement",
    "Status",
    "Thresholds",
    "alignment_score",
    "answer_of",
    "headline",
    "held_against",
    "plan_refinement",
    "retrieval_scores",
    "says_nothing",
    "sentence_scores",
    "sentence_verdict",
    "status_of",
    "verdict_of",
    "wants_widening",
]

PROMPTS = load_prompts("haarag")

ENTAILED = 0.5
"""A sentence counts as borne out when the judges' mean P(yes) reaches this (ours)."""

Status = Literal["supported", "doubtful", "insufficient", "empty", "unchecked"]

_LANGUAGES: tuple[Language, ...] = ("en", "zh")
_SAYS_NOTHING = re.compile(
    r"(?:(?:based|going) (?:only )?(?:on|by) )?"
    r"(?:(?:the|this|these|none of the) (?:(?:provided|given|supplied|above) )?|provided |given )"
    r"(?:context|passages?|texts?|information|documents?|evidence)\b[^.]{0,40}?"
    r"\b(?:(?:does|do)(?: not|n[’']t) "
    r"(?:contain|mention|provide|say|state|include|specify|answer|tell|give|address|indicate)"
    r"|cannot answer|(?:is|are) (?:not (?:enough|sufficient)|insufficient)|says? nothing)\b"
    r"|(?:there is|i have|i find) (?:no|not enough|insufficient) (?:context|information|evidence)\b"
    r"|(?:根据|从|依据|由)?(?:所给|给出|提供|上述|以上|现有|这些)?的?"
    r"(?:资料|材料|上下文|文本|段落|信息|文中)[^。]{0,16}?(?:没有|并未|未能|未提|未说|不足|无法|不能)",
    re.IGNORECASE,
)
_GOES_ON = re.compile(r"\b(?:but|however|although|though|still)\b|但|不过|然而|可是", re.IGNORECASE)


class Thresholds(Frozen):
    """The two thresholds in force; None where the embedder was never measured."""

    tau_r: float | None = None
    tau_a: float | None = None

    @classmethod
    def of(cls, settings: HaaragSettings, embedder: str | None, language: Language) -> Thresholds:
        """Those that were set, else the calibrated ones of `embedder`."""
        tau_r, tau_a = settings.tau_r, settings.tau_a
        return cls(
            tau_r=default_threshold(embedder, language, "tau_r") if tau_r is None else tau_r,
            tau_a=default_threshold(embedder, language, "tau_a") if tau_a is None else tau_a,
        )


class Refinement(Frozen):
    """What the next search adds: parts of the answer, or the question in other words."""

    parts: tuple[str, ...] = ()
    rephrase: bool = False


def wants_widening(retrieval: Retrieval, tau_r: float | None) -> bool:
    """C_r < tau_r, or nothing found at all. Searches that all failed are not made again."""
    if retrieval.failed:
        return False
    if retrieval.confidence is None:
        return True
    return tau_r is not None and retrieval.confidence < tau_r


def status_of(alignment: Alignment, tau_a: float | None) -> Status:
    """What is to be thought of a draft."""
    if not alignment.text.strip():
        return "empty"
    if says_nothing(alignment.text):
        return "insufficient"
    verdicts = {sentence_verdict(sentence, None) for sentence in alignment.sentences}
    measured = alignment.value is not None and tau_a is not None
    if "doubtful" in verdicts or (measured and _below(alignment.value, tau_a)):
        return "doubtful"
    return "supported" if measured or "supported" in verdicts else "unchecked"


def verdict_of(status: Status) -> Verdict:
    """A draft that claims nothing cannot be checked."""
    return status if status in ("supported", "doubtful") else "unchecked"


def sentence_verdict(sentence: SentenceAlignment, tau_a: float | None) -> Verdict:
    """By the nearest chunk's cosine, and by the judges where they were asked."""
    entailed = sentence.entailed
    if _below(sentence.cosine, tau_a) or _below(entailed, ENTAILED):
        return "doubtful"
    return "unchecked" if tau_a is None and entailed is None else "supported"


def plan_refinement(
    alignment: Alignment,
    status: Status,
    tau_a: float | None,
    *,
    queries: Sequence[str],
    can_rephrase: bool,
) -> Refinement | None:
    """What to search for after a draft that does not hold; None when nothing new would be asked.

    The unsupported sentences, or the whole answer when each of them passes. An answer that claims
    nothing has no parts to look for: the question is put in other words instead.
    """
    if status in ("supported", "unchecked"):
        return None
    if status in ("insufficient", "empty"):
        return Refinement(rephrase=True) if can_rephrase else None
    doubted = [
        sentence.span.text
        for sentence in alignment.sentences
        if sentence_verdict(sentence, tau_a) == "doubtful"
    ]
    parts = tuple(
        part for part in dict.fromkeys(doubted or [alignment.text]) if part not in queries
    )
    return Refinement(parts=parts) if parts else None


def answer_of(
    original: str, final: str, status: Status, *, found: bool, failed: bool, weak: bool
) -> Answer:
    """The method's answer with its remarks. `found` says whether there was any context, `weak`
    whether a judge was measured to judge no better than chance.
    """
    flags = {
        "nothing_found": not found,
        "search_incomplete": failed,
        "insufficient_context": found and status == "insufficient",
        "unreliable": found and status == "doubtful",
        "weak_judge": weak,
        "not_checked": found and status == "unchecked",
    }
    return Answer(
        text=final,
        original=original,
        abstained=not found or status == "insufficient",
        flags=tuple(name for name, holds in flags.items() if holds),
    )


def retrieval_scores(retrieval: Retrieval, tau_r: float | None) -> tuple[Score, ...]:
    """C_r against its threshold, the spread of the similarities, the diversity of the chunks."""
    counted = retrieval.counted
    return (
        Score(
            name="retrieval_confidence",
            value=retrieval.confidence,
            threshold=tau_r,
            flagged=_below(retrieval.confidence, tau_r),
            formula="haarag_retrieval",
            inputs=counted,
        ),
        Score(
            name="similarity_spread",
            value=retrieval.spread,
            formula="haarag_spread",
            inputs=counted,
        ),
        Score(name="chunk_diversity", value=retrieval.diversity, formula="haarag_diversity"),
    )


def alignment_score(alignment: Alignment, tau_a: float | None) -> Score:
    """C_a against its threshold."""
    parts = (alignment.to_context, alignment.within)
    return Score(
        name="evidence_alignment",
        value=alignment.value,
        threshold=tau_a,
        flagged=_below(alignment.value, tau_a),
        formula="haarag_alignment",
        inputs=tuple(part for part in parts if part is not None),
    )


def sentence_scores(sentence: SentenceAlignment, tau_a: float | None) -> tuple[Score, ...]:
    """The nearest chunk's cosine, the nearest evidence sentence's, and the judges' P(yes)."""
    scores = [
        Score(
            name="sentence_alignment",
            value=sentence.cosine,
            threshold=tau_a,
            flagged=_below(sentence.cosine, tau_a),
            formula="haarag_sentence",
        ),
        Score(
            name="sentence_evidence",
            value=sentence.evidence_cosine,
            formula="haarag_evidence",
        ),
    ]
    if sentence.entailed is not None:
        scores.append(_entailment(sentence.entailed))
    return tuple(scores)


def held_against(status: Status, tau_a: float | None) -> float | None:
    """The threshold for a draft: a text that claims nothing is held against none."""
    return None if status in ("insufficient", "empty") else tau_a


def headline(alignment: Alignment, status: Status, tau_a: float | None) -> Score:
    """The number that settled a draft: C_a, or the least P(yes) where only the judges object."""
    score = alignment_score(alignment, held_against(status, tau_a))
    entailed = [s.entailed for s in alignment.sentences if s.entailed is not None]
    if status == "doubtful" and entailed and not score.flagged and min(entailed) < ENTAILED:
        return _entailment(min(entailed))
    return score


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


def says_nothing(text: str) -> bool:
    """Whether all the text says is that the context does not suffice.

    The wording that the prompt asks for, or a single statement to that effect.
    """
    bare = _bare(text)
    if any(bare.startswith(_bare(PROMPTS.fill(one, "insufficient"))) for one in _LANGUAGES):
        return True
    return bool(_SAYS_NOTHING.match(text.strip())) and not _GOES_ON.search(text)


def _bare(text: str) -> str:
    folded = unicodedata.normalize("NFKC", text).casefold()
    return "".join(character for character in folded if character.isalnum())

"""What can be set about Rowen, with where each default comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from pydantic import Field

from pipelines.base import Language, calibrated
from pipelines.methods.base import Demonstrations, Settings, Wording
from pipelines.methods.replies.verdicts import CheckedBy
from pipelines.run.findings import TargetLanguage, Variant

_THRESHOLDS: dict[Variant, float] = {"hybrid": 0.5, "cl": 0.6, "cm": 0.8}
_WEAK_HYBRID = 1.0
"""Half of the largest Z. Two small models agree by chance: of ten recorded sample questions they
took two wrong answers for consistent at 0.5, and none at this (ours)."""
_EMBEDDER = "multilingual-e5-small"
"""Whose cosines the two minima were fitted on; those of the English embedder are like them."""

_AUTO: tuple[Variant, ...] = ("hybrid", "cm")


class RowenSettings(Settings):
    """Settings of Rowen: what is compared, when to retrieve, and how to repair."""

    REPLAYABLE = ("variant", "compared", "alpha", "threshold", "soft")

    variant: Literal["auto", "hybrid", "cl", "cm"] = Field(
        "auto",
        description="What is compared; auto leaves the languages out where the model lacks one.",
    )
    k: int = Field(6, ge=1, le=20, description="Paraphrases of the question (paper: 6).")
    compared: int = Field(
        20,
        ge=1,
        le=20,
        description="Paraphrases whose answers are compared, at most, in their order (ours: all). A"
        " smaller k can so be tried on recorded runs, which a new request for fewer could not.",
    )
    min_similarity: float = Field(
        calibrated("rowen", _EMBEDDER, "paraphrase") or 0.5,
        ge=0,
        le=1,
        description="Minimum cosine of a paraphrase and the question (ours: 95 % of people's own"
        " reach it, assets/calibration/rowen.json). Where nothing embeds the language, one shared"
        " content word is asked for; 0 asks for nothing.",
    )
    min_translation: float = Field(
        calibrated("rowen", _EMBEDDER, "translation") or 0.0,
        ge=0,
        le=1,
        description="Minimum cosine of a translation and what it translates (ours: 95 % of"
        " people's own translations reach it, assets/calibration/rowen.json), where both languages"
        " are embedded; 0 asks for nothing.",
    )
    alpha: float = Field(
        1.0, ge=0, le=4, description="Weight of the verifier's agreement, alpha (paper: 1.0)."
    )
    threshold: float | None = Field(
        None,
        ge=0,
        le=5,
        description="Retrieve below this Z; none takes the variant's own "
        "(hybrid 0.5: code, 1.0 where the main model is weak: ours; languages 0.6, models 0.8:"
        " paper).",
    )
    target: Literal["auto", "en", "zh", "de", "fr", "es", "ja"] = Field(
        "auto",
        description="The other language; auto is Chinese for English questions (paper) "
        "and English for Chinese ones (ours).",
    )
    answers: Literal["auto", "reasoned", "single"] = Field(
        "auto",
        description="Reasoning and then a short answer to each paraphrase (code), "
        "or the answer alone (paper; ours: where the model is weak).",
    )
    checked_by: CheckedBy = Field(
        "auto",
        description="Who compares two answers (paper: the model itself; ours: a judge where that"
        " model is known to judge no better than chance).",
    )
    queries: Literal["auto", "rewritten", "paraphrases"] = Field(
        "auto",
        description="Search with a query written for each paraphrase (paper; code: StrategyQA), "
        "or with the paraphrases themselves (code: TruthfulQA; ours: where the model is weak);"
        " with the question in any case (ours).",
    )
    passages: int = Field(
        5, ge=1, le=20, description="Passages per search, and given to the repair (ours: 5)."
    )
    early_stop: bool = Field(
        False,
        description="Stop comparing once the decision is certain; paraphrases count in their "
        "order (ours: off).",
    )
    soft: bool = Field(
        False, description="Take the probability of True instead of 0 or 1 (ours: off)."
    )
    temperature: float = Field(
        1.0, ge=0, le=2, description="Temperature the paraphrases are written at (paper: 1.0)."
    )
    max_tokens: int = Field(
        256, ge=32, le=2048, description="Longest reasoning, in tokens (ours: 256)."
    )
    wording: Wording = "auto"
    demonstrations: Demonstrations = "auto"

    def effective_default(self, name: str) -> Mapping[str, float]:
        """Return the default in force: an unset threshold is that of the variant, which auto leaves
        to the available models.
        """
        if name != "threshold":
            return {}
        variants = _AUTO if self.variant == "auto" else (self.variant,)
        weak = {"variant.weak": _WEAK_HYBRID} if "hybrid" in variants else {}
        return {f"variant.{variant}": _THRESHOLDS[variant] for variant in variants} | weak

    def reasons(self, *, weak: bool) -> bool:
        """Return whether answers are reasoned first, by a model that is `weak` or not."""
        return self.answers == "reasoned" or (self.answers == "auto" and not weak)

    def rewrites_queries(self, *, weak: bool) -> bool:
        """Return whether a query is written for each paraphrase, by a model that is
        `weak` or not.
        """
        return self.queries == "rewritten" or (self.queries == "auto" and not weak)

    def threshold_for(self, variant: Variant, *, weak: bool) -> float:
        """Return the threshold on Z for `variant`: the one set, else its own for such a model."""
        if self.threshold is not None:
            return self.threshold
        return _WEAK_HYBRID if weak and variant == "hybrid" else _THRESHOLDS[variant]

    def target_for(self, source: Language) -> TargetLanguage:
        """Return the other language; a target that is the question's own language counts
        as auto.
        """
        if self.target in ("auto", source):
            return "en" if source == "zh" else "zh"
        return self.target

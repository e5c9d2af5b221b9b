"""What can be set about Rowen, with where each default comes from, and what follows from it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, get_args

from pydantic import Field

from pipelines.methods.base import Settings
from pipelines.methods.checkers import CheckedBy
from pipelines.types import Frozen, Language

__all__ = [
    "ROWEN_DECIDABLE",
    "RowenPlan",
    "RowenSettings",
    "Side",
    "TargetLanguage",
    "Variant",
    "sides_of",
]

Variant = Literal["hybrid", "cl", "cm"]
Side = Literal["cl", "cm"]
"""The two comparisons: across languages, and with another model."""

TargetLanguage = Literal["en", "zh", "de", "fr", "es", "ja"]
VerifierKind = Literal["model", "stand_in", "same_model", "language"]

ROWEN_DECIDABLE = ("variant", "alpha", "threshold", "soft")
"""Settings that a recorded run can be decided again for, without a call."""

_THRESHOLDS: dict[Variant, float] = {"hybrid": 0.5, "cl": 0.6, "cm": 0.8}
_AUTO: tuple[Variant, ...] = ("hybrid", "cm")
_SIDES: dict[Variant, tuple[Side, ...]] = {"hybrid": ("cl", "cm"), "cl": ("cl",), "cm": ("cm",)}


def sides_of(variant: Variant) -> tuple[Side, ...]:
    """The comparisons a variant makes."""
    return _SIDES[variant]


class RowenSettings(Settings):
    """Settings of Rowen: what is compared, when to retrieve, and how to repair."""

    variant: Literal["auto", "hybrid", "cl", "cm"] = Field(
        "auto",
        description="What is compared; auto leaves the languages out where the model lacks one.",
    )
    k: int = Field(6, ge=1, le=20, description="Paraphrases of the question (paper: 6).")
    alpha: float = Field(
        1.0, ge=0, le=4, description="Weight of the verifier's agreement, alpha (paper: 1.0)."
    )
    threshold: float | None = Field(
        None,
        ge=0,
        le=5,
        description="Retrieve below this Z; none takes the variant's own "
        "(hybrid 0.5: code; languages 0.6, models 0.8: paper).",
    )
    target: Literal["auto", "en", "zh", "de", "fr", "es", "ja"] = Field(
        "auto",
        description="The other language; auto is Chinese for English questions (paper) "
        "and English for Chinese ones (ours).",
    )
    answers: Literal["reasoned", "single"] = Field(
        "reasoned",
        description="Reasoning and then a short answer to each paraphrase (code), "
        "or the answer alone (paper).",
    )
    checked_by: CheckedBy = Field(
        "auto",
        description="Who compares two answers (paper: the model itself; ours: a judge where that"
        " model is known to judge no better than chance).",
    )
    queries: Literal["rewritten", "paraphrases"] = Field(
        "rewritten",
        description="Search with a query written for each paraphrase (paper; code: StrategyQA), "
        "or with the paraphrases themselves (code: TruthfulQA).",
    )
    passages: int = Field(
        5, ge=1, le=20, description="Passages per search, and given to the repair (ours: 5)."
    )
    early_stop: bool = Field(
        False, description="Stop comparing once the decision is certain (ours: off)."
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

    def stands_for(self, name: str) -> Mapping[str, float]:
        """An unset threshold is that of the variant, which auto leaves to the models at hand."""
        if name != "threshold":
            return {}
        variants = _AUTO if self.variant == "auto" else (self.variant,)
        return {f"variant.{variant}": _THRESHOLDS[variant] for variant in variants}

    def threshold_for(self, variant: Variant) -> float:
        """The threshold on Z for `variant`: the one set, else the variant's own."""
        return _THRESHOLDS[variant] if self.threshold is None else self.threshold

    def target_for(self, source: Language) -> TargetLanguage:
        """The other language; a target that is the question's own language counts as auto."""
        if self.target in ("auto", source):
            return "en" if source == "zh" else "zh"
        return self.target


class RowenPlan(Frozen):
    """How one run goes about its check; recorded, so that it can be decided again.

    `auto` is the variant that "auto" stands for here. `verifier` says whether the verifier is a
    model of its own, and if not why the main model's second sample stands in: none was chosen, it
    is the main model itself, or it does not speak the question's language. `by` is the role
    that compares two answers and `judge` its model's name where that is a judge; `weak` marks a
    main model that compares though its verdicts were measured to be worth no more than chance.
    """

    variant: Variant
    auto: Variant
    source: Language
    target: TargetLanguage
    verifier: VerifierKind
    weak: bool = False
    by: str = "main"
    judge: str = ""

    @classmethod
    def of(
        cls,
        settings: RowenSettings,
        source: Language,
        languages: frozenset[Language],
        verifier: VerifierKind,
        *,
        weak: bool,
    ) -> RowenPlan:
        """The plan for a main model that speaks `languages`.

        Capabilities name the two working languages only. A model that speaks both is taken to
        speak the others as well.
        """
        target = settings.target_for(source)
        wanted = {source, target} if target in get_args(Language) else set(get_args(Language))
        auto: Variant = "hybrid" if wanted <= languages else "cm"
        return cls(
            variant=settings.variant if settings.variant != "auto" else auto,
            auto=auto,
            source=source,
            target=target,
            verifier=verifier,
            weak=weak,
        )

    @property
    def languages(self) -> frozenset[str]:
        """The languages of the answers that are compared."""
        return frozenset({self.source, self.target} if "cl" in self.sides else {self.source})

    def compared_by(self, role: str, name: str) -> RowenPlan:
        """The plan when the judge `name` in `role` compares, whatever the main model is worth."""
        return self.model_copy(update={"by": role, "judge": name, "weak": False})

    @property
    def sides(self) -> tuple[Side, ...]:
        """The comparisons this run makes."""
        return sides_of(self.variant)

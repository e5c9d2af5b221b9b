"""What can be set about DRAD, with where each default comes from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.calibration import calibrated
from pipelines.methods.base import Settings
from pipelines.methods.drad.rhd import EntityPooling, EntropyPooling, Thresholds

__all__ = ["DRAD_DECIDABLE", "DradSettings"]

DRAD_DECIDABLE = ("theta_1", "theta_2", "pooling", "entropy_pooling", "skip_repeats")
"""The settings that a recorded run is decided again for, without a call."""


class DradSettings(Settings):
    """Settings of DRAD: thresholds and poolings of the detector, then the correction's."""

    theta_1: float = Field(
        0.60, ge=0, le=1, description="An entity is doubtful below this P(E) (code: 1 - 0.40)."
    )
    theta_2: float | None = Field(
        default_factory=lambda: calibrated("drad", "theta_2"),
        ge=0,
        le=12,
        description="An entity is doubtful above this H(E), in nats (calibrated; none given).",
    )
    pooling: EntityPooling = Field(
        "mean", description="How token probabilities make P(E) (paper's best: mean)."
    )
    entropy_pooling: EntropyPooling = Field(
        "max", description="How token entropies make H(E) (paper's best: max)."
    )
    skip_repeats: bool = Field(
        False, description="Leave entities alone that only repeat the question (ours; off)."
    )
    m: int = Field(
        16, ge=1, le=64, description="Tokens around the entity that make the query (ours: 16)."
    )
    passages: int = Field(3, ge=1, le=20, description="Passages per correction (paper: 3).")
    early_stop: bool = Field(
        False, description="Stop writing at the first doubtful entity (ours: off, to compare)."
    )
    confidence: Literal["auto", "logprobs", "samples", "proxy"] = Field(
        "auto", description="Where P(E) comes from; auto prefers the model's own probabilities."
    )
    samples: int = Field(
        5, ge=2, le=20, description="Samples compared when the model gives no probabilities (ours)."
    )
    max_tokens: int = Field(
        128, ge=8, le=1024, description="Longest answer, in tokens (ours: two short sentences)."
    )

    def thresholds(self) -> Thresholds:
        """The part of the settings that RHD uses."""
        return Thresholds(
            theta_1=self.theta_1,
            theta_2=self.theta_2,
            pooling=self.pooling,
            entropy_pooling=self.entropy_pooling,
        )

"""What can be set about DRAD, with where each default comes from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import Field

from pipelines.base import Language, calibration
from pipelines.methods.base import AnswerTokens, Settings, Wording
from pipelines.prompts import load_prompts
from pipelines.run.events import ModelSpec

EntityPooling = Literal["mean", "geometric", "min", "max", "first", "product", "sum"]
"""f, which makes P(E) of the probabilities of an entity's tokens."""

EntropyPooling = Literal["max", "mean", "first"]
"""g, which makes H(E) of the entropies of an entity's tokens."""

RankedBy = Literal["probability", "entropy", "either"]
"""What ranks entities, sentences and texts; "either" is the larger of both ranks."""


class DradSettings(Settings):
    """Settings of DRAD: thresholds and poolings of the detector, then the correction's."""

    REPLAYABLE = (
        "theta_1",
        "theta_2",
        "use_entropy",
        "pooling",
        "entropy_pooling",
        "ranked_by",
        "skip_repeats",
        "answer_part",
    )

    theta_1: float = Field(
        0.60, ge=0, le=1, description="An entity is doubtful below this P(E) (code: 1 - 0.40)."
    )
    theta_2: float | None = Field(
        None,
        ge=0,
        le=12,
        description="An entity is doubtful above this H(E), in nats (none: calibrated for the model"
        " and its top-k, where there is such a value; the paper gives none).",
    )
    use_entropy: bool = Field(
        True, description="Compare H(E) with theta_2; off, P(E) alone decides (ours: on)."
    )
    pooling: EntityPooling = Field(
        "mean", description="How token probabilities make P(E) (paper's best: mean)."
    )
    entropy_pooling: EntropyPooling = Field(
        "max", description="How token entropies make H(E) (paper's best: max)."
    )
    ranked_by: RankedBy = Field(
        "probability",
        description="What ranks entities, sentences and texts in evaluations: P(E), H(E), or the"
        " larger of both as ranks among the items (the paper reports each alone). It decides no"
        " verdict.",
    )
    skip_repeats: bool = Field(
        False, description="Leave entities alone that only repeat the question (ours: off)."
    )
    answer_part: bool = Field(
        True,
        description="Where an answer names nothing that the question does not name, read what it"
        " says beyond the question as one entity (paper: names only).",
    )
    m: int = Field(
        16, ge=1, le=64, description="Tokens around the entity that make the query (ours: 16)."
    )
    passages: int = Field(3, ge=1, le=20, description="Passages per correction (paper: 3).")
    early_stop: bool = Field(
        False, description="Stop writing at the first doubtful entity (ours: off, to compare)."
    )
    confidence: Literal["auto", "logprobs", "samples", "proxy"] = Field(
        "auto",
        description="What P(E) is computed from; auto prefers the model's own probabilities.",
    )
    samples: int = Field(
        5, ge=2, le=20, description="Samples compared when the model gives no probabilities (ours)."
    )
    max_tokens: AnswerTokens = 128
    wording: Wording = "auto"

    def effective_default(self, name: str) -> Mapping[str, float]:
        """Return the default in force: an unset theta_2 is the one calibrated for the model: here
        that of the default model.
        """
        if name != "theta_2" or not self.use_entropy:
            return {}
        model = ModelSpec().name
        known = calibration("drad").get(model, {})
        values = {k: calibrated_theta_2(model, k, "en") for k in known}
        return {f"theta_2.{k}": value for k, value in values.items() if value is not None}


def calibrated_theta_2(model: str, entropies: str, language: Language) -> float | None:
    """Return the calibrated theta_2 in nats for the entropies of a model's tokens in a language.

    `entropies` is "full" for those over the whole vocabulary, or k for those over the k most
    probable tokens. None for what was not measured: such entropies are not comparable.
    """
    entry = _calibrated(model, entropies, language)
    return None if entry is None else float(entry["value"])


def calibrated_with_these_prompts(model: str, entropies: str, language: Language) -> bool:
    """Return whether theta_2 was calibrated on answers to the prompts that are in force."""
    entry = _calibrated(model, entropies, language)
    present = f"direct {load_prompts('direct').hash}"
    return entry is not None and entry.get("prompt", present) == present


def _calibrated(model: str, entropies: str, language: Language) -> dict[str, Any] | None:
    return calibration("drad").get(model, {}).get(entropies, {}).get("theta_2", {}).get(language)

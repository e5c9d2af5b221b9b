"""What can be set about the SLM check, with where each default comes from."""

from __future__ import annotations

from typing import Literal, get_args

from pydantic import Field

from pipelines.base import Frozen
from pipelines.methods.base import Settings
from pipelines.run.findings import JudgeScale

Mean = Literal["harmonic", "arithmetic", "geometric", "min", "max"]
Lift = Literal["phi", "epsilon"]

MEANS: tuple[Mean, ...] = get_args(Mean)
"""Every way sentence scores become a response score, the paper's first."""


class Scaling(Frozen):
    """How scores become comparable and positive: `lift` maps z, `epsilon` bounds it from below."""

    normalise: bool = True
    lift: Lift = "phi"
    epsilon: float = 0.01

    @property
    def key(self) -> Literal["phi", "epsilon", "raw"]:
        """What thresholds on such scores are filed under; "raw" without normalisation."""
        return self.lift if self.normalise else "raw"


class SlmSettings(Settings):
    """Settings of the SLM check: what is judged, with what in view, and how scores are combined."""

    REPLAYABLE = (
        "mean",
        "positive",
        "epsilon",
        "normalise",
        "tuned_for",
        "threshold",
        "history",
    )

    subject: Literal["direct", "given"] = Field(
        "direct", description="What is judged: the Direct answer, or one that was given (ours)."
    )
    answer: str = Field("", max_length=8000, description="The answer to judge, where one is given.")
    context: Literal["retrieved", "given", "none"] = Field(
        "retrieved", description="What the judges read beside the question (paper: a context)."
    )
    passage: str = Field(
        "", max_length=8000, description="The text the judges read, where one is given."
    )
    passages: int = Field(3, ge=1, le=20, description="Passages searched for (ours: 3).")
    mean: Mean = Field(
        "harmonic",
        description="How sentence scores make the response's (paper: harmonic, best against partly"
        " right answers).",
    )
    positive: Lift = Field(
        "phi",
        description="How scores become positive; the paper does not say (ours: the normal"
        " distribution function).",
    )
    epsilon: float = Field(
        0.01, gt=0, le=1, description="Floor of a sentence's score, where a floor is used (ours)."
    )
    normalise: bool = Field(
        True, description="Compare judges by z, their distance from their own mean (paper)."
    )
    tuned_for: Literal["f1", "precision"] = Field(
        "f1",
        description="What the calibrated threshold is best at: F1, or precision with a recall of"
        " at least 0.5 (paper: both).",
    )
    threshold: float | None = Field(
        None,
        ge=-5,
        le=5,
        description="Supported above this score (none: calibrated for the mean and the scale, or"
        " what P(yes) = 0.5 scores where a judge was never measured; ours).",
    )
    whole_response: bool = Field(
        True, description="Ask every judge about the whole response too (paper's baseline P(yes))."
    )
    history: dict[str, JudgeScale] = Field(
        default_factory=dict,
        description="Mean and deviation of each judge's earlier scores, by its name (paper); a"
        " judge without enough of them uses what ships with the project.",
    )
    max_tokens: int = Field(
        128, ge=8, le=1024, description="Longest answer, in tokens (as Direct's, to share it)."
    )

    def scaling(self) -> Scaling:
        """Return how scores become comparable and positive."""
        return Scaling(normalise=self.normalise, lift=self.positive, epsilon=self.epsilon)

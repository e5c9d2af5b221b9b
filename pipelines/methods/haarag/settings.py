"""What can be set about HAARAG, and where the thresholds of each embedder come from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.base import Language, calibrated
from pipelines.methods.base import AnswerTokens, Settings, Wording


class HaaragSettings(Settings):
    """Settings of HAARAG: thresholds, then retrieval, filter, writing and the optional checks.

    The paper gives no thresholds and no k: all defaults are ours.
    """

    REPLAYABLE = (
        "tau_r",
        "tau_a",
        "min_similarity",
        "duplicate_similarity",
        "entailment_decides",
    )

    tau_r: float | None = Field(
        None,
        ge=0,
        le=1,
        description="Retrieval is widened below this C_r (none: calibrated for the embedder).",
    )
    tau_a: float | None = Field(
        None,
        ge=0,
        le=1,
        description="The answer is refined below this C_a (none: calibrated for the embedder).",
    )
    k: int = Field(4, ge=1, le=20, description="Chunks in the context, and in C_r (ours: 4).")
    k_limit: int = Field(
        16, ge=1, le=64, description="Maximum of chunks a search asks for when widened (ours: 16)."
    )
    max_iterations: int = Field(
        3, ge=1, le=6, description="Maximum of answers written, the first included (ours: 3)."
    )
    key_terms: bool = Field(
        False, description="Search for the question's key terms as well from the start (ours: off)."
    )
    rephrase: Literal["off", "widen", "always"] = Field(
        "widen", description="When the model rewords the question to search for it (ours: widen)."
    )
    forms: int = Field(2, ge=1, le=5, description="Rewordings asked for (ours: 2).")
    min_similarity: float = Field(
        0.5,
        ge=0,
        le=1,
        description="Chunks below this share of the best chunk's similarity are dropped (ours: a"
        " share, because cosines of different embedders are not comparable).",
    )
    duplicate_similarity: float = Field(
        0.95,
        ge=0.5,
        le=1,
        description="A chunk at least this similar to a better one is dropped (ours: 0.95).",
    )
    entailment: Literal["off", "judge", "judges", "main"] = Field(
        "judge",
        description="Who gives an opinion on each sentence, beside its alignment (ours: a judge"
        " made for it, where one was chosen; all judges; or the main model).",
    )
    entailment_decides: bool = Field(
        True,
        description="Supported needs the judges: a sentence that they do not find so makes the"
        " answer doubtful, whatever its alignment (ours: on; paper: off, where an answer is only"
        " aligned or not aligned).",
    )
    max_tokens: AnswerTokens = 128
    wording: Wording = "auto"
    subject: Literal["written", "given"] = Field(
        "written",
        description="The first draft: written from what was found (paper), or one that was given.",
    )
    answer: str = Field("", max_length=8000, description="The draft to align, where one is given.")

    def threshold(
        self, name: Literal["tau_r", "tau_a"], embedder: str | None, language: Language
    ) -> float | None:
        """Return the threshold in force: the one that was set, else the calibrated one of
        `embedder`.

        None for an embedder that was not measured in `language`.
        """
        chosen: float | None = getattr(self, name)
        if chosen is not None:
            return chosen
        return calibrated("haarag", embedder or "", language, name)

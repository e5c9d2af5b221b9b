"""What can be set about EVER, with where each default comes from."""

from __future__ import annotations

from typing import Literal

from pydantic import Field

from pipelines.methods.base import Demonstrations, Settings, Wording
from pipelines.methods.replies.verdicts import CheckedBy

Variant = Literal["nrg_er", "nrg_sq", "rag_er"]
Task = Literal["short", "long", "chain"]


class EverSettings(Settings):
    """Settings of EVER: what is written, how it is checked, how often it is rectified."""

    REPLAYABLE = ("max_rounds",)

    variant: Variant = Field(
        "nrg_er",
        description="How text is written and what it is checked against (paper: three variants).",
    )
    task: Task = Field(
        "long",
        description="What is written (ours: long, in which sentences build on each other).",
    )
    max_rounds: int = Field(
        2,
        ge=0,
        le=4,
        description="Rectifications of one sentence (paper: 1 mostly suffices, 1 to 4; ours: 2)."
        " With 0 it is verified and nothing else.",
    )
    passages: int = Field(
        5,
        ge=1,
        le=20,
        description="Passages of each search (paper: 5; on the web 10, from two searches).",
    )
    max_sentences: int = Field(
        3, ge=1, le=12, description="Maximum sentences of an answer (ours; code: 100 to 200 words)."
    )
    max_concepts: int = Field(
        6,
        ge=1,
        le=16,
        description="Maximum concepts checked in a sentence (ours, a bound on cost).",
    )
    max_answer_concepts: int = Field(
        96,
        ge=1,
        le=1000,
        description="Maximum concepts checked in an answer, divided among its sentences (ours, a"
        " bound on cost).",
    )
    candidates: int = Field(
        2,
        ge=0,
        le=5,
        description="Other short answers verified before abstaining (paper: tried; ours: 2).",
    )
    checked_by: CheckedBy = Field(
        "auto",
        description="Who answers the validation questions from evidence (paper: the model itself;"
        " ours: a judge where that model is known to judge no better than chance).",
    )
    samples: int = Field(
        1,
        ge=1,
        le=9,
        description="Verdicts of the main model that a majority is taken of (code: 3, at 0.3;"
        " ours: 1).",
    )
    speculative: bool = Field(
        False,
        description="Write the next sentence while this one is checked (ours, beyond the paper).",
    )
    wording: Wording = "auto"
    demonstrations: Demonstrations = "auto"
    max_tokens: int = Field(
        192, ge=16, le=2048, description="Maximum tokens of an answer (ours: three sentences)."
    )

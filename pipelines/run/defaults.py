"""Which models the roles are given to unless others are chosen."""

from __future__ import annotations

from pipelines.loading import minilm_folder
from pipelines.models.providers import PROVIDERS
from pipelines.run.spec import JUDGES, ModelSpec


def default_models() -> dict[str, ModelSpec]:
    """Role to model: all of them are bundled and run on this machine.

    The bundled judge and word overlap judge: beside these two, similarity makes the SLM check
    worse on data (`docs/measurements.md`). Where the embedded encoder is not installed, word
    overlap judges alone.
    """
    panel = ("trained", "overlap") if minilm_folder() else ("overlap",)
    judges = [spec for spec in PROVIDERS["judge"].bundled if spec.model in panel]
    return {"main": ModelSpec(), **dict(zip(JUDGES, judges, strict=False))}

"""Which models the roles are given to unless somebody chooses others."""

from __future__ import annotations

from pipelines.models.judges.trained import encoder_installed
from pipelines.run.spec import BUILT_IN, JUDGES, ModelSpec

__all__ = ["default_models"]

_WITHOUT_ENCODER = ("overlap",)


def default_models() -> dict[str, ModelSpec]:
    """Role to model: all of it comes along and runs on this machine.

    Where the embedded encoder is not installed, the judges that need it are left out.
    """
    there = encoder_installed()
    judges = [spec for spec in BUILT_IN if spec.kind == "judge"]
    usable = [spec for spec in judges if there or spec.model in _WITHOUT_ENCODER]
    return {"main": BUILT_IN[0], **dict(zip(JUDGES, usable, strict=False))}

"""Which models the roles are given to unless others are chosen."""

from __future__ import annotations

from pipelines.models.judges.trained import encoder_installed
from pipelines.models.providers import PROVIDERS
from pipelines.run.spec import JUDGES, ModelSpec

_WITHOUT_ENCODER = ("overlap",)


def default_models() -> dict[str, ModelSpec]:
    """Role to model: all of them are bundled and run on this machine.

    Where the embedded encoder is not installed, the judges that need it are left out.
    """
    there = encoder_installed()
    usable = [
        spec for spec in PROVIDERS["judge"].bundled if there or spec.model in _WITHOUT_ENCODER
    ]
    return {"main": ModelSpec(), **dict(zip(JUDGES, usable, strict=False))}

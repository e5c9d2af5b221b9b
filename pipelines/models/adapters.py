"""The adapters that ship: LoRA files that teach a model single steps of the methods."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

from pydantic import TypeAdapter

from pipelines.base import ASSETS, Frozen
from pipelines.models.base import AdaptedStep

_FOLDER = ASSETS / "adapter"


class Adapter(Frozen):
    """A file of llama.cpp beside a model's weights, and the steps that it is made for.

    One that is `always` on serves every step: llama.cpp computes calls together that have
    the same adapters, so that switching one makes the others wait.
    """

    file: str
    steps: tuple[AdaptedStep, ...]
    always: bool = False

    @property
    def path(self) -> Path:
        """Where its file is."""
        return _FOLDER / self.file


@cache
def _listed() -> dict[str, Adapter]:
    source = (_FOLDER / "adapters.toml").read_text(encoding="utf-8")
    return TypeAdapter(dict[str, Adapter]).validate_python(tomllib.loads(source))


def adapter_of(model: str) -> Adapter | None:
    """Return the adapter of the model that people see by this name; None where none ships."""
    return _listed().get(model)


def adapted_steps(model: str) -> tuple[AdaptedStep, ...]:
    """Return the steps for which that model is asked with its adapter."""
    found = adapter_of(model)
    return () if found is None else found.steps

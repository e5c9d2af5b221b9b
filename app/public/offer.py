"""Which models answer visitors: what comes along, until what the hub has is there."""

from __future__ import annotations

import os
from collections.abc import Mapping

from pipelines.engine import Engine
from pipelines.errors import VeriscopeError
from pipelines.run.defaults import default_models
from pipelines.run.spec import ModelSpec

__all__ = ["HUB_ON_CPU", "HUB_ON_GPU", "Offer", "hub_models"]

_BOTH = ("en", "zh")

HUB_ON_CPU: dict[str, ModelSpec] = {
    "main": ModelSpec(
        kind="local",
        name="Qwen2.5-0.5B-Instruct",
        model="Qwen/Qwen2.5-0.5B-Instruct-GGUF:qwen2.5-0.5b-instruct-q4_k_m.gguf",
        languages=_BOTH,
    ),
    "verifier": ModelSpec(
        kind="local",
        name="LFM2-350M",
        model="LiquidAI/LFM2-350M-GGUF:LFM2-350M-Q4_K_M.gguf",
        languages=_BOTH,
    ),
}
"""Small models that speak both languages, of two families, run by llama.cpp."""

HUB_ON_GPU: dict[str, ModelSpec] = {
    "main": ModelSpec(
        kind="local",
        name="Qwen3-4B-Instruct-2507",
        model="Qwen/Qwen3-4B-Instruct-2507",
        languages=_BOTH,
    ),
    "verifier": ModelSpec(
        kind="local", name="LFM2-1.2B", model="LiquidAI/LFM2-1.2B", languages=_BOTH
    ),
}
"""The same for a GPU, run by transformers."""


def hub_models(environment: Mapping[str, str]) -> dict[str, ModelSpec]:
    """What to fetch from the hub: on a Space the set for its hardware, elsewhere nothing.

    VERISCOPE_HUB "on" or "off" decides otherwise.
    """
    wanted = environment.get("VERISCOPE_HUB") or ("on" if environment.get("SPACE_ID") else "off")
    if wanted != "on":
        return {}
    import torch

    return HUB_ON_GPU if torch.cuda.is_available() else HUB_ON_CPU


class Offer:
    """Roles and their models. `problem` says why the hub's models are not among them, if so."""

    def __init__(self, wanted: Mapping[str, ModelSpec] | None = None) -> None:
        self._wanted = hub_models(os.environ) if wanted is None else dict(wanted)
        self._fetched: dict[str, ModelSpec] = {}
        self.problem: VeriscopeError | None = None

    @property
    def models(self) -> dict[str, ModelSpec]:
        """Role to model, as of now."""
        return {**default_models(), **self._fetched}

    async def fetch(self, engine: Engine) -> None:
        """On the engine's loop: fetch and load what is wanted.

        Where that fails, what comes along stays.
        """
        try:
            for spec in dict.fromkeys(self._wanted.values()):
                await engine.service.model(spec)
        except VeriscopeError as error:
            self.problem = error
        else:
            self._fetched = dict(self._wanted)

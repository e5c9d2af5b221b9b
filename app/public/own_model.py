"""A model that a visitor brings, with a key that stays theirs."""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple
from urllib.parse import urlsplit

from pipelines.errors import InvalidInputError
from pipelines.models.base import Model
from pipelines.run.pool import build_of
from pipelines.run.spec import ModelKind, ModelSpec

__all__ = ["OWN_KINDS", "OwnModel", "build_for_visitors"]

OWN_KINDS: tuple[ModelKind, ...] = ("openai", "dashscope")
"""What visitors can bring: a provider's model, by its protocol."""


class OwnModel(NamedTuple):
    """What a visitor typed. The key is in no spec: it travels beside the run and is never kept."""

    kind: str = OWN_KINDS[0]
    model: str = ""
    key: str = ""
    server: str = ""

    def spec(self, *, custom_servers: bool) -> ModelSpec | None:
        """The model to use, None where none was brought; raises InvalidInputError."""
        model, key, server = self.model.strip(), self.key.strip(), self.server.strip()
        if not (model or key or server):
            return None
        if self.kind not in OWN_KINDS or not model:
            raise InvalidInputError(
                "Your own model has no name.",
                remedy="Type what its provider calls it, or clear all fields of your own model.",
            )
        if server and not custom_servers:
            raise InvalidInputError(
                "Servers of your own cannot be used here.",
                remedy="Leave the address empty, or run your own copy.",
            )
        if server and self.kind != "openai":
            # Only that kind's connections are kept from addresses of this machine's own network.
            raise InvalidInputError(
                "A server can be named for OpenAI-compatible models only.",
                remedy="Choose that kind, or leave the address empty.",
            )
        if server and urlsplit(server).scheme not in ("http", "https"):
            raise InvalidInputError(
                f"{server!r} is no address of a server.",
                remedy="Type one that begins with https://.",
            )
        if not key and not server:
            raise InvalidInputError(
                "Your own model needs a key.", remedy="Type the key that its provider gave you."
            )
        kind: ModelKind = "dashscope" if self.kind == "dashscope" else "openai"
        return ModelSpec(kind=kind, name=model, model=model, base_url=server or None)


def build_for_visitors(
    spec: ModelSpec, key: str | None, progress: Callable[[str, float], None]
) -> Model:
    """As models are built everywhere, but what a visitor names is sought outside only."""
    if spec.kind == "openai":
        return build_of(spec, key, progress, public_only=True)
    return build_of(spec, key, progress)

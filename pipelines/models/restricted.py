"""Models that anybody may name: nothing of this machine's own network or files is reached by them.

Where strangers reach the workbench, each could otherwise make this machine send requests to any
address in its network, or read any file as a model.
"""

from __future__ import annotations

from ipaddress import ip_address
from urllib.parse import urlsplit

from pipelines.errors import VeriscopeError, failure
from pipelines.models.base import Model, Progress, no_progress
from pipelines.models.catalogue import catalogue
from pipelines.models.providers import BUILT_IN, ModelSpec, build_model, pinned, provider_of
from pipelines.paths import SAMPLE_DATA
from pipelines.remote.guard import is_public

SWITCH = "VERISCOPE_ALLOW_ANY_ADDRESS"
"""The environment variable with which an operator allows any address and any file."""


def why_refused(spec: ModelSpec) -> VeriscopeError | None:
    """Return why a stranger may not use the model of `spec`, None where they may.

    Where the name of an address leads is checked when the model is asked: only then is it known.
    Raises InvalidInputError for an unknown kind.
    """
    provider = provider_of(spec.kind)
    if provider.hosted:
        if spec.base_url is not None and not provider.any_server:
            return failure("restricted.address", switch=SWITCH)
        if spec.base_url is not None and _is_inside(spec.base_url):
            return failure("restricted.inside", switch=SWITCH)
        return None
    if spec.kind == "scripted":
        path = (SAMPLE_DATA / spec.model.partition("#")[0]).resolve()
        known = path.is_relative_to(SAMPLE_DATA.resolve())
    elif provider.only_bundled:
        known = True
    else:
        offered = (*(one.model for one in BUILT_IN), *(entry.model for entry in catalogue()))
        known = spec.model in offered
    return None if known else failure("restricted.files", switch=SWITCH)


def build_for_strangers(
    spec: ModelSpec, key: str | None = None, progress: Progress = no_progress
) -> Model:
    """Build as `build_model` does, for a model that a stranger named; raises
    InvalidInputError too.
    """
    refusal = why_refused(spec)
    if refusal is not None:
        raise refusal
    return build_model(spec, key, progress, public_only=True)


def pin_for_strangers(spec: ModelSpec) -> ModelSpec:
    """Pin as `pinned` does, for a model that a stranger named; raises InvalidInputError too."""
    refusal = why_refused(spec)
    if refusal is not None:
        raise refusal
    return pinned(spec)


def _is_inside(url: str) -> bool:
    """Return whether `url` says by itself that it is not on the public internet."""
    try:
        host = urlsplit(url).hostname or ""
    except ValueError:
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return True
    try:
        ip_address(host)
    except ValueError:
        return False
    return not is_public(host)

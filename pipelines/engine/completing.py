"""A run with the standard methods that another run left out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pipelines.methods.registry import METHODS, standard_methods, used_models
from pipelines.models.base import Capabilities
from pipelines.models.providers import known_capabilities
from pipelines.run.defaults import default_models
from pipelines.run.spec import MethodSpec, ModelSpec, RunSpec
from pipelines.run.view import RunView


def left_out(view: RunView) -> list[str]:
    """Return the standard methods that were not asked, and can run on the models of the run.

    Empty where the replies, or the answer to check, were written for the methods that were asked,
    and where the run has a method that is not known here.
    """
    if view.header is None:
        return []
    spec = view.header.spec
    asked = {one.name for one in spec.methods}
    scripted = any(model.kind == "scripted" for model in spec.models.values())
    if (
        scripted
        or spec.answer is not None
        or asked - METHODS.keys()
        or any("given" in one.settings.values() for one in spec.methods)
    ):
        return []
    can = {role: known_capabilities(m) or Capabilities() for role, m in default_models().items()}
    for method in view.methods.values():
        can |= method.models
    return [name for name in standard_methods() if name not in asked and _can_run(name, can)]


def completed(
    view: RunView,
    models: Mapping[str, ModelSpec],
    settings: Mapping[str, dict[str, Any]] | None = None,
) -> RunSpec:
    """Return the run of `view` with the methods that it left out; it has to have a header.

    `models` serve roles that the run had no use for; `settings` are those of the added methods.
    """
    assert view.header is not None
    spec, chosen = view.header.spec, settings or {}
    added = [MethodSpec(name=name, settings=chosen.get(name, {})) for name in left_out(view)]
    methods = sorted((*spec.methods, *added), key=lambda one: list(METHODS).index(one.name))
    used = used_models((one.name for one in methods), {**models, **spec.models})
    return spec.model_copy(update={"methods": tuple(methods), "models": used})


def _can_run(name: str, can: Mapping[str, Capabilities]) -> bool:
    method = METHODS[name]
    return not any(need.unmet(can, has_evidence=True) for need in method.needs(method.settings()))

"""From a configuration to a model. Backends are imported when they are first wanted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from pipelines.errors import InvalidInputError
from pipelines.models.base import Model

__all__ = ["EMBEDDED_WEIGHTS", "MODEL_KINDS", "Progress", "build_model"]

EMBEDDED_WEIGHTS = "embedded"
"""The `local` model of this name is the embedded one, run by transformers: it can score texts."""

_SAMPLES = Path(__file__).parents[2] / "sample_data"

Progress = Callable[[str, float], None]
"""Is told the stage of loading and how far it is, in [0, 1]."""


def build_model(kind: str, *, progress: Progress, **options: Any) -> Model:
    """Load the model of `kind`; blocks. Options are the fields of a model's configuration.

    Raises InvalidInputError for an unknown kind, and whatever loading raises.
    """
    if kind not in MODEL_KINDS:
        known = ", ".join(MODEL_KINDS)
        raise InvalidInputError(
            f"There is no kind of model {kind!r}.", remedy=f"Choose one of: {known}."
        )
    return MODEL_KINDS[kind](progress=progress, **options)


def _embedded(*, progress: Progress, name: str, **_: Any) -> Model:
    from pipelines.models.embedded import EmbeddedModel, is_available

    if is_available():
        return EmbeddedModel(progress=progress)
    # No wheel of llama.cpp for this platform: transformers reads the same file, more slowly.
    return _embedded_weights(name, progress)


def _embedded_weights(name: str, progress: Progress) -> Model:
    from pipelines.models.embedded import gguf_path
    from pipelines.models.local import LocalModel

    weights = gguf_path()
    model = LocalModel(
        weights.parent,
        name=name,
        gguf_file=weights.name,
        languages=("en",),
        judges=False,
        progress=progress,
    )
    model.load()
    return model


def _local(*, progress: Progress, name: str, model: str, **overrides: Any) -> Model:
    languages = overrides.get("languages")
    if model == EMBEDDED_WEIGHTS:
        return _embedded_weights(name, progress)
    if model.lower().endswith(".gguf"):
        from pipelines.models.embedded import GgufModel
        from pipelines.models.local.sources import find_source

        source = find_source(model)
        path = source.fetch(progress) / (source.gguf_file or "")
        return GgufModel(path, name=name, languages=languages, progress=progress)
    from pipelines.models.local import LocalModel

    loaded = LocalModel(model, name=name, languages=languages, progress=progress)
    loaded.load()
    return loaded


def _openai(
    *,
    progress: Progress,
    name: str,
    model: str,
    base_url: str | None,
    key: str | None,
    **overrides: Any,
) -> Model:
    from pipelines.models.openai_model import OpenAIModel

    return OpenAIModel(name=name, model=model, base_url=base_url, api_key=key, **overrides)


def _dashscope(
    *,
    progress: Progress,
    name: str,
    model: str,
    base_url: str | None,
    key: str | None,
    **overrides: Any,
) -> Model:
    from pipelines.models.dashscope_model import DashScopeModel

    return DashScopeModel(name=name, model=model, base_url=base_url, api_key=key, **overrides)


def _scripted(*, progress: Progress, name: str, model: str, **unused: Any) -> Model:
    from pipelines.models.scripted import ScriptedModel

    # "#role" picks one of several models of a file; a relative path is one of the samples.
    path, _, role = model.partition("#")
    return ScriptedModel.from_file(_SAMPLES / path, role=role, name=name)


def _judge(*, progress: Progress, name: str, model: str, **unused: Any) -> Model:
    if model == "trained":
        from pipelines.models.judges.trained import TrainedJudge

        return TrainedJudge(name=name)
    from pipelines.models.judges.simple import OverlapJudge, SimilarityJudge

    if model == "overlap":
        return OverlapJudge(name)
    from pipelines.retrieval.embedders import EmbeddedEmbedder, default_embedder

    # The one that searches, where it is installed: it need not be in memory twice.
    return SimilarityJudge(default_embedder() or EmbeddedEmbedder(), name)


MODEL_KINDS: dict[str, Callable[..., Model]] = {
    "embedded": _embedded,
    "local": _local,
    "openai": _openai,
    "dashscope": _dashscope,
    "judge": _judge,
    "scripted": _scripted,
}
"""Every kind of model, with what builds it."""

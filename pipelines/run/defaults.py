"""Which models the roles are given to unless others are chosen."""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.loading import minilm_folder
from pipelines.models.catalogue import LARGE_MODEL, SMALL_MODEL, catalogue_entry, fetched_file
from pipelines.models.providers import PROVIDERS, ModelSpec, model_spec
from pipelines.run.spec import JUDGES
from pipelines.types import Language


def default_models(language: Language | None = None) -> dict[str, ModelSpec]:
    """Role to model: all of them run on this machine, and need neither key nor hub.

    The small model of both languages writes, so that Rowen asks one model in both, as its paper
    does; the larger one where that alone was fetched, the bundled one where neither was. With the
    `language` of a run, the verifier is there too where another model speaks it, see
    `default_verifier`.

    The bundled judge and word overlap judge: beside these two, similarity makes the SLM check
    worse on data (`docs/measurements.md`). Where the embedded encoder is not installed, word
    overlap judges alone.
    """
    panel = ("trained", "overlap") if minilm_folder() else ("overlap",)
    judges = [spec for spec in PROVIDERS["judge"].bundled if spec.model in panel]
    models = {
        "main": _fetched(SMALL_MODEL) or _fetched(LARGE_MODEL) or ModelSpec(),
        **dict(zip(JUDGES, judges, strict=False)),
    }
    return models if language is None else with_verifier(models, language)


def is_default(main: ModelSpec) -> bool:
    """Whether a main model is one that nobody needs to choose."""
    usual = (default_models()["main"], ModelSpec())
    return main.without_capabilities() in [one.without_capabilities() for one in usual]


def default_verifier(main: ModelSpec, language: Language) -> ModelSpec | None:
    """The second model that answers in `language` where `main` is a default; None for none.

    It is the larger model where that was fetched; else, in English, the bundled one.
    """
    if not is_default(main):
        return None
    known = (_fetched(LARGE_MODEL), ModelSpec() if language == "en" else None)
    return next((one for one in known if one is not None and one != main), None)


def with_verifier(models: Mapping[str, ModelSpec], language: Language) -> dict[str, ModelSpec]:
    """`models`, with the default's verifier of `language` where a default writes and none is named.

    A model that somebody chose gets no verifier that nobody chose.
    """
    found = None if "verifier" in models else default_verifier(models["main"], language)
    return dict(models) if found is None else {**models, "verifier": found}


def _fetched(name: str) -> ModelSpec | None:
    """The model of `assets/pieces.toml` of that name, None where its file is not here."""
    return model_spec(catalogue_entry(name)) if fetched_file(name) is not None else None

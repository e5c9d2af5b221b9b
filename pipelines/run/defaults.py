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

    The bundled model writes English, in which it and what helps it were measured
    (docs/default_model.md). With the `language` of a run, roles are those of `in_language`.

    The bundled judge and word overlap judge: beside these two, similarity makes the SLM check
    worse on data (`docs/measurements.md`). Where the embedded encoder is not installed, word
    overlap judges alone.
    """
    panel = ("trained", "overlap") if minilm_folder() else ("overlap",)
    judges = [spec for spec in PROVIDERS["judge"].bundled if spec.model in panel]
    models = {"main": ModelSpec(), **dict(zip(JUDGES, judges, strict=False))}
    return models if language is None else in_language(models, language)


def is_default(main: ModelSpec) -> bool:
    """Whether a main model is one that comes with the application."""
    usual = (ModelSpec(), _fetched(SMALL_MODEL))
    return main.without_capabilities() in [one.without_capabilities() for one in usual if one]


def in_language(models: Mapping[str, ModelSpec], language: Language) -> dict[str, ModelSpec]:
    """`models` as a run in `language` has them, where those of the application write.

    The bundled model reads English alone: in Chinese the fetched model of both languages takes its
    place. Where no verifier is named, another model of the application that speaks the language
    verifies. A model that somebody chose gets no verifier that nobody chose.
    """
    main = models["main"]
    if language != "en" and main.without_capabilities() == ModelSpec().without_capabilities():
        main = _fetched(SMALL_MODEL) or _fetched(LARGE_MODEL) or main
    verifier = None if "verifier" in models else default_verifier(main, language)
    return {**models, "main": main} | ({} if verifier is None else {"verifier": verifier})


def default_verifier(main: ModelSpec, language: Language) -> ModelSpec | None:
    """The second model that answers in `language` where `main` is a default; None for none.

    It is the larger model where that was fetched; else, in English, the other one of the small
    two.
    """
    if not is_default(main):
        return None
    small = (_fetched(SMALL_MODEL), ModelSpec()) if language == "en" else ()
    others = (one for one in (_fetched(LARGE_MODEL), *small) if one is not None)
    return next((one for one in others if one.name != main.name), None)


def _fetched(name: str) -> ModelSpec | None:
    """The model of `assets/pieces.toml` of that name, None where its file is not here."""
    return model_spec(catalogue_entry(name)) if fetched_file(name) is not None else None

"""Which models the roles are given to unless others are chosen."""

from __future__ import annotations

from collections.abc import Mapping

from pipelines.loading import minilm_folder
from pipelines.models.catalogue import LARGE_MODEL, SMALL_MODEL, catalogue_entry, fetched_file
from pipelines.models.providers import PROVIDERS, ModelSpec, model_spec
from pipelines.run.spec import JUDGES
from pipelines.types import Language


def default_models(language: Language | None = None) -> dict[str, ModelSpec]:
    """Return a map from role to model: all of them run on this machine, and need neither key
    nor hub.

    With the `language` of a run they are those of that language, see `by_language`; without one,
    the bundled model is the main one.

    The bundled judge and word overlap judge: beside these two, similarity makes the SLM check
    worse on data (`docs/measurements.md`). Where the embedded encoder is not installed, word
    overlap judges alone.
    """
    panel = ("trained", "overlap") if minilm_folder() else ("overlap",)
    judges = [spec for spec in PROVIDERS["judge"].bundled if spec.model in panel]
    models = {"main": ModelSpec(), **dict(zip(JUDGES, judges, strict=False))}
    return models if language is None else by_language(models, language)


def by_language(models: Mapping[str, ModelSpec], language: Language) -> dict[str, ModelSpec]:
    """Return `models` for a question in `language`, where nobody chose otherwise.

    The bundled model speaks English only, and measures better there than the small model of both
    languages (`docs/models.md`); in Chinese that one writes where it is here, else the larger one.
    The verifier is another model that speaks the language: the larger one, else in English the
    small or the bundled one. One of the two judges beside the bundled judge; that one reads English
    only, so that in Chinese it judges alone. A model that somebody chose gets no verifier and no
    judge that nobody chose.
    """
    small, large = _fetched(SMALL_MODEL), _fetched(LARGE_MODEL)
    main = models["main"]
    if main == ModelSpec() and language != "en":
        main = small or large or main
    found = {**models, "main": main}
    if "verifier" not in found and is_default(main):
        # A smaller second opinion than the writer's own is none in Chinese.
        others = (large, small, ModelSpec()) if language == "en" else (large,)
        own = main.without_capabilities()
        fit = (one for one in others if one is not None and one.without_capabilities() != own)
        second = next(fit, None)
        found |= {"verifier": second} if second is not None else {}
    if is_default(main):
        others = {role: spec for role, spec in found.items() if role not in JUDGES}
        found = others | _judges(found, language)
    return found


def _judges(models: Mapping[str, ModelSpec], language: Language) -> dict[str, ModelSpec]:
    """Return the judges of `models`, with a language model among them where nobody chose others."""
    chosen = {role: spec for role, spec in models.items() if role in JUDGES}
    usual = {role: spec for role, spec in default_models().items() if role in JUDGES}
    judge = _fetched(LARGE_MODEL) or _fetched(SMALL_MODEL)
    if judge is None or chosen != usual:
        return chosen
    return {**chosen, JUDGES[len(usual)]: judge} if language == "en" else {JUDGES[0]: judge}


def is_default(main: ModelSpec) -> bool:
    """Return whether a main model is one of those that nobody needs to choose."""
    usual = (ModelSpec(), _fetched(SMALL_MODEL), _fetched(LARGE_MODEL))
    return main.without_capabilities() in [
        one.without_capabilities() for one in usual if one is not None
    ]


def _fetched(name: str) -> ModelSpec | None:
    """Return the model of `assets/pieces.toml` of that name, None where its file is not here."""
    return model_spec(catalogue_entry(name)) if fetched_file(name) is not None else None

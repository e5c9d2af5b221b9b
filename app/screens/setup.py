"""What a question is asked of: its methods, models, evidence and settings, to choose and chosen."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, get_args

import streamlit as st

from app.engine import engine
from app.forms import draw_settings, read_settings
from app.limiting import draw_estimate
from app.page import (
    delete_button,
    draw_again,
    draw_unfolded,
    go_to,
    in_rows,
    key_field,
    remembered,
)
from app.session import (
    PROFILE_NAME,
    basis,
    chosen_profile,
    chosen_wording,
    draw_session_limits,
    forget_profile,
    keep_key,
    key_for,
    known_models,
    language,
    owner,
    settings_scope,
    settings_start,
    use_profile,
)
from components.base.html import tag, visible
from components.base.words import Catalogue
from components.methods.rowen import parts_ahead
from components.prompts import own_prompts_words
from pipelines.base import Language
from pipelines.engine.asking import RunRequest
from pipelines.engine.estimate import RunEstimate, estimate, first_methods
from pipelines.engine.executor import completed, left_out
from pipelines.engine.profiles import follows
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Method, Need
from pipelines.methods.registry import METHODS, grouped_methods, method_presets
from pipelines.methods.slm.scores import history_of
from pipelines.models.base import Capabilities
from pipelines.models.providers import known_capabilities
from pipelines.prompts import own_prompts, worded
from pipelines.retrieval.base import RetrievalMode
from pipelines.retrieval.qdrant import Configured, configured, is_installed
from pipelines.retrieval.web import WEB_SEARCHES
from pipelines.run.events import (
    JUDGES,
    ROLES,
    EvidenceSource,
    EvidenceSpec,
    MethodSpec,
    ModelSpec,
    RunSpec,
    Trace,
    by_language,
    default_models,
    is_default,
)
from pipelines.run.view import RunView
from pipelines.store import RunFilter
from pipelines.text import detect_language

EVIDENCE_SOURCES: tuple[EvidenceSource, ...] = tuple(
    source for source in get_args(EvidenceSource) if source not in ("given", "qdrant")
)
_MODES: tuple[RetrievalMode, ...] = get_args(RetrievalMode)

_COLLECTION = "collection "
"""What stands for a collection among the choices of evidence, before its id."""

_SETUP = "setup"
_SETTINGS = "settings"
_FOLDS = {_SETUP: "ask.setup", _SETTINGS: "ask.settings"}
"""The folds of the controls, with the keys of their titles."""
SAMPLES = "samples"
_FIRST = "_first_methods"
_USE_HISTORY = "slm.use_history"
"""Whether judges are measured against their scores in this visitor's earlier runs."""


def fold_away() -> None:
    """Fold the controls and the samples away, so that the run is in view. Called from a
    callback.
    """
    for name in (_SETUP, _SETTINGS, SAMPLES):
        st.session_state[name] = False


def unfold_setup() -> None:
    """Show the controls, to choose among them. Called from a callback."""
    st.session_state[_SETUP] = True


def offer_setup(t: Catalogue) -> None:
    """Draw a button for each fold of the controls that is not open, to stand on one line."""
    for fold, title in _FOLDS.items():
        if not st.session_state.get(fold):
            st.button(t(title), key=f"unfold-{fold}", on_click=_unfold, args=(fold,))


def _unfold(fold: str) -> None:
    st.session_state[fold] = True


def draw_setup(t: Catalogue, *, folded: bool = False) -> None:
    """Draw the controls, folded away until somebody wants them.

    With `folded`, folds that are not open are left out: `offer_setup` opens them.
    """
    draw_own_prompts(t)
    if not folded:
        _say_collection(t)
    for (fold, title), draw in zip(_FOLDS.items(), (_choices, _all_settings), strict=True):
        if not folded or st.session_state.get(fold):
            draw_unfolded(st.expander(t(title), key=fold, on_change="rerun"), partial(draw, t))


def setup_unfolded() -> bool:
    """Return whether the methods are in view to be chosen, with what they will take."""
    return bool(st.session_state.get(_SETUP))


def _choices(t: Catalogue) -> None:
    # A fragment: a tick draws what depends on it, not the whole page with its run.
    def body() -> None:
        draw_estimate(chosen_estimate(), t("ask.no_method"), t)
        _presets(t)
        _methods(t)
        draw_sources(t, chosen_methods())

    draw_again(body, None)


def _presets(t: Catalogue) -> None:
    """Draw choices of several methods at once."""
    with st.container(horizontal=True, vertical_alignment="center", key="presets"):
        st.caption(t("methods.preset"), width="content")
        for preset in method_presets():
            st.button(
                t(f"methods.preset.{preset}"),
                key=f"preset-{preset}",
                type="tertiary",
                help=t(f"methods.preset.{preset}.help"),
                on_click=_take_preset,
                args=(preset,),
            )


def _take_preset(preset: str) -> None:
    models, wanted = chosen_models(), method_presets()[preset]
    for name, method in METHODS.items():
        # What cannot run keeps its tick, and is left out all the same.
        if unmet_need(method, models) is None:
            st.session_state[f"method.{name}"] = name in wanted


def _all_settings(t: Catalogue) -> None:
    draw_profile_select(t)
    # The others would be most of the page, drawn anew at every change. What was set before stays in
    # view: it may be why a method cannot be chosen.
    shown = [name for name in METHODS if _is_ticked(name) or method_settings(name)]
    titles = [t(f"method.{name}.title") for name in shown]
    *tabs, run_tab = st.tabs([*titles, t("setting.run.title")])
    for tab, name in zip(tabs, shown, strict=True):
        with tab, st.container(key=f"settings-{name}"):
            draw_method_settings(name, t)
            if name == "slm":
                st.toggle(
                    t("setting.slm.use_history"),
                    key=_USE_HISTORY,
                    help=t("setting.slm.use_history.help"),
                    persist_state="session",
                )
    with run_tab:
        draw_run_settings(t)


def draw_run_settings(t: Catalogue) -> None:
    """Draw what holds for all methods of a run; the same on every page that starts one."""
    st.toggle(
        t("setting.run.reproducible"),
        key="run.reproducible",
        help=t("setting.run.reproducible.help"),
        persist_state="session",
    )
    st.number_input(
        t("setting.run.seed"),
        min_value=0,
        max_value=2**31 - 1,
        value=0,
        key="run.seed",
        help=t("setting.run.seed.help"),
        persist_state="session",
        width=160,
    )
    draw_session_limits(t)


def draw_method_settings(
    name: str,
    t: Catalogue,
    *,
    scope: str | None = None,
    start: Mapping[str, Any] | None = None,
) -> None:
    """Draw the controls of a method: without a `scope` the same on every page that draws them.

    With one, they begin with `start` over the method's defaults.
    """
    start = start if scope else settings_start(name)
    draw_settings(METHODS[name], t, scope=scope or settings_scope(), start=start or {})


def method_settings(
    name: str, scope: str | None = None, start: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """Return what these controls say, where it differs from the method's defaults."""
    start = start if scope else settings_start(name)
    return read_settings(METHODS[name], scope=scope or settings_scope(), start=start or {})


def draw_profile_select(t: Catalogue) -> None:
    """Draw a choice of saved profile, with which the controls begin; nothing where none
    is saved.
    """
    names = [one.name for one in engine().service.store.profiles.list(owner())]
    profile = chosen_profile()
    if not names and profile is None:
        return
    if st.session_state.get(PROFILE_NAME) not in (None, *names):
        st.session_state.pop(PROFILE_NAME)
    st.selectbox(
        t("profile.choose"),
        names,
        index=None,
        key=PROFILE_NAME,
        placeholder=t("profile.choose.none"),
        help=t("profile.choose.help"),
        on_change=_take_profile,
        persist_state="session",
    )
    if profile is None:
        return
    used = follows(
        profile,
        [MethodSpec(name=name, settings=method_settings(name)) for name in METHODS],
        chosen_wording(),
    )
    st.caption(t("profile.used" if used else "profile.changed", name=profile.name))
    if profile.description:
        st.caption(profile.description)
    if origin := profile.origin:
        words = t("profile.from", study=origin.study, data=origin.data_set, date=origin.date)
        st.caption(words)
    delete_button("profile", t("profile.delete.sure", name=profile.name), _delete_profile)


def _take_profile() -> None:
    with remembered("ask"):
        name = st.session_state.get(PROFILE_NAME)
        store = engine().service.store.profiles
        try:
            use_profile(None if name is None else store.get(owner(), name))
        except VeriscopeError:
            use_profile(None)
            raise


def _delete_profile() -> None:
    with remembered("ask"):
        profile = chosen_profile()
        if profile is not None:
            forget_profile(profile.name)
            engine().service.store.profiles.delete(owner(), profile.name)


def draw_own_prompts(t: Catalogue) -> None:
    """Draw which prompts the next run has of its own, with the way to them; nothing without any."""
    own = own_prompts(chosen_wording())
    if own:
        with st.container(horizontal=True, vertical_alignment="center", key="own-prompts"):
            st.caption(own_prompts_words(own, t), width="content")
            st.button(t("prompts.go"), key="own-prompts-go", on_click=go_to, args=("prompts",))


def _methods(t: Catalogue) -> None:
    models = chosen_models()
    for group, names in grouped_methods().items():
        st.html(tag("h3", t(f"methods.group.{group}"), class_="workbench-part"))
        # The five explain themselves; what a baseline does is read where somebody asks.
        spoken = group == "published"
        for column, name in in_rows(names, len(names) if spoken else 4):
            need, summary = unmet_need(METHODS[name], models), t(f"method.{name}.summary")
            with column, st.container(key=f"choice-{name}"):
                st.checkbox(
                    t(f"method.{name}.title"),
                    value=name in _first_methods(),
                    key=f"method.{name}",
                    disabled=need is not None,
                    help=None if spoken else summary,
                    persist_state="session",
                )
                if need is not None or spoken:
                    st.caption(t(f"need.{need.reason}") if need else summary)


def draw_sources(t: Catalogue, methods: Sequence[str]) -> None:
    """Draw the models of the roles that `methods` have, and the evidence; the same on
    every page.
    """
    main, others, library, search = st.columns(4, gap="medium", vertical_alignment="bottom")
    with main:
        model_select(t("ask.model"), "main", known_models(), t)
    used = {role for name in methods for role in METHODS[name].roles}
    roles = [role for role in ROLES if role in used]
    if roles:
        # Second opinions, for the methods that are ticked and make use of them.
        with others, st.popover(t("models.others"), key="other-models", width="stretch"):
            for role in roles:
                model_select(t(f"role.{role}").capitalize(), role, known_models(), t)
    web: list[str] = [source for source in EVIDENCE_SOURCES if source != "library"]
    servers: list[str] = ["qdrant"] if qdrant_server() else []
    own = _own_collections()
    options = [*engine().service.libraries.names, *own, *servers, *web]
    if st.session_state.get("evidence.library") not in (None, *options):
        # A collection that was deleted, or another visitor's.
        st.session_state.pop("evidence.library")
    with library:
        evidence = st.selectbox(
            t("ask.evidence"),
            options,
            key="evidence.library",
            format_func=lambda name: visible(own[name]) if name in own else _evidence_name(name, t),
            help=t("ask.evidence.help"),
            persist_state="session",
        )
    with search:
        st.selectbox(
            t("ask.search"),
            _MODES,
            index=_MODES.index("hybrid"),
            key="evidence.mode",
            format_func=lambda mode: t(f"evidence.mode.{mode}"),
            disabled=evidence in web,
            persist_state="session",
        )
    if evidence in web:
        _web_search(evidence, t)
    models = chosen_models()
    if "rowen" in methods:
        spoken = _spoken()
        then = by_language(models, spoken)
        st.caption(parts_ahead(then, method_settings("rowen"), spoken, t))
    for role in roles:
        if models.get(role) == models["main"]:
            st.caption(t("models.same", role=t(f"role.{role}")))


def qdrant_server() -> Configured | None:
    """Return the Qdrant server that can be searched, if its client is installed and one
    is named.
    """
    return configured() if is_installed() else None


def ask_with(collection: str) -> None:
    """Open Ask with a collection of the visitor as the evidence. Called from a callback."""
    st.session_state["evidence.library"] = f"{_COLLECTION}{collection}"
    go_to("ask")


def _say_collection(t: Catalogue) -> None:
    """Draw which of the visitor's collections is asked, where one is."""
    chosen = str(st.session_state.get("evidence.library") or "")
    if chosen.startswith(_COLLECTION) and (name := _own_collections().get(chosen)):
        st.caption(t("library.asked", name=visible(name)))


def _own_collections() -> dict[str, str]:
    """Return the visitor's collections that can be searched: what stands for one, and its name."""
    found = engine().service.collections.searchable(owner())
    return {f"{_COLLECTION}{one.id}": one.name for one in found}


def _evidence_name(name: str, t: Catalogue) -> str:
    server = qdrant_server()
    if name == "qdrant" and server is not None:
        return t("evidence.qdrant", name=server.collection)
    if name in EVIDENCE_SOURCES:
        return t("evidence.web", name=t(f"evidence.web.{name}"))
    return t(f"library.{name}") if t.has(f"library.{name}") else name


def _web_search(name: str, t: Catalogue) -> None:
    st.caption(t("evidence.web.note"))
    if WEB_SEARCHES[name].needs_key:
        key_field(
            t("evidence.key", name=t(f"evidence.web.{name}")),
            f"search-key.{name}",
            help=t("evidence.key.note"),
            placeholder=t("models.key.kept") if key_for(name) else None,
            on_change=_keep_search_key,
            args=(name,),
        )


def _keep_search_key(name: str) -> None:
    keep_key(name, (st.session_state.get(f"search-key.{name}") or "").strip())


def chosen_models() -> dict[str, ModelSpec]:
    """Return a map from role to model, for every role that was given one; "main" always is."""
    known = known_models()
    chosen = {role: known.get(_chosen_name(role) or "") for role in ROLES}
    models = {role: spec for role, spec in chosen.items() if spec is not None}
    return {"main": default_models()["main"], **models}


def _chosen_name(role: str) -> str | None:
    """Return the model of `role`; None for a role that is left open, or was emptied."""
    default = default_models().get(role)
    return st.session_state.get(f"model.{role}", default and default.name)


def model_select(label: str, role: str, models: Mapping[str, ModelSpec], t: Catalogue) -> None:
    """Let a role be given to a model; every role but "main" may stay without one."""
    if role not in JUDGES:
        models = {name: spec for name, spec in models.items() if assumed_capabilities(spec).writes}
    key = f"model.{role}"
    if st.session_state.get(key) not in (None, *models):
        st.session_state.pop(key)
    if role != "main" and key not in st.session_state:
        # Not by `index`: a control that has one cannot be emptied.
        st.session_state[key] = _chosen_name(role)
    # A default's second opinion and its language model that judges follow the question's language.
    open_role = role in ("verifier", JUDGES[-1]) and is_default(chosen_models()["main"])
    st.selectbox(
        label,
        list(models),
        index=0 if role == "main" else None,
        key=key,
        placeholder=t("models.verifier.auto" if open_role else "models.nobody"),
        help=t(f"models.role.{role}"),
        persist_state="session",
    )


def assumed_capabilities(spec: ModelSpec) -> Capabilities:
    """Return what a model can probably do, before it is loaded: for what is greyed out, not
    for a run.
    """
    return known_capabilities(spec) or Capabilities()


def unmet_need(
    method: Method[Any],
    models: Mapping[str, ModelSpec],
    chosen: Mapping[str, Any] | None = None,
) -> Need | None:
    """Return the first thing the method lacks with these models and its `chosen` settings.

    Without them they are those of the Ask page.
    """
    settings = method.settings(method_settings(method.name) if chosen is None else chosen)
    capabilities = {role: assumed_capabilities(spec) for role, spec in models.items()}
    needs = method.needs(settings)
    return next((n for n in needs if n.unmet(capabilities, has_evidence=True)), None)


def chosen_methods() -> list[str]:
    """Return the methods that are ticked and can run, in the order they are listed."""
    models = chosen_models()
    return [
        name
        for name, method in METHODS.items()
        if _is_ticked(name) and unmet_need(method, models) is None
    ]


def _is_ticked(name: str) -> bool:
    return st.session_state.get(f"method.{name}", name in _first_methods())


def _first_methods() -> list[str]:
    """Return what is ticked until somebody chooses. It stays so for a session, whatever
    runs tell.
    """
    if _FIRST not in st.session_state:
        models = default_models(_spoken())
        st.session_state[_FIRST] = first_methods(models, basis(models["main"]))
    return st.session_state[_FIRST]


def chosen_estimate() -> RunEstimate | None:
    """Return what a press on Run will take; None where no method is chosen."""
    names, models = chosen_methods(), by_language(chosen_models(), _spoken())
    return estimate(names, models, basis(models["main"])) if names else None


def chosen_estimates(names: Iterable[str]) -> dict[str, float]:
    """Return the calls that a run of each of `names` takes alone, with what it starts from."""
    models = by_language(chosen_models(), _spoken())
    known = basis(models["main"])
    found = {name: estimate([name], models, known) for name in names}
    return {name: one.calls + one.judge_calls for name, one in found.items()}


def _spoken() -> Language:
    """Return the language of the question, or that of the page where none is typed yet."""
    question = st.session_state.get("question") or ""
    return detect_language(question) if question.strip() else language()


def _settings(name: str, question: str) -> dict[str, Any]:
    settings = method_settings(name)
    if name == "slm" and st.session_state.get(_USE_HISTORY):
        # Earlier scores count where they were given under the same wording.
        with worded(chosen_wording()):
            earlier = history_of(_earlier_runs(), detect_language(question))
        settings["history"] = {judge: scale.model_dump() for judge, scale in earlier.items()}
    return settings


def _earlier_runs() -> Iterator[Trace]:
    """Yield the visitor's latest runs of the SLM check, as far as they can still be read."""
    service = engine().service
    for run in service.store.ids(owner(), RunFilter(methods=("slm",)), limit=50):
        with suppress(VeriscopeError):
            yield engine().call(service.load(run, owner=owner()))


def chosen_evidence() -> EvidenceSpec:
    """Return the evidence that is chosen: a library and how it is searched, or a search of
    the web.
    """
    evidence = st.session_state.get("evidence.library") or "sample"
    mode = st.session_state.get("evidence.mode") or "hybrid"
    if evidence.startswith(_COLLECTION):
        collections = engine().service.collections
        return collections.evidence(owner(), evidence.removeprefix(_COLLECTION), mode)
    if evidence in EVIDENCE_SOURCES:
        return EvidenceSpec(source=evidence, mode=mode)
    server = qdrant_server()
    if evidence == "qdrant" and server is not None:
        return EvidenceSpec(
            source="qdrant", library=server.collection, mode=mode, base_url=server.url
        )
    return EvidenceSpec(library=evidence, mode=mode)


def chosen_request(question: str) -> RunRequest:
    """Return what the Ask page asks for at the moment."""
    return asked_of(chosen_methods(), question)


def asked_of(names: Iterable[str], question: str) -> RunRequest:
    """Return a question to these methods, with what the Ask page has chosen besides them."""
    methods = {name: _settings(name, question) for name in names}
    specs = [MethodSpec(name=name, settings=settings) for name, settings in methods.items()]
    return chosen_run(specs, question=question)


def chosen_run(methods: Sequence[MethodSpec], **asked: Any) -> RunRequest:
    """Return what is asked of these methods, with what is chosen for every page that starts a run;
    `asked` is a `question`, or a `text` to check.
    """
    return RunRequest(
        **asked,
        methods=methods,
        models=chosen_models(),
        evidence=chosen_evidence(),
        seed=int(st.session_state.get("run.seed") or 0),
        reproducible=bool(st.session_state.get("run.reproducible")),
        prompts=chosen_wording(),
        profile=chosen_profile(),
    )


def completed_spec(view: RunView) -> RunSpec:
    """Return a run with the standard methods that the run of `view` left out, with chosen
    settings.
    """
    question = view.header.spec.question if view.header else ""
    settings = {name: _settings(name, question) for name in left_out(view)}
    return completed(view, by_language(chosen_models(), detect_language(question)), settings)

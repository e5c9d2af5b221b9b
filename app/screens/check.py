"""The Check page: a text from anywhere, under every detector that can work on it.

A check is a run whose answer is given, so that Runs lists it and every other page can show it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any, Literal

import streamlit as st

from app import live
from app.budget import basis
from app.engine import engine
from app.limiting import draw_estimate, draw_over_limit, hold_back
from app.parts import (
    Action,
    act,
    choose_one,
    draw_error,
    draw_run,
    draw_unfolded,
    in_rows,
    page_title,
    redraw_whole,
    remembered,
    section_title,
    show_html,
)
from app.profiles import settings_scope, settings_start
from app.saving import address_note, save_buttons
from app.screens.check_file import draw_file
from app.screens.setup import (
    assumed_capabilities,
    chosen_models,
    chosen_run,
    draw_method_settings,
    draw_own_prompts,
    draw_profile_select,
    draw_run_settings,
    draw_sources,
    method_settings,
)
from app.session import language, messages, owner
from components.check_view import READINGS, Reading, check_view, unavailable_words
from components.elements import notice
from components.markup import tag
from components.messages import Catalogue, integer
from pipelines.engine.asking import RunRequest
from pipelines.engine.checking import (
    STANDARD,
    TextToCheck,
    detectors,
    is_check,
    models_for,
    problem_of,
    split_sources,
    text_of,
    title_of,
    unmet_needs,
)
from pipelines.engine.estimate import RunEstimate, estimate
from pipelines.engine.text_size import size_of
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Need
from pipelines.run.defaults import by_language
from pipelines.run.spec import MAX_SOURCES, MAX_TEXT, MethodSpec, ModelSpec
from pipelines.samples.checks import sample_texts
from pipelines.text import detect_language

Against = Literal["library", "sources"]

_TEXT, _QUESTION, _SOURCES = "check.text", "check.question", "check.sources"
_AGAINST, _EXAMPLE, _SHOWN = "check.against", "check.example", "check.reading"
_FORM, _SETUP, _SETTINGS = "check.form", "check.setup", "check.settings"
_ABOUT = "_check.about"
_REFUSED = "_check.refused"
_KEPT: Any = {"persist_state": "session"}


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("check.title"), t("check.note"))
    missing = live.follow_address()
    watched = live.current()
    checked = watched if watched is not None and is_check(watched.spec) else None
    if checked is not None and _TEXT not in st.session_state:
        # After a reload the form shows what the run was given.
        _fill(text_of(checked.spec))
    # Folded away when a check begins, so that what it finds is in view.
    st.session_state.setdefault(_FORM, checked is None)
    form = st.expander(t("check.form"), key=_FORM, on_change="rerun")
    draw_unfolded(form, partial(_form, t))
    over = _go(t)
    draw_file(t, _request)
    refusal = _refusal(t) if st.session_state.get(_REFUSED) else None
    if refusal is not None:
        show_html(notice(refusal, "refusal", role="alert"), key="check-refusal")
    draw_error("check", missing)
    if checked is not None:
        draw_run(checked, _draw_view, title=t("check.title"))
    elif refusal is None and not over:
        st.html(tag("p", t("check.empty"), class_="workbench-empty"))


# --- What is checked ------------------------------------------------------------------------------


def _examples(t: Catalogue) -> None:
    """Draw texts to try, and of the one that was taken what is known about it."""
    samples = {one.id: one for one in sample_texts() if one.language == language()}
    st.pills(
        t("check.examples"),
        list(samples),
        format_func=lambda id: samples[id].title if id in samples else id,
        key=_EXAMPLE,
        on_change=_take_example,
        width="stretch",
    )
    about = st.session_state.get(_ABOUT)
    taken = next((one for one in sample_texts() if one.id == about), None)
    if taken is not None and taken.text == st.session_state.get(_TEXT):
        st.caption(taken.about)


def _take_example() -> None:
    chosen = st.session_state.get(_EXAMPLE)
    sample = next((one for one in sample_texts() if one.id == chosen), None)
    if sample is not None:
        _fill(sample.given)
        st.session_state[_EXAMPLE] = None
        st.session_state[_ABOUT] = sample.id
        st.session_state[_REFUSED] = False


def _fill(given: TextToCheck) -> None:
    st.session_state[_TEXT] = given.text
    st.session_state[_QUESTION] = given.question
    st.session_state[_SOURCES] = "\n\n".join(given.sources)
    st.session_state[_AGAINST] = "sources" if given.sources else "library"


def _form(t: Catalogue) -> None:
    _examples(t)
    st.text_area(
        t("check.text"),
        key=_TEXT,
        height=140,
        placeholder=t("check.text.placeholder"),
        help=t("check.text.help", most=integer(MAX_TEXT)),
        **_KEPT,
    )
    st.text_input(
        t("check.question"),
        key=_QUESTION,
        placeholder=t("check.question.placeholder"),
        help=t("check.question.help"),
        autocomplete="off",
        **_KEPT,
    )
    against: Against = choose_one(
        t("check.against"),
        ("library", "sources"),
        _AGAINST,
        lambda one: t(f"check.against.{one}"),
        help=t("check.against.help"),
        **_KEPT,
    )
    if against == "sources":
        st.text_area(
            t("check.sources"),
            key=_SOURCES,
            height=120,
            placeholder=t("check.sources.placeholder"),
            help=t("check.sources.help", most=integer(MAX_SOURCES)),
            **_KEPT,
        )


def _go(t: Catalogue) -> bool:
    """Draw what is left to choose, the button, and what it will take; return whether a limit held
    it back.
    """
    setup = st.expander(t("check.setup"), key=_SETUP, on_change="rerun")
    draw_unfolded(setup, partial(_choices, t))
    settings = st.expander(t("check.settings"), key=_SETTINGS, on_change="rerun")
    draw_unfolded(settings, partial(_all_settings, t))
    draw_own_prompts(t)
    # Always there, so that nothing moves: which of the ticked detectors can work on this.
    with st.container(horizontal=True, vertical_alignment="center", key="check-go"):
        st.button(t("check.run"), type="primary", key="check.run", on_click=_check)
        st.caption(_will_work(t))
    found = _estimate()
    draw_estimate(found, t("check.estimate.none"), t)
    start = partial(_check, anyway=True)
    return draw_over_limit("check", found, t, start=start, fewer=_unfold_setup)


def _unfold_setup() -> None:
    st.session_state[_SETUP] = True


def _will_work(t: Catalogue) -> str:
    """Return how many detectors will work, and what the others of the standard ones need."""
    needs, able = _needs(), _able()
    lacking = {name: need.reason for name in STANDARD if (need := needs.get(name)) is not None}
    said = t("check.able", count=len(able))
    others = unavailable_words(lacking, t)
    return said + (t("sentence.separator") + others if others else "")


def _choices(t: Catalogue) -> None:
    """Draw the detectors, what is not available with its reason, and the models and the
    evidence.
    """
    first = [name for name in detectors() if name in STANDARD]
    others = [name for name in detectors() if name not in STANDARD]
    _tick_boxes(first, t)
    st.html(tag("h3", t("check.further"), class_="workbench-part"))
    _tick_boxes(others, t)
    st.html(tag("h3", t("check.sources.models"), class_="workbench-part"))
    draw_sources(t, _ticked())


def _tick_boxes(names: list[str], t: Catalogue) -> None:
    needs = _needs()
    for column, name in in_rows(names, 4):
        need = needs[name]
        with column, st.container(key=f"choice-check-{name}"):
            st.checkbox(
                t(f"method.{name}.title"),
                value=name in STANDARD,
                key=f"check.method.{name}",
                disabled=need is not None,
                **_KEPT,
            )
            st.caption(t(f"need.{need.reason}") if need else t(f"method.{name}.summary"))


def _all_settings(t: Catalogue) -> None:
    """Draw a profile to begin with, the detectors' settings, and those of the whole run."""
    draw_profile_select(t)
    names = _ticked()
    titles = [t(f"method.{one}.title") for one in names]
    *tabs, run_tab = st.tabs([*titles, t("setting.run.title")])
    for tab, name in zip(tabs, names, strict=True):
        with tab, st.container(key=f"settings-check-{name}"):
            draw_method_settings(name, t, scope=_scope(), start=settings_start(name))
    with run_tab:
        draw_run_settings(t)


def _scope() -> str:
    """Return where the session keeps the settings of checks: for each profile apart, and not Ask's.

    Those of a question, such as how many drafts are written, have no use here.
    """
    return f"check.{settings_scope()}"


def _settings_of(name: str) -> dict[str, Any]:
    return method_settings(name, _scope(), settings_start(name))


def _ticked() -> list[str]:
    return [
        name
        for name in detectors()
        if st.session_state.get(f"check.method.{name}", name in STANDARD)
    ]


def _needs(given: TextToCheck | None = None) -> dict[str, Need | None]:
    """Return what each detector lacks on `given`, or on what the form describes."""
    formed, given = given is None, given or _given()
    against: Against = st.session_state.get(_AGAINST) or "library"
    return unmet_needs(
        {role: assumed_capabilities(spec) for role, spec in _models(given).items()},
        asked=given.asked,
        has_evidence=not formed or against == "library" or bool(given.sources),
        language=detect_language(given.text) if given.text.strip() else None,
        settings={name: _settings_of(name) for name in detectors()},
    )


def _models(given: TextToCheck) -> dict[str, ModelSpec]:
    """Return those chosen; before there is a text, those of the page's language."""
    models = chosen_models()
    empty = not given.text.strip()
    return by_language(models, messages().language) if empty else models_for(given, models)


def _given() -> TextToCheck:
    """Return what the form describes."""
    sources: tuple[str, ...] = ()
    if st.session_state.get(_AGAINST) == "sources":
        sources = tuple(split_sources(st.session_state.get(_SOURCES) or ""))
    return TextToCheck(
        text=st.session_state.get(_TEXT) or "",
        question=st.session_state.get(_QUESTION) or "",
        sources=sources,
    )


def _refusal(t: Catalogue) -> str | None:
    """Return why this cannot be checked, if it cannot."""
    wrong = problem_of(_given())
    if wrong is not None:
        return t(f"checking.{wrong.name}", **wrong.facts)
    return None if _able() else t("checking.no_detector")


def _estimate() -> RunEstimate | None:
    """Return what a press on the button will take; None where there is no text or no detector."""
    able, text = _able(), _given().text
    if not able or not text.strip():
        return None
    models = _models(_given())
    return estimate(able, models, basis(models["main"], size=size_of(text)))


def _check(anyway: bool = False) -> None:
    with remembered("check"):
        st.session_state[_REFUSED] = _refusal(messages()) is not None
        held = hold_back("check", None if anyway else _estimate())
        if st.session_state[_REFUSED] or held:
            return
        live.start(_request(), anyway=anyway)
        _name_it()
        for name in (_FORM, _SETUP, _SETTINGS):
            st.session_state[name] = False


def _able(given: TextToCheck | None = None) -> list[str]:
    """Return those of the ticked detectors that can work on this."""
    needs = _needs(given)
    return [name for name in _ticked() if needs[name] is None]


def _request(given: TextToCheck | None = None) -> RunRequest:
    """Return what is asked for: a text, else that of the form, under those of the ticked detectors
    that can work on it.
    """
    methods = [MethodSpec(name=name, settings=_settings_of(name)) for name in _able(given)]
    return chosen_run(methods, text=given or _given())


def _name_it() -> None:
    """Name the check by its text, as lists do where there is no question."""
    watched = live.current()
    if watched is None or (given := text_of(watched.spec)).asked:
        return
    # A text that looks like a key cannot be a name; the run goes on all the same.
    with suppress(VeriscopeError):
        engine().service.store.labels.rename(watched.run_id, owner(), title_of(given))


# --- What was found -------------------------------------------------------------------------------


def _draw_view(watched: live.Watched, t: Catalogue) -> None:
    section_title(t("check.result"))
    with st.container(horizontal=True, vertical_alignment="center", key="check-kept"):
        save_buttons(watched.run_id, t, key="check", disabled=not watched.view.over)
        address_note(watched.run_id)
    if watched.spec.profile:
        st.caption(t("run.profile", name=watched.spec.profile))
    reading: Reading = choose_one(
        t("check.reading"),
        READINGS,
        _SHOWN,
        lambda one: t(f"check.reading.{one}"),
        **_KEPT,
    )
    html = check_view(watched.view, t, readings=(reading,))
    show_html(html, key="check-view", on_action=_act)


def _act(action: Action) -> None:
    watched = live.current()
    if action["action"] == "retry" and watched is not None:
        with remembered("check"):
            live.start_again(watched)
            _name_it()
        redraw_whole()
        return
    act("check", action)

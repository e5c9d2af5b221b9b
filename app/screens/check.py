"""The Check page: a text from anywhere, under every detector that can work on it.

A check is a run whose answer is given, so that Runs lists it and every other page can show it.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

import streamlit as st

from app import page
from app.engine import PERIOD, engine
from app.jobs import TextCheck, check_texts, checks
from app.limiting import draw_estimate, draw_over_limit, hold_back
from app.page import (
    Action,
    act,
    address_note,
    choose_one,
    draw_again,
    draw_error,
    draw_run,
    draw_unfolded,
    guarded,
    in_rows,
    page_title,
    redraw_whole,
    remembered,
    save_buttons,
    section_title,
    show_html,
)
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
from app.session import (
    basis,
    keys_for,
    language,
    messages,
    owner,
    planned,
    settings_scope,
    settings_start,
)
from components.base.elements import notice
from components.base.html import shown, tag
from components.base.words import Catalogue, integer
from components.evaluate.reading import reading_line
from components.run.check import READINGS, Reading, check_view, unavailable_words
from components.run.check_many import as_json_lines, as_table, many_view
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
from pipelines.engine.estimate import RunEstimate, estimate, size_of
from pipelines.errors import VeriscopeError
from pipelines.evaluation.datasets.files import TABLE_ENDINGS, table_ending
from pipelines.evaluation.datasets.opening import NamedText, texts_of
from pipelines.methods.base import Need
from pipelines.run.events import MAX_SOURCES, MAX_TEXT, MethodSpec, ModelSpec, by_language
from pipelines.samples.walkthroughs import sample_texts
from pipelines.text import detect_language

# The part of the Check page that takes a file of texts: all of them checked, one after another.

MAX_TEXTS = 100
"""Texts of one file; more are checked on the command line."""

_FILE, _OPEN, _READ = "check.file", "check.many.form", "_check.many.read"
_FORMS = [*TABLE_ENDINGS, "txt"]
_MEGABYTES = 4

RequestOf = Callable[[TextToCheck], RunRequest]
"""Returns what is asked for to check a text by what is chosen on the page. Raises VeriscopeError.
"""


def draw_file(t: Catalogue, request_of: RequestOf) -> None:
    """Draw the file, the button, and what has come of the texts so far."""
    job = checks.get(owner())
    st.session_state.setdefault(_OPEN, job is not None and job.going_on)
    part = st.expander(t("check.many"), key=_OPEN, on_change="rerun")
    draw_unfolded(part, partial(_part, t, request_of))


def _part(t: Catalogue, request_of: RequestOf) -> None:
    job = checks.get(owner())
    busy = job is not None and job.going_on
    file = st.file_uploader(
        t("check.many.file"),
        type=_FORMS,
        key=_FILE,
        max_upload_size=_MEGABYTES,
        help=t("check.many.help", most=integer(MAX_TEXTS)),
    )
    st.button(
        t("check.many.run"),
        key="check.many.run",
        disabled=file is None or busy,
        on_click=_begin_file,
        args=(request_of,),
    )
    if told := st.session_state.get(_READ):
        show_html(tag("p.vs-note", shown(told)), key="check-many-read")
    if job is not None:
        draw_again(partial(_draw, busy), PERIOD if busy else None)


def _begin_file(request_of: RequestOf) -> None:
    file = st.session_state.get(_FILE)
    if file is None:
        return
    with remembered("check"), TemporaryDirectory() as folder:
        # The name is a visitor's: only what it ends in is used for a file.
        path = Path(folder) / f"texts{table_ending(file.name)}"
        path.write_bytes(file.getvalue())
        found = texts_of(path, most=MAX_TEXTS)
        said = [reading_line(found.reading, messages())] if found.reading else []
        if found.without_sources:
            facts = {"count": integer(found.without_sources), "total": integer(len(found.texts))}
            said.append(messages()("check.many.no_sources", **facts))
        st.session_state[_READ] = " ".join(said)
        asked = [_asked(entry, request_of) for entry in found.texts]
        keys: dict[str, str] = {}
        for one in asked:
            keys.update(keys_for(one.spec) if one.spec is not None else {})
        name = Path(file.name).stem.strip()[:30] or "texts"
        check_texts(name, asked, keys, owner())


def _asked(entry: NamedText, request_of: RequestOf) -> TextCheck:
    try:
        plan = planned(request_of(entry.given))
        return TextCheck(entry.id, entry.given.text, plan.spec, plan.budget)
    except VeriscopeError as error:
        return TextCheck(entry.id, entry.given.text, error=error)


def _draw(was_busy: bool) -> None:
    """Draw, from a fragment, how far it is, and when it is over the files that hold everything."""
    t, job = messages(), checks.get(owner())
    if job is None:
        return
    if was_busy and not job.going_on:
        st.rerun()
    name, total, outcomes = job.progress
    with guarded(t("check.many"), key="check-many"):
        show_html(many_view(outcomes, total, t), key="check-many", on_action=_open)
    with st.container(horizontal=True, key="check-many-buttons"):
        if job.going_on:
            st.button(t("action.stop"), key="check.many.stop", on_click=_stop)
            return
        for form, make in (("csv", as_table), ("jsonl", as_json_lines)):
            st.download_button(
                t(f"check.many.{form}"),
                data=partial(make, outcomes),
                file_name=f"checked-{name}.{form}",
                mime="text/csv" if form == "csv" else "application/jsonl",
                key=f"check-many-{form}",
                on_click="ignore",
            )


def _stop() -> None:
    with remembered("check"):
        if (job := checks.get(owner())) is not None:
            job.stop()


def _open(action: Action) -> None:
    if action["action"] == "open_run" and action["value"]:
        with remembered("check"):
            page.open_run(action["value"])
        redraw_whole()


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
    missing = page.follow_address()
    watched = page.current()
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
        page.start(_request(), anyway=anyway)
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
    watched = page.current()
    if watched is None or (given := text_of(watched.spec)).asked:
        return
    # A text that looks like a key cannot be a name; the run goes on all the same.
    with suppress(VeriscopeError):
        engine().service.store.labels.rename(watched.run_id, owner(), title_of(given))


# --- What was found -------------------------------------------------------------------------------


def _draw_view(watched: page.Watched, t: Catalogue) -> None:
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
    watched = page.current()
    if action["action"] == "retry" and watched is not None:
        with remembered("check"):
            page.start_again(watched)
            _name_it()
        redraw_whole()
        return
    act("check", action)

"""The Prompts page: what methods ask, one's own wording beside the default, and a try of it."""

from __future__ import annotations

from concurrent.futures import Future
from typing import Any, NamedTuple, get_args

import streamlit as st

from app.engine import engine
from app.page import (
    draw_again,
    draw_error,
    go_to,
    guarded,
    page_title,
    remembered,
    section_title,
    show_error,
    show_html,
)
from app.screens.runs import local_time
from app.screens.setup import assumed_capabilities
from app.session import (
    chosen_profile,
    chosen_wording,
    keep_wording,
    key_for,
    known_models,
    language,
    messages,
    owner,
    replace_profile,
    settings_scope,
)
from components.base.elements import notice
from components.base.html import tag
from components.base.words import Catalogue, named
from components.prompts import (
    Place,
    difference_view,
    filled_view,
    own_prompts_words,
    place_words,
    problems_view,
    prompt_title,
    prompt_view,
    replies_view,
    shots_view,
)
from pipelines.base import Choice, Generation, Language
from pipelines.engine.profiles import (
    SentPrompt,
    ask_model,
    asked_again,
    files_of,
    fill,
    recorded_reply,
    sent_in,
    users_of,
)
from pipelines.errors import VeriscopeError
from pipelines.methods.registry import METHODS
from pipelines.models.base import ChoiceRequest, GenerationRequest
from pipelines.models.providers import ModelSpec
from pipelines.prompts import (
    MAX_PROMPT,
    checked_text,
    load_prompts,
    own_prompts,
    prompt_problems,
    with_text,
)
from pipelines.store import RunFilter
from pipelines.store.exchange import recordings_with

_PAGE = "prompts"
_METHOD, _PROMPT, _LANGUAGE = "prompts.method", "prompts.prompt", "prompts.language"
_OWN = "prompts.own"
_TRIAL = "_prompts.trial"
_RUNS = 20
_PERIOD = 0.5
"""Seconds between two looks at a trial that goes on."""

_HEIGHT = 320
_KEPT: Any = {"persist_state": "session"}


class Trial(NamedTuple):
    """A call that is made, or was made, with a text of one's own for the prompt at `place`."""

    place: Place
    text: str
    before: SentPrompt
    model: str
    future: Future[Generation | Choice]


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("prompts.title"), t("prompts.note"))
    draw_error(_PAGE)
    _standing(t)
    place = _choose(t)
    _editor(place, t)
    section_title(t("prompts.try"))
    with guarded(t("prompts.try"), key="try"):
        _try(place, t)


def _standing(t: Catalogue) -> None:
    """Draw which prompts the next runs have of their own, and where that is kept."""
    own, profile = own_prompts(chosen_wording()), chosen_profile()
    if not own:
        st.caption(t("prompts.all_default"))
    else:
        show_html(notice(own_prompts_words(own, t), "own"), key="prompts-own")
        words = {place_words(place, t): place for place in own if place != _looked_at()}
        if words:
            st.pills(t("prompts.jump"), list(words), key=_OWN, on_change=_jump, args=(words,))
    saved = profile.prompts if profile else {}
    if not own and not saved:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="prompts-kept"):
        if profile is not None:
            st.button(
                t("prompts.save_to", name=profile.name),
                key="prompts-save",
                type="primary",
                disabled=saved == chosen_wording(),
                on_click=_save_to_profile,
            )
        st.button(t("prompts.save_new"), key="prompts-new", on_click=go_to, args=("profiles",))
        st.button(t("prompts.reset_all"), key="prompts-reset-all", on_click=_reset_all)
        note = "prompts.session" if saved != chosen_wording() else "prompts.of_profile"
        st.caption(t(note, name=profile.name if profile else ""), width="content")


def _looked_at() -> Place:
    """Return the prompt that the controls say, before they are drawn."""
    file, _, key = str(st.session_state.get(_PROMPT) or "").partition("/")
    return file, str(st.session_state.get(_LANGUAGE) or language()), key


def _jump(words: dict[str, Place]) -> None:
    chosen = st.session_state.get(_OWN)
    if chosen not in words:
        return
    file, code, key = words[chosen]
    method = st.session_state.get(_METHOD)
    if method not in users_of(file):
        st.session_state[_METHOD] = users_of(file)[0]
    st.session_state[_PROMPT] = f"{file}/{key}"
    st.session_state[_LANGUAGE] = code
    st.session_state[_OWN] = None


def _choose(t: Catalogue) -> Place:
    """Return the prompt that is looked at."""
    own = set(own_prompts(chosen_wording()))
    left, middle, right = st.columns([2, 3, 1.2], gap="medium", vertical_alignment="bottom")
    with left:
        method = st.selectbox(
            t("prompts.method"),
            list(METHODS),
            key=_METHOD,
            format_func=lambda name: named("method", name, t),
            **_KEPT,
        )
    known = {
        f"{one.name}/{key}": (one.name, key) for one in files_of(method) for key in one.keys("en")
    }
    if st.session_state.get(_PROMPT) not in known:
        st.session_state[_PROMPT] = next(iter(known))

    def words(name: str) -> str:
        file, key = known[name]
        mine = any((file, code, key) in own for code in get_args(Language))
        mark = f" · {t('prompts.mark')}" if mine else ""
        return f"{prompt_title(file, key, t)} ({name}){mark}"

    with middle:
        chosen = st.selectbox(
            t("prompts.step"), list(known), key=_PROMPT, format_func=words, **_KEPT
        )
    st.session_state.setdefault(_LANGUAGE, language())
    with right:
        st.segmented_control(
            t("prompts.language"),
            get_args(Language),
            required=True,
            key=_LANGUAGE,
            format_func=lambda code: t(f"language.{code}"),
            **_KEPT,
        )
    code = st.session_state[_LANGUAGE]
    file, key = known[chosen]
    others = [named("method", name, t) for name in users_of(file) if name != method]
    if others:
        listed = t("list.separator").join(others)
        st.caption(t("prompts.shared", file=file, list=listed))
    return file, code, key


def _draft_key(place: Place) -> str:
    """Return where the text that is being written is kept: every profile has its own."""
    return ".".join(("prompts.text", settings_scope(), *place))


def _kept_text(place: Place) -> str:
    """Return the text that the next runs use."""
    file, code, key = place
    own = chosen_wording().get(file, {}).get(code, {}).get(key)
    return load_prompts(file).default(code, key) if own is None else own


def _editor(place: Place, t: Catalogue) -> None:
    file, code, key = place
    default, kept, draft = (
        load_prompts(file).default(code, key),
        _kept_text(place),
        _draft_key(place),
    )
    st.session_state.setdefault(draft, kept)
    left, right = st.columns(2, gap="large")
    with left:
        show_html(prompt_view(default, code, t("prompts.default"), t), key="prompt-default")
    with right:
        text = st.text_area(
            t("prompts.yours"),
            key=draft,
            height=_HEIGHT,
            help=t("prompts.yours.help", most=f"{MAX_PROMPT:,}"),
            **_KEPT,
        )
        text = (text or "").replace("\r\n", "\n").strip()
        unsaved = text != kept
        state = "unsaved" if unsaved else "default" if kept == default else "own"
        st.caption(t(f"prompts.state.{state}"))
        with st.container(horizontal=True, key="prompt-buttons"):
            st.button(
                t("prompts.use"),
                key="prompt-use",
                type="primary",
                disabled=not unsaved,
                on_click=_use,
                args=(place,),
            )
            st.button(
                t("prompts.undo"),
                key="prompt-undo",
                disabled=not unsaved,
                on_click=_put,
                args=(place, kept),
            )
            st.button(
                t("prompts.reset"),
                key="prompt-reset",
                disabled=text == default and kept == default,
                on_click=_reset,
                args=(place, default),
            )
    problems = prompt_problems(text, load_prompts(file).placeholders(code, key))
    if problems:
        show_html(problems_view(problems, t), key="prompt-problems")
    if text != default:
        show_html(difference_view(place, text, t), key="prompt-difference")
    st.caption(t("prompts.form_note"))
    if shots := shots_view(place, t):
        with st.expander(t("prompts.shots.title"), key="prompt-shots"):
            show_html(shots, key="prompt-shots-view")


def _use(place: Place) -> None:
    with remembered(_PAGE):
        file, code, key = place
        text = checked_text(file, code, key, st.session_state.get(_draft_key(place)) or "")
        keep_wording(with_text(chosen_wording(), file, code, key, text))
        st.session_state[_draft_key(place)] = text


def _put(place: Place, text: str) -> None:
    st.session_state[_draft_key(place)] = text


def _reset(place: Place, default: str) -> None:
    with remembered(_PAGE):
        keep_wording(with_text(chosen_wording(), *place, None))
        st.session_state[_draft_key(place)] = default


def _reset_all() -> None:
    with remembered(_PAGE):
        for place in own_prompts(chosen_wording()):
            file, code, key = place
            st.session_state[_draft_key(place)] = load_prompts(file).default(code, key)
        keep_wording({})


def _save_to_profile() -> None:
    with remembered(_PAGE):
        profile = chosen_profile()
        if profile is not None:
            changed = profile.model_copy(update={"prompts": chosen_wording()})
            engine().service.store.profiles.save(owner(), changed)
            replace_profile(changed)


def _try(place: Place, t: Catalogue) -> None:
    """Draw the prompt with the values of a recorded run, and the call made again where it
    is wanted.
    """
    file, code, key = place
    users = users_of(file)
    runs = engine().service.store.list(owner(), limit=_RUNS, where=RunFilter(methods=tuple(users)))
    titles = {run.id: f"{run.title} · {local_time(run)}" for run in runs} | {
        one.id: t("prompts.try.sample", question=one.question)
        for one in recordings_with(code, users)
    }
    if not titles:
        st.html(tag("p", t("prompts.try.no_runs"), class_="workbench-empty"))
        st.button(t("nav.ask"), key="prompts-ask", on_click=go_to, args=("ask",))
        return
    if st.session_state.get("prompts.run") not in (None, *titles):
        st.session_state.pop("prompts.run")
    run = st.selectbox(
        t("prompts.try.run"),
        list(titles),
        key="prompts.run",
        format_func=titles.__getitem__,
        **_KEPT,
    )
    trace = engine().call(engine().service.load(run, owner=owner()))
    found = sent_in(trace, file, code, key)
    if found is None:
        show_html(notice(t("prompts.try.unused"), "unused"), key="prompts-unused")
        return
    text = (st.session_state.get(_draft_key(place)) or "").strip()
    try:
        filled = fill(file, code, key, text, found.values)
    except VeriscopeError:
        # What is wrong stands above, beside the text.
        show_html(notice(t("prompts.try.problems"), "problems"), key="prompts-not-filled")
        return
    show_html(filled_view(found, filled, code, t), key="prompts-filled")
    _call(place, text, found, trace.header.spec.models, t)


def _call(
    place: Place,
    text: str,
    found: SentPrompt,
    models: dict[str, ModelSpec],
    t: Catalogue,
) -> None:
    request = found.call.request
    if not isinstance(request, GenerationRequest | ChoiceRequest):
        return
    known = {
        name: spec
        for name, spec in known_models().items()
        if assumed_capabilities(spec).writes or isinstance(request, ChoiceRequest)
    }
    of_run = models.get(found.call.role)
    usual = of_run.name if of_run is not None and of_run.name in known else next(iter(known))
    with st.container(horizontal=True, vertical_alignment="bottom", key="prompts-call"):
        model = st.selectbox(
            t("prompts.try.model"), list(known), index=list(known).index(usual), key="prompts.model"
        )
        st.button(
            t("prompts.try.begin"),
            key="prompts-begin",
            on_click=_begin,
            args=(place, text, found, known[model]),
        )
    st.caption(t("prompts.try.cost"))
    trial = _current_trial()
    if trial is not None and trial.place == place:
        _outcome(trial, of_run.name if of_run else found.call.model, text, t)


def _begin(place: Place, text: str, found: SentPrompt, spec: ModelSpec) -> None:
    with remembered(_PAGE):
        request, key = asked_again(found, text), key_for(spec)
        service = engine().service

        async def call() -> Generation | Choice:
            return await ask_model(await service.model(spec.without_price(), key), request)

        _stop()
        future = engine().submit(call())
        st.session_state[_TRIAL] = Trial(place, text, found, spec.name, future)


def _outcome(trial: Trial, model: str, text: str, t: Catalogue) -> None:
    if not trial.future.done():
        draw_again(_wait, _PERIOD)
        return
    if trial.text != text:
        st.caption(t("prompts.try.older"))
    try:
        reply = trial.future.result()
    except VeriscopeError as error:
        show_error(error, key="prompts-call-error")
        return
    before = recorded_reply(trial.before)
    show_html(replies_view(before, reply, (model, trial.model), t), key="prompts-replies")


def _wait() -> None:
    trial, t = _current_trial(), messages()
    if trial is None or trial.future.done():
        st.rerun()
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(t("prompts.try.under_way"))
        st.button(t("action.stop"), key="prompts-stop", on_click=_stop)


def _current_trial() -> Trial | None:
    return st.session_state.get(_TRIAL)


def _stop() -> None:
    trial: Trial | None = st.session_state.pop(_TRIAL, None)
    if trial is not None:
        trial.future.cancel()

"""The form that makes an annotation session: its items, tasks, guidelines and rules."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import streamlit as st

from app.engine import engine
from app.forms import draw_field, look_of, read_field
from app.jobs import PATIENCE
from app.login import login_reason
from app.parts import (
    choose_one,
    draw_again,
    draw_unfolded,
    remembered,
    section_title,
    show_html,
)
from app.screens.annotation_items import ItemSelection, draw_items, forget_items, names_in
from app.screens.annotation_place import MAKE, open_session
from app.session import language, messages, owner
from components.annotation import size_view
from components.elements import notice
from components.forms import SESSION
from components.guidelines import starting_guidelines
from components.messages import LANGUAGES, Catalogue, integer
from pipelines.annotation.leading import Lead
from pipelines.annotation.sources import FIRST_CONTROLS, make_session
from pipelines.annotation.types import MAX_GUIDELINES, MOST_OVERLAP, SessionSpec, Task, parse_spec
from pipelines.jobs import Job
from pipelines.store.annotation_records import MAX_NAME

PAGE = "annotate"

_SHOW = ("after", "never", "before")
_NUMBERS = ("most_annotators", "lease", "too_fast", "gold_every")
_FIRST_TASKS: tuple[Task, ...] = ("sentence", "answer")
"""Tasks that are chosen until somebody says otherwise: each takes people time."""

_MAKING = "_annotate.making"
_PERIOD = 0.5
_KEPT: Any = {"persist_state": "session"}


def draw_form(t: Catalogue) -> None:
    """Draw the whole form, from the items to the button."""
    section_title(t("annotate.make.items"))
    chosen = draw_items(MAKE, t)
    if chosen is None:
        return
    section_title(t("annotate.make.tasks"))
    tasks, overlap = _tasks(chosen, t)
    if not tasks:
        st.caption(t("annotate.make.no_task"))
        return
    section_title(t("annotate.guidelines"))
    text = draw_guidelines(MAKE, tasks, t)
    section_title(t("annotate.make.rules"))
    controls, sure = _controls(chosen, tasks, t)
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    with left:
        show = choose_one(
            SESSION["show"].title(t),
            _SHOW,
            f"{MAKE}.show",
            lambda name: SESSION["show"].word(name, t),
            help=SESSION["show"].help(t),
            **_KEPT,
        )
    with right:
        offer = "span" in tasks and st.toggle(**look_of(SESSION["offer_spans"], t, f"{MAKE}.offer"))
    fold = st.expander(t("annotate.make.more"), key=f"{MAKE}.unfolded", on_change="rerun")
    draw_unfolded(fold, partial(draw_rules, MAKE, SessionSpec(), t, gold=controls > 0))
    name = st.text_input(
        t("annotate.make.name"),
        key=f"{MAKE}.name",
        placeholder=chosen.name,
        max_chars=MAX_NAME,
        help=t("annotate.make.name.help"),
        **_KEPT,
    )
    if not sure:
        show_html(notice(t("annotate.without_gold.needed"), "gold"), key="annotate-gold")
    st.button(
        t("annotate.make.go"),
        key=f"{MAKE}.go",
        type="primary",
        disabled=not sure,
        on_click=_make,
        args=(chosen, tasks, overlap, text, controls, show, bool(offer), (name or "").strip()),
    )


def _tasks(chosen: ItemSelection, t: Catalogue) -> tuple[list[Task], int]:
    counts = chosen.items.counts()
    first = [task for task in counts if task in _FIRST_TASKS] or list(counts)[:1]
    picked = st.pills(
        options=list(counts),
        selection_mode="multi",
        default=first,
        format_func=lambda task: t(f"annotate.task.{task}"),
        **look_of(SESSION["tasks"], t, f"{MAKE}.tasks.{'-'.join(counts)}"),
    )
    overlap = int(
        st.number_input(
            t("annotate.overlap"),
            min_value=1,
            max_value=MOST_OVERLAP,
            value=2,
            key=f"{MAKE}.overlap",
            help=t("annotate.overlap.help"),
            **_KEPT,
        )
    )
    tasks: list[Task] = [*filter(picked.__contains__, counts)]
    show_html(size_view(counts, tasks, overlap, t), key="annotate-size")
    return tasks, overlap


def draw_guidelines(place: str, tasks: Sequence[Task], t: Catalogue) -> str:
    """Draw the guidelines, written and as annotators will see them; a text to begin with is there.

    That text follows the tasks and its language for as long as nobody has changed it.
    """
    chosen = choose_one(
        t("annotate.guidelines.start"),
        sorted(LANGUAGES, key=lambda one: one != language()),
        f"{place}.language.{language()}",
        lambda name: t(f"language.{name}"),
        help=t("annotate.guidelines.start.help"),
        **_KEPT,
    )
    key, before = f"{place}.guidelines", f"_{place}.guidelines"
    start = starting_guidelines(tasks, chosen)
    if st.session_state.get(key) in (None, "", st.session_state.get(before)):
        st.session_state[key] = start
    st.session_state[before] = start
    return edit_guidelines(key, t)


def edit_guidelines(key: str, t: Catalogue) -> str:
    """Draw the field of that key, with a preview beside it."""
    write, preview = st.tabs([t("annotate.guidelines.write"), t("annotate.guidelines.preview")])
    with write:
        text = st.text_area(
            t("annotate.guidelines"),
            key=key,
            height=320,
            max_chars=MAX_GUIDELINES,
            label_visibility="collapsed",
            **_KEPT,
        )
    with preview, st.container(border=True, key=f"card-{key}"):
        st.markdown(text or t("annotate.guidelines.none"))
    return text or ""


def _controls(chosen: ItemSelection, tasks: Sequence[Task], t: Catalogue) -> tuple[int, bool]:
    """Return how many control items there will be, and whether their number is meant."""
    known = len(chosen.items.controls(tasks))
    controls = 0
    if known:
        left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
        with left:
            controls = int(
                st.number_input(
                    t("annotate.controls", count=integer(known)),
                    min_value=0,
                    max_value=known,
                    value=min(FIRST_CONTROLS, known // 4),
                    key=f"{MAKE}.controls.{known}",
                    help=t("annotate.controls.help"),
                    **_KEPT,
                )
            )
        with right:
            st.toggle(
                t("annotate.keep"),
                value=True,
                key=f"{MAKE}.keep",
                help=t("annotate.keep.help"),
                **_KEPT,
            )
    if controls:
        return controls, True
    if not known:
        st.caption(t("annotate.controls.later"))
    sure = st.checkbox(**look_of(SESSION["without_gold"], t, f"{MAKE}.without_gold"))
    return 0, sure


def draw_rules(place: str, spec: SessionSpec, t: Catalogue, *, gold: bool = True) -> None:
    """Draw who may join, and how items are given out; at first as in `spec`."""
    st.text_area(
        value="\n".join(spec.names or ()),
        placeholder=t("annotate.names.any"),
        height=100,
        **look_of(SESSION["names"], t, f"{place}.names"),
    )
    reason = login_reason(t)
    look: dict[str, Any] = {"help": reason} if reason else {}
    # What is on can be turned off, also where nobody can log in any more.
    look["disabled"] = bool(reason) and not spec.login
    draw_field(SESSION["login"], t, f"{place}.login", spec.login, **look)
    with st.container(key=f"settings-{place}"):
        for name in _NUMBERS:
            off = name == "gold_every" and not gold
            value = getattr(spec, name)
            draw_field(SESSION[name], t, f"{place}.{name}", value, disabled=off)


def chosen_rules(place: str, spec: SessionSpec) -> dict[str, Any]:
    """Return what `draw_rules` was given, for a specification; what it never drew is as
    in `spec`.
    """
    rules = {
        name: read_field(SESSION[name], f"{place}.{name}", getattr(spec, name))
        for name in ("login", *_NUMBERS)
    }
    lines = st.session_state.get(f"{place}.names")
    names = spec.names if lines is None else tuple(names_in(lines)) or None
    return {"names": names, **rules}


def _make(
    chosen: ItemSelection,
    tasks: Sequence[Task],
    overlap: int,
    text: str,
    controls: int,
    show: str,
    offer: bool,
    name: str,
) -> None:
    """Begin to make the session; a thousand runs take a while. Called from a callback."""
    with remembered(PAGE):
        told = {"tasks": tuple(tasks), "show": show, "offer_spans": offer}
        rules = chosen_rules(MAKE, SessionSpec())
        spec = parse_spec({**told, **rules, "without_gold": controls == 0})
        # As the field of the evaluation's seed, where there is one.
        seed = int(st.session_state.get(f"{MAKE}.seed") or 0)
        keep = chosen.name if st.session_state.get(f"{MAKE}.keep", True) else ""
        make_beside(
            partial(
                make_session,
                engine().service.store,
                owner(),
                name or chosen.name[:MAX_NAME],
                spec,
                chosen.items,
                overlap=overlap,
                guidelines=text,
                controls=controls,
                seed=seed,
                keep=keep[:MAX_NAME],
            )
        )


def is_making() -> bool:
    """Return whether a session is being made."""
    return st.session_state.get(_MAKING) is not None


def make_beside(make: partial[Lead]) -> None:
    """Make a session beside the page, and look at it as soon as it is there. Called from a
    callback.
    """
    job: Job[None, Lead] = Job("session", lambda _: make(), None).start()
    st.session_state[_MAKING] = job
    if job.wait(PATIENCE):
        _take_made()


def draw_making() -> None:
    """Show that a session is being made; the page goes on to it as soon as it is there."""

    def body() -> None:
        job: Job[None, Lead] | None = st.session_state.get(_MAKING)
        st.markdown(messages()("annotate.make.making"))
        if job is None or not job.going_on:
            with remembered(PAGE):
                _take_made()
            st.rerun()

    draw_again(body, _PERIOD)


def _take_made() -> None:
    """Look at the session that was made. Raises VeriscopeError where none could be."""
    job: Job[None, Lead] | None = st.session_state.pop(_MAKING, None)
    if job is None:
        return
    lead = job.result()
    forget_items(MAKE)
    for name in ("name", "guidelines"):
        st.session_state.pop(f"{MAKE}.{name}", None)
    open_session(lead.session_id)

"""The Annotate page: sessions in which several people label the same items.

The address says what is shown: `?session=ID` a session of this browser, `?link=TOKEN` what a secret
link allows. Without either it lists this browser's sessions and offers a new one.
"""

from __future__ import annotations

from functools import lru_cache, partial

import streamlit as st

from app.engine import engine
from app.login import allowed_by, close_link, current_link, require_link
from app.page import (
    Action,
    choose_one,
    draw_again,
    draw_error,
    draw_unfolded,
    guarded,
    page_title,
    redraw_whole,
    remembered,
    section_title,
    show_error,
    show_html,
    show_run,
)
from app.screens.annotate.decide import draw_decide
from app.screens.annotate.label import draw_invitation, draw_worker
from app.screens.annotate.links import FOLD, close_session, draw_links, open_session, opened_session
from app.screens.annotate.make import PAGE, draw_form, draw_making, is_making, make_beside
from app.screens.annotate.results import draw_results
from app.screens.annotate.settings import draw_import_session, draw_settings, forget_said
from app.screens.runs import local_time
from app.session import language, messages, owner
from components.annotate.sessions import (
    Agreed,
    about_view,
    closed_notice,
    empty_view,
    progress_view,
    session_card,
)
from components.base.words import Catalogue, starting_guidelines
from pipelines.annotation.labelling import Worker
from pipelines.annotation.sessions import Invitation, Lead
from pipelines.annotation.types import TASKS, SessionSpec, Task
from pipelines.annotation.watching import SessionWatch, agreement_now, watch_of
from pipelines.errors import NotFoundError, VeriscopeError
from pipelines.samples.annotating import EXAMPLE_TASKS, example_session
from pipelines.store.annotations import SessionStanding, StoredSession

# How a session goes on, drawn again by itself while people label.

PERIOD = 3.0
"""Seconds between two looks at whether anything is new."""

_ERRORS = "annotate-progress"


def draw_progress(lead: Lead, t: Catalogue) -> None:
    """Draw the part of the page; what is shown changes in place."""
    # Somebody else's runs cannot be opened here.
    opens_runs = lead.session.owner == owner()

    def body() -> None:
        t = messages()
        with guarded(t("annotate.part.progress"), key="progress"):
            draw_error(_ERRORS)
            try:
                require_link()
                standing = lead.store.annotations.standing(lead.session_id)
            except VeriscopeError as error:
                show_error(error, key="progress-error")
                return
            watch = watched(standing)
            spec = SessionSpec.model_validate(standing.spec)
            html = progress_view(watch, spec, t, opens_runs=opens_runs)
            show_html(html, key="session-progress", on_action=_act)

    draw_again(body, PERIOD)


def watched(standing: SessionStanding) -> SessionWatch:
    """Return what there is to see of a session that stands so; computed once for each standing."""
    return _watched(standing.id, standing.model_dump_json())


@lru_cache(maxsize=16)
def _watched(session: str, standing: str) -> SessionWatch:
    del standing
    return watch_of(engine().service.store.annotations.whole(session))


def _act(action: Action) -> None:
    """Show the run of an item that was asked for."""
    if action["action"] == "open_run" and action["value"]:
        with remembered(_ERRORS):
            show_run(action["value"])


# A session as the person who leads it sees it: progress, decisions, results, settings.

PARTS = ("progress", "decide", "results", "settings")
"""The parts of the page."""


def draw_session(lead: Lead, t: Catalogue) -> None:
    """Draw all of it."""
    try:
        stored, standing = lead.session, lead.store.annotations.standing(lead.session_id)
    except VeriscopeError as error:
        # It was deleted while the page was open.
        page_title(t("annotate.title"), t("annotate.note"))
        draw_error("annotate", error)
        return
    page_title(stored.name, t("annotate.lead.note"))
    draw_error("annotate")
    if not current_link():
        st.button(t("annotate.all"), key="annotate.all", on_click=close_session)
    with guarded(t("annotate.title"), key="about"):
        show_html(about_view(standing, lead.spec, t), key="session-about")
    if standing.closed is not None:
        show_html(closed_notice(t), key="session-closed")
    part = choose_one(
        t("annotate.part"),
        PARTS,
        f"annotate.part.{lead.session_id}",
        lambda name: t(f"annotate.part.{name}"),
        label_visibility="collapsed",
        persist_state="session",
    )
    if part != "settings":
        forget_said()
    with guarded(t(f"annotate.part.{part}"), key=part):
        match part:
            case "progress":
                draw_links(lead, t, unfolded=not standing.people)
                draw_progress(lead, t)
            case "decide":
                draw_decide(lead, t)
            case "results":
                draw_results(lead, t)
            case _:
                draw_settings(lead, t)


# The sessions of this browser, and the form that makes a new one.

_SHOWN = "annotate.shown_count"
_PAGE = 20

_CHEAP = 500
"""Items and events up to which the list says how far people agree."""


def draw_sessions(t: Catalogue) -> None:
    """Draw the list, and the form below it."""
    if is_making():
        draw_making()
        return
    store = engine().service.store.annotations
    known = store.list(owner())
    if known:
        section_title(t("annotate.list"))
        _list(known, store.standings(owner()), t)
    else:
        show_html(empty_view(t), key="annotate-empty")
        st.button(
            t("annotate.example"),
            key="annotate.example",
            type="primary",
            help=t("annotate.example.help"),
            on_click=_make_example,
        )
    fold = st.expander(t("annotate.make"), key=FOLD, on_change="rerun")
    draw_unfolded(fold, partial(draw_form, t))
    fold = st.expander(t("annotate.import.session"), key="annotate.import", on_change="rerun")
    draw_unfolded(fold, partial(draw_import_session, t))


def _list(known: list[StoredSession], standings: dict[str, SessionStanding], t: Catalogue) -> None:
    limit = st.session_state.get(_SHOWN, _PAGE)
    for stored in known[:limit]:
        standing = standings.get(stored.id)
        if standing is None:
            # It was deleted meanwhile.
            continue
        with st.container(
            border=True,
            horizontal=True,
            vertical_alignment="center",
            key=f"card-session-{stored.id}",
        ):
            agreed = _agreed(standing)
            st.html(session_card(stored, standing, agreed, local_time(stored), t))
            st.button(
                t("action.open"), key=f"open-{stored.id}", on_click=open_session, args=(stored.id,)
            )
    if len(known) > limit:
        st.button(t("runs.more"), key="annotate.more", on_click=_show_more)


def _agreed(standing: SessionStanding) -> Agreed | None:
    """Return how far people agree on the first task, where that is quickly known."""
    items = standing.items + standing.gold
    if not standing.events or max(items, standing.events) > _CHEAP:
        return None
    task = next(task for task in TASKS if task in standing.tasks)
    return _agreement(standing.id, task, (standing.events, items, standing.gold))


@lru_cache(maxsize=64)
def _agreement(session: str, task: Task, counts: tuple[int, int, int]) -> Agreed:
    """Return the agreement: while there are so many events, items and control items, it stays
    the same.
    """
    del counts
    return Agreed(task, agreement_now(engine().service.store.annotations.whole(session), task))


def _show_more() -> None:
    st.session_state[_SHOWN] = st.session_state.get(_SHOWN, _PAGE) + _PAGE


def _make_example() -> None:
    with remembered(PAGE):
        t = messages()
        make_beside(
            partial(
                example_session,
                engine().service.store,
                owner(),
                t("annotate.example.name"),
                starting_guidelines(EXAMPLE_TASKS, language()),
            )
        )
    redraw_whole()


_WRONG = "_annotate.wrong"


def show() -> None:
    """Draw the page."""
    t = messages()
    try:
        found = _who()
    except VeriscopeError as error:
        page_title(t("annotate.title"), t("annotate.note"))
        draw_error("annotate", error)
        if guest():
            _way_out(t)
        else:
            draw_sessions(t)
        return
    match found:
        case Worker():
            draw_worker(found, t)
        case Invitation():
            draw_invitation(found, t)
        case Lead():
            draw_session(found, t)
        case None:
            page_title(t("annotate.title"), t("annotate.note"))
            draw_error("annotate")
            draw_sessions(t)
    if guest():
        _way_out(t)


def guest() -> bool:
    """Return whether the visitor came by a secret link, and so sees only its session."""
    return bool(current_link())


def _way_out(t: Catalogue) -> None:
    """Offer a way back from a link, for visitors who lead sessions of their own in this browser.

    Other visitors have no such sessions, and see no way back.
    """
    try:
        known = engine().service.store.annotations.list(owner())
    except VeriscopeError:
        return
    if known:
        st.button(t("annotate.leave"), key="annotate.leave", type="tertiary", on_click=close_link)


def _who() -> Lead | Invitation | Worker | None:
    if token := current_link():
        # A wrong link in the address is one wrong try, however often the page is drawn.
        tried, error = st.session_state.get(_WRONG, ("", None))
        if tried == token and error is not None:
            raise error
        try:
            return allowed_by(token)
        except NotFoundError as problem:
            st.session_state[_WRONG] = token, problem
            raise
    session = opened_session()
    if not session:
        return None
    try:
        lead = Lead(engine().service.store, session, owner())
    except VeriscopeError:
        close_session()
        raise
    open_session(session)
    return lead

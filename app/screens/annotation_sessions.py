"""The sessions of this browser, and the form that makes a new one."""

from __future__ import annotations

from functools import lru_cache, partial

import streamlit as st

from app.engine import engine
from app.parts import draw_unfolded, redraw_whole, remembered, section_title, show_html
from app.screens.annotation_exchange import draw_import_session
from app.screens.annotation_form import PAGE, draw_form, draw_making, is_making, make_beside
from app.screens.annotation_place import FOLD, open_session
from app.screens.run_row import local_time
from app.session import language, messages, owner
from components.annotation import Agreed, empty_view, session_card
from components.guidelines import starting_guidelines
from components.messages import Catalogue
from pipelines.annotation.types import TASKS, Task
from pipelines.annotation.watching import agreement_now
from pipelines.samples.annotating import EXAMPLE_TASKS, example_session
from pipelines.store.annotation_lists import SessionStanding
from pipelines.store.annotation_records import StoredSession

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

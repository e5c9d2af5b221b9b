"""The Annotate page: sessions in which several people label the same items.

The address says what is shown: `?session=ID` a session of this browser, `?link=TOKEN` what a secret
link allows. Without either it lists this browser's sessions and offers a new one.
"""

from __future__ import annotations

import streamlit as st

from app.engine import engine
from app.links import allowed_by, close_link, current_link
from app.parts import draw_error, page_title
from app.screens.annotation_lead import draw_session
from app.screens.annotation_place import close_session, open_session, opened_session
from app.screens.annotation_sessions import draw_sessions
from app.screens.annotation_task import draw_invitation, draw_worker
from app.session import messages, owner
from components.messages import Catalogue
from pipelines.annotation.joining import Invitation
from pipelines.annotation.leading import Lead
from pipelines.annotation.working import Worker
from pipelines.errors import NotFoundError, VeriscopeError

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

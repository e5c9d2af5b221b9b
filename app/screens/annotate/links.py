"""The secret links of a session: made, shown once, listed, and withdrawn."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from functools import partial
from urllib.parse import urlsplit, urlunsplit

import streamlit as st

from app.login import require_link
from app.page import choose_one, draw_error, draw_unfolded, go_to, remembered, show_html
from app.screens.runs import local_moment
from components.annotate.sessions import LinkState, link_line, state_of
from components.base.elements import notice
from components.base.words import Catalogue
from pipelines.annotation.sessions import Lead
from pipelines.store.annotations import Link, Role, utc_now

_ERRORS = "annotate-links"
_MADE = "_annotate.link"
_ROLES: tuple[Role, ...] = ("join", "lead", "annotator")
_DAYS = (7, 30, 90, 0)
"""After how many days a link expires; 0: never."""


def draw_links(lead: Lead, t: Catalogue, *, unfolded: bool) -> None:
    """Draw the part of the page, folded away once people have joined."""
    fold = st.expander(
        t("annotate.links"),
        expanded=unfolded,
        key=f"annotate.links.{lead.session_id}",
        on_change="rerun",
    )
    draw_unfolded(fold, partial(_draw, lead, t))


def _draw(lead: Lead, t: Catalogue) -> None:
    draw_error(_ERRORS)
    st.caption(t("annotate.links.note"))
    people = {one.number: one.name for one in lead.annotators() if one.kind == "person"}
    roles = _ROLES if people else _ROLES[:2]
    left, right = st.columns([3, 2], gap="medium", vertical_alignment="bottom")
    with left:
        role = choose_one(
            t("annotate.link.role"),
            roles,
            "annotate.link.role",
            lambda name: t(f"annotate.link.{name}"),
        )
    with right:
        days = st.selectbox(
            t("annotate.link.days"),
            _DAYS,
            index=1,
            key="annotate.link.days",
            format_func=lambda count: (
                t("annotate.link.days.count", count=count)
                if count
                else t("annotate.link.days.never")
            ),
        )
    whose: int | None = None
    if role == "annotator":
        whose = st.selectbox(
            t("annotate.link.whose"),
            list(people),
            key="annotate.link.whose",
            format_func=lambda number: people.get(number, ""),
        )
    st.caption(t(f"annotate.link.{role}.note"))
    st.button(
        t("annotate.link.make"),
        key="annotate.link.make",
        type="primary",
        on_click=_make,
        args=(lead, role, whose, days),
    )
    _draw_made(lead, t)
    _draw_list(lead, t)


def _draw_made(lead: Lead, t: Catalogue) -> None:
    """Draw the link that was just made, until it is put away."""
    made: tuple[str, Role, str] | None = st.session_state.get(_MADE)
    if made is None or made[0] != lead.session_id:
        return
    with st.container(border=True, key="card-made-link"):
        show_html(notice(t("annotate.link.once"), "once", role="status"), key="link-once")
        st.code(made[2], language=None, wrap_lines=True)
        st.button(t("annotate.link.hide"), key="annotate.link.hide", on_click=_hide)


def _make(lead: Lead, role: Role, whose: int | None, days: int) -> None:
    with remembered(_ERRORS):
        require_link()
        token = lead.invite(role, annotator=whose, days=days or None)
        st.session_state[_MADE] = lead.session_id, role, address_of(st.context.url, token)


def _hide() -> None:
    st.session_state.pop(_MADE, None)


def address_of(page: str | None, token: str) -> str:
    """Return the absolute address of a link, on the page at `page`; a relative one where it is
    unknown.
    """
    if not page:
        return f"/annotate?link={token}"
    parts = urlsplit(page)
    return urlunsplit((parts.scheme, parts.netloc, parts.path or "/annotate", f"link={token}", ""))


def _draw_list(lead: Lead, t: Catalogue) -> None:
    links = lead.links()
    if not links:
        return
    now = utc_now()
    names = {one.number: one.name for one in lead.annotators()}
    known = sorted(links, key=lambda one: state_of(one, now) != "valid")
    for link in known:
        state: LinkState = state_of(link, now)
        with st.container(
            border=True, horizontal=True, vertical_alignment="center", key=f"card-link-{link.id}"
        ):
            whose = names.get(link.annotator, "") if link.annotator is not None else ""
            expires = local_moment(link.expires) if link.expires else ""
            st.html(link_line(link, state, whose, _made_at(link), expires, t))
            if state == "valid":
                asking_button(
                    t("annotate.link.withdraw"),
                    f"withdraw-{link.id}",
                    t("annotate.link.withdraw.sure"),
                    partial(_withdraw, lead, link.id),
                )


def _made_at(link: Link) -> str:
    created: datetime = link.created
    return local_moment(created)


def asking_button(word: str, key: str, sure: str, act: Callable[[], None]) -> None:
    """Draw a button that asks before it acts."""
    with st.popover(word, key=f"ask-{key}"):
        st.text(sure)
        st.button(word, key=f"sure-{key}", type="primary", on_click=act)


def _withdraw(lead: Lead, link: str) -> None:
    with remembered(_ERRORS):
        require_link()
        lead.revoke(link)


# Where the Annotate page stands: which session it looks at, kept in the address, or its form.

MAKE = "annotate.make"
"""The place of the form that makes a session, with which the keys of its controls begin."""

FOLD = "annotate.new"
"""The fold in which that form stands."""

_OPENED = "_annotate.opened"


def opened_session() -> str | None:
    """Return the session of the address, else the one that was looked at."""
    return st.query_params.get("session") or st.session_state.get(_OPENED)


def open_session(session: str) -> None:
    """Look at a session of this browser. Called from a callback."""
    st.session_state[_OPENED] = session
    if st.query_params.get("session") != session:
        st.query_params["session"] = session


def close_session() -> None:
    """Go back to the list. Called from a callback."""
    st.session_state.pop(_OPENED, None)
    st.query_params.pop("session", None)


def label_evaluation(evaluation: str) -> None:
    """Offer a session of the answers of an evaluation. Called from a callback on any page."""
    close_session()
    chosen = {FOLD: True, f"{MAKE}.from": "evaluation", f"{MAKE}.evaluation": evaluation}
    for key, value in chosen.items():
        st.session_state[key] = value
    go_to("annotate")

"""Which session, or link, the Annotate page looks at: kept in the address."""

from __future__ import annotations

import streamlit as st

_OPENED = "_annotate.opened"


def opened_session() -> str | None:
    """The session of the address, else the one that was looked at."""
    return st.query_params.get("session") or st.session_state.get(_OPENED)


def open_session(session: str) -> None:
    """From a callback: look at a session of this browser."""
    st.session_state[_OPENED] = session
    if st.query_params.get("session") != session:
        st.query_params["session"] = session


def close_session() -> None:
    """From a callback: go back to the list."""
    st.session_state.pop(_OPENED, None)
    st.query_params.pop("session", None)


def current_link() -> str:
    """The secret link of the address, "" where there is none."""
    return st.query_params.get("link") or ""


def close_link() -> None:
    """From a callback: leave the link, for this browser's own sessions."""
    st.query_params.pop("link", None)

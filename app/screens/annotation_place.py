"""Which session the Annotate page looks at: kept in the address."""

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

"""Where the Annotate page stands: which session it looks at, kept in the address, or its form."""

from __future__ import annotations

import streamlit as st

from app.parts import go_to

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

"""The secret link of the address: what it allows the visitor, and whether it still does.

A page may stand open for days. What is done on it is done only while its link works: since the page
was drawn, the link may have been withdrawn or have expired.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import streamlit as st

from app.engine import engine
from pipelines.annotation.joining import Invitation, enter
from pipelines.annotation.leading import Lead
from pipelines.annotation.working import Worker


def current_link() -> str:
    """Return the secret link of the address, "" where there is none."""
    return st.query_params.get("link") or ""


def close_link() -> None:
    """Leave the link, for this browser's own sessions. Called from a callback."""
    st.query_params.pop("link", None)


def allowed_by(token: str) -> Lead | Invitation | Worker:
    """Return what a secret link allows the visitor of this page. Raises as `enter`."""
    return _entering(token)()


def require_link() -> None:
    """Raise NotFoundError where the link does not work any more. Called from a callback or a
    fragment.
    """
    link_check()()


def link_check() -> Callable[[], object]:
    """Return a check like `require_link`, for the link of now, to be called outside of the page
    as well.
    """
    token = current_link()
    return _entering(token) if token else lambda: None


def _entering(token: str) -> Callable[[], Lead | Invitation | Worker]:
    return partial(enter, engine().service.store, token, st.context.ip_address or "local")

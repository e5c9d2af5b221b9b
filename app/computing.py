"""What a page shows in place of a result that is still being computed."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import streamlit as st

from app.parts import draw_again, show_error, show_html
from app.session import messages
from components.elements import notice
from pipelines.errors import VeriscopeError
from pipelines.jobs import NotYet

_LOOK = 1.0
"""Seconds between two looks at a result that is being computed."""


@contextmanager
def shown(key: str) -> Iterator[None]:
    """Show what is being computed, or why that failed, in place of what the block draws.

    `key` is different for each part of a page.
    """
    try:
        with st.spinner(messages()("evaluate.computing")):
            yield
    except NotYet as asked:
        _wait(asked, key)
    except VeriscopeError as error:
        show_error(error, key=f"computing-error-{key}")


def _wait(asked: NotYet, key: str) -> None:
    """Say that the rest is being computed, and draw the page again when it is."""

    def body() -> None:
        said = messages()("evaluate.computing.long")
        show_html(notice(said, "computing", role="status"), key=f"computing-{key}")
        if not asked.job.going_on:
            st.rerun()

    draw_again(body, _LOOK)

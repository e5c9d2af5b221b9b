"""The EVER page: every sentence, its concepts, and what became of both."""

from __future__ import annotations

from app.method_page import show_page


def show() -> None:
    """Draw the page."""
    show_page("ever")

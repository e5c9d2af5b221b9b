"""The Rowen page: the question put differently, in two languages and to two models."""

from __future__ import annotations

from app.method_page import show_page


def show() -> None:
    """Draw the page."""
    show_page("rowen")

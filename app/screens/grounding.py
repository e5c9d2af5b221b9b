"""The Grounding page: HAARAG's retrieval and alignment, and the small judges' matrix."""

from __future__ import annotations

from app.method_page import show_page


def show() -> None:
    """Draw the page."""
    show_page("grounding")

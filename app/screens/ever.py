"""The EVER page: every sentence, its concepts, and what became of both."""

from __future__ import annotations

from app.method_page import Panel, show_page
from components.ever_view import ever_view
from pipelines.methods.ever.settings import EVER_DECIDABLE


def show() -> None:
    """Draw the page."""
    show_page("ever", [Panel("ever", EVER_DECIDABLE, ever_view)])

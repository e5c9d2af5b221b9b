"""The Rowen page: the question put differently, in two languages and to two models."""

from __future__ import annotations

from app.method_page import Panel, show_page
from components.rowen_view import rowen_view
from pipelines.methods.rowen.settings import ROWEN_DECIDABLE


def show() -> None:
    """Draw the page."""
    show_page("rowen", [Panel("rowen", ROWEN_DECIDABLE, rowen_view)])

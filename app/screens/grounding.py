"""The Grounding page: HAARAG's retrieval and alignment, and the small judges' matrix."""

from __future__ import annotations

from app.method_page import Panel, show_page
from components.haarag_view import haarag_view
from components.slm_view import slm_view
from pipelines.methods.haarag.settings import HAARAG_DECIDABLE
from pipelines.methods.slm.settings import SLM_DECIDABLE


def show() -> None:
    """Draw the page."""
    show_page(
        "grounding",
        [Panel("haarag", HAARAG_DECIDABLE, haarag_view), Panel("slm", SLM_DECIDABLE, slm_view)],
    )

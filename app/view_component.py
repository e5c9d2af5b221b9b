"""Shows the HTML of `components/` inside a Streamlit page and keeps it up to date in place.

Streamlit sends a component's script and style again with everything it shows. A run is shown
again three times a second, so both are sent once, by a component that shows nothing, and the
component that shows HTML waits for them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from app.session import language
from components.theme import ASSETS, view_code

__all__ = ["Action", "load_code", "show_html"]

Action = dict[str, str | None]
"""What a button inside the HTML asks for: `action`, and the `value` it is asked for."""

_code = component("veriscope_code", js=f"{view_code()}\nexport default function () {{}}")
_view = component(
    "veriscope_view",
    html='<div class="vs-root"></div>',
    js=(ASSETS / "streamlit.js").read_text(encoding="utf-8"),
)


def load_code() -> None:
    """Give the page what `show_html` needs; once in every pass of the script."""
    _code(key="veriscope-code")


def show_html(html: str, *, key: str, on_action: Callable[[Action], None] | None = None) -> None:
    """Show `html`, which must come from `components/`: Streamlit does not escape it.

    An element with the same `key` is patched, so that focus, scroll positions and opened details
    stay. `on_action` is called, as a widget's callback, when a button with `data-action` is used.
    """

    def asked() -> None:
        state: Any = st.session_state.get(key)
        action = state.get("action") if state else None
        if action and on_action is not None:
            on_action(action)

    _view(
        key=key,
        data={"html": str(html), "lang": "zh-CN" if language() == "zh" else "en"},
        on_action_change=asked,
    )

"""Shows the HTML of `components/` inside a Streamlit page and keeps it up to date in place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from components.theme import script, stylesheet
from pipelines.types import Language

__all__ = ["Action", "show_html"]

Action = dict[str, str | None]
"""What a button inside the HTML asks for: `action`, and the `value` it is asked for."""

_START = """
export default function ({ data, parentElement, setTriggerValue }) {
  const root = parentElement.querySelector(".vs-root");
  root.lang = data.lang;
  if (!root.vsAsk) root.addEventListener("vs-action", (event) => root.vsAsk(event.detail));
  root.vsAsk = (detail) => setTriggerValue("action", detail);
  patch(root, data.html);
  return mount(root);
}
"""

_component = component(
    "veriscope_view",
    html='<div class="vs-root"></div>',
    css=stylesheet(),
    js=script() + _START,
)


def show_html(
    html: str,
    *,
    key: str,
    language: Language,
    on_action: Callable[[Action], None] | None = None,
) -> None:
    """Show `html`, which must come from `components/`: Streamlit does not escape it.

    An element with the same `key` is patched, so that focus, scroll positions and opened details
    stay. `on_action` is called, as a widget's callback, when a button with `data-action` is used.
    """

    def asked() -> None:
        state: Any = st.session_state.get(key)
        action = state.get("action") if state else None
        if action and on_action is not None:
            on_action(action)

    _component(
        key=key,
        data={"html": str(html), "lang": "zh-CN" if language == "zh" else "en"},
        on_action_change=asked,
    )

"""The component in which people label an item or decide one, on a page of Streamlit."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st
from streamlit.components.v2 import component

from components.theme import ASSETS, labelling_code

# As with other views: the code is sent once by a component that shows nothing, and the component
# that shows an item waits for it. It stands in the page itself and not in a shadow of its own,
# because browsers do not agree on what a selection inside a shadow is.
_code = component(
    "veriscope_labelling_code", js=f"{labelling_code()}\nexport default function () {{}}"
)
_labelling = component(
    "veriscope_labelling",
    html='<div class="vs-root vs-lab"></div>',
    js=(ASSETS / "labelling.js").read_text(encoding="utf-8"),
    isolate_styles=False,
)


def show_labelling(
    data: dict[str, Any], *, key: str, on_request: Callable[[dict[str, Any]], None]
) -> None:
    """Show an item: `data` is what `components.labelling` makes of it.

    `on_request` is called, as a widget's callback, with everything that the component asks for:
    `{"action": ..., "item": ..., "client": ..., ...}`. What is missing or wrong in it is for
    `on_request` to find out: it comes from a browser.
    """

    count = f"_labelling.{key}"

    def asked() -> None:
        st.session_state[count] = st.session_state.get(count, 0) + 1
        state: Any = st.session_state.get(key)
        request = state.get("request") if state else None
        if isinstance(request, dict) and isinstance(request.get("action"), str):
            on_request(request)

    _code(key="labelling-code")
    # By the count the component knows an answer, also where it is the same as the one before.
    answer = data | {"asked": st.session_state.get(count, 0)}
    _labelling(key=key, data=answer, on_request_change=asked)

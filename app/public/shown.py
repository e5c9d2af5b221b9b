"""Shows the HTML of `components/` inside a Gradio page and keeps it up to date in place.

Each piece lives in a shadow root, so that neither Gradio's style sheets nor ours reach into the
other's. Style and script are given to the page once, in its head.
"""

from __future__ import annotations

import json
from typing import Any

import gradio as gr

from components.theme import script, stylesheet

__all__ = ["HEAD", "html_view"]

HEAD = f"""<script type="module">
{script()}
const sheet = new CSSStyleSheet();
sheet.replaceSync({json.dumps(stylesheet())});
globalThis.veriscope ??= Promise.withResolvers();
globalThis.veriscope.resolve({{ mount, patch, sheet }});
</script>"""
"""What `html_view` needs in the head of the page."""

_TEMPLATE = '<div class="vs-host"></div>'

_SHOW = """
const host = element.querySelector(".vs-host");
const shadow = host.attachShadow({ mode: "open" });
const root = document.createElement("div");
root.className = "vs-root";
shadow.append(root);
root.addEventListener("vs-action", (event) => trigger("select", event.detail));
globalThis.veriscope ??= Promise.withResolvers();
globalThis.veriscope.promise.then(({ mount, patch, sheet }) => {
  shadow.adoptedStyleSheets = [sheet];
  const show = () => {
    root.lang = props.lang;
    patch(root, props.value ?? "");
  };
  mount(root);
  show();
  watch(["value", "lang"], show);
});
"""


def html_view(html: str = "", *, name: str, **options: Any) -> gr.HTML:
    """A place for `html`, which must come from `components/`: it is not escaped.

    A button with `data-action` triggers the event `select`, with `action` and `value`.
    """
    return gr.HTML(
        html,
        html_template=_TEMPLATE,
        js_on_load=_SHOW,
        apply_default_css=False,
        padding=False,
        elem_id=name,
        lang="en",
        **options,
    )

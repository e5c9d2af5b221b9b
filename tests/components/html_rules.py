"""What HTML with foreign text in it may be made of."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tests.components.html_tree import Node, read

_RUNNING = {
    *("script", "iframe", "frame", "frameset", "object", "embed", "applet", "portal", "template"),
    *("meta", "link", "style", "base", "form", "textarea", "select", "isindex"),
    *("img", "image", "picture", "source", "video", "audio", "svg", "math", "slot", "body"),
    *("marquee", "plaintext", "xmp", "noscript", "title", "dialog"),
}
"""Elements that run, load, send or take over something; the components write none of them."""

_CHOICES = ("radio", "checkbox")
"""The components switch views with these."""

_LOADING = re.compile(
    r"on|src|action|formaction|xlink|background|poster|ping|data$|code|cite|autofocus|contenteditable|accesskey"
)
_ADDRESS = re.compile(r"https?:|mailto:|#", re.I)
_STYLE = re.compile(r"[a-z0-9-]+:[a-z0-9.%()+, -]*(;[a-z0-9-]+:[a-z0-9.%()+, -]*)*;?", re.I)
HIDDEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)
"""Characters that control something or turn the writing around."""

_COLOURS = re.compile(r"\x1b\[(48;5;\d{1,3};38;5;16|0)m")


def faults(html: str) -> Iterator[str]:
    """What in a fragment of a page could run, load or rearrange something."""
    if found := HIDDEN.search(html):
        yield f"the character U+{ord(found[0]):04X}"
    # Ids are made of names that are all alike here.
    for node in read(html, unique_ids=False).walk():
        yield from _faults_of(node)


def _faults_of(node: Node) -> Iterator[str]:
    if node.name in _RUNNING or (node.name == "input" and node.attributes["type"] not in _CHOICES):
        yield f"<{node.name}>"
    for name, value in node.attributes.items():
        if _LOADING.match(name):
            yield f"<{node.name} {name}>"
        if name == "href" and not _ADDRESS.match(value):
            yield f"href={value!r}"
        if name == "style" and ("url" in value.lower() or not _STYLE.fullmatch(value)):
            yield f"style={value!r}"


def terminal_faults(text: str, *, colour: bool = False) -> list[str]:
    """Characters that a terminal would obey; `colour` allows the shades of tokens."""
    plain = _COLOURS.sub("", text) if colour else text
    plain = plain.replace("\u2028", "").replace("\u2029", "")
    return [f"U+{ord(found[0]):04X}" for found in HIDDEN.finditer(plain)]

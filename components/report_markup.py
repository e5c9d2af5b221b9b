"""Makes the HTML of views fit for one file: strict policy, unique ids, one order of headings.

It reads what `components.markup` writes and nothing else: there, no text can look like a tag.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from html import unescape

from components.markup import Html

_ATTRIBUTE = r"""\s[a-z][a-z0-9-]*(?:=(?:"[^"]*"|'[^']*'))?"""
_TAG = re.compile(rf"<([a-z][a-z0-9]*)((?:{_ATTRIBUTE})+)>")
_PART = re.compile(r"""\s([a-z][a-z0-9-]*)(?:=("[^"]*"|'[^']*'))?""")
_HEADING = re.compile(r"(</?h)([1-6])\b")
_BUTTON = re.compile(r"<button\b[^>]*\sdata-action=[^>]*>.*?</button>", re.DOTALL)
_IDS = frozenset({"id", "for", "aria-labelledby", "aria-controls", "aria-describedby", "name"})
_STYLE = re.compile(r"[-a-z0-9:;.%,() #]*\Z", re.IGNORECASE)
_LOWEST = 6


class Styles:
    """The styles of single elements, collected into a sheet.

    A policy can allow a sheet by its hash, and cannot allow `style` attributes without allowing
    every one.
    """

    def __init__(self) -> None:
        self._numbers: dict[str, int] = {}

    def collect(self, html: str) -> Html:
        """Return `html` with every `style` replaced by a number that the sheet knows."""

        def change(_: str, name: str, value: str) -> tuple[str, str] | None:
            if name != "style":
                return name, value
            style = unescape(value)
            if not _STYLE.match(style):
                return None
            return "data-style", str(self._numbers.setdefault(style, len(self._numbers) + 1))

        return _rewritten(html, change, " style=")

    def sheet(self) -> str:
        """Return the rules, each as strong as the attribute was."""
        rules = []
        for style, number in self._numbers.items():
            parts = (part.strip() for part in style.split(";"))
            declared = ";".join(f"{part} !important" for part in parts if part)
            rules.append(f'[data-style="{number}"]{{{declared}}}')
        return "\n".join(rules)


def with_prefix(html: str, prefix: str) -> Html:
    """Return `html` with every id, and what refers to it, begun by `prefix`.

    References to ids that are not in `html` stay as they are: they lead elsewhere in the file.
    """
    own = set(re.findall(r'\sid="([^"]*)"', html))

    def change(element: str, name: str, value: str) -> tuple[str, str]:
        if name == "name" and element == "input":
            return name, prefix + value
        if name == "id" or (name in _IDS and name != "name"):
            words = (prefix + one if one in own else one for one in value.split(" "))
            return name, " ".join(words)
        if name == "href" and value.startswith("#") and value[1:] in own:
            return name, f"#{prefix}{value[1:]}"
        return name, value

    return _rewritten(html, change)


def below(html: str, level: int) -> Html:
    """Return `html` with its headings under one of that `level`, each one level under what it
    belongs to.

    Views are drawn for pages of their own, and leave levels out.
    """
    above: list[int] = []

    def renamed(found: re.Match[str]) -> str:
        own = int(found[2])
        if found[1] == "<h":
            while above and above[-1] >= own:
                above.pop()
            above.append(own)
        return f"{found[1]}{min(_LOWEST, level + len(above))}"

    return Html(_HEADING.sub(renamed, html))


def without_buttons(html: str) -> Html:
    """Return `html` without the buttons that only a server could answer."""
    return Html(_BUTTON.sub("", html))


def _rewritten(
    html: str, change: Callable[[str, str, str], tuple[str, str] | None], only: str = ""
) -> Html:
    """Return `html` with every attribute as `change(element, name, value)` has it; None
    leaves it out.
    """

    def attributes(found: re.Match[str]) -> str:
        if only and only not in found[2]:
            return found[0]
        written: list[str] = []
        for part in _PART.finditer(found[2]):
            name, quoted = part[1], part[2]
            # JSON stands in single quotes, and a bare attribute has no value.
            if quoted is None or quoted.startswith("'"):
                written.append(part[0])
            elif changed := change(found[1], name, quoted[1:-1]):
                written.append(f' {changed[0]}="{changed[1]}"')
        return f"<{found[1]}{''.join(written)}>"

    return Html(_TAG.sub(attributes, html))

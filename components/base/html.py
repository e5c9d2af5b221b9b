"""A small HTML builder in which everything is escaped unless this module made it.

Text of models, documents and visitors reaches a page only through `tag`, which escapes children
and attributes, or `shown`, which does so with a better look. Both spell out characters that change
the direction of writing or control something, so that no text can rearrange what stands beside it.
"""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Callable, Iterable
from html import unescape
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from markupsafe import Markup, escape

Html = Markup
"""Text that is HTML already; `str` everywhere else means text that still has to be escaped."""

Child = str | Html | int | float | None
"""None, False and "" are left out, so that `known and tag(...)` is a child where `known` holds."""

Content = Child | Iterable[Child]
"""One child or several."""


class Json(NamedTuple):
    """An attribute value written as compact JSON.

    It stands in single quotes, so that the JSON's own double quotes stay as they are: the data of
    a long text comes out several times smaller than with each of them escaped.
    """

    value: Any


_VOID = frozenset({"br", "hr", "img", "input", "wbr", "meta", "link"})
_NAME = re.compile(r"[a-z][a-z0-9-]*\Z")
_UNSAFE_ATTRIBUTES = re.compile(r"on|src|action|formaction|xlink")
_SCHEMES = frozenset({"http", "https", "mailto"})
# Direction marks, embeddings, overrides and isolates; line and paragraph separators; controls
# other than tab and line feed.
_HIDDEN = re.compile(
    "[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]"
)


def tag(element: str, /, *children: Content, **attributes: Any) -> Html:
    """Return the element named, with the classes named after dots, e.g. `p.vs-note.vs-num`, and
    `class_`.

    Children and attributes are escaped; characters of a child that would be invisible are shown as
    by `shown`. Attribute names lose a trailing underscore and turn others into hyphens (`for_`,
    `aria_label`); `key`, by which the page's script knows an element again, is written as
    `data-key`. None and False leave an attribute out, True writes it bare, or as "true" where it
    begins with `aria_`. Children None, False and "" are left out. `href` keeps only addresses that
    `safe_url` accepts. Raises ValueError for a name that is none, and for attributes that run or
    load something.
    """
    name, *classes = element.split(".")
    if not _NAME.match(name) or name in {"script", "style", "iframe", "object", "embed"}:
        raise ValueError(f"Not an element this builder writes: {name!r}.")
    classes.append(attributes.pop("class_", None) or "")
    if any(classes):
        attributes = {"class": " ".join(filter(None, classes)), **attributes}
    opening = f"<{name}{_attributes(attributes)}>"
    if name in _VOID:
        return Markup(opening)
    return Markup(f"{opening}{_content(children)}</{name}>")


def join(parts: Iterable[Child], separator: str = "") -> Html:
    """Return several pieces one after another, each escaped if it is not HTML already."""
    return Markup(escape(separator).join(_escaped(part) for part in parts if part is not None))


def visible(text: str) -> str:
    """Return `text` with characters that would be invisible or turn the line around spelled out."""
    return _HIDDEN.sub(lambda match: f"\u27e8{_code(match[0])}\u27e9", text)


def shown(text: str) -> Html:
    """Return foreign text as HTML: escaped, hidden characters as small labels in their place."""

    def label(match: re.Match[str]) -> str:
        name = unicodedata.name(match[0], _code(match[0])).lower()
        return tag("span.vs-control", _code(match[0]), title=name)

    return Markup(_HIDDEN.sub(label, escape(text)))


_IMAGE = re.compile(r"!(?=\[(?:[^\]\\]|\\.)*\](?!\(\s*<?data:image/))")


def without_images(markdown: str) -> str:
    """Return Markdown in which pictures from elsewhere are links to them.

    To load one would tell its server who reads the text, and pages load nothing from elsewhere.
    """
    return _IMAGE.sub("", markdown)


def safe_url(url: str | None) -> str | None:
    """Return `url` if it is an absolute http(s) or mailto address or a fragment, else None."""
    if not url or _HIDDEN.search(url):
        return None
    candidate = url.strip()
    if candidate.startswith("#"):
        return candidate
    try:
        scheme = urlsplit(candidate).scheme.lower()
    except ValueError:
        return None
    return candidate if scheme in _SCHEMES else None


def _attributes(attributes: dict[str, Any]) -> str:
    written = []
    for key, value in attributes.items():
        if value is None or value is False:
            continue
        name = "data-key" if key == "key" else key.rstrip("_").replace("_", "-").lower()
        if not _NAME.match(name) or _UNSAFE_ATTRIBUTES.match(name):
            raise ValueError(f"Not an attribute this builder writes: {key!r}.")
        if name == "href" and (value := safe_url(str(value))) is None:
            continue
        if value is True and not name.startswith("aria-"):
            written.append(f" {name}")
        elif isinstance(value, Json):
            written.append(f" {name}='{_json_text(value.value)}'")
        else:
            words = "true" if value is True else visible(str(value))
            written.append(f' {name}="{escape(words)}"')
    return "".join(written)


def _json_text(value: Any) -> str:
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"))
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("'", "&#39;")):
        data = data.replace(character, entity)
    return data


def _escaped(value: str | int | float) -> Html:
    return value if isinstance(value, Markup) else shown(str(value))


def _content(children: Iterable[Content]) -> str:
    written = []
    for child in children:
        if child is None or child is False:
            continue
        if isinstance(child, str | int | float):
            written.append(_escaped(child))
        else:
            written.append(_content(child))
    return "".join(written)


def _code(character: str) -> str:
    return f"U+{ord(character):04X}"


# Makes the HTML of views fit for one file: strict policy, unique ids, one order of headings.
#
# It reads what `components.base.html` writes and nothing else: there, no text can look like a tag.

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
    """Return `html` with attributes as `change(element, name, value)` has them; None drops one."""

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

"""Barriers on a page, found by axe-core: what a screen reader, the keyboard or weak eyes meet."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page

SERIOUS = ("serious", "critical")
"""The impacts that fail a test; axe-core also knows minor and moderate ones."""

OF_COLOUR = ("color-contrast", "link-in-text-block")
"""The rules whose outcome depends on the colours of a page, and so on the theme."""

_LONGEST = 200
"""Characters of an element that are shown."""


class Exempt(NamedTuple):
    """Something that a framework draws and we cannot change, and why it stays.

    `rule` is axe-core's name of it; `element` a regular expression that is looked for in the path
    of the element and its HTML.
    """

    rule: str
    element: str
    reason: str


EXEMPT: tuple[Exempt, ...] = ()


def barriers(page: Page, rules: Sequence[str] = (), within: str = "") -> list[str]:
    """Every serious or critical violation on `page`, readable; of `rules` alone where named.

    `within` is a selector of the part that is looked at, all of the page without it. Each says the
    rule, the element, what is wrong with it, and where it says how to mend it.
    """
    options: dict[str, Any] = {"resultTypes": ["violations"]}
    if rules:
        options["runOnly"] = {"type": "rule", "values": list(rules)}
    found: list[dict[str, Any]] = Axe().run(page, within or None, options).response["violations"]
    return [line for one in found if one["impact"] in SERIOUS for line in _told(one, one["nodes"])]


def expect_no_barriers(page: Page, rules: Sequence[str] = ()) -> None:
    """Fail with a list of what `barriers` finds."""
    found = barriers(page, rules)
    assert not found, f"{len(found)} barriers on {page.url}\n\n" + "\n\n".join(found)


def _told(violation: dict[str, Any], nodes: Sequence[dict[str, Any]]) -> Iterator[str]:
    for node in nodes:
        path = " ".join(_flat(node["target"]))
        html = " ".join(node["html"].split())
        if _is_exempt(violation["id"], f"{path} {html}"):
            continue
        checks = [check["message"] for check in (*node["any"], *node["all"], *node["none"])]
        yield "\n".join(
            [
                f"{violation['id']} ({violation['impact']}): {violation['help']}",
                f"  at    {path}",
                f"  is    {html[:_LONGEST]}",
                *(f"  mend  {message}" for message in checks),
                f"  see   {violation['helpUrl'].partition('?')[0]}",
            ]
        )


def _is_exempt(rule: str, element: str) -> bool:
    return any(one.rule == rule and re.search(one.element, element) for one in EXEMPT)


def _flat(target: Sequence[Any]) -> Iterator[str]:
    """The selectors of an element: one each for the page and for every shadow root above it."""
    for part in target:
        if isinstance(part, str):
            yield part
        else:
            yield from _flat(part)

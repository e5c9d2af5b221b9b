"""Views as files: what a view draws is compared with what it drew when somebody last read it.

A test that asks for `snapshot` has one file under `__snapshots__`, in a folder named after its own.
`pytest --update-snapshots` writes the files anew, and deletes those that no test has any more.
"""

from __future__ import annotations

import difflib
import hashlib
import html
import re
from collections.abc import Collection, Iterator
from pathlib import Path

import pytest

from tests.components.html_tree import Node, read

TESTS = Path(__file__).parent
ROOT = TESTS / "__snapshots__"
CLOSED = frozenset({"vs-behind", "vs-call", "vs-gauge", "vs-means", "vs-means-text"})
"""What is not looked into, as it has tests of its own: calls (with how long they took, on which no
two runs agree), gauges, and what the glossary says of a number."""

_LONGEST = 160
"""Characters of an attribute that are written out; of a longer one, its beginning and a digest."""


def snapshot_lines(view: str | Node, *classes: str, calls: bool = False) -> list[str]:
    """Return the elements of `view` that have one of `classes`, or all of it, one tag a line.

    A closing tag is where the indentation ends. A class that no element has is a line of its own.
    What is CLOSED is not looked into, unless `calls`.
    """
    root = read(view, unique_ids=False) if isinstance(view, str) else view
    closed = frozenset[str]() if calls else CLOSED
    if not classes:
        return list(_lines(root, 0, closed))
    lines: list[str] = []
    for name in classes:
        found = root.all(f".{name}")
        lines += [line for node in found for line in _lines(node, 0, closed)] or [f"(no .{name})"]
    return lines


def _lines(node: Node, depth: int, closed: frozenset[str]) -> Iterator[str]:
    indent = " " * depth
    if not node.name:
        if words := " ".join(node.data.split()):
            yield indent + html.escape(words, quote=False)
        return
    if node.name == "root":
        for child in node.children:
            yield from _lines(child, depth, closed)
        return
    opening = f"{indent}<{node.name}{''.join(_attributes(node))}>"
    if node.classes & closed:
        yield f"{opening} …"
        return
    inside = [line for child in node.children for line in _lines(child, depth + 1, closed)]
    if len(inside) == 1 and not inside[0].lstrip().startswith("<"):
        yield opening + inside[0].strip()
    else:
        yield opening
        yield from inside


def _attributes(node: Node) -> Iterator[str]:
    for name, value in node.attributes.items():
        if len(value) > _LONGEST:
            value = f"{value[:60]}…{hashlib.sha256(value.encode()).hexdigest()[:8]}"
        yield f' {name}="{html.escape(value)}"' if value else f" {name}"


class Snapshot:
    """What a test compares a view with, once."""

    def __init__(self, path: Path, *, update: bool) -> None:
        self._path = path
        self._update = update
        self._taken: list[str] = []

    def __call__(
        self, view: str | Node | None, *classes: str, state: str = "", calls: bool = False
    ) -> None:
        """Take what of `view` has one of `classes`, or all of it; several calls make one file.

        `state` is a heading in the file, where one holds several views.
        """
        self._taken += [f"== {state} =="] if state else []
        self._taken += (
            ["(nothing)"] if view is None else snapshot_lines(view, *classes, calls=calls)
        )

    def compare(self) -> None:
        """Fail where what was taken is not what the file holds."""
        made = "\n".join(self._taken) + "\n"
        if self._update:
            self._path.parent.mkdir(parents=True, exist_ok=True)
            self._path.write_text(made, encoding="utf-8")
            return
        how = "`pytest --update-snapshots` writes it; read what it wrote before you keep it."
        assert self._path.exists(), f"There is no {self._path.name} yet: {how}"
        kept = self._path.read_text(encoding="utf-8")
        if made != kept:
            told = difflib.unified_diff(
                kept.splitlines(), made.splitlines(), "kept", "drawn now", lineterm="", n=2
            )
            pytest.fail(
                "\n".join([f"{self._path} is drawn otherwise: {how}", *told]), pytrace=False
            )


def snapshot_path(item: pytest.Item) -> Path:
    """Return the file of a test: its folder, its file, its name with its parameters."""
    name = re.sub(r"[^\w\[\].-]+", "-", item.name.removeprefix("test_"))
    return ROOT / item.path.relative_to(TESTS).with_suffix("") / f"{name}.html"


def unused_snapshots(items: Collection[pytest.Item]) -> list[Path]:
    """Return the files that none of `items`, which are all tests of their files, compares with.

    Files of tests that are not among them are taken to be used, if only their module is there.
    """
    used = {
        snapshot_path(item) for item in items if "snapshot" in getattr(item, "fixturenames", ())
    }
    looked_at = {snapshot_path(item).parent for item in items}
    return sorted(
        path
        for path in ROOT.rglob("*.html")
        if path not in used and (path.parent in looked_at or not _module_of(path.parent).exists())
    )


def _module_of(folder: Path) -> Path:
    return (TESTS / folder.relative_to(ROOT)).with_suffix(".py")

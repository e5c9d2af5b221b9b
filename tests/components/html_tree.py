"""Reads HTML strictly: tags have to be balanced, as the components promise."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser

VOID = {"br", "hr", "img", "input", "wbr", "meta", "link"}


@dataclass
class Node:
    """An element, or a text when `name` is empty."""

    name: str = ""
    attributes: dict[str, str] = field(default_factory=dict)
    children: list[Node] = field(default_factory=list)
    data: str = ""

    @property
    def classes(self) -> set[str]:
        return set(self.attributes.get("class", "").split())

    def walk(self) -> Iterator[Node]:
        """This node and all below it, in document order."""
        yield self
        for child in self.children:
            yield from child.walk()

    def all(self, name: str) -> list[Node]:
        """The elements called `name`, or with the class `.name`."""
        if name.startswith("."):
            return [node for node in self.walk() if name[1:] in node.classes]
        return [node for node in self.walk() if node.name == name]

    def one(self, name: str) -> Node:
        """The only such element."""
        (found,) = self.all(name)
        return found

    def text(self, *without: str) -> str:
        """All text, but for what stands in elements with one of the classes `without`."""
        if self.classes & set(without):
            return ""
        return self.data + "".join(child.text(*without) for child in self.children)


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.root = Node("root")
        self.open = [self.root]

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        names = [name for name, _ in attrs]
        assert len(names) == len(set(names)), f"an attribute of <{tag}> twice: {names}"
        node = Node(tag, {name: value or "" for name, value in attrs})
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_endtag(self, tag: str) -> None:
        node = self.open.pop()
        assert node.name == tag, f"<{node.name}> was closed by </{tag}>"

    def handle_data(self, data: str) -> None:
        self.open[-1].children.append(Node(data=data))


def read(html: str, *, unique_ids: bool = True) -> Node:
    """The tree of `html`; AssertionError when its tags are not balanced or it has an id twice."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    assert reader.open == [reader.root], f"never closed: {[node.name for node in reader.open[1:]]}"
    ids = [node.attributes["id"] for node in reader.root.walk() if "id" in node.attributes]
    assert not unique_ids or len(ids) == len(set(ids)), "an id twice"
    return reader.root

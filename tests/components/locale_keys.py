"""Which keys of the locale files the code can ask for, read from its source.

A key is reachable when it stands in the code as a string, or when it fits a pattern that the code
builds: `f"flag.{flag}"`, `"cost." + name`, or `named("step", ...)`. What fills a gap of a pattern
has to be a string that stands in the code too, or, in keys of settings, the name of a field;
otherwise nothing can fill it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
GAP = "\0"


def sources() -> Iterator[ast.Module]:
    """The syntax trees of all product files."""
    for folder in ("app", "components", "pipelines", "research"):
        for path in sorted((ROOT / folder).rglob("*.py")):
            yield ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def shape(node: ast.AST) -> str | None:
    """The string that an expression builds, `GAP` for each part that is not known; else None."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=parts):
            return "".join(shape(part) or GAP for part in parts)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            ends = shape(left), shape(right)
            return None if ends == (None, None) else "".join(end or GAP for end in ends)
    return None


def is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def reachable(keys: Iterable[str], trees: Iterable[ast.Module]) -> set[str]:
    """Those of `keys` that the code of `trees` can ask for."""
    words, fields, patterns = set[str](), set[str](), set[str]()
    for tree in trees:
        documentation = {id(node.value) for node in ast.walk(tree) if is_docstring(node)}  # type: ignore[attr-defined]
        for node in ast.walk(tree):
            if id(node) in documentation:
                continue
            match node:
                case ast.Constant(value=str(text)):
                    words.add(text)
                case ast.AnnAssign(target=ast.Name(id=name)):
                    fields.add(name)
            if isinstance(node, ast.JoinedStr | ast.BinOp) and (text := shape(node)):
                patterns.add(text)
            match node:
                case ast.Call(func=ast.Name("named" | "_named"), args=[first, *_]):
                    kind = shape(first) or GAP
                    patterns.update((f"{kind}.{GAP}", f"{kind}.{GAP}.title"))
                case ast.Call(func=ast.Name("setting_key")):
                    # The texts of a setting, and of each of its options.
                    gaps = (GAP, f"{GAP}.{GAP}", f"{GAP}.{GAP}.{GAP}")
                    patterns.update(f"setting.{gap}" for gap in gaps)
    # `f"{page}.title"` is asked for with plain words; `f"{kind}.{name}"` fits all and says nothing.
    forms = [
        re.compile(("([^.]+)" if text[0] == GAP else "(.+)").join(map(re.escape, text.split(GAP))))
        for text in patterns
        if GAP in text and (text[0] != GAP or text[-1] != GAP)
    ]

    def fits(text: str, known: set[str], depth: int = 2) -> bool:
        """Whether the code holds `text` or can build it, out of parts that it builds in turn."""
        return text in known or any(
            all(fits(part, known, depth - 1) for part in found.groups())
            for form in forms
            if depth and (found := form.fullmatch(text))
        )

    return {
        key for key in keys if fits(key, words | fields if key.startswith("setting.") else words)
    }

"""Words for the names the engine uses. A name without words stays as it is, never disappears."""

from __future__ import annotations

from components.markup import visible
from components.messages import Catalogue

__all__ = ["named"]


def named(kind: str, name: str, t: Catalogue) -> str:
    """The text under `<kind>.<name>` (or `<kind>.<name>.title`), else `name` itself.

    Kinds are "method", "step", "role", "score", "entity.label" and "evidence.score".
    """
    for key in (f"{kind}.{name}.title", f"{kind}.{name}"):
        if t.has(key):
            return t(key)
    return visible(name)

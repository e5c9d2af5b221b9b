"""The methods, by name. Adding one is a file beside this one and a line in `METHODS`."""

from __future__ import annotations

from typing import Any

from pipelines.errors import InvalidInputError
from pipelines.methods.base import Decision, Method, Need, Question, Settings
from pipelines.methods.direct import Direct
from pipelines.methods.drad import Drad
from pipelines.methods.ever import Ever
from pipelines.methods.haarag import Haarag
from pipelines.methods.rag import Rag
from pipelines.methods.rowen import Rowen
from pipelines.methods.slm import Slm

__all__ = ["METHODS", "Decision", "Method", "Need", "Question", "Settings", "get_method"]

METHODS: dict[str, Method[Any]] = {
    method.name: method for method in (Direct(), Rag(), Rowen(), Drad(), Ever(), Haarag(), Slm())
}
"""Every method this installation knows, in the order screens list them."""


def get_method(name: str) -> Method[Any]:
    """The method called `name`."""
    if name not in METHODS:
        known = ", ".join(METHODS)
        raise InvalidInputError(f"There is no method {name!r}.", remedy=f"Choose one of: {known}.")
    return METHODS[name]

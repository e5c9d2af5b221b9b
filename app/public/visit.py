"""What is known of one visitor for as long as their page is open."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from app.watching import Watched
from pipelines.errors import InvalidInputError, VeriscopeError
from pipelines.executor import MAX_QUESTION
from pipelines.methods import METHODS
from pipelines.run.defaults import default_models
from pipelines.run.spec import MethodSpec, ModelSpec, RunSpec
from pipelines.types import Language

__all__ = ["Visit", "spec_for"]


@dataclass
class Visit:
    """`owner` is who the runs belong to; `page` is the tab in view, the only one kept up to date.

    `began` says that the visitor does something themselves, so that nothing plays any more; `left`
    that they gave up waiting; `problem` why the run of the address is not shown.
    """

    owner: str = ""
    language: Language = "en"
    page: str = "ask"
    watched: Watched | None = field(default=None, compare=False)
    began: bool = False
    left: bool = False
    problem: VeriscopeError | None = field(default=None, compare=False)


def spec_for(
    question: str, methods: Sequence[str], models: dict[str, ModelSpec] | None = None
) -> RunSpec:
    """The run that answers `question` with `methods`; raises InvalidInputError."""
    question = question.strip()
    if not question:
        raise InvalidInputError("There is no question.", remedy="Type a question first.")
    if len(question) > MAX_QUESTION:
        raise InvalidInputError(
            f"The question has {len(question)} characters; {MAX_QUESTION} is the most.",
            remedy="Shorten it to the question itself.",
        )
    unknown = [name for name in methods if name not in METHODS]
    if unknown or not methods:
        raise InvalidInputError(
            f"There is no method {unknown[0]!r}." if unknown else "No method was chosen.",
            remedy=f"Choose among: {', '.join(METHODS)}.",
        )
    chosen = models or default_models()
    used = {"main", *(role for name in methods for role in METHODS[name].roles)}
    return RunSpec(
        question=question,
        methods=tuple(MethodSpec(name=name) for name in dict.fromkeys(methods)),
        models={role: spec for role, spec in chosen.items() if role in used},
    )

"""Which runs are meant: by words, methods, models, verdicts, tags, stars and dates."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, Literal

from pydantic import Field
from sqlalchemy import ColumnElement, or_, select

from pipelines.base import Frozen
from pipelines.errors import failure
from pipelines.prompts import own_prompts
from pipelines.run.events import RunSpec, Verdict
from pipelines.store.tables import RunFacetRow, RunLabelRow, RunRow

MAX_SEARCH = 1_000
"""Characters of a text to search for."""

MAX_FACET = 200
"""Characters of a value by which runs are found; of a longer one only the beginning counts."""

Facet = Literal["method", "model", "model_id", "verdict", "finding", "tag", "prompt"]
"""The kinds of values by which runs are found. "model" is the name on the pages, "model_id" the
provider's; "verdict" is one on an answer, "finding" a method and its verdict, as in
`drad:doubtful`; "prompt" is a prompt that the run replaced, as in `ever/verify`."""

Values = Annotated[tuple[str, ...], Field(max_length=100)]


class RunFilter(Frozen):
    """Conditions on runs. A run must fulfil every field that is set.

    Of several methods, models, verdicts or tags, one is enough. `text` is searched for in question,
    name and note, ignoring the case of Latin letters. With methods and verdicts, one of these
    methods must have given one of these verdicts on an answer. `own_prompts` selects runs that
    replaced a prompt. `since` is included, `until` is not; both are times with a zone.
    """

    text: str = ""
    methods: Values = ()
    models: Values = ()
    verdicts: tuple[Verdict, ...] = ()
    tags: Values = ()
    starred: bool = False
    own_prompts: bool = False
    since: datetime | None = None
    until: datetime | None = None

    @property
    def empty(self) -> bool:
        """Whether no condition is set, so that every run matches."""
        return self == RunFilter()


def conditions(owner: str, where: RunFilter) -> list[ColumnElement[bool]]:
    """Return `where` in SQL, for a query of RunRow that is joined with RunLabelRow, if
    there is one.

    Raises InvalidInputError if the text to search for is too long.
    """
    found: list[ColumnElement[bool]] = [RunRow.owner == owner]
    if where.text:
        if len(where.text) > MAX_SEARCH:
            raise failure("storage.long_search", most=MAX_SEARCH)
        columns: list[Any] = [RunRow.question, RunLabelRow.name, RunLabelRow.note]
        found.append(or_(*(one.icontains(where.text, autoescape=True) for one in columns)))
    if where.methods:
        found.append(_has(("method",), where.methods))
    if where.models:
        found.append(_has(("model", "model_id"), where.models))
    if where.verdicts and where.methods:
        pairs = [f"{name}:{verdict}" for name in where.methods for verdict in where.verdicts]
        found.append(_has(("finding",), pairs))
    elif where.verdicts:
        found.append(_has(("verdict",), where.verdicts))
    if where.tags:
        found.append(_has(("tag",), where.tags))
    if where.starred:
        found.append(RunLabelRow.starred.is_(True))
    if where.own_prompts:
        found.append(_has_any("prompt"))
    if where.since is not None:
        found.append(RunRow.created >= where.since)
    if where.until is not None:
        found.append(RunRow.created < where.until)
    return found


def asked(spec: RunSpec) -> set[tuple[Facet, str]]:
    """Return the values by which a run is found from its beginning, each within MAX_FACET."""
    found: set[tuple[Facet, str]] = {("method", method.name) for method in spec.methods}
    for model in spec.models.values():
        found |= {("model", model.name), ("model_id", model.model)}
    found |= {("prompt", f"{file}/{key}") for file, _, key in own_prompts(spec.prompts)}
    return {(kind, value[:MAX_FACET]) for kind, value in found if value}


def _has_any(kind: Facet) -> ColumnElement[bool]:
    """Return the condition that a run has a value of this kind."""
    of_run = (RunFacetRow.run_id == RunRow.id, RunFacetRow.kind == kind)
    return select(1).where(*of_run).exists()


def _has(kinds: tuple[Facet, ...], values: Any) -> ColumnElement[bool]:
    """Return the condition that a run has one of these values."""
    return (
        select(1)
        .where(
            RunFacetRow.run_id == RunRow.id,
            RunFacetRow.kind.in_(kinds),
            RunFacetRow.value.in_([value[:MAX_FACET] for value in values]),
        )
        .exists()
    )

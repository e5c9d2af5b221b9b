"""The papers' ablations as studies: `assets/studies.toml`, with the papers' figures beside ours."""

from __future__ import annotations

import tomllib
from collections.abc import Sequence
from functools import cache
from typing import Annotated, Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from pipelines.base import ASSETS
from pipelines.errors import failure
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.results.papers import BilingualText, PaperFigure, paper, table_figures
from pipelines.evaluation.scoring import read_results
from pipelines.evaluation.studies.grid import Axis, Value, read_axis, value_text
from pipelines.evaluation.studies.replays import Progress
from pipelines.evaluation.studies.running import score_sweep, sweep
from pipelines.evaluation.studies.table import Study
from pipelines.methods.registry import get_method
from pipelines.store import RunStore

Text = Annotated[str, Field(min_length=1)]


class NamedStudy(BaseModel):
    """An ablation of a paper: what is varied, by which metrics it is judged, and its source.

    `prefer` are metrics, of which the first that the evaluation has chooses the best point. `rows`
    maps a point to the line of the paper's `table` that stands for it.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Text
    method: Text
    kind: Literal["replay", "scores"] = "replay"
    table: str = ""
    prefer: Annotated[tuple[Text, ...], Field(min_length=1)]
    title: BilingualText
    source: BilingualText
    axes: dict[str, tuple[Value, ...]] = Field(default_factory=dict)
    rows: dict[str, str] = Field(default_factory=dict)

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if bool(self.axes) != (self.kind == "replay"):
            raise ValueError(f"{self.name!r} is a replay without axes, or the other way round.")
        if self.table:
            names = {
                row.name.en
                for table in paper(self.method).tables
                if table.key == self.table
                for row in table.rows
            }
            if odd := set(self.rows.values()) - names:
                raise ValueError(f"The table {self.table!r} has no line {odd.pop()!r}.")
        self.checked_axes()
        return self

    def checked_axes(self) -> tuple[Axis, ...]:
        """Return what is varied, as the method takes it."""
        method = get_method(self.method)
        return tuple(
            read_axis(method, f"{name}={','.join(map(value_text, values))}")
            for name, values in self.axes.items()
        )

    def figures(self, label: str) -> tuple[PaperFigure, ...]:
        """Return what the paper prints for a point; empty where it prints nothing."""
        row = self.rows.get(label)
        return table_figures(self.method, self.table, row) if row else ()


@cache
def named_studies() -> dict[str, NamedStudy]:
    """Return the papers' studies by name, in the order of the file."""
    entries = tomllib.loads((ASSETS / "studies.toml").read_text(encoding="utf-8"))["studies"]
    found = [NamedStudy.model_validate(entry) for entry in entries]
    return {study.name: study for study in found}


def run_named_study(
    store: RunStore,
    evaluation: str,
    owner: str,
    name: str,
    *,
    system: str = "",
    choose: str | None = None,
    at_least: tuple[str, float] | None = None,
    tags: Sequence[str] = (),
    progress: Progress | None = None,
) -> Study:
    """Return a paper's study on `system` of an evaluation, by default the only one of its method.

    With `tags`, it is of the items that have all of them.

    Raises InvalidInputError for an unknown study and where the evaluation has no system of its
    method, or several and none is named.
    """
    known = named_studies()
    if name not in known:
        raise failure("study.unknown", name=name, known=[*known])
    study = known[name]
    stored = store.evaluations.get(evaluation, owner)
    spec = EvaluationSpec.model_validate(stored.spec)
    system = system or only_system(spec, study.method)
    if all(one.method.name != study.method for one in spec.systems if one.name == system):
        raise failure("study.other_method", name=name, method=study.method, system=system)
    if study.kind == "scores":
        _, results = read_results(store.evaluations, evaluation, owner)
        wanted = choose or study.prefer[0]
        results = results.selected(tags=tuple(tags))
        found = score_sweep(results, evaluation, system, choose=wanted, at_least=at_least)
    else:
        found = sweep(
            *(store, evaluation, owner, system, study.checked_axes()),
            prefer=study.prefer,
            choose=choose,
            at_least=at_least,
            tags=tags,
            progress=progress,
        )
    points = tuple(
        point.model_copy(update={"papers": study.figures(point.label)}) for point in found.points
    )
    whole = f"{stored.name}: {name}"
    return found.model_copy(update={"name": whole, "points": points, "source": study.source.en})


def only_system(spec: EvaluationSpec, method: str) -> str:
    """Return the system of an evaluation that has this method. Raises InvalidInputError
    without one.
    """
    names = [system.name for system in spec.systems if system.method.name == method]
    if len(names) == 1:
        return names[0]
    if names:
        raise failure("study.several_of_method", method=method, names=[*names])
    raise failure("study.none_of_method", method=method)

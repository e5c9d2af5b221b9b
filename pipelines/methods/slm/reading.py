"""What the judges said about an answer, as it is recorded and read back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field

from pipelines.errors import ErrorInfo
from pipelines.methods.slm.judging import probability_of_yes
from pipelines.methods.slm.scale import Thresholds
from pipelines.methods.slm.scores import JudgeScale
from pipelines.run.events import Judged, Score
from pipelines.run.scope import Scope
from pipelines.types import Choice, Frozen

__all__ = ["Cell", "Judge", "Panel", "Reading", "Statement", "cell_of", "read_back", "record_cell"]


class Statement(Frozen):
    """A sentence of the answer, the characters [start, end) of it."""

    text: str
    start: int
    end: int


class Judge(Frozen):
    """A model that judges. `shipped` is the scale that comes with the project for it.

    `also` are further roles the same model was given: it is asked once.
    """

    role: str
    name: str
    shipped: JudgeScale = JudgeScale()
    also: tuple[str, ...] = ()


class Panel(Frozen):
    """What is judged by whom: everything that is known before the judges are asked.

    `flags` are remarks on the answer; `left_out` names judges that do not speak its language.
    """

    text: str
    sentences: tuple[Statement, ...]
    judges: tuple[Judge, ...]
    thresholds: Thresholds = Field(default_factory=dict)
    flags: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    def detail(self) -> dict[str, Any]:
        """The panel as the detail of the span in which the judges are asked."""
        return self.model_dump(mode="json")


class Cell(Frozen):
    """What one judge said about one sentence, or about the whole response (`sentence` None).

    `p_yes` is None where it said neither yes nor no, or where the call failed (`error`);
    `other_mass` is the probability of all words that are neither. `span` holds the call.
    """

    role: str
    sentence: int | None
    span: str
    p_yes: float | None = None
    p_no: float = 0.0
    other_mass: float = 0.0
    source: Literal["logprobs", "judge", "text"] = "logprobs"
    error: ErrorInfo | None = None


class Reading(Frozen):
    """A panel and what it has said so far."""

    panel: Panel
    cells: tuple[Cell, ...] = ()

    def cell(self, role: str, sentence: int | None) -> Cell | None:
        """What the judge of `role` said; None while it has not been heard."""
        return next((c for c in self.cells if c.role == role and c.sentence == sentence), None)


def cell_of(choice: Choice, role: str, sentence: int | None, span: str) -> Cell:
    """A judge's answer as a cell."""
    return Cell(
        role=role,
        sentence=sentence,
        span=span,
        p_yes=probability_of_yes(choice),
        p_no=choice.probabilities["no"],
        other_mass=choice.other_mass,
        source=choice.source,
    )


def record_cell(step: Scope, cell: Cell, judge: Judge, statement: Statement) -> None:
    """Write a cell down. It has no verdict of its own: only averages are held to a threshold."""
    step.judged(
        what="cell" if cell.sentence is not None else "whole",
        text=statement.text,
        start=statement.start,
        end=statement.end,
        label=judge.name,
        sentence=cell.sentence,
        verdict="unchecked",
        scores=(
            Score(
                name="slm_p_yes",
                value=cell.p_yes,
                formula="slm.text" if cell.source == "text" else "slm.p_yes",
            ),
        ),
        detail={
            "role": cell.role,
            "p_no": cell.p_no,
            "other_mass": cell.other_mass,
            "source": cell.source,
            "error": cell.error and cell.error.model_dump(mode="json"),
        },
    )


def read_back(detail: Mapping[str, Any], judged: Iterable[Judged]) -> Reading:
    """The reading from the judges' span and the verdicts recorded so far."""
    cells = [
        Cell(
            sentence=event.sentence,
            span=event.span,
            p_yes=event.scores[0].value,
            **event.detail,
        )
        for event in judged
        if event.what in ("cell", "whole")
    ]
    return Reading(panel=Panel.model_validate(detail), cells=tuple(cells))

"""From recorded runs to what is fitted: features of each statement, and each detector's word."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pipelines.engine.checked import CellFound, checked_text
from pipelines.methods.together.features import (
    evidence_of,
    features_of,
    passages_of,
    sentence_readings,
)
from pipelines.models.base import ChoiceRequest
from pipelines.research.together.fitting import Cell, Seen
from pipelines.research.together.statements import LabelledStatement
from pipelines.run.view import MethodView, RunView
from pipelines.text import Span


def seen_of(
    statements: Sequence[LabelledStatement], views: Mapping[str, Mapping[str, RunView]]
) -> list[Seen]:
    """Return the statements of which something was recorded, with what it says."""
    found: list[Seen] = []
    for one in statements:
        recorded = views.get(one.key, {})
        methods = [m for view in recorded.values() for m in view.methods.values()]
        if not methods:
            continue
        # A statement is one sentence, even where a mark inside it looks like its end.
        readings = sentence_readings(methods, [Span.of(one.text, 0, len(one.text))])[0]
        evidence = evidence_of(one.text, passages_of(methods))
        cells: dict[str, Cell] = {}
        for asking, view in recorded.items():
            cells |= _cells(asking, view)
        found.append(Seen(one, readings, evidence, features_of(readings, evidence), cells))
    return found


def _cells(asking: str, view: RunView) -> dict[str, Cell]:
    """Return the detectors of one asking; one that has judges of its own is called after
    the asking.
    """
    checked = checked_text(view)
    if checked is None or not checked.sentences:
        return {}
    found: dict[str, Cell] = {}
    for name, cell in checked.sentences[0].found.items():
        told = _cell(cell, view.methods[name])
        if told is not None:
            apart = name == "slm" and len(view.methods) == 1
            found[asking.removesuffix("-sources") if apart else name] = told
    return found


def _cell(cell: CellFound, method: MethodView) -> Cell | None:
    value = None if cell.score is None else cell.score.value
    if value is None:
        return None
    models = {call.model for call in method.calls if isinstance(call.request, ChoiceRequest)}
    return Cell(value, cell.verdict in ("supported", "confident"), tuple(sorted(models)))

"""A checked text as a record of JSON and as rows of a table, for files and programs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from pipelines.engine.checked import CellFound, CheckedText, DetectorFound
from pipelines.run.events import Score

ROW_COLUMNS = ("id", "run", "sentence", "text", "doubting", "judging", "error")
"""The columns of a table before those of each detector: its verdict, its score, its threshold."""


def check_record(found: CheckedText) -> dict[str, Any]:
    """Everything that was found, with plain values; numbers stand with their threshold and range.

    A sentence has a verdict of each detector that reads sentences; `doubting` of `judging` of those
    doubt it. `corrected` is None where a detector changed nothing.
    """
    return {
        "text": found.text,
        "question": found.question,
        "language": found.language,
        "unavailable": dict(found.unavailable),
        "detectors": {one.method: _detector(one) for one in found.detectors},
        "sentences": [
            {
                "text": one.text,
                "start": one.start,
                "end": one.end,
                "doubting": one.doubting,
                "judging": one.judging,
                "found": {name: _cell(cell) for name, cell in one.found.items()},
            }
            for one in found.sentences
        ],
    }


def row_columns(methods: Sequence[str]) -> list[str]:
    """The columns of a table of texts that were checked by `methods`."""
    own = [f"{name}_{what}" for name in methods for what in ("verdict", "score", "threshold")]
    return [*ROW_COLUMNS, *own]


def check_rows(found: CheckedText, id: str, run: str) -> list[dict[str, str]]:
    """A row for each sentence, numbered from 1, and last one for the whole text, "all"."""
    rows: list[dict[str, str]] = []
    for one in found.sentences:
        row = {
            "id": id,
            "run": run,
            "sentence": str(one.number + 1),
            "text": one.text,
            "doubting": str(one.doubting),
            "judging": str(one.judging),
        }
        for name, cell in one.found.items():
            row |= _columns(name, cell.verdict, cell.score)
        rows.append(row)
    whole = {"id": id, "run": run, "sentence": "all", "text": found.text}
    for one in found.detectors:
        whole |= _columns(one.method, one.verdict, one.score)
    errors = (f"{one.method}: {one.error.message}" for one in found.detectors if one.error)
    return [*rows, whole | {"error": " ".join(errors)}]


def _columns(name: str, verdict: str | None, score: Score | None) -> dict[str, str]:
    value = None if score is None else score.value
    limit = None if score is None else score.threshold
    return {
        f"{name}_verdict": verdict or "",
        f"{name}_score": "" if value is None else f"{value:.6g}",
        f"{name}_threshold": "" if limit is None else f"{limit:.6g}",
    }


def _detector(one: DetectorFound) -> dict[str, Any]:
    return {
        "state": one.state,
        "verdict": one.verdict,
        "score": _score(one.score),
        "weak": one.weak,
        "by_sentence": one.by_sentence,
        "remarks": list(one.flags),
        "corrected": one.corrected,
        "error": None
        if one.error is None
        else {
            "code": one.error.code,
            "message": one.error.message,
            "remedy": one.error.remedy,
        },
    }


def _cell(cell: CellFound) -> dict[str, Any]:
    return {
        "verdict": cell.verdict,
        "score": _score(cell.score),
        "evidence": cell.evidence,
        "pieces": [
            {
                "text": piece.text,
                "start": piece.start,
                "end": piece.end,
                "label": piece.label,
                "verdict": piece.verdict,
                "score": _score(piece.score),
            }
            for piece in cell.pieces
        ],
    }


def _score(score: Score | None) -> dict[str, Any] | None:
    if score is None:
        return None
    return {
        "name": score.name,
        "value": score.value,
        "threshold": score.threshold,
        "bad": score.bad,
        "low": score.low,
        "high": score.high,
    }

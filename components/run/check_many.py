"""What came of the texts of a file, one in each row, and the files that hold all of it. Pure."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import NamedTuple

from components.base.elements import Column, TableRow, button, explained, table
from components.base.html import Child, Html, tag, visible
from components.base.words import Catalogue, integer
from pipelines.base import printable
from pipelines.engine.check_rows import (
    calibrated_detectors,
    check_record,
    check_rows,
    row_columns,
)
from pipelines.engine.checking import CheckedText
from pipelines.errors import ErrorInfo
from pipelines.evaluation.results.export import csv_text

_SHOWN = 90
"""Characters of a text that its row shows."""


class CheckOutcome(NamedTuple):
    """What came of the text called `id`: the `run` that checked it with what that found, or why
    there is none."""

    id: str
    text: str
    run: str = ""
    status: str = ""
    found: CheckedText | None = None
    error: ErrorInfo | None = None


def many_view(outcomes: Sequence[CheckOutcome], total: int, t: Catalogue) -> Html:
    """Return a row for each text that is over, with the way to its run."""
    columns = [
        Column(t("check.many.id")),
        Column(t("check.many.text")),
        Column(t("check.many.doubted")),
        Column(t("check.many.open")),
    ]
    rows = (TableRow(f"text-{number}", _row(one, t)) for number, one in enumerate(outcomes))
    done = t("check.many.done", done=integer(len(outcomes)), total=integer(total))
    return tag(
        "div.vs-stack",
        tag("p.vs-note", done, role="status", key="done"),
        table(t("check.many"), columns, rows, row_names=True, css="vs-check-many")
        if outcomes
        else None,
        key="many",
    )


def _row(one: CheckOutcome, t: Catalogue) -> list[Child]:
    words = " ".join(one.text.split())
    short = words if len(words) <= _SHOWN else f"{words[:_SHOWN].rstrip()}…"
    if one.error is not None:
        return [visible(one.id), visible(short), visible(explained(one.error, t)), ""]
    opens = button(t("check.many.open"), "open_run", one.run, of=one.id)
    return [visible(one.id), visible(short), _doubted(one, t), opens]


def _doubted(one: CheckOutcome, t: Catalogue) -> str:
    if one.status == "cancelled":
        return t("check.many.stopped")
    if one.found is None or not any(sentence.judging for sentence in one.found.sentences):
        return t("check.overall.none")
    doubted = sum(bool(sentence.doubting) for sentence in one.found.sentences)
    total = integer(len(one.found.sentences))
    return t("check.many.of", doubted=integer(doubted), total=total)


def as_json_lines(outcomes: Sequence[CheckOutcome]) -> str:
    """Return everything that was found, a line for each text, as the command line writes it."""
    lines: list[str] = []
    for one in outcomes:
        record: dict[str, object] = {"id": one.id, "run": one.run, "status": one.status}
        if one.found is not None:
            record |= check_record(one.found)
        if one.error is not None:
            record = {"id": one.id, "status": "refused", "error": one.error.message}
        lines.append(json.dumps(record, ensure_ascii=False))
    return "".join(f"{line}\n" for line in lines)


def as_table(outcomes: Sequence[CheckOutcome]) -> str:
    """Return the same as CSV, a row for each sentence and one for each text; what a spreadsheet
    would take for a formula is text.
    """
    methods = dict.fromkeys(
        each.method for one in outcomes if one.found for each in one.found.detectors
    )
    calibrated = {name for one in outcomes if one.found for name in calibrated_detectors(one.found)}
    columns = row_columns(list(methods), calibrated)
    written: list[dict[str, str]] = []
    for one in outcomes:
        if one.error is not None:
            rows = [{"id": one.id, "error": one.error.message}]
        else:
            rows = check_rows(one.found, one.id, one.run) if one.found else [{"id": one.id}]
        written += [{name: printable(cell) for name, cell in row.items()} for row in rows]
    return csv_text(written, columns)

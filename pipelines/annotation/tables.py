"""Labels in tables: a workbook of a session's labels, and the exports of annotation tools."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from pydantic import ValidationError

from pipelines.annotation.formats import label_records, moment, read_csv, seconds, verdict_in
from pipelines.annotation.labelling import ReadLabel
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import (
    ItemBody,
    Label,
    LabelSpan,
    SessionItem,
    SpanLabel,
    label_adapter,
    parse_label,
)
from pipelines.errors import InvalidInputError, failure
from pipelines.evaluation.datasets.files import DataTable, read_table
from pipelines.evaluation.datasets.formats import recognised
from pipelines.evaluation.datasets.labelled import PersonLabels, ToolRecord
from pipelines.evaluation.datasets.mapping import listed
from pipelines.evaluation.datasets.records import validated
from pipelines.evaluation.results.export import csv_text
from pipelines.evaluation.results.workbook import workbook

People = Mapping[str, Sequence[ReadLabel]]
"""The labels of each person by the items' keys."""

_OWN = frozenset({"key", "task", "annotator"})
"""Columns of an export of labels."""


def export_workbook(lead: Lead) -> bytes:
    """Return the rows of `export_csv` as a workbook of Excel; it can be imported again."""
    records = label_records(lead)
    import pandas as pd

    return workbook({"labels": pd.DataFrame(records.rows, columns=records.columns, dtype=object)})


def read_label_table(name: str, data: bytes, items: Iterable[SessionItem]) -> People:
    """Return everybody's labels in a table: an export of labels, or of an annotation tool.

    Records of a tool (doccano, Argilla, Potato, Label Studio) are those of `items` by a field "key"
    or by their text; others get a key that no item has. Words that were chosen are verdicts of the
    item's task, or say whether a text is hallucinated. Raises InvalidInputError for a file that
    is neither, or that says nothing of any of the items.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / Path(name).name
        path.write_bytes(data)
        table = read_table(path)
    if {*table.columns} >= _OWN:
        return read_csv(csv_text(_as_text(table), table.columns))
    form = recognised(table)
    record = form.record if form is not None else None
    if record is None or not issubclass(record, ToolRecord):
        raise failure("annotation.no_label_table", file=name, columns=listed(table.columns))
    people = _matched(validated(table, record), items)
    if not any(one.key for labels in people.values() for one in labels):
        raise failure("annotation.no_match", file=name)
    return people


def _as_text(table: DataTable) -> list[dict[str, str | int | float | None]]:
    def cell(value: object) -> str | int | float | None:
        if isinstance(value, list | dict):
            return json.dumps(value, ensure_ascii=False)
        return value if isinstance(value, str | int | float) else None

    return [{name: cell(value) for name, value in row.items()} for row in table.rows]


def _matched(records: Sequence[ToolRecord], items: Iterable[SessionItem]) -> People:
    keys: dict[str, SessionItem] = {}
    texts: dict[str, list[SessionItem]] = defaultdict(list)
    for item in items:
        keys[item.key] = item
        texts[item.body.piece].append(item)
    found: dict[str, list[ReadLabel]] = defaultdict(list)
    for record in records:
        parts = record.parts()
        named = [keys[name] for name in (record.key, record.name) if name in keys]
        alike = named[:1] or [
            one
            for one in texts.get(parts["text"], ())
            if not parts["question"] or one.body.question.strip() in ("", parts["question"])
        ]
        for said in record.people:
            labels = [(one.key, _label_for(one.body, said)) for one in alike]
            for key, label in labels or [("", SpanLabel())]:
                if label is not None:
                    told = ReadLabel(key, label, moment(said.at), seconds(said.seconds))
                    found[said.person].append(told)
    return found


def _label_for(body: ItemBody, said: PersonLabels) -> Label | None:
    """Return what somebody said of an item as a label of its task; None where that says nothing."""
    try:
        if body.task == "span":
            if not said.spans and said.choices:
                return None
            told = SpanLabel(spans=tuple(_span(*one) for one in said.spans))
            return parse_label(told, body)
        verdict = next(filter(None, (verdict_in(body.task, word) for word in said.choices)), None)
        if verdict is None:
            return None
        told = label_adapter.validate_python({"task": body.task, "verdict": verdict})
        return parse_label(told, body)
    except (ValidationError, InvalidInputError):
        return None


def _span(start: int, end: int, word: str) -> LabelSpan:
    try:
        return LabelSpan.model_validate({"start": start, "end": end, "kind": word})
    except ValidationError:
        return LabelSpan(start=start, end=end)

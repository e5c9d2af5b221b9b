"""Labels in the forms that people and other programs label in: CSV and Label Studio.

Offsets are code points, half-open. Label Studio counts UTF-16 units as browsers do, so they are
converted on both ways.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, NamedTuple

from pydantic import BaseModel, ConfigDict, ValidationError

from pipelines.annotation.adjudication import by_item
from pipelines.annotation.labels import GivenLabel, ReadLabel, standing_labels
from pipelines.annotation.leading import Lead
from pipelines.annotation.types import (
    ItemBody,
    Label,
    LabelSpan,
    SessionItem,
    SpanLabel,
    Task,
    label_adapter,
    parse_label,
    verdict_of,
)
from pipelines.error_words import Fact, phrase, problem_at
from pipelines.errors import InvalidInputError, VeriscopeError, failure
from pipelines.evaluation.results.export import Cell, csv_text, harmless
from pipelines.store.annotation_records import StoredItem, WholeSession
from pipelines.store.tables import to_json
from pipelines.text.tables import csv_source

_DAY = 86_400
_MOST_VERSIONS = 1_000_000
_CHOICE = "verdict"
_SPANS = "spans"


class _Labelled(NamedTuple):
    """A label that stands, with who gave it and what it is on."""

    one: GivenLabel
    annotator: str
    stored: StoredItem
    body: ItemBody


_COLUMNS: dict[str, Callable[[_Labelled], Cell]] = {
    "item": lambda row: row.one.item,
    "key": lambda row: row.stored.key,
    "task": lambda row: row.stored.task,
    "annotator": lambda row: row.annotator,
    "label": lambda row: verdict_of(row.one.label),
    "spans": lambda row: _spans(row.one.label),
    "at": lambda row: row.one.at.isoformat(),
    "guidelines": lambda row: row.one.guidelines,
    "overlap": lambda row: row.one.overlap,
    "seconds": lambda row: row.one.seconds,
    "fast": lambda row: int(row.one.fast),
    "revealed": lambda row: int(row.one.revealed),
    "changes": lambda row: row.one.changes,
    "run": lambda row: row.one.run,
    "method": lambda row: row.body.place.method,
    "start": lambda row: row.body.start,
    "end": lambda row: row.body.end,
    "piece": lambda row: row.body.piece,
    "text": lambda row: row.body.text,
    "question": lambda row: row.body.question,
}
"""The columns of the CSV export, each with its cell; one more is a line here."""


def _spans(label: Label) -> str:
    return json.dumps(to_json(label)["spans"]) if isinstance(label, SpanLabel) else ""


def export_csv(lead: Lead) -> str:
    """Return one row for each label that stands, with who, when, which guidelines and which run.

    Spans are JSON. What a spreadsheet would take for a formula is made a text by an apostrophe.
    """
    whole = lead.whole()
    names = _names(whole)
    items = {one.number: one for one in whole.items}

    def record(one: GivenLabel) -> dict[str, Cell]:
        stored = items[one.item]
        body = ItemBody.model_validate(stored.body)
        row = _Labelled(one, names[one.annotator], stored, body)
        return {name: cell(row) for name, cell in _COLUMNS.items()}

    return csv_text(map(record, standing_labels(whole.events)), _COLUMNS)


def read_csv(text: str) -> dict[str, list[ReadLabel]]:
    """Return the labels of each person by the items' keys, from what `export_csv` writes.

    Needed are the columns `key` and `task`, `label` or for spans `spans`, and `annotator`; `at`,
    `seconds`, `guidelines`, `fast` and `revealed` are kept where a spreadsheet has left them
    readable, and others are ignored. Raises InvalidInputError that names the line (from 1) which is
    wrong.
    """
    rows = csv.DictReader(csv_source(text), strict=True)
    labels: dict[str, list[ReadLabel]] = {}
    try:
        names = rows.fieldnames or ()
        if missing := [name for name in ("key", "task", "annotator") if name not in names]:
            raise _bad(1, f"it has no column {missing[0]}")
        for row in rows:
            label = _label_of_row(row, rows.line_num)
            person = _unescaped(row["annotator"] or "").strip()[:200]
            read = ReadLabel(
                _unescaped(row["key"] or ""),
                label,
                _moment(row.get("at")),
                _seconds(row.get("seconds")),
                _version(row.get("guidelines")),
                fast=row.get("fast") == "1",
                revealed=row.get("revealed") == "1",
            )
            labels.setdefault(person or "CSV", []).append(read)
    except csv.Error as error:
        raise _bad(max(1, rows.line_num), str(error)) from None
    return labels


def export_label_studio(lead: Lead) -> str:
    """Return tasks with their annotations, as Label Studio imports and exports them (JSON)."""
    whole = lead.whole()
    names = _names(whole)
    labels = by_item(standing_labels(whole.events))
    tasks = []
    for stored in whole.items:
        body = ItemBody.model_validate(stored.body)
        data = {
            "text": body.text,
            "question": body.question,
            "piece": body.piece,
            "other": body.other,
            "evidence": [one.text for one in body.evidence],
            "veriscope": {
                "key": stored.key,
                "body": stored.body,
                "labels": [_provenance(one, names) for one in labels.get(stored.number, [])],
            },
        }
        annotations = [_annotation(one, body, names) for one in labels.get(stored.number, [])]
        tasks.append({"id": stored.number + 1, "data": data, "annotations": annotations})
    return json.dumps(tasks, ensure_ascii=False, indent=1)


class _Result(BaseModel):
    """A region or a choice of Label Studio; what is not named here is ignored."""

    model_config = ConfigDict(extra="ignore")

    type: str
    value: dict[str, Any]
    meta: Any = None


class _Annotation(BaseModel):
    model_config = ConfigDict(extra="ignore")

    completed_by: Any = "Label Studio"
    created_at: Any = None
    lead_time: Any = None
    was_cancelled: bool = False
    result: tuple[_Result, ...] = ()


class _TaskOfLabelStudio(BaseModel):
    model_config = ConfigDict(extra="ignore")

    id: int | str | None = None
    data: dict[str, Any]
    annotations: tuple[_Annotation, ...] = ()


def read_label_studio(text: str) -> tuple[list[SessionItem], dict[str, list[ReadLabel]]]:
    """Return items, and the labels of each person by the items' keys, from Label Studio's JSON.

    Tasks that were exported here come back with their items and the labels that stand, each with
    who gave it, when and by which version of the guidelines, but without comments, skips, control
    labels and what models said. Of others, those whose data hold a `text`: regions of labels become
    spans. Cancelled annotations are left out. Raises InvalidInputError that names the task (from 1)
    which is wrong.
    """
    try:
        tasks = json.loads(text)
    except (ValueError, RecursionError):
        raise _bad(1, phrase("import.no_json")) from None
    if not isinstance(tasks, list) or not tasks:
        raise _bad(1, phrase("import.no_tasks"))
    items: list[SessionItem] = []
    labels: dict[str, list[ReadLabel]] = {}
    for number, told in enumerate(tasks, start=1):
        try:
            task = _TaskOfLabelStudio.model_validate(told)
            item = _item_of(task, number)
            items.append(item)
            for annotation in task.annotations:
                if annotation.was_cancelled:
                    continue
                label = _label_of(annotation, item.body)
                person = _person(annotation.completed_by)
                told_of = _told_of(task, annotation, person)
                read = ReadLabel(
                    item.key,
                    label,
                    _moment(annotation.created_at),
                    _seconds(annotation.lead_time),
                    _version(told_of.get("guidelines")),
                    fast=told_of.get("fast") is True,
                    revealed=told_of.get("revealed") is True,
                )
                labels.setdefault(person, []).append(read)
        except ValidationError as error:
            raise _bad(number, problem_at(error)) from None
        except InvalidInputError as error:
            raise _bad(number, error.phrase()) from None
    return items, labels


def utf16_offset(text: str, offset: int) -> int:
    """Return the place in UTF-16 units, which browsers count, of a place in code points."""
    return offset + sum(character > "\uffff" for character in text[:offset])


def code_point_offset(text: str, units: int) -> int:
    """Return the place in code points of a place in UTF-16 units; inside a pair, its beginning."""
    seen = 0
    for at, character in enumerate(text):
        width = 1 + (character > "\uffff")
        if seen + width > units:
            return at
        seen += width
    return len(text)


def _label_of_row(row: Mapping[str, str | None], line: int) -> Label:
    task = row["task"]
    told: dict[str, Any] = {"task": task, "verdict": row.get("label")}
    try:
        if task == "span":
            told = {"task": task, "spans": json.loads(row.get("spans") or "[]")}
        return label_adapter.validate_python(told)
    except ValidationError as error:
        raise _bad(line, problem_at(error)) from None
    except (ValueError, RecursionError):
        raise _bad(line, phrase("import.spans_no_json")) from None


def _unescaped(cell: str) -> str:
    """Return a cell without the apostrophe that keeps a spreadsheet from taking it for a
    formula.
    """
    return cell[1:] if cell[:1] == "'" and harmless(cell[1:]) == cell else cell


def _annotation(one: GivenLabel, body: ItemBody, names: Mapping[int, str]) -> dict[str, Any]:
    meta = {"guidelines": one.guidelines, "run": one.run}
    if isinstance(one.label, SpanLabel):
        result = [
            {
                "type": "labels",
                "from_name": _SPANS,
                "to_name": "text",
                "value": {
                    "start": utf16_offset(body.text, span.start),
                    "end": utf16_offset(body.text, span.end),
                    "text": body.text[span.start : span.end],
                    "labels": [span.kind],
                },
                "meta": meta,
            }
            for span in one.label.spans
        ]
    else:
        value = {"choices": [verdict_of(one.label)]}
        choice = {"type": "choices", "from_name": _CHOICE, "to_name": "text", "value": value}
        result = [{**choice, "meta": meta}]
    return {
        "completed_by": names[one.annotator],
        "created_at": one.at.isoformat(),
        "lead_time": one.seconds,
        "was_cancelled": False,
        "result": result,
    }


def _provenance(one: GivenLabel, names: Mapping[int, str]) -> dict[str, Any]:
    """Return what Label Studio has no fields for: it keeps the data of a task as they are.

    A label without any span has no result either whose `meta` could hold the version.
    """
    return {
        "annotator": names[one.annotator],
        "at": one.at.isoformat(),
        "guidelines": one.guidelines,
        "overlap": one.overlap,
        "run": one.run,
        "seconds": one.seconds,
        "fast": one.fast,
        "revealed": one.revealed,
        "changes": one.changes,
    }


def _told_of(
    task: _TaskOfLabelStudio, annotation: _Annotation, person: str
) -> Mapping[str, object]:
    """Return what `_provenance` and the `meta` of the results say of an annotation; the
    latter first.
    """
    ours = task.data.get("veriscope")
    listed = ours.get("labels") if isinstance(ours, dict) else None
    entries = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    found = next((one for one in entries if one.get("annotator") == person), {})
    meta = next((one.meta for one in annotation.result if isinstance(one.meta, dict)), {})
    return {**found, **meta}


def _version(told: object) -> int | None:
    """Return a version of the guidelines, from 1, else None."""
    if isinstance(told, bool) or not isinstance(told, int | str):
        return None
    try:
        found = int(told)
    except ValueError:
        return None
    return found if 0 < found < _MOST_VERSIONS else None


def _moment(told: object) -> datetime | None:
    """Return a time as ISO 8601 writes it, in UTC where it names no zone; None for
    anything else.
    """
    try:
        found = datetime.fromisoformat(told.strip()) if isinstance(told, str) else None
        return found and (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _seconds(told: object) -> float | None:
    """Return an active time that is possible, else None."""
    try:
        found = float(told) if isinstance(told, int | float | str) else -1.0
    except ValueError:
        return None
    return found if 0 <= found < _DAY else None


def _item_of(task: _TaskOfLabelStudio, number: int) -> SessionItem:
    ours = task.data.get("veriscope")
    if isinstance(ours, dict) and "body" in ours and "key" in ours:
        return SessionItem(key=str(ours["key"]), body=ItemBody.model_validate(ours["body"]))
    body = {"task": _task_of(task), "text": task.data.get("text", "")}
    if isinstance(question := task.data.get("question"), str):
        body["question"] = question
    name = str(task.id if task.id is not None else number)
    made = ItemBody.model_validate(body)
    # Every project counts its tasks from 1.
    told = json.dumps([name, made.task, made.question, made.text])
    key = f"label-studio-{sha256(told.encode()).hexdigest()[:32]}"
    return SessionItem(key=key, body=made)


def _task_of(task: _TaskOfLabelStudio) -> Task:
    """Return spans, unless there is a choice and no region."""
    kinds = {one.type for annotation in task.annotations for one in annotation.result}
    return "answer" if "choices" in kinds and "labels" not in kinds else "span"


def _label_of(annotation: _Annotation, body: ItemBody) -> Label:
    if body.task == "span":
        spans = [_span_of(one.value, body) for one in annotation.result if one.type == "labels"]
        return parse_label({"task": "span", "spans": spans}, body)
    chosen = [one.value.get("choices") for one in annotation.result if one.type == "choices"]
    first = chosen[0][0] if chosen and isinstance(chosen[0], list) and chosen[0] else None
    label = label_adapter.validate_python({"task": body.task, "verdict": first})
    return parse_label(label, body)


def _span_of(value: Mapping[str, Any], body: ItemBody) -> dict[str, Any]:
    start, end = value.get("start"), value.get("end")
    if not isinstance(start, int) or not isinstance(end, int):
        raise failure("annotation.bad_value", problem=phrase("label.no_region"))
    found = {"start": code_point_offset(body.text, start), "end": code_point_offset(body.text, end)}
    names = value.get("labels")
    name = names[0] if isinstance(names, list) and names else "other"
    try:
        LabelSpan.model_validate({**found, "kind": name})
    except ValidationError:
        return found
    return {**found, "kind": name}


def _person(name: object) -> str:
    """Return who annotated: a name, a number, or an object with an e-mail address."""
    if isinstance(name, dict):
        name = name.get("email") or name.get("username") or name.get("id")
    return ("" if name is None else f"{name}")[:200].strip() or "Label Studio"


def _names(whole: WholeSession) -> dict[int, str]:
    return {one.number: one.name for one in whole.annotators}


def _bad(task: int, problem: Fact) -> VeriscopeError:
    return failure("annotation.bad_file", problem=problem, line=task)

"""Labels in the forms that people and other programs label in: CSV and Label Studio.

Offsets are code points, half-open. Label Studio counts UTF-16 units as browsers do, so they are
converted on both ways.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from pydantic import BaseModel, ConfigDict, TypeAdapter, ValidationError

from pipelines.annotation.adjudication import by_item, final_labels
from pipelines.annotation.labelling import (
    GIVING,
    Adjudication,
    GivenLabel,
    ReadLabel,
    decisions,
    standing_labels,
)
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import (
    MAX_CLIENT,
    MOST_OVERLAP,
    VERDICTS,
    Hidden,
    ItemBody,
    Label,
    LabelSpan,
    SessionItem,
    SessionSpec,
    SpanLabel,
    Task,
    is_wrong,
    label_adapter,
    parse_label,
    require_fitting,
    verdict_of,
)
from pipelines.base import Frozen, printable_json
from pipelines.error_words import Fact, PhraseError, phrase, problem_at
from pipelines.errors import InvalidInputError, VeriscopeError, failure
from pipelines.evaluation.datasets.labelled import LabelStudioTask, code_point_offset, person_of
from pipelines.evaluation.datasets.mapping import label_in
from pipelines.evaluation.results.export import Cell, csv_text, harmless
from pipelines.store import RunStore
from pipelines.store.annotations import (
    MAX_NAME,
    Annotator,
    Guidelines,
    StoredClaim,
    StoredEvent,
    StoredItem,
    StoredSession,
    WholeSession,
)
from pipelines.store.tables import portable, to_json
from pipelines.text.sentences import csv_source

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


class LabelRecords(NamedTuple):
    """A row for each label that stands, by the names of its columns."""

    columns: tuple[str, ...]
    rows: list[dict[str, Cell]]


def label_records(lead: Lead) -> LabelRecords:
    """Return one row for each label that stands, with who, when, which guidelines and which run.

    Spans are JSON.
    """
    whole = lead.whole()
    names = _names(whole)
    items = {one.number: one for one in whole.items}

    def record(one: GivenLabel) -> dict[str, Cell]:
        stored = items[one.item]
        body = ItemBody.model_validate(stored.body)
        row = _Labelled(one, names[one.annotator], stored, body)
        return {name: cell(row) for name, cell in _COLUMNS.items()}

    return LabelRecords(tuple(_COLUMNS), [*map(record, standing_labels(whole.events))])


def export_csv(lead: Lead) -> str:
    """Return `label_records` as CSV; formulas of a spreadsheet are made texts by an apostrophe."""
    records = label_records(lead)
    return csv_text(records.rows, records.columns)


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
                moment(row.get("at")),
                seconds(row.get("seconds")),
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
            item = _item_of(task, told, number)
            items.append(item)
            for annotation in task.annotations:
                if annotation.was_cancelled:
                    continue
                label = _label_of(annotation, item.body)
                person = person_of(annotation.completed_by)
                told_of = _told_of(task, annotation, person)
                read = ReadLabel(
                    item.key,
                    label,
                    moment(annotation.created_at),
                    seconds(annotation.lead_time),
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
    """Return a cell without the apostrophe that keeps it from being taken for a formula."""
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
    """Return what `_provenance` and the results' `meta` say of an annotation; the latter first."""
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


def moment(told: object) -> datetime | None:
    """Return a time as in ISO 8601, in UTC where it names no zone; None for anything else."""
    try:
        found = datetime.fromisoformat(told.strip()) if isinstance(told, str) else None
        return found and (found if found.tzinfo else found.replace(tzinfo=UTC)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def seconds(told: object) -> float | None:
    """Return an active time that is possible, else None."""
    try:
        found = float(told) if isinstance(told, int | float | str) else -1.0
    except ValueError:
        return None
    return found if 0 <= found < _DAY else None


def _item_of(task: _TaskOfLabelStudio, told: object, number: int) -> SessionItem:
    ours = task.data.get("veriscope")
    if isinstance(ours, dict) and "body" in ours and "key" in ours:
        return SessionItem(key=str(ours["key"]), body=ItemBody.model_validate(ours["body"]))
    # The project may have named its data in any way.
    parts = LabelStudioTask.model_validate(told).parts()
    body: dict[str, Any] = {"task": _task_of(task), "text": parts["text"]}
    if parts["question"]:
        body["question"] = parts["question"]
    if parts["passages"]:
        body["evidence"] = [{"title": one.title, "text": one.text} for one in parts["passages"]]
    name = str(task.id if task.id is not None else number)
    made = ItemBody.model_validate(body)
    # Every project counts its tasks from 1.
    named = json.dumps([name, made.task, made.question, made.text])
    key = f"label-studio-{sha256(named.encode()).hexdigest()[:32]}"
    return SessionItem(key=key, body=made)


def _task_of(task: _TaskOfLabelStudio) -> Task:
    """Return spans, unless there is a choice and no region."""
    kinds = {one.type for annotation in task.annotations for one in annotation.result}
    return "answer" if "choices" in kinds and "labels" not in kinds else "span"


_MEANING: dict[Task, dict[bool | None, str]] = {
    "answer": {True: "wrong", False: "correct"},
    "sentence": {True: "major", False: "accurate"},
    "concept": {True: "false", False: "true", None: "not_enough"},
}
"""The verdict of each task for a word that says whether something is hallucinated."""


def verdict_in(task: Task, word: object) -> str | None:
    """Return the verdict of a task that a word is, or that it means; None for any other word."""
    plain = str(word).strip().casefold()
    if plain in VERDICTS[task]:
        return plain
    try:
        return _MEANING.get(task, {}).get(label_in(plain))
    except KeyError:
        return None


def _label_of(annotation: _Annotation, body: ItemBody) -> Label:
    if body.task == "span":
        spans = [_span_of(one.value, body) for one in annotation.result if one.type == "labels"]
        return parse_label({"task": "span", "spans": spans}, body)
    chosen = [one.value.get("choices") for one in annotation.result if one.type == "choices"]
    first = chosen[0][0] if chosen and isinstance(chosen[0], list) and chosen[0] else None
    label = label_adapter.validate_python(
        {"task": body.task, "verdict": verdict_in(body.task, first) or first}
    )
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


def _names(whole: WholeSession) -> dict[int, str]:
    return {one.number: one.name for one in whole.annotators}


def _bad(task: int, problem: Fact) -> VeriscopeError:
    return failure("annotation.bad_file", problem=problem, line=task)


# Final labels in the forms of data sets and programs for evaluation: RAGTruth and inspect_ai.
#
# Items whose people disagree, and that nobody decided, are left out. Offsets are code points.

_RAGTRUTH = {"contradiction": "Evident Conflict", "unsupported": "Evident Baseless Info"}


class _Response(NamedTuple):
    """A labelled text, and the source that it belongs to."""

    key: str
    body: ItemBody
    label: SpanLabel
    source: str


def export_ragtruth(lead: Lead) -> Iterator[str]:
    """Yield the span items in the form of RAGTruth's response.jsonl, with final labels; line
    by line.

    `labels` are [start, end) with the text and a label_type. `source_id` names a line of
    `export_ragtruth_sources`.
    """
    for one in _responses(lead):
        text = one.body.text
        told = {
            "id": one.key,
            "source_id": one.source,
            "model": one.body.place.method,
            "split": "test",
            "quality": "good",
            "labels": [
                {
                    "start": span.start,
                    "end": span.end,
                    "text": text[span.start : span.end],
                    "label_type": _RAGTRUTH.get(span.kind, "Evident Baseless Info"),
                    "meta": span.kind,
                    "implicit_true": False,
                    "due_to_null": False,
                }
                for span in one.label.spans
            ],
            "response": text,
        }
        yield _line(told)


def export_ragtruth_sources(lead: Lead) -> Iterator[str]:
    """Yield the questions and passages of `export_ragtruth`, in the form of source_info.jsonl.

    Each is a question with its passages ("QA") in the order of the first text about it. `prompt`
    is empty: with which prompt a text was written is in its run.
    """
    told: set[str] = set()
    for one in _responses(lead):
        if one.source in told:
            continue
        told.add(one.source)
        passages = [
            f"passage {number}:{' '.join(passage.text.split())}"
            for number, passage in enumerate(one.body.evidence, start=1)
        ]
        yield _line(
            {
                "source_id": one.source,
                "task_type": "QA",
                "source": one.body.place.data or "Veriscope",
                "source_info": {"question": one.body.question, "passages": "\n\n".join(passages)},
                "prompt": "",
            }
        )


def _responses(lead: Lead) -> Iterator[_Response]:
    """Yield the span items with a final label. Items share a source where they share all that
    is in it.

    A source is called as the record of the data set, else as the run; the second one of that name,
    with other passages for instance, has a number behind it.
    """
    whole = lead.whole()
    events = whole.events
    spans = {one.number: one for one in whole.items if one.task == "span"}
    final = final_labels(spans, standing_labels(events), decisions(events))
    names: dict[tuple[Any, ...], str] = {}
    alike: dict[str, int] = {}
    for number, stored in spans.items():
        body = ItemBody.model_validate(stored.body)
        wanted = body.place.record or body.place.run or stored.key
        source = (wanted, body.question, *(passage.text for passage in body.evidence))
        if source not in names:
            alike[wanted] = alike.get(wanted, 0) + 1
            names[source] = wanted if alike[wanted] == 1 else f"{wanted}-{alike[wanted]}"
        label = final[number].label
        if isinstance(label, SpanLabel):
            yield _Response(stored.key, body, label, names[source])


def export_precomputed_scores(lead: Lead, task: Task) -> Iterator[str]:
    """Yield final labels as precomputed scores of inspect_ai: id, epoch, scorer and value, line
    by line.

    The value is 1 where people found no error and 0 where they did; an item for which that cannot
    be said, or on which people disagree, is left out. The id is that of the data set's record where
    there is one, else the item's key; `epoch` counts the items of one id from 1.
    """
    whole = lead.whole()
    events = whole.events
    items = {one.number: one for one in whole.items if one.task == task}
    final = final_labels(items, standing_labels(events), decisions(events))
    epochs: dict[str, int] = {}
    for number, stored in items.items():
        label = final[number].label
        wrong = None if label is None else is_wrong(label)
        if label is None or wrong is None:
            continue
        name = ItemBody.model_validate(stored.body).place.record or stored.key
        epochs[name] = epochs.get(name, 0) + 1
        told = {
            "id": name,
            "epoch": epochs[name],
            "scorer": f"human_{task}",
            "value": 0 if wrong else 1,
            "explanation": f"{verdict_of(label)} ({final[number].status})",
        }
        yield _line(told)


def _line(told: dict[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=False) + "\n"


# A whole session as JSON lines, to be carried from one store to another.
#
# The first line is a header, each line after it one guideline version, annotator, item, claim or
# event, in this order. Exported again from the store into which it was imported, the text is the
# same: a session keeps its times, numbers and random order. What stays behind are the links, whose
# session it was, and when each item was given out.

MOST_LINES = 2_000_000
MOST_IN_LINE = 8 * 2**20
"""How large an imported session may be: lines, and characters of a line."""

_KINDS: dict[str, type[Frozen]] = {
    "guidelines": Guidelines,
    "annotator": Annotator,
    "item": StoredItem,
    "claim": StoredClaim,
    "event": StoredEvent,
}
MAX_KEY = 64
"""Characters of the key of an item, and of the name of a run."""

_LEFT_OUT = {"id", "owner", "items"}


class _Header(Frozen):
    """The first line."""

    format: Literal["veriscope-annotation"] = "veriscope-annotation"
    version: Literal[1] = 1
    session: dict[str, Any]


def export_session(lead: Lead) -> Iterator[str]:
    """Yield the lines of a session, each with its line end."""
    whole = lead.whole()
    session = whole.session.model_dump(mode="json", exclude=_LEFT_OUT)
    yield _record_line(_Header(session=session).model_dump(mode="json"))
    parts: dict[str, Iterable[Frozen]] = {
        "guidelines": whole.guidelines,
        "annotator": whole.annotators,
        "item": whole.items,
        "claim": whole.claims,
        "event": whole.events,
    }
    for kind, values in parts.items():
        for value in values:
            yield _record_line({"kind": kind, **_named(value)})


def import_session(store: RunStore, owner: str, lines: Iterable[str]) -> Lead:
    """Store an exported session as one of `owner`, whole or not at all.

    The file is not trusted. Raises InvalidInputError, whose message names the line (from 1), at
    the first that is wrong.
    """
    found: dict[str, list[Any]] = {kind: [] for kind in _KINDS}
    session: StoredSession | None = None
    checker = _Checker()
    for number, line in enumerate(lines, start=1):
        if not line.strip():
            continue
        if number > MOST_LINES or len(line) > MOST_IN_LINE:
            raise _bad_line(number, phrase("import.too_large"))
        try:
            told = portable(json.loads(line))
            if session is None:
                session = _session_of(told)
                continue
            kind = told.pop("kind", None) if isinstance(told, dict) else None
            if not isinstance(kind, str) or kind not in _KINDS:
                raise PhraseError("import.unknown_kind", kind=kind)
            value = _KINDS[kind].model_validate(_renamed(kind, told))
            checker.check(value)
        except ValidationError as error:
            raise _bad_line(number, problem_at(error)) from None
        except PhraseError as error:
            raise _bad_line(number, error.phrase) from None
        except ValueError as error:
            raise _bad_line(number, str(error)) from None
        except RecursionError:
            raise _bad_line(number, phrase("import.too_deep")) from None
        found[kind].append(value)
    if session is None or not found["item"] or not found["guidelines"]:
        raise _bad_line(1, phrase("import.no_session"))
    session = session.model_copy(update={"guidelines": len(found["guidelines"])})
    whole = WholeSession(
        session,
        found["guidelines"],
        found["annotator"],
        checker.counted(found["item"]),
        found["claim"],
        found["event"],
    )
    return Lead(store, store.annotations.restore(owner, whole), owner)


class _Checker:
    """What the lines of a file say together: numbers without gaps, and nothing that is missing."""

    def __init__(self) -> None:
        self._items: dict[int, ItemBody] = {}
        self._keys: set[str] = set()
        self._controls: set[int] = set()
        self._annotators: set[str] = set()
        self._versions = 0
        self._events = 0
        self._clients: set[tuple[int, str]] = set()
        self._claims: set[tuple[int, int]] = set()
        self._slots: set[tuple[int, int]] = set()
        self._labels: dict[int, int] = {}

    def check(self, value: Any) -> None:
        """Raise ValueError for a line that does not fit those before it."""
        _require_moments(value)
        match value:
            case Guidelines():
                self._versions += 1
                _require(value.version == self._versions, "import.no_version")
            case Annotator():
                name = value.name.strip()
                _require(value.number == len(self._annotators), "import.no_annotator")
                usable = bool(name) and len(value.name) <= MAX_NAME
                _require(usable, "import.no_annotator_name")
                _require(name not in self._annotators, "import.same_annotator")
                self._annotators.add(name)
            case StoredItem():
                self._check_item(value)
            case StoredClaim():
                self._check_claim(value)
            case StoredEvent():
                self._check_event(value)
            case _:
                raise PhraseError("import.unknown")

    def counted(self, items: list[StoredItem]) -> list[StoredItem]:
        """Return the items with the labels that the claims say they have."""
        return [one.model_copy(update={"labels": self._labels.get(one.number, 0)}) for one in items]

    def _check_item(self, value: StoredItem) -> None:
        _require(value.number == len(self._items), "import.no_item")
        _require(value.key not in self._keys, "import.same_item")
        _require(0 < len(value.key) <= MAX_KEY, "import.no_item_key")
        body = ItemBody.model_validate(value.body)
        _require(body.task == value.task, "import.two_tasks")
        Hidden.model_validate(value.hidden)
        if value.gold is not None:
            require_fitting(_label(value.gold), body)
            self._controls.add(value.number)
        _require(value.probability is None or 0 < value.probability <= 1, "import.bad_probability")
        self._keys.add(value.key)
        self._items[value.number] = body

    def _check_claim(self, value: StoredClaim) -> None:
        self._require_known(value.item, value.annotator)
        key = value.item, value.annotator
        _require(key not in self._claims, "import.given_twice")
        self._claims.add(key)
        if value.slot is not None:
            _require(0 <= value.slot < MOST_OVERLAP, "import.bad_place")
            _require((value.item, value.slot) not in self._slots, "import.same_place")
            self._slots.add((value.item, value.slot))
        if value.state == "labelled" and value.item not in self._controls:
            self._labels[value.item] = self._labels.get(value.item, 0) + 1

    def _check_event(self, value: StoredEvent) -> None:
        self._require_known(value.item, value.annotator)
        _require(value.seq == self._events, "import.no_event")
        self._events += 1
        _require((value.annotator, value.client) not in self._clients, "import.same_request")
        _require(0 < len(value.client) <= MAX_CLIENT, "import.no_request_name")
        _require(len(value.run) <= MAX_KEY, "import.long_run_name")
        _require(1 <= value.overlap <= MOST_OVERLAP, "import.bad_overlap", most=MOST_OVERLAP)
        seconds = value.seconds
        _require(seconds is None or 0 <= seconds < 86_400, "import.bad_active_time")
        self._clients.add((value.annotator, value.client))
        _require(1 <= value.guidelines <= self._versions, "import.no_guidelines_version")
        if value.kind in GIVING:
            require_fitting(_label(value.value), self._items[value.item])
        elif value.kind == "adjudicated":
            require_fitting(Adjudication.model_validate(value.value).label, self._items[value.item])

    def _require_known(self, item: int, annotator: int) -> None:
        _require(item in self._items, "import.no_item")
        _require(0 <= annotator < len(self._annotators), "import.no_annotator")


_values: TypeAdapter[dict[str, Any]] = TypeAdapter(dict[str, Any])


def _session_of(told: object) -> StoredSession:
    header = _Header.model_validate(told)
    # Whose it is, and under which name it is stored, is decided here.
    session = StoredSession.model_validate(
        {**header.session, "id": "imported", "owner": "imported", "items": 0}
    )
    SessionSpec.model_validate(session.spec)
    _require_moments(session)
    _require(1 <= session.overlap <= MOST_OVERLAP, "import.bad_overlap", most=MOST_OVERLAP)
    usable = bool(session.name.strip()) and len(session.name) <= MAX_NAME
    _require(usable, "import.no_session_name")
    _require(0 < len(session.seed) <= 32, "import.no_seed")
    return session


def _require_moments(value: Frozen) -> None:
    """Check that every time names its zone, and is one that UTC has: nothing else can be stored."""
    for name in type(value).model_fields:
        moment = getattr(value, name)
        if not isinstance(moment, datetime):
            continue
        _require(moment.tzinfo is not None, "import.no_zone", name=name)
        try:
            moment.astimezone(UTC)
        except OverflowError:
            raise PhraseError("import.bad_time", name=name) from None


def _label(value: object) -> Label:
    return label_adapter.validate_python(value)


def _named(value: Frozen) -> dict[str, Any]:
    """Return a line's fields; the kind of a person or an event gives way to that of the line."""
    told = value.model_dump(mode="json")
    if "kind" in told:
        told["is"] = told.pop("kind")
    return told


def _renamed(kind: str, told: dict[str, Any]) -> dict[str, Any]:
    told = _values.validate_python(told)
    if kind in ("annotator", "event"):
        told["kind"] = told.pop("is", None)
    return told


def _record_line(value: dict[str, Any]) -> str:
    return printable_json(json.dumps(value, ensure_ascii=False, sort_keys=True)) + "\n"


def _require(condition: bool, problem: str, **facts: object) -> None:
    if not condition:
        raise PhraseError(problem, **facts)


def _bad_line(line: int, problem: Fact) -> VeriscopeError:
    return failure("annotation.bad_file", problem=problem, line=line)

"""Labels in tables: Excel out and in, and what other tools export, matched with a session."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from pipelines.annotation.formats import export_csv
from pipelines.annotation.sources import read_labels, session_items
from pipelines.annotation.tables import export_workbook
from pipelines.annotation.types import verdict_of
from pipelines.errors import InvalidInputError
from pipelines.store import RunStore
from tests.pipelines.annotation.bench import TEXT, item, lead_session
from tests.pipelines.annotation.test_exchange import worked

SPAN = {"start": 0, "end": 3}


def test_a_workbook_of_labels_comes_back_unchanged(store: RunStore, tmp_path: Path):
    pytest.importorskip("openpyxl")
    lead = worked(store)
    items = session_items(lead)
    by_csv = read_labels("labels.csv", export_csv(lead).encode(), items)
    assert read_labels("labels.xlsx", export_workbook(lead), items) == by_csv
    # As people save it: with a mark and semicolons, and as text of a spreadsheet.
    table = pd.read_csv(io.StringIO(export_csv(lead)), dtype=str, keep_default_na=False)
    for name, separator in (("labels.csv", ";"), ("labels.tsv", "\t")):
        data = table.to_csv(index=False, sep=separator).encode("utf-8-sig")
        assert read_labels(name, data, items) == by_csv


def doccano(words: Any) -> bytes:
    return json.dumps({"id": 1, "text": TEXT, "label": words}).encode()


def argilla(value: Any) -> bytes:
    said = {"q": [{"value": value, "user_id": "ann", "status": "submitted"}]}
    return json.dumps({"id": "1", "fields": {"answer": TEXT}, "responses": said}).encode()


def potato(value: Any) -> bytes:
    spans = value if isinstance(value, list) else []
    chosen = {} if spans else {"q": {str(value): "true"}}
    row = {"user": "ann", "instance_id": "1", "displayed_text": TEXT}
    return json.dumps(row | {"label_annotations": chosen, "span_annotations": spans}).encode()


def label_studio(value: Any) -> bytes:
    kind = "labels" if isinstance(value, list) else "choices"
    told = {**SPAN, "labels": ["number"]} if isinstance(value, list) else {"choices": [value]}
    result = [{"type": kind, "value": told}]
    task = {
        "id": 1,
        "data": {"antwort": TEXT},
        "annotations": [{"completed_by": "ann", "result": result}],
    }
    return json.dumps([task]).encode()


@pytest.mark.parametrize(
    ("name", "make", "said"),
    [
        ("a.jsonl", doccano, [[0, 3, "number"]]),
        ("a.jsonl", argilla, [{**SPAN, "label": "number"}]),
        ("a.jsonl", potato, [{**SPAN, "annotation": "number"}]),
        ("a.json", label_studio, [SPAN]),
    ],
)
def test_pieces_that_tools_marked_become_spans(
    store: RunStore, name: str, make: Callable[[Any], bytes], said: Any
):
    lead = lead_session(store, [item("span")])
    (label,) = next(iter(read_labels(name, make(said), session_items(lead)).values()))
    assert label.key == "span-0"
    assert label.label.model_dump(mode="json")["spans"] == [{**SPAN, "kind": "number"}]


@pytest.mark.parametrize("make", [lambda word: doccano([word]), argilla, potato, label_studio])
@pytest.mark.parametrize(
    ("word", "verdict"),
    [
        ("Partly", "partly"),
        ("hallucinated", "wrong"),
        ("Supported", "correct"),
        ("PASS", "correct"),
    ],
)
def test_words_of_tools_become_verdicts(
    store: RunStore, make: Callable[[Any], bytes], word: str, verdict: str
):
    lead = lead_session(store, [item("answer"), item("sentence")])
    name = "a.json" if make is label_studio else "a.jsonl"
    people = read_labels(name, make(word), session_items(lead))
    found = [one for labels in people.values() for one in labels if one.key == "answer-0"]
    assert [verdict_of(one.label) for one in found] == [verdict]
    assert lead.import_labels("ann", found) == 1


def test_a_key_finds_an_item_whose_text_has_changed(store: RunStore):
    lead = lead_session(store, [item("answer")])
    row = {"id": 1, "text": "other words", "label": ["wrong"], "meta": {"key": "answer-0"}}
    strange = {"id": 2, "text": "nobody's", "label": ["wrong"]}
    data = "\n".join(map(json.dumps, (row, strange))).encode()
    (labels,) = read_labels("a.jsonl", data, session_items(lead)).values()
    # What belongs to no item is counted where it is imported.
    assert [one.key for one in labels] == ["answer-0", ""]


def test_files_without_labels_for_the_session_are_refused(store: RunStore):
    items = session_items(lead_session(store, [item("answer")]))
    strange = json.dumps({"id": 2, "text": "nobody's", "label": ["wrong"]}).encode()
    with pytest.raises(InvalidInputError, match=r"No record of a\.jsonl is an item"):
        read_labels("a.jsonl", strange, items)
    with pytest.raises(InvalidInputError, match=r"no export of labels: its columns are 'a', 'b'"):
        read_labels("a.csv", b"a,b\n1,2\n", items)

"""Final labels in the forms of RAGTruth, which are read back, and of inspect_ai."""

from __future__ import annotations

import json
from pathlib import Path

from pipelines.annotation.formats import (
    export_precomputed_scores,
    export_ragtruth,
    export_ragtruth_sources,
)
from pipelines.annotation.items import items_of_data
from pipelines.annotation.types import Evidence, ItemPlace, SessionItem, SpanLabel
from pipelines.evaluation.datasets.opening import open_data_set
from pipelines.store import RunStore
from tests.pipelines.annotation.bench import TEXT, item, join, label_all, lead_session


def test_ragtruth_and_precomputed_scores_hold_final_labels(store: RunStore):
    place = ItemPlace(record="q7", data="set")
    body = item("answer").body.model_copy(update={"place": place})
    items = [item("span", n) for n in range(2)] + [item("answer", 5, body=body)]
    lead = lead_session(store, items, overlap=2)
    ann, bo = join(lead, "Ann", "Bo")
    label_all(ann)
    label_all(bo, {1: {"task": "span", "spans": []}})
    (row,) = map(json.loads, export_ragtruth(lead))
    assert row["id"] == "span-0"
    assert row["labels"][0]["text"] == row["response"][16:23] == TEXT[16:23]
    assert [json.loads(line) for line in export_precomputed_scores(lead, "answer")] == [
        {
            "id": "q7",
            "epoch": 1,
            "scorer": "human_answer",
            "value": 0,
            "explanation": "partly (unanimous)",
        }
    ]
    assert len(list(export_precomputed_scores(lead, "span"))) == 1


def test_what_is_exported_for_ragtruth_is_read_as_ragtruth_is(store: RunStore, tmp_path: Path):
    marked = [
        {"start": 0, "end": 3, "kind": "contradiction"},
        {"start": 16, "end": 23, "kind": "entity"},
    ]
    passages = (Evidence(title="Ada", text="Ada lived\nin Delft."), Evidence(text="It rains."))
    body = item("span").body.model_copy(update={"evidence": passages})
    lead = lead_session(store, [item("span", body=body)], overlap=1)
    label_all(join(lead, "Ann")[0], {0: {"task": "span", "spans": marked}})
    files = {"response": export_ragtruth(lead), "source_info": export_ragtruth_sources(lead)}
    for name, lines in files.items():
        (tmp_path / f"{name}.jsonl").write_text("".join(lines), encoding="utf-8")
    (read,) = open_data_set(tmp_path).items
    assert (read.text, read.question) == (TEXT, "Who is Ada (0)?")
    assert [one.text for one in read.passages] == ["Ada lived in Delft.", "It rains."]
    # Ends count code points in both: the flower in the second piece is one.
    assert [(one.start, one.end, one.kind) for one in read.spans] == [
        (0, 3, "Evident Conflict"),
        (16, 23, "Evident Baseless Info"),
    ]
    ((_, label),) = items_of_data([read], ("span",))
    assert isinstance(label, SpanLabel)
    assert [one.kind for one in label.spans] == ["contradiction", "unsupported"]


def test_texts_share_a_source_where_question_and_passages_are_the_same(store: RunStore):
    place = ItemPlace(record="q7", data="set")

    def about(number: int, *passages: str) -> SessionItem:
        evidence = tuple(Evidence(text=one) for one in passages)
        told = {"place": place, "evidence": evidence, "question": "Who is Ada?"}
        return item("span", number, body=item("span").body.model_copy(update=told))

    items = [about(0, "One."), about(1, "Two."), about(2, "One.")]
    lead = lead_session(store, items, overlap=1)
    label_all(join(lead, "Ann")[0])
    responses = [json.loads(one) for one in export_ragtruth(lead)]
    assert [one["source_id"] for one in responses] == ["q7", "q7-2", "q7"]
    sources = [json.loads(one) for one in export_ragtruth_sources(lead)]
    assert [(one["source_id"], one["source_info"]["passages"]) for one in sources] == [
        ("q7", "passage 1:One."),
        ("q7-2", "passage 1:Two."),
    ]
    assert {one["source"] for one in sources} == {"set"}

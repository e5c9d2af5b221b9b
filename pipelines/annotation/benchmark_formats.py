"""Final labels in the forms of data sets and programs for evaluation: RAGTruth and inspect_ai.

Items whose people disagree, and that nobody decided, are left out. Offsets are code points.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from pipelines.annotation.adjudication import final_labels
from pipelines.annotation.labels import decisions, standing_labels
from pipelines.annotation.leading import Lead
from pipelines.annotation.types import ItemBody, SpanLabel, Task, is_wrong, verdict_of

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
                "source_info": {
                    "question": one.body.question,
                    "passages": "\n\n".join(passages),
                },
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

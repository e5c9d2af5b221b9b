"""Sessions for tests: some items of every task, and people who have joined."""

from __future__ import annotations

import gzip
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

from pipelines.annotation.labelling import AssignedItem, Worker
from pipelines.annotation.sessions import Invitation, Lead, create_session, enter
from pipelines.annotation.types import Hidden, ItemBody, ModelVerdict, SessionItem, SessionSpec
from pipelines.run.events import Trace
from pipelines.store import RunStore
from pipelines.store.exchange import parse_lines
from tests.pipelines.store.test_annotations import set_seed

RUN = Path(__file__).resolve().parents[2] / "data" / "runs" / "clinton.jsonl.gz"
TEXT = "Ada was born in Delft 🌷 in 1904. 她生于荷兰。"
VALUES: dict[str, dict[str, Any]] = {
    "concept": {"task": "concept", "verdict": "true"},
    "span": {"task": "span", "spans": [{"start": 16, "end": 23, "kind": "entity"}]},
    "sentence": {"task": "sentence", "verdict": "minor"},
    "comparison": {"task": "comparison", "verdict": "corrected"},
    "answer": {"task": "answer", "verdict": "partly"},
}


@cache
def recorded() -> Trace:
    """A recorded run with every method."""
    return Trace(events=parse_lines(gzip.decompress(RUN.read_bytes()).decode("utf-8")))


def item(task: str, number: int = 0, **more: Any) -> SessionItem:
    told: dict[str, Any] = {"task": task, "question": f"Who is Ada ({number})?", "text": TEXT}
    if task in ("concept", "sentence"):
        told |= {"start": 0, "end": 3 if task == "concept" else 32}
    if task == "comparison":
        told |= {"other": "Ada was born in Gouda."}
    hidden = Hidden(verdicts=(ModelVerdict(method="slm", verdict="doubtful", doubt=0.8),))
    body = ItemBody.model_validate(told)
    found = {"key": f"{task}-{number}", "body": body, "hidden": hidden} | more
    return SessionItem.model_validate(found)


def lead_session(
    store: RunStore, items: Sequence[SessionItem] | None = None, overlap: int = 2, **spec: Any
) -> Lead:
    items = [item(task) for task in VALUES] if items is None else items
    settings = SessionSpec.model_validate({"without_gold": True} | spec)
    lead = create_session(
        store, "me", "Ada", settings, items, overlap=overlap, guidelines="Read the evidence."
    )
    set_seed(store, lead.session_id)
    return lead


def join(lead: Lead, *names: str) -> list[Worker]:
    invitation = enter(lead.store, lead.invite("join"), "127.0.0.1")
    assert isinstance(invitation, Invitation)
    return [invitation.join(name)[0] for name in names]


def take(worker: Worker) -> AssignedItem:
    found = worker.next()
    assert isinstance(found, AssignedItem), found
    return found


def label_all(worker: Worker, values: dict[int, dict[str, Any]] | None = None) -> int:
    """Label everything there is, by item's number or else by its task; how many."""
    count = 0
    while isinstance(found := worker.next(), AssignedItem):
        value = (values or {}).get(found.item, VALUES[found.body.task])
        worker.label(found.item, value, client=f"{worker.annotator}-{found.item}", seconds=5)
        count += 1
    return count

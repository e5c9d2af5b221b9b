"""Requests of the component on the page "Decide": each is carried out once and acknowledged.

As with labels (`app.screens.annotation_requests`), a request may come again, and is stored once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from app.annotated import Disputes
from app.screens.annotation_requests import LabellingState, refusal_words
from components.failures import error_title
from components.labelling import CONFIDENCE, stored_value
from components.messages import Catalogue
from pipelines.annotation.adjudication import adjudicate, merged_spans
from pipelines.annotation.labels import Adjudication
from pipelines.annotation.leading import Lead
from pipelines.annotation.types import MAX_COMMENT, Label, SpanLabel, parse_label
from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.store.annotation_records import MAX_NAME


@dataclass
class Deciding(LabellingState):
    """What the page remembers of an adjudicator between two drawings.

    `merged` holds the labels that were merged of others' for the item `merging`, by the rule as in
    `Adjudication.merged`; the last one is the draft. `saved` is the item that was just decided.
    """

    merging: int | None = None
    merged: dict[str, Label] = field(default_factory=dict)
    saved: int | None = None

    def draft(self, item: int) -> Label | None:
        """Return the label to begin with, where one was merged for `item`."""
        if self.merging != item or not self.merged:
            return None
        return list(self.merged.values())[-1]


def handle_decision(
    lead: Lead,
    found: Disputes,
    name: str,
    request: dict[str, Any],
    deciding: Deciding,
    t: Catalogue,
) -> None:
    """Carry out a request of the adjudicator called `name`, and note in `deciding` what came of it.

    What cannot be done is refused there in words. Raises VeriscopeError for what may succeed when
    it is sent again, such as a database that is busy; it is not acknowledged then.
    """
    client, item = str(request.get("client") or ""), request.get("item")
    deciding.notice, deciding.saved = "", None
    try:
        if not isinstance(item, int) or isinstance(item, bool) or item not in found.bodies:
            raise failure("annotation.no_item")
        match request.get("action"):
            case "merge":
                _merge(found, item, request, deciding)
            case "decide":
                if not name:
                    raise failure("annotation.bad_name", most=MAX_NAME)
                _decide(lead, found, name, item, request, deciding)
            case other:
                problem = phrase("label.no_request", name=str(other)[:40])
                raise failure("annotation.bad_value", problem=problem)
    except VeriscopeError as error:
        if error.retryable:
            raise
        deciding.notice = refusal_words(error, t)
        if request.get("action") == "decide" and not name:
            deciding.notice = t("annotate.decide.name.first")
        deciding.answer(client, deciding.notice)
    except Exception:
        deciding.answer(client, error_title("unexpected", t))
        raise
    else:
        deciding.answer(client)


def _merge(found: Disputes, item: int, request: dict[str, Any], deciding: Deciding) -> None:
    rule, person = request.get("rule"), request.get("person")
    given = found.labels.get(item, [])
    spans = [one.label for one in given if isinstance(one.label, SpanLabel)]
    taken: Label | None = None
    if rule == "person":
        taken = next((one.label for one in given if one.annotator == person), None)
        rule = f"annotator:{person}"
    elif rule in ("union", "majority"):
        taken = merged_spans(spans, rule) if spans else None
    if taken is None:
        raise failure("annotation.bad_value", problem=phrase("label.no_merging"))
    if deciding.merging != item:
        deciding.merging, deciding.merged = item, {}
    deciding.merged.pop(str(rule), None)
    deciding.merged[str(rule)] = taken


def _decide(
    lead: Lead,
    found: Disputes,
    name: str,
    item: int,
    request: dict[str, Any],
    deciding: Deciding,
) -> None:
    client = str(request.get("client") or "")
    if _stored(lead, item, client):
        # It came again: how the label was merged may be forgotten by now.
        deciding.saved = item
        return
    body = found.bodies[item]
    label = parse_label(stored_value(body.task, request.get("value")), body)
    known = deciding.merged if deciding.merging == item else {}
    rules = [rule for rule, merged in known.items() if merged == label]
    decision = Adjudication(
        label=label,
        note=str(request.get("note") or "")[:MAX_COMMENT],
        confidence=CONFIDENCE.get(str(request.get("confidence") or "")),
        gap=request.get("gap") is True,
        merged=rules[-1] if rules else "",
    )
    adjudicate(lead, name, item, decision, client=client)
    deciding.merging, deciding.merged, deciding.saved = None, {}, item


def _stored(lead: Lead, item: int, client: str) -> bool:
    """Return whether the decision that this request gave is stored already."""
    events = lead.store.annotations.events(lead.session_id, item=item)
    return any(one.client == client and one.kind == "adjudicated" for one in events)

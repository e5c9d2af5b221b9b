"""Requests of the component on an annotator's page: each is carried out once and acknowledged.

The component sends a request again until it is acknowledged or refused, because a connection may
be lost and a server restarted at any moment. The store knows a request by its name.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from components.failures import error_title, explained
from components.labelling import stored_value
from components.messages import Catalogue
from pipelines.annotation.working import Worker
from pipelines.error_words import entries, phrase, phrase_in
from pipelines.errors import VeriscopeError, failure

_KEPT = 50
"""Acknowledgements that are told again: the component drops a request once it has heard of it."""


@dataclass
class LabellingState:
    """What the page remembers of one person between two drawings.

    `looked` is an item that they labelled before and look at again, `guidelines` that they asked to
    read these, `read` the version that they have read.
    """

    acknowledged: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    notice: str = ""
    looked: int | None = None
    guidelines: bool = False
    read: int = 0

    def answer(self, client: str, refusal: str = "") -> None:
        """Acknowledge a request, or refuse it in words."""
        if refusal:
            self.refused[client] = refusal
            for old in list(self.refused)[:-_KEPT]:
                del self.refused[old]
        elif client not in self.acknowledged:
            self.acknowledged = [*self.acknowledged[1 - _KEPT :], client]


def handle(worker: Worker, request: dict[str, Any], state: LabellingState, t: Catalogue) -> None:
    """Carry out a request, and write into `state` what came of it.

    What cannot be done is refused there in words. Raises VeriscopeError for what may succeed when
    it is sent again, such as a database that is busy; it is not acknowledged then.
    """
    client, item = str(request.get("client") or ""), request.get("item")
    state.notice = ""
    try:
        if not isinstance(item, int) or isinstance(item, bool):
            raise failure("annotation.no_item")
        _carry_out(worker, request, item, client, state, t)
    except VeriscopeError as error:
        if error.retryable:
            raise
        state.notice = refusal_words(error, t)
        state.looked = None
        state.answer(client, state.notice)
    except Exception:
        state.answer(client, error_title("unexpected", t))
        raise
    else:
        state.answer(client)


def _carry_out(
    worker: Worker,
    request: dict[str, Any],
    item: int,
    client: str,
    state: LabellingState,
    t: Catalogue,
) -> None:
    match request.get("action"):
        case "label" | "change" as action:
            give = worker.label if action == "label" else worker.change
            value = _value(worker, item, request.get("value"))
            seconds = _seconds(request.get("seconds"))
            # Newer guidelines, which nobody has read yet, are not those of this label.
            read = state.read or None
            give(item, value, client=client, seconds=seconds, guidelines=read)
            state.looked = item if action == "change" else None
        case "undo":
            worker.undo(item, client=client)
            state.looked = None
        case "redo":
            worker.redo(item, client=client)
            state.looked = None
        case "skip":
            worker.skip(item, _text(request.get("reason"), t), client=client)
            state.looked = None
        case "comment":
            worker.comment(item, _text(request.get("text"), t), client=client)
        case "reveal":
            worker.reveal(item, client=client)
            state.looked = item
        case "renew":
            worker.renew(item)
        case "look":
            state.looked = item
        case "next":
            state.looked = None
        case "guidelines":
            state.guidelines = True
        case other:
            raise failure(
                "annotation.bad_value", problem=phrase("label.no_request", name=str(other)[:40])
            )


def refusal_words(error: VeriscopeError, t: Catalogue) -> str:
    """Return why something was refused, in words for who has just sent a label where there
    are any.
    """
    own = f"annotating.{error.key.partition('.')[2]}"
    if error.key.startswith("annotation.") and own in entries():
        return phrase_in(phrase(own), t.language)
    return t("annotate.refused.other", problem=explained(error.info(), t))


def _value(worker: Worker, item: int, value: object) -> dict[str, Any]:
    given = worker.own(item)
    return stored_value(given.body.task, value, swapped=given.swapped)


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _text(value: object, t: Catalogue) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        raise failure("annotation.bad_value", problem=t("annotate.label.write_something"))
    return text

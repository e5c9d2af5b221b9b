"""Verdicts that visitors of a public page leave on shared runs, for the lead of a session to check.

They are kept in a session that was made for them (`SessionSpec.visitors`), whose items come with
the verdicts. A visitor has a pseudonym in it, which tells nothing of who they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from hashlib import blake2b
from typing import NamedTuple

from pipelines.annotation.leading import Lead
from pipelines.annotation.types import (
    MAX_CLIENT,
    ItemBody,
    Label,
    SessionItem,
    SessionSpec,
    label_adapter,
    parse_label,
)
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.store import RunStore
from pipelines.store.annotation_events import Action
from pipelines.store.annotation_records import NewItem, StoredEvent
from pipelines.store.annotation_visitors import Proposal, State, proposals
from pipelines.store.tables import to_json


class VisitorVerdict(NamedTuple):
    """A verdict that a visitor left, as the lead sees it; `number` names it."""

    number: int
    visitor: str
    item: int
    body: ItemBody
    label: Label
    state: State
    at: datetime


class VisitorsBook:
    """What visitors may do in the session of their page. Methods block."""

    def __init__(self, store: RunStore, session_id: str) -> None:
        """Raise NotFoundError for no session, InvalidInputError for one of another kind."""
        self._store = store
        self._session_id = session_id
        stored = store.annotations.get(session_id)
        if not SessionSpec.model_validate(stored.spec).visitors:
            raise failure("annotation.no_visitors")
        self._seed = stored.seed

    def leave(self, visitor: str, item: SessionItem, label: object, *, client: str) -> StoredEvent:
        """Store a verdict, which counts once it is accepted; a repeated request is stored once.

        `visitor` is the page's id of the visitor. Raises InvalidInputError for a label that the
        item does not have, and where the session is closed; TooOftenError where too many wait.
        """
        if not client or len(client) > MAX_CLIENT:
            raise failure("annotation.bad_value", problem=phrase("label.no_request_name"))
        value = to_json(parse_label(label, item.body))
        new = NewItem(item.key, item.body.task, to_json(item.body), to_json(item.hidden))
        action = Action(client, "proposed", value, run=item.body.place.run)
        visitors = self._store.annotation_visitors
        return visitors.propose(self._session_id, self.pseudonym(visitor), new, action)

    def own(self, visitor: str, keys: Sequence[str]) -> dict[str, tuple[Label, State]]:
        """Return the last verdict of a visitor on each of the items with these keys, and
        its state.
        """
        annotations = self._store.annotations
        name = self.pseudonym(visitor)
        people = {one.name: one.number for one in annotations.annotators(self._session_id)}
        if name not in people:
            return {}
        keyed = {one.number: one.key for one in annotations.items(self._session_id)}
        events = annotations.events(self._session_id, annotator=people[name])
        found: dict[str, tuple[Label, State]] = {
            keyed[one.event.item]: (label_adapter.validate_python(one.event.value), one.state)
            for one in proposals(events)
        }
        return {key: found[key] for key in keys if key in found}

    def pseudonym(self, visitor: str) -> str:
        """Return the name under which a visitor's verdicts are stored: always the same, not
        reversible.
        """
        said = f"{self._seed}:{visitor}".encode()
        return f"visitor {blake2b(said, digest_size=6).hexdigest()}"


def visitor_verdicts(lead: Lead) -> list[VisitorVerdict]:
    """Return every verdict that visitors left, the oldest first, with what became of it."""
    whole = lead.whole()
    names = {one.number: one.name for one in whole.annotators}
    bodies = {one.number: ItemBody.model_validate(one.body) for one in whole.items}
    return [_verdict(one, names, bodies) for one in proposals(whole.events)]


def decide_verdict(lead: Lead, number: int, *, accept: bool) -> State:
    """Accept a verdict, so that it counts as a label, or refuse it; returns it in its new state.

    Raises NotFoundError where there is none of this number, or where its visitor has left another
    one in its place.
    """
    visitors = lead.store.annotation_visitors
    return visitors.decide(lead.session_id, number, accept=accept).state


def _verdict(one: Proposal, names: dict[int, str], bodies: dict[int, ItemBody]) -> VisitorVerdict:
    event = one.event
    return VisitorVerdict(
        number=event.seq,
        visitor=names[event.annotator],
        item=event.item,
        body=bodies[event.item],
        label=label_adapter.validate_python(event.value),
        state=one.state,
        at=event.at,
    )

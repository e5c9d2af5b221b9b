"""Leading an annotation session: making it, changing it, inviting people, seeing everything."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b
from typing import Any

from pipelines.annotation.labelling import ReadLabel, Worker
from pipelines.annotation.types import (
    MAX_GUIDELINES,
    MOST_OVERLAP,
    ItemBody,
    Login,
    SessionItem,
    SessionSpec,
    parse_label,
    parse_spec,
    require_text,
)
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.store import RunStore
from pipelines.store.annotations import (
    MAX_NAME,
    Annotator,
    EventKind,
    Link,
    NewItem,
    Role,
    StoredEvent,
    StoredItem,
    StoredSession,
    WholeSession,
)
from pipelines.store.labelling import Action
from pipelines.store.tables import to_json

_IMPORTED = " (imported)"


def create_session(
    store: RunStore,
    owner: str,
    name: str,
    spec: SessionSpec,
    items: Iterable[SessionItem],
    *,
    overlap: int = 2,
    guidelines: str = "",
) -> Lead:
    """Make a session of `items`. Raises InvalidInputError saying what to do.

    A session without a control item has to say that it is meant so (`spec.without_gold`).
    """
    items = list(items)
    _require_overlap(overlap)
    require_text(guidelines, MAX_GUIDELINES)
    if not items:
        raise failure("annotation.bad_session", problem=phrase("session.no_items"))
    if not spec.without_gold and not any(item.gold is not None for item in items):
        problem = phrase("session.no_controls")
        raise failure("annotation.bad_session", problem=problem)
    strange = sorted({item.body.task for item in items} - set(spec.tasks))
    if strange:
        raise failure(
            "annotation.bad_session", problem=phrase("session.tasks_lack", tasks=[*strange])
        )
    made = store.annotations.create(owner, name, to_json(spec), overlap, guidelines)
    lead = Lead(store, made, owner)
    lead.add_items(items)
    return lead


class Lead:
    """Leads a session: changes it, invites people, sees everything. Methods block."""

    def __init__(self, store: RunStore, session_id: str, owner: str | None = None) -> None:
        """Raise NotFoundError where there is no such session of `owner` (None: of anybody)."""
        self.store = store
        self.session_id = session_id
        store.annotations.get(session_id, owner)

    @property
    def session(self) -> StoredSession:
        """The session as it is now."""
        return self.store.annotations.get(self.session_id)

    @property
    def spec(self) -> SessionSpec:
        """How the session works."""
        return SessionSpec.model_validate(self.session.spec)

    def add_items(self, items: Iterable[SessionItem]) -> int:
        """Add items that the session does not hold yet; return how many were new."""
        rows = [
            NewItem(
                key=item.key,
                task=item.body.task,
                body=to_json(item.body),
                hidden=to_json(item.hidden),
                gold=None if item.gold is None else to_json(item.gold),
                probability=item.probability,
            )
            for item in items
        ]
        return self.store.annotations.add_items(self.session_id, rows)

    def set_gold(self, item: int, label: dict[str, Any] | None) -> None:
        """Make an item a control item with this label, or an ordinary one again."""
        stored = self.store.annotations.item(self.session_id, item)
        if label is not None:
            label = to_json(parse_label(label, ItemBody.model_validate(stored.body)))
        self.store.annotations.set_gold(self.session_id, item, label)

    def set_overlap(self, overlap: int) -> None:
        """Change how many people label an item from now on."""
        _require_overlap(overlap)
        self.store.annotations.set_overlap(self.session_id, overlap)

    def change(self, **changes: Any) -> None:
        """Change some of the settings. Raises InvalidInputError that names what is wrong."""
        checked = to_json(parse_spec({**self.session.spec, **changes}))
        told = {name: checked[name] for name in changes}
        self.store.annotations.set_spec(self.session_id, told)

    def set_guidelines(self, text: str) -> int:
        """Store a new version of the guidelines (Markdown); return its number."""
        require_text(text, MAX_GUIDELINES)
        return self.store.annotations.set_guidelines(self.session_id, text)

    def close(self, *, closed: bool = True) -> None:
        """Close the session, or open it again."""
        self.store.annotations.close(self.session_id, closed=closed)

    def invite(self, role: Role, *, annotator: int | None = None, days: float | None = None) -> str:
        """Make a link, which is told this once; it expires after `days`, or never."""
        if (role == "annotator") != (annotator is not None):
            raise failure("annotation.no_annotator")
        if annotator is not None and annotator not in {one.number for one in self.annotators()}:
            raise failure("annotation.no_annotator")
        seconds = None if days is None else days * 86_400
        return self.store.annotation_links.create(
            self.session_id, role, annotator=annotator, seconds=seconds
        )

    def links(self) -> list[Link]:
        """Return every link that was made, without its secret."""
        return self.store.annotation_links.list(self.session_id)

    def revoke(self, link: str) -> None:
        """Withdraw a link for good."""
        self.store.annotation_links.revoke(self.session_id, link)

    def annotators(self) -> list[Annotator]:
        """Return everybody who takes part."""
        return self.store.annotations.annotators(self.session_id)

    def whole(self) -> WholeSession:
        """Return everything in the session at one moment, while others go on working in it."""
        return self.store.annotations.whole(self.session_id)

    def items(self) -> list[StoredItem]:
        """Return every item, with its control label and what models said."""
        return self.store.annotations.items(self.session_id)

    def events(self) -> list[StoredEvent]:
        """Return everything that was done."""
        return self.store.annotations.events(self.session_id)

    def import_labels(self, name: str, labels: Iterable[ReadLabel]) -> int:
        """Store labels from elsewhere, by the items' keys, as those of one "imported" person.

        Where somebody who takes part has the name, it is followed by "(imported)". The labels do
        not count towards the overlap. Items that the session does not hold are left out. Each label
        keeps when it was given, and by which version of the guidelines, where that is known and the
        session has that version. A label that differs from the one imported before changes it. How
        many are new.
        """
        name = name.strip()
        if any(one.name == name and one.kind != "imported" for one in self.annotators()):
            # The same words in each language: a file that is read again is the same person's.
            name = f"{name[: MAX_NAME - len(_IMPORTED)]}{_IMPORTED}"
        number = self.store.annotations.participant(self.session_id, name, "imported").number
        whole = self.whole()
        items = {item.key: item for item in whole.items}
        own = [event for event in whole.events if event.annotator == number]
        standing = {event.item: event.value for event in own}
        earlier = Counter(event.item for event in own)
        actions: list[tuple[int, Action]] = []
        versions = {one.version for one in whole.guidelines}
        for one in labels:
            key = one.key
            if key not in items:
                continue
            item, body = items[key].number, ItemBody.model_validate(items[key].body)
            value = to_json(parse_label(one.label, body))
            if standing.get(item) == value:
                continue
            # The same import at the same time makes the same name, which is stored once.
            said = json.dumps([key, earlier[item], value], sort_keys=True)
            client = f"import:{blake2b(said.encode(), digest_size=16).hexdigest()}"
            kind: EventKind = "changed" if item in standing else "given"
            action = Action(
                client,
                kind,
                value,
                one.seconds,
                one.fast,
                run=body.place.run,
                at=one.at,
                guidelines=one.guidelines if one.guidelines in versions else None,
                revealed=one.revealed,
            )
            actions.append((item, action))
            standing[item] = value
            earlier[item] += 1
        return self.store.annotation_work.import_labels(self.session_id, number, actions)


def _require_overlap(overlap: int) -> None:
    if not 1 <= overlap <= MOST_OVERLAP:
        raise failure(
            "annotation.bad_session", problem=phrase("session.bad_overlap", most=MOST_OVERLAP)
        )


# Secret links to an annotation session: what each allows, and joining by one.

PERSONAL_SECONDS = 180 * 86_400.0
"""Seconds that a personal link works."""


def enter(store: RunStore, token: str, address: str) -> Lead | Invitation | Worker:
    """Return what a secret link allows somebody at the network address `address`.

    Raises NotFoundError for a link that is wrong or not valid any more, TooOftenError after too
    many wrong ones.
    """
    link = store.annotation_links.check(token, address)
    match link.role:
        case "lead":
            return Lead(store, link.session)
        case "join":
            return Invitation(store, link.session)
        case "annotator":
            if link.annotator is None:
                raise failure("annotation.no_link")
            return Worker(store, link.session, link.annotator)


class Invitation:
    """Lets somebody join a session under a name."""

    def __init__(self, store: RunStore, session_id: str) -> None:
        self.store = store
        self.session_id = session_id

    @property
    def name(self) -> str:
        """What the session is called."""
        return self.store.annotations.get(self.session_id).name

    @property
    def login(self) -> bool:
        """Whether people have to be logged in to join."""
        session = self.store.annotations.get(self.session_id)
        return SessionSpec.model_validate(session.spec).login

    def join(self, name: str) -> tuple[Worker, str]:
        """Join as `name`; returns the personal link for coming back, which cannot be shown again.

        Raises InvalidInputError where the name is taken or not invited, or the session is closed
        or full.
        """
        session = self.store.annotations.get(self.session_id)
        spec = SessionSpec.model_validate(session.spec)
        if spec.login:
            raise failure("annotation.login_needed")
        if session.closed is not None:
            raise failure("annotation.closed")
        if spec.names is not None and name.strip() not in spec.names:
            raise failure("annotation.not_invited")
        add = self.store.annotations.add_annotator
        joined = add(self.session_id, name, "person", spec.most_annotators)
        return self._worker(joined.number)

    def join_as(self, login: Login) -> tuple[Worker, str]:
        """Join as the person who logged in: the same annotator on every device; else as `join`.

        Raises InvalidInputError where the session is closed or full, or the person is not invited,
        and NotFoundError where the lead has withdrawn their place.
        """
        links = self.store.annotation_links
        known = links.of_login(self.session_id, login.identity)
        if known is None:
            known = self._joined_as(login)
        return self._worker(known)

    def _joined_as(self, login: Login) -> int:
        session = self.store.annotations.get(self.session_id)
        spec = SessionSpec.model_validate(session.spec)
        if session.closed is not None:
            raise failure("annotation.closed")
        if spec.names is not None and not {login.name, login.email} & {*spec.names}:
            raise failure("annotation.not_invited")
        # What is added to a name that is taken has room.
        name = login.name.strip()[: MAX_NAME - 5] or "?"
        join = self.store.annotation_links.join_login
        return join(self.session_id, login.identity, name, spec.most_annotators)

    def _worker(self, number: int) -> tuple[Worker, str]:
        token = self.store.annotation_links.create(
            self.session_id, "annotator", annotator=number, seconds=PERSONAL_SECONDS
        )
        return Worker(self.store, self.session_id, number), token

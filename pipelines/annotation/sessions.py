"""What each link to a session allows: leading it, joining it, or labelling as one person.

`enter` turns a link into one of three objects, and nothing is done to a session but through them.
An annotator's sees the session, its guidelines and their own labels: no other person's, and nothing
that models said before their own label is stored.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from datetime import datetime
from hashlib import blake2b
from typing import Any

from pipelines.annotation.labels import GivenLabel, decisions, last_undone, standing_labels
from pipelines.annotation.types import (
    MOST_OVERLAP,
    Hidden,
    ItemBody,
    Label,
    Login,
    SessionItem,
    SessionSpec,
    label_adapter,
    parse_label,
    parse_spec,
)
from pipelines.errors import failure
from pipelines.store import RunStore
from pipelines.store.annotation_events import Action
from pipelines.store.annotation_links import Link, Role
from pipelines.store.annotation_work import Given, NothingToDo
from pipelines.store.annotations import (
    MAX_NAME,
    Annotator,
    EventKind,
    NewItem,
    StoredEvent,
    StoredItem,
    StoredSession,
    WholeSession,
)
from pipelines.store.tables import portable, to_json
from pipelines.types import Frozen

MAX_COMMENT = 5_000
"""Characters of a comment, a reason or a note."""

MAX_GUIDELINES = 100_000
MAX_CLIENT = 64
PERSONAL_SECONDS = 180 * 86_400.0
"""So long a personal link works."""


class Task(Frozen):
    """An item as an annotator gets it.

    The place in `body` does not name the method and the step that judged it. `swapped`: the
    corrected text of a comparison is shown first, at random for each person.
    `hidden` is what models said, None where it is not shown. `redo` is the label that they took
    back, which can be restored.
    """

    item: int
    body: ItemBody
    expires: datetime
    swapped: bool = False
    hidden: Hidden | None = None
    redo: Label | None = None


class OwnProgress(Frozen):
    """How far one person has come. `left` counts the items that there are for this person, the
    open one and control items among them; others may label some of them first."""

    labelled: int
    skipped: int
    left: int
    seconds: float


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

    A session without a control item has to say that it is meant so (`spec.without_gold`). One for
    visitors begins without items.
    """
    items = list(items)
    _require_overlap(overlap)
    _require_text(guidelines, MAX_GUIDELINES)
    if not items and not spec.visitors:
        raise failure("annotation.bad_session", problem="it has no items")
    meant = spec.without_gold or spec.visitors
    if not meant and not any(item.gold is not None for item in items):
        problem = "it has no control items, which has to be confirmed (without_gold)"
        raise failure("annotation.bad_session", problem=problem)
    strange = sorted({item.body.task for item in items} - set(spec.tasks))
    if strange:
        raise failure("annotation.bad_session", problem=f"its tasks lack {', '.join(strange)}")
    made = store.annotations.create(owner, name, to_json(spec), overlap, guidelines)
    lead = Lead(store, made, owner)
    lead.add_items(items)
    return lead


def enter(store: RunStore, token: str, address: str) -> Lead | Invitation | Worker:
    """What a secret link allows somebody at the network address `address`.

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


class Lead:
    """Leads a session: changes it, invites people, sees everything. Methods block."""

    def __init__(self, store: RunStore, session_id: str, owner: str | None = None) -> None:
        """Raises NotFoundError where there is no such session of `owner` (None: of anybody)."""
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
        """Add items that the session does not hold yet; how many were new."""
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
        """Store a new version of the guidelines (Markdown); its number."""
        _require_text(text, MAX_GUIDELINES)
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
        """Every link that was made, without its secret."""
        return self.store.annotation_links.list(self.session_id)

    def revoke(self, link: str) -> None:
        """Withdraw a link for good."""
        self.store.annotation_links.revoke(self.session_id, link)

    def annotators(self) -> list[Annotator]:
        """Everybody who takes part."""
        return self.store.annotations.annotators(self.session_id)

    def whole(self) -> WholeSession:
        """Everything in the session at one moment, while others go on working in it."""
        return self.store.annotations.whole(self.session_id)

    def items(self) -> list[StoredItem]:
        """Every item, with its control label and what models said."""
        return self.store.annotations.items(self.session_id)

    def events(self) -> list[StoredEvent]:
        """Everything that was done."""
        return self.store.annotations.events(self.session_id)

    def import_labels(self, name: str, labels: Iterable[tuple[str, Label]]) -> int:
        """Store labels from elsewhere, by the items' keys, as those of one "imported" person.

        They do not count towards the overlap. Items that the session does not hold are left out.
        A label that differs from the one imported before changes it. How many are new.
        """
        known = {one.name: one.number for one in self.annotators() if one.kind == "imported"}
        number = known.get(name)
        if number is None:
            add = self.store.annotations.add_annotator
            number = add(self.session_id, name, "imported").number
        whole = self.whole()
        items = {item.key: item for item in whole.items}
        own = [event for event in whole.events if event.annotator == number]
        standing = {event.item: event.value for event in own}
        earlier = Counter(event.item for event in own)
        actions: list[tuple[int, Action]] = []
        for key, label in labels:
            if key not in items:
                continue
            item, body = items[key].number, ItemBody.model_validate(items[key].body)
            value = to_json(parse_label(label, body))
            if standing.get(item) == value:
                continue
            # The same import at the same time makes the same name, which is stored once.
            said = json.dumps([key, earlier[item], value], sort_keys=True)
            client = f"import:{blake2b(said.encode(), digest_size=16).hexdigest()}"
            kind: EventKind = "changed" if item in standing else "given"
            actions.append(
                (item, Action(client=client, kind=kind, value=value, run=body.place.run))
            )
            standing[item] = value
            earlier[item] += 1
        return self.store.annotation_work.import_labels(self.session_id, number, actions)


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
        """Whether who joins has to be logged in."""
        session = self.store.annotations.get(self.session_id)
        return SessionSpec.model_validate(session.spec).login

    def join(self, name: str) -> tuple[Worker, str]:
        """Take part as `name`; the personal link, told this once, is for coming back.

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
        """Take part as who logged in, on every device as the same annotator; as `join`.

        Raises InvalidInputError where the session is closed or full, or they are not invited, and
        NotFoundError where the lead has withdrawn their place.
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


class Worker:
    """Labels items as one person. Methods block.

    `client` names a request of the page: the same one, sent again because a connection was lost,
    is stored once and acknowledged again.
    """

    def __init__(self, store: RunStore, session_id: str, annotator: int) -> None:
        self._store = store
        self._session_id = session_id
        self.annotator = annotator

    @property
    def session_name(self) -> str:
        """What the session is called."""
        return self._session.name

    @property
    def name(self) -> str:
        """What this person is called."""
        people = self._store.annotations.annotators(self._session_id)
        return next(one.name for one in people if one.number == self.annotator)

    @property
    def session_id(self) -> str:
        """The session's own id, which is no secret link."""
        return self._session_id

    @property
    def started(self) -> bool:
        """Whether this person was given an item."""
        return bool(self._store.annotations.claims(self._session_id, self.annotator))

    @property
    def closed(self) -> bool:
        """Whether the session takes no labels any more."""
        return self._session.closed is not None

    @property
    def spec(self) -> SessionSpec:
        """How the session works."""
        return SessionSpec.model_validate(self._session.spec)

    @property
    def guidelines(self) -> str:
        """The guidelines as they are now, in Markdown."""
        return self._store.annotations.guidelines(self._session_id)[-1].text

    @property
    def guidelines_version(self) -> int:
        """Which version these guidelines are, from 1."""
        return self._session.guidelines

    def own(self, item: int) -> Task:
        """An item that was given to this person before, labelled or not; no lease is taken.

        Raises InvalidInputError for any other item.
        """
        claims = self._store.annotations.claims(self._session_id, self.annotator)
        claim = next((one for one in claims if one.item == item), None)
        if claim is None:
            raise failure("annotation.not_given")
        stored = self._store.annotations.item(self._session_id, item)
        given = Given(
            item=item,
            task=stored.task,
            body=stored.body,
            expires=claim.expires,
            revealed=claim.revealed,
        )
        return self._task(given, self.spec)

    def next(self) -> Task | NothingToDo:
        """The item to label: the one that was left, else a new one. Renews the lease."""
        spec = self.spec
        found = self._store.annotation_work.claim(
            self._session_id,
            self.annotator,
            lease=spec.lease,
            gold_every=_gold_every(spec),
            shown=spec.show == "before",
        )
        return self._task(found, spec) if isinstance(found, Given) else found

    def renew(self, item: int) -> datetime:
        """Keep an open item while somebody is at it; when the lease ends now."""
        work = self._store.annotation_work
        return work.renew(self._session_id, self.annotator, item, lease=self.spec.lease)

    def label(
        self, item: int, value: object, *, client: str, seconds: float | None = None
    ) -> StoredEvent:
        """Store a label; once this returns, it is saved. `seconds` is the active time."""
        return self._give("given", item, value, client, seconds)

    def change(
        self, item: int, value: object, *, client: str, seconds: float | None = None
    ) -> StoredEvent:
        """Store another label in place of the one given before, which is kept as well."""
        return self._give("changed", item, value, client, seconds)

    def undo(self, item: int, *, client: str) -> StoredEvent:
        """Take a label back; the item is open again."""
        return self._act("undone", item, {}, client)

    def redo(self, item: int, *, client: str) -> StoredEvent:
        """Restore the label that was taken back last."""
        events = self._store.annotations.events(
            self._session_id, annotator=self.annotator, item=item
        )
        if known := next((one for one in events if one.client == client), None):
            return self._act("redone", item, known.value, client)
        taken = last_undone(events, item, self.annotator)
        if taken is None:
            raise failure("annotation.wrong_state", state="not taken back")
        return self._act("redone", item, taken.value, client, run=taken.run, fast=taken.fast)

    def skip(self, item: int, reason: str, *, client: str) -> StoredEvent:
        """Leave an item to others, for a reason."""
        _require_text(reason, MAX_COMMENT)
        return self._act("skipped", item, {"reason": reason}, client)

    def comment(self, item: int, text: str, *, client: str) -> StoredEvent:
        """Write about an item; it is no label."""
        _require_text(text, MAX_COMMENT)
        return self._act("comment", item, {"text": text}, client)

    def reveal(self, item: int, *, client: str) -> Hidden:
        """What models said of an item that this person has labelled; that it was shown is kept.

        Raises InvalidInputError before the label is stored, or where the session never shows it.
        """
        if self.spec.show == "never":
            raise failure("annotation.forbidden")
        self._act("revealed", item, {}, client)
        stored = self._store.annotations.item(self._session_id, item)
        return Hidden.model_validate(stored.hidden)

    def can_reveal(self, item: int) -> bool:
        """Whether `reveal` has something to show of an item that this person has labelled."""
        if self.spec.show != "after":
            return False
        hidden = Hidden.model_validate(self._store.annotations.item(self._session_id, item).hidden)
        return bool(hidden.verdicts) or hidden.judge is not None

    def labels(self) -> list[GivenLabel]:
        """This person's own labels, by item."""
        events = self._store.annotations.events(self._session_id, annotator=self.annotator)
        return standing_labels(events)

    def progress(self) -> OwnProgress:
        """How far this person has come."""
        claims = self._store.annotations.claims(self._session_id, self.annotator)
        labels, controls = self.labels(), _gold_every(self.spec)
        left = self._store.annotation_work.left
        return OwnProgress(
            labelled=len(labels),
            skipped=sum(claim.state == "skipped" for claim in claims),
            left=left(self._session_id, self.annotator, gold_every=controls),
            seconds=sum(one.seconds or 0.0 for one in labels),
        )

    def overruled(self) -> list[tuple[int, Label, Label, str]]:
        """Items that an adjudicator decided otherwise: item, own label, decision, note.

        Only in a session that is closed: before, it would tell what others said.
        """
        if self._session.closed is None:
            raise failure("annotation.forbidden")
        found = decisions(self._store.annotations.events(self._session_id))
        return [
            (own.item, own.label, found[own.item].label, found[own.item].note)
            for own in self.labels()
            if own.item in found and found[own.item].label != own.label
        ]

    @property
    def _session(self) -> StoredSession:
        return self._store.annotations.get(self._session_id)

    def _task(self, given: Given, spec: SessionSpec) -> Task:
        hidden = None
        if spec.show == "before" or given.revealed or spec.offer_spans:
            stored = self._store.annotations.item(self._session_id, given.item)
            hidden = Hidden.model_validate(stored.hidden)
            if spec.show != "before" and not given.revealed:
                hidden = Hidden(spans=hidden.spans)
        events = self._store.annotations.events(
            self._session_id, annotator=self.annotator, item=given.item
        )
        taken = last_undone(events, given.item, self.annotator)
        body = ItemBody.model_validate(given.body)
        # Which method judged it tells what is in question.
        place = body.place.model_copy(update={"method": "", "span": ""})
        body = body.model_copy(update={"place": place})
        return Task(
            item=given.item,
            body=body,
            expires=given.expires,
            swapped=body.task == "comparison" and self._swapped(given.item),
            hidden=hidden,
            redo=None if taken is None else label_adapter.validate_python(taken.value),
        )

    def _swapped(self, item: int) -> bool:
        said = f"{self._session.seed}:{self.annotator}:{item}:order".encode()
        return bool(blake2b(said, digest_size=1).digest()[0] & 1)

    def _give(
        self, kind: EventKind, item: int, value: object, client: str, seconds: float | None
    ) -> StoredEvent:
        stored = self._store.annotations.item(self._session_id, item)
        body = ItemBody.model_validate(stored.body)
        label = parse_label(value, body)
        return self._act(kind, item, to_json(label), client, seconds, body.place.run)

    def _act(
        self,
        kind: EventKind,
        item: int,
        value: dict[str, Any],
        client: str,
        seconds: float | None = None,
        run: str = "",
        *,
        fast: bool = False,
    ) -> StoredEvent:
        if not client or len(client) > MAX_CLIENT:
            raise failure("annotation.bad_value", problem="the request has no usable name")
        spec = self.spec
        # A page may tell anything; a negative time, or one that is no number, is none.
        seconds = seconds if seconds is not None and 0 <= seconds < 86_400 else None
        action = Action(
            client=client,
            kind=kind,
            value=portable(value),
            seconds=seconds,
            fast=fast or (seconds is not None and seconds < spec.too_fast),
            run=run,
        )
        work = self._store.annotation_work
        return work.act(
            self._session_id,
            self.annotator,
            item,
            action,
            lease=spec.lease,
            offered=spec.offer_spans,
        )


def _gold_every(spec: SessionSpec) -> int:
    """One of how many items is a control item; 0: none."""
    return 0 if spec.without_gold else spec.gold_every


def _require_overlap(overlap: int) -> None:
    if not 1 <= overlap <= MOST_OVERLAP:
        raise failure("annotation.bad_session", problem=f"its overlap is not 1 to {MOST_OVERLAP}")


def _require_text(text: str, most: int) -> None:
    if len(text) > most:
        raise failure("annotation.too_long", count=len(text), most=most)

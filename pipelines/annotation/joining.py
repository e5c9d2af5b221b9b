"""Secret links to an annotation session: what each allows, and joining by one."""

from __future__ import annotations

from pipelines.annotation.leading import Lead
from pipelines.annotation.types import (
    Login,
    SessionSpec,
)
from pipelines.annotation.working import Worker
from pipelines.errors import failure
from pipelines.store import RunStore
from pipelines.store.annotation_records import MAX_NAME

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

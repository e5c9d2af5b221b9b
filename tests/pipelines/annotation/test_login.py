"""Joining a session by logging in: one annotator for each person, on every device."""

from __future__ import annotations

from threading import Barrier, Thread

import pytest

from pipelines.annotation.formats import export_session
from pipelines.annotation.labelling import Worker
from pipelines.annotation.sessions import Invitation, Lead, enter
from pipelines.annotation.types import Login
from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.store import RunStore
from tests.pipelines.annotation.bench import VALUES, lead_session, take

ANN = Login("https://id.example\n1", "Ann Lee", "ann@example.org")


def invited(lead: Lead) -> Invitation:
    found = enter(lead.store, lead.invite("join"), "127.0.0.1")
    assert isinstance(found, Invitation)
    return found


def test_a_second_device_is_the_same_annotator(store: RunStore):
    lead = lead_session(store, login=True)
    invitation = invited(lead)
    assert invitation.login
    worker, link = invitation.join_as(ANN)
    task = take(worker)
    worker.label(task.item, VALUES[task.body.task], client="1")
    again, other = invited(lead).join_as(ANN._replace(name="Ann Other"))
    assert again.annotator == worker.annotator
    assert [one.item for one in again.labels()] == [task.item]
    # Each device has a personal link of its own.
    assert link != other
    for token in (link, other):
        back = enter(store, token, "127.0.0.1")
        assert isinstance(back, Worker)
        assert back.annotator == worker.annotator
    assert [one.name for one in lead.annotators()] == ["Ann Lee"]


def test_two_people_of_one_name_are_two(store: RunStore):
    lead = lead_session(store, login=True)
    for subject in "123":
        invited(lead).join_as(Login(f"https://id.example\n{subject}", "Ann"))
    assert [one.name for one in lead.annotators()] == ["Ann", "Ann 2", "Ann 3"]


def test_neither_the_address_nor_the_subject_is_kept(store: RunStore):
    lead = lead_session(store, login=True)
    invited(lead).join_as(ANN)
    told = "".join(export_session(lead)) + str(lead.links())
    assert "ann@example.org" not in told
    assert "id.example" not in told
    # In another session the same person has another mark.
    other = lead_session(store, login=True)
    invited(other).join_as(ANN)
    assert {one.id for one in lead.links()}.isdisjoint(one.id for one in other.links())


def test_names_may_be_addresses(store: RunStore):
    lead = lead_session(store, login=True, names=("ann@example.org", "Bo"))
    invited(lead).join_as(ANN)
    invited(lead).join_as(Login("https://id.example\n2", "Bo"))
    with pytest.raises(InvalidInputError, match="not among those"):
        invited(lead).join_as(Login("https://id.example\n3", "Ann Lee"))


def test_a_name_alone_does_not_join(store: RunStore):
    lead = lead_session(store, login=True)
    with pytest.raises(InvalidInputError, match="logged in"):
        invited(lead).join("Ann")
    assert lead.annotators() == []
    assert not invited(lead_session(store)).login


def test_a_closed_session_takes_only_those_who_have_joined(store: RunStore):
    lead = lead_session(store, login=True)
    worker, _ = invited(lead).join_as(ANN)
    invitation = invited(lead)
    lead.close()
    assert invitation.join_as(ANN)[0].annotator == worker.annotator
    with pytest.raises(InvalidInputError, match="closed"):
        invitation.join_as(Login("https://id.example\n2", "Bo"))


def test_the_lead_can_withdraw_a_login(store: RunStore):
    lead = lead_session(store, login=True)
    invited(lead).join_as(ANN)
    (kept,) = [one for one in lead.links() if len(one.id) == 32]
    lead.revoke(kept.id)
    with pytest.raises(NotFoundError):
        invited(lead).join_as(ANN)
    # It stands for the login alone: nobody enters by it.
    with pytest.raises(NotFoundError):
        enter(store, f"{kept.id}.{'x' * 43}", "127.0.0.1")


def test_two_devices_at_once_are_one_annotator(store: RunStore):
    lead = lead_session(store, login=True)
    invitations = [invited(lead) for _ in range(4)]
    barrier, found = Barrier(4), list[int]()

    def join(invitation: Invitation) -> None:
        barrier.wait()
        found.append(invitation.join_as(ANN)[0].annotator)

    threads = [Thread(target=join, args=(one,)) for one in invitations]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 4
    assert len(set(found)) == 1

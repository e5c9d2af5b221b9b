"""Verdicts that visitors leave: proposed, accepted or refused, and never counted before."""

from __future__ import annotations

import pytest

from pipelines.annotation.exchange import export_session, import_session
from pipelines.annotation.labels import standing_labels
from pipelines.annotation.leading import Lead, create_session
from pipelines.annotation.types import SessionSpec
from pipelines.annotation.visitors import VisitorsBook, decide_verdict, visitor_verdicts
from pipelines.errors import InvalidInputError, NotFoundError, TooOftenError
from pipelines.store import RunStore
from pipelines.store import annotation_visitors as stored
from tests.pipelines.annotation.bench import item, lead_session

ANN, BO = "a" * 48, "b" * 48
WRONG = {"task": "answer", "verdict": "wrong"}
PARTLY = {"task": "answer", "verdict": "partly"}


@pytest.fixture
def lead(store: RunStore) -> Lead:
    """A session for visitors."""
    spec = SessionSpec(tasks=("answer",), visitors=True)
    return create_session(store, "me", "Visitors", spec, [])


def labels(lead: Lead) -> list[str]:
    """The verdicts that count."""
    return [getattr(one.label, "verdict", "") for one in standing_labels(lead.events())]


def test_a_verdict_counts_once_it_is_accepted(lead: Lead):
    book = VisitorsBook(lead.store, lead.session_id)
    first = book.leave(ANN, item("answer"), WRONG, client="1")
    book.leave(BO, item("answer", 2), PARTLY, client="1")
    assert (len(lead.items()), labels(lead)) == (2, [])
    (one, other) = visitor_verdicts(lead)
    assert (one.number, one.state, one.label.task) == (first.seq, "waiting", "answer")
    assert one.body.question == "Who is Ada (0)?"
    # The pseudonym tells nothing of what the page knows the visitor by.
    assert one.visitor.startswith("visitor ")
    assert ANN not in one.visitor
    assert one.visitor != other.visitor
    assert decide_verdict(lead, one.number, accept=True) == "accepted"
    assert labels(lead) == ["wrong"]
    # Asked again, nothing changes.
    assert decide_verdict(lead, one.number, accept=True) == "accepted"
    assert len(lead.events()) == 3
    assert decide_verdict(lead, other.number, accept=False) == "refused"
    assert labels(lead) == ["wrong"]
    # Visitors see the models' verdicts on the page, so their labels are not blind.
    assert standing_labels(lead.events(), "blind") == []


def test_an_accepted_verdict_can_be_refused_and_accepted_again(lead: Lead):
    book = VisitorsBook(lead.store, lead.session_id)
    number = book.leave(ANN, item("answer"), WRONG, client="1").seq
    for accept, counted in ((True, 1), (False, 0), (True, 1)):
        decide_verdict(lead, number, accept=accept)
        assert len(labels(lead)) == counted


def test_a_later_verdict_takes_the_place_of_an_earlier_one(lead: Lead):
    book = VisitorsBook(lead.store, lead.session_id)
    first = book.leave(ANN, item("answer"), WRONG, client="1").seq
    second = book.leave(ANN, item("answer"), PARTLY, client="2").seq
    states = {one.number: one.state for one in visitor_verdicts(lead)}
    assert states == {first: "replaced", second: "waiting"}
    with pytest.raises(NotFoundError):
        decide_verdict(lead, first, accept=True)
    decide_verdict(lead, second, accept=True)
    third = book.leave(ANN, item("answer"), WRONG, client="3").seq
    # What was accepted counts until the new one is accepted as well.
    assert labels(lead) == ["partly"]
    decide_verdict(lead, third, accept=True)
    assert labels(lead) == ["wrong"]
    states = {one.number: one.state for one in visitor_verdicts(lead)}
    assert states == {first: "replaced", second: "replaced", third: "accepted"}
    key = item("answer").key
    label, state = book.own(ANN, [key, "other"])[key]
    assert (getattr(label, "verdict", ""), state) == ("wrong", "accepted")
    assert book.own(BO, [key]) == {}


def test_the_same_request_is_kept_once(lead: Lead):
    book = VisitorsBook(lead.store, lead.session_id)
    first = book.leave(ANN, item("answer"), WRONG, client="1")
    assert book.leave(ANN, item("answer"), WRONG, client="1") == first
    with pytest.raises(InvalidInputError):
        book.leave(ANN, item("answer"), PARTLY, client="1")
    assert len(lead.events()) == 1
    assert [one.kind for one in lead.annotators()] == ["visitor"]


def test_nobody_fills_the_session(lead: Lead, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(stored, "MOST_WAITING", 2)
    book = VisitorsBook(lead.store, lead.session_id)
    number = book.leave(ANN, item("answer"), WRONG, client="1").seq
    book.leave(BO, item("answer"), WRONG, client="1")
    with pytest.raises(TooOftenError):
        book.leave("c" * 48, item("answer", 3), WRONG, client="1")
    # Nothing of it is there: neither the item nor the visitor.
    assert (len(lead.items()), len(lead.annotators())) == (1, 2)
    decide_verdict(lead, number, accept=False)
    book.leave("c" * 48, item("answer", 3), WRONG, client="1")


def test_what_does_not_fit_is_refused(lead: Lead, store: RunStore):
    book = VisitorsBook(store, lead.session_id)
    for label in ({"task": "answer", "verdict": "fine"}, {"task": "sentence", "verdict": "minor"}):
        with pytest.raises(InvalidInputError):
            book.leave(ANN, item("answer"), label, client="1")
    with pytest.raises(InvalidInputError):
        book.leave(ANN, item("answer"), WRONG, client="")
    with pytest.raises(NotFoundError):
        decide_verdict(lead, 7, accept=True)
    lead.close()
    with pytest.raises(InvalidInputError):
        book.leave(ANN, item("answer"), WRONG, client="1")
    assert lead.events() == []
    with pytest.raises(InvalidInputError, match="not made for visitors"):
        VisitorsBook(store, lead_session(store).session_id)
    with pytest.raises(NotFoundError):
        VisitorsBook(store, "none")


def test_other_people_cannot_accept_anything(lead: Lead):
    book = VisitorsBook(lead.store, lead.session_id)
    number = book.leave(ANN, item("answer"), WRONG, client="1").seq
    # Somebody labels the same item, and calls their request as the lead's would be called.
    person = lead.store.annotations.add_annotator(lead.session_id, "Eve", "person").number
    work = lead.store.annotation_work
    given = work.claim(lead.session_id, person, lease=60)
    assert given.status == "given"
    action = stored.Action(f"accept:{number}:1", "given", WRONG)
    work.act(lead.session_id, person, 0, action, lease=60)
    assert [one.state for one in visitor_verdicts(lead)] == ["waiting"]


def test_proposals_are_exported_and_imported(lead: Lead, store: RunStore):
    empty = "".join(export_session(lead))
    assert "".join(export_session(import_session(store, "you", empty.splitlines()))) == empty
    book = VisitorsBook(store, lead.session_id)
    number = book.leave(ANN, item("answer"), WRONG, client="1").seq
    decide_verdict(lead, number, accept=True)
    book.leave(ANN, item("answer"), PARTLY, client="2")
    text = "".join(export_session(lead))
    copy = import_session(store, "you", text.splitlines())
    assert "".join(export_session(copy)) == text
    assert [one.state for one in visitor_verdicts(copy)] == ["accepted", "waiting"]
    broken = text.replace('"verdict": "partly"', '"verdict": "fine"')
    with pytest.raises(InvalidInputError):
        import_session(store, "you", broken.splitlines())


def test_what_a_visitor_calls_a_request_decides_nothing(lead: Lead):
    book = VisitorsBook(lead.store, lead.session_id)
    first = book.leave(ANN, item("answer"), WRONG, client="1")
    book.leave(ANN, item("answer"), PARTLY, client=f"accept:{first.seq}:1")
    old, new = visitor_verdicts(lead)
    assert (old.state, new.state) == ("replaced", "waiting")
    assert labels(lead) == []
    assert decide_verdict(lead, new.number, accept=True) == "accepted"
    assert labels(lead) == ["partly"]

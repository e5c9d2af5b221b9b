"""The lead accepts and refuses on the page what visitors of the public page left."""

from __future__ import annotations

import pytest

from pipelines.annotation.labels import standing_labels
from pipelines.annotation.leading import Lead, create_session
from pipelines.annotation.types import SessionSpec
from pipelines.annotation.visitors import VisitorsBook
from pipelines.engine.thread import Engine
from tests.app.test_annotate_lead import annotate, keys, press, texts
from tests.app.test_screens import ME
from tests.app.test_screens import engine as engine
from tests.pipelines.annotation.bench import item


@pytest.fixture
def lead(engine: Engine) -> Lead:
    """A session of this browser's that keeps visitors' verdicts."""
    spec = SessionSpec(tasks=("answer",), visitors=True)
    return create_session(engine.service.store, ME, "Visitors", spec, [])


def leave(lead: Lead, visitor: str, number: int, verdict: str, client: str = "1") -> int:
    book = VisitorsBook(lead.store, lead.session_id)
    said = {"task": "answer", "verdict": verdict}
    return book.leave(visitor * 48, item("answer", number), said, client=client).seq


def counted(lead: Lead) -> list[str]:
    """The verdicts that count as labels."""
    return [getattr(one.label, "verdict", "") for one in standing_labels(lead.events())]


def shown(lead: Lead, which: str) -> dict[str, str]:
    """The state in which the page lists these verdicts."""
    return {f"annotate.visitors.{lead.session_id}": which}


def test_verdicts_wait_until_they_are_accepted_or_refused(lead: Lead):
    first, second = leave(lead, "a", 0, "wrong"), leave(lead, "b", 1, "partly")
    test = annotate(lead.session_id)
    said = texts(test)
    assert "Who is Ada (0)?" in said
    assert "The visitor says: Wrong" in said
    assert "The visitor says: Partly correct" in said
    press(test, f"annotate.visitors.accept.{first}")
    assert counted(lead) == ["wrong"]
    assert f"annotate.visitors.accept.{first}" not in keys(test)
    press(test, f"annotate.visitors.refuse.{second}")
    assert counted(lead) == ["wrong"]
    assert "There is no verdict of this kind." in texts(test)


def test_an_accepted_verdict_is_taken_back(lead: Lead):
    number = leave(lead, "a", 0, "wrong")
    press(annotate(lead.session_id), f"annotate.visitors.accept.{number}")
    test = annotate(lead.session_id, **shown(lead, "accepted"))
    assert f"annotate.visitors.accept.{number}" not in keys(test)
    press(test, f"annotate.visitors.refuse.{number}")
    assert counted(lead) == []


def test_all_that_are_listed_are_accepted_at_once(lead: Lead):
    for number, visitor in enumerate("abc"):
        leave(lead, visitor, number, "correct")
    press(annotate(lead.session_id), "annotate.visitors.accept.all")
    assert counted(lead) == ["correct"] * 3


def test_one_that_its_visitor_has_changed_meanwhile_is_told(lead: Lead):
    number = leave(lead, "a", 0, "wrong")
    test = annotate(lead.session_id)
    later = leave(lead, "a", 0, "correct", client="2")
    press(test, f"annotate.visitors.accept.{number}")
    assert counted(lead) == []
    assert "replaced" in texts(annotate(lead.session_id, **shown(lead, "all")))
    press(test, f"annotate.visitors.accept.{later}")
    assert counted(lead) == ["correct"]


def test_before_there_is_one_the_page_says_so_in_chinese(lead: Lead):
    assert "还没有访客留下判定。" in texts(annotate(lead.session_id, lang="zh"))

"""Deciding without a browser: the list, the item, merged labels, decisions and what goes wrong."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.results import disputes_of, now
from app.screens.annotate import decide
from app.screens.annotate.decide import Deciding, handle_decision
from components.base.words import Catalogue
from pipelines.annotation.labelling import Adjudication, decisions
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import ItemBody, ItemPlace
from pipelines.engine.service import Engine
from pipelines.errors import StorageBusyError
from tests.app.playing import seen
from tests.app.screens.annotate.test_results import drawn, label, labels
from tests.app.test_screens import ME, finished_run, page
from tests.app.test_screens import engine as engine
from tests.pipelines.annotation.bench import TEXT, item, join, take
from tests.pipelines.annotation.evaluated import session_of

EN = Catalogue("en")
MARK = [{"start": 0, "end": 3}]
LONGER = [{"start": 0, "end": 7}]


def deciding(lead: Lead, name: str = "Chief", **state: Any) -> AppTest:
    """The page where items of the session are decided."""
    known = {f"annotate.decide.name.{lead.session_id}": name} if name else {}
    shown = {f"annotate.part.{lead.session_id}": "decide", **known}
    test = page("annotate", **shown, **state)
    test.query_params["session"] = lead.session_id
    return drawn(test)


def disputed(engine: Engine) -> Lead:
    """Two people agree on one item of four, and partly on the spans."""
    items = [item("sentence", n) for n in range(3)] + [item("span", 0)]
    first = labels("sentence", "accurate", "minor", "major") | labels("span", MARK)
    second = labels("sentence", "accurate", "major", "accurate") | labels("span", LONGER)
    return session_of(engine.service.store, items, first, second, owner=ME)


def told(test: AppTest) -> dict[str, Any]:
    """What the component was given."""
    found = [json.loads(node.proto.json or "null") for node in test.get("bidi_component")]
    (data,) = [one for one in found if isinstance(one, dict) and one.get("mode") == "decide"]
    return data


class Bench:
    """An adjudicator, and a page that sends their requests."""

    def __init__(self, lead: Lead, name: str = "Chief") -> None:
        self.lead, self.name, self.deciding, self.count = lead, name, Deciding(), 0

    def ask(self, action: str, item: Any, *, client: str = "", **more: Any) -> str:
        self.count += 1
        client = client or f"request-{self.count}"
        request = {"action": action, "item": item, "client": client, **more}
        found = disputes_of(now(self.lead))
        handle_decision(self.lead, found, self.name, request, self.deciding, EN)
        return client

    def decided(self) -> dict[int, Adjudication]:
        return decisions(self.lead.events())


# Requests


def test_a_decision_is_stored_once_with_its_circumstances(engine: Engine):
    bench = Bench(disputed(engine))
    told: dict[str, Any] = {"note": "Read 2.", "confidence": "sure", "gap": True}
    for _ in range(3):
        bench.ask("decide", 1, client="one", value={"verdict": "minor"}, **told)
    assert bench.deciding.acknowledged == ["one"]
    (decision,) = bench.decided().values()
    assert decision == Adjudication(
        label=label("sentence", "minor"), note="Read 2.", confidence=1.0, gap=True
    )
    assert bench.deciding.saved == 1
    (chief,) = [one for one in bench.lead.annotators() if one.kind == "lead"]
    assert chief.name == "Chief"
    # Decided again, the later one counts.
    bench.ask("decide", 1, value={"verdict": "major"})
    assert bench.decided()[1].label == label("sentence", "major")


def test_spans_are_merged_and_the_decision_says_how(engine: Engine):
    bench = Bench(disputed(engine))
    bench.ask("merge", 3, rule="union", person=-1)
    assert bench.deciding.draft(3) == label("span", LONGER)
    assert bench.deciding.draft(2) is None
    bench.ask("merge", 3, rule="majority", person=-1)
    assert bench.deciding.draft(3) == label("span", MARK)
    client = bench.ask("decide", 3, value={"spans": MARK})
    assert bench.decided()[3].merged == "majority"
    # Sent again, also to a server that was started again, it is acknowledged and stored once.
    again = Bench(bench.lead)
    for one in (bench, again):
        one.ask("decide", 3, client=client, value={"spans": MARK})
        assert one.deciding.refused == {}
    assert again.decided()[3].merged == "majority"
    assert len([one for one in bench.lead.events() if one.kind == "adjudicated"]) == 1
    assert bench.deciding.draft(3) is None
    first = bench.lead.annotators()[0].number
    bench.ask("merge", 3, rule="person", person=first)
    bench.ask("decide", 3, value={"spans": MARK})
    assert bench.decided()[3].merged == f"annotator:{first}"
    # What is changed by hand is the adjudicator's own.
    bench.ask("merge", 3, rule="union", person=-1)
    bench.ask("decide", 3, value={"spans": [{"start": 4, "end": 7}]})
    assert bench.decided()[3].merged == ""


@pytest.mark.parametrize(
    ("action", "item", "more", "said"),
    [
        ("decide", 1, {"value": {"verdict": "perhaps"}}, "no label for the item"),
        ("decide", 1, {"value": None}, "no label for the item"),
        ("decide", 3, {"value": {"spans": [{"start": 0, "end": 999}]}}, "outside of the text"),
        ("decide", 99, {"value": {"verdict": "minor"}}, "no such item"),
        ("decide", "1", {"value": {"verdict": "minor"}}, "no such item"),
        ("merge", 3, {"rule": "person", "person": 77}, "nothing can be merged"),
        ("merge", 1, {"rule": "union"}, "nothing can be merged"),
        ("merge", 3, {"rule": "best"}, "nothing can be merged"),
        ("dance", 1, {}, "no request is called dance"),
    ],
)
def test_what_cannot_be_done_is_refused_in_words(
    engine: Engine, action: str, item: Any, more: dict[str, Any], said: str
):
    bench = Bench(disputed(engine))
    client = bench.ask(action, item, **more)
    assert said in bench.deciding.refused[client]
    assert bench.deciding.notice == bench.deciding.refused[client]
    assert bench.decided() == {}
    bench.ask("decide", 1, value={"verdict": "minor"})
    assert bench.deciding.notice == ""


def test_a_name_is_needed_and_must_be_nobodys_who_labelled(engine: Engine):
    bench = Bench(disputed(engine), name="")
    client = bench.ask("decide", 1, value={"verdict": "minor"})
    assert "Write your name" in bench.deciding.refused[client]
    bench.name = "Person 0"
    client = bench.ask("decide", 1, value={"verdict": "minor"})
    assert client in bench.deciding.refused
    assert bench.decided() == {}


def test_what_may_succeed_later_is_not_acknowledged(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    bench = Bench(disputed(engine))

    def busy(*_: object, **__: object) -> None:
        raise StorageBusyError("It is busy.", remedy="Try again.")

    monkeypatch.setattr(decide, "adjudicate", busy)
    with pytest.raises(StorageBusyError):
        bench.ask("decide", 1, value={"verdict": "minor"})
    assert (bench.deciding.acknowledged, bench.deciding.refused) == ([], {})


# The page


def test_the_lowest_agreement_comes_first(engine: Engine):
    test = deciding(disputed(engine))
    assert "3 items left to decide · 0 decided" in seen(test)
    box = test.selectbox(key="annotate.decide.item")
    assert [one.partition(" · ")[0] for one in box.options] == ["Item 2", "Item 3", "Item 4"]
    assert "agreement 0.00" in box.options[0]
    # Of 3 and 7 characters 3 are shared: 2 * 3 / 10.
    assert "agreement 0.60" in box.options[2]
    data = told(test)
    assert (data["item"], [one["name"] for one in data["people"]]) == (1, ["Person 0", "Person 1"])
    test.button(key="annotate.decide.next").click()
    assert told(drawn(test))["item"] == 2
    assert not test.button(key="annotate.decide.previous").disabled


def test_after_a_decision_the_next_item_follows(engine: Engine):
    lead = disputed(engine)
    test = deciding(lead)
    bench = Bench(lead)
    bench.ask("decide", 1, value={"verdict": "minor"})
    drawn(test)
    assert "2 items left to decide · 1 decided" in seen(test)
    assert told(test)["item"] == 2
    bench.ask("decide", 2, value={"verdict": "minor"})
    bench.ask("decide", 3, value={"spans": MARK})
    assert "Everything is decided." in seen(drawn(test))
    test.button_group(key="annotate.decide.list").set_value("decided")
    drawn(test)
    # The last one first, with the decision to be changed.
    assert told(test)["item"] == 3
    assert told(test)["label"]["spans"][0]["end"] == 3


def test_items_of_one_task_alone(engine: Engine):
    test = deciding(disputed(engine))
    test.button_group(key="annotate.decide.task.all.span.sentence").set_value("span")
    assert told(drawn(test))["item"] == 3


def test_names_are_hidden_in_an_order_of_the_items_own(engine: Engine):
    test = deciding(disputed(engine), "Chief", **{"annotate.decide.hide": True})
    data = told(test)
    assert sorted(one["name"] for one in data["people"]) == ["Person 1", "Person 2"]
    assert "Person 0" not in str(data["people"])


def test_who_decided_before_is_offered_as_the_name(engine: Engine):
    lead = disputed(engine)
    test = deciding(lead, name="")
    assert "Write your name above first" in seen(test)
    Bench(lead, name="Dana").ask("decide", 1, value={"verdict": "minor"})
    test = deciding(lead, name="")
    assert "Deciding as Dana" in [one.value for one in test.text]
    assert "Write your name above first" not in seen(test)


def test_comments_of_people_without_a_label_are_read_too(engine: Engine):
    items = [item("answer")]
    told_first = labels("answer", "wrong")
    lead = session_of(
        engine.service.store, items, told_first, labels("answer", "correct"), owner=ME
    )
    (cy,) = join(lead, "Cy")
    task = take(cy)
    cy.comment(task.item, "I <b>do not</b> know.", client="m")
    cy.skip(task.item, "unclear", client="s")
    test = deciding(lead)
    assert "I <b>do not</b> know." in seen(test)
    assert "Cy" in seen(test)
    assert "Skipped: unclear" in seen(test)


def test_the_run_of_an_item_is_one_press_away(engine: Engine):
    run = finished_run(engine)
    body = ItemBody(task="answer", text=TEXT, place=ItemPlace(run=run))
    items = [item("answer", body=body)]
    lead = session_of(
        engine.service.store, items, labels("answer", "wrong"), labels("answer", "partly"), owner=ME
    )
    test = deciding(lead)
    test.button(key="annotate.decide.run").click()
    drawn(test)
    assert test.session_state["_wanted_page"] == "ask"
    assert test.query_params["run"] == run


def test_where_people_agree_there_is_nothing_to_decide(engine: Engine):
    same = labels("answer", "wrong")
    lead = session_of(engine.service.store, [item("answer")], same, same, owner=ME)
    assert "There is nothing to decide" in seen(deciding(lead))
    assert "没有需要裁决的条目" in seen(deciding(lead, lang="zh"))

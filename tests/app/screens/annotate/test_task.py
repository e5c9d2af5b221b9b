"""The annotator's side of the Annotate page without a browser, and the requests it carries out."""

from __future__ import annotations

import json
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.annotate.label import LabellingState, handle
from components.base.words import Catalogue
from pipelines.annotation.adjudication import adjudicate
from pipelines.annotation.labelling import Adjudication, Worker
from pipelines.annotation.sessions import Lead, enter
from pipelines.annotation.types import AnswerLabel
from pipelines.engine.service import Engine
from pipelines.error_words import phrase, phrase_in
from pipelines.errors import StorageBusyError
from tests.app.playing import seen
from tests.app.test_screens import engine as engine
from tests.app.test_screens import page
from tests.pipelines.annotation.bench import VALUES, item, join, lead_session, take

EN = Catalogue("en")


class Desk:
    """An annotator, and a page that sends their requests."""

    def __init__(self, worker: Worker) -> None:
        self.worker, self.standing, self.count = worker, LabellingState(), 0

    def ask(self, action: str, item: Any, *, client: str = "", **more: Any) -> str:
        """Send a request; its name."""
        self.count += 1
        client = client or f"request-{self.count}"
        request = {"action": action, "item": item, "client": client, **more}
        handle(self.worker, request, self.standing, EN)
        return client

    def values(self) -> list[Any]:
        return [one.label for one in self.worker.labels()]


def lead(engine: Engine, *tasks: str, **spec: Any) -> Lead:
    items = [item(task, number) for number, task in enumerate(tasks or ("answer", "answer"))]
    return lead_session(engine.service.store, items, **spec)


@pytest.fixture
def desk(engine: Engine) -> Desk:
    return Desk(join(lead(engine), "Ann")[0])


def given(worker: Worker, lead: Lead) -> str:
    """A personal link."""
    return lead.invite("annotator", annotator=worker.annotator)


def opened(token: str, language: str = "en") -> AppTest:
    test = page("annotate", lang=language)
    test.query_params["link"] = token
    test.run()
    assert not test.exception
    return test


def component(test: AppTest) -> dict[str, Any]:
    """What the labelling component was given."""
    found = [json.loads(one.proto.json or "null") for one in test.get("bidi_component")]
    return next(one for one in found if isinstance(one, dict) and "mode" in one)


def press(test: AppTest, key: str) -> AppTest:
    test.button(key=key).click().run()
    assert not test.exception
    return test


# Requests


def test_every_task_is_labelled_and_acknowledged(engine: Engine):
    session = lead(engine, *VALUES)
    desk = Desk(join(session, "Ann")[0])
    for _ in VALUES:
        task = take(desk.worker)
        value = {name: one for name, one in VALUES[task.body.task].items() if name != "task"}
        if task.body.task == "comparison":
            value = {"verdict": "first" if task.swapped else "second"}
        client = desk.ask("label", task.item, value=value, seconds=3.5)
        assert desk.standing.acknowledged[-1] == client
    stored = {one.item: one for one in desk.worker.labels()}
    assert [stored[n].label.model_dump(mode="json") for n in range(5)] == list(VALUES.values())
    assert {one.seconds for one in stored.values()} == {3.5}
    assert desk.standing.refused == {}


def test_a_request_that_is_sent_again_is_stored_once(desk: Desk):
    task = take(desk.worker)
    for _ in range(3):
        desk.ask("label", task.item, client="one", value={"verdict": "wrong"})
    assert desk.standing.acknowledged == ["one"]
    for _ in range(2):
        desk.ask("undo", task.item, client="two")
    for _ in range(2):
        desk.ask("redo", task.item, client="three")
    for _ in range(2):
        desk.ask("change", task.item, client="four", value={"verdict": "partly"})
    assert desk.values() == [AnswerLabel(verdict="partly")]
    assert desk.worker.labels()[0].changes == 1
    assert desk.standing.refused == {}
    # Another session of the page, after the server was started again.
    again = Desk(desk.worker)
    again.ask("label", task.item, client="one", value={"verdict": "wrong"})
    assert again.standing.acknowledged == ["one"]
    assert desk.values() == [AnswerLabel(verdict="partly")]


def test_skipping_and_commenting_need_words(desk: Desk):
    task = take(desk.worker)
    for action, name in (("skip", "reason"), ("comment", "text")):
        client = desk.ask(action, task.item, **{name: "  "})
        assert "Write something first." in desk.standing.refused[client]
    assert take(desk.worker).item == task.item
    desk.ask("comment", task.item, text="Odd.")
    desk.ask("skip", task.item, reason="No Dutch.")
    assert desk.standing.notice == ""
    assert take(desk.worker).item != task.item
    assert desk.worker.progress().skipped == 1


def test_an_old_label_is_looked_at_and_changed(desk: Desk):
    first = take(desk.worker).item
    desk.ask("label", first, value={"verdict": "wrong"})
    assert desk.standing.looked is None
    desk.ask("look", first)
    assert desk.standing.looked == first
    desk.ask("change", first, value={"verdict": "correct"})
    assert desk.standing.looked == first
    desk.ask("next", first)
    assert desk.standing.looked is None
    assert desk.values() == [AnswerLabel(verdict="correct")]


def test_what_detectors_say_is_shown_after_the_label_alone(desk: Desk):
    task = take(desk.worker)
    client = desk.ask("reveal", task.item)
    assert "once your label is saved" in desk.standing.refused[client]
    desk.ask("label", task.item, value={"verdict": "wrong"})
    assert desk.worker.own(task.item).hidden is None
    assert desk.worker.can_reveal(task.item)
    desk.ask("reveal", task.item)
    assert desk.standing.looked == task.item
    assert desk.worker.own(task.item).hidden is not None


def test_a_session_that_never_shows_refuses(engine: Engine):
    desk = Desk(join(lead(engine, show="never"), "Ann")[0])
    task = take(desk.worker)
    desk.ask("label", task.item, value={"verdict": "wrong"})
    client = desk.ask("reveal", task.item)
    assert "does not show" in desk.standing.refused[client]
    assert not desk.worker.can_reveal(task.item)


@pytest.mark.parametrize("number", [None, "0", True, 99, -1])
def test_an_item_that_is_none_is_refused(desk: Desk, number: Any):
    client = desk.ask("label", number, value={"verdict": "wrong"})
    assert client in desk.standing.refused
    assert desk.values() == []


@pytest.mark.parametrize(
    "value", [None, 3, {}, {"verdict": "perhaps"}, {"spans": []}, {"verdict": "wrong", "more": 1}]
)
def test_a_label_that_is_none_is_refused(desk: Desk, value: Any):
    client = desk.ask("label", take(desk.worker).item, value=value)
    assert "That was not saved." in desk.standing.refused[client]
    assert desk.values() == []


def test_a_request_that_is_none_is_refused(desk: Desk):
    client = desk.ask("fly", take(desk.worker).item)
    assert "fly" in desk.standing.refused[client]


def test_a_lost_item_and_a_closed_session_are_told_plainly(engine: Engine):
    session = lead(engine, overlap=1)
    ann, bo = (Desk(one) for one in join(session, "Ann", "Bo"))
    mine = take(ann.worker).item
    taken = take(bo.worker).item
    assert taken != mine
    client = ann.ask("label", taken, value={"verdict": "wrong"})
    assert "not yours" in ann.standing.refused[client]
    session.close()
    client = bo.ask("label", taken, value={"verdict": "wrong"})
    assert "closed meanwhile" in bo.standing.refused[client]
    assert bo.standing.notice == bo.standing.refused[client]
    assert bo.values() == []


def test_an_item_that_was_labelled_in_another_window(desk: Desk):
    number = take(desk.worker).item
    desk.ask("label", number, value={"verdict": "wrong"})
    client = desk.ask("label", number, value={"verdict": "correct"})
    assert "another window" in desk.standing.refused[client]
    assert desk.values() == [AnswerLabel(verdict="wrong")]


def test_a_busy_database_is_asked_again(desk: Desk, monkeypatch: pytest.MonkeyPatch):
    number = take(desk.worker).item

    def busy(*_: Any, **__: Any) -> None:
        raise StorageBusyError("It is busy.", remedy="Try again.")

    with monkeypatch.context() as patch:
        patch.setattr(desk.worker, "label", busy)
        with pytest.raises(StorageBusyError):
            desk.ask("label", number, client="one", value={"verdict": "wrong"})
    # Neither done nor refused: the component sends it again.
    assert desk.standing.acknowledged == []
    assert desk.standing.refused == {}
    desk.ask("label", number, client="one", value={"verdict": "wrong"})
    assert desk.standing.acknowledged == ["one"]


def test_only_the_latest_answers_are_told_again(desk: Desk):
    number = take(desk.worker).item
    for _ in range(120):
        desk.ask("renew", number)
        desk.ask("reveal", number)
    assert len(desk.standing.acknowledged) == 50
    assert desk.standing.acknowledged[-1] == "request-239"
    assert len(desk.standing.refused) == 50


# Pages


@pytest.mark.parametrize("language", ["en", "zh"])
def test_joining_makes_the_address_a_personal_link(engine: Engine, language: str):
    session = lead(engine, names=("Ann", "Bo"))
    join(session, "Bo")
    token = session.invite("join")
    test = opened(token, language)
    t = Catalogue("zh" if language == "zh" else "en")
    for name, refused in (("", "bad_name"), ("Eve", "not_invited"), ("Bo", "name_taken")):
        test.text_input(key="annotate.join.name").set_value(name)
        test.button[0].click().run()
        # Who may join is looked at first.
        expected = "not_invited" if not name else refused
        assert phrase_in(phrase(f"annotating.{expected}"), t.language) in seen(test)
    test.text_input(key="annotate.join.name").set_value("Ann")
    test.button[0].click().run()
    assert not test.exception
    own = test.query_params["link"]
    own = own if isinstance(own, str) else own[0]
    assert own != token
    assert isinstance(enter(engine.service.store, own, "here"), Worker)
    assert own in test.code[0].value
    assert [one.name for one in session.annotators()] == ["Bo", "Ann"]
    # The guidelines come first, then the first item.
    assert "Read the evidence." in [one.value for one in test.markdown]
    press(press(test, "annotate.link.kept"), "annotate.begin")
    assert component(test)["mode"] == "label"


def test_a_closed_session_cannot_be_joined(engine: Engine):
    session = lead(engine)
    test = opened(session.invite("join"))
    session.close()
    test.text_input(key="annotate.join.name").set_value("Ann")
    test.button[0].click().run()
    assert "closed" in seen(test)


def test_guidelines_that_have_changed_are_shown_again(engine: Engine):
    session = lead(engine)
    (ann,) = join(session, "Ann")
    token = given(ann, session)
    test = press(opened(token), "annotate.begin")
    data = component(test)
    assert data["at"] == "1 of 2"
    ann.label(data["item"], VALUES["answer"], client="c", seconds=2)
    # Who comes back goes on at once.
    assert component(opened(token))["at"] == "2 of 2"
    session.set_guidelines("Read **all** of it. <b>Now</b>")
    test = opened(token)
    assert EN("annotate.task.guidelines.changed") in seen(test)
    shown = next(one for one in test.markdown if "all" in one.value)
    assert not shown.allow_html
    assert component(press(test, "annotate.begin"))["at"] == "2 of 2"


def test_guidelines_that_change_while_somebody_works_are_shown_before_the_next_item(
    engine: Engine,
):
    session = lead(engine)
    desk = Desk(join(session, "Ann")[0])
    desk.standing.read = 1
    standing = f"_annotate.standing.{session.session_id}.{desk.worker.annotator}"
    test = page("annotate", lang="en", **{standing: desk.standing})
    test.query_params["link"] = given(desk.worker, session)
    test.run()
    number = component(test)["item"]
    session.set_guidelines("Read **all** of it.")
    # Drawn again, as when the lease is renewed, the page shows them at once.
    desk.ask("renew", number)
    assert EN("annotate.task.guidelines.changed") in seen(test.run())
    desk.ask("label", number, value={"verdict": "wrong"})
    test.run()
    assert not test.exception
    # The label was given by what had been read, and nothing else is until the new text is.
    assert [one.guidelines for one in session.events()] == [1]
    assert EN("annotate.task.guidelines.changed") in seen(test)
    assert component(press(test, "annotate.begin"))["at"] == "2 of 2"
    desk.standing.read = 2
    desk.ask("change", number, value={"verdict": "partly"})
    assert [one.guidelines for one in session.events()] == [1, 2]


def test_own_labels_are_listed_and_opened(engine: Engine):
    session = lead(engine, "answer", "span", "comparison")
    (ann,) = join(session, "Ann")
    for _ in range(2):
        task = take(ann)
        ann.label(task.item, VALUES[task.body.task], client=f"c{task.item}", seconds=2)
    test = page("annotate", lang="en", **{"annotate.own": True})
    test.query_params["link"] = given(ann, session)
    test.run()
    assert seen(test).count("Look at it again") == 2
    data = component(test)
    assert data["last"]["reveal"]
    assert data["label"] is None
    assert data["can"]["undo"] == data["last"]["item"]


def test_the_end_waiting_and_undo(engine: Engine):
    session = lead(engine, "answer", overlap=1)
    ann, bo = join(session, "Ann", "Bo")
    held = take(bo).item
    test = press(opened(given(ann, session)), "annotate.begin")
    assert "Somebody is labelling the last item." in seen(test)
    bo.label(held, VALUES["answer"], client="c", seconds=75)
    press(test, "annotate.again")
    assert "There is no item left for you." in seen(test)
    done = opened(given(bo, session))
    # What is added later comes up by itself: the page looks again.
    session.add_items([item("answer", 9)])
    done.run()
    assert component(done)["item"] == 1
    bo.skip(1, "Not mine.", client="s")
    done.run()
    assert "Active time: 1 min 15 s" in seen(done)
    data = component(press(done, "annotate.undo"))
    assert (data["item"], data["undone"]) == (held, {"verdict": "partly"})
    assert bo.labels() == []


def test_what_was_decided_otherwise_is_seen_once_the_session_is_closed(engine: Engine):
    session = lead(engine, "answer", "span")
    (ann,) = join(session, "Ann")
    for _ in range(2):
        task = take(ann)
        ann.label(task.item, VALUES[task.body.task], client=f"c{task.item}", seconds=2)
    decision = Adjudication(label=AnswerLabel(verdict="wrong"), note="She was born in Delft.")
    adjudicate(session, "Lea", 0, decision, client="d")
    token = given(ann, session)
    assert "She was born" not in seen(opened(token))
    session.close()
    test = opened(token)
    assert "This session is closed" in seen(test)
    for words in ("Partly correct", "Wrong", "She was born in Delft."):
        assert words in seen(test)
    assert "1 of your 2 labels" in test.caption[0].value


def test_a_label_that_came_too_late_is_told_beside_the_closed_session(engine: Engine):
    session = lead(engine)
    desk = Desk(join(session, "Ann")[0])
    number = take(desk.worker).item
    session.close()
    desk.ask("label", number, value={"verdict": "wrong"})
    standing = f"_annotate.standing.{session.session_id}.{desk.worker.annotator}"
    test = page("annotate", lang="en", **{standing: desk.standing})
    test.query_params["link"] = given(desk.worker, session)
    test.run()
    assert not test.exception
    assert "This label was not saved" in seen(test)
    assert "This session is closed" in seen(test)


def test_a_wrong_link_is_told_and_counts_once(engine: Engine):
    token = f"{'0' * 16}.{'x' * 43}"
    test = opened(token)
    for _ in range(30):
        test.run()
    assert "Not found" in seen(test)
    # Drawn thirty times, it was one wrong try: the right one still works.
    session = lead(engine)
    (ann,) = join(session, "Ann")
    assert "Read the evidence." in [one.value for one in opened(given(ann, session)).markdown]


def test_a_withdrawn_link_ends_the_work_at_once(engine: Engine):
    session = lead(engine)
    (ann,) = join(session, "Ann")
    token = given(ann, session)
    test = press(opened(token), "annotate.begin")
    session.revoke(token.split(".")[0])
    test.run()
    assert not test.exception
    assert "Not found" in seen(test)
    assert not [one for one in test.get("bidi_component") if '"mode"' in one.proto.json]


def test_only_those_with_sessions_of_their_own_are_led_back_to_them(engine: Engine):
    from tests.app.test_screens import ME

    session = lead(engine)
    (ann,) = join(session, "Ann")
    test = opened(given(ann, session))
    assert "annotate.leave" not in [one.key for one in test.button]
    engine.service.store.annotations.create(ME, "Mine", {}, 2, "")
    test = opened(given(ann, session))
    assert "annotate.leave" in [one.key for one in test.button]

"""The lead's side of the Annotate page without a browser: make, invite, watch, change, export."""

from __future__ import annotations

from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.annotate.links import address_of
from pipelines.annotation.formats import export_label_studio, export_session, import_session
from pipelines.annotation.labelling import Worker, standing_labels
from pipelines.annotation.sessions import Invitation, Lead, enter
from pipelines.engine.service import Engine
from pipelines.evaluation.beginning import create_evaluation
from pipelines.evaluation.plan import EvaluationSpec, Item, System
from pipelines.run.events import MethodSpec, default_models
from pipelines.store.exchange import export_lines, load_recording, recordings
from tests.app.playing import seen
from tests.app.test_screens import ME, page
from tests.app.test_screens import engine as engine
from tests.pipelines.annotation.bench import VALUES, item, join, label_all, lead_session

SAMPLE = recordings()[0].id
MAKE = "annotate.make"


def annotate(session: str = "", link: str = "", **state: Any) -> AppTest:
    test = page("annotate", **state)
    if session:
        test.query_params["session"] = session
    if link:
        test.query_params["link"] = link
    return drawn(test)


def drawn(test: AppTest) -> AppTest:
    """The page as it is when what is done beside it has ended."""
    test.run()
    assert not test.exception
    for name in _state(test):
        if name.endswith((".reading", ".making")):
            work = test.session_state[name]
            (work[1] if isinstance(work, tuple) else work).wait(None)
            test.run()
            assert not test.exception
    return test


def making(source: str, **state: Any) -> AppTest:
    """The form that makes a session, with that source chosen."""
    return annotate(**{"annotate.new": True, f"{MAKE}.from": source, **state})


def press(test: AppTest, key: str) -> AppTest:
    test.button(key=key).click()
    return drawn(test)


def led(engine: Engine, test: AppTest) -> Lead:
    """The session that the page looks at."""
    return Lead(engine.service.store, test.query_params["session"], ME)


def imported(engine: Engine) -> str:
    """A run of this browser's."""
    return engine.service.store.import_run(export_lines(load_recording(SAMPLE)), ME)


def mine(engine: Engine, *tasks: str, **spec: Any) -> Lead:
    """A session of this browser's with an item for each of `tasks`."""
    store = engine.service.store
    items = [item(task, number) for number, task in enumerate(tasks or VALUES)]
    lead = lead_session(store, items, **spec)
    lines = list(export_session(lead))
    store.annotations.delete(lead.session_id, "me")
    return import_session(store, ME, lines)


def part(lead: Lead, name: str) -> dict[str, Any]:
    """The state in which the page shows one part of a session."""
    return {f"annotate.part.{lead.session_id}": name}


def texts(test: AppTest) -> str:
    """All words of the page, in and out of HTML."""
    plain = [*test.caption, *test.markdown, *test.text]
    return "\n".join([seen(test), *(str(one.value) for one in plain)])


def keys(test: AppTest) -> set[str | None]:
    return {one.key for one in test.button}


@pytest.mark.parametrize(
    ("lang", "title", "said"), [("en", "Annotate", "Choose items"), ("zh", "标注", "选择条目")]
)
def test_a_new_visitor_is_told_what_the_page_is_for(
    engine: Engine, lang: str, title: str, said: str
):
    test = annotate(lang=lang)
    assert title in seen(test)
    assert said in seen(test)
    assert "annotate.example" in keys(test)


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_an_example_session_is_made_with_one_press(engine: Engine, lang: str):
    test = press(annotate(lang=lang), "annotate.example")
    lead = led(engine, test)
    standing = engine.service.store.annotations.standing(lead.session_id)
    assert set(standing.tasks) == {"sentence", "answer"}
    assert standing.gold == 3
    assert lead.session.name in seen(test)
    # What the lead has to do first is unfolded.
    assert "annotate.link.make" in keys(test)
    # Back in the list, it stands there.
    press(test, "annotate.all")
    assert "session" not in test.query_params
    assert lead.session.name in seen(test)
    assert f"open-{lead.session_id}" in keys(test)
    press(test, f"open-{lead.session_id}")
    assert led(engine, test).session_id == lead.session_id


def test_labelled_data_brings_its_control_items(engine: Engine):
    test = making("data")
    assert test.selectbox(key=f"{MAKE}.data.bundled").value == "statements:en"
    field = next(one for one in test.number_input if one.key and ".controls." in one.key)
    assert field.value == 5
    assert not test.button(key=f"{MAKE}.go").disabled
    field.set_value(4)
    press(drawn(test), f"{MAKE}.go")
    lead = led(engine, test)
    assert sum(one.gold is not None for one in lead.items()) == 4
    # The other labels are those of somebody who is imported.
    assert [one.kind for one in lead.annotators()] == ["imported"]


def test_without_control_items_it_is_asked_once_whether_that_is_meant(engine: Engine):
    test = making("data")
    next(one for one in test.number_input if one.key and ".controls." in one.key).set_value(0)
    test.toggle(key=f"{MAKE}.keep").set_value(False)
    drawn(test)
    assert test.button(key=f"{MAKE}.go").disabled
    test.checkbox(key=f"{MAKE}.without_gold").check()
    press(drawn(test), f"{MAKE}.go")
    lead = led(engine, test)
    assert lead.spec.without_gold
    assert lead.annotators() == []


def evaluated(engine: Engine) -> str:
    """An evaluation with answers to four of its five items."""
    evaluations = engine.service.store.evaluations
    spec = EvaluationSpec(
        data="capitals",
        data_hash="0" * 64,
        code="1",
        checks="questions",
        systems=(System(name="direct", method=MethodSpec(name="direct"), models=default_models()),),
    )
    items = [Item(id=f"q{at}", question=f"Who is {at}?", answers=("Ada",)) for at in range(5)]
    evaluation = create_evaluation(evaluations, ME, spec, items, "Capitals")
    for task in evaluations.open_tasks(evaluation)[:4]:
        evaluations.finish(evaluation, ME, task, imported(engine), {}, {})
    return evaluation


def test_items_of_an_evaluation_are_drawn_with_their_probability(engine: Engine):
    evaluation = evaluated(engine)
    test = making("evaluation", **{f"{MAKE}.which.{evaluation}": "drawn"})
    number = test.number_input(key=f"{MAKE}.draw.{evaluation}.4")
    assert number.value == 4
    number.set_value(2)
    drawn(test)
    test.checkbox(key=f"{MAKE}.without_gold").check()
    press(drawn(test), f"{MAKE}.go")
    items = led(engine, test).items()
    assert {one.probability for one in items} == {0.5}
    assert len({one.body["place"]["record"] for one in items}) == 2


def test_an_evaluation_leads_to_a_session_of_its_answers(engine: Engine):
    evaluation = evaluated(engine)
    evaluated(engine)
    test = page("evaluate")
    test.query_params["evaluation"] = evaluation
    test.run()
    test.button(key="evaluate.annotate").click().run()
    assert test.session_state["_wanted_page"] == "annotate"
    # The page that follows begins with what the click has chosen.
    chosen = [name for name in _state(test) if name.startswith("annotate.")]
    test = annotate(**{name: test.session_state[name] for name in chosen})
    assert test.selectbox(key=f"{MAKE}.evaluation").value == evaluation


def test_without_an_evaluation_and_for_questions_the_way_is_shown(engine: Engine):
    test = making("evaluation")
    assert "There is no evaluation with answers yet." in texts(test)
    test = making("questions")
    assert "evaluate the list first" in texts(test)
    test.button(key=f"{MAKE}.evaluate").click().run()
    assert test.session_state["_wanted_page"] == "evaluate"


def test_guidelines_follow_the_tasks_until_somebody_writes_their_own(engine: Engine):
    imported(engine)
    test = making("runs", **{f"{MAKE}.all": True})
    field = test.text_area(key=f"{MAKE}.guidelines")
    assert "# What you are asked to do" in str(field.value)
    tasks = next(name for name in _state(test) if name.startswith(f"{MAKE}.tasks."))
    test.session_state[tasks] = ["span"]
    drawn(test)
    assert "Mark what is hallucinated" in str(test.text_area(key=f"{MAKE}.guidelines").value)
    test.text_area(key=f"{MAKE}.guidelines").input("Mine.")
    drawn(test)
    test.session_state[tasks] = ["answer"]
    drawn(test)
    assert test.text_area(key=f"{MAKE}.guidelines").value == "Mine."


def _state(test: AppTest) -> list[str]:
    return [str(one) for one in test.session_state]


def test_a_file_of_a_session_makes_another(engine: Engine):
    lead = mine(engine)
    label_all(join(lead, "Ann")[0])
    test = making("file")
    field = test.file_uploader(key=f"{MAKE}.session_file")
    field.set_value(("broken.json", b"{", "application/json"))
    drawn(test)
    assert "no JSON" in seen(test)
    field = test.file_uploader(key=f"{MAKE}.session_file")
    field.set_value(("tasks.json", export_label_studio(lead).encode(), "application/json"))
    drawn(test)
    assert "5 items; labels of: Ann (5)" in texts(test)
    test.checkbox(key=f"{MAKE}.without_gold").check()
    press(drawn(test), f"{MAKE}.go")
    made = led(engine, test)
    assert made.session_id != lead.session_id
    assert len(made.items()) == 2


def test_a_whole_session_is_taken_over_as_it_is(engine: Engine):
    lead = mine(engine)
    label_all(join(lead, "Ann")[0])
    before = list(export_session(lead))
    state: dict[str, Any] = {"annotate.import": True}
    test = annotate(**state)
    file = ("session.jsonl", "".join(before).encode(), "application/jsonl")
    test.file_uploader(key="annotate.import.session.0").set_value(file)
    drawn(test)
    made = led(engine, test)
    assert made.session_id != lead.session_id
    assert list(export_session(made)) == before


def test_a_link_is_shown_once_works_and_is_withdrawn(engine: Engine):
    lead = mine(engine)
    test = press(annotate(lead.session_id), "annotate.link.make")
    address = test.code[0].value
    token = address.partition("link=")[2]
    invitation = enter(engine.service.store, token, "here")
    assert isinstance(invitation, Invitation)
    (link,) = lead.links()
    assert link.expires is not None
    press(test, "annotate.link.hide")
    assert not test.code
    assert "Works" in seen(test)
    press(test, f"sure-withdraw-{link.id}")
    assert "Withdrawn" in seen(test)
    assert lead.links()[0].revoked is not None


def test_who_lost_their_link_gets_another(engine: Engine):
    lead = mine(engine)
    join(lead, "Ann", "Bob")
    links = {f"annotate.links.{lead.session_id}": True, "annotate.link.role": "annotator"}
    test = annotate(lead.session_id, **links)
    test.selectbox(key="annotate.link.whose").set_value(1)
    test.selectbox(key="annotate.link.days").set_value(0)
    press(drawn(test), "annotate.link.make")
    worker = enter(engine.service.store, test.code[0].value.partition("link=")[2], "here")
    assert isinstance(worker, Worker)
    assert worker.annotator == 1
    assert lead.links()[-1].expires is None


@pytest.mark.parametrize(
    ("page", "address"),
    [
        ("https://a.example/annotate", "https://a.example/annotate?link=t"),
        ("http://localhost:8501/sub/annotate", "http://localhost:8501/sub/annotate?link=t"),
        (None, "/annotate?link=t"),
    ],
)
def test_the_address_of_a_link_is_whole(page: str | None, address: str):
    assert address_of(page, "t") == address


@pytest.mark.parametrize("lang", ["en", "zh"])
def test_progress_follows_the_labels(engine: Engine, lang: str):
    lead = mine(engine)
    test, percent = annotate(lead.session_id, lang=lang), {"en": " %", "zh": "%"}[lang]
    assert f"0{percent}" in seen(test)
    ann, bob = join(lead, "Ann", "Bob")
    label_all(ann)
    drawn(test)
    assert f"50{percent}" in seen(test)
    assert "Ann" in seen(test)
    label_all(bob, {1: {"task": "span", "spans": []}})
    drawn(test)
    assert f"100{percent}" in seen(test)


def test_the_list_says_how_far_people_agree(engine: Engine):
    lead = mine(engine, "sentence", "sentence")
    for worker in join(lead, "Ann", "Bob"):
        label_all(worker)
    assert "alpha" not in seen(annotate())
    (carl,) = join(lead, "Carl")
    lead.set_overlap(3)
    label_all(carl, {0: {"task": "sentence", "verdict": "major"}})
    said = seen(annotate())
    assert "3 people" in said
    assert "100 % done" in said
    assert "Sentences: alpha" in said


def test_a_lead_by_link_may_do_everything_but_delete(engine: Engine):
    lead = mine(engine)
    token = lead.invite("lead")
    test = annotate(link=token, _owner="b" * 48, **part(lead, "settings"))
    assert lead.session.name in seen(test)
    assert "annotate.close" in keys(test)
    assert f"sure-{lead.session_id}" not in keys(test)
    # There is no list for them to go back to.
    assert "annotate.all" not in keys(test)
    assert f"sure-{lead.session_id}" in keys(annotate(lead.session_id, **part(lead, "settings")))


def test_somebody_elses_session_is_not_there(engine: Engine):
    lead = mine(engine)
    test = annotate(lead.session_id, _owner="b" * 48)
    assert "Not found" in seen(test)
    assert lead.session.name not in seen(test)


def test_guidelines_have_versions(engine: Engine):
    lead = mine(engine)
    test = annotate(lead.session_id, **part(lead, "settings"))
    field = test.text_area(key=f"annotate.edit.{lead.session_id}.1")
    assert field.value == "Read the evidence."
    assert test.button(key="annotate.guidelines.save").disabled
    field.input("Read **all** of the evidence.")
    press(drawn(test), "annotate.guidelines.save")
    assert "Version 2 of the guidelines is in force." in seen(test)
    versions = engine.service.store.annotations.guidelines(lead.session_id)
    assert [one.text for one in versions] == [
        "Read the evidence.",
        "Read **all** of the evidence.",
    ]
    test.session_state[f"annotate.versions.{lead.session_id}"] = True
    drawn(test)
    assert "Read the evidence." in texts(test)
    # What was said is said until something else is done.
    assert "is in force" in seen(test)
    assert "is in force" not in seen(press(test, "annotate.close"))


def test_the_overlap_and_the_rules_change(engine: Engine):
    lead = mine(engine)
    state = {**part(lead, "settings"), f"annotate.rules.{lead.session_id}": True}
    test = annotate(lead.session_id, **state)
    test.number_input(key=f"annotate.overlap.{lead.session_id}.2").set_value(4)
    press(drawn(test), "annotate.overlap.save")
    assert lead.session.overlap == 4
    place = f"annotate.rules.{lead.session_id}"
    test.text_area(key=f"{place}.names").input("Ann\n\n Bob \nAnn")
    test.number_input(key=f"{place}.lease").set_value(2)
    press(drawn(test), "annotate.rules.save")
    assert lead.spec.names == ("Ann", "Bob")
    assert lead.spec.lease == 120


def test_control_items_are_added_and_removed(engine: Engine):
    lead = mine(engine, "answer", "span")
    state = {**part(lead, "settings"), f"annotate.gold.{lead.session_id}": True}
    test = annotate(lead.session_id, **state)
    assert "There is no control item." in seen(test)
    test.selectbox(key="annotate.gold.label.0").set_value("wrong")
    press(drawn(test), "annotate.gold.add")
    assert lead.items()[0].gold == {"task": "answer", "verdict": "wrong"}
    # From now on control items are given out.
    assert not lead.spec.without_gold
    assert "Right: Wrong" in seen(test)
    pieces = test.text_area(key="annotate.gold.pieces.1")
    pieces.input("nowhere in it")
    press(drawn(test), "annotate.gold.add")
    assert "does not hold" in seen(test)
    test.text_area(key="annotate.gold.pieces.1").input("Delft")
    press(drawn(test), "annotate.gold.add")
    gold = lead.items()[1].gold
    assert gold is not None
    assert gold["spans"] == [{"start": 16, "end": 21, "kind": "other"}]
    for number in (0, 1):
        press(test, f"sure-gold-{number}")
    assert [one.gold for one in lead.items()] == [None, None]
    assert lead.spec.without_gold


def test_an_item_that_was_given_out_stays_as_it_is(engine: Engine):
    lead = mine(engine, "answer")
    label_all(join(lead, "Ann")[0])
    state = {**part(lead, "settings"), f"annotate.gold.{lead.session_id}": True}
    test = annotate(lead.session_id, **state)
    assert "was given to somebody already" in texts(test)
    assert "annotate.gold.add" not in keys(test)


def test_items_are_added_later(engine: Engine):
    run = imported(engine)
    lead = mine(engine, "answer", tasks=("answer",))
    place = f"annotate.add.{lead.session_id}"
    test = annotate(
        lead.session_id, **{**part(lead, "settings"), place: True, f"{place}.from": "runs"}
    )
    test.checkbox(key=f"{place}.pick.{run}").check()
    press(drawn(test), "annotate.add.go")
    assert "are new in the session." in seen(test)
    assert {one.task for one in lead.items()} == {"answer"}
    count = len(lead.items())
    assert count > 1
    test.session_state[place] = True
    drawn(test)
    tasks = next(name for name in _state(test) if name.startswith(f"{place}.tasks."))
    test.session_state[tasks] = ["answer", "span"]
    press(drawn(test), "annotate.add.go")
    assert lead.spec.tasks == ("span", "answer")
    assert sum(one.task == "answer" for one in lead.items()) == count
    assert sum(one.task == "span" for one in lead.items()) > 0


def test_labels_of_another_program_are_imported(engine: Engine):
    lead = mine(engine)
    label_all(join(lead, "Ann")[0])
    text = export_label_studio(lead).replace('"partly"', '"wrong"')
    state = {**part(lead, "settings"), f"annotate.import.{lead.session_id}": True}
    test = annotate(lead.session_id, **state)
    place = f"annotate.import.labels.{lead.session_id}"
    test.file_uploader(key=f"{place}.0").set_value(("a.json", text.encode(), ""))
    drawn(test)
    assert "5 labels of 1 people are new." in seen(test)
    # Ann's own labels are not those of the file.
    assert [one.name for one in lead.annotators()] == ["Ann", "Ann (imported)"]
    assert len(standing_labels(lead.events())) == 10


def test_a_session_is_closed_opened_again_and_deleted(engine: Engine):
    lead = mine(engine)
    test = press(annotate(lead.session_id, **part(lead, "settings")), "annotate.close")
    assert lead.session.closed is not None
    assert "The session is closed" in seen(test)
    press(test, "annotate.close")
    assert lead.session.closed is None
    test.button(key=f"sure-{lead.session_id}").click().run()
    assert not test.exception
    assert engine.service.store.annotations.list(ME) == []
    assert "annotate.example" in keys(test)


def test_a_session_that_is_deleted_meanwhile_is_told(engine: Engine):
    lead = mine(engine)
    test = annotate(lead.session_id)
    engine.service.store.annotations.delete(lead.session_id, ME)
    drawn(test)
    assert "Not found" in seen(test)

"""The results of a session without a browser: agreement, detectors, profiles, judges."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from pipelines.annotation.adjudication import adjudicate
from pipelines.annotation.labelling import Adjudication, ReadLabel
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import (
    Hidden,
    ItemPlace,
    Label,
    ModelVerdict,
    SessionItem,
    label_adapter,
)
from pipelines.engine.service import Engine
from pipelines.evaluation.judging.spec import Grade
from pipelines.jobs import Job, NotYet
from pipelines.methods.registry import METHODS
from pipelines.run.events import MethodSpec
from pipelines.store.profiles import Profile
from tests.app.playing import seen
from tests.app.test_screens import ME, page
from tests.app.test_screens import engine as engine
from tests.pipelines.annotation.bench import item, join, label_all, recorded
from tests.pipelines.annotation.evaluated import (
    Key,
    answer_item,
    evaluated,
    judge,
    labelled_session,
    session_of,
)

FOLDS = ("pairs", "labels", "reveal", "scores", "fits", "judges")


def results(lead: Lead, *unfolded: str, **state: Any) -> AppTest:
    """The page with the results of a session, some parts unfolded."""
    folds = {f"annotate.results.fold.{name}": True for name in unfolded}
    shown = {f"annotate.part.{lead.session_id}": "results"}
    test = page("annotate", **shown, **folds, **state)
    test.query_params["session"] = lead.session_id
    return drawn(test)


def drawn(test: AppTest) -> AppTest:
    test.run()
    assert not test.exception
    return test


def label(task: str, value: Any) -> Label:
    told = {"spans": value} if task == "span" else {"verdict": value}
    return label_adapter.validate_python({"task": task, **told})


def labels(task: str, *values: Any) -> dict[str, Label]:
    return {f"{task}-{n}": label(task, value) for n, value in enumerate(values)}


def detected(engine: Engine, count: int = 60, run: str = "") -> Lead:
    """People find wrong what the SLM check gives less than 0.4; two of them agree.

    All verdicts come from the run `run`.
    """
    place = ItemPlace(run=run)
    source = np.random.default_rng(3)
    items: list[SessionItem] = []
    told: dict[str, Label] = {}
    for number in range(count):
        value = round(float(source.uniform()), 3)
        verdict = ModelVerdict(
            method="slm",
            verdict="contradicted" if value < 0.5 else "supported",
            score="entailment",
            value=value,
            doubt=round(1 - value, 3),
        )
        body = item("answer", number).body.model_copy(update={"place": place})
        made = item("answer", number, body=body, hidden=Hidden(verdicts=(verdict,)))
        items.append(made)
        told[made.key] = label("answer", "wrong" if value < 0.4 else "correct")
    return session_of(engine.service.store, items, told, told, owner=ME)


def fold_keys(test: AppTest) -> set[str]:
    known = [one.key or "" for one in test.expander]
    return {key.removeprefix("annotate.results.fold.") for key in known if ".fold." in key}


def test_before_anybody_has_labelled_there_is_nothing(engine: Engine):
    lead = session_of(engine.service.store, [item("answer")], owner=ME)
    assert "Nobody has labelled anything yet." in seen(results(lead))


def test_agreement_stands_first_and_the_rest_is_folded(engine: Engine):
    first = labels("answer", "correct", "correct", "wrong", "partly")
    second = labels("answer", "correct", "wrong", "wrong", "partly")
    items = [item("answer", n) for n in range(4)]
    lead = session_of(engine.service.store, items, first, second, owner=ME)
    test = results(lead)
    # Kappa 7/11, alpha 2/3 by hand (see the tests of agreement).
    assert "0.64 [" in seen(test)
    assert "Alpha is 0.6667 < 0.6670" in seen(test) or "Alpha is 0.6667 <" in seen(test)
    assert "Person 0 and Person 1" not in seen(test)
    assert {"pairs", "labels", "scores", "fits"} <= fold_keys(test)
    assert "judges" not in fold_keys(test)
    test = results(lead, "pairs", "labels")
    assert "Person 0 and Person 1" in seen(test)
    assert "Agreement on each label" in [one.label for one in test.expander]
    assert "Partly correct" in seen(test)


def test_each_task_has_results_of_its_own(engine: Engine):
    items = [item("span", 0), item("span", 1), item("concept", 0), item("comparison", 0)]
    mark = [{"start": 0, "end": 3}]
    first = {**labels("span", mark, []), **labels("concept", "true")}
    second = {**labels("span", mark, mark), **labels("concept", "true")}
    second |= labels("comparison", "same")
    lead = session_of(engine.service.store, items, first, second, owner=ME)
    test = results(lead, "pairs")
    chosen = test.button_group(key="annotate.results.task.concept.span.comparison")
    chosen.set_value("span")
    drawn(test)
    assert "Alpha over characters" in seen(test)
    assert "F1, overlap of at least half" in seen(test)
    chosen = test.button_group(key="annotate.results.task.concept.span.comparison")
    chosen.set_value("comparison")
    drawn(test)
    assert "Only one person has labelled." in seen(test)
    # No detector says which text is better.
    assert "Detectors against the labels" not in seen(test)


def test_labels_before_and_after_the_models_were_shown(engine: Engine):
    items = [item("answer", n) for n in range(4)]
    lead = session_of(engine.service.store, items, owner=ME, show="after")
    ann, bo = join(lead, "Ann", "Bo")
    label_all(ann, {n: {"task": "answer", "verdict": "wrong"} for n in range(4)})
    label_all(bo, {n: {"task": "answer", "verdict": ("wrong", "correct")[n % 2]} for n in range(4)})
    bo.reveal(1, client="r")
    bo.change(1, {"task": "answer", "verdict": "wrong"}, client="c")
    test = results(lead, "reveal")
    assert "1 label was changed after models’ verdicts had been shown." in seen(test)
    test.button_group(key="annotate.results.which").set_value("blind")
    drawn(test)
    assert "0.50" in seen(test)


def test_detectors_are_held_against_final_labels(engine: Engine):
    lead = detected(engine)
    test = results(lead, "scores")
    assert "60 items have a final label" in seen(test)
    assert "SLM" in seen(test)
    assert "1.000 [1.000, 1.000]" in seen(test)
    assert len(test.get("plotly_chart")) == 1
    for kind in ("precision_recall", "reliability", "spread"):
        key = "annotate.results.figure.roc.precision_recall.reliability.spread"
        test.button_group(key=key).set_value(kind)
        drawn(test)
        assert len(test.get("plotly_chart")) == 1
    # Of the verdicts those between 0.4 and 0.5 are wrong.
    assert "it is low in spite of much agreement" in seen(test)
    # What people disagree on is missing, and said to be.
    lead.import_labels("Person 0", [ReadLabel("answer-0", label("answer", "partly"))])
    assert "People disagree on 1 item, which is missing here." in seen(results(lead, "scores"))
    adjudicate(lead, "Chief", 0, Adjudication(label=label("answer", "wrong")), client="a")
    assert "People disagree on" not in seen(results(lead, "scores"))


def saved(engine: Engine) -> list[Profile]:
    return engine.service.store.profiles.list(ME)


def keep(test: AppTest, name: str) -> AppTest:
    test.text_input(key="annotate.results.profile").input(name)
    test.button(key="annotate.results.save").click()
    return drawn(test)


def test_a_fitted_threshold_is_saved_as_a_profile(engine: Engine):
    test = results(detected(engine), "fits")
    assert "Fitted on 50 % of the groups" in seen(test)
    keep(test, "Mine")
    assert "Saved as the profile “Mine”." in seen(test)
    (profile,) = saved(engine)
    assert profile.settings["slm"]["threshold"] == pytest.approx(0.4, abs=0.1)
    assert profile.origin is not None
    assert profile.origin.data_set == "Ada"
    # The next run begins with it.
    asking = page("ask", settings=True).run()
    asking.selectbox(key="settings.profile").set_value("Mine").run()
    assert not asking.exception
    assert any("Settings of the profile “Mine”." in one.value for one in asking.caption)
    # The name is taken now, and needed at all.
    assert "There is a profile of that name already." in seen(keep(test, "Mine"))
    assert "The profile needs a name" in seen(keep(test, " "))
    assert len(saved(engine)) == 1


@pytest.mark.parametrize("kind", ["platt", "isotonic", "none"])
def test_the_chosen_calibration_is_saved_with_the_threshold(engine: Engine, kind: str):
    header = recorded().header
    slm = header.spec.model_copy(update={"methods": (MethodSpec(name="slm"),)})
    told = header.model_copy(update={"run": "run-1", "spec": slm})
    engine.service.store.create("run-1", ME, told)
    test = results(detected(engine, run="run-1"), "fits")
    test.button_group(key="annotate.results.calibration").set_value(kind)
    keep(test, "Mine")
    (profile,) = saved(engine)
    assert "threshold" in profile.settings["slm"]
    found = [(one.fit.kind, one.score, one.bad, one.session) for one in profile.calibrations]
    wanted = [] if kind == "none" else [(kind, "entailment", "below", "Ada")]
    assert found == wanted
    # The next run takes it along; it is the SLM check's.
    chosen = {f"method.{name}": name == "slm" for name in METHODS}
    asking = page("ask", settings=True, **chosen).run()
    asking.selectbox(key="settings.profile").set_value("Mine").run()
    assert not asking.exception
    assert asking.session_state["_profile"].calibrations == profile.calibrations


def test_without_the_runs_there_is_no_calibration_to_save(engine: Engine):
    test = results(detected(engine, run="gone"), "fits")
    with pytest.raises(KeyError):
        test.button_group(key="annotate.results.calibration")
    keep(test, "Mine")
    assert saved(engine)[0].calibrations == ()


def test_the_part_that_is_fitted_on_can_be_changed(engine: Engine):
    test = results(detected(engine), "fits")
    test.slider(key="annotate.results.share").set_value(70)
    test.number_input(key="annotate.results.seed").set_value(5)
    drawn(test)
    assert "Fitted on 70 % of the groups" in seen(test)
    assert "fitted on 42 items, tested on 18" in seen(test)


def test_without_fitted_thresholds_there_is_nothing_to_save(engine: Engine):
    test = results(detected(engine, 6), "fits")
    assert "Too few items" in seen(test)
    assert any("nothing to save" in one.value for one in test.caption)


def test_where_nothing_is_final_there_is_nothing_to_compare(engine: Engine):
    first, second = labels("answer", "correct", "correct"), labels("answer", "wrong", "partly")
    items = [item("answer", n) for n in range(2)]
    lead = session_of(engine.service.store, items, first, second, owner=ME)
    test = results(lead, "scores", "fits")
    assert seen(test).count("People disagree on 2 items, and no item with a detector’s") == 2
    abstained = labels("answer", "abstained", "abstained")
    lead = session_of(engine.service.store, items, abstained, owner=ME)
    assert "No item with a final label has a detector’s score." in seen(results(lead, "scores"))


def test_items_without_detectors_say_so(engine: Engine):
    items = [item("answer", n, hidden=Hidden()) for n in range(2)]
    told = labels("answer", "correct", "wrong")
    lead = session_of(engine.service.store, items, told, told, owner=ME)
    assert "No detector judged items of this task." in seen(results(lead))


def test_a_judges_score_is_corrected(engine: Engine):
    store = engine.service.store
    keys: list[Key] = [(f"q{n}", f"Answer {n}") for n in range(40)]
    evaluated(store, {"direct": [text for _, text in keys]}, owner=ME)
    judge(store, "e", dict.fromkeys(keys[15:20], "wrong"), owner=ME)
    right = {*range(12), 15}
    people: dict[Key, Grade] = {
        key: "correct" if place in right else "wrong" for place, key in enumerate(keys[:20])
    }
    items = [answer_item(key, probability=0.5) for key in people]
    test = results(labelled_session(store, items, people, owner=ME), "judges")
    # 35 of 40; with labels of 20 of them.
    assert "Judge 0.88 →" in seen(test)
    assert "The judge graded 40 answers, people labelled 20 of them." in seen(test)
    assert "Judge and people" in seen(test)


def test_the_whole_part_in_chinese(engine: Engine):
    test = results(detected(engine), *FOLDS, lang="zh")
    assert "一致性" in seen(test)
    assert "检测方法与标注的对比" in seen(test)
    assert "用 50% 的组拟合" in seen(test)


def test_what_takes_long_is_said_to_be_computed(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    lead = detected(engine, 6)
    results(lead)

    def slow(*_: object) -> None:
        raise NotYet(Job("never begun", lambda _: None, None))

    monkeypatch.setattr("app.screens.annotate.results.computed", slow)
    assert "being computed" in seen(results(lead))

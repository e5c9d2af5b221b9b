"""What is shown of labels: agreement with its thresholds, detectors, judges, figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from components.annotation import reliability_level
from components.annotation_detectors import (
    detectors_view,
    fitted_view,
    judges_view,
    labels_words,
    located_view,
    verdicts_view,
)
from components.annotation_figures import distribution_figure
from components.annotation_results import (
    agreement_view,
    confusion_table,
    decide_bar,
    labels_view,
    level_note,
    pairs_view,
    people_view,
    reveal_view,
    scale,
    silent_comments,
    spans_view,
)
from components.markup import tag
from components.messages import LANGUAGES, Catalogue
from components.theme import tokens
from pipelines.annotation.agreement import TaskAgreement, task_agreement
from pipelines.annotation.detectors import (
    FittedDetector,
    LabelledScores,
    detector_report,
    fit_detectors,
)
from pipelines.annotation.judges import (
    DetectorAgreement,
    LabelledJudge,
    LabelledRate,
    SessionJudges,
)
from pipelines.annotation.labels import GivenLabel
from pipelines.annotation.located import LocatedSpans
from pipelines.annotation.people import PersonAgreement
from pipelines.annotation.types import TASKS, VERDICTS, ItemBody, Task, label_adapter
from pipelines.evaluation.statistics.agreement import Coefficient
from pipelines.evaluation.statistics.judges import agreement
from pipelines.evaluation.statistics.powered import Spread
from pipelines.evaluation.statistics.probabilities import probability_errors
from pipelines.evaluation.statistics.resampling import Estimate, Sampling
from pipelines.store.annotations import utc_now
from pipelines.types import Language
from tests.components.html_tree import read
from tests.snapshots import Snapshot

FEW = Sampling(resamples=100, versions={"scipy": "1"})
TEXT = "Ada was born in Delft."
NAMES = {0: "Ann", 1: "Bo", 2: "Cy"}
GRADES = ("correct", "partly", "wrong", "abstained")


def agreed(task: Task, *people: Sequence[Any]) -> TaskAgreement:
    """What comes of the labels of several people; None is no label."""
    told: list[GivenLabel] = []
    for person, given in enumerate(people):
        for number, value in enumerate(given):
            if value is None:
                continue
            said: dict[str, Any] = (
                {"spans": [{"start": a, "end": b} for a, b in value]}
                if task == "span"
                else {"verdict": value}
            )
            label = label_adapter.validate_python({"task": task, **said})
            told.append(
                GivenLabel(number, person, label, utc_now(), 1, 2, None, False, False, "", 0)
            )
    place: dict[str, Any] = {"start": 0, "end": 3} if task in ("concept", "sentence") else {}
    if task == "comparison":
        place = {"other": "Ada."}
    body = ItemBody.model_validate({"task": task, "text": TEXT, **place})
    return task_agreement(task, told, {one.item: body for one in told}, FEW)


@pytest.mark.parametrize(
    ("alpha", "level"),
    [
        (-0.2, "unreliable"),
        (0.66, "unreliable"),
        (0.667, "tentative"),
        (0.79, "tentative"),
        (0.8, "reliable"),
        (1.0, "reliable"),
    ],
)
def test_the_levels_of_alpha(alpha: float, level: str):
    assert reliability_level(alpha) == level


ALPHAS = (
    Coefficient(value=0.91, low=0.85, high=0.96),
    Coefficient(value=0.85, low=0.7, high=0.9),
    Coefficient(value=0.71, low=0.5, high=0.8),
    # Not rounded to the threshold that it misses.
    Coefficient(value=0.6661, low=0.5, high=0.8),
    Coefficient(value=-0.1),
    Coefficient(value=None, why="all_equal"),
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_follows_from_an_alpha_is_a_sentence(language: Language, snapshot: Snapshot):
    for alpha in ALPHAS:
        snapshot(str(level_note(alpha, Catalogue(language))), state=str(alpha.value))


def test_agreement_is_worked_out_and_has_thresholds(t: Catalogue):
    first = ["correct", "correct", "wrong", "partly"] * 5
    second = ["correct", "wrong", "wrong", "partly"] * 5
    html = agreement_view(agreed("answer", first, second), t)
    shown = read(html).text()
    # 15 of 20 are equal; kappa (0.75 - 5/16) / (11/16).
    assert "0.75" in shown
    assert "0.64 [" in shown
    # The thresholds stand behind alpha alone.
    assert html.count("vs-scale-tentative") == 1
    assert html.count("vs-scale-point") == 4


PAIR = ["true", "false", "true", "false"] * 3
OPPOSITE = ["false", "true", "true", "false"] * 3
SPANS = ([[(0, 10)], [(0, 4)]], [[(2, 10)], [(0, 4)]])
PEOPLE = [
    PersonAgreement(
        person=2, labels=4, kappa=-0.5, without=Coefficient(value=0.9, low=0.8, high=1.0, n=4)
    ),
    PersonAgreement(
        person=0, labels=4, kappa=None, without=Coefficient(value=None, why="one_person")
    ),
]


@pytest.mark.parametrize("language", LANGUAGES)
def test_agreement_of_people(language: Language, snapshot: Snapshot):
    t = Catalogue(language)
    right, mixed = ["correct"] * 3, ["correct", "wrong"]
    snapshot(agreement_view(agreed("answer", mixed * 6, right * 4), t), state="two people")
    snapshot(agreement_view(agreed("answer", right, right), t), state="all labels are equal")
    snapshot(agreement_view(agreed("answer", right), t), state="one person")
    three = agreed("concept", PAIR, PAIR, OPPOSITE)
    snapshot(pairs_view(three, NAMES, t), state="pairs, the lowest first")
    snapshot(pairs_view(agreed("concept", ["true"]), NAMES, t), state="no pair")
    snapshot(people_view(PEOPLE, {**NAMES, 0: "Ann <b>"}, t), state="people")
    snapshot(labels_view(agreed("answer", mixed, mixed), t), state="a label that nobody gave")
    for state, given in (("spans of two", SPANS), ("spans of one", ([[(0, 3)]],))):
        found = agreed("span", *given).spans
        assert found is not None
        snapshot(spans_view(found, t), state=state)
    blind = agreed("answer", ["correct", "wrong", "wrong"], ["wrong", "wrong", "correct"])
    last = agreed("answer", ["correct", "wrong", "wrong"], ["correct", "wrong", "wrong"])
    snapshot(reveal_view(blind, last, 2, t), state="before and after models were shown")
    snapshot(decide_bar(3, 1, None, t), state="some left to decide")
    snapshot(decide_bar(0, 1, 7, t), state="decided")
    snapshot(silent_comments([("Ann <i>", "I <b>skip</b>.")], t), state="comments")


def test_the_scale_marks_what_it_shows():
    drawn = str(scale(Coefficient(value=0.5, low=0.25, high=0.75), levels=True))
    assert "left:25.00%;width:50.00%" in drawn
    assert "left:50.00%" in drawn
    assert "vs-scale-below" in str(scale(Coefficient(value=-0.3, low=-0.6, high=0.1)))
    assert scale(Coefficient(value=None)) is None


def test_a_matrix_is_darker_where_there_is_more_and_frames_what_is_equal():
    html = str(confusion_table("Counts", "corner", ["a", "b"], [[10, 0], [1, 5]]))
    assert "vs-tint-6 vs-confusion-same" in html
    assert html.count("vs-tint-0") == 1
    assert html.count("vs-confusion-same") == 2
    assert "vs-tint-1" in html
    assert "vs-tint-3 vs-confusion-same" in html


def scores(count: int = 80) -> LabelledScores:
    source = np.random.default_rng(1)
    doubts = source.random((2, count))
    labels = (doubts[0] > 0.6).astype(float)
    return LabelledScores(
        methods=("slm", "Mine <b>"),
        scores=doubts,
        labels=labels,
        groups=tuple(f"g{n}" for n in range(count)),
        names=("entailment", ""),
        turn=(1.0, None),
    )


def test_detectors_have_rankings_and_errors_with_intervals(t: Catalogue):
    found = scores()
    error = probability_errors(found.scores[0], found.labels, found.groups, FEW)
    assert error is not None
    html = detectors_view(found, detector_report(found, FEW), {"slm": error}, 3, t)
    shown = read(html).text()
    assert "80 items have a final label" in shown
    assert "People disagree on 3 items" in shown
    assert "1.000 [1.000, 1.000]" in shown
    assert "by its verdict: 0, 0.5 or 1" in shown
    assert "Mine <b>" in shown
    assert "<b>" not in html


WHOLE = Estimate(value=0.7, low=0.5, high=0.8, n=9, groups=9)
LOCATED = LocatedSpans(
    method="drad",
    texts=9,
    f1={"exact": WHOLE, "iou": WHOLE, "characters": WHOLE},
    precision=WHOLE,
    recall=Estimate(value=None, reason="no_items"),
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_detectors(language: Language, snapshot: Snapshot, monkeypatch: pytest.MonkeyPatch):
    t, found = Catalogue(language), scores()
    people = ["right", "right", "wrong", "wrong"]
    # Kappa by hand: 3 of 4 are equal, by chance 0.5: 0.50.
    grades = agreement(people, ["right", *["wrong"] * 3], ("right", "wrong"), undecided=2)
    one = DetectorAgreement(method="ever", task="concept", agreement=grades)
    snapshot(verdicts_view([one], t), state="verdicts")
    snapshot(verdicts_view([], t), state="no verdict")
    snapshot(located_view([LOCATED], t), state="pieces against marked spans")
    fitted = fit_detectors(found, seed=1)
    snapshot(
        fitted_view(fitted, found.mixed, {"slm": ("slm", "threshold")}, 0.5, t), state="fitted"
    )
    monkeypatch.delenv("VERISCOPE_STRICT_MESSAGES")
    t = Catalogue(language)
    for state, detector, mixed in (
        ("too few", FittedDetector(method="slm", score="", trained=3, tested=3), set()),
        (
            "several scores",
            FittedDetector(method="drad", score="a, b", trained=30, tested=30),
            {"drad"},
        ),
        ("no better than chance", fitted[0].model_copy(update={"threshold": None}), set()),
    ):
        snapshot(fitted_view([detector], mixed, {}, 0.5, t), state=state)


SPREAD = Spread(answers=1000, labels=50, rectifier=0.1, judge=0.1, share=0.7)
RATE = LabelledRate(
    system="direct",
    judge=0.84,
    answers=1000,
    labels=50,
    people=Estimate(value=0.7, low=0.6, high=0.8, n=50, groups=50),
    corrected=Estimate(value=0.71, low=0.68, high=0.74, n=1000, groups=1000),
    by="powered",
    spread=SPREAD,
)


def judged(*rates: LabelledRate, **more: Any) -> SessionJudges:
    said = {
        "evaluation": "e",
        "name": "Capitals",
        "judge": "j" * 20,
        "title": "qwen",
        "weak": False,
        "agreement": agreement(["correct", "wrong"], ["correct", "correct"], GRADES),
        "rates": rates,
        "items": 50,
    }
    return SessionJudges(judges=(LabelledJudge.model_validate(said | more),))


def test_a_judges_score_is_corrected_in_one_line(t: Catalogue):
    html = judges_view(judged(RATE), 0.04, t)
    shown = read(html).text()
    assert "Judge: qwen" in shown
    assert "Judge 0.84 → corrected 0.71 ± 0.03" in shown
    # 0.1 / ((0.04 / 1.96)^2 - 0.0001) = 315.9, of which there are 50; alone 0.2 / 0.0004165.
    assert "266 more labels for ± 0.04. Without the judge it would take 165 more." in shown
    assert "The judge graded 1,000 answers, people labelled 50 of them." in shown
    assert "By the labels alone: 0.70 [0.60, 0.80]." in shown
    assert "Judge and people" in shown
    assert "vs-scale-judge" in html


UNCORRECTED = {"not_drawn", "other_answers", "few_labels"}


@pytest.mark.parametrize("language", LANGUAGES)
def test_judges(language: Language, snapshot: Snapshot):
    t = Catalogue(language)
    snapshot(judges_view(judged(RATE), 0.04, t), state="corrected")
    for wanted in (0.2, 0.01):
        snapshot(tag("p", labels_words(RATE, wanted, t)), state=f"for ± {wanted}")
    for why in sorted(UNCORRECTED):
        rate = RATE.model_copy(update={"corrected": None, "why": why})
        snapshot(tag("p", labels_words(rate, 0.1, t)), state=why)
    found = judged(RATE, agreement=None, unresolved=2, weak=True)
    lacking = found.model_copy(update={"unjudged": ("Lakes",), "missing": ("gone",)})
    snapshot(judges_view(lacking, 0.1, t), state="what is missing")


def test_an_interval_that_ends_at_one_is_shown_whole(t: Catalogue):
    cut = Estimate(value=0.98, low=0.9, high=1.0, n=9, groups=9)
    shown = read(judges_view(judged(RATE.model_copy(update={"corrected": cut})), 0.1, t)).text()
    assert "corrected 0.98 [0.90, 1.00]" in shown


def test_scores_are_spread_by_what_people_found(t: Catalogue):
    doubts = np.array([0.1, 0.1, 0.9, np.nan])
    labels = np.array([0.0, 0.0, 1.0, 1.0])
    figure: Any = distribution_figure(doubts, labels, t, "dark", cut=0.5, whole=True)
    drawn = figure.to_plotly_json()
    right, wrong = drawn["data"]
    assert (sum(right["y"]), sum(wrong["y"])) == (1, 1)
    assert right["y"][2] == 1
    assert wrong["name"] == "Error"
    # Hatched as well as of another colour.
    assert wrong["marker"]["pattern"]["shape"] == "/"
    assert wrong["marker"]["color"] == tokens("dark")["contradicted"]
    assert drawn["layout"]["shapes"][0]["x0"] == 0.5
    wide: Any = distribution_figure(np.array([3.0, 3.0]), np.array([0.0, 1.0]), t)
    assert wide.to_plotly_json()["layout"]["xaxis"]["range"] == [3.0, 4.0]


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("task", TASKS)
def test_every_task_has_its_words(task: Task, language: Language):
    t = Catalogue(language, strict=True)
    verdicts: list[Any] = list(VERDICTS[task] or ([(0, 3)], []))
    found = agreed(task, verdicts, verdicts[::-1], verdicts)
    assert agreement_view(found, t)
    assert labels_view(found, t)
    assert pairs_view(found, NAMES, t)
    assert people_view([], NAMES, t)
    assert judges_view(judged(RATE), 0.03, t)

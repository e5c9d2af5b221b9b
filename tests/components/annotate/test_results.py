"""What is shown of labels: agreement with its thresholds, detectors, judges, figures."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from components.annotate.detectors import (
    detectors_view,
    fitted_view,
    judges_view,
    located_view,
    verdicts_view,
)
from components.annotate.results import (
    agreement_view,
    decide_bar,
    distribution_figure,
    labels_view,
    level_note,
    pairs_view,
    people_view,
    reveal_view,
    scale,
    silent_comments,
    spans_view,
)
from components.annotate.sessions import reliability_level
from components.base.theme import tokens
from components.base.words import LANGUAGES, Catalogue
from components.evaluate.table import confusion_table
from pipelines.annotation.agreement import PersonAgreement, TaskAgreement, task_agreement
from pipelines.annotation.detectors import (
    FittedDetector,
    LabelledScores,
    detector_report,
    fit_detectors,
)
from pipelines.annotation.items import LocatedSpans
from pipelines.annotation.judges import (
    DetectorAgreement,
    LabelledJudge,
    LabelledRate,
    SessionJudges,
)
from pipelines.annotation.labelling import GivenLabel
from pipelines.annotation.types import TASKS, VERDICTS, ItemBody, Task, label_adapter
from pipelines.base import Language
from pipelines.evaluation.statistics.agreement import Coefficient
from pipelines.evaluation.statistics.detection import probability_errors
from pipelines.evaluation.statistics.estimates import Estimate, Sampling
from pipelines.evaluation.statistics.judges import agreement
from pipelines.store.annotations import utc_now
from tests.components.html_tree import read

FEW = Sampling(resamples=100)
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


@pytest.mark.parametrize(
    ("alpha", "said"),
    [
        (Coefficient(value=0.91, low=0.85, high=0.96), "Alpha is 0.91 > 0.80: the labels can be"),
        (Coefficient(value=0.85, low=0.7, high=0.9), "The interval begins at 0.70, below 0.8"),
        (Coefficient(value=0.71, low=0.5, high=0.8), "The interval begins at 0.50, below 0.667"),
        (Coefficient(value=0.6661, low=0.5, high=0.8), "Alpha is 0.666 < 0.667"),
        (Coefficient(value=-0.1), "Alpha is -0.10 < 0.67"),
        (Coefficient(value=None, why="all_equal"), "All labels are equal"),
    ],
)
def test_what_follows_from_an_alpha_is_a_sentence(alpha: Coefficient, said: str, t: Catalogue):
    assert said in read(str(level_note(alpha, t))).text()


def test_agreement_has_values_intervals_items_and_thresholds(t: Catalogue):
    first = ["correct", "correct", "wrong", "partly"] * 5
    second = ["correct", "wrong", "wrong", "partly"] * 5
    html = agreement_view(agreed("answer", first, second), t)
    shown = read(html).text()
    assert "2 people, 20 labelled items; 20 of them have two labels or more." in shown
    # 15 of 20 are equal; kappa (0.75 - 5/16) / (11/16).
    assert "0.75" in shown
    assert "0.64 [" in shown
    for name in ("Krippendorff’s alpha", "Raw agreement", "Cohen’s kappa", "Fleiss’ kappa"):
        assert name in shown
    # The thresholds stand behind alpha alone.
    assert html.count("vs-scale-tentative") == 1
    assert html.count("vs-scale-point") == 4


def test_undefined_coefficients_say_why(t: Catalogue):
    shown = read(agreement_view(agreed("answer", ["correct"] * 3, ["correct"] * 3), t)).text()
    assert "All labels are equal: chance alone would agree as well" in shown
    alone = read(agreement_view(agreed("answer", ["correct"] * 3), t)).text()
    assert "Only one person has labelled." in alone
    assert "Cohen’s kappa" not in alone


def test_the_scale_marks_what_it_shows():
    drawn = str(scale(Coefficient(value=0.5, low=0.25, high=0.75), levels=True))
    assert "left:25.00%;width:50.00%" in drawn
    assert "left:50.00%" in drawn
    assert "vs-scale-below" in str(scale(Coefficient(value=-0.3, low=-0.6, high=0.1)))
    assert scale(Coefficient(value=None)) is None


def test_pairs_are_listed_with_their_matrices_the_lowest_first(t: Catalogue):
    first = ["true", "false", "true", "false"] * 3
    found = agreed("concept", first, first, ["false", "true", "true", "false"] * 3)
    shown = read(pairs_view(found, NAMES, t)).text()
    assert shown.index("Ann and Cy") < shown.index("Ann and Bo")
    assert "Bo ↓ Cy →" in shown
    assert "Not enough information" in shown
    assert "No two people" in pairs_view(agreed("concept", ["true"]), NAMES, t)


def test_each_person_stands_beside_the_others_without_them(t: Catalogue):
    found = [
        PersonAgreement(
            person=2, labels=4, kappa=-0.5, without=Coefficient(value=0.9, low=0.8, high=1.0, n=4)
        ),
        PersonAgreement(
            person=0, labels=4, kappa=None, without=Coefficient(value=None, why="one_person")
        ),
    ]
    html = people_view(found, {**NAMES, 0: "Ann <b>"}, t)
    shown = read(html).text()
    assert shown.index("Cy") < shown.index("Ann <b>")
    assert "−0.50" in shown
    assert "0.90 [0.80, 1.00]" in shown
    assert "Only one person has labelled." in shown
    assert "<b>" not in html


def test_a_matrix_is_darker_where_there_is_more_and_frames_what_is_equal():
    html = str(confusion_table("Counts", "corner", ["a", "b"], [[10, 0], [1, 5]]))
    assert "vs-tint-6 vs-confusion-same" in html
    assert html.count("vs-tint-0") == 1
    assert html.count("vs-confusion-same") == 2
    assert "vs-tint-1" in html
    assert "vs-tint-3 vs-confusion-same" in html


def test_a_label_that_nobody_gave_has_no_alpha(t: Catalogue):
    shown = read(
        labels_view(agreed("answer", ["correct", "wrong"], ["correct", "wrong"]), t)
    ).text()
    assert "Nobody, or everybody, gave this label" in shown


def test_spans_stand_side_by_side(t: Catalogue):
    found = agreed("span", [[(0, 10)], [(0, 4)]], [[(2, 10)], [(0, 4)]])
    assert found.spans is not None
    shown = read(spans_view(found.spans, t)).text()
    assert "F1, exactly the same span" in shown
    assert "0.50" in shown
    assert "1.00" in shown
    alone = agreed("span", [[(0, 3)]])
    assert alone.spans is not None
    assert "No item was labelled by two people." in read(spans_view(alone.spans, t)).text()


def test_before_and_after_models_were_shown(t: Catalogue):
    blind = agreed("answer", ["correct", "wrong", "wrong"], ["wrong", "wrong", "correct"])
    last = agreed("answer", ["correct", "wrong", "wrong"], ["correct", "wrong", "wrong"])
    shown = read(reveal_view(blind, last, 2, t)).text()
    assert "2 labels were changed after models’ verdicts had been shown." in shown
    assert shown.index("Blind") < shown.index("Last")


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


def test_verdicts_of_detectors_have_kappa_and_a_matrix(t: Catalogue):
    people = ["right", "right", "wrong", "wrong"]
    found = agreement(people, ["right", "wrong", "wrong", "wrong"], ("right", "wrong"), undecided=2)
    one = DetectorAgreement(method="ever", task="concept", agreement=found)
    shown = read(verdicts_view([one], t)).text()
    # 3 of 4, by chance 0.5.
    assert "kappa 0.50 [" in shown
    assert "2 undecided" in shown
    assert "No error" in shown
    assert "No detector gave a verdict" in verdicts_view([], t)


def test_doubted_pieces_stand_against_marked_spans(t: Catalogue):
    whole = Estimate(value=0.7, low=0.5, high=0.8, n=9, groups=9)
    found = LocatedSpans(
        method="drad",
        texts=9,
        f1={"exact": whole, "iou": whole, "characters": whole},
        precision=whole,
        recall=Estimate(value=None, reason="no_items"),
    )
    shown = read(located_view([found], t)).text()
    assert shown.count("0.70 [0.50, 0.80]") == 4
    assert "No item has a value." in shown


def test_fitted_thresholds_are_told_with_what_they_reach(t: Catalogue):
    found = scores()
    fitted = fit_detectors(found, seed=1)
    html = fitted_view(fitted, found.mixed, {"slm": ("slm", "threshold")}, 0.5, t)
    shown = read(html).text()
    assert "Fitted on 50 % of the groups" in shown
    assert "Setting “Threshold”" in shown
    assert "as it is" in shown
    assert "isotonic" in shown
    assert "fitted on 40 items, tested on 40" in shown


@pytest.mark.parametrize(
    ("one", "mixed", "said"),
    [
        (FittedDetector(method="slm", score="", trained=3, tested=3), set(), "Too few items"),
        (
            FittedDetector(method="drad", score="a, b", trained=30, tested=30),
            {"drad"},
            "come from several scores (a",
        ),
        (
            fit_detectors(scores())[0].model_copy(update={"threshold": None}),
            set(),
            "No threshold is better than chance.",
        ),
    ],
)
def test_what_was_not_fitted_says_why(
    one: FittedDetector, mixed: set[str], said: str, monkeypatch: Any
):
    monkeypatch.delenv("VERISCOPE_STRICT_MESSAGES", raising=False)
    assert said in read(fitted_view([one], mixed, {}, 0.5, Catalogue("en"))).text()


RATE = LabelledRate(
    system="direct",
    judge=0.84,
    answers=1000,
    labels=50,
    people=Estimate(value=0.7, low=0.6, high=0.8, n=50, groups=50),
    corrected=Estimate(value=0.71, low=0.68, high=0.74, n=1000, groups=1000),
    by="powered",
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
    html = judges_view(judged(RATE), t)
    shown = read(html).text()
    assert "Judge: qwen" in shown
    assert "Judge 0.84 → corrected 0.71 ± 0.03" in shown
    assert "The judge graded 1,000 answers, people labelled 50 of them." in shown
    assert "By the labels alone: 0.70 [0.60, 0.80]." in shown
    assert "Judge and people" in shown
    assert "vs-scale-judge" in html


@pytest.mark.parametrize(
    ("why", "said"),
    [
        ("not_drawn", "chosen and not drawn at random"),
        ("other_answers", "drawn from the answers of other systems"),
        ("few_labels", "No correction yet"),
    ],
)
def test_why_a_score_is_not_corrected_is_said(why: str, said: str, t: Catalogue):
    rate = RATE.model_copy(update={"corrected": None, "why": why})
    assert said in read(judges_view(judged(rate), t)).text()


def test_an_interval_that_ends_at_one_is_shown_whole(t: Catalogue):
    cut = Estimate(value=0.98, low=0.9, high=1.0, n=9, groups=9)
    shown = read(judges_view(judged(RATE.model_copy(update={"corrected": cut})), t)).text()
    assert "corrected 0.98 [0.90, 1.00]" in shown


def test_what_is_missing_of_judges_is_told(t: Catalogue):
    found = judged(RATE, agreement=None, unresolved=2, weak=True).model_copy(
        update={"unjudged": ("Lakes",), "missing": ("gone",)}
    )
    shown = read(judges_view(found, t)).text()
    assert "People disagree on 2 answers. Decide them first" in shown
    assert "measured to judge no better than chance" in shown
    assert "No labelled answer was graded by this judge." in shown
    assert "No model has judged the answers of “Lakes”." in shown
    assert "1 evaluation of this session was deleted." in shown


def test_the_bar_of_decisions_and_comments_of_others(t: Catalogue):
    assert "3 items left to decide · 1 decided" in read(decide_bar(3, 1, None, t)).text()
    assert "The decision on item 8 is saved." in read(decide_bar(0, 1, 7, t)).text()
    html = silent_comments([("Ann <i>", "I <b>skip</b>.")], t)
    assert "I <b>skip</b>." in read(html).text()
    assert "<b>" not in html


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
    assert judges_view(judged(RATE), t)

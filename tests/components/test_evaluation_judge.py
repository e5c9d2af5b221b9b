"""What is shown of a judge of answers: progress, why it ended, agreement, corrected rates."""

from __future__ import annotations

import pytest

from components.evaluation_judge import calibration_view, judging_view
from components.messages import LANGUAGES, Catalogue
from pipelines.errors import ErrorInfo
from pipelines.evaluation.judging.calibration import JudgeCalibration
from pipelines.evaluation.judging.runner import JudgingProgress, Reason
from pipelines.evaluation.outcomes import Cost
from pipelines.evaluation.statistics.judges import CorrectedRate, agreement
from pipelines.evaluation.statistics.resampling import Estimate
from pipelines.types import Language
from tests.components.html_tree import read

GRADES = ("correct", "partly", "wrong", "abstained")
PEOPLE = ["correct", "correct", "wrong", "wrong"]
JUDGE = ["correct", "wrong", "wrong", "wrong"]


def calibration(**rates: CorrectedRate) -> JudgeCalibration:
    return JudgeCalibration(
        source="labels.csv",
        agreement=agreement(PEOPLE, JUDGE, GRADES, undecided=1),
        rates=rates,
    )


@pytest.mark.parametrize(
    ("reason", "failed", "said"),
    [
        ("done", 0, "Every answer is judged."),
        ("budget", 0, "The limit of calls is reached."),
        ("failing", 5, "too many calls failed one after the other. The last error: Away."),
        (None, 2, "Some calls failed."),
        (None, 0, "Judging was stopped."),
    ],
)
def test_why_it_ended_is_told_with_what_to_do(reason: Reason | None, failed: int, said: str):
    progress = JudgingProgress(
        8,
        3,
        1,
        failed,
        Cost(calls=4),
        ErrorInfo(code="timeout", message="Away.", remedy=""),
        reason,
    )
    html = judging_view(progress, Catalogue("en"), going_on=False)
    shown = read(html).text()
    assert "3 of 8 answers are judged, 1 of them without a verdict" in shown
    assert "4 calls" in shown
    assert said in shown
    assert 'value="0.3750"' in html


def test_what_goes_on_has_no_end_yet():
    progress = JudgingProgress(8, 3)
    assert "stopped" not in judging_view(progress, Catalogue("en"), going_on=True)
    assert "being loaded" in judging_view(None, Catalogue("en"), going_on=True)


def test_agreement_is_told_with_its_confusion_matrix():
    # 3 of 4 agree; by chance (2 * 1 + 2 * 3) / 16 = 0.5, so that kappa is 0.25 / 0.5 = 0.5.
    found = calibration()
    shown = read(calibration_view("qwen", found, Catalogue("en"))).text()
    assert "qwen gives the same grade as labels.csv for 0.75 [0.30, 0.95] of 4" in shown
    assert "kappa is 0.50 [" in shown
    assert "1 labelled answers have no verdict" in shown
    assert "Correct1010" in shown
    assert "Share of right answers" not in shown


@pytest.mark.parametrize("language", LANGUAGES)
def test_corrected_rates_stand_beside_the_judges(language: Language):
    people = Estimate(value=0.5, low=0.15, high=0.85, n=4, groups=4)
    rate = CorrectedRate(judge=0.25, n=40, labels=4, people=people, why="Too few.")
    shown = read(calibration_view("q", calibration(direct=rate), Catalogue(language))).text()
    assert "direct0.25" in shown
    assert "0.50 [0.15, 0.85]" in shown
    assert "direct: Too few." in shown


def test_hostile_names_stay_text():
    name = "<img src=x onerror=alert(1)>"
    rate = CorrectedRate(judge=0.5, n=2, labels=0)
    html = calibration_view(name, calibration(**{name: rate}), Catalogue("en"))
    assert "<img" not in html

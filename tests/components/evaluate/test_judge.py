"""What is shown of a judge of answers: progress, why it ended, agreement, corrected rates."""

from __future__ import annotations

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.evaluate.progress import calibration_view, judging_view
from pipelines.base import Language
from pipelines.errors import ErrorInfo
from pipelines.evaluation.judging.calibration import JudgeCalibration
from pipelines.evaluation.judging.runner import JudgingProgress, Reason
from pipelines.evaluation.outcomes import Cost
from pipelines.evaluation.statistics.estimates import Estimate
from pipelines.evaluation.statistics.judges import CorrectedRate, agreement
from tests.components.html_tree import read
from tests.snapshots import Snapshot

GRADES = ("correct", "partly", "wrong", "abstained")
PEOPLE = ["correct", "correct", "wrong", "wrong"]
JUDGE = ["correct", "wrong", "wrong", "wrong"]


def calibration(**rates: CorrectedRate) -> JudgeCalibration:
    return JudgeCalibration(
        source="labels.csv",
        agreement=agreement(PEOPLE, JUDGE, GRADES, undecided=1),
        rates=rates,
    )


def judged(reason: Reason | None = None, failed: int = 0) -> JudgingProgress:
    error = ErrorInfo(code="timeout", message="Away.", remedy="")
    return JudgingProgress(8, 3, 1, failed, Cost(calls=4), error, reason)


PEOPLES = Estimate(value=0.5, low=0.15, high=0.85, n=4, groups=4)
RATE = CorrectedRate(judge=0.25, n=40, labels=4, people=PEOPLES, why="Too few.")


@pytest.mark.parametrize("language", LANGUAGES)
def test_judges(language: Language, snapshot: Snapshot):
    """How far one is, why it ended and what to do, agreement, rates beside people's."""
    t = Catalogue(language)
    ends: tuple[tuple[Reason | None, int], ...] = (
        *(("done", 0), ("budget", 0), ("failing", 5)),
        *((None, 2), (None, 0)),
    )
    for reason, failed in ends:
        view = judging_view(judged(reason, failed), t, going_on=False)
        snapshot(view, state=f"ended: {reason}, {failed} failed")
    snapshot(judging_view(JudgingProgress(8, 3), t, going_on=True), state="going on")
    snapshot(judging_view(None, t, going_on=True), state="being loaded")
    snapshot(calibration_view("qwen", calibration(), t), state="agreement")
    snapshot(calibration_view("qwen", calibration(direct=RATE), t), state="corrected rates")


def test_agreement_is_told_with_its_confusion_matrix():
    # 3 of 4 agree; by chance (2 * 1 + 2 * 3) / 16 = 0.5, so that kappa is 0.25 / 0.5 = 0.5.
    found = calibration()
    shown = read(calibration_view("qwen", found, Catalogue("en"))).text()
    assert "qwen gives the same grade as labels.csv for 0.75 [0.30, 0.95] of 4" in shown
    assert "kappa is 0.50 [" in shown
    assert "1 labelled answers have no verdict" in shown
    assert "Correct1010" in shown
    assert "Share of right answers" not in shown


def test_hostile_names_stay_text():
    name = "<img src=x onerror=alert(1)>"
    rate = CorrectedRate(judge=0.5, n=2, labels=0)
    html = calibration_view(name, calibration(**{name: rate}), Catalogue("en"))
    assert "<img" not in html

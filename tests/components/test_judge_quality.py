"""What is told of how often a judge is right: the table, the figure, and nothing where unknown."""

from __future__ import annotations

from typing import Any

import pytest

from components import judge_quality as shown
from components.judge_quality import judge_report, reliability_figure
from components.messages import LANGUAGES, Catalogue
from pipelines.calibration import calibration
from pipelines.run.spec import BUILT_IN
from tests.components.html_tree import read
from tests.components.test_figures import plain


def suite(**more: Any) -> dict[str, Any]:
    bins = [[0.15, 0.1, 30], [0.85, 0.7, 10]]
    return {"examples": 40, "auroc": 0.753, "ece": 0.041, "reliability": bins, **more}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"biographies": suite(), "stances": suite(macro_f1=0.528)}
    monkeypatch.setattr(shown, "calibration", lambda name: {"quality": {"reader": found}})


def test_every_suite_is_a_row(measured: None, t: Catalogue):
    page = read(judge_report("reader", t))
    rows = [[cell.text() for cell in row.all("td")] for row in page.one("tbody").all("tr")]
    assert [row[1:] for row in rows] == [
        ["40", "0.75", "0.041", "–"],
        ["40", "0.75", "0.041", "0.53"],
    ]
    assert rows[0][0].startswith("Sentences of biographies")
    assert "0.5 is chance" in page.text()


def test_what_was_not_measured_is_not_told(measured: None, t: Catalogue):
    assert judge_report("another", t) == ""
    assert shown.judge_quality("another", t) is None


def test_reliability_is_drawn_for_every_suite_there_is(measured: None, t: Catalogue):
    diagonal, *suites = plain(reliability_figure("reader", t))["data"]
    assert (diagonal["x"], diagonal["y"]) == ([0, 1], [0, 1])
    biographies, _, answers = suites
    assert (biographies["x"], biographies["y"]) == ([0.15, 0.85], [0.1, 0.7])
    # 7 + 15 * sqrt(30 / 40): the larger, the more statements.
    assert biographies["marker"]["size"] == pytest.approx([19.99, 14.5], abs=0.01)
    assert len({one["marker"]["symbol"] for one in suites}) == 3
    assert answers["x"] == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_every_suite_that_ships_has_a_name(language: Any):
    t = Catalogue(language)
    quality = calibration("judges")["quality"]
    judges = {spec.name for spec in BUILT_IN if spec.kind == "judge"}
    assert judges <= set(quality)
    for name in quality:
        assert read(judge_report(name, t)).one("tbody").all("tr")
        assert shown.judge_quality(name, t)

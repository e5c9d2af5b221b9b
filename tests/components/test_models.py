"""What is told about a model, and about what a check of it found."""

from __future__ import annotations

from typing import Any

import pytest

from components import models
from components.base.words import LANGUAGES, Catalogue
from components.models import judge_report, model_facts, probe_table, reliability_figure
from pipelines.base import calibration
from pipelines.models.base import Capabilities
from pipelines.models.probe import Finding, ProbeReport
from pipelines.models.providers import BUILT_IN
from pipelines.run.events import ModelSpec
from tests.components.html_tree import read
from tests.components.run.test_figures import plain
from tests.snapshots import Snapshot

FINDINGS = (
    Finding(key="reachable", ok=True, value=0.42),
    Finding(key="english", ok=True, value="Paris."),
    Finding(key="streaming", ok=False, value=0.0),
    Finding(key="logprobs", ok=True, value=20),
    Finding(key="chinese", ok=False, value="北 <i>京</i>", note="Asked it did not answer."),
    Finding(key="format", ok=True, value="YES"),
    Finding(key="schema", ok=False, note="refused"),
    Finding(key="prefill", ok=True, value="5, 6 | is"),
    # Over the whole vocabulary, and none at all.
    Finding(key="logprobs", ok=True, value=None),
    Finding(key="logprobs", ok=False, value=0, note="nothing sent"),
)


@pytest.mark.parametrize("language", LANGUAGES)
def test_models(language: Any, snapshot: Snapshot):
    """What a model is and can do, what is not known of it, and what a check of it found."""
    t = Catalogue(language)
    spec = ModelSpec(kind="openai", name="<b>x</b>", model="m", base_url="http://host/v1")
    can = Capabilities(languages=frozenset({"zh", "en"}), logprobs=True)
    unknown = spec.model_copy(update={"unknown": ("judging", "prefill"), "base_url": None})
    weak = spec.model_copy(update={"judges": False})
    only = can.model_copy(update={"writes": False, "judges": False})
    snapshot(model_facts(spec, can, t), state="a model")
    snapshot(model_facts(unknown, can, t), state="not all is known")
    snapshot(model_facts(weak, can.overridden(judges=False), t), state="a weak judge")
    snapshot(model_facts(weak, only, t), state="neither judges nor writes")
    report = ProbeReport(capabilities=Capabilities(), findings=FINDINGS)
    page = read(probe_table(report, t))
    snapshot(page, state="a check of a model")
    assert page.all("i") == []


def test_a_judge_says_how_often_it_is_right(t: Catalogue, monkeypatch: pytest.MonkeyPatch):
    sentences = {"examples": 200, "supported": 0.36, "right": 144, "auroc": 0.634, "ece": 0.04}
    measured = {"biographies": sentences, "answers_same_kind": {"auroc": 0.55}}
    monkeypatch.setattr(models, "calibration", lambda name: {"quality": {"Word overlap": measured}})
    can = Capabilities(languages=frozenset({"en", "zh"}), writes=False)
    overlap = next(spec for spec in BUILT_IN if spec.model == "overlap")
    page = read(model_facts(overlap, can, t))
    assert "judges only, does not write" in page.text()
    assert "It was calibrated on English only." in page.text()
    # How well it judges stands folded, below what can be done with it.
    assert "ROC" not in page.text()
    quality = models.judge_quality("Word overlap", t)
    assert quality is not None
    said = read(quality).text()
    # Always saying "not supported" is right about 64 of 100.
    assert "144 of 200 sentences were judged correctly" in said
    assert "(always giving the more frequent verdict: 128)" in said
    assert "0.63 for these sentences, 0.55 for right answers" in said


def suite(**more: Any) -> dict[str, Any]:
    bins = [[0.15, 0.1, 30], [0.85, 0.7, 10]]
    return {"examples": 40, "auroc": 0.753, "ece": 0.041, "reliability": bins, **more}


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> None:
    found = {"biographies": suite(), "stances": suite(macro_f1=0.528)}
    monkeypatch.setattr(models, "calibration", lambda name: {"quality": {"reader": found}})


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
    assert models.judge_quality("another", t) is None


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
        assert models.judge_quality(name, t)

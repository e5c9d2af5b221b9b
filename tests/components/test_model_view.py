"""What is told about a model, and about what a check of it found."""

from __future__ import annotations

import pytest

from components import judge_quality
from components.messages import Catalogue
from components.model_view import model_facts, probe_table
from pipelines.models.base import Capabilities
from pipelines.models.probe import Finding, ProbeReport
from pipelines.run.spec import BUILT_IN, ModelSpec
from tests.components.html_tree import read


def test_a_model_in_a_few_lines(t: Catalogue):
    spec = ModelSpec(kind="openai", name="<b>x</b>", model="m", base_url="http://host/v1")
    can = Capabilities(languages=frozenset({"zh", "en"}), logprobs=True)
    page = read(model_facts(spec, can, t))
    assert page.one(".vs-strong").text() == "<b>x</b>"
    assert "m · http://host/v1" in page.text()
    assert "Languages: English, Chinese · token probabilities" in page.text()


def test_a_judge_says_how_often_it_is_right(t: Catalogue, monkeypatch: pytest.MonkeyPatch):
    sentences = {"examples": 200, "supported": 0.36, "right": 144, "auroc": 0.634, "ece": 0.04}
    measured = {"biographies": sentences, "answers_same_kind": {"auroc": 0.55}}
    monkeypatch.setattr(
        judge_quality, "calibration", lambda name: {"quality": {"Word overlap": measured}}
    )
    can = Capabilities(languages=frozenset({"en", "zh"}), writes=False)
    overlap = next(spec for spec in BUILT_IN if spec.model == "overlap")
    page = read(model_facts(overlap, can, t))
    assert "judges and does not write" in page.text()
    # Always saying "not supported" is right about 64 of 100.
    assert "right about 144 of 200 sentences" in page.text()
    assert "(always saying the more frequent: 128)" in page.text()
    assert "0.63 for these, 0.55 for right answers" in page.text()
    assert "It was fitted on English only." in page.text()
    other = read(model_facts(ModelSpec(kind="judge", name="Unmeasured"), can, t))
    assert "ROC" not in other.text()
    # A model of one's own that is called the same is another.
    same = read(model_facts(ModelSpec(kind="openai", name="Word overlap"), can, t))
    assert "ROC" not in same.text()


def test_every_finding_is_a_sentence(t: Catalogue):
    findings = (
        Finding(key="reachable", ok=True, value=0.42),
        Finding(key="english", ok=True, value="Paris."),
        Finding(key="streaming", ok=False, value=0.0),
        Finding(key="logprobs", ok=True, value=20),
        Finding(key="chinese", ok=False, value="北 <i>京</i>", note="Asked it did not answer."),
        Finding(key="format", ok=True, value="YES"),
        Finding(key="schema", ok=False, note="refused"),
        Finding(key="prefill", ok=True, value="5, 6 | is"),
    )
    page = read(probe_table(ProbeReport(capabilities=Capabilities(), findings=findings), t))
    rows = [row.text("vs-sign") for row in page.one("tbody").all("tr")]
    assert rows[0] == "ConnectionYesA short reply was complete after 0.42 s."
    assert rows[1].endswith("Reply: Paris.")
    assert "Text appears only when it is complete." in rows[2]
    assert "With 20 alternatives a token" in rows[3]
    assert "Reply: 北 <i>京</i>" in rows[4]
    assert rows[6].endswith("refused")
    assert page.all("i") == []


def test_the_whole_vocabulary_and_none_of_it(t: Catalogue):
    whole = Finding(key="logprobs", ok=True, value=None)
    none = Finding(key="logprobs", ok=False, value=0, note="nothing sent")
    words = [
        read(probe_table(ProbeReport(capabilities=Capabilities(), findings=(one,)), t)).text()
        for one in (whole, none)
    ]
    assert "Over the whole vocabulary" in words[0]
    assert "DRAD compares samples" in words[1]
    assert "nothing sent" in words[1]

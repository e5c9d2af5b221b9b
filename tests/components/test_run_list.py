"""A line of the list of runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from components.messages import Catalogue
from components.run_list import run_line
from pipelines.store import RunSummary
from tests.components.html_tree import Node, read


def line(t: Catalogue, **more: Any) -> Node:
    fields: dict[str, Any] = {
        "id": "r1",
        "question": "Who <b>?",
        "language": "en",
        "status": "finished",
        "created": datetime(2026, 1, 1, tzinfo=UTC),
        "methods": ("drad", "rowen"),
        "model_calls": 3,
        **more,
    }
    return read(run_line(RunSummary(**fields), "2026-01-01 00:00", t))


def test_a_run_without_labels_is_its_question(t: Catalogue):
    found = line(t)
    assert found.one(".workbench-run-question").text() == "Who <b>?"
    (facts,) = found.all(".workbench-run-facts")
    for word in ("DRAD, Rowen", "2026-01-01 00:00", "3 calls", t("status.done")):
        assert word in facts.text()
    assert not found.all(".vs-chips") + found.all(".workbench-run-note")


def test_what_was_written_on_it_is_shown(t: Catalogue):
    found = line(t, name="First", note="n" * 300, tags=("paper", "<i>"))
    assert found.one(".workbench-run-question").text() == "First"
    assert found.all(".workbench-run-facts")[0].text() == "Who <b>?"
    assert [chip.text() for chip in found.all(".vs-chip")] == ["paper", "<i>"]
    assert found.one(".workbench-run-note").text() == "n" * 200 + "…"


def test_verdicts_are_by_method_in_the_order_of_asking(t: Catalogue):
    found = line(t, findings=(("rowen", "contradicted"), ("drad", "no verdict of ours")))
    said = [one.text() for one in found.all(".workbench-run-verdict")]
    assert said == ["DRAD no verdict of ours", f"Rowen ✗{t('verdict.contradicted')}"]


def test_one_that_was_interrupted_says_so(t: Catalogue):
    found = line(t, status="cancelled", reason="interrupted")
    assert t("runs.interrupted") in found.text()

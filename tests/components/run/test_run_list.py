"""A line of the list of runs."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.run.compare import run_line
from pipelines.base import Language
from pipelines.store import RunSummary
from tests.components.html_tree import Node, read
from tests.snapshots import Snapshot


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


@pytest.mark.parametrize("language", LANGUAGES)
def test_lines(language: Language, snapshot: Snapshot):
    t = Catalogue(language)
    snapshot(line(t), state="without labels")
    labelled = line(t, name="First", note="n" * 300, tags=("paper", "<i>"))
    snapshot(labelled, state="with a name, a long note and tags")
    snapshot(line(t, status="cancelled", reason="interrupted"), state="interrupted")


def test_verdicts_are_by_method_in_the_order_of_asking(t: Catalogue):
    found = line(t, findings=(("rowen", "contradicted"), ("drad", "no verdict of ours")))
    said = [one.text() for one in found.all(".workbench-run-verdict")]
    assert said == ["DRAD no verdict of ours", f"Rowen ✗{t('verdict.contradicted')}"]


@pytest.mark.parametrize(
    ("originals", "answers", "shown"),
    [
        ({}, {}, []),
        ({"Lyon.": 2}, {"Lyon.": 2}, ["Lyon."]),
        # What most began with, and the other text that most ended with.
        (
            {"Lyon.": 2, "Nice.": 1},
            {"Lyon.": 3, "Paris.": 2, "Nice.": 1},
            ["Lyon. → corrected to:Paris."],
        ),
    ],
)
def test_the_answer_and_what_becomes_of_it(
    originals: dict[str, int], answers: dict[str, int], shown: list[str]
):
    found = line(Catalogue("en"), originals=originals, answers=answers)
    assert [one.text() for one in found.all(".workbench-run-answer")] == shown

"""The page that shows what changed between two runs."""

from __future__ import annotations

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.run.compare import changes_view
from pipelines.base import Language
from pipelines.run.events import EvidenceSpec
from pipelines.run.view import RunView
from tests.components.html_tree import read
from tests.scripted.recorded import CORRECTED, ORIGINAL, Record, full_method, passage, score
from tests.snapshots import Snapshot


def run(name: str, value: float = 0.3, answer: str = CORRECTED, **more: object) -> RunView:
    record = Record("drad", run=name, **more)  # pyright: ignore[reportArgumentType]
    record.begin("drad").draft("drad")
    record.search("drad", passage("both"), passage(name))
    verdict = "doubtful" if value < 0.6 else "confident"
    record.judge("drad", verdict, scores=(score(value),))
    record.end("drad", answer)
    return record.finish()


def one_more() -> RunView:
    record = Record("drad", "rag", run="b")
    for name in ("drad", "rag"):
        full_method(record, name, "doubtful")
    return record.finish()


def unanswered() -> RunView:
    record = Record("drad", run="b")
    record.begin("drad").end("drad")
    return record.finish()


def other_conditions() -> RunView:
    evidence = EvidenceSpec(source="wikipedia")
    return run("b", 0.4, question="Where did Ada die?", seed=7, evidence=evidence)


@pytest.mark.parametrize("language", LANGUAGES)
def test_changes(language: Language, snapshot: Snapshot):
    """Verdict, scores, answer and evidence side by side, conditions in a table."""
    for state, later in {
        "nothing": run("a"),
        "another score and answer": run("b", 0.75, ORIGINAL),
        "other conditions": other_conditions(),
        "a method of one run alone": one_more(),
        "no answer": unanswered(),
    }.items():
        snapshot(changes_view(run("a"), later, Catalogue(language)), state=state)


def test_a_change_is_a_number(t: Catalogue):
    page = read(changes_view(run("a"), run("b", 0.75, ORIGINAL), t))
    (method,) = page.all("article")
    cells = [cell.text() for cell in method.one("tbody").all("td")]
    assert cells == ["x", "0.30 < 0.60", "0.75 > 0.60", "+0.45"]

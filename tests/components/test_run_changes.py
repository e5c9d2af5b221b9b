"""The page that shows what changed between two runs."""

from __future__ import annotations

from components.messages import Catalogue
from components.run_changes import changes_view
from pipelines.run.spec import EvidenceSpec
from pipelines.run.view import RunView
from tests.components.html_tree import Node, read
from tests.components.recorded import CORRECTED, ORIGINAL, Record, full_method, passage, score


def run(name: str, value: float = 0.3, answer: str = CORRECTED, **more: object) -> RunView:
    record = Record("drad", run=name, **more)  # pyright: ignore[reportArgumentType]
    record.begin("drad").draft("drad")
    record.search("drad", passage("both"), passage(name))
    verdict = "doubtful" if value < 0.6 else "confident"
    record.judge("drad", verdict, scores=(score(value),))
    record.end("drad", answer)
    return record.finish()


def drawn(first: RunView, second: RunView, t: Catalogue) -> Node:
    return read(changes_view(first, second, t))


def test_two_equal_runs_have_nothing_to_show(t: Catalogue):
    page = drawn(run("a"), run("a"), t)
    assert page.one(".vs-notices").text() == t("changes.not_moved", count=1)
    assert t("changes.no_conditions") in page.text()
    assert t("changes.same_answer") in page.text()
    assert t("changes.same_verdict") in page.text()
    assert not page.all("del") + page.all("ins")


def test_verdict_scores_answer_and_evidence_are_side_by_side(t: Catalogue):
    page = drawn(run("a"), run("b", 0.75, ORIGINAL), t)
    assert "1 of 1 methods has another" in page.one(".vs-notices").text()
    assert t("changes.same_conditions") in page.one(".vs-notices").text()
    (method,) = page.all("article")
    verdict = method.one(".vs-changes-verdict").text()
    assert verdict.index(t("verdict.doubtful")) < verdict.index(t("verdict.confident"))
    cells = [cell.text() for cell in method.one("tbody").all("td")]
    assert cells == ["x", "0.30 < 0.60", "0.75 > 0.60", "+0.45"]
    assert "London" in method.one("del").text()
    assert "Paris" in method.one("ins").text()
    folds = [fold.one("summary").text() for fold in method.all("details")]
    assert folds == [
        "1 passage found only in the earlier run",
        "1 passage found only in the later run",
    ]


def test_conditions_are_a_table(t: Catalogue):
    other = run(
        "b", 0.4, question="Where did Ada die?", seed=7, evidence=EvidenceSpec(source="wikipedia")
    )
    page = drawn(run("a"), other, t)
    assert t("compare.other_questions") in page.one(".vs-notices").text()
    assert t("changes.other_conditions") in page.one(".vs-notices").text()
    table = page.one(".vs-compare-table")
    rows = [[cell.text() for cell in row.all("td")] for row in table.one("tbody").all("tr")]
    assert ["Seed", "0", "7"] in rows
    assert ["Question", "Where was Ada born?", "Where did Ada die?"] in rows
    assert rows[1][0] == "Evidence"
    assert rows[1][2] == "Wikipedia"


def test_a_method_of_one_run_alone_is_named(t: Catalogue):
    record = Record("drad", "rag", run="b")
    for name in ("drad", "rag"):
        full_method(record, name, "doubtful")
    page = drawn(run("a"), record.finish(), t)
    assert [node.text() for node in page.all("h3")] == ["DRAD", "RAG"]
    assert t("changes.only_second") in page.all("article")[1].text()
    assert CORRECTED in page.all("article")[1].text()


def test_a_run_without_an_answer_says_so(t: Catalogue):
    record = Record("drad", run="b")
    record.begin("drad").end("drad")
    page = drawn(run("a"), record.finish(), t)
    assert "Later run: no answer." in page.text()


def test_chinese():
    page = drawn(run("a"), run("b", 0.75, ORIGINAL), Catalogue("zh"))
    assert "较早的运行" in page.text()

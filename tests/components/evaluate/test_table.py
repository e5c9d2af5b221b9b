"""The table of an evaluation on the page."""

from __future__ import annotations

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.evaluate.table import cost_text, ranking_view, results_view
from pipelines.base import Language
from pipelines.evaluation.results.packed import PackedScores
from pipelines.evaluation.results.scores import (
    Cost,
    Evaluation,
    JudgeInfo,
    MetricInfo,
    ScoredSystem,
)
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.statistics.estimates import Sampling
from tests.components.html_rules import faults
from tests.components.html_tree import Node, read
from tests.components.test_hostile import HOSTILE
from tests.pipelines.evaluation.results.evaluations import binary, evaluation, score
from tests.snapshots import Snapshot

SAMPLING = Sampling(resamples=200, permutations=199, versions={"scipy": "1"})


def views(made: Evaluation, t: Catalogue) -> list[str]:
    """The table, and the detectors where there are any."""
    table = results_table(made, sampling=SAMPLING)
    ranked = [] if table.detection is None else [ranking_view(table.detection, table, t)]
    return [results_view(table, t), *ranked]


def drawn(made: Evaluation, t: Catalogue) -> Node:
    return read("".join(views(made, t)))


def cells(page: Node, system: str) -> dict[str, str]:
    """The cells of a system's row by the label that a narrow screen shows."""
    for row in page.all("table")[0].one("tbody").all("tr"):
        if row.attributes["data-key"] == f"system-{system}":
            return {
                cell.attributes.get("data-label", ""): cell.text("vs-sr") for cell in row.all("td")
            }
    raise AssertionError(system)


def full() -> Evaluation:
    """Two systems on StrategyQA with everything that a table can show."""
    return evaluation(
        [
            score(
                f"q{n}", method, float(n % 2), group=f"g{n // 2}",
                original_values={"accuracy": 0.0} if method == "rowen" else {},
                values={"hallucination_score": n / 8, "hallucinated": float(n > 4)},
                cost={"calls": 2 + n, "seconds": 0.5, "money_usd": 0.001},
                flags=("abstained",) if n == 7 else (),
                error="timeout" if n == 6 else "",
            )
            for n in range(8) for method in ("direct", "rowen")
        ],
        data_set="StrategyQA",
        created=1_700_000_000.0,
        versions={"veriscope": "0.1.0"},
    )  # fmt: skip


JUDGES = {
    "judged": JudgeInfo(
        title="grader", judged=3, source="mine.csv", labels=2, accuracy=0.5, kappa=0.25
    ),
    "judged 2 (weak)": JudgeInfo(title="<b>small</b>", judged=3, undecided=1, weak=True),
}
GOOD = [1.0] * 20
ALIKE = binary(good=GOOD, alike=[*GOOD[:19], 0.0], bad=[0.0] * 20)


def by_judges() -> Evaluation:
    """Graded by two judges, of whom one is weak."""
    made = binary(a=[1, 0, 1])
    scores = PackedScores.of(
        one.model_copy(update={"values": {**one.values, "judged": 1.0, "judged 2 (weak)": 0.0}})
        for one in made.scores
    )
    return made.model_copy(update={"scores": scores, "judges": JUDGES})


@pytest.mark.parametrize("language", LANGUAGES)
def test_tables(language: Language, snapshot: Snapshot) -> None:
    """Every number with its meaning, letters, costs, detectors, what papers print, judges."""
    t = Catalogue(language)
    snapshot(drawn(full(), t), state="everything")
    # The second system lacks an item, and says so.
    snapshot(drawn(binary(a=[1, 1, 1, 0], b=[0, 0, 1]), t), "vs-table", state="an item is missing")
    snapshot(drawn(ALIKE, t), "vs-table", state="two cannot be told apart")
    snapshot(drawn(by_judges(), t), state="judged by two")


def test_systems_that_cannot_be_told_apart_share_a_letter(t: Catalogue) -> None:
    letters = [node.text() for node in drawn(ALIKE, t).all(".vs-band")]
    assert letters == ["a", "a", "b"]
    assert drawn(binary(good=GOOD, bad=[0.0] * 20), t).all(".vs-band") == []


@pytest.mark.parametrize("language", LANGUAGES)
def test_what_was_corrected_is_worked_out(language: Language) -> None:
    t = Catalogue(language)
    page = drawn(full(), t)
    row = cells(page, "rowen")
    # Four of eight were corrected, but one of the four right ones is q7, and q6 failed: 4 of 7.
    corrected = t("evaluate.corrected", metric=t("metric.accuracy.title"))
    assert row[f"{corrected} 0–1 ↑"].startswith("0.57")


def test_detectors_have_their_errors_and_f1_of_spans(t: Catalogue) -> None:
    made = evaluation([
        score(f"q{n}", "a", None, spans={"exact": (1, 1, 2)}, values={
            "hallucination_score": n / 4, "hallucinated": float(n > 1)})
        for n in range(4)
    ])  # fmt: skip
    page = drawn(made, t)
    row = next(row for row in page.all("tr") if row.attributes.get("data-key") == "detector-a")
    held = {cell.attributes.get("data-label", ""): cell.text() for cell in row.all("td")}
    # (0 + 1/16 + 1/4 + 1/16) / 4 = 0.094, and 2 * 4 / (4 + 8).
    assert held[f"{t('metric.brier.title')} 0–1 ↓"].startswith("0.09")
    assert held[f"{t('metric.span_f1_exact.title')} 0–1 ↑"].startswith("0.67")
    assert t("metric.ece.title") in page.text()


def test_a_cost_that_some_items_lack_says_so(t: Catalogue) -> None:
    made = evaluation([score("q0", "a", 1, cost={"calls": 2}), score("q1", "a", 1)])
    row = cells(drawn(made, t), "a")
    assert "n = 1" in row[t("evaluate.per_item", name=t("evaluate.cost.calls"))]
    assert t("evaluate.per_item", name=t("evaluate.cost.money_usd")) not in row


@pytest.mark.parametrize(
    ("cost", "value", "text"),
    [
        ("calls", 3.0, "3"),
        ("calls", 2.25, "2.2"),
        ("tokens", 12345.6, "12,346"),
        ("seconds", 4.13, "4.1 s"),
        ("money_usd", 0.00123, "$0.0012"),
        ("money_usd", 1234.5, "$1,234.50"),
        ("money_cny", 0.5, "CN¥0.50"),
        ("money_eur", 12.0, "€12.00"),
    ],
)
def test_costs_have_their_units(cost: Cost, value: float, text: str, t: Catalogue) -> None:
    assert cost_text(cost, value, t) == text


@pytest.mark.parametrize("text", HOSTILE)
def test_foreign_text_stays_text(text: str, t: Catalogue) -> None:
    made = evaluation(
        [
            score(f"q{n}", text, 1, values={
                text: 0.5, "hallucination_score": n / 2, "hallucinated": float(n)})
            for n in range(2)
        ],
        name=text, data_set=text, data_hash=text, versions={text: text},
        systems={text: ScoredSystem(method=text, models={text: text})},
        metrics=(MetricInfo(name=text),),
    )  # fmt: skip
    assert [fault for view in views(made, t) for fault in faults(view)] == []

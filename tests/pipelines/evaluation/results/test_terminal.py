"""Tables in a terminal: what they choose, how wide they are, and what they leave out."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from pipelines.errors import InvalidInputError
from pipelines.evaluation.results.export import (
    deciding_metrics,
    evaluation_text,
    histograms_text,
    table_text,
    wrapped,
)
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import ResultsTable, results_table
from pipelines.evaluation.statistics.estimates import Sampling
from tests.pipelines.evaluation.results.evaluations import binary, evaluation, score

SAMPLING = Sampling(resamples=200, permutations=199)


def made(of: Evaluation) -> ResultsTable:
    return results_table(of, sampling=SAMPLING)


def many(system: str = "a", count: int = 4) -> Evaluation:
    """A system with more metrics than are shown, which rewrites and detects."""
    names = ("exact_match", "f1", "truthful", "list_f1_5", "list_recall_5", "fact_precision")
    return evaluation(
        [
            score(
                f"q{n}", system, n % 2,
                original="before",
                original_values={"accuracy": (n + 1) % 2},
                values=dict.fromkeys(names, n % 2)
                | {"factscore": None, "hallucinated": n % 2, "hallucination_score": n / 4},
                cost={"calls": 3, "seconds": 1234.5, "money_usd": 0.00012, "judge_calls": 0},
            )
            for n in range(count)
        ]
    )  # fmt: skip


def test_a_table_is_aligned():
    table = made(binary(direct=[1, 1, 1, 0], drad=[0, 0, 1]))
    first, *rows = table_text(table).splitlines()[:3]
    assert first == " " * 17 + "accuracy  n"
    assert rows == [
        # Wilson's intervals of 3 of 4 and 1 of 3.
        "direct  0.75 [0.30, 0.95]  4",
        "drad    0.33 [0.06, 0.79]  3",
    ]


def test_scores_are_drawn_apart_by_what_people_say():
    # 0.0 and 0.5 of accurate items, 0.25 and 0.75 of hallucinated ones.
    text = histograms_text(many())
    lines = text.splitlines()
    assert lines[1:3] == ["Scores of a", "  accurate: 2 items, mean 0.250, deviation 0.250"]
    bars = [int(line.split()[3]) for line in lines if " to " in line]
    # Ten bars of 0.075 each from 0 to 0.75.
    assert bars == [1, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 1]
    assert "  hallucinated: 2 items, mean 0.500, deviation 0.250" in lines
    assert lines[3].endswith("#" * 40)


def test_six_metrics_decide_and_more_parts_hold_the_rest():
    table = made(many())
    chosen = deciding_metrics(table)
    assert chosen == ["accuracy", "f1", "exact_match", "truthful", "list_f1_5", "list_recall_5"]
    text = table_text(table)
    lines = text.splitlines()
    assert max(map(cell_len, lines)) <= 120
    heads = [line.split() for line in lines if line.startswith("   ")]
    assert [name for head in heads for name in head] == [
        *chosen, "corrected", "spoiled", "n", "calls", "seconds", "USD",
    ]  # fmt: skip
    # Each part names the systems again.
    assert sum(line.startswith("a ") for line in lines) == len(heads)
    # Whole seconds where there are many, no zeros of money, no costs that nobody has.
    assert "1,234" in text
    assert "0.00012" in text
    assert "judge" not in text
    assert "factscore" not in text


def test_detectors_are_ranked_where_texts_are_checked():
    scores = [
        score(f"q{n}", "slm", None, values={"hallucinated": n % 2, "hallucination_score": n / 4})
        for n in range(6)
    ]
    table = made(evaluation(scores))
    assert deciding_metrics(table) == ["auroc", "auc_pr_nonfactual", "auc_pr_factual"]


def test_controls_stand_below_the_detectors():
    scores = [
        score(f"q{n}", "slm", None, answer="word " * (n + 1), values={
            "hallucinated": float(n > 2), "hallucination_score": 0.5})
        for n in range(6)
    ]  # fmt: skip
    text = table_text(made(evaluation(scores)), ["auroc"])
    head, own, control = text.splitlines()[:3]
    assert head.split()[0] == "auroc"
    assert own.split()[:2] == ["slm", "0.50"]
    # The longer answers are the hallucinated ones; a control has no costs and no items of its own.
    assert control.split()[:3] == ["answer_words", "(control)", "1.00"]
    assert control.split()[-1] == "-"
    assert "Controls: answer_words." in text
    # Where no detector is shown, no control is.
    assert "Controls" not in table_text(made(evaluation(scores)), ["answer_words"])


def test_metrics_can_be_chosen():
    table = made(many())
    head = table_text(table, ["fact_precision", "auroc"]).splitlines()[0]
    assert head.split()[:2] == ["fact_precision", "auroc"]
    # Nothing tells there what was corrected.
    assert "corrected" not in head
    with pytest.raises(InvalidInputError, match="no value of 'factscore'"):
        table_text(table, ["factscore"])
    with pytest.raises(InvalidInputError, match="Choose among these: accuracy"):
        table_text(table, ["nothing"])


def test_an_evaluation_has_the_text_of_its_whole_table():
    assert evaluation_text(many()) == table_text(results_table(many()))
    chosen = ["fact_precision", "auroc"]
    assert evaluation_text(many(), chosen) == table_text(results_table(many()), chosen)
    assert evaluation_text(many(), ["auroc"]).split()[0] == "auroc"
    # Without a ranking among them detectors are not ranked at all.
    assert evaluation_text(many(), ["accuracy"]) == table_text(results_table(many()), ["accuracy"])
    with pytest.raises(InvalidInputError, match="Choose among these: accuracy"):
        evaluation_text(many(), ["nothing"])


def test_errors_and_abstentions_are_told_where_there_are_any():
    table = made(evaluation([
        score("q0", "a", None, error="timeout"), score("q1", "a", 0, flags=("abstained",)),
        score("q2", "a", 1),
    ]))  # fmt: skip
    head, row, *_ = table_text(table).splitlines()
    assert head.split() == ["accuracy", "n", "errors", "abstained"]
    assert re.split(r"  +", row)[-3:] == ["2", "1", "0.50 [0.09, 0.91]"]


def test_chinese_names_are_aligned_and_long_ones_cut():
    table = made(binary(**{"直接回答": [1, 0], "a" * 40: [1, 1]}))
    head, first, second, *_ = table_text(table).splitlines()
    assert {cell_len(head), cell_len(first), cell_len(second)} == {cell_len(head)}
    assert second.startswith("a" * 24 + "..  ")
    assert first.startswith("直接回答" + " " * 18)


def test_a_narrow_terminal_has_more_parts():
    for width in (60, 80, 100):
        text = table_text(made(many("系统")), width=width)
        assert max(map(cell_len, text.splitlines())) <= width


@given(st.text(alphabet="ab 中文，。", max_size=80), st.integers(4, 20))
def test_wrapping_loses_nothing(text: str, width: int):
    lines = wrapped(text, width)
    assert all(cell_len(line) <= width for line in lines)
    assert "".join("".join(lines).split()) == "".join(text.split())

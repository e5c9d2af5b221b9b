"""The table of an evaluation, counted by hand."""

from __future__ import annotations

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.results.packed import PackedScores
from pipelines.evaluation.results.papers import paper_figures
from pipelines.evaluation.results.scores import Evaluation, ItemSummary, MetricInfo, ScoredSystem
from pipelines.evaluation.results.table import ResultsTable, detectors, results_table
from pipelines.evaluation.statistics.estimates import Sampling, mcnemar_midp, wilson
from tests.pipelines.evaluation.results.evaluations import ACCURACY, binary, evaluation, score

SAMPLING = Sampling(resamples=200, permutations=199)


def made(from_: Evaluation, **more: object) -> ResultsTable:
    return results_table(from_, sampling=SAMPLING, **more)  # type: ignore[arg-type]


def test_means_with_their_intervals() -> None:
    table = made(binary(a=[1, 1, 1, 0], b=[0, 0, 1]))
    first, second = table.rows
    assert (first.system, first.n, first.errors, first.repeats) == ("a", 4, 0, 1)
    estimate = first.metrics["accuracy"]
    assert (estimate.value, estimate.n) == (0.75, 4)
    assert (estimate.low, estimate.high) == wilson(3, 4, 0.95)
    assert second.metrics["accuracy"].value == pytest.approx(1 / 3)
    assert second.metrics["accuracy"].n == 3
    assert (table.items, table.groups) == (4, 4)
    assert table.sampling == SAMPLING


def test_length_and_overlap_always_stand_in_it() -> None:
    table = made(binary(a=[1, 0]), metrics=["accuracy"])
    assert [info.name for info in table.metrics] == ["accuracy", "answer_words", "passage_overlap"]
    # "a says q0" has three words.
    assert table.rows[0].metrics["answer_words"].value == 3
    assert table.rows[0].metrics["passage_overlap"].reason == "no_items"
    # They are not contests, so nothing is tested.
    assert set(table.differences) == {"accuracy"}
    assert table.metric("answer_words").better is None


def test_failures_and_abstentions_are_counted_apart() -> None:
    table = made(evaluation([
        score("q0", "a", None, error="timeout"), score("q1", "a", 0, flags=("abstained",)),
        score("q2", "a", 1), score("q3", "a", 1),
    ]))  # fmt: skip
    (row,) = table.rows
    assert (row.errors, row.n) == (1, 3)
    assert row.abstained.value == pytest.approx(1 / 3)
    assert row.metrics["accuracy"].value == pytest.approx(2 / 3)


def test_costs_per_item_and_in_total() -> None:
    table = made(evaluation([
        score("q0", "a", 1, cost={"calls": 2, "seconds": 1.5}),
        score("q1", "a", None, error="timeout", cost={"calls": 4}),
    ]))  # fmt: skip
    costs = table.rows[0].costs
    assert (costs["calls"].mean, costs["calls"].total, costs["calls"].n) == (3, 6, 2)
    assert (costs["seconds"].mean, costs["seconds"].total, costs["seconds"].n) == (1.5, 1.5, 1)
    assert (costs["money_usd"].mean, costs["money_usd"].total) == (None, None)


def test_pairs_and_bands() -> None:
    right, wrong = [1.0] * 20, [0.0] * 20
    table = made(binary(good=right, alike=[*right[:19], 0], bad=wrong))
    by_pair = {(one.first, one.second): one for one in table.differences["accuracy"]}
    assert by_pair["good", "alike"].p == mcnemar_midp(1, 0)
    assert by_pair["good", "bad"].p == mcnemar_midp(20, 0)
    # Holm: the smallest of three times three.
    assert by_pair["good", "bad"].adjusted == pytest.approx(3 * mcnemar_midp(20, 0))
    assert table.bands["accuracy"] == (("good", "alike"), ("bad",))


def test_the_best_of_a_metric_where_lower_is_better_comes_first() -> None:
    info = MetricInfo(name="accuracy", better="lower")
    base = binary(a=[1.0] * 20, b=[0.0] * 20)
    table = made(base.model_copy(update={"metrics": (info,)}))
    assert table.bands["accuracy"] == (("b",), ("a",))


def test_only_rewritten_answers_are_corrected() -> None:
    table = made(evaluation([
        score("q0", "a", 1, original_values={"accuracy": 0}),
        score("q1", "a", 0, original_values={"accuracy": 0}),
        score("q2", "a", 0, original_values={"accuracy": 1}),
        score("q0", "b", 1), score("q1", "b", 1), score("q2", "b", 1),
    ]))  # fmt: skip
    found = table.rows[0].corrections["accuracy"]
    assert (found.corrected.value, found.spoiled.value, found.change.value) == (0.5, 1, 0)
    assert table.rows[1].corrections == {}


def test_detectors_beside_their_controls() -> None:
    scores = [
        score(f"q{n}", "detector", None, answer="word " * (n + 1), values={
            "hallucination_score": float(n >= 2), "hallucinated": float(n >= 2),
            "passage_overlap": 0.1 * n,
        })
        for n in range(4)
    ]  # fmt: skip
    found = made(evaluation(scores)).detection
    assert found is not None
    assert found.detectors == ("detector", "answer_words", "passage_overlap")
    # The longer answers are the hallucinated ones; those with more overlap are so too, and less
    # overlap is what counts as suspicious.
    assert [one["auroc"].value for one in found.rankings] == [1, 1, 0]
    names = [info.name for info in made(evaluation(scores)).metrics]
    assert "hallucination_score" not in names
    assert "hallucinated" not in names


def test_overlap_is_that_of_the_first_detector_that_has_passages() -> None:
    # "own" searches nothing. "slm" does, and less overlap goes with its hallucinated answers.
    labels = (1.0, 1.0, 0.0, 0.0)
    scores = [
        score(f"q{n}", system, None, values={
            "hallucination_score": 0.5,
            "hallucinated": 1 - label if system == "own" else label,
            "passage_overlap": None if system == "own" else 1 - label,
        })
        for n, label in enumerate(labels) for system in ("own", "slm")
    ]  # fmt: skip
    table = made(evaluation(scores))
    found = table.detection
    assert found is not None
    assert found.detectors == ("own", "slm", "answer_words", "passage_overlap")
    assert found.rankings[-1]["auroc"].value == 1
    assert table.controls == ("answer_words", "passage_overlap")


def test_a_detector_has_the_errors_of_its_probabilities_and_the_spans_it_marked() -> None:
    labels, doubts = (1.0, 1.0, 0.0, 0.0), (0.9, 0.6, 0.3, 0.1)
    spans = [{"exact": (1, 2, 1)}, {"exact": (0, 0, 1)}, {}, {}]
    scores = [
        score(f"q{n}", "detector", None, answer="word " * (n + 1), spans=spans[n], values={
            "hallucination_score": doubts[n], "hallucinated": labels[n]})
        for n in range(4)
    ]  # fmt: skip
    found = made(evaluation(scores)).detection
    assert found is not None
    own = found.estimates("detector")
    assert own["best_accuracy"].value == 1
    assert own["brier"].value == pytest.approx((0.01 + 0.16 + 0.09 + 0.01) / 4)
    # 1 found of 2 marked and 2 labelled.
    assert own["span_f1_exact"].value == pytest.approx(2 * 1 / (2 + 2))
    # Lengths are no probabilities, and mark nothing.
    control = found.estimates("answer_words")
    assert {"brier", "span_f1_exact"}.isdisjoint(control)
    assert "best_accuracy" in control
    assert found.measures[:3] == ("auroc", "auc_pr_nonfactual", "auc_pr_factual")
    assert {"brier", "ece", "span_f1_exact"} <= set(found.measures)
    assert found.estimates("nobody") == {}


def test_without_detectors_nothing_is_ranked() -> None:
    assert made(binary(a=[1, 0])).detection is None


def test_detectors_are_left_for_later() -> None:
    scores = [
        score(f"q{n}", system, float(n % 3 == 0), values={
            "hallucination_score": (n * 7 % 5) / 5, "hallucinated": float(n % 2)})
        for n in range(12) for system in "ab"
    ]  # fmt: skip
    base = evaluation(scores)
    whole = made(base)
    assert made(base, ranked=False) == whole.model_copy(update={"detection": None})
    assert detectors(base, SAMPLING) == whole.detection
    quick = detectors(base, SAMPLING, compared=False)
    assert whole.detection is not None
    assert quick == whole.detection.model_copy(update={"differences": {}})


def test_filters() -> None:
    base = binary(a=[1, 0, 1, 0], b=[1, 1, 1, 1])
    table = made(base, tags=("even",), language="en")
    assert (table.items, table.rows[0].metrics["accuracy"].value) == (2, 1)
    assert (table.tags, table.language) == (("even",), "en")
    with pytest.raises(InvalidInputError, match="fewer tags"):
        made(base, tags=("even",), language="zh")


def test_an_unknown_metric_is_refused() -> None:
    base = binary(a=[1, 0])
    with pytest.raises(InvalidInputError, match="accuracy"):
        made(base, metrics=["bleu"])
    with pytest.raises(InvalidInputError, match="Choose one of these: accuracy"):
        made(base).metric("bleu")


def test_a_metric_without_words_or_range_still_has_its_column() -> None:
    table = made(evaluation([score("q", "a", 1, values={"odd": 12.5})]))
    assert table.rows[0].metrics["odd"].value == 12.5
    assert table.metric("odd") == MetricInfo(name="odd", low=None, high=None, better=None)


def test_the_seed_of_the_evaluation_is_used() -> None:
    base = binary(a=[1, 0]).model_copy(update={"seed": 17})
    assert results_table(base).sampling.seed == 17
    assert made(base) == made(base)


def test_the_papers_figures_stand_with_their_method_and_data() -> None:
    base = evaluation(
        [score("q", "mine", 1)],
        data_set="StrategyQA (dev)",
        systems={"mine": ScoredSystem(method="rowen")},
    )
    figures = made(base).rows[0].papers
    printed = {(f.row.en, str(f.value)) for f in figures if f.metric == ACCURACY.name}
    assert printed == {
        ("Rowen CL (across languages)", "74.00"),
        ("Rowen CM (across models)", "72.40"),
        ("Rowen Hybrid (both)", "75.60"),
    }
    assert {f.date for f in figures} == {"2024-02"}


@pytest.mark.parametrize(
    ("method", "data_set", "count"),
    [("drad", "nq-open", 2), ("direct", "TruthfulQA", 3), ("drad", "halueval", 0), ("slm", "", 0)],
)
def test_figures_are_looked_up_by_the_name_of_the_data(
    method: str, data_set: str, count: int
) -> None:
    assert len(paper_figures(method, data_set)) == count


@pytest.mark.parametrize("systems", [{}, {"a": ScoredSystem(method="direct")}])
def test_an_evaluation_that_has_not_begun_is_a_table_without_numbers(
    systems: dict[str, ScoredSystem],
) -> None:
    begun = Evaluation(
        name="n",
        data_set="d",
        data_hash="h",
        systems=systems,
        items={"q": ItemSummary()},
        scores=PackedScores.of(()),
    )
    table = made(begun)
    assert len(table.rows) == len(systems)
    for row in table.rows:
        assert (row.n, row.repeats, row.metrics["answer_words"].reason) == (0, 0, "no_items")

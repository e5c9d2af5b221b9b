"""The table of metrics: every one computes, stays in its range and has its words."""

from __future__ import annotations

from math import exp, isfinite
from typing import Any

import pytest

from components.base.words import LANGUAGES, load_messages
from pipelines.base import Passage
from pipelines.evaluation.datasets import applies, open_data_set
from pipelines.evaluation.metrics import METRICS, MetricAnswer
from pipelines.evaluation.plan import Item, LabelledSpan

QUESTION = Item(
    id="1",
    question="Who found radium?",
    answers=("Marie Curie", "Curie"),
    wrong_answers=("Isaac Newton",),
    lists=(("Curie",), ("Becquerel",)),
    passages=(Passage(id="1", title="", text="Marie Curie found radium.", source="s"),),
)
ANSWER = MetricAnswer(
    text="It was Marie Curie, of course.",
    short="Marie Curie",
    supported=(True, False, False, False),
    unsupported=("contradicted", "no_evidence", "no_evidence"),
    original="Isaac Newton",
    flagged=True,
    relevance=0.4,
    alignment=0.7,
    calls=3,
    prompt_tokens=10,
    completion_tokens=5,
    retrievals=2,
    seconds=1.5,
)
DECLINED = MetricAnswer(text="I don't know.")


def value(name: str, answer: MetricAnswer = ANSWER, item: Item = QUESTION) -> float | None:
    compute = METRICS[name].value
    assert compute is not None
    return compute(answer, item)


@pytest.mark.parametrize("metric", METRICS.values(), ids=METRICS)
def test_every_metric_is_whole(metric):
    ways = (metric.value, metric.of_scores, metric.span_match)
    assert sum(way is not None for way in ways) == 1
    assert metric.low < metric.high
    assert metric.value is None or metric.kind != "detector"
    for language in LANGUAGES:
        assert load_messages(language)[f"metric.{metric.name}.title"]


def test_every_reason_has_its_words():
    for metric in METRICS.values():
        reason = applies(metric.needs, ())
        for language in LANGUAGES:
            assert reason is None or load_messages(language)[reason]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("exact_match", 1),
        ("f1", 1),
        ("contains_match", 1),
        ("accuracy", 1),
        ("answered_accuracy", 1),
        ("wrong_answer", 0),
        ("trustful", 1),
        ("abstention", 0),
        ("truthful", 1),
        ("bleu", 1),
        ("rouge_l", 1),
        # One of four is supported, one contradicted; nothing is about the other two.
        ("fact_precision", 1 / 4),
        # Four facts of ten: a quarter of exp(1 - 10 / 4).
        ("factscore", exp(-1.5) / 4),
        ("facts", 4),
        ("facts_contradicted", 1 / 4),
        ("facts_no_evidence", 2 / 4),
        ("facts_unsettled", 0),
        # The first answer was wrong, and taken for it.
        ("detection_accuracy", 1),
        ("retrieved", 1),
        ("internal_hallucination", 0),
        ("external_hallucination", 0),
        ("retrieval_relevance", 0.4),
        ("consistency", 0.7),
        # Of "it was marie curie of course" two words are in the passage.
        ("passage_overlap", 2 / 6),
        ("answer_words", 6),
        # "Marie Curie" is no alias of the list.
        ("list_precision", 0),
        ("calls", 3),
        ("tokens", 15),
        ("retrievals", 2),
        ("seconds", 1.5),
    ],
)
def test_values_of_an_answer(name: str, expected: float):
    assert value(name) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("exact_match", 0),
        ("accuracy", 0),
        # Who abstains is neither right nor wrong among the answered ones.
        ("answered_accuracy", None),
        ("wrong_answer", 0),
        ("trustful", 1),
        ("abstention", 1),
        ("truthful", 1),
        ("fact_precision", None),
        ("list_recall_5", 0),
    ],
)
def test_values_of_an_abstention(name: str, expected: float | None):
    assert value(name, DECLINED) == expected
    flagged = ANSWER.model_copy(update={"abstained": True})
    assert value(name, flagged) == expected


def test_lists_take_the_short_answer():
    answer = MetricAnswer(text="Many did.", short="Curie\nNewton")
    assert value("list_precision", answer) == 0.5
    assert value("list_recall_5", answer) == 0.5
    assert value("list_f1_5", answer) == 0.5
    # An empty short answer is kept: nothing of the text was left.
    assert value("list_precision", MetricAnswer(text="Curie", short="")) == 0


def test_overlap_is_with_the_items_passages_else_with_those_that_were_found():
    found = ANSWER.model_copy(update={"overlap": 0.25})
    assert value("passage_overlap", found) == pytest.approx(2 / 6)
    assert value("passage_overlap", found, QUESTION.model_copy(update={"passages": ()})) == 0.25


def test_a_wrong_answer_is_wrong():
    answer = MetricAnswer(text="Isaac Newton")
    assert (value("wrong_answer", answer), value("trustful", answer)) == (1, 0)
    assert value("answered_accuracy", answer) == value("truthful", answer) == 0


@pytest.mark.parametrize(
    ("said", "retrievals", "flagged", "internal", "external", "detected"),
    [
        ("Isaac Newton", 0, False, 1, 0, 0),
        ("Isaac Newton", 3, True, 0, 1, 1),
        ("Curie", 3, True, 0, 0, 0),
        ("Curie", 0, False, 0, 0, 1),
        # Who declines is not wrong, nor was that answer right; who says nothing detects nothing.
        ("I don't know.", 0, True, 0, 0, 1),
        ("Curie", 0, None, 0, 0, None),
    ],
)
def test_where_a_hallucination_comes_from(
    said: str, retrievals: int, flagged: bool | None, internal: int, external: int, detected: Any
):
    answer = MetricAnswer(text=said, original=said, retrievals=retrievals, flagged=flagged)
    assert value("retrieved", answer) == (retrievals > 0)
    assert value("internal_hallucination", answer) == internal
    assert value("external_hallucination", answer) == external
    assert value("detection_accuracy", answer) == detected


def test_what_an_item_lacks_leaves_no_value():
    bare = Item(id="1", question="Who?")
    for metric in METRICS.values():
        if metric.value is not None and {"answers", "lists"} & set(metric.needs):
            assert metric.value(ANSWER, bare) is None, metric.name
    assert value("passage_overlap", item=bare) is None
    assert value("truthful", item=QUESTION.model_copy(update={"wrong_answers": ()})) is None


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        # 0.9 beats 0.2 and 0.1, 0.15 beats 0.1 alone: 3 of 4 pairs.
        ("auroc", 3 / 4),
        # Recall 1/2 at precision 1, then 1 at precision 2/3.
        ("auc_pr_nonfactual", 1 / 2 + 1 / 2 * 2 / 3),
        # Reversed: 0.1 first, then 0.15, which is hallucinated, then 0.2.
        ("auc_pr_factual", 1 / 2 + 1 / 2 * 2 / 3),
        # A threshold between 0.2 and 0.9 or between 0.1 and 0.15 leaves one mistake.
        ("best_accuracy", 3 / 4),
        ("best_balanced_accuracy", 3 / 4),
        # Accurate are 0.2 and 0.1. Passing all below 0.9 finds both, and one more: 2 * 2 / (3 + 2).
        ("best_f1_accurate", 4 / 5),
        # Passing 0.1 alone finds half of them, and nothing else.
        ("best_precision_accurate", 1),
        # (0.01 + 0.7225 + 0.04 + 0.01) / 4
        ("brier", 0.195625),
    ],
)
def test_values_of_scores(name: str, expected: float):
    compute = METRICS[name].of_scores
    assert compute is not None
    assert compute((0.9, 0.15, 0.2, 0.1), (True, True, False, False)) == pytest.approx(expected)


def test_only_probabilities_are_calibrated():
    for metric in METRICS.values():
        if metric.of_scores is None:
            continue
        scores, truth = (2.0, -3.0, 0.0), (True, False, False)
        if metric.probabilities:
            with pytest.raises(ValueError, match="no probabilities"):
                metric.of_scores(scores, truth)
        else:
            assert metric.low <= metric.of_scores(scores, truth) <= metric.high
            assert metric.better == "higher"


def spans(*ends: tuple[int, int, str]) -> tuple[LabelledSpan, ...]:
    return tuple(
        LabelledSpan.model_validate({"start": start, "end": end, "label": label})
        for start, end, label in ends
    )


@pytest.mark.parametrize(
    ("fields", "counts"),
    [
        ({"spans": spans((0, 4, "major")), "hallucinated": True}, (1, 1, 1)),
        ({"hallucinated": False}, (0, 1, 0)),
        # Labelled as wrong, but not where.
        ({"hallucinated": True}, None),
        ({}, None),
        ({"sentences": spans((0, 4, "minor"), (5, 9, "accurate"))}, (1, 1, 1)),
        ({"sentences": spans((0, 4, "accurate"))}, (0, 1, 0)),
    ],
)
def test_spans_are_counted_where_errors_are_labelled(fields: dict[str, Any], counts: Any):
    item = Item(id="1", text="Ann flew.", **fields)
    assert METRICS["span_f1_exact"].counts([(0, 4)], item) == counts
    with pytest.raises(ValueError, match="not one of spans"):
        METRICS["auroc"].counts([], item)


def test_right_answers_of_the_samples_are_right():
    items = open_data_set("sample").items
    for metric in METRICS.values():
        if metric.value is None or metric.better == "neither" or metric.kind != "answer":
            continue
        values = [
            metric.value(MetricAnswer(text=item.answers[0], supported=(True,) * 10), item)
            for item in items
        ]
        known = [one for one in values if one is not None]
        best = 1.0 if metric.better == "higher" else 0.0
        assert known == pytest.approx([best] * len(known)), metric.name
        assert all(map(isfinite, known))

"""Tables of detectors: numbers worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import pearsonr, spearmanr
from sklearn.metrics import average_precision_score, roc_auc_score

from pipelines.base import Passage
from pipelines.errors import InvalidInputError
from pipelines.evaluation.plan import Item, Label, LabelledSpan
from pipelines.evaluation.results.packed import ItemScore, PackedScores
from pipelines.evaluation.results.scores import (
    HALLUCINATED,
    HALLUCINATION_SCORE,
    PASSAGE_OVERLAP,
    Evaluation,
    ItemSummary,
    ScoredSystem,
)
from pipelines.evaluation.statistics.estimates import Sampling
from research.measure.detectors import (
    LENGTH,
    OVERLAP,
    answer_table,
    passage_correlations,
    report,
    sentence_table,
)

SAMPLING = Sampling(resamples=200)

# Four passages; of the last one every sentence is seriously wrong.
PASSAGES: dict[str, list[tuple[Label, float]]] = {
    "a": [("accurate", 0.1), ("minor", 0.6)],
    "b": [("accurate", 0.2), ("accurate", 0.5), ("major", 0.9)],
    "c": [("major", 0.3), ("accurate", 0.0)],
    "d": [("major", 0.8), ("major", 0.7)],
}


def item(name: str, labels: list[Label]) -> Item:
    spans = tuple(
        LabelledSpan(start=3 * at, end=3 * at + 2, label=label) for at, label in enumerate(labels)
    )
    return Item(id=name, text="ab " * len(labels), sentences=spans)


ITEMS = {name: item(name, [label for label, _ in rows]) for name, rows in PASSAGES.items()}


def evaluation() -> Evaluation:
    scores = PackedScores.of(
        ItemScore(
            item=f"{name}#{number}",
            group=name,
            method="selfcheck",
            values={HALLUCINATION_SCORE: value, HALLUCINATED: float(label != "accurate")},
            answer="one " * number,
        )
        for name, rows in PASSAGES.items()
        for number, (label, value) in enumerate(rows, start=1)
    )
    return Evaluation(
        name="e",
        data_set="wikibio_gpt3:odd",
        data_hash="h",
        systems={"selfcheck": ScoredSystem(method="selfcheck", settings={"variant": "nli"})},
        items={score.item: ItemSummary() for score in scores},
        scores=scores,
    )


def test_sentences_are_measured_as_in_the_paper():
    table = sentence_table(evaluation(), ITEMS, SAMPLING)
    assert (table.n, table.groups) == (9, 4)
    found = table.rows[0].measures
    # By score: 0.9 major, 0.8 major, 0.7 major, 0.6 minor, 0.5 accurate, 0.3 major, then accurate.
    # Not factual: (1 + 1 + 1 + 1 + 5/6) / 5.
    assert found["non_factual"].value == pytest.approx((4 + 5 / 6) / 5)
    # Without passage d: 0.9 major, 0.6, 0.5, 0.3 major, ...: (1 + 2/4) / 2.
    assert found["non_factual_star"].value == pytest.approx(0.75)
    assert found["non_factual_star"].n == 7
    # Factual from the other end: 0.0, 0.1, 0.2 accurate, 0.3 major, 0.5 accurate: (3 + 4/5) / 4.
    assert found["factual"].value == pytest.approx(0.95)
    assert table.chance["non_factual"] == pytest.approx(5 / 9)
    assert table.chance["factual"] == pytest.approx(4 / 9)
    assert table.chance["non_factual_star"] == pytest.approx(2 / 7)
    # Passages: scores 0.35, 1.6/3, 0.15, 0.75 against labels 0.25, 1/3, 0.5, 1.
    means, labels = [0.35, 1.6 / 3, 0.15, 0.75], [0.25, 1 / 3, 0.5, 1.0]
    assert found["pearson"].value == pytest.approx(pearsonr(means, labels)[0])
    # Ranks 2 3 1 4 against 1 2 3 4: 1 - 6 (1 + 1 + 4 + 0) / (4 * 15) = 0.4.
    assert found["spearman"].value == pytest.approx(0.4)
    assert table.rows[-1].name == LENGTH


def test_words_that_sentences_share_with_their_passages_are_a_control():
    passage = Passage(id="p", title="", text="one", source="s")
    first = ITEMS["a"].model_copy(update={"passages": (passage,)})
    scores = evaluation().scores
    # The wrong sentence of "a" shares no word with the passage, the right one all of its words.
    changed = {"a#1": "one", "a#2": "two"}
    told = PackedScores.of(
        score.model_copy(update={"answer": changed[score.item]}) if score.item in changed else score
        for score in scores
    )
    made = evaluation().model_copy(update={"scores": told})
    table = sentence_table(made, {**ITEMS, "a": first}, SAMPLING)
    assert [row.name for row in table.rows] == ["selfcheck", LENGTH, OVERLAP]
    overlap = table.rows[-1]
    # The other items have no passages, and no overlap.
    assert (overlap.n, overlap.measures["non_factual"].value) == (2, 1)
    assert "| word overlap (control) | 2 | 1.000 |" in report(table, made)


def test_they_are_those_of_the_libraries():
    source = np.random.default_rng(2)
    harm = source.choice([0.0, 0.5, 1.0], 60)
    scores = harm + source.normal(size=60)
    passages = [f"p{n // 4}" for n in range(60)]
    found = passage_correlations(scores, harm, passages, SAMPLING)
    one, two = scores.reshape(15, 4).mean(axis=1), harm.reshape(15, 4).mean(axis=1)
    assert found["pearson"].value == pytest.approx(pearsonr(one, two)[0])
    assert found["spearman"].value == pytest.approx(spearmanr(one, two)[0])
    assert found["pearson"].low is not None
    assert found["pearson"].high is not None
    assert found["pearson"].low < (found["pearson"].value or 0) < found["pearson"].high
    same = passage_correlations(np.ones(60), harm, passages, SAMPLING)
    assert same["pearson"].value is None
    few = passage_correlations(scores[:8], harm[:8], passages[:8], SAMPLING)
    assert few["pearson"].reason == "too_few_groups"


def test_the_table_in_words_has_the_published_figures():
    text = report(sentence_table(evaluation(), ITEMS, SAMPLING), evaluation())
    assert "| selfcheck (variant nli) | 9 | 0.967 [" in text
    assert "| length (control) | 9 |" in text
    assert "| chance | 9 | 0.556 | 0.286 | 0.444 | 0.500 |" in text
    assert "NLI (SelfCheckGPT, 2023-03" in text
    assert "AUC-PR, not factual 92.50, AUC-PR, factual 66.08, Pearson, passages 74.14" in text


def test_answers_are_measured_where_a_detector_scored_them():
    rows = [(0.9, 0.4, 1.0), (0.8, None, 0.0), (0.3, 0.6, 1.0), (0.1, 0.2, 0.0)]
    scores = PackedScores.of(
        ItemScore(
            item=str(n),
            method=method,
            values={HALLUCINATION_SCORE: value, HALLUCINATED: label},
            original="word " * (n + 1),
        )
        for n, (one, two, label) in enumerate(rows)
        for method, value in (("a", one), ("b", two))
    )
    found = Evaluation(
        name="e",
        data_set="mine",
        data_hash="h",
        systems={"a": ScoredSystem(method="p_true"), "b": ScoredSystem(method="p_yes")},
        items={str(n): ItemSummary() for n in range(4)},
        scores=scores,
    )
    table = answer_table(found, SAMPLING)
    first, second, length = table.rows
    truth = [1, 0, 1, 0]
    assert first.measures["auroc"].value == pytest.approx(
        roc_auc_score(truth, [0.9, 0.8, 0.3, 0.1])
    )
    assert first.measures["auc_pr_nonfactual"].value == pytest.approx(
        average_precision_score(truth, [0.9, 0.8, 0.3, 0.1])
    )
    assert (first.n, second.n, length.n) == (4, 3, 4)
    # 0.4 and 0.6 are above 0.2.
    assert second.measures["auroc"].value == pytest.approx(1.0)
    # Longer answers are not the wrong ones: of four pairs, one.
    assert length.measures["auroc"].value == pytest.approx(0.25)
    assert "Published" not in report(table, found)
    # The wrong answers "0" and "2" share fewer words than "3"; of "1" method b says nothing.
    shares = {"0": 0.1, "1": 0.4, "2": 0.5, "3": 0.6}
    shared = PackedScores.of(
        score.model_copy(update={"values": {**score.values, PASSAGE_OVERLAP: shares[score.item]}})
        if score.method == "b"
        else score
        for score in scores
    )
    table = answer_table(found.model_copy(update={"scores": shared}), SAMPLING)
    assert [row.name for row in table.rows] == ["a", "b", LENGTH, OVERLAP]
    assert table.rows[-1].n == 3
    assert table.rows[-1].measures["auroc"].value == pytest.approx(1.0)
    with pytest.raises(InvalidInputError, match="No answer"):
        answer_table(found.model_copy(update={"scores": PackedScores.of(())}), SAMPLING)
    with pytest.raises(InvalidInputError, match="No sentence"):
        sentence_table(found, {}, SAMPLING)

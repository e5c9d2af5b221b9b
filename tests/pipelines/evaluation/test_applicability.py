"""Which metrics a table can have, and why it does not have the others."""

from __future__ import annotations

from typing import Literal

import pytest

from components.base.words import LANGUAGES, load_messages
from pipelines.base import Language
from pipelines.evaluation.beginning import metric_reasons
from pipelines.evaluation.metrics.table import METRICS
from pipelines.evaluation.plan import Item, LabelledSpan, Offer
from pipelines.evaluation.statistics.detection import QUALITIES, RANKINGS

QUESTION = Item(id="a", question="Who?", answers=("Ada",))
TEXT = Item(id="b", question="Who?", text="Ada was born in Delft.", hallucinated=True)
SENTENCES = TEXT.model_copy(
    update={"sentences": (LabelledSpan(start=0, end=22, label="major"),), "hallucinated": None}
)


def test_questions_with_answers_have_metrics_of_answers():
    reasons = metric_reasons(QUESTION.offers, "questions", ["direct"])
    assert reasons["accuracy"] is None
    assert reasons["truthful"] == "evaluate.lacks.wrong_answers"
    assert reasons["list_f1_5"] == "evaluate.lacks.lists"
    # A wrong answer of its own is a hallucination, once a method judges it.
    assert {reasons[name] for name in RANKINGS} == {"evaluate.metrics.no_judge"}
    judged = metric_reasons(QUESTION.offers, "questions", ["direct", "slm"])
    assert {judged[name] for name in RANKINGS} == {None}
    own = {name: judged[name] for name in QUALITIES}
    assert (own["brier"], own["best_accuracy"]) == (None, None)
    assert own["span_f1_exact"] == "evaluate.metrics.own_texts"


def test_questions_without_answers_have_few():
    reasons = metric_reasons(frozenset[Offer](["questions"]), "questions", ["slm"])
    assert reasons["accuracy"] == "evaluate.lacks.answers"
    assert reasons["auroc"] == "evaluate.lacks.answers"
    assert reasons["answer_words"] is None


def test_labelled_texts_are_ranked_and_labelled_sentences_are_nothing_else():
    texts = metric_reasons(TEXT.offers, "texts", ["slm"])
    assert texts["auroc"] is None
    assert texts["accuracy"] == "evaluate.lacks.answers"
    unlabelled = metric_reasons(frozenset[Offer](["questions", "texts"]), "texts", ["slm"])
    assert unlabelled["auroc"] == "evaluate.lacks.labelled_texts"
    sentences = metric_reasons(SENTENCES.offers, "texts", ["slm"])
    assert sentences["auroc"] is None
    assert sentences["span_f1_characters"] is None
    assert texts["span_f1_characters"] == "evaluate.lacks.labelled_spans"
    assert sentences["fact_precision"] == "evaluate.metrics.sentences"
    assert sentences["answer_words"] is None


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("checks", ["questions", "texts"])
@pytest.mark.parametrize("item", [QUESTION, TEXT, SENTENCES, Item(id="c", lists=(("Ada",),))])
def test_every_reason_and_every_metric_has_words(
    language: Language, checks: Literal["questions", "texts"], item: Item
):
    words = load_messages(language)
    for name, reason in metric_reasons(item.offers, checks, ["direct"]).items():
        assert name in METRICS
        assert f"metric.{name}.title" in words
        assert reason is None or reason in words

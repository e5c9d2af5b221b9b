"""What a configuration says of a judge, in whatever spelling, and what has to be asked for."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.errors import InvalidInputError
from pipelines.models.judges.hub_formats import (
    JudgeFormat,
    LabelRole,
    label_role,
    labels_of,
    parse_format,
    parse_labels,
    reading_of,
    reads_chinese,
)

SUPPORTED, CONTRADICTED, NOT_ENOUGH, UNSUPPORTED = (
    "supported",
    "contradicted",
    "not_enough",
    "unsupported",
)


def classifier(*names: str, **more: Any) -> dict[str, Any]:
    """The configuration of a classifier with outputs of these names."""
    return {
        "architectures": ["DebertaV2ForSequenceClassification"],
        "model_type": "deberta-v2",
        "id2label": {str(place): name for place, name in enumerate(names)},
        **more,
    }


@pytest.mark.parametrize(
    ("name", "role"),
    [
        ("entailment", SUPPORTED),
        ("ENTAILMENT", SUPPORTED),
        ("SUPPORTS", SUPPORTED),
        ("Consistent", SUPPORTED),
        ("蕴含", SUPPORTED),
        ("contradiction", CONTRADICTED),
        ("REFUTES", CONTRADICTED),
        ("矛盾", CONTRADICTED),
        ("neutral", NOT_ENOUGH),
        ("NOT ENOUGH INFO", NOT_ENOUGH),
        ("not_enough_info", NOT_ENOUGH),
        ("中立", NOT_ENOUGH),
        ("not_entailment", UNSUPPORTED),
        ("Not-Supported", UNSUPPORTED),
        ("hallucinated", UNSUPPORTED),
        ("LABEL_0", None),
        ("positive", None),
    ],
)
def test_labels_are_known_in_any_spelling(name: str, role: LabelRole | None):
    assert label_role(name) == role


@pytest.mark.parametrize(
    ("names", "labels"),
    [
        (("contradiction", "entailment", "neutral"), (CONTRADICTED, SUPPORTED, NOT_ENOUGH)),
        (("ENTAILMENT", "NEUTRAL", "CONTRADICTION"), (SUPPORTED, NOT_ENOUGH, CONTRADICTED)),
        (("SUPPORTS", "REFUTES", "NOT ENOUGH INFO"), (SUPPORTED, CONTRADICTED, NOT_ENOUGH)),
        (("entailment", "not_entailment"), (SUPPORTED, UNSUPPORTED)),
        (("refuted", "supported"), (CONTRADICTED, SUPPORTED)),
    ],
)
def test_the_order_of_labels_is_the_configurations(
    names: tuple[str, ...], labels: tuple[LabelRole, ...]
):
    reading = reading_of(classifier(*names), "some/nli-model")
    assert (reading.format, reading.labels) == ("nli", labels)


def test_labels_are_in_the_order_of_their_numbers_not_of_the_file():
    config = classifier() | {"id2label": {"2": "c", "10": "k", "0": "a", "1": "b"}}
    assert labels_of(config) == ["a", "b", "c", "k"]
    assert labels_of({}) == ["LABEL_0", "LABEL_1"]
    assert labels_of({"num_labels": 3}) == ["LABEL_0", "LABEL_1", "LABEL_2"]


@pytest.mark.parametrize(
    ("name", "architecture", "expected", "labels"),
    [
        ("lytang/MiniCheck-RoBERTa-Large", "RobertaForSequenceClassification", "minicheck", True),
        ("yaxili96/FactCG-DeBERTa-v3-Large", "DebertaV2ForSequenceClassification", "factcg", True),
        ("lytang/MiniCheck-Flan-T5-Large", "T5ForConditionalGeneration", "minicheck_t5", False),
    ],
)
def test_published_fact_checkers_are_known_by_name(
    name: str, architecture: str, expected: JudgeFormat, labels: bool
):
    reading = reading_of({"architectures": [architecture]}, name)
    assert reading.format == expected
    assert reading.labels == ((UNSUPPORTED, SUPPORTED) if labels else ())


def test_hhem_is_known_by_its_kind():
    config = {
        "model_type": "HHEMv2",
        "architectures": ["HHEMv2ForSequenceClassification"],
        "auto_map": {"AutoConfig": "configuration_hhem_v2.HHEMv2Config"},
    }
    assert reading_of(config, "vectara/hallucination_evaluation_model").format == "hhem"


def test_models_of_tokens_have_one_class_for_what_is_supported():
    config = {"architectures": ["ModernBertForTokenClassification"]}
    lettuce = reading_of(config, "KRLabsOrg/lettucedect-base-modernbert-en-v1")
    assert (lettuce.format, lettuce.labels) == ("spans", (SUPPORTED, UNSUPPORTED))
    typed = config | {"id2label": {"0": "O", "1": "contradiction", "2": "fabrication"}}
    assert reading_of(typed, "x/typed").labels == (SUPPORTED, UNSUPPORTED, UNSUPPORTED)
    with pytest.raises(InvalidInputError, match="LABEL_0, LABEL_1"):
        reading_of(config, "x/tokens")


def test_what_somebody_says_counts_more_than_the_configuration():
    config = classifier("LABEL_0", "LABEL_1", "LABEL_2")
    with pytest.raises(InvalidInputError, match="does not say what its outputs mean"):
        reading_of(config, "x/nli")
    said = parse_labels("contradiction，entailment, neutral")
    assert reading_of(config, "x/nli", labels=said).labels == said
    assert said == (CONTRADICTED, SUPPORTED, NOT_ENOUGH)
    # A checker that was trained as MiniCheck and is not called so.
    two = classifier("LABEL_0", "LABEL_1")
    assert reading_of(two, "x/checker", "minicheck").labels == (UNSUPPORTED, SUPPORTED)
    # One output is taken only where it is said to be support: rerankers have one too.
    with pytest.raises(InvalidInputError, match="does not say"):
        reading_of(classifier("LABEL_0"), "x/reranker")
    assert reading_of(classifier("LABEL_0"), "x/one", labels=(SUPPORTED,)).labels == (SUPPORTED,)


@pytest.mark.parametrize(
    ("labels", "said"),
    [
        (("supported", "contradicted"), "has 3 outputs, but 2 labels"),
        (("contradicted", "not_enough", "unsupported"), "Exactly one output"),
        (("supported", "not_enough", "not_enough"), "no meaning may stand twice"),
    ],
)
def test_labels_that_make_no_judge_are_refused(labels: tuple[LabelRole, ...], said: str):
    with pytest.raises(InvalidInputError, match=said):
        reading_of(classifier("a", "b", "c"), "x/nli", labels=labels)


@pytest.mark.parametrize(
    ("config", "said"),
    [
        ({"architectures": ["LlamaForCausalLM"]}, "is no judge"),
        ({}, "no architecture"),
        ({"architectures": ["BertModel"]}, "is no judge"),
        ({"architectures": ["T5ForConditionalGeneration"]}, "Name its format"),
        (
            {
                "architectures": ["TheirOwnForSequenceClassification"],
                "auto_map": {"AutoModelForSequenceClassification": "modeling.TheirOwn"},
            },
            "code of its own repository",
        ),
        (classifier("positive", "negative"), "does not say what its outputs mean"),
    ],
)
def test_models_that_are_no_judges_are_refused(config: dict[str, Any], said: str):
    with pytest.raises(InvalidInputError, match=said):
        reading_of(config, "x/model")


def test_words_without_meaning_are_refused():
    with pytest.raises(InvalidInputError, match="positive, negative"):
        parse_labels("positive, entailment, negative")
    with pytest.raises(InvalidInputError, match="nli, minicheck, minicheck_t5, hhem"):
        parse_format("squad")
    assert parse_format(" NLI ") == "nli"
    assert parse_labels("") == ()


@pytest.mark.parametrize(
    ("config", "label", "card", "reads"),
    [
        ({"model_type": "xlm-roberta"}, "x/y", {}, True),
        ({"model_type": "deberta-v2"}, "MoritzLaurer/mDeBERTa-v3-base-xnli", {}, True),
        ({"model_type": "deberta-v2"}, "cross-encoder/nli-deberta-v3-base", {}, False),
        # A card says more than a kind or a name.
        ({"model_type": "xlm-roberta"}, "x/y", {"language": "en"}, False),
        ({"model_type": "bert"}, "x/y", {"language": ["en", "zh"]}, True),
        ({"model_type": "bert"}, "x/y", {"language": "multilingual"}, True),
    ],
)
def test_chinese_is_known_by_card_kind_or_name(
    config: dict[str, Any], label: str, card: dict[str, Any], reads: bool
):
    assert reads_chinese(config, label, card) is reads

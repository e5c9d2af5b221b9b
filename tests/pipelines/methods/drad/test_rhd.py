"""RHD against values worked out by hand from the paper's equations."""

from math import log

import pytest

from pipelines.base import Token
from pipelines.methods.base import Question
from pipelines.methods.drad import Drad
from pipelines.methods.drad.detection import (
    EntityReading,
    EntityVerdict,
    agreement,
    entropies_over,
    first_doubtful,
    headline,
    judge,
    pool,
    read_entities,
)
from pipelines.models.entries import truncated_entropy
from pipelines.run.findings import DetectorThresholds
from tests.scripted.bench import FixedRecognizer

NEW_YORK_CITY = (0.17, 0.93, 0.96)


@pytest.mark.parametrize(
    ("how", "expected"),
    [
        ("mean", 0.686667),  # (0.17 + 0.93 + 0.96) / 3
        ("geometric", 0.533418),  # (0.17 * 0.93 * 0.96) ** (1/3) = 0.151776 ** (1/3)
        ("min", 0.17),
        ("first", 0.17),
        ("product", 0.151776),
        ("max", 0.96),
        ("sum", 2.06),  # 0.17 + 0.93 + 0.96
    ],
)
def test_probability_poolings(how, expected):
    assert pool(NEW_YORK_CITY, how) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(
    ("how", "expected"), [("max", 3.1), ("mean", 1.2), ("first", 3.1)]
)  # (3.1 + 0.3 + 0.2) / 3 = 1.2
def test_entropy_poolings(how, expected):
    assert pool((3.1, 0.3, 0.2), how) == pytest.approx(expected)


def test_nothing_measured_pools_to_nothing():
    assert pool((), "mean") is None
    assert pool((), "max") is None


def test_a_zero_probability_makes_the_geometric_mean_zero():
    assert pool((0.0, 1.0), "geometric") == 0.0


def reading(
    probabilities: tuple[float, ...] = (0.5,),
    entropies: tuple[float, ...] = (1.0,),
    **fields: object,
) -> EntityReading:
    values = {
        "text": "Hope",
        "start": 10,
        "end": 14,
        "label": "GPE",
        "first": 3,
        "stop": 4,
        "sentence": 0,
        "sentence_start": 0,
        "probabilities": probabilities,
        "entropies": entropies,
    }
    return EntityReading.model_validate(values | fields)


def judged(
    subject: EntityReading, theta_1: float, theta_2: float | None = None, **settings: object
) -> EntityVerdict:
    thresholds = DetectorThresholds(theta_1=theta_1, theta_2=theta_2)
    return judge(subject, thresholds, Drad().settings(settings))


@pytest.mark.parametrize(
    ("probability", "entropy", "improbable", "uncertain"),
    [
        (0.59, 2.0, True, False),
        (0.60, 2.0, False, False),  # on the threshold is not below it
        (0.61, 2.51, False, True),
        (0.61, 2.50, False, False),  # on the threshold is not above it
        (0.10, 9.00, True, True),
    ],
)
def test_either_threshold_makes_an_entity_doubtful(probability, entropy, improbable, uncertain):
    verdict = judged(reading((probability,), (entropy,)), 0.60, 2.50)
    assert (verdict.improbable, verdict.uncertain) == (improbable, uncertain)
    assert verdict.doubtful == (improbable or uncertain)


def test_without_theta_2_or_without_entropies_only_probability_counts():
    assert not judged(reading((0.5,), (99.0,)), 0.4).doubtful
    assert not judged(reading((0.5,), ()), 0.4, 1.0).doubtful


def test_an_entity_without_numbers_is_not_doubtful():
    verdict = judged(reading((), ()), 0.6, 1.0)
    assert (verdict.probability, verdict.entropy, verdict.doubtful) == (None, None, False)


def test_scores_carry_their_threshold_side_and_inputs():
    subject = reading(NEW_YORK_CITY, (3.1, 0.3, 0.2))
    probability, entropy = judged(subject, 0.7, 2.0).scores()
    assert (probability.threshold, probability.bad, probability.flagged) == (0.7, "below", True)
    assert probability.inputs == NEW_YORK_CITY
    assert (entropy.threshold, entropy.bad, entropy.flagged) == (2.0, "above", True)
    assert entropy.value == 3.1


def test_a_sum_has_no_upper_end():
    verdict = judged(reading(NEW_YORK_CITY), 0.7, pooling="sum")
    probability, _ = verdict.scores(("a", "b"))
    assert (probability.value, probability.high) == (pytest.approx(2.06), None)
    assert (probability.formula, probability.behind) == ("drad.probability.sum", ("a", "b"))


def test_the_first_doubtful_entity_decides_else_the_least_probable():
    readings = [
        reading((0.9,), start=0, repeats=True),
        reading((0.7,), start=5),
        reading((0.4,), start=10),
        reading((0.3,), start=15),
        reading((), start=20),
    ]

    def decides(theta_1: float, *, skip_repeats: bool = False) -> int | None:
        found = headline([judged(one, theta_1, skip_repeats=skip_repeats) for one in readings])
        return None if found is None else readings.index(found.reading)

    assert decides(0.6) == 2
    assert decides(0.2) == 3
    assert (decides(1.0), decides(1.0, skip_repeats=True)) == (0, 1)
    assert headline([]) is None


@pytest.mark.parametrize(
    ("counts", "words"), [([], ""), ([5, 5], "5"), ([10, 11], "10"), ([None], "full")]
)
def test_what_entropies_are_computed_over(counts: list[int | None], words: str):
    assert entropies_over(counts) == words


@pytest.mark.parametrize(
    ("entity", "texts", "share"),
    [
        ("Hope", ["Born in Hope.", "hope, Arkansas", "Hopeful people", "Little Rock"], 0.5),
        ("New  York", ["new york", "New York City", "York"], 2 / 3),
        ("1946", ["in 1946", "in 19461", "in 1946."], 2 / 3),
        ("霍普", ["他出生在霍普。", "出生在纽约"], 0.5),
        ("\uff11\uff19\uff14\uff16", ["in 1946"], 1.0),  # full-width digits
        ("a.b", ["a.b", "axb"], 0.5),
    ],
)
def test_agreement_is_the_share_of_samples_with_the_whole_entity(entity, texts, share):
    assert agreement(entity, texts) == pytest.approx(share)


def test_the_first_doubtful_entity_skips_verified_sentences_and_repeats():
    readings = [
        reading((0.1,), sentence_start=0),
        reading((0.9,), sentence_start=20),
        reading((0.2,), sentence_start=20, repeats=True),
        reading((0.3,), sentence_start=40),
    ]

    def first(after: int, skip_repeats: bool) -> int | None:
        verdicts = [judged(one, 0.6, skip_repeats=skip_repeats) for one in readings]
        found = first_doubtful(verdicts, after=after)
        return None if found is None else readings.index(found.reading)

    assert first(-1, False) == 0
    assert first(0, False) == 2
    assert first(0, True) == 3
    assert first(40, False) is None


def tokens_of(*pieces: tuple[str, float]) -> list[Token]:
    tokens, at = [], 0
    for text, probability in pieces:
        tokens.append(
            Token(
                text=text, start=at, end=at + len(text), logprob=log(probability), entropy=at / 10
            )
        )
        at += len(text)
    return tokens


def test_entities_read_the_tokens_they_cover_in_english():
    tokens = tokens_of(
        ("He", 0.9), (" lived", 0.8), (" in", 0.7), (" New", 0.17), (" York", 0.93), (".", 0.9),
        (" New", 0.5), (" York", 0.6), (" is", 0.9), (" big", 0.4), (".", 0.9),
    )  # fmt: skip
    text = "".join(token.text for token in tokens)
    question = Question(text="Is York big?", language="en")
    first, second = read_entities(
        text, tokens, question, FixedRecognizer("New York").recognize(text)
    )
    assert (first.first, first.stop) == (3, 5)
    assert first.probabilities == pytest.approx((0.17, 0.93))
    assert first.entropies == pytest.approx((1.1, 1.5))
    assert (first.sentence, first.sentence_start) == (0, 0)
    assert (second.first, second.stop) == (6, 8)
    assert (second.sentence, second.sentence_start) == (1, text.index("New York is"))


def test_entities_read_every_token_of_a_chinese_character():
    # 克林顿生于霍普。 with 霍 written as two byte-level tokens that share the character.
    spans = [("克林顿", 0, 3), ("生于", 3, 5), ("\ufffd", 5, 6), ("\ufffd", 5, 6), ("普", 6, 7)]
    probabilities = (0.9, 0.8, 0.2, 0.9, 0.7)
    tokens = [
        Token(text=text, start=start, end=end, logprob=log(p), entropy=0.0)
        for (text, start, end), p in zip(spans, probabilities, strict=True)
    ]
    question = Question(text="克林顿出生在哪里？", language="zh")
    text = "克林顿生于霍普。"
    (entity,) = read_entities(text, tokens, question, FixedRecognizer("霍普").recognize(text))
    assert (entity.first, entity.stop) == (2, 5)
    # 霍 is one outcome, with 0.2 times 0.9.
    assert entity.probabilities == pytest.approx((0.18, 0.7))
    assert pool(entity.probabilities, "mean") == pytest.approx(0.44)


def test_a_truncated_entropy_counts_the_tail_as_one_outcome():
    # p = 0.5, 0.25 and a tail of 0.25: -0.5 ln 0.5 - 2 * 0.25 ln 0.25 = 1.5 ln 2
    entropy, tail = truncated_entropy([log(0.5), log(0.25)])
    assert tail == pytest.approx(0.25)
    assert entropy == pytest.approx(1.5 * log(2))


def test_a_truncated_entropy_never_exceeds_the_whole_one():
    whole = [0.5, 0.2, 0.2, 0.1]
    entropy, tail = truncated_entropy([log(p) for p in whole])
    assert tail == pytest.approx(0.0, abs=1e-12)
    cut, rest = truncated_entropy([log(p) for p in whole[:2]])
    assert rest == pytest.approx(0.3)
    assert cut < entropy
    assert truncated_entropy([0.0]) == (0.0, 0.0)

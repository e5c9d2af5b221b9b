"""Judges of one number, worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from math import exp, log

import numpy as np
import pytest
from numpy.typing import NDArray

from pipelines.base import Language
from pipelines.models.base import Claim
from pipelines.models.judges import base
from pipelines.models.judges.base import (
    OVERLAP_NAME,
    SIMILARITY_NAME,
    OverlapJudge,
    SimilarityJudge,
)

HOPE = "Bill Clinton was born in Hope. He won in 1992."


@pytest.fixture(autouse=True)
def curves(monkeypatch: pytest.MonkeyPatch) -> None:
    curve = {"offset": -2.0, "slope": 4.0}
    curves = {OVERLAP_NAME: curve, SIMILARITY_NAME: curve}
    monkeypatch.setattr(base, "calibration", lambda name: {"curves": curves})


class Directions:
    """Texts about Hope point one way, all others another."""

    def __init__(self) -> None:
        self.name = "directions"
        self.languages: frozenset[Language] = frozenset({"en"})

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.array([[1, 0] if "Hope" in text else [0.6, 0.8] for text in texts], np.float32)


def test_overlap_is_the_share_of_words_that_count():
    judge = OverlapJudge("one")
    claim = Claim(statement="Clinton was born in Little Rock.", evidence=(HOPE,))
    # clinton, born, little, rock; "was" and "in" are small words.
    assert judge.numbers([claim]) == pytest.approx([2 / 4])
    (reading,) = judge.read([claim])
    assert reading == pytest.approx((0.5, 0.0, 0.5))
    # 1 / (1 + exp(-(ln 3 - 2 * 0.5 * ln 3))) = 1/2 again, and 3/4 where no word is found.
    judge.use_curve(log(3), -2 * log(3))
    assert judge.read([claim])[0].supported == pytest.approx(0.5)
    (reading,) = judge.read([Claim(statement="Chelsea sings.", evidence=(HOPE,))])
    assert reading == pytest.approx((0.75, 0.0, 0.25))


def test_chinese_is_compared_by_pairs_of_characters():
    claim = Claim(statement="他生于希望镇", evidence=("克林顿生于希望镇。",))
    # 他生 生于 于希 希望 望镇: all but the first.
    assert OverlapJudge("one").numbers([claim]) == pytest.approx([4 / 5])


def test_similarity_is_that_of_the_nearest_sentence():
    judge = SimilarityJudge(Directions(), "one")
    claim = Claim(statement="He won.", evidence=(HOPE,), question="Who?")
    assert judge.numbers([claim]) == pytest.approx([1.0])
    (reading,) = judge.read([Claim(statement="Hope.", evidence=("He won in 1992.",))])
    # The cosine is 0.6: 1 / (1 + exp(2 - 4 * 0.6)).
    assert reading.supported == pytest.approx(1 / (1 + exp(-0.4)))
    assert reading.contradicted == 0.0


@pytest.mark.parametrize("evidence", [(), ("",), ("  ",)])
def test_without_evidence_nothing_is_decided(evidence: tuple[str, ...]):
    claim = Claim(statement="He won.", evidence=evidence)
    assert OverlapJudge("one").read([claim]) == [(0.0, 0.0, 1.0)]

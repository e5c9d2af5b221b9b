"""Packed scores are the scores that they were made of, and take little memory."""

from __future__ import annotations

import tracemalloc
from random import Random

import numpy as np
import pytest

from pipelines.evaluation.results import packed
from pipelines.evaluation.results.packed import ItemScore, PackedScores
from tests.pipelines.evaluation.results.evaluations import score

ODD = (
    ItemScore(item="q0", method="a"),
    # None is not what is absent, and names keep their order.
    ItemScore(
        item="q0", method="b", group="g", repeat=2**40, run="r", values={"f1": None, "em": 0.5}
    ),
    ItemScore(
        item="q1", method="a", values={"em": -0.0, "f1": 1e-300}, original_values={"em": None}
    ),
    ItemScore(
        item="q1", method="b", cost={"calls": 3.0}, error="timeout", flags=("empty", "abstained")
    ),
    ItemScore(item="q2", method="a", spans={"exact": (1, 2, 3), "characters": (0, 0, 7)}),
    ItemScore(item="q2", method="b", bleu=tuple(range(10)), answer="巴黎 \x00 \ud800", original=""),
    ItemScore(item="q3", method="a", answer="Paris 𝒳", original="Paris 𝒳", values={"f1": 1.0}),
    ItemScore(item="q3", method="b", group="h", answer="Rome", original="Paris", bleu=(1, 2)),
)  # fmt: skip
ORDERS = [(*one.values, *one.spans) for one in ODD]


@pytest.mark.parametrize("part", [1, 3, 500])
def test_they_are_the_scores_that_they_were_made_of(
    part: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(packed, "_PART", part)
    found = PackedScores.of(iter(ODD))
    assert found == ODD
    assert [(*one.values, *one.spans) for one in found] == ORDERS
    assert [one.model_dump_json() for one in found if one.item != "q2"] == [
        one.model_dump_json() for one in ODD if one.item != "q2"
    ]
    assert (len(found), found[-1], found[2:5]) == (8, ODD[-1], ODD[2:5])
    assert found[1].values["f1"] is None
    assert type(found[4].spans["exact"][0]) is int
    assert PackedScores.of(found) is found
    assert PackedScores.joined([found[4:], found[:4]]) == (*ODD[4:], *ODD[:4])
    assert found.taken(np.array([7, 1, 7])) == (ODD[7], ODD[1], ODD[7])
    assert PackedScores.read(map(dict, found)) == ODD
    assert found != ODD[:-1]
    with pytest.raises(IndexError):
        found[8]


def test_columns_hold_what_the_scores_say() -> None:
    found = PackedScores.of(ODD)
    em = [np.nan, 0.5, 0, *[np.nan] * 5]
    assert found.column("values", "em").tolist() == pytest.approx(em, nan_ok=True)
    assert np.isnan(found.column("values", "no such metric")).all()
    assert found.names("values") == {"f1", "em"}
    assert found.names("original_values") == {"em"}
    assert np.flatnonzero(found.failed).tolist() == [3]
    assert np.flatnonzero(found.abstained).tolist() == [3]
    assert np.flatnonzero(found.rewritten).tolist() == [5, 7]
    assert found.answer_words[-2:].tolist() == [2, 1]
    assert found.items.used() == ["q0", "q1", "q2", "q3"]
    assert found[3:].taken(np.array([3, 0])).items.used() == ["q3", "q1"]
    assert found.group_of() == {"q0": "g", "q3": "h"}


def test_values_are_added_to_some() -> None:
    found = PackedScores.of(ODD[:3]).with_values(np.array([2, 0]), [{"em": 1.0}, {"judged": None}])
    assert [one.values for one in found] == [
        {"judged": None}, {"f1": None, "em": 0.5}, {"em": 1.0, "f1": 1e-300},
    ]  # fmt: skip
    assert [*found[2].values] == ["em", "f1"]


def test_other_names_and_no_mixed_metric() -> None:
    found = PackedScores.of(ODD[:3]).joining(str.upper, {"q0": "g", "q1": "x"}, {"f1"})
    assert [(one.method, one.group) for one in found] == [("A", "g"), ("B", "g"), ("A", "x")]
    assert [one.values for one in found] == [{}, {"em": 0.5}, {"em": -0.0}]
    assert found.names("values") == {"em"}


def test_a_score_takes_less_than_a_kilobyte() -> None:
    chance, names = Random(0), [f"metric {number}" for number in range(12)]

    def made(number: int) -> ItemScore:
        numbers = {name: chance.random() for name in names}
        text = f"{number} ".ljust(60, "x")
        return score(
            f"q{number // 3}", str(number % 3), 1, run=f"{number:032}", values=numbers,
            original_values={name: chance.random() for name in names}, answer=text,
            original=f"{text}.", cost={name: chance.random() for name in names[:6]},
            bleu=tuple(range(10)),
        )  # fmt: skip

    count = 4_000
    tracemalloc.start()
    try:
        found = PackedScores.of(map(made, range(count)))
        held = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    assert len(found) == count
    assert held / count < 1_000

"""Calibration by kind of claim and length, on scores made for it."""

from __future__ import annotations

from math import exp, log
from random import Random

import pytest

from pipelines.models.judges.trained import Lengths, Read, TemperatureScaling, combined
from research.judge.calibrating import (
    best_calibration,
    calibrated,
    pair_weights,
    with_all_kinds,
)
from research.samples.pairs import TrainingPair
from tests.research.judge.examples import pair


def read(odds: float, evidence: int = 128, statement: int = 16) -> Read:
    """Scores whose log-odds of support are `odds`, the rest being silence."""
    return Read([(odds, -30.0, 0.0)], Lengths(statement, evidence), [])


def drawn(
    shares: dict[float, float], number: int = 400, **more
) -> list[tuple[TrainingPair, float]]:
    """Pairs at these log-odds, of which the given share is supported."""
    found: list[tuple[TrainingPair, float]] = []
    for odds, share in shares.items():
        for at in range(number):
            label = "supported" if at < round(share * number) else "unsupported"
            found.append((pair(label, **more), odds))
    return found


def said(scaling: TemperatureScaling, one: Read) -> float:
    return combined(one.scores, scaling, one.lengths).supported


def test_what_is_too_sure_becomes_less_sure():
    # At log-odds of 4 and -4 nine in ten are right: that is ln 9, about 2.2.
    pairs = drawn({4.0: 0.9, -4.0: 0.1})
    reads = [read(odds) for _, odds in pairs]
    scaling = best_calibration([one for one, _ in pairs], reads)
    assert said(scaling, read(4.0)) == pytest.approx(0.9, abs=0.02)
    assert said(scaling, read(-4.0)) == pytest.approx(0.1, abs=0.02)
    assert scaling.longer == pytest.approx(0.0, abs=0.05)


def test_the_length_of_the_evidence_is_taken_into_account():
    # At the same scores, long evidence is right more seldom: log-odds are lower by ln 4.
    short, long = drawn({0.0: 0.8}), drawn({0.0: 0.5})
    pairs = [one for one, _ in (*short, *long)]
    reads = [read(0.0, 128) for _ in short] + [read(0.0, 512) for _ in long]
    scaling = best_calibration(pairs, reads, balance=0.0)
    assert scaling.longer == pytest.approx(-log(4) / 2, abs=0.12)
    assert said(scaling, read(0.0, 128)) == pytest.approx(0.8, abs=0.03)
    assert said(scaling, read(0.0, 512)) == pytest.approx(0.5, abs=0.03)


def test_the_length_of_the_statement_is_taken_into_account():
    few, many = drawn({0.0: 0.4}), drawn({0.0: 0.7})
    pairs = [one for one, _ in (*few, *many)]
    reads = [read(0.0, statement=8) for _ in few] + [read(0.0, statement=32) for _ in many]
    scaling = best_calibration(pairs, reads, balance=0.0)
    assert said(scaling, read(0.0, statement=8)) == pytest.approx(0.4, abs=0.03)
    assert said(scaling, read(0.0, statement=32)) == pytest.approx(0.7, abs=0.03)


@pytest.mark.parametrize(("balance", "share"), [(0.0, 0.2), (1.0, 0.5)])
def test_the_balance_says_how_far_the_rare_side_is_weighted_up(balance: float, share: float):
    pairs = drawn({0.0: 0.2})
    reads = [read(odds) for _, odds in pairs]
    scaling = best_calibration([one for one, _ in pairs], reads, balance=balance)
    assert said(scaling, read(0.0)) == pytest.approx(share, abs=0.02)


def test_makes_count_alike_and_so_do_sides_as_far_as_is_wanted():
    pairs = [
        pair(make="a"),
        pair("unsupported", make="a"),
        pair("unsupported", make="a"),
        pair(make="b"),
    ]
    assert pair_weights(pairs, 0.0).tolist() == pytest.approx([1 / 3, 1 / 3, 1 / 3, 1])
    # Of make "a" both sides weigh a half; "b" has one side, which weighs a half by itself.
    assert pair_weights(pairs, 1.0).tolist() == pytest.approx([1 / 2, 1 / 4, 1 / 4, 1 / 2])


def test_the_lean_is_that_of_pairs_that_tell_contradiction_from_silence():
    # Contradictions at log-odds of 2 towards contradicted, silence at 0: halfway is between them,
    # however many there are of each.
    pairs = [pair("contradicted")] * 30 + [pair("not_enough")] * 10
    reads = [Read([(-5.0, odds, 0.0)], Lengths(16, 128), []) for odds in [2.0] * 30 + [0.0] * 10]
    scaling = best_calibration([*pairs, pair()], [*reads, read(5.0)])
    assert scaling.lean * scaling.temperature == pytest.approx(-1.0, abs=0.03)
    unknown = best_calibration([pair(), pair("unsupported")], [read(1.0), read(-1.0)])
    assert unknown.lean == 0.0


class Reader:
    """Says of a statement what its last word says."""

    def looked_at(self, claims) -> list[Read]:
        return [read(float(one.statement.split()[-1])) for one in claims]


def test_every_kind_of_claim_is_calibrated_on_its_own_makes():
    random = Random(0)

    def made(make: str, slope: float, **more) -> list[TrainingPair]:
        pairs: list[TrainingPair] = []
        for number in range(400):
            odds = random.uniform(-3, 3)
            right = random.random() < 1 / (1 + exp(-slope * odds))
            label = "supported" if right else "contradicted"
            statement = f"It is {number} {odds}"
            said = {"statement": statement, "evidence": statement}
            pairs.append(pair(label, make=make, **said, **more))
        return pairs

    kept = made("hard", 1.0) + made("qa", 2.0, question="What?")
    kept += made("far", 0.1) + made("answers", 0.5, question="What?", relation="same")
    found = calibrated(Reader(), kept)  # pyright: ignore[reportArgumentType]
    assert set(found) == {"statements", "answers", "same"}
    # The slope is one divided by the temperature; other makes count in none.
    assert found["statements"]["temperature"] == pytest.approx(1.0, abs=0.25)
    assert found["answers"]["temperature"] == pytest.approx(0.5, abs=0.15)
    assert found["same"]["temperature"] == pytest.approx(2.0, abs=0.6)
    assert found["statements"]["pairs"] == 400
    assert found["statements"]["ece"] < 0.08
    assert found["statements"]["balanced_accuracy"] <= found["statements"]["best"]


def test_two_answers_are_calibrated_as_they_are_compared_in_both_directions():
    # In one direction all look alike, in the other what differs is told, at log-odds of ±4: at a
    # mean of ±2, and nine in ten are right, which is ln 9.
    pairs = drawn({4.0: 0.9, -4.0: 0.1})
    there, back = [read(0.0) for _ in pairs], [read(odds) for _, odds in pairs]
    scaling = best_calibration([one for one, _ in pairs], there, back)
    assert scaling.temperature == pytest.approx(2 / log(9), abs=0.03)

    class BothWays:
        """Knows nothing of short answers, and of the other answer what it says."""

        def looked_at(self, claims) -> list[Read]:
            told = [one.statement.partition("odds ")[2] for one in claims]
            return [read(float(odds or 0)) for odds in told]

    kept = [
        pair(
            one.label,
            make="answers",
            statement=f"No. {number}",
            evidence=f"odds {odds}",
            question="What?",
            relation="same",
        )
        for number, (one, odds) in enumerate(pairs)
    ]
    found = calibrated(BothWays(), kept)["same"]  # pyright: ignore[reportArgumentType]
    assert found["temperature"] == scaling.temperature
    assert found["balanced_accuracy"] == pytest.approx(0.9)
    assert found["ece"] < 0.02


def test_a_kind_without_pairs_is_as_a_related_one():
    one = {"temperature": 2.0}
    assert with_all_kinds({"same": one}) == {"statements": one, "answers": one, "same": one}
    assert with_all_kinds({"answers": one})["statements"] is one
    assert with_all_kinds({})["statements"]["temperature"] == 1.0


def test_lengths_count_for_nothing_where_two_answers_are_compared():
    # Long pairs are all the same, short ones never.
    pairs = drawn({1.0: 1.0}) + drawn({-1.0: 0.0})
    reads = [read(0.0, 1024 if one.supported else 64, 64) for one, _ in pairs]
    examples = [one for one, _ in pairs]
    alone, both = best_calibration(examples, reads), best_calibration(examples, reads, reads)
    assert alone.longer > 0.5
    assert (both.longer, both.wordier) == (0.0, 0.0)

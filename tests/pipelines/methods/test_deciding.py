"""The one rule from parts to a verdict on the whole."""

from itertools import product

import pytest

from pipelines.methods.deciding import PartCounts, decide, withheld


@pytest.mark.parametrize(
    ("counts", "verdict", "share"),
    [
        (PartCounts(supported=3), "supported", 1.0),
        (PartCounts(supported=3, contradicted=1), "contradicted", 0.75),
        (PartCounts(supported=1, not_enough=1), "not_enough", 0.5),
        (PartCounts(supported=1, contradicted=1, not_enough=1, unchecked=1), "contradicted", 0.25),
        (PartCounts(supported=2, unchecked=1), "unchecked", 2 / 3),
        (PartCounts(supported=2, dropped=2), "unchecked", 0.5),
        (PartCounts(not_enough=1, unchecked=1), "not_enough", 0.0),
        (PartCounts(unchecked=2), "unchecked", None),
        (PartCounts(), "unchecked", None),
    ],
)
def test_verdict_and_share(counts: PartCounts, verdict: str, share: float | None) -> None:
    decision = decide(counts)
    assert decision.verdict == verdict
    assert decision.share == share


def test_a_lower_threshold_forgives_contradictions_but_nothing_unjudged() -> None:
    assert decide(PartCounts(supported=3, contradicted=1), least=0.75).verdict == "supported"
    assert decide(PartCounts(supported=3, contradicted=1), least=0.8).verdict == "contradicted"
    assert decide(PartCounts(supported=3, dropped=1), least=0.5).verdict == "unchecked"
    assert decide(PartCounts(contradicted=1), least=0.0).verdict == "contradicted"


def test_remarks_name_what_was_not_judged() -> None:
    assert decide(PartCounts(supported=1)).flags == ()
    assert decide(PartCounts(supported=1, unchecked=1)).flags == ("checks_incomplete",)
    assert decide(PartCounts(supported=1, dropped=1)).flags == ("parts_dropped",)
    assert decide(PartCounts(unchecked=1, dropped=1)).flags == ("not_checked",)
    assert decide(PartCounts()).flags == ()


def test_supported_means_that_every_part_is() -> None:
    for counts in product(range(3), repeat=5):
        parts = PartCounts(*counts)
        decision = decide(parts)
        everything = bool(parts.supported) and parts.supported == parts.parts
        assert (decision.verdict == "supported") == everything
        assert (decision.share == 1.0) == everything
        assert bool(decision.flags) == bool(parts.missing)


def test_counts_of_verdicts() -> None:
    found = PartCounts.of(["supported", "confident", "doubtful", "not_enough"], dropped=1)
    assert found == PartCounts(supported=2, contradicted=1, not_enough=1, dropped=1)
    assert PartCounts.of(["unchecked", "contradicted"]) == PartCounts(contradicted=1, unchecked=1)


def test_a_score_over_the_judged_parts_does_not_speak_for_the_others() -> None:
    incomplete = PartCounts(supported=2, unchecked=1)
    assert withheld("confident", incomplete) == "unchecked"
    assert withheld("doubtful", incomplete) == "doubtful"
    assert withheld("confident", PartCounts(supported=2)) == "confident"

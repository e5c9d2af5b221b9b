"""Training pairs of claims that people labelled."""

from __future__ import annotations

from random import Random

from research.judge.labelled import cited_pairs, hard_pairs, symmetric_pairs
from research.samples.claims import LabelledClaim

CLAIM = LabelledClaim(
    "It is old.",
    ("It was built in 1203.",),
    "contradicted",
    "hard-0",
    essential=("It was built in 1203.",),
    beside=("It has a tower.", "It is of stone."),
)


def test_a_hard_claim_is_also_seen_on_its_page_and_without_its_evidence():
    alone, around, without = hard_pairs([CLAIM], Random(0))
    assert (alone.evidence, alone.label) == ("It was built in 1203.", "contradicted")
    assert around.label == "contradicted"
    assert "It was built in 1203." in around.evidence
    assert "It has a tower." in around.evidence
    assert (without.label, without.make) == ("not_enough", "hard-foreign")
    assert "1203" not in without.evidence
    assert {pair.group for pair in (alone, around, without)} == {"hard-0"}


def test_without_a_page_there_is_the_claim_with_its_evidence():
    assert len(list(hard_pairs([CLAIM._replace(beside=())], Random(0)))) == 1


def test_symmetric_claims_keep_their_label_beside_foreign_sentences():
    claims = [
        LabelledClaim(f"Claim {n} .", (f"Evidence {n} .",), "supported", f"symmetric-{n}")
        for n in range(40)
    ]
    pairs = list(symmetric_pairs(claims, Random(0)))
    foreign = [pair for pair in pairs if pair.make == "symmetric-foreign"]
    own = [pair for pair in pairs if pair.make == "symmetric"]
    assert {pair.label for pair in foreign} == {"not_enough"}
    for pair in own:
        number = pair.group.removeprefix("symmetric-")
        assert f"Evidence {number}" in pair.evidence
        assert pair.label == "supported"
    for pair in foreign:
        assert f"Evidence {pair.group.removeprefix('symmetric-')} " not in pair.evidence
    # Half as published, half as people write.
    assert 10 < sum(pair.statement.endswith(" .") for pair in pairs) < len(pairs) - 10


def test_a_cited_page_is_read_whole_in_short_and_without_what_it_needs():
    page = tuple(f"Sentence {n}." for n in range(60))
    claim = LabelledClaim(
        "It is old.",
        page,
        "supported",
        "cited-0",
        essential=("Sentence 7.",),
        beside=tuple(s for s in page if s != "Sentence 7."),
    )
    whole, short, without = cited_pairs([claim], Random(0))
    assert whole.evidence == " ".join(page)
    assert "Sentence 7." in short.evidence
    assert len(short.evidence) < len(whole.evidence)
    assert (without.label, "Sentence 7." in without.evidence) == ("not_enough", False)
    # What a page does not fully support may be in the rest of it.
    assert len(list(cited_pairs([claim._replace(label="unsupported")], Random(0)))) == 2

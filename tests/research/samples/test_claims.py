"""Claims that people labelled, and the groups of those that share a text."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.errors import InvalidInputError
from research.samples.claims import (
    cited_claims,
    climate_claims,
    hard_claims,
    plain,
    stance_groups,
    symmetric_claims,
)


def written(path: Path, *records: dict) -> Path:
    path.write_text("".join(f"{json.dumps(record)}\n" for record in records), encoding="utf-8")
    return path


def hard(claim: str, *gold: str, label: str = "SUPPORTS", other: tuple[str, ...] = ()) -> dict:
    return {"claim": claim, "label": label, "gold_evidence": gold, "other_evidence": other}


LONG = "The harbour of the town was built by the monks of the island in the year 1203."


def test_claims_with_a_sentence_in_common_are_one_group(tmp_path: Path):
    path = written(
        tmp_path / "hard.jsonl",
        hard("One.", LONG),
        hard("Two.", "Nothing of it.", other=(LONG, ", a piece of a sentence.")),
        hard("Three.", "A short one."),
        hard("Four.", "A short one.", label="REFUTES"),
    )
    even, odd = hard_claims(path, 0), hard_claims(path, 1)
    assert [one.claim for one in even] == ["One.", "Three."]
    assert even[0].group == odd[0].group == "hard-0"
    # Short sentences are common, and join nothing.
    assert even[1].group != odd[1].group
    assert odd[1].label == "contradicted"
    # Pieces of sentences are no evidence.
    assert odd[0].beside == (LONG,)


def test_every_claim_and_evidence_of_the_symmetric_data_joins_its_group(tmp_path: Path):
    rows = [("a", "x"), ("b", "y"), ("a", "y"), ("b", "z"), ("c", "w")]
    path = written(
        tmp_path / "symmetric.jsonl",
        *({"claim": c, "evidence": e, "label": "SUPPORTS"} for c, e in rows),
    )
    found = symmetric_claims(path, 0) + symmetric_claims(path, 1)
    groups = {(one.claim, one.evidence[0]): one.group for one in found}
    assert set(groups.values()) == {"symmetric-0", "symmetric-4"}
    assert groups["c", "w"] == "symmetric-4"


def test_pages_are_told_apart_from_what_they_need(tmp_path: Path):
    record = {
        "claim": "It is old.",
        "label": "partially_supported",
        "evidence": ["Skip to content", "It was built in 1203.", ""],
        "supporting_sentences": [[1], [1, 2]],
    }
    (one,) = cited_claims(written(tmp_path / "cited.jsonl", record), 0)
    assert one.label == "unsupported"
    assert one.evidence == ("Skip to content", "It was built in 1203.")
    assert one.essential == ("It was built in 1203.",)
    assert one.beside == ("Skip to content",)


def test_claims_on_which_annotators_disagree_are_left_out(tmp_path: Path):
    def climate(label: str) -> dict:
        return {"claim": label, "claim_label": label, "evidences": [{"evidence": "It is warm."}]}

    labels = ("DISPUTED", "SUPPORTS", "REFUTES", "NOT_ENOUGH_INFO")
    path = written(tmp_path / "climate.jsonl", *map(climate, labels))
    assert [one.label for one in climate_claims(path, 0)] == ["contradicted"]
    assert [one.label for one in climate_claims(path, 1)] == ["supported", "not_enough"]


def test_claims_on_one_page_are_one_group(tmp_path: Path):
    rows = [("a", "page one"), ("b", "page one"), ("c", "page two")]
    path = written(
        tmp_path / "stances.jsonl",
        *({"claim": c, "evidence": e, "stance": "irrelevant"} for c, e in rows),
    )
    assert stance_groups(path) == {"a": "stance-0", "b": "stance-0", "c": "stance-2"}


def test_without_a_file_there_are_no_claims():
    assert hard_claims(None, 0) == symmetric_claims(None, 0) == cited_claims(None, 0) == []
    assert stance_groups(None) == {}


def test_a_label_that_is_not_known_is_named(tmp_path: Path):
    path = written(tmp_path / "hard.jsonl", hard("One.", LONG, label="MAYBE"))
    with pytest.raises(InvalidInputError, match="label"):
        hard_claims(path, 0)


def test_texts_of_the_symmetric_data_are_written_as_people_write():
    said = "Cruz -LRB- born 1974 -RRB- has modelled for Mango , L'Oréal and others . He did n't ."
    assert plain(said) == "Cruz (born 1974) has modelled for Mango, L'Oréal and others. He didn't."

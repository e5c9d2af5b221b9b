"""Measuring entities: figures worked out by hand, and floors on the labelled sentences."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets.records import read_records
from pipelines.text import Entity, EntityRecognizer
from pipelines.text.entity_rules import Label
from research.measure.__main__ import main
from research.measure.entities import EntityMatches, LabelledSentence, evaluate

DATA = Path(__file__).parents[2] / "data" / "entities"


class Fixed(EntityRecognizer):
    """Answers every text with the same entities."""

    def recognize(self, text: str, language: object = None) -> list[Entity]:
        return [
            Entity(text=text[:4], start=0, end=4, label="PERSON"),
            Entity(text=text[5:9], start=5, end=9, label="GPE"),
        ]


def test_scores_by_hand() -> None:
    sentences = [
        # One span right with a wrong label, one spurious, two missed.
        LabelledSentence(
            text="Rome, 1999 and so on", entities=((0, 4, "GPE"), (6, 10, "DATE"), (11, 14, "ORG"))
        ),
        # Both right.
        LabelledSentence(text="Anna Bonn", entities=((0, 4, "PERSON"), (5, 9, "GPE"))),
    ]
    spans, labelled = evaluate(Fixed(), sentences)
    assert spans.precision == pytest.approx(3 / 4)
    assert spans.recall == pytest.approx(3 / 5)
    assert spans.f1 == pytest.approx(2 * 0.75 * 0.6 / 1.35)
    assert labelled.precision == pytest.approx(2 / 4)
    assert labelled.recall == pytest.approx(2 / 5)
    assert labelled.f1 == pytest.approx(4 / 9)


def test_nothing_to_find_and_nothing_found_is_perfect() -> None:
    nothing = EntityMatches(set(), set())
    assert (nothing.precision, nothing.recall, nothing.f1) == (1.0, 1.0, 1.0)
    assert EntityMatches({(0, 0, 4)}, set()).f1 == 0.0


# A little under what the rules reach; spans 0.978 and 0.957, with labels 0.907 and 0.957.
@pytest.mark.parametrize(
    ("language", "split", "span_floor", "label_floor"),
    [
        ("en", "dev", 0.97, 0.95),
        ("en", "test", 0.95, 0.87),
        ("zh", "dev", 0.97, 0.95),
        ("zh", "test", 0.93, 0.92),
    ],
)
def test_rules_reach_their_floor(
    language: str, split: str, span_floor: float, label_floor: float
) -> None:
    sentences = [
        s for s in read_records(DATA / f"{language}.jsonl", LabelledSentence) if s.split == split
    ]
    spans, labelled = evaluate(EntityRecognizer(trained=False), sentences)
    assert spans.f1 >= span_floor
    assert labelled.f1 >= label_floor


@pytest.mark.parametrize(("language", "sentences"), [("en", 60), ("zh", 40)])
def test_labelled_sentences_are_sound(language: str, sentences: int) -> None:
    labelled = read_records(DATA / f"{language}.jsonl", LabelledSentence)
    assert len(labelled) >= sentences
    assert len({sentence.text for sentence in labelled}) == len(labelled)
    for split in ("dev", "test"):
        half = [sentence for sentence in labelled if sentence.split == split]
        assert len(half) == len(labelled) // 2
        assert sum(not sentence.entities for sentence in half) >= 3
    for sentence in labelled:
        position = 0
        for start, end, label in sentence.entities:
            text = sentence.text[start:end]
            assert start >= position
            assert text == text.strip()
            assert label in get_args(Label)
            position = end


def test_command_prints_both_languages_splits_and_the_source(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["entities", str(DATA / "en.jsonl"), str(DATA / "zh.jsonl"), "--rules"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 1 + 2 * 2 * 2
    assert lines[1].split()[:3] == ["en", "dev", "span"]
    assert all(line.endswith("rules") for line in lines[1:])


@pytest.mark.parametrize(
    "line",
    [
        "not json",
        json.dumps({"text": "Rome"}),
        json.dumps({"text": "Rome", "entities": [[0, 5, "GPE"]]}),
        json.dumps({"text": "Rome", "entities": [[2, 2, "GPE"]]}),
        json.dumps({"text": "Rome", "entities": [[0, "x", "GPE"]]}),
    ],
)
def test_a_bad_file_is_named_with_its_line(
    line: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(json.dumps({"text": "A", "entities": []}) + "\n\n" + line + "\n", "utf-8")
    with pytest.raises(InvalidInputError, match=r"bad\.jsonl.*line 3"):
        read_records(path, LabelledSentence)
    assert main(["entities", str(path)]) == 2
    assert "line 3" in capsys.readouterr().err

"""The report on judges, from files in the published forms to Markdown."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.models.base import Claim
from pipelines.models.judges.base import OverlapJudge
from research.measure.__main__ import main
from research.measure.judged import open_halves, scored
from research.measure.judges import load_judge
from tests.pipelines.models.hub_judges.made import save_encoder

BORN = "Bill Clinton was born in Hope, Arkansas."
LIFE = f"{BORN} He was a president."
TWO = ("LABEL_0", "LABEL_1")


def write(path: Path, records: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(record) + "\n" for record in records), encoding="utf-8")
    return path


def claims(folder: Path) -> Path:
    """Two even and two odd records, as in WiCE: one supported, one in part."""
    labels = ("supported", "supported", "partially_supported", "not_supported")
    return write(
        folder / "wice.jsonl",
        [
            {
                "claim": BORN if label == "supported" else "The moon orbits Mars.",
                "evidence": [BORN, "It rains."],
                "label": label,
            }
            for label in labels
        ],
    )


def biographies(folder: Path) -> Path:
    record = {
        "concept": "bill clinton",
        "gpt3_text": f"{BORN} He walked on the moon.",
        "gpt3_sentences": [BORN, "He walked on the moon."],
        "annotation": ["accurate", "major_inaccurate"],
        "wiki_bio_text": LIFE,
        "gpt3_text_samples": [],
    }
    return write(folder / "wikibio.jsonl", [record, record | {"concept": "another"}])


def test_claims_are_judged_whole_and_biographies_by_sentences(tmp_path: Path):
    halves = open_halves(claims(tmp_path))
    assert [item.hallucinated for item in halves.odd] == [False, True]
    (right, wrong) = scored(OverlapJudge(), halves.odd)
    judge = OverlapJudge()
    passages = halves.odd[0].passages
    expected = judge.read([Claim(statement=BORN, evidence=tuple(one.text for one in passages))])
    assert right.doubt == pytest.approx(1 - expected[0].supported)
    assert (right.wrong, right.sentences) == (None, ())
    assert wrong.doubt > right.doubt
    (life,) = scored(judge, open_halves(biographies(tmp_path)).odd)
    assert life.wrong == ((len(BORN) + 1, len(BORN) + 1 + len("He walked on the moon.")),)
    assert [label for _, label in life.sentences] == [False, True]
    # A text is as doubtful as its most doubtful sentence.
    assert life.doubt == max(piece.doubt for piece in life.pieces)


def test_both_answers_of_halueval_are_taken(tmp_path: Path):
    record = {
        "knowledge": BORN,
        "question": "Where was he born?",
        "right_answer": "Hope",
        "hallucinated_answer": "Paris",
    }
    halves = open_halves(write(tmp_path / "qa.jsonl", [record, record | {"question": "Where?"}]))
    assert [item.hallucinated for item in halves.even] == [False, True]
    assert [item.text for item in halves.odd] == ["Hope", "Paris"]


def test_a_judge_of_tokens_marks_characters(tmp_path: Path):
    judge = load_judge(str(save_encoder(tmp_path / "lettucedect", "modernbert", TWO)))
    (life,) = scored(judge, open_halves(biographies(tmp_path)).odd)
    assert len(life.pieces) > 2
    assert life.pieces[0].start == 0
    worst = max(piece.doubt for piece in life.pieces)
    assert life.doubt == worst
    assert max(piece.doubt for piece, _ in life.sentences) == worst


def test_the_report_has_a_table_for_each_judge_and_the_figures_of_others(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    files = [str(claims(tmp_path)), str(biographies(tmp_path))]
    hub = save_encoder(tmp_path / "mine", "bert", ("entailment", "neutral", "contradiction"))
    to = tmp_path / "judges.md"
    arguments = [*files, "--judge", "overlap", "--judge", str(hub), "--resamples", "100"]
    assert main(["judges", *arguments, "--output", str(to)]) == 0
    report = to.read_text(encoding="utf-8")
    assert "## Word overlap" in report
    assert "## mine" in report
    # Both claims and both sentences are told apart; one text has one group only.
    assert "| wice | 2 | 50% | 100.0 " in report
    assert "| wikibio | 2 | 50% | 100.0 |" in report
    assert "**mean of 2 sets**" in report
    assert "These are **not** ours" in report
    assert "| HHEM-2.1-open | 0.1B | 71.8 | 69.9 |" in report
    assert main(["judges", *arguments, "--limit", "1"]) == 0
    assert "| wice | 1 |" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["{claims}", "--resamples", "5"], "--resamples is too small"),
        (["{claims}", "--judge", "/nowhere/at/all"], "no model named 'all'"),
        (["{questions}"], "holds no labelled texts with evidence"),
        (["{folder}/missing.jsonl"], "no data set 'missing.jsonl'"),
    ],
)
def test_unusable_input_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], said: str
):
    questions = [{"question": f"Who? {n}", "answers": ["He"]} for n in range(4)]
    names = {
        "claims": str(claims(tmp_path)),
        "questions": str(write(tmp_path / "q.jsonl", questions)),
        "folder": str(tmp_path),
    }
    assert main(["judges", *(one.format_map(names) for one in arguments)]) != 0
    assert said in capsys.readouterr().err

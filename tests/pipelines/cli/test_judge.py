"""Answers of an evaluation judged on the command line, with a scripted judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.pipelines.cli.test_evaluate import Line


class JudgedLine(Line):
    """`Line` with a judge that finds land 1 wrong, and the others right."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        super().__init__(folder, capsys)
        self.grader = folder / "grader.json"
        replies = [
            {"contains": [f"land {n}?"], "tokens": [["Wrong" if n == 1 else "Correct", 0.9]]}
            for n in range(5)
        ]
        self.grader.write_text(json.dumps({"name": "grader", "replies": replies}))

    def judged(self, evaluation: str, *more: str) -> tuple[int, str, str]:
        model = ("--profile", "scripted", "--model", str(self.grader))
        return self.call("evaluations", "judge", evaluation, *model, *more)


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> JudgedLine:
    return JudgedLine(tmp_path, capsys)


def test_answers_are_judged_and_held_against_labels(line: JudgedLine, tmp_path: Path):
    evaluation = line.evaluated()
    status, out, err = line.judged(evaluation, "--at-once", "1")
    assert status == 0, err
    assert "Everything is judged." in err
    assert "Judging has taken 5 calls" in err
    # Four of five, as by the accepted answers, but others.
    assert "0.80 [0.38, 0.96]  0.80 [0.38, 0.96]" in out
    assert "not checked against people" in " ".join(out.split())
    # People label three answers of five: the judge is wrong on land 1 and on land 3.
    ids = [one.split(",")[1] for one in scores_of(line, evaluation)]
    labels = tmp_path / "labels.csv"
    said = zip(ids[1:4], ("right", "right", "wrong"), strict=True)
    labels.write_text("id,label\n" + "".join(f"{one},{grade}\n" for one, grade in said))
    status, out, err = line.judged(evaluation, "--labels", str(labels))
    assert status == 0, err
    assert "Judging has taken 5 calls" in err
    assert "Against labels.csv: accuracy 0.33 [0.06, 0.79] of 3" in out
    assert "direct: judge 0.80 of 5, 3 labels, people alone 0.67" in out
    # A judge that is worse than chance on the labels cannot be inverted.
    assert "sensitivity + specificity must exceed 1" in out
    shown = line.call("evaluations", "show", evaluation)[1]
    assert "agreement with labels.csv: 0.33 of 3" in " ".join(shown.split())


def scores_of(line: JudgedLine, evaluation: str) -> list[str]:
    """The rows of scores, one for each item."""
    rows = line.call("evaluations", "show", evaluation, "--format", "scores-csv")[1].splitlines()
    head = rows[0].split(",")
    place = head.index("item")
    return [f"x,{row.split(',')[place]}" for row in rows[1:]]


def test_a_judge_is_measured_on_a_data_set(line: JudgedLine, tmp_path: Path):
    evaluation = line.evaluated()
    # In the form of TruthfulQA. The judge finds both answers about land 0 right, and both about
    # land 1 wrong.
    known = tmp_path / "truthful.jsonl"
    rows = [
        {
            "Type": "Adversarial",
            "Category": "Weather",
            "Question": f"What falls on land {n}?",
            "Best Answer": "Rain falls",
            "Correct Answers": "Rain falls; It rains",
            "Incorrect Answers": "Stones; Fish",
            "Source": "none",
        }
        for n in range(2)
    ]
    known.write_text("".join(json.dumps(row) + "\n" for row in rows))
    status, out, err = line.judged(evaluation, "--against", str(known))
    assert status == 0, err
    assert "accuracy 0.50 [0.15, 0.85] of 4, Cohen's kappa 0.00" in out
    # Sensitivity and specificity are a half each: there is nothing to correct by.
    assert "(Rogan-Gladen) not defined" in out
    # Five answers and four known ones, each asked for once.
    assert "of 4" in out
    status, _, err = line.judged(evaluation, "--against", str(known))
    assert "Judging has taken 9 calls" in err
    questions = str(line.questions)
    status, _, err = line.judged(evaluation, "--against", questions)
    assert status == 2


def test_what_cannot_be_used_is_refused_before_anything_is_asked(line: JudgedLine, tmp_path: Path):
    evaluation = line.evaluated()
    prompt = tmp_path / "prompt.toml"
    prompt.write_text("[en]\njudge = 'Is it right?'\nreminder = 'Say it.'\n")
    status, _, err = line.judged(evaluation, "--prompt", str(prompt))
    assert status == 2
    assert "lacks $" in err
    status, _, err = line.judged(evaluation, "--max-money", "1")
    assert status == 2
    assert "--max-money cannot be kept" in err
    status, _, err = line.judged("none")
    assert status == 1
    assert "evaluation" in err

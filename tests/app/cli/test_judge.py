"""Answers of an evaluation judged on the command line, with a scripted judge."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from pipelines.errors import UnreachableError
from pipelines.evaluation.judging.asking import JudgingOutcome
from pipelines.evaluation.judging.spec import Grade, JudgeInput, Judgement, JudgeSpec
from pipelines.evaluation.outcomes import Cost
from pipelines.run.calls import Slot
from tests.app.cli.test_evaluate import Line


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
    assert "direct 0.80 5 3 0.67" in " ".join(out.split())
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


def known_file(folder: Path, lands: int, *, times: int = 1) -> str:
    """A file in the form of TruthfulQA: a right and a wrong answer of each land, `times` times."""
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
        for n in range(lands)
    ]
    file = folder / "truthful.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows * times))
    return str(file)


def test_a_judge_is_measured_on_a_data_set(line: JudgedLine, tmp_path: Path):
    evaluation = line.evaluated()
    # In the form of TruthfulQA. The judge finds both answers about land 0 right, and both about
    # land 1 wrong.
    known = known_file(tmp_path, 2)
    status, out, err = line.judged(evaluation, "--against", known)
    assert status == 0, err
    assert "accuracy 0.50 [0.15, 0.85] of 4, Cohen's kappa 0.00" in out
    # Sensitivity and specificity are a half each: there is nothing to correct by.
    assert "(Rogan-Gladen) not defined" in out
    # Five answers and four known ones, each asked for once.
    assert "of 4" in out
    status, _, err = line.judged(evaluation, "--against", known)
    assert "Judging has taken 9 calls" in err
    questions = str(line.questions)
    status, _, err = line.judged(evaluation, "--against", questions)
    assert status == 2


class Judge:
    """Stands for `ask_judge`: counts the answers that are asked about, and what it is told."""

    def __init__(self, *grades: Grade | None) -> None:
        self.grades = list(grades)
        self.asked: list[str] = []

    async def __call__(
        self, spec: JudgeSpec, slot: Slot, answer: JudgeInput, *, owner: str
    ) -> JudgingOutcome:
        self.asked.append(answer.answer)
        grade = self.grades.pop(0) if len(self.grades) > 1 else self.grades[0]
        if grade is None:
            away = UnreachableError("Nobody answers.", remedy="Try it again.").info()
            return JudgingOutcome(None, Cost(calls=1), away)
        return JudgingOutcome(Judgement(grade=grade), Cost(calls=1))


def test_known_answers_are_left_where_the_judge_is_away(
    line: JudgedLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    evaluation = line.evaluated()
    known = known_file(tmp_path, 6)
    judge = Judge("wrong", None)
    monkeypatch.setattr("app.cli.judge.ask_judge", judge)
    status, out, err = line.judged(evaluation, "--against", known)
    # One is judged, and five calls fail one after the other.
    assert len(judge.asked) == 6
    assert status == 1
    assert "1 of 12 known answers are judged." in err
    assert "Too many calls failed one after the other: Nobody answers." in err
    assert "of 1, Cohen's kappa" in out
    # Where the judging itself ended so, the data set is not begun.
    away = Judge(None)
    monkeypatch.setattr("app.cli.judge.ask_judge", away)
    monkeypatch.setattr("pipelines.evaluation.judging.runner.ask_judge", away_for_runner)
    status, _, err = line.judged(evaluation, "--seed", "1", "--against", known)
    assert (status, away.asked) == (1, [])
    assert "Too many calls failed" in err


async def away_for_runner(*_: object, **__: object) -> JudgingOutcome:
    error = UnreachableError("Nobody answers.", remedy="Try it again.").info()
    return JudgingOutcome(None, Cost(calls=1), error)


def test_known_answers_are_asked_once_and_within_the_hours(
    line: JudgedLine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    evaluation = line.evaluated()
    assert line.judged(evaluation)[0] == 0
    known = known_file(tmp_path, 1, times=2)
    judge = Judge("wrong")
    monkeypatch.setattr("app.cli.judge.ask_judge", judge)
    # No time at all: everything of the evaluation is judged, and nothing else is begun.
    status, _, err = line.judged(evaluation, "--against", known, "--max-hours", "0")
    assert (status, judge.asked) == (1, [])
    assert "0 of 4 known answers are judged." in err
    assert "The budget is spent" in err
    status, out, err = line.judged(evaluation, "--against", known)
    assert status == 0, err
    # The right and the wrong answer, though each stands there twice.
    assert len(judge.asked) == 2
    assert "accuracy 0.50 [0.15, 0.85] of 4" in out


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (("--temperature", "3"), "'3' is no number from 0 to 2"),
        (("--labels", "l.csv", "--against", "x.jsonl"), "not allowed with argument"),
    ],
)
def test_options_that_do_not_fit_are_refused(
    line: JudgedLine, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], said: str
):
    with pytest.raises(SystemExit) as ended:
        line.judged("any", *more)
    assert ended.value.code == 2
    assert said in capsys.readouterr().err


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

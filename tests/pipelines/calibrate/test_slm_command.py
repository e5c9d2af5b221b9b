"""`calibrate slm`: what it reads, asks, writes and refuses."""

import json
from pathlib import Path

import pytest

from pipelines.calibrate import __main__ as command
from pipelines.calibrate.slm_data import (
    QaRecord,
    answers_of,
    evenly,
    judge_answers,
    load_qa,
)
from pipelines.errors import InvalidInputError, UnreachableError
from pipelines.models.base import Model
from pipelines.prompts import load_prompts
from pipelines.run.pool import Slot
from tests.pipelines.methods.slm.judges import JudgeModel, statement_of


def record(number: int, **fields: str) -> dict[str, str]:
    return {
        "knowledge": f"Town {number} lies in land {number}.",
        "question": f"Where does town {number} lie?",
        "right_answer": f"In land {number}.",
        "hallucinated_answer": f"It lies far away. It is town {number}.",
        **fields,
    }


def written(path: Path, *records: dict[str, str]) -> Path:
    path.write_text("\n".join(map(json.dumps, records)) + "\n", encoding="utf-8")
    return path


def believes_lands(statement: str) -> float:
    return 0.9 if "land" in statement else 0.2


@pytest.fixture
def judge(monkeypatch: pytest.MonkeyPatch) -> JudgeModel:
    """The model every profile stands for, and every judge that comes along."""
    model = JudgeModel("SmolLM2-135M-Instruct", believes_lands)

    class Pool:
        async def get(self, spec: object, key: str | None = None) -> Slot:
            return Slot(model)

        async def aclose(self) -> None:
            await model.aclose()

    monkeypatch.setattr(command, "ModelPool", Pool)
    return model


def run(*arguments: str) -> int:
    return command.main(["slm", "--date", "2026-01-31", *arguments])


def test_the_file_holds_scale_thresholds_and_provenance(
    judge: JudgeModel, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    data = written(tmp_path / "qa.jsonl", *map(record, range(6)))
    out = tmp_path / "new" / "slm.json"
    assert run("--qa", str(data), "--out", str(out)) == 0
    text = out.read_text(encoding="utf-8")
    assert capsys.readouterr().out == text
    found = json.loads(text)
    # Three even-numbered records: three right answers at 0.9, three wrong ones of two sentences at
    # 0.2. Mean (3 * 0.9 + 6 * 0.2) / 9 = 0.4333, deviation 0.7 * sqrt(1/3 * 2/3) = 0.33.
    scale = found["judges"]["SmolLM2-135M-Instruct"]["en"]
    assert scale == {"mu": 0.4333, "sigma": 0.33, "n": 9, "prompt": load_prompts("slm").hash}
    assert len(found["judges"]) == 4
    # Four judges alone, in six pairs and in four threes.
    assert len(found["panels"]) == 14
    for panel in found["panels"]:
        assert panel["thresholds"]["f1"]["raw"]["harmonic"] == 0.55
        assert panel["report"]["verdicts"]["f1"]["accuracy"] == 1.0
    assert found["date"] == "2026-01-31"
    assert found["data"].startswith("12 answers to 6 of the 6 questions of qa.jsonl")
    assert found["models"][0].startswith("SmolLM2-135M-Instruct (")
    assert found["models"][1:] == [
        "Veriscope judge",
        "Similarity (all-MiniLM-L6-v2)",
        "Word overlap",
    ]
    assert str(tmp_path) not in text
    assert found["paper"]["proposed"] == 0.81


def test_equal_inputs_give_the_same_file(judge: JudgeModel, tmp_path: Path):
    data = written(tmp_path / "qa.jsonl", *map(record, range(4)))
    for name in ("one", "two"):
        assert run("--qa", str(data), "--out", str(tmp_path / name)) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def test_no_more_records_are_judged_than_wanted(judge: JudgeModel, tmp_path: Path):
    data = written(tmp_path / "qa.jsonl", *map(record, range(12)))
    assert run("--qa", str(data), "--records", "4", "--out", str(tmp_path / "out")) == 0
    asked = {request.messages[-1].content.split("\n\n")[1] for request in judge.asked}
    # Every third of the even-numbered and every third of the odd-numbered ones.
    assert asked == {f"Question: Where does town {n} lie?" for n in (0, 6, 1, 7)}


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("not json\n", "a line is not a record"),
        ('{"question": "?"}\n', "a line is not a record"),
        ("", "fewer than four records"),
    ],
)
def test_a_file_that_holds_something_else_is_refused_before_the_work(
    judge: JudgeModel, tmp_path: Path, capsys, content: str, problem: str
):
    data = tmp_path / "qa.jsonl"
    data.write_text(content, encoding="utf-8")
    out = tmp_path / "out"
    assert run("--qa", str(data), "--out", str(out)) == 2
    assert problem in capsys.readouterr().err
    assert not out.exists()
    assert judge.asked == []


def test_a_missing_file_is_named_without_its_place(tmp_path: Path):
    with pytest.raises(InvalidInputError, match=r"cannot be read \(FileNotFoundError\)"):
        load_qa(tmp_path / "nowhere.jsonl")


def test_other_line_separators_do_not_end_a_record(tmp_path: Path):
    odd = record(0, knowledge="One\u2028two\u0085three.")
    path = tmp_path / "qa.jsonl"
    lines = [json.dumps(r, ensure_ascii=False) for r in (odd, *map(record, range(1, 4)))]
    path.write_text("\n".join(lines), encoding="utf-8")
    assert len(load_qa(path)) == 4
    assert load_qa(path)[0].knowledge == "One\u2028two\u0085three."


def test_every_nth_record_is_taken():
    records = [QaRecord.model_validate(record(number)) for number in range(7)]
    assert evenly(records, 3) == [records[0], records[3], records[6]]
    assert evenly(records, 7) == evenly(records, 100) == records


async def test_every_statement_is_asked_about_once_with_its_knowledge():
    judge = JudgeModel("a", believes_lands)
    told: list[tuple[int, int]] = []
    records = [QaRecord.model_validate(record(1))]
    right, wrong = await judge_answers(
        judge, answers_of(records), progress=lambda *now: told.append(now)
    )
    assert sorted(map(statement_of, judge.asked)) == [
        # Of one sentence the whole is the sentence.
        "In land 1.",
        "It is town 1.",
        "It lies far away.",
        "It lies far away. It is town 1.",
    ]
    assert all("[1] Town 1 lies in land 1." in r.messages[1].content for r in judge.asked)
    assert (right.sentences, right.whole) == ((0.9,), 0.9)
    assert (wrong.sentences, wrong.whole) == ((0.2, 0.2), 0.2)
    assert told == [(1, 2), (2, 2)]


async def test_a_failed_call_ends_the_calibration():
    judge: Model = JudgeModel("a", lambda _: UnreachableError("Gone.", remedy="Start it."))
    records = [QaRecord.model_validate(record(1))]
    with pytest.raises(UnreachableError):
        await judge_answers(judge, answers_of(records))

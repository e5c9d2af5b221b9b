"""Answers of a model to one question asked several times: what is asked, and which are the same."""

from __future__ import annotations

import asyncio
import json
from itertools import combinations
from pathlib import Path

import pytest

from pipelines.errors import failure
from pipelines.models.base import GenerationRequest
from pipelines.models.scripted import ScriptedModel
from research.judge import model_answers
from research.judge.__main__ import main
from research.judge.made import Names
from research.judge.model_answers import (
    ModelAnswers,
    are_same,
    ask_all,
    model_answer_pairs,
    questions_of,
)
from research.samples.files import sources_in

ASKED = ModelAnswers(
    question="Where was Ada Lovelace born?", answers=("London",), group="qa-1", text=""
)


@pytest.fixture(scope="module")
def names() -> Names:
    return Names()


@pytest.mark.parametrize(
    ("first", "second", "same"),
    [
        ("Ada Lovelace was born in London.", "London, England.", True),
        ("Ada Lovelace was born in London.", "She was born in Paris.", False),
        ("She was born in Paris.", "Ada Lovelace, in London.", False),
        # Neither is right: the names decide that the question does not hold.
        ("Ada Lovelace was born in Paris.", "The birth of Lovelace was in Paris.", True),
        ("Ada Lovelace was born in Paris.", "Ada Lovelace was born in Vienna.", False),
        ("Ada Lovelace was born in 1815.", "Ada Lovelace was born in 1852.", False),
        ("Ada Lovelace was born in Paris.", "Ada Lovelace was a woman of science.", False),
        # Some names in common, or none at all: not known.
        ("Born in Paris.", "Born in Paris, then taken to Vienna.", None),
        ("It is a city.", "It is a well known place.", None),
    ],
)
def test_what_is_known_of_two_answers(first: str, second: str, same: bool | None, names: Names):
    assert are_same(ASKED, first, second, names) is same
    assert are_same(ASKED, second, first, names) is same


def test_pairs_of_what_was_said_and_of_the_right_answer(tmp_path: Path, names: Names):
    copied = "The answer is: [2] Text: She was born in London.\n\nQuestion: Who?"
    said = ("She was born in Paris.", copied, "She was born in Paris.", " ")
    path = tmp_path / "said.jsonl"
    path.write_text(f"{ASKED.model_copy(update={'said': said}).model_dump_json()}\n")
    pairs = list(model_answer_pairs(path, names))
    found = {(pair.statement, pair.evidence): pair.supported for pair in pairs}
    paris, london = "She was born in Paris.", "She was born in London."
    there = {(paris, london): False, (paris, "London"): False, (london, "London"): True}
    assert found == there | {(b, a): same for (a, b), same in there.items()}
    assert {pair.make for pair in pairs} == {"model answers"}
    assert {pair.group for pair in pairs} == {"qa-1"}
    assert {pair.question for pair in pairs} == {ASKED.question}
    assert list(model_answer_pairs(None, names)) == []


TOLD = ModelAnswers(
    question="Who wrote the notes?",
    answers=("Ada Lovelace",),
    group="qa-2",
    text="The notes are famous. Ada Lovelace wrote the notes. Later came others.",
)


def replies() -> ScriptedModel:
    """Knows nothing of itself, and the answer where its sentence is shown."""
    told = {"contains": "Ada Lovelace wrote the notes.", "text": "Ada did."}
    return ScriptedModel.from_replies([told, {"contains": "?", "text": "Eve did."}])


def test_every_question_is_asked_often_with_and_without_its_sentence(tmp_path: Path):
    path = tmp_path / "said.jsonl"
    model = replies()
    asyncio.run(ask_all(model, [ASKED, TOLD], path, frozenset({ASKED.question})))
    written = [ModelAnswers.model_validate_json(line) for line in path.read_text().splitlines()]
    assert written == [TOLD.model_copy(update={"said": ("Eve did.",) * 3 + ("Ada did.",) * 2})]
    requests = [one for one in model.requests if isinstance(one, GenerationRequest)]
    assert [one.temperature for one in requests] == [0.0, 0.3, 1.0, 0.0, 0.7]
    # A draw has a number, so that it can be made again; the greedy text needs none.
    assert [one.sample for one in requests] == [None, 1, 2, None, 1]
    shown = ["Later" in str(one.messages) for one in requests]
    assert not any(shown)


def test_questions_of_all_files_once_without_those_of_yes_or_no(tmp_path: Path):
    rows = [
        {
            "question": f"Question {n // 4}?",
            "right_answer": "yes" if n == 12 else f"answer {n // 4}",
            "hallucinated_answer": "another",
            "knowledge": "Some knowledge.",
        }
        for n in range(16)
    ]
    (tmp_path / "halueval_qa.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    trivia = [{"question": f"T{n}?", "answers": [f"a{n}", f"a{n}", "b"]} for n in range(4)]
    (tmp_path / "triviaqa.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in trivia))
    found = {one.question: one for one in questions_of(sources_in(tmp_path))}
    # Even records; of equal questions the last: Question 3 is record 14, not the yes of record 12.
    assert set(found) == {*(f"Question {n}?" for n in range(4)), "T0?", "T2?"}
    assert found["T2?"].answers == ("a2", "b")
    assert found["T2?"].group == "trivia-1"
    assert found["Question 3?"].group == "qa-7"
    assert found["Question 3?"].text == "Some knowledge."


def test_the_command_goes_on_with_what_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    trivia = [{"question": f"T{n}?", "answers": [f"a{n}"]} for n in range(6)]
    (tmp_path / "triviaqa.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in trivia))
    monkeypatch.setattr(model_answers, "EmbeddedModel", replies)
    path = tmp_path / "model_answers.jsonl"
    path.write_text('{"question": "T2?", "answers": ["a2"], "group": "trivia-1", "said": ["x"]}\n')
    assert main(["answers", "--data", str(tmp_path), "--to", str(path)]) == 0
    written = [json.loads(line)["question"] for line in path.read_text().splitlines()]
    assert sorted(written) == ["T0?", "T2?", "T4?"]
    # What it wrote is a source of pairs.
    assert sources_in(tmp_path).model_answers == path
    assert main(["answers", "--data", str(tmp_path / "none"), "--to", str(path)]) == 2
    assert "triviaqa.jsonl" in capsys.readouterr().err


def test_of_different_answers_the_most_alike_are_taken(tmp_path: Path, names: Names):
    said = (
        "She was born in Paris.",
        "She was born in Vienna.",
        "She was born in Rome.",
        "It may have been Prague, as far as people know.",
    )
    path = tmp_path / "said.jsonl"
    path.write_text(f"{ASKED.model_copy(update={'said': said}).model_dump_json()}\n")
    pairs = list(model_answer_pairs(path, names))
    # Three places in one sentence; nothing with Prague, nothing with the right answer alone.
    assert {frozenset((one.statement, one.evidence)) for one in pairs} == {
        frozenset(two) for two in combinations(said[:3], 2)
    }
    assert not any(one.supported for one in pairs)


def test_a_failed_call_is_a_message(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    (tmp_path / "triviaqa.jsonl").write_text('{"question": "T?", "answers": ["a"]}\n')

    class Failing(ScriptedModel):
        async def generate(self, request, watch=None):
            raise failure("computing.text_not_read", "local", name=self.name)

    monkeypatch.setattr(model_answers, "EmbeddedModel", lambda: Failing(()))
    assert main(["answers", "--data", str(tmp_path), "--to", str(tmp_path / "said.jsonl")]) == 1
    said = capsys.readouterr().err
    assert said
    assert "Traceback" not in said

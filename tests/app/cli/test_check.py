"""`check` on the command line: one text, files of texts, and what cannot be checked."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest

from tests.app.cli.conftest import CommandLine
from tests.scripted.cli import write_script

TEXT = "Marie Curie was born in Warsaw. She died in Florida."


@pytest.fixture
def run(tmp_path: Path, sample_index: Path, command_line: CommandLine) -> CommandLine:
    """Runs a command on a folder of its own; gives status, standard output and error."""
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "index").symlink_to(sample_index)
    script = write_script(tmp_path / "script.json", replies=[])

    def call(*arguments: str) -> tuple[int, str, str]:
        model = ("--profile", "scripted", "--model", str(script))
        model = model if arguments[0] == "check" else ()
        return command_line("--data", str(tmp_path / "data"), *arguments, *model)

    return call


def checked(run: Any, *arguments: str) -> tuple[int, str, str]:
    return run("check", *arguments, "--detector", "slm", "--evidence", "bm25")


def test_a_text_is_checked_and_told_sentence_by_sentence(run):
    status, out, _ = checked(run, TEXT)
    assert status == 0
    assert "slm" in out
    assert "1. Marie Curie was born in Warsaw." in out
    assert "2. She died in Florida." in out
    assert "doubtful below" in out
    # What was not asked says why.
    assert "selfcheck  not asked: needs the question" in out


def test_a_text_may_come_from_standard_input(run, monkeypatch):
    monkeypatch.setattr("sys.stdin", io.StringIO(TEXT))
    status, out, _ = checked(run, "-", "--output", "jsonl")
    record = json.loads(out)
    assert (status, record["id"], record["status"]) == (0, "1", "finished")
    assert [one["text"] for one in record["sentences"]] == TEXT.replace(". ", ".|").split("|")


@pytest.mark.parametrize("errors", ["strict", "surrogateescape"])
def test_what_is_no_text_on_standard_input_is_refused(run, monkeypatch, errors):
    given = io.TextIOWrapper(io.BytesIO(b"Tea is hot. \xff"), encoding="utf-8", errors=errors)
    monkeypatch.setattr("sys.stdin", given)
    status, out, err = checked(run, "-")
    assert (status, out) == (2, "")
    assert "no text in UTF-8" in err


def test_sources_take_the_place_of_the_library(run, tmp_path):
    source = tmp_path / "source.txt"
    source.write_text("Marie Curie was born in Warsaw.\n\nShe died in France.", encoding="utf-8")
    status, out, _ = checked(run, TEXT, "--source", str(source), "--output", "jsonl")
    assert status == 0
    first, second = (one["found"]["slm"] for one in json.loads(out)["sentences"])
    assert first["score"]["value"] > second["score"]["value"]


def test_a_file_gives_a_line_for_each_text_and_its_runs_are_kept(run, tmp_path):
    rows = [
        {"id": "a", "text": TEXT, "sources": ["Marie Curie was born in Warsaw."]},
        {"id": "b", "text": "…"},
        {"answer": "Tea is hot.", "context": "Tea is hot.", "question": "How is tea?"},
    ]
    file = tmp_path / "texts.jsonl"
    file.write_text("".join(f"{json.dumps(row)}\n" for row in rows), encoding="utf-8")
    status, out, err = checked(run, "--file", str(file))
    # One of them has nothing to check, and the others go on.
    assert status == 3
    first, second, third = (json.loads(line) for line in out.splitlines())
    assert (first["id"], second["id"], third["id"]) == ("a", "b", "3")
    assert (second["status"], "no word" in second["error"]) == ("refused", True)
    assert third["question"] == "How is tea?"
    assert "b: The text holds no word" in err
    listed = run("list", "--json")[1]
    titles = {json.loads(line)["question"] for line in listed.splitlines()}
    assert "How is tea?" in titles
    assert first["run"] in listed


def test_sources_under_other_names_are_read_and_missing_ones_are_said(run, tmp_path):
    rows = [
        {"question": "Where?", "response": TEXT, "retrieved_contexts": ["Born in Warsaw."]},
        {"question": "Where?", "response": TEXT, "retrieved_contexts": []},
    ]
    file = tmp_path / "texts.json"
    file.write_text(json.dumps(rows), encoding="utf-8")
    status, out, err = checked(run, "--file", str(file))
    assert status == 0
    assert "Text to be checked from response (" in err
    assert "Passages from retrieved_contexts (“Born in Warsaw.”)" in err
    assert "1 of 2 texts bring no sources" in err
    assert len(out.splitlines()) == 2


def test_csv_in_and_out(run, tmp_path):
    file, to = tmp_path / "texts.csv", tmp_path / "out.csv"
    file.write_text(f'id,text,sources\nx,"{TEXT}","Born in Warsaw."\n', encoding="utf-8")
    status, out, _ = checked(run, "--file", str(file), "--output", "csv", "--to", str(to))
    assert (status, out) == (0, "")
    found = list(csv.DictReader(to.read_text(encoding="utf-8").splitlines()))
    assert [row["sentence"] for row in found] == ["1", "2", "all"]
    assert {row["id"] for row in found} == {"x"}
    assert all(float(row["slm_score"]) >= 0 for row in found)


def test_blocks_of_a_text_file_are_texts(run, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text("Tea is hot.\n\n\nIce is cold.\nVery.\n", encoding="utf-8")
    out = checked(run, "--file", str(file))[1]
    assert [json.loads(line)["text"] for line in out.splitlines()] == [
        "Tea is hot.",
        "Ice is cold.\nVery.",
    ]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ((), "Give either a text or --file."),
        ((" ",), "There is no text to check."),
        (("Tea.", "--set", "slm.mean=no"), "Setting 'mean' of slm"),
        (("Tea.", "--set", "rowen.k=1"), "names no setting of a chosen method"),
        (("Tea is hot.", "--source", "none.txt"), "none.txt cannot be used"),
        (("--file", "none.csv"), "none.csv cannot be used"),
    ],
)
def test_unusable_input_is_told_with_what_to_do(run, arguments, said):
    status, out, err = checked(run, *arguments)
    assert (status, out) == (2, "")
    assert said in err


def test_a_file_without_a_column_of_texts_names_those_that_it_has(run, tmp_path):
    file = tmp_path / "wrong.csv"
    file.write_text("question,remark\na,b\n", encoding="utf-8")
    status, _, err = checked(run, "--file", str(file))
    assert status == 2
    assert "no column of a usual name for the texts" in err
    assert "it has: question, remark" in err


def test_where_no_detector_can_work_nothing_is_run(run):
    status, _, err = run("check", TEXT, "--detector", "selfcheck")
    assert status == 2
    assert "selfcheck: needs the question" in err
    assert "No detector was chosen" in err


def test_a_text_above_a_limit_is_not_checked_unless_it_shall_begin_anyway(run):
    status, out, err = checked(run, TEXT, "--max-calls", "1")
    assert (status, out) == (2, "")
    assert "Expected: about" in err
    assert "limit: 1 calls" in err
    assert "calls, limit 1" in err
    status, _, err = checked(run, TEXT, "--max-calls", "1", "--anyway")
    assert status == 3
    assert "Taken: 1 calls" in err
    assert "stopped at the limit of calls" in err
    status, _, err = checked(run, TEXT, "--max-calls", "50")
    assert status == 0
    assert "Taken: " in err


def test_of_a_file_the_texts_that_fit_are_checked(run, tmp_path):
    file = tmp_path / "texts.txt"
    file.write_text(f"Tea is hot.\n\n{' '.join([TEXT] * 20)}\n", encoding="utf-8")
    most = ("--max-calls", "20")
    status, out, err = checked(run, "--file", str(file), *most)
    first, second = (json.loads(line) for line in out.splitlines())
    assert (status, first["status"], second["status"]) == (3, "finished", "refused")
    assert "calls, limit 20" in second["error"]
    assert "2: " in err


def test_a_profile_holds_for_a_check(run, tmp_path):
    saved = {
        "format": "veriscope-profile-1",
        "name": "Strict",
        "settings": {"slm": {"threshold": 0.9}},
    }
    file = tmp_path / "strict.json"
    file.write_text(json.dumps(saved), encoding="utf-8")
    assert run("profiles", "import", str(file))[0] == 0
    status, out, _ = checked(run, TEXT, "--settings-profile", "Strict", "--output", "jsonl")
    assert status == 0
    assert json.loads(out)["detectors"]["slm"]["score"]["threshold"] == 0.9

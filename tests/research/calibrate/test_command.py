"""The command: what it writes, and how it refuses."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from research.calibrate import __main__ as command
from research.calibrate import drad
from tests.research.calibrate.examples import answered, two_halves


@pytest.fixture
def quick_answers(monkeypatch: pytest.MonkeyPatch):
    """The model's answers, made by hand."""

    async def answer_all(*given: object, **options: object):
        return two_halves()

    monkeypatch.setattr(drad, "answer_all", answer_all)


def entry(text: str, model: str = "SmolLM2-135M-Instruct", entropies: str = "10") -> Any:
    """theta_2 of a model in what was written."""
    return json.loads(text)[model][entropies]["theta_2"]["en"]


def run(*arguments: str) -> int:
    return command.main(["drad", "--date", "2026-01-31", *arguments])


def test_the_value_is_written_with_its_provenance(quick_answers: None, tmp_path: Path, capsys):
    out = tmp_path / "new" / "drad.json"
    assert run("--out", str(out)) == 0
    written = out.read_text(encoding="utf-8")
    assert capsys.readouterr().out == written
    assert written.endswith("}\n")
    theta_2 = entry(written)
    assert theta_2["value"] == 0.6
    assert theta_2["date"] == "2026-01-31"
    assert theta_2["entities"] == 4
    assert theta_2["model"].startswith("SmolLM2-135M-Instruct (")
    assert "Q4_1" in theta_2["model"]
    assert "k = 10, at most ln 11 = 2.40 nats" in theta_2["model"]
    assert set(theta_2["report"]) == {"fitted", "reported"}


def test_the_same_answers_give_the_same_file(quick_answers: None, tmp_path: Path):
    for name in ("one", "two"):
        assert run("--out", str(tmp_path / name)) == 0
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


@pytest.mark.parametrize(
    ("arguments", "model", "by"),
    [
        (("local", "--model", "/models/secret/Tiny.Q8_0.gguf"), "Tiny.Q8_0.gguf", "llama.cpp"),
        (("local", "--model", "owner/tiny"), "tiny", "transformers"),
        (("openai", "--model", "owner/tiny"), "owner/tiny", "OpenAI protocol"),
    ],
)
def test_a_model_is_named_without_its_path(
    quick_answers: None, tmp_path: Path, arguments: tuple[str, ...], model: str, by: str
):
    out = tmp_path / "drad.json"
    assert run("--out", str(out), "--profile", *arguments) == 0
    written = out.read_text(encoding="utf-8")
    assert entry(written, model)["model"].startswith(f"{model} ({by}")
    assert "secret" not in written


def test_full_entropies_are_said_to_be_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quick_answers: None
):
    async def answer_all(*given: object, **options: object):
        return [answered(*each.readings, top_k=None) for each in two_halves()]

    monkeypatch.setattr(drad, "answer_all", answer_all)
    out = tmp_path / "drad.json"
    assert run("--out", str(out)) == 0
    written = out.read_text(encoding="utf-8")
    assert "full-vocabulary entropy" in entry(written, entropies="full")["model"]


def test_what_was_derived_for_other_models_stays(quick_answers: None, tmp_path: Path):
    out = tmp_path / "drad.json"
    assert run("--out", str(out)) == 0
    assert run("--out", str(out), "--profile", "openai", "--model", "owner/tiny") == 0
    written = out.read_text(encoding="utf-8")
    assert entry(written)["value"] == entry(written, "owner/tiny")["value"] == 0.6


def test_another_file_is_not_written_over(quick_answers: None, tmp_path: Path, capsys):
    out = tmp_path / "drad.json"
    out.write_text("[1, 2", encoding="utf-8")
    assert run("--out", str(out)) == 2
    assert "no table of thresholds" in capsys.readouterr().err
    assert out.read_text(encoding="utf-8") == "[1, 2"


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--profile", "local"), "needs a model"),
        (("--wikibio", "nowhere.jsonl"), "nowhere.jsonl cannot be used"),
    ],
)
def test_unusable_input_is_refused_before_the_work(
    tmp_path: Path, capsys, arguments: tuple[str, ...], problem: str
):
    out = tmp_path / "drad.json"
    assert run("--out", str(out), *arguments) == 2
    assert problem in capsys.readouterr().err
    assert not out.exists()


def test_what_was_derived_is_shown_even_if_it_cannot_be_written(
    quick_answers: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    assert run("--out", str(tmp_path)) == 1
    shown = capsys.readouterr()
    assert entry(shown.out)["value"] == 0.6
    assert "cannot be written" in shown.err

"""The command: what it writes, and how it refuses."""

import json
from pathlib import Path

import pytest

from pipelines.calibrate import __main__ as command
from tests.pipelines.calibrate.examples import answered, two_halves


@pytest.fixture
def quick_answers(monkeypatch: pytest.MonkeyPatch):
    """The model's answers, made by hand."""

    async def answer_all(*given: object, **options: object):
        return two_halves()

    monkeypatch.setattr(command, "answer_all", answer_all)


def run(*arguments: str) -> int:
    return command.main(["drad", "--date", "2026-01-31", *arguments])


def test_the_value_is_written_with_its_provenance(quick_answers: None, tmp_path: Path, capsys):
    out = tmp_path / "new" / "drad.json"
    assert run("--out", str(out)) == 0
    written = out.read_text(encoding="utf-8")
    assert capsys.readouterr().out == written
    assert written.endswith("}\n")
    theta_2 = json.loads(written)["theta_2"]
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
    ("arguments", "described"),
    [
        (("local", "--model", "/models/secret/Tiny.Q8_0.gguf"), "Tiny.Q8_0.gguf (llama.cpp"),
        (("local", "--model", "owner/tiny"), "tiny (transformers"),
        (("openai", "--model", "owner/tiny"), "owner/tiny (OpenAI protocol"),
    ],
)
def test_a_model_is_named_without_its_place(
    quick_answers: None, tmp_path: Path, arguments: tuple[str, ...], described: str
):
    out = tmp_path / "drad.json"
    assert run("--out", str(out), "--profile", *arguments) == 0
    written = out.read_text(encoding="utf-8")
    assert json.loads(written)["theta_2"]["model"].startswith(described)
    assert "secret" not in written


def test_full_entropies_are_said_to_be_full(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, quick_answers: None
):
    async def answer_all(*given: object, **options: object):
        return [answered(*each.readings, top_k=None) for each in two_halves()]

    monkeypatch.setattr(command, "answer_all", answer_all)
    out = tmp_path / "drad.json"
    assert run("--out", str(out)) == 0
    assert (
        "full-vocabulary entropy" in json.loads(out.read_text(encoding="utf-8"))["theta_2"]["model"]
    )


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--profile", "local"), "needs a model"),
        (("--wikibio", "nowhere.jsonl"), "WikiBio file cannot be used"),
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
    assert json.loads(shown.out)["theta_2"]["value"] == 0.6
    assert "cannot be written" in shown.err

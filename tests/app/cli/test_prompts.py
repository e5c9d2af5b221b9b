"""Prompts and profiles on the command line, with scripted models."""

from __future__ import annotations

import asyncio
import json
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.prompts import load_prompts
from pipelines.store import RunStore, file_url
from tests.app.cli.test_evaluate import Line

WORDING = """
[direct.en]
system = "Answer in one word."
"""
SAME = """
[direct.en]
question = "$question"
"""


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    return Line(tmp_path, capsys)


@pytest.fixture
def wording(tmp_path: Path) -> Path:
    path = tmp_path / "own.toml"
    path.write_text(WORDING, encoding="utf-8")
    return path


def test_prompts_are_listed_and_shown(line: Line):
    status, out, _ = line.call("prompts", "list", "--method", "ever")
    assert status == 0
    assert "ever/verify" in out
    assert "$passages $question" in out
    assert "rowen/" not in out
    _, out, _ = line.call("prompts", "list", "--json")
    rows = {row["prompt"]: row for row in map(json.loads, out.splitlines())}
    assert rows["slm/question"]["placeholders"] == ["question", "statement"]
    assert "haarag" in rows["slm/question"]["methods"]
    _, out, _ = line.call("prompts", "show", "ever/verdict_again", "--language", "zh")
    assert out.strip() == load_prompts("ever").default("zh", "verdict_again")
    for name, said in (("ever/nothing", "no prompt 'nothing'"), ("none/verify", "no prompt file")):
        status, _, err = line.call("prompts", "show", name)
        assert (status, said in err) == (2, True)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            '[ever.en]\nverify = "$passages"',
            "ever/verify (en): The placeholder $question is missing",
        ),
        (
            '[ever.en]\nverify = "$passages $question\\n$so $"',
            "Line 2, column 1: there is no value for $so",
        ),
        ('[ever.en]\nverify = "$passages $question $"', "column 21: a single dollar sign"),
        ('[ever.en]\nnothing = "x"', "no prompt 'nothing'"),
        ('[ever.fr]\nverify = "x"', "language 'fr'"),
        ("[ever", "is no TOML"),
        ('ever = "x"', "at ever"),
        ('[direct.en]\nsystem = "sk-hunter2hunter2hunter2"', "looks like a key"),
        ('{"format": "other"}', "holds no profile"),
    ],
)
def test_a_file_is_checked_with_its_places(line: Line, wording: Path, text: str, said: str):
    wording.write_text(text, encoding="utf-8")
    status, out, err = line.call("prompts", "check", str(wording))
    assert status == 2
    assert said in out + err
    assert "hunter2" not in out + err


def test_a_good_file_says_how_much_differs(line: Line, wording: Path):
    wording.write_text(WORDING + SAME.replace("[direct.en]\n", ""), encoding="utf-8")
    status, out, _ = line.call("prompts", "check", str(wording))
    assert (status, out.strip()) == (0, "2 texts, 1 differ from the default.")
    status, _, err = line.call("prompts", "check", str(wording.with_name("none.toml")))
    assert (status, "cannot be read" in err) == (2, True)


def test_the_difference_is_printed(line: Line, wording: Path):
    status, out, _ = line.call("prompts", "diff", "--prompts", str(wording))
    assert status == 1
    assert "+Answer in one word." in out.splitlines()
    assert any(one.startswith("-Answer the question") for one in out.splitlines())
    wording.write_text(SAME, encoding="utf-8")
    assert line.call("prompts", "diff", "--prompts", str(wording))[:2] == (0, "")
    assert "Give --settings-profile" in line.call("prompts", "diff")[2]


def _asked(line: Line) -> list[str]:
    with closing(RunStore(file_url(line.folder / "data"))) as store:
        (run,) = store.list("command-line", limit=1)
        trace = store.load(run.id, "command-line")
    return [
        event.request.messages[0].content  # type: ignore[union-attr]
        for event in trace.events
        if event.kind == "model_called"
    ]


def test_one_question_is_asked_with_a_file_and_the_next_without(line: Line, wording: Path):
    model = ("--profile", "scripted", "--model", str(line.script), "--method", "direct")
    ask = ("ask", "What is the capital of land 1?", *model)
    status, out, err = line.call(*ask, "--prompts", str(wording))
    assert status == 0, err
    assert "prompts of your own: direct/system (en)" in out
    assert _asked(line) == ["Answer in one word."]
    _, out, _ = line.call("runs", "list", "--own-prompts")
    own = out.split()[0]
    status, out, _ = line.call(*ask)
    assert "prompts of your own" not in out
    assert _asked(line) == [load_prompts("direct").default("en", "system")]
    assert line.call("runs", "list", "--own-prompts")[1].split()[0] == own
    other = line.call("runs", "list")[1].split()[0]
    _, out, _ = line.call("runs", "diff", own, other)
    assert "prompt direct/system (en):" in out
    assert "- Answer in one word." in out


def test_a_profile_is_made_changed_used_and_carried(line: Line, wording: Path, tmp_path: Path):
    save = ("profiles", "save", "Short", "--prompts", str(wording), "--set", "drad.theta_1=0.7")
    assert line.call(*save)[0] == 0
    out = line.call("profiles", "show", "Short")[1]
    assert "prompt direct/system (en)" in out
    assert "drad.theta_1 = 0.7  (default 0.6)" in out
    assert "own: en" in line.call("prompts", "list", "--settings-profile", "Short")[1]
    shown = line.call("prompts", "show", "direct/system", "--settings-profile", "Short")[1]
    assert shown.strip() == "Answer in one word."
    model = ("--profile", "scripted", "--model", str(line.script), "--method", "direct")
    ask = ("ask", "What is the capital of land 1?", *model, "--settings-profile", "Short")
    assert line.call(*ask)[0] == 0
    assert _asked(line) == ["Answer in one word."]
    # Carried by its file into another installation.
    path = tmp_path / "short.json"
    assert line.call("profiles", "export", "Short", "--to", str(path))[0] == 0
    assert line.call("profiles", "delete", "Short")[0] == 0
    assert line.call("profiles", "import", str(path))[0] == 0
    assert line.call("profiles", "show", "Short")[1] == out
    # Its file is one of prompts too.
    assert line.call("prompts", "diff", "--prompts", str(path))[0] == 1
    edit = ("profiles", "edit", "Short", "--rename", "Plain", "--default-prompts")
    assert "prompt direct" not in line.call(*edit)[1]
    assert line.call("profiles", "list")[1].split()[0] == "Plain"
    status, _, err = line.call("profiles", "edit", "Short", "--rename", "X")
    assert (status, "no profile" in err) == (1, True)


def test_templates_are_made_into_profiles(line: Line, monkeypatch: pytest.MonkeyPatch):
    for variable in ("OPENAI_API_KEY", "DASHSCOPE_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    out = line.call("profiles", "templates")[1]
    assert "main needs an address" in out
    assert "verifier needs a key: set DASHSCOPE_API_KEY" in out
    rows = [json.loads(one) for one in line.call("profiles", "templates", "--json")[1].splitlines()]
    assert [row["template"] for row in rows] == ["embedded", "local_qwen", "openai_qwen_max"]
    status, _, err = line.call("profiles", "make", "local_qwen")
    assert (status, "has no address" in err) == (2, True)
    made = ("profiles", "make", "local_qwen", "--address", "main=http://localhost:8000/v1")
    status, out, _ = line.call(*made, "--model", "main=qwen3")
    assert (status, "main: qwen3 http://localhost:8000/v1" in out) == (0, True)
    status, _, err = line.call(*made)
    assert (status, "already" in err) == (2, True)
    monkeypatch.setenv("OPENAI_API_KEY", "hunter2-hunter2")
    out = line.call("profiles", "make", "openai_qwen_max")[1]
    assert "main needs" not in out
    assert "hunter2" not in (line.folder / "data" / "veriscope.db").read_bytes().decode("latin-1")


def test_models_and_prices_are_saved(line: Line, tmp_path: Path):
    prices = tmp_path / "prices.json"
    prices.write_text('{"gpt-4o-mini": {"read": 0.15, "written": 0.6}}')
    roles = ("--role", "main=openai:gpt-4o-mini", "--role", "verifier=openai:q")
    more = ("--role-url", "verifier=https://h/v1", "--prices", str(prices))
    assert line.call("profiles", "save", "Paid", *roles, *more)[0] == 0
    out = line.call("profiles", "show", "Paid")[1]
    assert "main: gpt-4o-mini  0.15 / 0.6 USD a million tokens" in out
    assert "verifier: q https://h/v1" in out
    for bad, said in (
        (("--role", "boss=openai:x"), "names no role"),
        (("--role-url", "proxy=https://h/v1"), "given no model"),
        ((), "says nothing"),
    ):
        status, _, err = line.call("profiles", "save", "Bad", *bad)
        assert (status, said in err) == (2, True)


def test_systems_of_an_evaluation_have_the_wording_and_other_keys(line: Line, wording: Path):
    usual = line.evaluated()
    own = line.evaluated("--prompts", str(wording), "--name", "Own")
    assert own != usual
    with closing(RunStore(file_url(line.folder / "data"))) as store:
        spec = store.evaluations.get(own, "command-line").spec
        assert spec["systems"][0]["prompts"] == {
            "direct": {"en": {"system": "Answer in one word."}}
        }
        assert "prompts" not in store.evaluations.get(usual, "command-line").spec["systems"][0]
        runs = {
            run: store.load(run, "command-line").header.spec.prompts
            for _, run, _ in store.evaluations.outcomes(own, "command-line")
        }
    assert len(runs) == 5
    assert all(runs.values())
    # The files say it, and those of an evaluation with the default's prompts are as they were.
    head, row = line.call("evaluations", "show", own, "--format", "csv")[1].splitlines()
    assert (head.split(",")[-1], row.split(",")[-1]) == ("own_prompts", "direct/system (en)")
    assert "own_prompts" not in line.call("evaluations", "show", usual, "--format", "csv")[1]


def test_a_profile_of_prompts_is_recorded_with_a_run_that_follows_it(line: Line, wording: Path):
    assert line.call("profiles", "save", "Short", "--prompts", str(wording))[0] == 0
    model = ("--profile", "scripted", "--model", str(line.script), "--method", "direct")
    ask = ("ask", "What is the capital of land 1?", *model, "--settings-profile", "Short")
    other = wording.with_name("other.toml")
    other.write_text(WORDING.replace("one word", "two words"), encoding="utf-8")
    for more in ((), ("--prompts", str(other))):
        assert line.call(*ask, *more)[0] == 0

    async def names() -> list[str]:
        with closing(RunStore(file_url(line.folder / "data"))) as store:
            found = store.list("command-line")
            return [store.load(run.id, "command-line").header.spec.profile for run in found]

    assert asyncio.run(names()) == ["", "Short"]

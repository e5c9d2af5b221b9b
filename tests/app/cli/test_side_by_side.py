"""Models side by side, parts by tag, and the web in an evaluation, on the command line."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.app.cli.test_evaluate import Line


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    return Line(tmp_path, capsys)


def test_two_models_stand_side_by_side(line: Line):
    # The other one knows land 3, which the first does not.
    better = line.folder / "better.json"
    replies = [{"contains": [f"land {n}?"], "tokens": [[f"City{n}.", 0.9]]} for n in range(5)]
    better.write_text(json.dumps({"name": "better", "replies": replies}))
    two = ("--methods", "direct,direct", "--system-role", f"direct 2.main=scripted:{better}")
    name = line.evaluated(*two)
    table = line.call("evaluations", "show", name, "--metrics", "accuracy")[1]
    assert "direct    0.80" in table
    assert "direct 2  1.00" in table


@pytest.mark.parametrize("given", ["other.main=scripted:x", "direct.nobody=scripted:x", "main=x"])
def test_a_model_for_no_role_of_a_system_is_refused(line: Line, given: str):
    status, _, err = line.call(*line.begin, "--yes", "--system-role", given)
    assert status == 2
    assert "names no role of a system" in err


def test_a_part_by_tag(line: Line):
    rows = [
        {"question": f"What is the capital of land {n}?", "answers": [f"City{n}"],
         "tags": ["islands" if n < 2 else "land"]}
        for n in range(5)
    ]  # fmt: skip
    line.questions.write_text("".join(json.dumps(one) + "\n" for one in rows))
    name = line.evaluated("--map", "tags=tags")
    shown = line.call("evaluations", "show", name, "--tag", "land", "--metrics", "accuracy")[1]
    # Two of three: land 3 is among them.
    assert "direct  0.67" in shown
    assert "3 items" in shown
    study = ("study", "--evaluation", name, "--vary", "max_tokens=128", "--metrics", "accuracy")
    assert "1.00" in line.call(*study, "--tag", "islands")[1]
    assert "0.67" in line.call(*study, "--tag", "land")[1]
    for asked in (("evaluations", "show", name), study):
        status, _, err = line.call(*asked, "--tag", "sea")
        assert status == 2
        assert "islands, land" in err


def test_a_detector_of_several_and_a_repair_that_it_triggers(line: Line):
    samples = ["Rome is big.", "Rome is old."]
    rows = [
        {"id": str(n), "text": text, "hallucinated": wrong, "samples": samples, "question": "Rome?"}
        for n, (text, wrong) in enumerate((("Rome is old.", False), ("Rome is wet.", True)))
    ]
    line.questions.write_text("".join(json.dumps(one) + "\n" for one in rows))
    parts = ("question", "text", "hallucinated", "samples")
    maps = (option for part in parts for option in ("--map", f"{part}={part}"))
    two = ("--methods", "selfcheck,selfcheck", "--set", "selfcheck.variant=ngram")
    two = (*two, "--set", "selfcheck 2.variant=ngram", "--set", "selfcheck 2.ngram=unigram_avg")
    given = ("evaluate", "--data", str(line.questions), "--texts", *maps, *two, *line.go_on)
    status, _, err = line.call(*given, "--yes")
    assert status == 0, err
    show = ("evaluations", "show", line.listed()[0])
    shown = line.call(*show, "--combine", "both=selfcheck,selfcheck 2", "--metrics", "auroc")[1]
    # A word that no sample has is the most surprising one.
    assert shown.splitlines()[3].split()[:2] == ["both", "1.00"]
    for options, said in (
        (("--combine", "both=selfcheck,direct"), "direct"),
        (("--trigger", "x=selfcheck>high:selfcheck 2"), "cannot be understood"),
        # These only check: nothing is repaired.
        (("--trigger", "x=selfcheck>50%:selfcheck 2"), "cannot trigger"),
    ):
        status, _, err = line.call(*show, *options)
        assert (status, said in err) == (2, True), err


def test_the_web_is_the_evidence_of_every_system(line: Line):
    # Nothing answers there, which only RAG notices.
    web = ("--web", "wikipedia", "--web-url", "http://127.0.0.1:9")
    asked = (*line.begin, "--methods", "direct,rag", *web, "--limit", "1", "--yes")
    status, _, err = line.call(*asked)
    assert status == 1
    assert "1 answers failed and can be tried again: No connection to 127.0.0.1:9" in err

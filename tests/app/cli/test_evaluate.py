"""Evaluations on the command line, with scripted models: what is printed, and how it exits."""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import closing
from pathlib import Path

import pytest
from rich.cells import cell_len

from app.cli import evaluate as commands
from app.cli import main as cli
from app.cli.shared import OWNER
from pipelines.errors import ErrorInfo, failure
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.runner import EvaluationProgress
from pipelines.store import RunStore, file_url

QUESTIONS = [
    {"question": f"What is the capital of land {n}?", "answers": [f"City{n}"]} for n in range(5)
]


class Line:
    """The command line on a folder of its own; `call` gives status, standard output and error."""

    def __init__(self, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
        self._capsys = capsys
        self.folder = folder
        self.questions = folder / "questions.jsonl"
        self.questions.write_text("".join(json.dumps(one) + "\n" for one in QUESTIONS))
        # Land 3 is not known well.
        said = {3: "Nowhere."}
        replies = [
            {"contains": [f"land {n}?"], "tokens": [[said.get(n, f"City{n}."), 0.9]]}
            for n in range(5)
        ]
        self.script = folder / "script.json"
        self.script.write_text(json.dumps({"name": "script", "replies": replies}))
        self.begin = (
            *("evaluate", "--data", str(self.questions), "--map", "question=question"),
            *("--map", "answers=answers", "--profile", "scripted", "--model", str(self.script)),
            *("--methods", "direct", "--at-once", "1"),
        )
        self.go_on = ("--profile", "scripted", "--model", str(self.script))

    def call(self, *arguments: str) -> tuple[int, str, str]:
        status = cli.main(["--data", str(self.folder / "data"), *arguments])
        captured = self._capsys.readouterr()
        return status, captured.out, captured.err

    def evaluated(self, *more: str) -> str:
        """A whole evaluation; its id."""
        status, _, err = self.call(*self.begin, "--yes", *more)
        assert status == 0, err
        return self.listed()[0]

    def listed(self) -> list[str]:
        return [line.split()[0] for line in self.call("evaluations", "list")[1].splitlines()]


@pytest.fixture
def line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> Line:
    return Line(tmp_path, capsys)


def test_an_evaluation_ends_with_its_table(line: Line):
    status, out, err = line.call(*line.begin, "--yes", "--name", "Capitals")
    assert status == 0
    assert "The first 3 items come first" in err
    # Three of five are answered; each takes one call.
    assert "Left: 2 answers, 2.00 calls" in err
    assert "no price known" in err
    assert "Everything is answered." in err
    head, row, *_ = out.splitlines()
    assert head.split()[:2] == ["accuracy", "f1"]
    # Four of five are right; Wilson's interval.
    assert row.startswith("direct  0.80 [0.38, 0.96]")
    assert "Capitals: questions" in out
    assert max(map(cell_len, out.splitlines())) <= 120
    listed = line.call("evaluations", "list")[1]
    assert "5 of 5  Capitals" in listed


def test_every_system_answers_in_the_form_that_is_chosen(line: Line, tmp_path: Path):
    said = "Lands have capitals. So the answer is: City0."
    script = {"name": "reasons", "replies": [{"contains": ["So the answer is:"], "text": said}]}
    line.script.write_text(json.dumps(script))
    own = tmp_path / "own.toml"
    own.write_text('[direct.zh]\nsystem = "只写答案。"\n')
    evaluation = line.evaluated("--form", "reasoned", "--prompts", str(own))
    shown = ("--metrics", "exact_match,token_precision")
    _, out, _ = line.call("evaluations", "show", evaluation, *shown)
    # The reasoning is no part of the answer, which is that of one of five questions.
    assert "direct  0.20 [0.04, 0.62]  0.20" in out
    with closing(RunStore(file_url(line.folder / "data"))) as store:
        spec = EvaluationSpec.model_validate(store.evaluations.get(evaluation, OWNER).spec)
    asked = spec.systems[0].prompts["direct"]
    assert asked["en"]["system"].startswith("Answer the question. First think")
    # A wording of one's own goes before that of the form.
    assert asked["zh"]["system"] == "只写答案。"


def test_the_scales_of_judges_are_those_of_their_sentences(line: Line):
    # Two judges of yes and no, on two statements of one sentence each.
    rows = [
        {"question": "Where is Oslo?", "text": "Oslo is in Norway.", "hallucinated": False},
        {"question": "Where is Rome?", "text": "Rome is in Spain.", "hallucinated": True},
    ]
    line.questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    replies = [
        {"contains": [place], "choice": {"yes": yes, "no": 1 - yes}}
        for place, yes in (("Norway", 0.9), ("Spain", 0.3))
    ]
    line.script.write_text(json.dumps({"name": "judge", "replies": replies}))
    judge = f"scripted:{line.script}"
    status, _, err = line.call(
        *("evaluate", "--data", str(line.questions), "--map", "question=question", "--texts"),
        *("--map", "text=text", "--map", "hallucinated=hallucinated", "--methods", "slm"),
        *("--profile", "scripted", "--model", str(line.script), "--role", f"judge_1={judge}"),
        *("--set", "slm.context=none", "--yes"),
    )
    assert status == 0, err
    status, out, err = line.call("evaluations", "scales", line.listed()[0])
    # (0.9 + 0.3) / 2, and half of their distance.
    assert (status, "mu 0.6000, sigma 0.3000, 2 sentences" in out) == (0, True), out + err
    assert '"mu": 0.6, "sigma": 0.3, "n": 2}' in out


def test_passages_that_are_too_long_to_be_read_are_counted(line: Line):
    rows = [{**QUESTIONS[n], "context": "A city. " * (1000 + n)} for n in (0, 1)]
    line.questions.write_text("".join(json.dumps(row) + "\n" for row in rows))
    asked = ("--map", "passages=context", "--passages", "--yes")
    _, _, err = line.call(*line.begin, *asked)
    # 7,999 characters without the space at the end, and 8,007.
    assert "1 items hold over 8,000 characters of passages; the rest is not read." in err


def test_how_a_file_was_read_is_said_first_and_kept(line: Line, tmp_path: Path):
    rows = [{**row, "context": "A city."} for row in QUESTIONS]
    torn = "".join(json.dumps(one) + "\n" for one in rows) + '{"question": \n'
    line.questions.write_text(torn, encoding="utf-8")
    status, _, err = line.call(*line.begin, "--yes")
    assert status == 2
    assert "line 6: Expecting value" in err
    status, _, err = line.call(
        *line.begin, "--map", "passages=context", "--yes", "--leave-out-bad", "--limit", "1"
    )
    assert status == 0
    said = "Read as a table by its columns: Question from question (“What is the capital of…”"
    assert said in err
    assert "Passages from context (“A city.”)" in err
    assert "1 rows that cannot be read are left out: line 6" in err
    # No source is replaced by another one without a word.
    assert "1 items bring passages of their own. They are not used" in err
    evaluation = line.listed()[0]
    with closing(RunStore(file_url(line.folder / "data"))) as store:
        reading = EvaluationSpec.model_validate(
            store.evaluations.get(evaluation, OWNER).spec
        ).reading
    assert reading is not None
    assert [(one.part, one.columns) for one in reading.parts] == [
        ("question", ("question",)),
        ("answers", ("answers",)),
        ("passages", ("context",)),
    ]
    assert reading.left_out_count == 1


def test_results_are_written_as_a_workbook(line: Line, tmp_path: Path):
    pytest.importorskip("openpyxl")
    evaluation = line.evaluated("--limit", "2")
    assert line.call("evaluations", "show", evaluation, "--format", "xlsx")[0] == 2
    to = tmp_path / "results.xlsx"
    status, out, _ = line.call(
        "evaluations", "show", evaluation, "--format", "xlsx", "--to", str(to)
    )
    assert (status, out) == (0, "")
    assert to.read_bytes()[:2] == b"PK"


def test_without_a_terminal_it_stops_after_the_forecast_and_is_gone_on_with(line: Line):
    status, out, err = line.call(*line.begin)
    assert (status, out) == (0, "")
    (evaluation,) = line.listed()
    assert f"python -m pipelines evaluate --resume {evaluation} --yes" in err
    assert "3 of 5" in line.call("evaluations", "list")[1]
    status, out, err = line.call("evaluate", "--resume", evaluation, "--yes", *line.go_on)
    assert status == 0
    assert "3 of 5 answers are there" in err
    assert "0.80 [0.38, 0.96]" in out
    # Nothing is left: it says so and shows the table again.
    status, again, err = line.call("evaluate", "--resume", evaluation, *line.go_on)
    assert (status, again) == (0, out)
    assert "Left: 0 answers" in err


@pytest.mark.parametrize(("said", "answered"), [("y", 5), ("no", 3), ("", 3)])
def test_in_a_terminal_it_asks(
    line: Line, monkeypatch: pytest.MonkeyPatch, said: str, answered: int
):
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True)
    monkeypatch.setattr("builtins.input", lambda _: said)
    assert line.call(*line.begin)[0] == 0
    assert f"{answered} of 5" in line.call("evaluations", "list")[1]


def test_the_same_again_asks_nothing(line: Line):
    line.evaluated()
    # There is no script to answer from any more.
    line.script.unlink()
    status, out, err = line.call(*line.begin, "--yes")
    assert status == 0
    assert "5 of 5 answers are there" in err
    assert "0.80 [0.38, 0.96]" in out


def test_a_budget_ends_it_with_what_there_is(line: Line):
    status, out, err = line.call(*line.begin, "--yes", "--max-calls", "2")
    assert status == 1
    assert "The limit of calls is reached. 2 of 5 answers are kept." in err
    assert "direct  1.00" in out
    (evaluation,) = line.listed()
    status, _, err = line.call(
        "evaluate", "--resume", evaluation, "--yes", "--max-calls", "5", *line.go_on
    )
    assert status == 0, err


def test_answers_that_fail_for_a_passing_reason_can_be_tried_again(
    line: Line, monkeypatch: pytest.MonkeyPatch
):
    evaluation = line.evaluated()

    async def away(self: object, most: int | None = None):
        yield EvaluationProgress(
            total=5,
            answered=3,
            failed=2,
            last_error=ErrorInfo(code="timeout", message="Nobody answers.", remedy=""),
        )

    monkeypatch.setattr(commands.Runner, "run", away)
    monkeypatch.setattr(
        commands, "stored_forecast", lambda *_, **__: commands.Forecast.model_construct(
            answers=2, calls=ONE, tokens=ONE, seconds=ONE, money={}, unknown=(),
        ),
    )  # fmt: skip
    status, _, err = line.call("evaluate", "--resume", evaluation, "--yes", *line.go_on)
    assert status == 1
    assert "2 answers failed and can be tried again: Nobody answers." in err


ONE = commands.Range(value=1.0)


def test_an_error_of_every_item_is_told(line: Line):
    line.script.write_text(json.dumps({"name": "script", "replies": []}))
    status, _, err = line.call(*line.begin, "--yes")
    assert status == 3
    assert "5 of 5 answers ended in an error" in err
    (evaluation,) = line.listed()
    out = line.call("evaluations", "show", evaluation)[1]
    assert "errors" in out
    assert line.call("evaluations", "compare", evaluation)[0] == 2


def test_one_answer_in_error_is_another_exit_status(line: Line):
    script = json.loads(line.script.read_text())
    script["replies"] = script["replies"][:4]
    line.script.write_text(json.dumps(script))
    status, out, err = line.call(*line.begin, "--yes")
    assert status == 3
    assert "1 of 5 answers ended in an error; the table counts them." in err
    assert "direct" in out


def test_a_cluster_that_cannot_be_reached_leaves_no_evaluation(line: Line):
    pytest.importorskip("ray")
    status, _, err = line.call(*line.begin, "--yes", "--ray", "127.0.0.1:1")
    assert status != 0
    assert "There is no Ray cluster at 127.0.0.1:1" in err
    assert line.listed() == []
    # One that was there before stays.
    evaluation = line.evaluated()
    again = ("evaluate", "--resume", evaluation, "--yes", "--ray", "127.0.0.1:1", *line.go_on)
    assert line.call(*again)[0] != 0
    assert line.listed() == [evaluation]


@pytest.mark.parametrize("named", [True, False])
def test_after_the_database_is_lost_it_says_how_to_go_on(
    line: Line, monkeypatch: pytest.MonkeyPatch, named: bool
):
    database = f"sqlite:///{line.folder / 'other.db'}"
    before = ("--database", database) if named else ()
    run = commands.Runner.run

    async def losing(self: commands.Runner, most: int | None = None):
        async for progress in run(self, most):
            yield progress
            if progress.answered == 2:
                raise failure("storage.lost")

    monkeypatch.setattr(commands.Runner, "run", losing)
    status, _, err = line.call(*before, *line.begin, "--yes")
    assert status != 0
    monkeypatch.undo()
    evaluation = line.call(*before, "evaluations", "list")[1].split()[0]
    # The address may have a password in it: it is not repeated.
    place = " --database URL" if named else ""
    told = f"once the database is back: python -m pipelines{place} evaluate --resume {evaluation}\n"
    assert told in err
    assert database not in err
    again = ("evaluate", "--resume", evaluation, "--yes", *line.go_on)
    assert line.call(*before, *again)[0] == 0


def test_results_in_every_form(line: Line):
    evaluation = line.evaluated()

    def shown(*more: str) -> str:
        status, out, err = line.call("evaluations", "show", evaluation, *more)
        assert status == 0, err
        return out

    assert shown() == shown("--format", "text")
    assert shown("--metrics", "f1,exact_match").split()[:2] == ["f1", "exact_match"]
    assert shown("--format", "markdown").startswith("| System | exact\\_match ↑")
    assert "booktabs" in shown("--format", "latex")
    assert "factscore" not in shown("--format", "csv").splitlines()[0]
    assert len(shown("--format", "scores-csv").splitlines()) == 6
    head, *lines = shown("--format", "scores-jsonl").splitlines()
    assert json.loads(head)["evaluation"]["data_set"] == "questions"
    assert {json.loads(one)["method"] for one in lines} == {"direct"}


def test_systems_are_compared_item_by_item(line: Line):
    # Another limit is another system, which answers alike.
    evaluation = line.evaluated("--methods", "direct,direct", "--set", "direct 2.max_tokens=99")
    status, out, err = line.call("evaluations", "compare", evaluation, "--items", "1")
    assert status == 0, err
    said = " ".join(out.split())
    assert "accuracy on the 5 items that all of them have, 0 left out" in said
    assert "direct direct 2 0.00" in said
    assert out.count("\ncapital") + out.count("?\n") == 1
    for form, begins in (("markdown", "| First |"), ("latex", "% \\usepackage{booktabs}"),
                         ("csv", "item,question,spread"), ("jsonl", '{"comparison"')):  # fmt: skip
        status, out, err = line.call("evaluations", "compare", evaluation, "--format", form)
        assert status == 0, err
        assert out.startswith(begins)


def test_two_evaluations_are_compared(line: Line):
    first = line.evaluated()
    second = line.evaluated("--set", "direct.max_tokens=99")
    assert first != second
    status, out, err = line.call("evaluations", "compare", second, "--reference", first)
    assert status == 0, err
    assert "new: direct reference: direct" in " ".join(out.split())
    # A part of the data is other data.
    part = line.evaluated("--limit", "2")
    status, _, err = line.call("evaluations", "compare", part, "--reference", first)
    assert status == 2
    assert "not of the same data" in err
    status, out, _ = line.call(
        "evaluations", "compare", part, "--reference", first, "--same-ids", "--metric", "f1"
    )
    assert status == 0
    assert "f1 on the 2 items that all of them have, 3 left out" in " ".join(out.split())


def test_one_can_be_deleted_and_its_runs_stay(line: Line):
    evaluation = line.evaluated()
    assert line.call("evaluations", "delete", evaluation) == (0, "", "")
    assert line.listed() == []
    with closing(RunStore(file_url(line.folder / "data"))) as store:
        assert len(store.list(commands.OWNER)) == 5


@pytest.mark.parametrize("command", ["show", "compare", "delete"])
def test_what_is_not_there_is_said(line: Line, command: str):
    status, _, err = line.call("evaluations", command, "nothing")
    assert status == 1
    assert "There is no evaluation of that name here" in err


def test_one_without_an_answer_has_no_table(line: Line):
    line.call(*line.begin, "--yes", "--max-calls", "0")
    (evaluation,) = line.listed()
    status, _, err = line.call("evaluations", "show", evaluation)
    assert status == 2
    assert f"evaluate --resume {evaluation}" in err


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("--methods", "direct,nothing"), "There is no method 'nothing'"),
        (("--methods", ","), "No method was chosen"),
        (("--set", "rag.passages=2"), "names no setting of a chosen method"),
        (("--set", "direct.max_tokens"), "SYSTEM.SETTING=VALUE"),
        (("--set", "direct.max_tokens=1"), "max_tokens"),
        (("--map", "nothing=question"), "names no part of an item"),
        (("--map", "text"), "PART=COLUMN"),
        (("--map", "text=nothing"), "nothing"),
        (("--kind", "triviaqa"), "kind"),
        (("--max-money", "3"), "no model of this evaluation has a price"),
        (("--role", "verifier=nothing:m"), "There is no profile 'nothing'"),
        (("--key-env", "NOT_SET"), "holds no key"),
        (("--texts",), "empty"),
        (("--passages",), "passages"),
        (("--part", "odd", "--limit", "0"), "whole number from 1"),
        (("--limit", "-1"), "whole number from 1"),
        (("--at-once", "0"), "whole number from 1"),
        (("--repeats", "0"), "whole number from 1"),
        (("--repeats", "21"), "from 1 to 20"),
        (("--seed", "-1"), "whole number from 0"),
        (("--max-hours", "nan"), "no number from 0"),
        (("--max-calls", "many"), "whole number from 0"),
    ],
)
def test_unusable_input_is_refused_before_anything_is_asked(
    line: Line, capsys: pytest.CaptureFixture[str], more: tuple[str, ...], says: str
):
    try:
        status, _, err = line.call(*line.begin, "--yes", *more)
    except SystemExit as end:
        status, err = end.code, capsys.readouterr().err
    assert status == 2
    assert says in err
    assert line.listed() == []


@pytest.mark.parametrize(
    ("more", "says"),
    [
        (("show", "--metrics", "nothing"), "no value of 'nothing'"),
        (("show", "--metrics", "f1", "--format", "csv"), "format text"),
        (("compare",), "One system is no comparison"),
        (("compare", "--systems", "direct,rag"), "no system 'rag'"),
        (("compare", "--same-ids"), "--reference"),
        (("compare", "--reference", "nothing"), "no evaluation"),
    ],
)
def test_what_results_cannot_show_is_said(line: Line, more: tuple[str, ...], says: str):
    evaluation = line.evaluated()
    command, *options = more
    status, _, err = line.call("evaluations", command, evaluation, *options)
    assert status in (1, 2)
    assert says in err


def test_a_file_that_is_not_there_is_named(line: Line):
    arguments = list(line.begin)
    arguments[2] = "nowhere.jsonl"
    status, _, err = line.call(*arguments)
    assert status == 2
    assert "nowhere.jsonl" in err


def test_an_interrupt_keeps_what_was_answered(
    line: Line, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    run = commands.Runner.run

    async def interrupted(self: commands.Runner, most: int | None = None):
        async for progress in run(self, most):
            yield progress
            if progress.answered == 2:
                raise asyncio.CancelledError

    monkeypatch.setattr(commands.Runner, "run", interrupted)
    with pytest.raises(asyncio.CancelledError):
        line.call(*line.begin, "--yes")
    monkeypatch.undo()
    said = capsys.readouterr().err
    (evaluation,) = line.listed()
    assert f"To go on: python -m pipelines evaluate --resume {evaluation}" in said
    assert "2 of 5" in line.call("evaluations", "list")[1]
    assert line.call("evaluate", "--resume", evaluation, "--yes", *line.go_on)[0] == 0

"""The table that estimates rest on, from records made by hand."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from pipelines.engine.estimate import Effort, EffortTable, MeasuredEffort, Pace
from pipelines.methods.direct import Direct
from pipelines.run.events import default_models
from pipelines.run.view import RunView, fold
from research.measure import default as command
from research.measure.asking import MethodAnswer, QuestionRecord
from research.measure.effort import nonnegative, question_pace, with_records
from tests.research.measure.test_default import ASKED
from tests.scripted.bench import PieceModel, run_method


def attempt(calls: int, read: int, written: int, judges: int = 0, error: str = "") -> MethodAnswer:
    return MethodAnswer(
        calls=calls, judge_calls=judges, prompt_tokens=read, tokens=written, error=error
    )


def record(seconds: float, **methods: MethodAnswer) -> QuestionRecord:
    return QuestionRecord(asked=ASKED, methods=methods, seconds=seconds)


RECORDS = [
    record(3.0, direct=attempt(1, 10, 20), rag=attempt(1, 40, 10, judges=2)),
    record(4.0, direct=attempt(1, 30, 41), rag=attempt(0, 0, 0, error="It failed.")),
]


NOTHING = MeasuredEffort(model="", questions=0, methods={})
EMPTY = EffortTable(
    default=NOTHING, walkthroughs=NOTHING, pace=Pace(start=0, read=0, written=0, cores=1)
)


async def played() -> RunView:
    done = await run_method(Direct(), "Where?", PieceModel(lambda request: "In Hope."))
    return fold(done.trace.events)


async def test_means_are_over_the_questions_that_were_answered():
    table = with_records(EMPTY, RECORDS, [await played()], cores=2)
    assert table.default.model == default_models()["main"].name
    assert (table.default.questions, table.walkthroughs.questions) == (2, 1)
    direct, rag = (table.default.methods[name] for name in ("direct", "rag"))
    assert direct["main"] == Effort(calls=1, read=20, written=30.5)
    assert rag == {"main": Effort(calls=1, read=40, written=10), "judge_1": Effort(calls=2)}
    (scripted,) = table.walkthroughs.methods.values()
    assert scripted["main"].calls == 1
    assert scripted["main"].written == len("In Hope.") / 4


async def test_each_language_is_measured_apart_and_other_methods_stay():
    chinese = [
        one.model_copy(update={"asked": one.asked.model_copy(update={"language": "zh"})})
        for one in RECORDS[:1]
    ]
    before = with_records(EMPTY, RECORDS, [await played()], cores=2)
    before.default.methods["rarr"] = {"main": Effort(calls=9)}
    found = with_records(before, chinese, [], cores=4)
    assert found.default == before.default
    assert found.chinese is not None
    assert found.chinese_pace is not None
    assert (found.chinese.questions, found.chinese_pace.cores) == (1, 4)
    assert found.chinese.model == default_models("zh")["main"].name
    again = with_records(found, RECORDS, [await played()], cores=2)
    assert again.chinese == found.chinese
    assert again.default.methods["rarr"] == {"main": Effort(calls=9)}
    assert again.default.fewer == {"rarr": 2}


def test_the_pace_is_fitted_on_whole_runs():
    # 2 seconds to begin, and a tenth of a second for each token written.
    runs = [record(2 + 0.1 * n, direct=attempt(1, 7, n)) for n in (10, 30, 80)]
    found = question_pace(runs, cores=3)
    # That all runs read 7 tokens can also stand for the start.
    assert found.start + 7 * found.read == pytest.approx(2.0, rel=1e-3)
    assert (found.written, found.cores) == (pytest.approx(0.1), 3)


@pytest.mark.parametrize(
    ("columns", "values", "weights"),
    [
        ([[1, 1], [1, 2], [1, 3]], [3, 5, 7], [1, 2]),
        # Without bounds the second weight is -1. The first alone: (1 * 4 + 2 * 7) / (1 + 4).
        ([[1, 0], [2, 1]], [4, 7], [3.6, 0]),
        ([[1, 0], [0, 1]], [-1, -2], [0, 0]),
    ],
)
def test_no_term_is_negative(columns: list[list[float]], values: list[float], weights: list[float]):
    assert nonnegative(np.array(columns, float), np.array(values, float)) == pytest.approx(weights)


def test_the_command_writes_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    async def none() -> list[RunView]:
        return []

    monkeypatch.setattr(command, "play_english", none)
    records, table = tmp_path / "records.jsonl", tmp_path / "effort.json"
    records.write_text("\n".join(one.model_dump_json() for one in RECORDS), encoding="utf-8")
    assert command.main(["--again", str(records), "--effort", str(table)]) == 0
    assert capsys.readouterr().out
    written = EffortTable.model_validate_json(table.read_bytes())
    assert written.default.questions == 2
    assert written.pace.written > 0

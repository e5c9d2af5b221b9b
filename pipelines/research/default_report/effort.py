"""The table that estimates rest on, `assets/effort.json`: from records, and from walkthroughs."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import aclosing
from itertools import combinations
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from pipelines.engine.estimate import (
    Effort,
    EffortTable,
    MeasuredEffort,
    Pace,
    efforts_of,
    mean_efforts,
)
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.research.default_report.asking import MethodAnswer, QuestionRecord
from pipelines.run.defaults import default_models
from pipelines.run.spec import JUDGES
from pipelines.run.view import RunView, fold
from pipelines.samples.walkthroughs import build_unpaced, walkthroughs
from pipelines.types import Language


def with_records(
    table: EffortTable, records: Sequence[QuestionRecord], played: Sequence[RunView], cores: int
) -> EffortTable:
    """Return `table` with what the methods took in `records`, on `cores` cores, by language.

    Methods that `records` do not have stay as they were measured, on fewer questions.
    """
    english, chinese = (
        [record for record in records if record.asked.language == code] for code in ("en", "zh")
    )
    if english:
        new = effort_table(english, played, cores)
        old = table.default
        kept = {name: one for name, one in old.methods.items() if name not in new.default.methods}
        default = new.default.model_copy(
            update={
                "methods": {**new.default.methods, **kept},
                "fewer": {name: old.fewer.get(name, old.questions) for name in kept},
            }
        )
        table = table.model_copy(
            update={"default": default, "walkthroughs": new.walkthroughs, "pace": new.pace}
        )
    if chinese:
        measured = _measured(chinese, "zh")
        table = table.model_copy(update={"chinese": measured, "chinese_pace": pace(chinese, cores)})
    return table


def _measured(records: Sequence[QuestionRecord], language: Language) -> MeasuredEffort:
    taken = [
        {name: _efforts(one) for name, one in record.methods.items() if not one.error}
        for record in records
    ]
    return MeasuredEffort(
        model=default_models(language)["main"].name,
        questions=len(records),
        methods=_rounded(mean_efforts(taken)),
    )


def effort_table(
    records: Sequence[QuestionRecord], played: Sequence[RunView], cores: int
) -> EffortTable:
    """Return what the methods took in `records`, on `cores` cores, and in walkthroughs `played`."""
    default = _measured(records, "en")
    scripted = MeasuredEffort(
        model="",
        questions=len(played),
        methods=_rounded(mean_efforts([efforts_of(one, by_characters=True) for one in played])),
    )
    return EffortTable(default=default, walkthroughs=scripted, pace=pace(records, cores))


def with_rows(table: EffortTable, records: Sequence[QuestionRecord]) -> EffortTable:
    """Return `table` with what the methods took that it does not have yet; `records` were
    asked apart.

    The other rows and the pace stay as they were measured.
    """
    default = table.default
    taken = [
        {
            name: _efforts(one)
            for name, one in record.methods.items()
            if not one.error and name not in default.methods
        }
        for record in records
    ]
    found = _rounded(mean_efforts(taken))
    fewer = {name: sum(name in one for one in taken) for name in found}
    changed = default.model_copy(
        update={"methods": {**default.methods, **found}, "fewer": {**default.fewer, **fewer}}
    )
    return table.model_copy(update={"default": changed})


def pace(records: Sequence[QuestionRecord], cores: int) -> Pace:
    """Return the seconds of a run by the tokens it reads and writes and the verdicts it asks for:
    least squares without negative terms."""
    attempts = [list(record.methods.values()) for record in records]
    rows = [
        [
            1.0,
            sum(one.prompt_tokens for one in of),
            sum(one.tokens for one in of),
            sum(one.judge_calls for one in of),
        ]
        for of in attempts
    ]
    found = nonnegative(np.array(rows), np.array([record.seconds for record in records]))
    start, read, written, judged = (float(f"{value:.4g}") for value in found)
    return Pace(start=start, read=read, written=written, cores=cores, judged=judged)


def nonnegative(columns: np.ndarray, values: np.ndarray) -> list[float]:
    """Return the weights of `columns` (rows by terms), none below 0, that come nearest to `values`.

    Exact for a few terms: of all subsets whose own solution is nonnegative the best is taken.
    """
    terms = columns.shape[1]
    best, least = [0.0] * terms, float(np.sum(values**2))
    for count in range(1, terms + 1):
        for chosen in combinations(range(terms), count):
            part = columns[:, chosen]
            weights = np.linalg.lstsq(part, values, rcond=None)[0]
            error = float(np.sum((part @ weights - values) ** 2))
            if weights.min() >= 0 and error < least:
                least, best = error, [0.0] * terms
                for place, weight in zip(chosen, weights.tolist(), strict=True):
                    best[place] = weight
    return best


async def play_english() -> list[RunView]:
    """Return the English walkthroughs whose models are scripted, played without a pause."""
    chosen = [one for one in walkthroughs() if one.language == "en" and one.models is not None]
    with TemporaryDirectory() as data:
        service = Service(Path(data), pool=ModelPool(build_unpaced))
        async with aclosing(service):
            traces = [await service.record(one.spec(), owner="effort") for one in chosen]
    return [fold(trace.events) for trace in traces]


def _efforts(attempt: MethodAnswer) -> dict[str, Effort]:
    """Return the efforts: records do not tell judges apart, nor what these read, which costs
    nothing.
    """
    return {
        "main": Effort(calls=attempt.calls, read=attempt.prompt_tokens, written=attempt.tokens),
        JUDGES[0]: Effort(calls=attempt.judge_calls),
    }


def _rounded(methods: dict[str, dict[str, Effort]]) -> dict[str, dict[str, Effort]]:
    """Return the efforts, rounded for a file that people read."""
    return {
        name: {
            role: Effort(**{key: round(value, 2) for key, value in effort.model_dump().items()})
            for role, effort in roles.items()
        }
        for name, roles in methods.items()
    }

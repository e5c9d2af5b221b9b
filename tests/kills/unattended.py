"""An evaluation on the bundled model, as a user starts it and leaves it alone; and one that dies.

It is `python -m pipelines evaluate`, in processes of their own, with every method on the same
questions. They are the English sample questions in the form of TriviaQA's file.
"""

from __future__ import annotations

import asyncio
import csv
import json
import os
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from io import StringIO
from math import isclose
from pathlib import Path
from typing import Any, NamedTuple

from app.cli.shared import OWNER
from pipelines.engine.service import Service
from pipelines.errors import NotFoundError
from pipelines.evaluation.datasets.opening import sample_questions
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.scoring import read_results
from pipelines.methods.registry import METHODS
from pipelines.run.calls import request_key
from pipelines.run.events import ModelCalled, Trace
from pipelines.store import RunStore, file_url
from pipelines.store.evaluations import Attempt

_ROOT = Path(__file__).resolve().parents[2]
_ID = re.compile(r"Evaluation ([0-9a-f]{32})")
_ANSWERED = re.compile(r"(\d+) of \d+ answered")


ABLE = tuple(name for name in METHODS if name != "self_rag")
"""The methods that the bundled model can run: Self-RAG needs weights that were trained for it."""

_SHORTER = (
    "rowen.k=3",
    "self_reflection.knowledge_rounds=1",
    "self_reflection.answer_rounds=1",
    "self_reflection.restarts=0",
    "debate.agents=2",
    "debate.rounds=1",
    "sac3.paraphrases=3",
)
"""The methods that call most often repeat themselves less: the hour is for all of the tests."""


def write_questions(path: Path, numbers: Iterable[int]) -> Path:
    """The sample questions of these numbers in the form of TriviaQA's file, with all aliases."""
    known = sample_questions("en")
    rows = [
        {
            "QuestionId": f"q{number}",
            "Question": item.question,
            "Answer": {
                "Value": item.answers[0],
                "Aliases": list(item.answers),
                "NormalizedAliases": [answer.lower() for answer in item.answers],
            },
        }
        for number in numbers
        for item in [known[number]]
    ]
    path.write_text(json.dumps({"Data": rows}, ensure_ascii=False), encoding="utf-8")
    return path


class Stored(NamedTuple):
    """The outcomes of each question, and how often each whole reply was asked of a model for it.

    `open` answers are missing; what `uncounted` attempts have spent is not counted yet.
    """

    outcomes: dict[str, list[dict[str, Any]]]
    calls: dict[str, Counter[str]]
    open: int
    uncounted: int


@dataclass
class Evaluation:
    """One evaluation in the data folder `data`; `id` once it has begun."""

    data: Path
    questions: Path
    id: str = ""

    def work(self, until: int | None = None) -> str:
        """Begin it or go on, to the end; or kill it (-9) when `until` answers are there.

        Returns what it printed: the table, where it came to its end.
        """
        if self.id:
            given = ["--resume", self.id]
        else:
            # A local model that answers several at a time rounds differently from time to time.
            methods = ["--methods", ",".join(ABLE), "--reproducible"]
            shorter = [part for one in _SHORTER for part in ("--set", one)]
            given = ["--data", str(self.questions), *methods, *shorter]
        process = subprocess.Popen(
            [sys.executable, "-m", "pipelines", *self._folder, "evaluate", *given, "--yes"],
            cwd=_ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        assert process.stderr is not None
        said: list[str] = []
        for line in process.stderr:
            said.append(line)
            if found := _ID.search(line):
                self.id = found[1]
            answered = _ANSWERED.match(line)
            if answered and until is not None and int(answered[1]) >= until:
                os.killpg(process.pid, 9)
                break
        printed, _ = process.communicate()
        assert until is not None or process.returncode == 0, "".join(said)
        return printed

    def scores(self) -> dict[tuple[str, str], dict[str, str]]:
        """Every metric of every answer, by question and system, without the time that it took."""
        show = ["evaluations", "show", self.id, "--format", "scores-csv"]
        printed = subprocess.run(
            [sys.executable, "-m", "pipelines", *self._folder, *show],
            cwd=_ROOT,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        own = {"run", "cost.seconds"}
        return {
            (row["item"], row["system"]): {
                name: value for name, value in row.items() if name not in own
            }
            for row in csv.DictReader(StringIO(printed))
        }

    def table(self) -> dict[str, Any]:
        """All numbers of its table, without times."""
        with closing(RunStore(file_url(self.data))) as store:
            found = read_results(store.evaluations, self.id, OWNER)[1]
        table = results_table(found).model_dump(mode="json", exclude={"created"})
        for row in table["rows"]:
            del row["costs"]["seconds"]
        return table

    def stored(self) -> Stored:
        """What is stored of it."""
        return asyncio.run(self._stored())

    async def _stored(self) -> Stored:
        service = Service(self.data)
        store = service.store.evaluations
        spec = EvaluationSpec.model_validate(store.get(self.id, OWNER).spec)
        names: dict[int, str] = {}
        outcomes: dict[str, list[dict[str, Any]]] = {}
        after = -1
        # They come some hundreds at a time.
        while page := store.outcomes(self.id, OWNER, after):
            for task, _, body in page:
                if task.position not in names:
                    names[task.position] = store.item(self.id, task.position)["id"]
                outcomes.setdefault(names[task.position], []).append(_lasting(body))
                after = task.number
        calls: dict[str, Counter[str]] = {}
        for attempt, trace in recorded_runs(service.store, self.id):
            asked = (
                f"{event.role} {request_key(event.request)}"
                for event in trace.events
                if isinstance(event, ModelCalled) and not event.cached and _is_whole(event)
            )
            question = names[attempt.number // len(spec.systems)]
            calls.setdefault(question, Counter()).update(asked)
        left = len(store.open_tasks(self.id)), len(store.attempts(self.id, counted=False))
        await service.aclose()
        return Stored(outcomes, calls, *left)

    @property
    def _folder(self) -> Sequence[str]:
        return ["--data", str(self.data)]


def recorded_runs(store: RunStore, evaluation: str) -> Iterator[tuple[Attempt, Trace]]:
    """What was recorded for `evaluation`, also by attempts that were killed."""
    for attempt in store.evaluations.attempts(evaluation, counted=True):
        # One that was killed before anything was stored has recorded nothing.
        with suppress(NotFoundError):
            yield attempt, store.load(attempt.run, OWNER)


def _is_whole(call: ModelCalled) -> bool:
    """Whether it was answered, and the method did not end the text early."""
    ends = [one.finish_reason for one in call.generations]
    return call.error is None and call.role != "embedder" and "watcher" not in ends


def _lasting(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome without what every attempt has of its own: times, what was paid, and the order.

    Parts that are judged at the same time are recorded as they are ready.
    """
    cost = {name: value for name, value in outcome["cost"].items() if name != "seconds"}
    pieces = sorted(outcome["pieces"], key=_place)
    own = {"cost": cost, "pieces": pieces}
    return {name: value for name, value in outcome.items() if name != "paid"} | own


def _place(piece: dict[str, Any]) -> str:
    return json.dumps({key: piece[key] for key in sorted(piece) if key not in ("scores", "doubt")})


def same(one: Any, other: Any) -> bool:
    """Whether two outcomes are equal, numbers but for rounding.

    An embedding in 4-bit numbers differs with the texts that it was computed beside: a cosine in
    its fourth digit.
    """
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(same(one[key], other[key]) for key in one)
    if isinstance(one, (list, tuple)) and isinstance(other, (list, tuple)):
        return len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, float) and isinstance(other, float):
        return isclose(one, other, rel_tol=1e-3, abs_tol=1e-3)
    return one == other


def as_numbers(scores: Iterable[str]) -> list[float | str]:
    """Values of a table, those that are numbers as numbers."""
    found: list[float | str] = []
    for text in scores:
        try:
            found.append(float(text))
        except ValueError:
            found.append(text)
    return found

"""What is killed, and what looks at the result afterwards; each runs in a process of its own.

The processes are forked from one that has imported everything, so that a kill falls on the work and
not on the imports, and a hundred of them take minutes.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy  # noqa: F401 - imported before processes are forked, not in each of them
from sqlalchemy import inspect, text

from app.cli import library as catalogue_commands
from app.cli import main as cli
from pipelines.base import Passage
from pipelines.engine.library import Libraries
from pipelines.engine.service import Service
from pipelines.evaluation.plan import EvaluationSpec, Item, System, code_version, tasks_of
from pipelines.evaluation.runner import Runner
from pipelines.models.catalogue import CatalogueEntry
from pipelines.models.providers import ModelSpec
from pipelines.retrieval.documents import Document
from pipelines.retrieval.library import build_index, current_index
from pipelines.run.calls import request_key
from pipelines.run.events import MethodSpec, ModelCalled, RunStarted, TerminalEvent, Trace
from pipelines.store.database import open_engine
from pipelines.store.exchange import export_lines, parse_lines
from pipelines.store.migrations import upgrade
from tests.pipelines.retrieval.examples import WordEmbedder

OWNER = "command-line"
NEW = "note"
"""The column that the test's revision adds to the runs."""

EVALUATION = "e"
AT_ONCE = 2
"""Answers that an evaluation works on at a time."""

ITEMS = 10

QUESTION = "Where was Bill Clinton born?"


def _print_to(output: Path) -> None:
    """From now on standard output and error go to the file, line by line."""
    file = os.open(output, os.O_CREAT | os.O_WRONLY | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(file, stream)
    sys.stdout = os.fdopen(1, "w", buffering=1, encoding="utf-8")
    sys.stderr = os.fdopen(os.dup(1), "w", buffering=1, encoding="utf-8")


def command(output: Path, *arguments: str) -> None:
    """The command line, as `python -m pipelines` runs it, with a library that needs no model."""
    _print_to(output)
    cli.Service = _Service
    os._exit(cli.main(arguments))


class _Service(Service):
    def __init__(self, data: Path, **options: Any) -> None:
        libraries = Libraries(data / "index", None, lambda: None)
        super().__init__(data, libraries=libraries, **options)


def evaluate(output: Path, data: Path, address: str) -> None:
    """Begin the evaluation of `evaluated`, or continue it, until everything is answered."""
    _print_to(output)

    async def work() -> None:
        service = _Service(data)
        store, (spec, items) = service.store.evaluations, evaluated(address)
        if not store.list(OWNER):
            rows = [(item.id, item) for item in items]
            body = spec.model_dump(mode="json")
            store.create(EVALUATION, OWNER, "killed", body, rows, tasks_of(spec, items))
        async for progress in Runner(service, EVALUATION, owner=OWNER, at_once=AT_ONCE).run():
            told = {"answered": progress.answered, "reason": progress.reason}
            print(json.dumps(told | {"calls": progress.spent.calls}))
        await service.aclose()

    asyncio.run(work())
    os._exit(0)


def evaluated(address: str) -> tuple[EvaluationSpec, list[Item]]:
    """An evaluation of three methods, two of which begin with a draft that others have too."""
    model = ModelSpec(
        kind="openai",
        name="m",
        model="m",
        base_url=f"{address}/v1",
        top_logprobs=5,
        prefill=True,
        structured_output=False,
        languages=("en", "zh"),
    )
    settings = {"direct": {}, "drad": {"theta_2": None}, "rowen": {"variant": "cl", "k": 2}}
    spec = EvaluationSpec(
        data="killed",
        data_hash="h",
        code=code_version(),
        systems=tuple(
            System(
                name=name,
                method=MethodSpec(name=name, settings=given),
                models={"main": model},
                evidence=None,
            )
            for name, given in settings.items()
        ),
    )
    passage = Passage(
        id="p", title="Ada Brandt", text="Ada Brandt was born in Delft in 1904.", source="test"
    )
    items = [
        Item(
            id=f"q{number}",
            question=f"Where and when was Ada Brandt {number} born?",
            answers=("Delft", "in Delft in 1904"),
            passages=(passage,),
            language="en",
        )
        for number in range(ITEMS)
    ]
    return spec, items


def look_at_evaluation(output: Path, data: Path) -> None:
    """In one line: what was answered, the runs with their owners, and what was spent."""
    _print_to(output)
    service = _Service(data)
    store = service.store.evaluations
    found = {
        "outcomes": [body for _, _, body in store.outcomes(EVALUATION, OWNER)],
        "open": len(store.open_tasks(EVALUATION)),
        "uncounted": len(store.attempts(EVALUATION, counted=False)),
        "spent": sum(one.spent["calls"] for one in store.attempts(EVALUATION, counted=True)),
        "calls": [
            {"key": request_key(event.request), "cut": _is_cut(event), "error": bool(event.error)}
            for run, owner in _runs(service)
            for event in service.store.load(run, owner).events
            if isinstance(event, ModelCalled) and not event.cached
        ],
    }
    print(json.dumps(found))
    os._exit(0)


def _is_cut(call: ModelCalled) -> bool:
    """Whether the method itself ended the text early; such a reply answers nobody else."""
    return any(one.finish_reason == "watcher" for one in call.generations)


def _runs(service: Service) -> list[tuple[str, str]]:
    with service.store._database.read() as session:
        return [(run, owner) for run, owner in session.execute(text("SELECT id, owner FROM runs"))]


def download(output: Path, data: Path, described: str, hub: str) -> None:
    """The command that downloads a model, for one that no catalogue has."""
    _print_to(output)
    os.environ["HF_ENDPOINT"] = hub
    entry = CatalogueEntry.model_validate_json(described)
    catalogue_commands.download_named = lambda name: entry
    os._exit(cli.main(["--data", str(data), "models", "download", entry.name]))


def documents(version: int) -> list[Document]:
    """A library of 40 documents, of which every version changes some."""
    return [
        Document(
            id=f"d{number}",
            title=f"Document {number}",
            language="en",
            source=f"d{number}.md",
            text=" ".join(
                f"Sentence {line} of document {number}, version {version if number % 3 else 0}."
                for line in range(60)
            ),
        )
        for number in range(40)
    ]


def index(output: Path, target: Path, version: int) -> None:
    """Bring an index up to date."""
    _print_to(output)
    build_index(documents(version), target, WordEmbedder())
    print("indexed")
    os._exit(0)


def migrate(output: Path, database: Path, revisions: Path) -> None:
    """Bring a database to the newest schema of the folder `revisions`."""
    _print_to(output)
    upgrade(open_engine(f"sqlite:///{database}"), revisions)
    print("upgraded")
    os._exit(0)


def serve(output: Path, data: Path, port: int) -> None:
    """The Space, over a model that writes slowly and always the same."""
    _print_to(output)
    os.environ["GRADIO_ANALYTICS_ENABLED"] = "False"
    from app.public.serving import Space
    from app.public.visitors import VisitorLimits
    from pipelines.engine.pool import ModelPool
    from pipelines.models.scripted import ScriptedModel

    said = {"contains": "", "tokens": [[" Hope", 0.9]] * 12}
    pool = ModelPool(lambda *_: ScriptedModel.from_replies([said], pace=0.05))
    space = Space(
        data,
        VisitorLimits(max_runs=4, max_runs_per_visitor=4),
        pool=pool,
        libraries=Libraries(data / "index", None, lambda: None),
    )
    space.launch(server_name="127.0.0.1", server_port=port, quiet=True)


def look_at_runs(output: Path, data: Path) -> None:
    """Every run of a data folder, opened as every start opens it, in JSON: a line per run."""
    _print_to(output)

    async def look() -> None:
        service = _Service(data)
        store = service.store
        with store._database.read() as session:
            rows = session.execute(text("SELECT id, owner, status, length FROM runs")).all()
        for run, owner, status, length in rows:
            events = store.load(run, owner).events
            print(json.dumps({"run": run, "status": status} | _whole(events, status, length)))
        await service.aclose()

    asyncio.run(look())
    os._exit(0)


def _whole(events: tuple[Any, ...], status: str, length: int) -> dict[str, Any]:
    """What is wrong with the events of a run, if anything, and the events themselves."""
    ends = [event for event in events if isinstance(event, TerminalEvent)]
    wrong = [
        name
        for name, holds in {
            "length": len(events) == length,
            "numbers": [event.seq for event in events] == list(range(length)),
            "begin": isinstance(events[0], RunStarted),
            "end": ends == [events[-1]],
            "status": status == events[-1].kind.removeprefix("run_"),
        }.items()
        if not holds
    ]
    lines = list(export_lines(Trace(events=events)))
    assert parse_lines(lines) == events
    return {"wrong": wrong, "events": [json.loads(line) for line in lines[1:]]}


def look_at_index(output: Path, target: Path) -> None:
    """Which version of the library an index holds, as JSON; null without an index."""
    _print_to(output)
    found = current_index(target)
    versions = {version for version in range(50) if found and _holds(found, version)}
    print(json.dumps(sorted(versions)))
    os._exit(0)


def _holds(found: Any, version: int) -> bool:
    wanted = documents(version)
    whole = found.manifest.describes(wanted)
    return whole and len(found.passages) > len(wanted) and found.dense is not None


def look_at_schema(output: Path, database: Path, revisions: Path) -> None:
    """Whether a database is of the newest schema of `revisions`, and how many runs and events.

    In JSON: first as it is found, then after it was upgraded.
    """
    _print_to(output)
    engine = open_engine(f"sqlite:///{database}")
    for _ in range(2):
        tables = set(inspect(engine).get_table_names())
        with engine.connect() as connection:
            names = ("runs", "events") if tables else ()
            counts = [
                connection.execute(text(f"SELECT count(*) FROM {name}")).scalar_one()
                for name in names
            ]
        newest = bool(tables) and NEW in {
            one["name"] for one in inspect(engine).get_columns("runs")
        }
        print(json.dumps([newest, *counts]))
        upgrade(engine, revisions)
    os._exit(0)

"""What is done, killed and looked at: one scenario for each thing that is stored."""

from __future__ import annotations

import json
import shutil
import socket
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from multiprocessing.process import BaseProcess
from pathlib import Path
from typing import Any
from urllib.request import urlopen

from alembic.script import ScriptDirectory

from pipelines.models.catalogue import CatalogueEntry, folder_of
from pipelines.store import RunStore
from pipelines.store.migrations import FOLDER
from tests.kills import work
from tests.kills.counting import Counts
from tests.kills.killing import PATIENCE, Killer, check_acknowledged, lines
from tests.pipelines.models.hub import Hub
from tests.pipelines.store import examples

_SCRIPT = {
    "name": "script",
    "pace": 0.02,
    "replies": [
        {
            "contains": "",
            "tokens": [
                [f" {word}", 0.9] for word in ["Bill", "Clinton", "was", "born", "in", "Hope", "."]
            ],
        }
    ],
}
_REVISION = f'''"""A column for every run, for which SQLite copies the whole table."""

import sqlalchemy as sa
from alembic import op

revision = "9000"
down_revision = "{ScriptDirectory(str(FOLDER)).get_current_head()}"
branch_labels = None
depends_on = None


def upgrade() -> None:
    with op.batch_alter_table("events", recreate="always") as batch:
        batch.add_column(sa.Column("more", sa.String(), nullable=True))
    with op.batch_alter_table("runs", recreate="always") as batch:
        batch.add_column(sa.Column("{work.NEW}", sa.String(), nullable=True))
'''


@dataclass
class Asking:
    """Questions on the command line, into one data folder; now and then one that is left alone."""

    killer: Killer
    data: Path
    longest: float = 0.0
    ends: list[str | None] = field(default_factory=list)
    interrupted: int = 0

    def __post_init__(self) -> None:
        self.data.mkdir()
        script = self.data.parent / f"{self.data.name}.json"
        script.write_text(json.dumps(_SCRIPT), encoding="utf-8")
        methods = ("--method", "direct", "--method", "rowen")
        model = ("--profile", "scripted", "--model", str(script), "--evidence", "bm25")
        self._ask = ("--data", str(self.data), "ask", work.QUESTION, *methods, *model, "--json")
        self.longest = 1.1 * self.killer.lasting(work.command, *self._ask)

    def kill(self) -> None:
        """Ask, kill, and look."""
        printed = self.killer.kill(self.longest, work.command, *self._ask)
        stored = self.killer.runs(self.data)
        self.ends.append(check_acknowledged(printed, stored))
        self.interrupted = sum(run[-1].get("reason") == "interrupted" for run in stored.values())
        # The checking process cleared away what the killed one left, and went itself.
        left = [one.name for one in self.data.iterdir() if one.name != "index"]
        assert left == ["veriscope.db"]


@dataclass
class Importing:
    """A run that is imported on the command line, again and again."""

    killer: Killer
    data: Path
    acknowledged: set[str] = field(default_factory=set)

    def __post_init__(self) -> None:
        self.data.mkdir()
        file = self.data.parent / f"{self.data.name}.jsonl"
        with closing(RunStore(f"sqlite:///{self.data.parent}/{self.data.name}-from.db")) as store:
            store.create("r1", "me", examples.started("r1"))
            calls = 200
            store.append("r1", [examples.called("r1", seq) for seq in range(1, calls + 1)])
            store.append("r1", [examples.finished("r1", calls + 1)])
            file.write_text("".join(store.export("r1", "me")), encoding="utf-8")
        self._events = calls + 2
        self._import = ("--data", str(self.data), "import", str(file))
        self.longest = 1.1 * self.killer.lasting(work.command, *self._import)

    def kill(self) -> None:
        """Import, kill, and look: an id that was printed is there; what is there is whole."""
        printed = self.killer.kill(self.longest, work.command, *self._import)
        self.acknowledged |= {line for line in printed.splitlines() if len(line) == 32}
        stored = self.killer.runs(self.data)
        assert self.acknowledged <= stored.keys()
        assert {len(events) for events in stored.values()} == {self._events}


@dataclass
class Indexing:
    """An index whose library changes with every attempt to bring it up to date."""

    killer: Killer
    target: Path
    version: int = 0
    whole: int = 0
    """The version that the index was last seen to hold."""

    def __post_init__(self) -> None:
        self.longest = 1.1 * self.killer.lasting(work.index, self.target, 0)

    def kill(self) -> None:
        """Index, kill, and look: the old version or the new one, which the next attempt makes."""
        self.version += 1
        printed = self.killer.kill(self.longest, work.index, self.target, self.version)
        (found,) = json.loads(self.killer.finish(work.look_at_index, self.target))
        assert found in (self.whole, self.version)
        if "indexed" in printed:
            assert found == self.version
        if self.version % 3 == 0:
            self.killer.finish(work.index, self.target, self.version)
            found = self.version
            left = sorted(one.name for one in self.target.iterdir() if one.name != "build.lock")
            assert len(left) == 2, left
        self.whole = found


@dataclass
class Migrating:
    """A database with runs that is brought to a newer schema; every second one begins empty."""

    killer: Killer
    folder: Path
    outcomes: list[bool] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self._revisions = self.folder / "revisions"
        shutil.copytree(FOLDER, self._revisions)
        (self._revisions / "versions" / "9000_note.py").write_text(_REVISION, encoding="utf-8")
        self._old = self.folder / "old.db"
        with closing(RunStore(f"sqlite:///{self._old}")) as store:
            for number in range(40):
                run = f"r{number}"
                store.create(run, "me", examples.started(run))
                store.append(run, [examples.called(run, seq) for seq in range(1, 200)])
                store.append(run, [examples.finished(run, 200)])
        self._counts = [40, 40 * 201]
        measured = self.folder / "measured.db"
        shutil.copyfile(self._old, measured)
        self.longest = 1.1 * self.killer.lasting(work.migrate, measured, self._revisions)

    def kill(self) -> None:
        """Upgrade, kill, and look: of the old schema or of the new one, with every run."""
        database = self.folder / f"{len(self.outcomes)}.db"
        empty = len(self.outcomes) % 4 == 3
        if not empty:
            shutil.copyfile(self._old, database)
        printed = self.killer.kill(self.longest, work.migrate, database, self._revisions)
        looked = self.killer.finish(work.look_at_schema, database, self._revisions)
        found, after = map(json.loads, looked.splitlines())
        counts = [0, 0] if empty else self._counts
        assert found in ([False, *counts], [True, *counts], [False])
        assert after == [True, *counts]
        assert found[0] or "upgraded" not in printed
        self.outcomes.append(found[0])


@dataclass
class Evaluating:
    """An evaluation on a server that counts; it is continued after every kill."""

    killer: Killer
    folder: Path
    address: str
    counts: Callable[[], Counts]
    further: int = 0
    """Kills after which more was answered than before, and not yet all."""
    asked_again: int = 0
    answered_again: int = 0
    """Requests that were made once more after a kill, and those of them that had a reply."""

    def __post_init__(self) -> None:
        self.folder.mkdir()
        self.longest = self.killer.lasting(work.evaluate, self._new("undisturbed"), self.address)
        self.undisturbed = self._look()

    def kill(self) -> int:
        """Evaluate and kill, again and again until everything is answered; how often."""
        self._new(f"killed-{self.killer.kills}")
        before, kills, known = self.counts(), self.killer.kills, 0
        longest = self.longest / 4
        while True:
            # It comes to its end after some kills; the first come before anything is stored.
            printed = self.killer.kill(longest, work.evaluate, self._data, self.address)
            # On a machine that has become slower, it must not be killed before it begins for ever.
            longest *= 1.1
            told = [line["answered"] for line in lines(printed)]
            found = self._look() if told else None
            if found is None:
                continue
            assert len(found["outcomes"]) >= told[-1]
            if not found["open"]:
                break
            self.further += len(found["outcomes"]) > known
            known = len(found["outcomes"])
        told = lines(self.killer.finish(work.evaluate, self._data, self.address))[-1]
        self._check(self._look(), told, before)
        return self.killer.kills - kills

    def _check(self, found: dict[str, Any], told: dict[str, Any], before: Counts) -> None:
        """The result is that of an undisturbed evaluation, and nothing was lost that was stored."""
        assert (told["reason"], found["uncounted"]) == ("done", 0)
        # What the methods answered, judged and took is the same; how long they took is not.
        expected = [_lasting(one) for one in self.undisturbed["outcomes"]]
        assert [_lasting(one) for one in found["outcomes"]] == expected
        kept = Counter(one["key"] for one in found["calls"] if not one["error"] and not one["cut"])
        # Whatever was answered and stored was not asked for again.
        assert set(kept.values()) == {1}
        assert kept.keys() == {one["key"] for one in self.undisturbed["calls"] if not one["cut"]}
        after = self.counts()
        asked, answered = (
            sum(after[kind].values()) - sum(before[kind].values()) for kind in ("asked", "answered")
        )
        stored = len(found["calls"])
        assert told["calls"] == found["spent"] == stored
        assert stored <= asked
        self.asked_again += asked - stored
        self.answered_again += max(0, answered - stored)

    def _new(self, name: str) -> Path:
        self._data = self.folder / name
        self._data.mkdir()
        return self._data

    def _look(self) -> dict[str, Any]:
        """What is stored of the evaluation."""
        (found,) = lines(self.killer.finish(work.look_at_evaluation, self._data))
        return found


def _lasting(outcome: dict[str, Any]) -> dict[str, Any]:
    """An outcome without what every attempt has of its own."""
    cost = {name: value for name, value in outcome["cost"].items() if name != "seconds"}
    return {name: value for name, value in outcome.items() if name != "paid"} | {"cost": cost}


@dataclass
class Downloading:
    """A model that is downloaded from a hub on this machine."""

    killer: Killer
    data: Path
    hub: Hub
    content: bytes

    def __post_init__(self) -> None:
        self.hub.add("someone/Small-GGUF", small__gguf=self.content)
        self._entry = CatalogueEntry.model_validate(
            {"name": "Small", "repository": "someone/Small-GGUF", "file": "small.gguf"}
            | {"size": len(self.content), "memory": 1.0, "parameters": 0.1, "languages": ("en",)}
            | {"licence": "Apache-2.0", "family": "Small", "for": "processor", "note": "smallest"}
        )
        self._given = (self._entry.model_dump_json(by_alias=True), self.hub.url)
        self.longest = 1.1 * self.killer.lasting(
            work.download, self.data.parent / "measured", *self._given
        )

    def kill(self) -> None:
        """Download, kill, and look: what has the name of the file is the file; then finish it."""
        folder = folder_of(self._entry.repository, self.data / "models")
        printed = self.killer.kill(self.longest, work.download, self.data, *self._given)
        file = folder / self._entry.file
        assert not file.exists() or file.read_bytes() == self.content
        assert file.exists() or str(file) not in printed
        # A part that arrived is continued by the next process.
        self.killer.finish(work.download, self.data, *self._given)
        assert file.read_bytes() == self.content
        assert sorted(one.name for one in folder.iterdir()) == ["download.json", "small.gguf"]
        shutil.rmtree(folder)


@dataclass
class Serving:
    """A Space that is asked by two clients at once, over its API."""

    killer: Killer
    data: Path
    finished: int = 0
    shared: set[str] = field(default_factory=set)
    interrupted: int = 0

    def __post_init__(self) -> None:
        self.data.mkdir()
        self._longest = 0.0
        with self._asked() as (_, jobs):
            started = time.monotonic()
            for job in jobs:
                job.result(timeout=PATIENCE)
            self._longest = 2.0 * (time.monotonic() - started)

    def kill(self) -> None:
        """Serve, ask, kill, and look: what a client was told has ended is stored whole."""
        with self._asked() as (process, jobs):
            process.join(self.killer.random.uniform(0, self._longest))
        self.killer.kills += 1
        told = [job.outputs() for job in jobs]
        self.finished += sum(any(one["status"] == "finished" for one in each) for each in told)
        self.shared |= {one["shared"] for each in told for one in each if one["shared"]}
        stored = self.killer.runs(self.data)
        assert self.shared <= stored.keys()
        kinds = [events[-1]["kind"] for events in stored.values()]
        assert kinds.count("run_finished") >= self.finished + len(self.shared)
        self.interrupted = sum(run[-1].get("reason") == "interrupted" for run in stored.values())

    @contextmanager
    def _asked(self) -> Iterator[tuple[BaseProcess, list[Any]]]:
        """A Space and what it was asked, until the end of the block, where it is killed."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            port = free.getsockname()[1]
        process, _ = self.killer.start(work.serve, self.data, port)
        try:
            client = _connected(f"http://127.0.0.1:{port}", process)
            questions = [f"{work.QUESTION} {number}" for number in range(2)]
            asked = ({"question": one, "method": "direct", "share": True} for one in questions)
            yield process, [client.submit(**one, api_name="/ask") for one in asked]
        finally:
            process.kill()
            process.join(PATIENCE)


def _connected(url: str, process: BaseProcess) -> Any:
    """A client of the Space as soon as it serves."""
    from gradio_client import Client

    while process.is_alive():
        try:
            with urlopen(f"{url}/health", timeout=5):
                return Client(url, verbose=False)
        except OSError:
            time.sleep(0.05)
    raise AssertionError("The Space ended before it served anything.")

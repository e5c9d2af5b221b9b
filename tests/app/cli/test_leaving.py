"""Ctrl-C: the run is stored as cancelled, whatever threads still do."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from pipelines.run.events import RunCancelled
from pipelines.store import RunStore, file_url
from tests.scripted.wire import Handler, Seen, completion, says, serve, waits

ROOT = Path(__file__).resolve().parents[3]

# The model takes for ever to load, in a thread that nothing can end, as an import of PyTorch does.
SCRIPT = """
import runpy, sys, threading
import pipelines.engine.pool as pool

def build(spec, key, progress):
    print("loading", file=sys.stderr, flush=True)
    threading.Event().wait()

pool.build_model = build
sys.argv = ["pipelines", "--data", sys.argv[1], "ask", "Where?", "--method", "direct"]
runpy.run_module("pipelines", run_name="__main__")
"""


def assert_stored_as_cancelled(data: Path) -> None:
    """The only run is there, and so is its end."""
    with closing(RunStore(file_url(data))) as store:
        (run,) = store.list("command-line")
        assert run.status == "cancelled"
        assert isinstance(store.load(run.id, "command-line").events[-1], RunCancelled)


@pytest.mark.verify
def test_nobody_waits_for_a_thread_that_loads(tmp_path: Path):
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(tmp_path)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stderr is not None
    while "loading" not in process.stderr.readline():
        assert process.poll() is None
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    assert_stored_as_cancelled(tmp_path)


class Silent(Handler):
    """Says what it can do when it is probed, and nothing when it is asked the question."""

    def answer(self, seen: Seen) -> None:
        if "Where?" in seen.body["messages"][-1]["content"]:
            self.wire.arrived.set()
            self.until_gone()
        else:
            says(completion("Paris."))(self)


@pytest.mark.verify
@pytest.mark.parametrize("probed", [False, True])
def test_nobody_waits_for_a_silent_server(tmp_path: Path, probed: bool):
    with serve(Silent if probed else Handler) as wire:
        wire.answers(waits)
        model = ("--profile", "openai", "--model", "m", "--base-url", wire.url)
        ask = ("ask", "Where?", "--method", "direct", *model)
        process = subprocess.Popen(
            [sys.executable, "-m", "pipelines", "--data", str(tmp_path), *ask],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        assert wire.arrived.wait(120)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in said
    if probed:
        assert_stored_as_cancelled(tmp_path)
    else:
        # It was not known yet what the model can do: no run had begun.
        with closing(RunStore(file_url(tmp_path))) as store:
            assert store.list("command-line") == []


# The import of the commands takes for ever, with a destructor that would hold up the end.
IMPORTING = """
import builtins, runpy, sys, threading
real = builtins.__import__

class Held:
    def __del__(self):
        threading.Event().wait()

def held(name, *rest, **named):
    if name == "app.cli.main":
        sys.modules["held"] = Held()
        print("importing", flush=True)
        threading.Event().wait()
    return real(name, *rest, **named)

builtins.__import__ = held
runpy.run_module("pipelines", run_name="__main__")
"""


def test_what_is_still_being_imported_is_not_taken_apart():
    process = subprocess.Popen(
        [sys.executable, "-c", IMPORTING],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "importing\n"
    process.send_signal(signal.SIGINT)
    _, said = process.communicate(timeout=60)
    # A shell shows this as 130.
    assert (process.returncode, said) == (-signal.SIGINT, "")

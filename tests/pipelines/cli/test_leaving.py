"""Ctrl-C: the run is stored as cancelled, whatever threads still do."""

from __future__ import annotations

import signal
import subprocess
import sys
from pathlib import Path

from pipelines.run.events import RunCancelled
from pipelines.store import RunStore

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
    store = RunStore(f"sqlite:///{tmp_path / 'veriscope.db'}")
    (run,) = store.list("command-line")
    assert run.status == "cancelled"
    last = store.load(run.id, "command-line").events[-1]
    assert isinstance(last, RunCancelled)
    store.close()

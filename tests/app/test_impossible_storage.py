"""Front ends that cannot open what keeps the runs: they say why, and end."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.verify

ROOT = Path(__file__).resolve().parents[2]
WORKBENCH = ("-m", "streamlit", "run", "app/workbench.py", "--server.headless", "true")
SPACE = ("app/space.py",)


@pytest.mark.parametrize("front_end", [WORKBENCH, SPACE], ids=["workbench", "space"])
@pytest.mark.parametrize("wrong", ["folder", "server"])
def test_it_says_why_and_ends(tmp_path: Path, front_end: tuple[str, ...], wrong: str):
    data, status, said = tmp_path, 1, "Check that it is running"
    settings = {"VERISCOPE_DATABASE_URL": "postgresql://me:hunter2@127.0.0.1:1/runs"}
    if wrong == "folder":
        data, status, said, settings = tmp_path / "file", 2, "cannot be used as the data", {}
        data.touch()
    settings |= {"VERISCOPE_DATA": str(data), "GRADIO_ANALYTICS_ENABLED": "False"}
    # A port that the system chooses: nothing is served.
    port = ("--server.port", "0") if front_end == WORKBENCH else ()
    done = subprocess.run(
        [sys.executable, *front_end, *port],
        cwd=ROOT,
        env=os.environ | settings,
        capture_output=True,
        text=True,
        check=False,
        timeout=240,
    )
    told = done.stdout + done.stderr
    assert done.returncode == status, told
    assert said in told
    assert "Traceback" not in told
    assert "hunter2" not in told

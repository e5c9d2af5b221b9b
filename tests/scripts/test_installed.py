"""The installed package: one name, and a command that runs from any folder."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from scripts.environment import ROOT


@pytest.fixture(scope="module")
def places(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder of packages with what the wheel would put there, as links."""
    packages = tmp_path_factory.mktemp("packages")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    for source, target in wheel.items():
        file = packages / target
        if source == "app":
            # Another folder goes into this one.
            file.mkdir(parents=True)
            for part in (ROOT / source).iterdir():
                (file / part.name).symlink_to(part)
            continue
        file.parent.mkdir(parents=True, exist_ok=True)
        if source.endswith("installed.py"):
            # It looks for the rest beside itself.
            file.write_bytes((ROOT / source).read_bytes())
        else:
            file.symlink_to(ROOT / source)
    return packages


def veriscope(places: Path, folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("VERISCOPE_")}
    environment["PYTHONPATH"] = str(places)
    program = "import sys, veriscope; sys.argv[0] = 'veriscope'; veriscope.main()"
    return subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )


def test_the_command_runs_from_any_folder_and_leaves_nothing_there(places: Path, tmp_path: Path):
    done = veriscope(places, tmp_path, "--help")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("usage: ")
    done = veriscope(places, tmp_path, "runs", "--data", str(tmp_path / "data"), "--nonsense")
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    assert not [path for path in tmp_path.iterdir() if path.name != "data"]

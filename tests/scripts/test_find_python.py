"""Which Python the environment is built with."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "find_python.sh"


@pytest.fixture
def bin_folder(tmp_path: Path) -> Path:
    return tmp_path


def add(folder: Path, name: str, *, works: bool) -> Path:
    """A program called `name` that is a usable Python, or refuses like an inactive shim."""
    program = folder / name
    program.write_text(f"#!/bin/sh\nexit {0 if works else 127}\n")
    program.chmod(0o755)
    return program


def find(folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(folder), **variables}
    return subprocess.run(
        ["/bin/sh", str(SCRIPT)], env=environment, capture_output=True, text=True, check=False
    )


def test_the_first_that_works_is_taken(bin_folder: Path):
    add(bin_folder, "python3.11", works=False)
    add(bin_folder, "python3.12", works=True)
    add(bin_folder, "python3.13", works=True)
    reply = find(bin_folder)
    assert (reply.returncode, reply.stdout) == (0, "python3.12\n")


def test_none_is_a_clear_failure(bin_folder: Path):
    add(bin_folder, "python3", works=False)
    reply = find(bin_folder)
    assert (reply.returncode, reply.stdout) == (1, "")
    assert "needs Python 3.11 or newer" in reply.stderr


def test_the_one_named_is_taken_before_all(bin_folder: Path):
    add(bin_folder, "python3.11", works=True)
    named = add(bin_folder, "my-python", works=True)
    assert find(bin_folder, PYTHON=str(named)).stdout == f"{named}\n"
    assert find(bin_folder, PYTHON="").stdout == "python3.11\n"


def test_the_one_named_is_not_replaced_silently(bin_folder: Path):
    add(bin_folder, "python3.11", works=True)
    named = add(bin_folder, "my-python", works=False)
    reply = find(bin_folder, PYTHON=str(named))
    assert (reply.returncode, reply.stdout) == (1, "")
    assert "is not a working Python 3.11" in reply.stderr


def test_the_running_python_is_usable(bin_folder: Path):
    reply = find(bin_folder, PYTHON=sys.executable, HOME=os.environ.get("HOME", ""))
    assert reply.stdout == f"{sys.executable}\n"

"""The environment's stamp: nothing is done twice, and nothing interrupted passes for done."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import environment
from scripts.environment import InstallationError, fingerprint, prepare, torch_requirement

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}.7 linux-x86_64"


class FakePip:
    """Records the arguments after `pip install`; fails at the command that contains `fail_at`."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.fail_at: str | None = None

    def __call__(self, command: Sequence[str]) -> None:
        said = [Path(part).name for part in command[1:]]
        self.commands.append(said)
        if self.fail_at is not None and self.fail_at in said:
            raise InstallationError("no connection")

    def drain(self) -> list[str]:
        """What was run since the last call, less the words all installations share."""
        words = {"-m", "pip", "install", "--disable-pip-version-check", "-r"}
        said = [" ".join(part for part in line if part not in words) for line in self.commands]
        self.commands.clear()
        return said


@pytest.fixture
def pip() -> FakePip:
    return FakePip()


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A tree with requirement files and an environment whose Python works."""
    (tmp_path / ".venv").mkdir()
    (tmp_path / "requirements.txt").write_text("# first\ntorch==2.13.0\npydantic>=2,<3\n")
    (tmp_path / "requirements-embedded.txt").write_text("weights==1.0\n")
    (tmp_path / "requirements-dev.txt").write_text("pytest>=9,<10\n")
    monkeypatch.setattr(environment, "identity", lambda python: PYTHON)
    return tmp_path


RUNTIME = ["torch==2.13.0", "requirements.txt", "--no-deps requirements-embedded.txt"]
DEVELOPMENT = ["requirements-dev.txt"]


def test_torch_is_installed_first_and_nothing_twice(root: Path, pip: FakePip):
    prepare(root, dev=False, environ={}, run=pip)
    assert pip.drain() == RUNTIME
    prepare(root, dev=False, environ={}, run=pip)
    assert pip.drain() == []


def test_development_tools_come_on_top(root: Path, pip: FakePip):
    prepare(root, dev=False, environ={}, run=pip)
    pip.drain()
    prepare(root, dev=True, environ={}, run=pip)
    assert pip.drain() == DEVELOPMENT
    prepare(root, dev=True, environ={}, run=pip)
    assert pip.drain() == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("requirements.txt", RUNTIME + DEVELOPMENT),
        ("requirements-embedded.txt", RUNTIME + DEVELOPMENT),
        ("requirements-dev.txt", DEVELOPMENT),
    ],
)
def test_a_changed_file_is_installed_again(
    root: Path, pip: FakePip, changed: str, expected: list[str]
):
    prepare(root, dev=True, environ={}, run=pip)
    pip.drain()
    with (root / changed).open("a") as file:
        file.write("another>=1,<2\n")
    prepare(root, dev=True, environ={}, run=pip)
    assert pip.drain() == expected


def test_another_python_is_installed_for_again(
    root: Path, pip: FakePip, monkeypatch: pytest.MonkeyPatch
):
    prepare(root, dev=False, environ={}, run=pip)
    pip.drain()
    monkeypatch.setattr(environment, "identity", lambda python: PYTHON + "-other")
    prepare(root, dev=False, environ={}, run=pip)
    assert pip.drain() == RUNTIME


def test_an_interrupted_installation_is_repeated_even_if_the_files_change_back(
    root: Path, pip: FakePip
):
    prepare(root, dev=False, environ={}, run=pip)
    pip.drain()
    original = (root / "requirements.txt").read_text()
    (root / "requirements.txt").write_text(original + "another>=1,<2\n")
    pip.fail_at = "requirements.txt"
    with pytest.raises(InstallationError):
        prepare(root, dev=False, environ={}, run=pip)
    assert pip.drain() == RUNTIME[:2]
    pip.fail_at = None
    (root / "requirements.txt").write_text(original)
    prepare(root, dev=False, environ={}, run=pip)
    assert pip.drain() == RUNTIME


def test_a_broken_environment_is_built_anew(
    root: Path, pip: FakePip, monkeypatch: pytest.MonkeyPatch
):
    replies = iter([None, PYTHON])
    monkeypatch.setattr(environment, "identity", lambda python: next(replies))
    prepare(root, dev=False, environ={}, run=pip)
    assert pip.drain() == ["venv --clear .venv", *RUNTIME]


def test_an_environment_that_stays_broken_is_an_error(
    root: Path, pip: FakePip, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(environment, "identity", lambda python: None)
    with pytest.raises(InstallationError, match="no working Python"):
        prepare(root, dev=False, environ={}, run=pip)


@pytest.mark.parametrize(
    ("chosen", "present", "rebuilt"),
    [
        ("", "3.1.0 old-but-not-asked-about", False),
        ("python", "3.1.0 not-the-one-asked-for", True),
        ("python", PYTHON, False),
    ],
)
def test_only_an_explicit_choice_replaces_a_working_python(
    root: Path,
    pip: FakePip,
    monkeypatch: pytest.MonkeyPatch,
    chosen: str,
    present: str,
    rebuilt: bool,
):
    monkeypatch.setattr(environment, "identity", lambda python: present)
    prepare(root, dev=False, environ={"PYTHON": chosen}, run=pip)
    assert (pip.drain()[0] == "venv --clear .venv") is rebuilt


def test_the_identity_is_that_of_a_working_python(tmp_path: Path):
    running = environment.identity(Path(sys.executable))
    assert running is not None
    assert running.startswith(f"{sys.version_info[0]}.{sys.version_info[1]}.")
    assert environment.identity(tmp_path / "nothing") is None


def test_a_fingerprint_tells_where_one_file_ends(tmp_path: Path):
    first, second = tmp_path / "a", tmp_path / "b"
    first.write_text("xy")
    second.write_text("z")
    whole = fingerprint(PYTHON, [first, second])
    first.write_text("x")
    second.write_text("yz")
    assert fingerprint(PYTHON, [first, second]) != whole


def test_requirements_have_to_pin_torch():
    assert torch_requirement("# torch first\ntorch==2.13.0\ntorchvision\n") == "torch==2.13.0"
    with pytest.raises(InstallationError, match="pin torch"):
        torch_requirement("torch>=2\n")


def test_a_failing_command_says_what_to_do():
    with pytest.raises(InstallationError, match="repeat the command"):
        environment.run_command([sys.executable, "-c", "raise SystemExit(3)"])

"""The environment's stamp: nothing is done twice, and nothing interrupted passes for done."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from scripts import environment
from scripts.environment import (
    TORCH_LOCK,
    fingerprint,
    prepare,
    torch_requirement,
    wants_cuda,
)

PYTHON = f"{sys.version_info[0]}.{sys.version_info[1]}.7 linux-x86_64"


class FakePip:
    """Records what is installed; fails at the command that contains `fail_at`."""

    def __init__(self) -> None:
        self.commands: list[list[str]] = []
        self.fail_at: str | None = None
        self.used: set[str] = set()

    def __call__(self, command: Sequence[str]) -> None:
        self.used.add(Path(command[0]).name)
        said = [Path(part).name for part in command[1:]]
        self.commands.append(said)
        if self.fail_at is not None and self.fail_at in said:
            raise SystemExit("no connection")

    def drain(self) -> list[str]:
        """What was run since the last call, less the words all installations share."""
        words = {"-m", "pip", "install", "--disable-pip-version-check", "-r"}
        words |= {"--python", "python", "python.exe", "--compile-bytecode"}
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
    (tmp_path / "requirements-uv.txt").write_text("uv>=0.13,<1\n")
    (tmp_path / "requirements-research.txt").write_text("scikit-learn>=1,<2\n")
    (tmp_path / "requirements-postgres.txt").write_text("psycopg>=3,<4\n")
    (tmp_path / "requirements-qdrant.txt").write_text("qdrant-client>=1,<2\n")
    (tmp_path / "requirements-ray.txt").write_text("ray>=2,<3\n")
    (tmp_path / "requirements-dev.txt").write_text("pytest>=9,<10\n")
    monkeypatch.setattr(environment, "identity", lambda python: PYTHON)
    monkeypatch.setattr(shutil, "which", lambda name: None)
    monkeypatch.setattr(sys, "platform", "linux")
    return tmp_path


RUNTIME = ["torch==2.13.0+cpu", "requirements.txt", "--no-deps requirements-embedded.txt"]
RESEARCH = ["requirements-research.txt"]
DEVELOPMENT = [
    "requirements-postgres.txt",
    "requirements-qdrant.txt",
    "requirements-ray.txt",
    "requirements-dev.txt",
]


@pytest.mark.parametrize("uv", ["/somewhere/uv", None])
def test_uv_and_pip_install_the_same(
    root: Path, pip: FakePip, monkeypatch: pytest.MonkeyPatch, uv: str | None
):
    # The environment's own pip has no configuration.
    quiet = subprocess.CompletedProcess([], returncode=0, stdout="")
    monkeypatch.setattr(subprocess, "run", lambda command, **options: quiet)
    monkeypatch.setattr(shutil, "which", lambda name: uv)
    prepare(root, dev=True, environ={}, run=pip)
    python = root / ".venv" / "bin" / "python"
    assert pip.used == {"uv" if uv else python.name}
    assert all(uv is None or python.name in command for command in pip.commands)
    fetched = "pip install --torch-backend cpu --no-deps torch==2.13.0+cpu"
    said = pip.drain()
    # uv alone knows the builds for processors; pip is told where they are.
    assert said[0].endswith("torch==2.13.0+cpu")
    assert (said[0] == fetched.replace("pip install ", "")) is bool(uv)
    assert said[1:] == RUNTIME[1:] + RESEARCH + DEVELOPMENT
    prepare(root, dev=True, environ={}, run=pip)
    assert pip.drain() == []


def test_what_research_needs_comes_on_top(root: Path, pip: FakePip):
    prepare(root, research=True, environ={}, run=pip)
    assert pip.drain() == RUNTIME + RESEARCH
    prepare(root, dev=True, environ={}, run=pip)
    assert pip.drain() == DEVELOPMENT


def fake_uv(folder: Path, monkeypatch: pytest.MonkeyPatch, *, code: int = 0) -> Path:
    """A uv, first on the PATH, that writes its arguments to a file beside it."""
    program = folder / "uv"
    program.write_text(f'#!/bin/sh\necho "$@" >> "{folder}/said"\nexit {code}\n')
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(folder), prepend=":")
    return program


@pytest.fixture
def plain_pip(monkeypatch: pytest.MonkeyPatch) -> None:
    """pip without a configuration, whatever this machine has."""
    for name in [name for name in os.environ if name.startswith("PIP_")]:
        monkeypatch.delenv(name)
    # With this value pip reads no configuration file at all.
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)


def test_uv_is_used_where_it_is_installed(
    tmp_path: Path, plain_pip: None, monkeypatch: pytest.MonkeyPatch
):
    uv = fake_uv(tmp_path, monkeypatch)
    python = Path(sys.executable)
    assert environment.installer(python)[0] == str(uv)
    environment.run_command([*environment.installer(python), "pydantic"])
    said = (tmp_path / "said").read_text().split()
    assert said == ["pip", "install", "--python", str(python), "--compile-bytecode", "pydantic"]


@pytest.mark.parametrize("setting", ["PIP_INDEX_URL", "PIP_EXTRA_INDEX_URL", "PIP_PROXY"])
def test_pip_is_used_where_it_is_told_where_packages_come_from(
    tmp_path: Path, plain_pip: None, monkeypatch: pytest.MonkeyPatch, setting: str
):
    fake_uv(tmp_path, monkeypatch)
    monkeypatch.setenv(setting, "http://mirror.example")
    python = Path(sys.executable)
    assert environment.installer(python)[:3] == [sys.executable, "-m", "pip"]


def test_without_uv_pip_is_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    python = Path(sys.executable)
    assert environment.installer(python)[:3] == [sys.executable, "-m", "pip"]


def test_a_failing_uv_says_what_to_do(
    tmp_path: Path, plain_pip: None, monkeypatch: pytest.MonkeyPatch
):
    fake_uv(tmp_path, monkeypatch, code=2)
    with pytest.raises(SystemExit, match="repeat the command"):
        environment.run_command([*environment.installer(Path(sys.executable)), "pydantic"])


def test_torch_is_installed_first_and_nothing_twice(root: Path, pip: FakePip):
    prepare(root, dev=False, environ={}, run=pip)
    assert pip.drain() == RUNTIME
    prepare(root, dev=False, environ={}, run=pip)
    assert pip.drain() == []


def test_development_tools_come_on_top(root: Path, pip: FakePip):
    prepare(root, dev=False, environ={}, run=pip)
    pip.drain()
    prepare(root, dev=True, environ={}, run=pip)
    assert pip.drain() == RESEARCH + DEVELOPMENT
    prepare(root, dev=True, environ={}, run=pip)
    assert pip.drain() == []


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ("requirements.txt", RUNTIME + RESEARCH + DEVELOPMENT),
        ("requirements-embedded.txt", RUNTIME + RESEARCH + DEVELOPMENT),
        ("requirements-research.txt", RESEARCH + DEVELOPMENT),
        ("requirements-postgres.txt", DEVELOPMENT),
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


def lock_everything(root: Path) -> None:
    for file in root.glob("requirements*.txt"):
        file.with_suffix(".lock").write_text("pydantic==2.14.0 --hash=sha256:00\n")
    (root / TORCH_LOCK).write_text("torch==2.13.0 --hash=sha256:00\n")


def checked(*names: str) -> list[str]:
    return [f"--no-deps --require-hashes {name}" for name in names]


def test_what_is_locked_is_installed_by_its_checksum(root: Path, pip: FakePip):
    lock_everything(root)
    locked = checked("requirements.lock", "requirements-embedded.lock")
    prepare(root, environ={"LOCKED": "1"}, run=pip)
    assert pip.drain() == ["--no-deps torch==2.13.0+cpu", *locked]
    prepare(root, environ={"LOCKED": "1"}, run=pip)
    assert pip.drain() == []
    # Another lock, none, and another build of torch are other installations.
    (root / "requirements.lock").write_text("pydantic==2.14.1 --hash=sha256:00\n")
    prepare(root, environ={"LOCKED": "1"}, run=pip)
    assert len(pip.drain()) == len(RUNTIME)
    prepare(root, environ={"LOCKED": "1", "GPU": "1"}, run=pip)
    assert pip.drain() == [*checked(TORCH_LOCK), *locked]
    prepare(root, environ={"LOCKED": "0"}, run=pip)
    assert pip.drain() == RUNTIME
    prepare(root, dev=True, environ={"LOCKED": "1"}, run=pip)
    names = [Path(name).with_suffix(".lock").name for name in RESEARCH + DEVELOPMENT]
    assert pip.drain()[len(RUNTIME) :] == checked(*names)


@pytest.mark.parametrize(
    ("system", "said", "installed", "cuda"),
    [
        ("linux", "", None, False),
        ("linux", "1", None, True),
        # Nobody loses the build that is there by saying nothing.
        ("linux", "", "2.13.0", True),
        ("linux", "", "2.13.0+cpu", False),
        ("linux", "0", "2.13.0", False),
        ("linux", "1", "2.13.0+cpu", True),
        ("darwin", "", None, True),
    ],
)
def test_the_build_of_torch(
    monkeypatch: pytest.MonkeyPatch, system: str, said: str, installed: str | None, cuda: bool
):
    monkeypatch.setattr(sys, "platform", system)
    assert wants_cuda(said, installed) is cuda


def test_another_build_takes_the_place_of_the_one_that_satisfies_the_requirement(
    root: Path, pip: FakePip
):
    prepare(root, environ={}, run=pip)
    pip.drain()
    (root / ".venv/lib/python3.12/site-packages/torch-2.13.0+cpu.dist-info").mkdir(parents=True)
    prepare(root, environ={"GPU": "1"}, run=pip)
    assert pip.drain() == ["uninstall --yes torch", "torch==2.13.0", *RUNTIME[1:]]


def test_where_pip_finds_no_build_for_processors_uv_fetches_it_or_it_is_said(
    root: Path, capsys: pytest.CaptureFixture[str]
):
    said: list[list[str]] = []

    def run(command: Sequence[str], *, broken: str) -> None:
        said.append([Path(part).name for part in command])
        if command[-1].endswith("+cpu") and Path(command[0]).name in broken.split():
            raise SystemExit("no such build")

    prepare(root, environ={}, run=lambda command: run(command, broken="python"))
    assert [line[-1] for line in said] == [
        "torch==2.13.0+cpu",
        "requirements-uv.txt",
        "torch==2.13.0+cpu",
        *("requirements.txt", "requirements-embedded.txt"),
    ]
    assert said[2][0] == "uv"
    assert said[2][5:7] == ["--torch-backend", "cpu"]
    assert "uv looks for it" in capsys.readouterr().out
    (root / ".venv" / "installed-runtime").unlink()
    with pytest.raises(SystemExit, match="GPU=1"):
        prepare(root, environ={}, run=lambda command: run(command, broken="python uv"))


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
    with pytest.raises(SystemExit):
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
    with pytest.raises(SystemExit, match="no working Python"):
        prepare(root, dev=False, environ={}, run=pip)


def test_a_python_for_intel_macs_is_told_that_there_is_no_torch_for_it(
    root: Path, pip: FakePip, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(environment, "identity", lambda python: "3.12.7 macosx-14.0-x86_64")
    with pytest.raises(SystemExit, match="PyTorch is not published"):
        prepare(root, dev=False, environ={}, run=pip)
    assert pip.drain() == []
    # One that was built there is used.
    (root / ".venv/lib/python3.12/site-packages/torch-2.13.0.dist-info").mkdir(parents=True)
    prepare(root, dev=False, environ={}, run=pip)
    assert pip.drain()[0].startswith("torch==2.13.0")


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
    with pytest.raises(SystemExit, match="pin torch"):
        torch_requirement("torch>=2\n")


def test_a_failing_command_says_what_to_do():
    with pytest.raises(SystemExit, match="repeat the command"):
        environment.run_command([sys.executable, "-c", "raise SystemExit(3)"])

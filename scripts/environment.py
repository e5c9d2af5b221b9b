"""Bring the virtual environment up to date: `python scripts/environment.py [--dev | --research]`.

Uses the standard library alone, because nothing is installed yet. A stamp in the environment has a
fingerprint of the requirement files and of the Python; while it matches, nothing is done. The stamp
is deleted before an installation and written after it, so that an interrupted one is repeated.

uv installs where it is found, else pip. uv does not read pip's configuration, so where that says
which index or proxy to use, pip installs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
IDENTITY = (
    "import importlib.util, platform, sys, sysconfig\n"
    "assert sys.version_info >= (3, 11) and importlib.util.find_spec('pip')\n"
    "print(platform.python_version(), sysconfig.get_platform())\n"
)
RUNTIME_FILES = ("requirements.txt", "requirements-embedded.txt")
RESEARCH_FILES = (*RUNTIME_FILES, "requirements-research.txt")
DEVELOPMENT_FILES = (*RESEARCH_FILES, "requirements-dev.txt")
PLACES = re.compile(
    r"\.(?:index-url|extra-index-url|find-links|no-index|proxy|cert|client-cert|trusted-host"
    r"|constraint)=",
)
"""Settings of pip that say where packages come from, as `pip config list` writes them."""

Runner = Callable[[Sequence[str]], None]


class InstallationError(Exception):
    """A step failed; the message says what to do."""


def run_command(command: Sequence[str]) -> None:
    """Run `command` in the open; raises InstallationError when it fails."""
    try:
        subprocess.run(command, check=True, cwd=ROOT)
    except (OSError, subprocess.CalledProcessError) as error:
        raise InstallationError(
            f"This step failed: {' '.join(command)}\n"
            "The reason is above. See to it (connection, disk space, on Debian the package "
            "python3-venv) and repeat the command: what is installed is kept."
        ) from error


def venv_python(venv: Path) -> Path:
    """The environment's interpreter, whether or not it exists yet."""
    return venv / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def identity(python: Path) -> str | None:
    """Version and platform of `python`, or None when it is too old, broken or without pip."""
    try:
        reply = subprocess.run([python, "-c", IDENTITY], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return reply.stdout.strip()


def fingerprint(python: str, files: Sequence[Path]) -> str:
    """SHA-256 (hex) over the Python's identity and the names and contents of `files`."""
    digest = hashlib.sha256(python.encode())
    for file in files:
        content = file.read_bytes()
        digest.update(f"\n{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def find_uv(python: Path) -> str | None:
    """The uv to install with, None where there is none or pip is told where packages come from."""
    uv = shutil.which("uv")
    if uv is None:
        return None
    command = [python, "-m", "pip", "config", "list"]
    settings = subprocess.run(command, capture_output=True, text=True, check=False)
    return None if PLACES.search(settings.stdout) else uv


def installer(python: Path) -> list[str]:
    """The command, less what to install, that installs into the environment of `python`."""
    if uv := find_uv(python):
        # As pip does, so that the first start is not slower.
        return [uv, "pip", "install", "--python", str(python), "--compile-bytecode"]
    return [str(python), "-m", "pip", "install", "--disable-pip-version-check"]


def torch_requirement(requirements: str) -> str:
    """The line that pins torch in the text of a requirements file."""
    for line in requirements.splitlines():
        if line.startswith("torch=="):
            return line.strip()
    raise InstallationError("requirements.txt does not pin torch with a line torch==...")


def ensure_venv(venv: Path, chosen: str | None, run: Runner) -> str:
    """Create `venv` where it is missing, broken, or not of the Python explicitly `chosen`.

    Returns the identity of its interpreter.
    """
    present = identity(venv_python(venv))
    if present and (not chosen or same_minor(present, sys.version_info)):
        return present
    # An interpreter inside the environment cannot rebuild the environment it lives in.
    base = getattr(sys, "_base_executable", None) or sys.executable
    run([base, "-m", "venv", "--clear", str(venv)])
    created = identity(venv_python(venv))
    if created is None:
        raise InstallationError(f"The environment in {venv.name} has no working Python and pip.")
    return created


def same_minor(present: str, version: Sequence[object]) -> bool:
    """Whether the identity `present` is of the Python line of `version`, e.g. 3.12."""
    return present.split()[0].split(".")[:2] == [str(part) for part in version[:2]]


def bring_up_to_date(stamp: Path, wanted: str, commands: Sequence[Sequence[str]], run: Runner):
    """Run `commands` unless `stamp` says `wanted`; then make it say so, all at once."""
    if stamp.is_file() and stamp.read_text() == wanted:
        return
    stamp.unlink(missing_ok=True)
    for command in commands:
        run(command)
    unfinished = stamp.with_suffix(".unfinished")
    unfinished.write_text(wanted)
    unfinished.replace(stamp)


def prepare(
    root: Path,
    *,
    dev: bool = False,
    research: bool = False,
    environ: Mapping[str, str] = os.environ,
    run: Runner = run_command,
) -> None:
    """Bring `root/.venv` up to date for running; with `research` or `dev` also for that."""
    venv = root / ".venv"
    python = ensure_venv(venv, environ.get("PYTHON"), run)
    install = installer(venv_python(venv))

    def update(stamp: str, files: Sequence[str], *packages: Sequence[str]) -> None:
        wanted = fingerprint(python, [root / name for name in files])
        commands = [[*install, *what] for what in packages]
        bring_up_to_date(venv / f"installed-{stamp}", wanted, commands, run)

    requirements = root / "requirements.txt"
    update(
        "runtime",
        RUNTIME_FILES,
        # Alone and first: with it in place nothing else pulls another build of it.
        [torch_requirement(requirements.read_text(encoding="utf-8"))],
        ["-r", str(requirements)],
        ["--no-deps", "-r", str(root / "requirements-embedded.txt")],
    )
    if dev or research:
        update("research", RESEARCH_FILES, ["-r", str(root / "requirements-research.txt")])
    if dev:
        update("development", DEVELOPMENT_FILES, ["-r", str(root / "requirements-dev.txt")])


def main() -> None:
    """Command line: prepares the environment of the tree this file is in."""
    parser = argparse.ArgumentParser(description="Bring the virtual environment up to date.")
    more = parser.add_mutually_exclusive_group()
    more.add_argument("--dev", action="store_true", help="with the tools that check and test")
    more.add_argument("--research", action="store_true", help="with what research commands need")
    arguments = parser.parse_args()
    try:
        prepare(ROOT, dev=arguments.dev, research=arguments.research)
    except InstallationError as error:
        sys.exit(f"\n{error}")
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. Repeat the command to go on.")


if __name__ == "__main__":
    main()

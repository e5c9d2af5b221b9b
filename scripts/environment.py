"""Bring the virtual environment up to date: `python scripts/environment.py [--dev]`.

Runs on the standard library alone, because nothing is installed yet. A stamp in the environment
holds a fingerprint of the requirement files and of the Python; while it matches, nothing is done.
The stamp is taken away before an installation and written after it, so that an interrupted one is
simply repeated. Where pip looks for packages is left to pip's own configuration.
"""

from __future__ import annotations

import argparse
import hashlib
import os
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
DEVELOPMENT_FILES = (*RUNTIME_FILES, "requirements-dev.txt")

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
    root: Path, *, dev: bool, environ: Mapping[str, str] = os.environ, run: Runner = run_command
) -> None:
    """Bring `root/.venv` up to date for running, and with `dev` for testing."""
    venv = root / ".venv"
    python = ensure_venv(venv, environ.get("PYTHON"), run)
    install = [str(venv_python(venv)), "-m", "pip", "install", "--disable-pip-version-check"]
    requirements = root / "requirements.txt"
    bring_up_to_date(
        venv / "installed-runtime",
        fingerprint(python, [root / name for name in RUNTIME_FILES]),
        [
            # Alone and first: with it in place nothing else pulls another build of it.
            [*install, torch_requirement(requirements.read_text(encoding="utf-8"))],
            [*install, "-r", str(requirements)],
            [*install, "--no-deps", "-r", str(root / "requirements-embedded.txt")],
        ],
        run,
    )
    if dev:
        bring_up_to_date(
            venv / "installed-development",
            fingerprint(python, [root / name for name in DEVELOPMENT_FILES]),
            [[*install, "-r", str(root / "requirements-dev.txt")]],
            run,
        )


def main() -> None:
    """Command line: prepares the environment of the tree this file is in."""
    parser = argparse.ArgumentParser(description="Bring the virtual environment up to date.")
    parser.add_argument("--dev", action="store_true", help="with the tools that check and test")
    arguments = parser.parse_args()
    try:
        prepare(ROOT, dev=arguments.dev)
    except InstallationError as error:
        sys.exit(f"\n{error}")
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. Repeat the command to go on.")


if __name__ == "__main__":
    main()

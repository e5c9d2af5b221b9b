"""Bring the virtual environment up to date: `python scripts/environment.py [--dev | --research]`.

With LOCKED=1 in the environment every package is installed at the version in `requirements.lock`,
else at the newest that the requirement files allow.

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
LOCK = "requirements.lock"
_KINDS = ("", "-embedded", "-research", "-postgres", "-qdrant", "-ray", "-dev")
REQUIREMENTS = tuple(f"requirements{kind}.txt" for kind in _KINDS)
"""What the application needs, its weights; what research, databases, clusters and tests need."""
IDENTITY = (
    "import importlib.util, platform, sys, sysconfig\n"
    "assert sys.version_info >= (3, 11) and importlib.util.find_spec('pip')\n"
    "print(platform.python_version(), sysconfig.get_platform())\n"
)
SOURCES = re.compile(r"(?:url|links|index|proxy|cert|host|constraint)=")
"""Ends of the names of pip's settings that say where packages come from (`pip config list`)."""

Runner = Callable[[Sequence[str]], None]


def run_command(command: Sequence[str]) -> None:
    """Run `command` in the open; raises SystemExit, which says what to do, when it fails."""
    try:
        subprocess.run(command, check=True, cwd=ROOT)
    except (OSError, subprocess.CalledProcessError) as error:
        raise SystemExit(
            f"\nThis step failed: {' '.join(command)}\n"
            "The reason is above. See to it (connection, disk space, on Debian the package "
            "python3-venv) and repeat the command: what is installed is kept."
        ) from error


def identity(python: Path) -> str | None:
    """Return version and platform of `python`, or None when it is too old, broken or
    without pip.
    """
    try:
        reply = subprocess.run([python, "-c", IDENTITY], check=True, capture_output=True, text=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return reply.stdout.strip()


def fingerprint(python: str, files: Sequence[Path]) -> str:
    """Return SHA-256 (hex) over the Python's identity and the names and contents of `files`."""
    digest = hashlib.sha256(python.encode())
    for file in files:
        content = file.read_bytes()
        digest.update(f"\n{file.name} {len(content)}\n".encode() + content)
    return digest.hexdigest()


def installer(python: Path) -> list[str]:
    """Return the command, less what to install, that installs into the environment of `python`."""
    uv = shutil.which("uv")
    if uv is not None:
        command = [python, "-m", "pip", "config", "list"]
        settings = subprocess.run(command, capture_output=True, text=True, check=False)
        if not SOURCES.search(settings.stdout):
            # Compiled as pip does, so that the first start is not slower.
            return [uv, "pip", "install", "--python", str(python), "--compile-bytecode"]
    return [str(python), "-m", "pip", "install", "--disable-pip-version-check"]


def torch_requirement(requirements: str) -> str:
    """Return the line that pins torch in the text of a requirements file."""
    for line in requirements.splitlines():
        if line.startswith("torch=="):
            return line.strip()
    raise SystemExit("requirements.txt does not pin torch with a line torch==...")


def ensure_venv(python: Path, chosen: str | None, run: Runner) -> str:
    """Create the environment of `python` where it is missing, broken, or of another Python line
    than this one although that was `chosen`.

    Returns the identity of its interpreter.
    """
    present = identity(python)
    line = [str(part) for part in sys.version_info[:2]]
    if present and (not chosen or present.split()[0].split(".")[:2] == line):
        return present
    venv = python.parents[1]
    # An interpreter inside the environment cannot rebuild the environment it lives in.
    base = getattr(sys, "_base_executable", None) or sys.executable
    run([base, "-m", "venv", "--clear", str(venv)])
    created = identity(python)
    if created is None:
        raise SystemExit(f"The environment in {venv.name} has no working Python and pip.")
    return created


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
    python = venv / "bin" / "python"
    present = ensure_venv(python, environ.get("PYTHON"), run)
    install = installer(python)
    runtime, embedded, for_research, *for_development = (root / name for name in REQUIREMENTS)
    files = [runtime, embedded]
    if environ.get("LOCKED", "") not in ("", "0"):
        install += ["-c", str(root / LOCK)]
        files.append(root / LOCK)

    def update(stamp: str, *packages: Sequence[str]) -> None:
        """Install `packages` unless the stamp says so of `files`; then make it say so at once."""
        path, wanted = venv / f"installed-{stamp}", fingerprint(present, files)
        if path.is_file() and path.read_text() == wanted:
            return
        path.unlink(missing_ok=True)
        for one in packages:
            run([*install, *one])
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(wanted)
        unfinished.replace(path)

    update(
        "runtime",
        # Alone and first: with it in place nothing else pulls another build of it.
        [torch_requirement(runtime.read_text(encoding="utf-8"))],
        ["-r", str(runtime)],
        ["--no-deps", "-r", str(embedded)],
    )
    if dev or research:
        files.append(for_research)
        update("research", ["-r", str(for_research)])
    if dev:
        files += for_development
        update("development", *(["-r", str(file)] for file in for_development))


def main() -> None:
    """Prepare, as the command line, the environment of the tree this file is in."""
    parser = argparse.ArgumentParser(description="Bring the virtual environment up to date.")
    more = parser.add_mutually_exclusive_group()
    more.add_argument("--dev", action="store_true", help="with the tools that check and test")
    more.add_argument("--research", action="store_true", help="with what research commands need")
    arguments = parser.parse_args()
    try:
        prepare(ROOT, dev=arguments.dev, research=arguments.research)
    except KeyboardInterrupt:
        sys.exit("\nInterrupted. Repeat the command to go on.")


if __name__ == "__main__":
    main()

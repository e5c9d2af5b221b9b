"""Bring the virtual environment up to date: `python scripts/environment.py [--dev | --research]`.

With LOCKED=1 in the environment every package is installed at the version, and with the checksum,
in the lock beside its requirement file (`requirements.lock` beside `requirements.txt`), else at the
newest that the requirement files allow.

On Linux torch is the build for processors alone: with CUDA the installation is 4.5 GB larger. GPU=1
takes the build with CUDA, GPU=0 goes back; without either an environment keeps what it has. The
builds for processors are not on the index of packages that pip asks by default. uv knows where they
are (`--torch-backend`), so that it fetches them, installed for that by pip where there is none.

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
_KINDS = ("", "-embedded", "-uv", "-research", "-postgres", "-qdrant", "-ray", "-dev")
REQUIREMENTS = tuple(f"requirements{kind}.txt" for kind in _KINDS)
"""What the application needs, its weights, what fetches torch; what research, databases, clusters
and tests need."""
TORCH_LOCK = "requirements-torch.lock"
"""torch as packages are published by default: with CUDA on Linux."""
IDENTITY = (
    "import importlib.util, platform, sys, sysconfig\n"
    "assert sys.version_info >= (3, 11) and importlib.util.find_spec('pip')\n"
    "print(platform.python_version(), sysconfig.get_platform())\n"
)
SOURCES = re.compile(r"(?:url|links|index|proxy|cert|host|constraint)=")
"""Ends of the names of pip's settings that say where packages come from (`pip config list`)."""

NO_PROCESSOR_BUILD = """
No build of torch for processors alone could be fetched: the reason is above. Either name an index
that has it (PIP_EXTRA_INDEX_URL), or repeat the command with GPU=1: this takes the build with CUDA,
which needs no graphics card, but 4.5 GB more."""

NO_INTEL_MAC = """
This Python is one for Macs with an Intel processor. PyTorch is not published for them since version
2.3, and an older one does not fit the other libraries. On a Mac with an Apple processor name a
Python for it: make run PYTHON=/opt/homebrew/bin/python3. On one with an Intel processor use Docker
(README.md), whose container is Linux."""

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


def torch_in(venv: Path) -> str | None:
    """Return the version of torch in an environment, with its build (2.13.0+cpu), or None."""
    for found in venv.glob("lib/python*/site-packages/torch-*.dist-info"):
        return found.name.removeprefix("torch-").removesuffix(".dist-info")
    return None


def wants_cuda(said: str, installed: str | None) -> bool:
    """Return whether torch is to be the build that is published by default, by what GPU `said`.

    Where it said nothing, an environment keeps its build, and a new one on Linux is for processors.
    """
    if not sys.platform.startswith("linux"):
        return True
    if said:
        return said != "0"
    return installed is not None and "+cpu" not in installed


def lock_of(requirements: Path) -> Path:
    """Return the file that locks what a requirements file asks for."""
    return requirements.with_suffix(".lock")


def install_torch(
    root: Path, *, cuda: bool, locked: bool, install: Sequence[str], run: Runner
) -> None:
    """Install torch alone, so that nothing that comes later pulls another build of it.

    The build with CUDA is locked with its checksums. Of a build for processors the version is
    locked: where it comes from, checksums are not asked for.
    """
    venv = root / ".venv"
    wanted = torch_requirement((root / REQUIREMENTS[0]).read_text(encoding="utf-8"))
    if cuda:
        if "+" in (torch_in(venv) or ""):
            # This build satisfies the requirement, so that it would stay.
            run([str(venv / "bin" / "python"), "-m", "pip", "uninstall", "--yes", "torch"])
        run([*install, *(checked(root / TORCH_LOCK) if locked else [wanted])])
        return
    build = [*(["--no-deps"] if locked else []), f"{wanted}+cpu"]
    if "-m" in install:
        try:
            run([*install, *build])
        except SystemExit:
            print("\nWhat pip asks has no build of torch for processors alone. uv looks for it.")
        else:
            return
    uv = shutil.which("uv")
    if uv is None:
        name = root / "requirements-uv.txt"
        run([*install, *(checked(lock_of(name)) if locked else ["-r", str(name)])])
        uv = str(venv / "bin" / "uv")
    python = ["--python", str(venv / "bin" / "python"), "--torch-backend", "cpu"]
    try:
        # What it needs besides comes from where everything else does.
        run([uv, "pip", "install", *python, "--no-deps", build[-1]])
    except SystemExit as error:
        raise SystemExit(NO_PROCESSOR_BUILD) from error


def checked(lock: Path) -> list[str]:
    """Return the words after `install` that install exactly what is in `lock`, by its checksums."""
    return ["--no-deps", "--require-hashes", "-r", str(lock)]


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
    if re.search(r"macosx.*x86_64", present) and torch_in(venv) is None:
        raise SystemExit(NO_INTEL_MAC)
    install = installer(python)
    locked = environ.get("LOCKED", "") not in ("", "0")
    cuda = wants_cuda(environ.get("GPU", ""), torch_in(venv))
    identified = f"{present} {'as published' if cuda else 'for processors'}"
    paths = [root / name for name in REQUIREMENTS]
    runtime, embedded, _, for_research, *for_development = paths
    files: list[Path] = []

    def needed(*more: Path) -> None:
        """Let the next stamp depend on `more` too."""
        files.extend(more)
        if locked:
            files.extend(lock_of(file) for file in more)

    def of(file: Path, *options: str) -> list[str]:
        """Return the words that install what `file` asks for."""
        return checked(lock_of(file)) if locked else [*options, "-r", str(file)]

    def update(stamp: str, *steps: Callable[[], None]) -> None:
        """Do `steps` unless the stamp says so of `files`; then make it say so at once."""
        path, wanted = venv / f"installed-{stamp}", fingerprint(identified, files)
        if path.is_file() and path.read_text() == wanted:
            return
        path.unlink(missing_ok=True)
        for step in steps:
            step()
        unfinished = path.with_suffix(".unfinished")
        unfinished.write_text(wanted)
        unfinished.replace(path)

    def installing(*words: str) -> Callable[[], None]:
        return lambda: run([*install, *words])

    needed(runtime, embedded)
    update(
        "runtime",
        lambda: install_torch(root, cuda=cuda, locked=locked, install=install, run=run),
        installing(*of(runtime)),
        installing(*of(embedded, "--no-deps")),
    )
    if dev or research:
        needed(for_research)
        update("research", installing(*of(for_research)))
    if dev:
        needed(*for_development)
        update("development", *(installing(*of(file)) for file in for_development))


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

"""What is installed, to the version: `python -m scripts.dependencies lock|audit`.

`lock` installs the newest versions that the requirement files allow into an environment that it
deletes again. For these versions uv writes a lock beside each requirement file, with the checksum
of every file of a package for Python 3.11 and later, on Linux and macOS; licences are written into
`docs/licences.md`. pip and uv install from the locks as they are.

`audit` asks the public database of vulnerabilities about every version in the locks. What the
database could not tell counts as a failure: it is reached over the network, and a mirror of the
package index knows no vulnerabilities.
"""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from email.message import Message
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from scripts.environment import (
    REQUIREMENTS,
    ROOT,
    TORCH_LOCK,
    lock_of,
    prepare,
    torch_requirement,
)

LICENCES = ROOT / "docs" / "licences.md"
RUNTIME = "What the application needs"
GRAPHICS = "What a graphics card needs besides, with GPU=1 on Linux"
DEVELOPMENT = "What research and tests need besides"
OLDEST, NEWEST = "3.11", "3.14"
"""The Pythons that the locks hold for."""

_LIBRARIES = ["2010", "2014", *(f"_2_{minor}" for minor in range(12, 36))]
_MACHINE = [f"--platform=manylinux{one}_x86_64" for one in _LIBRARIES]
"""Linux to pip, which infers no older C library from a newer one."""

_HEAD = """# Every package at the version that was tested, with the checksums of its files.
# Made by `make lock`, for `make install LOCKED=1` and for the container.
"""
_INTRODUCTION = """# Licences

This project is under Apache-2.0. Here is what is installed beside it, as the packages declare it.
Made by `make lock`, like the versions in `requirements*.lock`. None is under the GPL or the AGPL.
The packages of CUDA are under terms of NVIDIA's own; they are installed with `GPU=1` only.
"""
_EVERYWHERE = "sys_platform == 'darwin' or sys_platform == 'linux'"
"""What uv says of a package that every system of the lock needs."""

_TITLE = re.compile(r"(?:the )?[\w .,-]{2,60}\blicen[cs]e\b[\w .,-]{0,30}", re.IGNORECASE)
_COPYLEFT = re.compile(r"\bA?GPL|Affero|\bGNU General Public", re.IGNORECASE)


def canonical(name: str) -> str:
    """Return the normalised name of a package."""
    return re.sub(r"[-_.]+", "-", name).lower()


_UNNAMED = "Other/Proprietary License"
"""The classifier of all licences that have none of their own."""


def licence_of(package: Distribution) -> str:
    """Return what a package declares: an SPDX expression, else its classifiers, else its own words.

    Where it declares nothing, it is the title of the licence that it brings.
    """
    declared = package.metadata
    if "License-Expression" in declared:
        return declared["License-Expression"]
    classified = [
        one.rpartition(" :: ")[2]
        for one in declared.get_all("Classifier") or ()
        if one.startswith("License ::") and not one.endswith(_UNNAMED)
    ]
    if classified:
        return ", ".join(classified)
    words = declared["License"].strip().splitlines() if "License" in declared else []
    return words[0] if words else _title_of_licence(package) or "not declared"


def _title_of_licence(package: Distribution) -> str:
    """Return the first line of the file that holds a package's licence, where that is its title."""
    for name in package.metadata.get_all("License-File") or ():
        text = package.read_text(f"licenses/{name}") or package.read_text(name) or ""
        title = next((line.strip() for line in text.splitlines() if line.strip()), "")
        if _TITLE.fullmatch(title):
            return title
    return ""


def is_copyleft(licence: str) -> bool:
    """Return whether `licence` leaves no choice but the GPL or the AGPL; the LGPL is neither."""
    return bool(_COPYLEFT.search(licence)) and " OR " not in licence


def read_lock(text: str) -> dict[str, str]:
    """Return the version by package in a lock."""
    entries = (line.split(";")[0].strip(" \\") for line in text.splitlines() if "==" in line)
    return dict(one.split("==") for one in entries if not one.startswith("#"))


def locked(root: Path) -> dict[str, dict[str, str]]:
    """Return the versions in the locks of `root` by package, in sections, each package once."""
    runtime, embedded, *others = (lock_of(root / name) for name in REQUIREMENTS)
    sections: dict[str, dict[str, str]] = {}
    known: dict[str, str] = {}
    for title, files in (
        (RUNTIME, [runtime, embedded]),
        (GRAPHICS, [root / TORCH_LOCK]),
        (DEVELOPMENT, others),
    ):
        found = {n: v for file in files for n, v in read_lock(file.read_text("utf-8")).items()}
        if title == RUNTIME:
            found["torch"] = read_lock((root / TORCH_LOCK).read_text("utf-8"))["torch"]
        sections[title] = {n: found[n] for n in sorted(found) if n not in known}
        known |= found
    return sections


def entries_of(compiled: str) -> dict[str, str]:
    """Return the entries of what uv compiled by the name of the package."""
    lines = compiled.replace(f" ; {_EVERYWHERE}", "").replace(f" and ({_EVERYWHERE})", "")
    parts = re.split(r"^(?=[a-z0-9])", lines, flags=re.MULTILINE)
    return {part.partition("==")[0]: part for part in parts if "==" in part}


def write_locks(root: Path, uv: Sequence[str], versions: Mapping[str, str]) -> None:
    """Write a lock beside each requirement file of `root`, with `versions` where they are named.

    `uv` begins the command that runs uv. torch and what it needs for CUDA are in a lock of their
    own, what the application needs is in its own alone.
    """
    pins = root / "pins.txt"
    pins.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
    torch = root / "torch.txt"
    torch.write_text(torch_requirement((root / REQUIREMENTS[0]).read_text("utf-8")))

    def compiled(file: Path, *options: str) -> dict[str, str]:
        command = ["pip", "compile", "--quiet", "--universal", "--python-version", OLDEST]
        command += ["--generate-hashes", "--no-annotate", "--no-header", *options]
        done = subprocess.run(
            [*uv, *command, "--constraints", str(pins), str(file)],
            cwd=root,
            stdout=subprocess.PIPE,
            text=True,
            check=True,
        )
        return entries_of(done.stdout)

    def write(path: Path, entries: Mapping[str, str]) -> None:
        path.write_text(_HEAD + "".join(entries[name] for name in sorted(entries)), "utf-8")

    alone = {
        name: entry
        for name, entry in compiled(torch).items()
        if name == "torch" or "sys_platform == 'linux'" in entry.splitlines()[0]
    }
    write(root / TORCH_LOCK, alone)
    known = set(alone)
    for name in REQUIREMENTS:
        file = root / name
        entries = compiled(file, *(["--no-deps"] if "embedded" in name else []))
        write(lock_of(file), {n: e for n, e in entries.items() if n not in known})
        if file.stem == "requirements":
            known |= set(entries)


def reported(versions: Mapping[str, str], python: Path) -> dict[str, Distribution]:
    """Return what the index of packages declares of `versions`, which are not installed.

    Only descriptions are fetched, where the index has them apart from the packages.
    """
    if not versions:
        return {}
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        wanted = folder / "wanted.txt"
        wanted.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
        report = folder / "report.json"
        command = [str(python), "-m", "pip", "install", "--dry-run", "--ignore-installed"]
        command += ["--no-deps", "--only-binary", ":all:", "--python-version", NEWEST]
        command += ["--target", str(folder / "nothing"), *_MACHINE]
        command += ["--quiet", "--report", str(report), "-r", str(wanted)]
        subprocess.run(command, check=True)
        packages = json.loads(report.read_text("utf-8"))["install"]
    return {canonical(one["metadata"]["name"]): Described(one["metadata"]) for one in packages}


class Described(Distribution):
    """A package of which only the description is known, as pip reports it."""

    def __init__(self, declared: Mapping[str, Any]) -> None:
        message = Message()
        for name in ("name", "version", "license_expression", "license", "classifier"):
            values = declared.get(name) or []
            for value in [values] if isinstance(values, str) else values:
                message[name.replace("_", "-")] = value.partition("\n")[0]
        self._text = message.as_string()

    def read_text(self, filename: str) -> str | None:
        return self._text if filename == "METADATA" else None

    def locate_file(self, path: Any) -> Path:
        raise FileNotFoundError(path)


def write_licences(
    sections: Mapping[str, Mapping[str, str]], installed: Mapping[str, Distribution]
) -> str:
    """Return a table of the licences of what is locked, for each section."""
    parts = [_INTRODUCTION]
    for title, versions in sections.items():
        parts.append(f"\n## {title}\n\n| package | version | licence |\n|---|---|---|\n")
        for name, version in versions.items():
            parts.append(f"| {name} | {version} | {licence_of(installed[name])} |\n")
    return "".join(parts)


def installed_in(folder: Path) -> dict[str, Distribution]:
    """Return the packages of the environment in `folder`, by normalised name, without its
    installer.
    """
    places = [str(path) for path in folder.glob("lib/python*/site-packages")]
    found = {canonical(one.metadata["Name"]): one for one in distributions(path=places)}
    return {name: found[name] for name in sorted(found) if name not in ("pip", "setuptools")}


def versions_of(packages: Mapping[str, Distribution]) -> dict[str, str]:
    """Return the version by package, without the mark of a local build (2.13.0+cpu)."""
    return {name: one.version.partition("+")[0] for name, one in packages.items()}


def lock() -> None:
    """Write the locks and the licences; raises SystemExit, which says why, where that fails."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for name in (*REQUIREMENTS, "pyproject.toml"):
            shutil.copy(ROOT / name, root / name)
        prepare(root, dev=True, environ={})
        python = root / ".venv" / "bin" / "python"
        fetching = [str(python), "-m", "pip", "install", "-r", str(root / "requirements-uv.txt")]
        subprocess.run(fetching, check=True)
        installed = installed_in(root / ".venv")
        write_locks(root, [str(python), "-m", "uv"], versions_of(installed))
        sections = locked(root)
        every = {name: v for part in sections.values() for name, v in part.items()}
        known = versions_of(installed)
        rest = {name: v for name, v in every.items() if known.get(name) != v}
        described = {**installed, **reported(rest, python)}
        copyleft = [name for name in every if is_copyleft(licence_of(described[name]))]
        if copyleft:
            sys.exit(f"Under the GPL or the AGPL: {', '.join(copyleft)}. Nothing was written.")
        for path in root.glob("requirements*.lock"):
            shutil.copy(path, ROOT / path.name)
        LICENCES.write_text(write_licences(sections, described), encoding="utf-8")


def judge(report: str, expected: int) -> tuple[int, str]:
    """Return the exit code and words for what pip-audit said of `expected` packages.

    0 where nothing is known of any, 1 for known vulnerabilities, 2 where it is not known of all.
    """
    try:
        packages: Sequence[dict[str, Any]] = json.loads(report)["dependencies"]
    except (ValueError, KeyError, TypeError):
        packages = ()
    asked = [one for one in packages if "skip_reason" not in one]
    lines = list(_found(asked))
    if len(asked) < expected:
        lines.append(
            f"{expected - len(asked)} of {expected} packages could not be looked up: this is no "
            "audit. The database of vulnerabilities must be reachable over the network, past any "
            "mirror of the package index."
        )
        return 2, "\n".join(lines)
    if lines:
        return 1, "\n".join(lines)
    return 0, f"No vulnerability is known of any of the {expected} packages."


def _found(packages: Sequence[dict[str, Any]]) -> Iterator[str]:
    for one in packages:
        for known in one.get("vulns", ()):
            mended = ", ".join(known.get("fix_versions", ())) or "no version"
            yield f"{one['name']} {one['version']}: {known['id']}, mended in {mended}"


def audit() -> int:
    """Ask about every package of the locks; the exit code."""
    versions = {name: v for part in locked(ROOT).values() for name, v in part.items()}
    with tempfile.TemporaryDirectory() as temporary:
        # Every package, also those that this machine does not need.
        every = Path(temporary) / "every.txt"
        every.write_text("".join(f"{name}=={version}\n" for name, version in versions.items()))
        command = [sys.executable, "-m", "pip_audit", "-r", str(every), "--no-deps"]
        options = ["--disable-pip", "--format", "json", "--progress-spinner", "off"]
        done = subprocess.run([*command, *options], stdout=subprocess.PIPE, text=True, check=False)
    code, words = judge(done.stdout, len(versions))
    print(words, file=sys.stderr if code else sys.stdout)
    return code


if __name__ == "__main__":
    if sys.argv[1:] == ["lock"]:
        lock()
    elif sys.argv[1:] == ["audit"]:
        sys.exit(audit())
    else:
        sys.exit("Say lock or audit.")

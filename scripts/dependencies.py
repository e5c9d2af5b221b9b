"""What is installed, to the version: `python -m scripts.dependencies lock|audit`.

`lock` installs the newest versions that the requirement files allow into an environment that it
deletes again, and writes them into `requirements.lock`, their licences into `docs/licences.md`.
pip takes the lock as constraints: it names no index, no platform and no build, so that it holds for
every Python and system; what only some of them need is not in it.

`audit` asks the public database of vulnerabilities about every version in the lock. What the
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
from importlib.metadata import Distribution, distributions
from pathlib import Path
from typing import Any

from scripts.environment import LOCK, REQUIREMENTS, ROOT, prepare

LICENCES = ROOT / "docs" / "licences.md"
RUNTIME = "What the application needs"
DEVELOPMENT = "What research and tests need besides"

_HEAD = """# Every package at the version that was tested, made by `make lock`: constraints for
# `make install LOCKED=1` and for the container, and what `make audit` asks about.
"""
_INTRODUCTION = """# Licences

This project is under Apache-2.0. Here is what is installed beside it, as the packages declare it.
Made by `make lock`, like the versions in `requirements.lock`. None is under the GPL or the AGPL.
"""

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


def read_lock(text: str) -> dict[str, dict[str, str]]:
    """Return the version by package, in each section of a lock."""
    sections: dict[str, dict[str, str]] = {}
    for line in text.splitlines():
        if line.startswith("## "):
            sections[line[3:]] = {}
        elif "==" in line and not line.startswith("#"):
            name, _, version = line.partition("==")
            sections[list(sections)[-1]][name] = version
    return sections


def write_lock(sections: Mapping[str, Mapping[str, str]]) -> str:
    """Return the text of a lock."""
    parts = [_HEAD]
    for title, versions in sections.items():
        parts.append(f"\n## {title}\n" + "".join(f"{n}=={v}\n" for n, v in versions.items()))
    return "".join(parts)


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
    """Write the lock and the licences; raises SystemExit, which says why, where that fails."""
    with tempfile.TemporaryDirectory() as temporary:
        root = Path(temporary)
        for name in REQUIREMENTS:
            shutil.copy(ROOT / name, root / name)
        prepare(root, environ={})
        runtime = versions_of(installed_in(root / ".venv"))
        prepare(root, dev=True, environ={})
        installed = installed_in(root / ".venv")
        more = {n: v for n, v in versions_of(installed).items() if n not in runtime}
        sections = {RUNTIME: runtime, DEVELOPMENT: more}
        copyleft = [name for name, one in installed.items() if is_copyleft(licence_of(one))]
        if copyleft:
            sys.exit(f"Under the GPL or the AGPL: {', '.join(copyleft)}. Nothing was written.")
        (ROOT / LOCK).write_text(write_lock(sections), encoding="utf-8")
        LICENCES.write_text(write_licences(sections, installed), encoding="utf-8")


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
    """Ask about every package of the lock; the exit code."""
    text = (ROOT / LOCK).read_text(encoding="utf-8")
    versions = {name: v for part in read_lock(text).values() for name, v in part.items()}
    command = [sys.executable, "-m", "pip_audit", "-r", str(ROOT / LOCK), "--no-deps"]
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

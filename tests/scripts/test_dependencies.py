"""Locked versions, their licences, and what an audit of them may call clean."""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Mapping
from email.message import Message
from importlib.metadata import PathDistribution, distributions
from pathlib import Path

import pytest
from packaging.markers import Marker
from packaging.requirements import Requirement
from packaging.version import Version

from scripts import dependencies
from scripts.dependencies import (
    DEVELOPMENT,
    GRAPHICS,
    LICENCES,
    NEWEST,
    OLDEST,
    Described,
    canonical,
    entries_of,
    is_copyleft,
    judge,
    licence_of,
    locked,
    read_lock,
    write_licences,
)
from scripts.environment import REQUIREMENTS, ROOT, TORCH_LOCK, lock_of


def required(*files: str) -> dict[str, Requirement]:
    lines = [line for name in files for line in (ROOT / name).read_text().splitlines()]
    found = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    return {canonical(one.name): one for one in found}


COMPILED = """a==1 ; sys_platform == 'darwin' or sys_platform == 'linux' \\
    --hash=sha256:00 \\
    --hash=sha256:01
b-c==2.0 ; python_version >= '3.13' and (sys_platform == 'darwin' or sys_platform == 'linux') \\
    --hash=sha256:02
"""


def test_what_every_system_needs_is_needed_unconditionally():
    found = entries_of(COMPILED)
    assert found["a"].splitlines()[0] == "a==1 \\"
    assert found["b-c"].splitlines()[0] == "b-c==2.0 ; python_version >= '3.13' \\"
    assert read_lock("# x==1\n" + "".join(found.values())) == {"a": "1", "b-c": "2.0"}


@pytest.mark.parametrize("name", REQUIREMENTS)
def test_the_lock_has_every_requirement_at_a_version_that_it_allows(name: str):
    versions = {n: v for part in locked(ROOT).values() for n, v in part.items()}
    versions |= read_lock(lock_of(ROOT / name).read_text())
    wrong = {
        name: versions.get(name)
        for name, one in required(name).items()
        if name not in versions or Version(versions[name]) not in one.specifier
    }
    assert not wrong, "`make lock` chooses versions anew."


def test_every_package_is_locked_once_with_checksums():
    for path in [*(lock_of(ROOT / name) for name in REQUIREMENTS), ROOT / TORCH_LOCK]:
        lines = path.read_text().splitlines()
        entries = re.findall(
            r"^([a-z0-9-]+)==\S+(?: ; (.+?))? \\\n((?: {4}--hash=sha256:[0-9a-f]{64}(?: \\)?\n)+)",
            path.read_text(),
            flags=re.MULTILINE,
        )
        # Nothing else is in it: no index, no place, no version of a second source.
        hashes = sum(rest.count("--hash") for _, _, rest in entries)
        comments = sum(line.startswith("#") for line in lines)
        assert len(entries) + hashes + comments == len(lines)
        assert len({name for name, _, _ in entries}) == len(entries)
        for _, marker, _ in entries:
            assert not marker or Marker(marker)


def test_what_cuda_needs_is_locked_apart():
    runtime = read_lock((ROOT / "requirements.lock").read_text())
    apart = read_lock((ROOT / TORCH_LOCK).read_text())
    assert apart["torch"] == required("requirements.txt")["torch"].specifier.__str__()[2:]
    assert not runtime.keys() & apart.keys()
    assert not [name for name in runtime if name.startswith(("nvidia", "cuda"))]


@pytest.mark.parametrize("python", [OLDEST, "3.12", "3.13", NEWEST])
@pytest.mark.parametrize("system", ["linux", "darwin"])
def test_what_a_locked_package_needs_is_locked(python: str, system: str):
    """By what the packages that are installed here declare."""
    environment = {"python_version": python, "python_full_version": f"{python}.0"}
    environment |= {"sys_platform": system, "platform_system": system.capitalize(), "extra": ""}
    environment |= {"platform_machine": "arm64" if system == "darwin" else "x86_64"}
    lock = (ROOT / "requirements.lock").read_text() + (ROOT / TORCH_LOCK).read_text()
    there = {
        name
        for name, marker in re.findall(r"^([a-z0-9-]+)==\S+(?: ; (.+?))? \\$", lock, re.MULTILINE)
        if not marker or Marker(marker).evaluate(environment)
    }
    missing = {
        (package.metadata["Name"], needed.name)
        for package in distributions()
        if canonical(package.metadata["Name"]) in there
        for needed in map(Requirement, package.requires or ())
        if (not needed.marker or needed.marker.evaluate(environment))
        and canonical(needed.name) not in there
    }
    assert not missing


def test_the_licences_are_those_of_the_lock_and_none_is_the_gpl():
    text = LICENCES.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z0-9-]+) \| (\S+) \| (.+) \|$", text, flags=re.MULTILINE)
    assert {name: version for name, version, _ in rows if name != "package"} == {
        name: version for part in locked(ROOT).values() for name, version in part.items()
    }
    assert [row for row in rows if is_copyleft(row[2])] == []
    # A package without files, which only names others.
    assert [row[0] for row in rows if row[2] == "not declared"] == ["cuda-toolkit"]
    assert "cuda-toolkit" in locked(ROOT)[GRAPHICS]
    installed = {canonical(one.metadata["Name"]): one for one in distributions()}
    for name, version, licence in rows:
        if name in installed and installed[name].version.partition("+")[0] == version:
            assert licence == licence_of(installed[name])


def declaring(folder: Path, **fields: str | list[str]) -> PathDistribution:
    """A package that declares `fields`."""
    message = Message()
    for name, values in fields.items():
        for value in [values] if isinstance(values, str) else values:
            message[name.replace("_", "-")] = value
    (folder / "x.dist-info").mkdir()
    (folder / "x.dist-info" / "METADATA").write_text(message.as_string())
    return PathDistribution(folder / "x.dist-info")


@pytest.mark.parametrize(
    ("fields", "licence"),
    [
        ({"License_Expression": "MIT OR Apache-2.0", "License": "other"}, "MIT OR Apache-2.0"),
        (
            {"Classifier": ["License :: OSI Approved :: BSD License", "Topic :: Text"]},
            "BSD License",
        ),
        ({"License": "Apache 2.0"}, "Apache 2.0"),
        ({}, "not declared"),
    ],
)
def test_a_licence_is_what_the_package_declares(
    tmp_path: Path, fields: dict[str, str | list[str]], licence: str
):
    assert licence_of(declaring(tmp_path, Name="x", **fields)) == licence


@pytest.mark.parametrize(
    ("text", "licence"),
    [
        ("\n  MIT License\n\nCopyright (c) 2022 Somebody", "MIT License"),
        ("GNU GENERAL PUBLIC LICENSE\nVersion 3", "GNU GENERAL PUBLIC LICENSE"),
        ("Copyright (c) 2022 Somebody\nPermission is granted", "not declared"),
        ("", "not declared"),
    ],
)
@pytest.mark.parametrize("folder", ["", "licenses/"])
def test_where_nothing_is_declared_the_licence_that_it_brings_is_named(
    tmp_path: Path, text: str, licence: str, folder: str
):
    package = declaring(tmp_path, Name="x", License_File="LICENSE")
    file = tmp_path / "x.dist-info" / f"{folder}LICENSE"
    file.parent.mkdir(exist_ok=True)
    file.write_text(text)
    assert licence_of(package) == licence


@pytest.mark.parametrize(
    ("licence", "copyleft"),
    [
        ("GPL-3.0-only", True),
        ("AGPL-3.0-or-later", True),
        ("GNU General Public License v3 (GPLv3)", True),
        ("GNU GENERAL PUBLIC LICENSE", True),
        ("GNU Affero General Public License v3", True),
        ("Artistic-1.0 OR GPL-1.0-or-later", False),
        ("LGPL-3.0-only", False),
        ("GNU Lesser General Public License v3 (LGPLv3)", False),
        ("MIT", False),
    ],
)
def test_the_gpl_is_recognised(licence: str, copyleft: bool):
    assert is_copyleft(licence) == copyleft


def test_what_is_not_installed_is_described_by_the_index():
    declared = {"name": "Nvidia_X", "version": "1", "license": "Own terms\nand more"}
    package = Described({**declared, "classifier": ["License :: Other/Proprietary License"]})
    assert (package.metadata["Name"], package.version) == ("Nvidia_X", "1")
    assert licence_of(package) == "Own terms"


def test_a_table_has_one_row_a_package(tmp_path: Path):
    package = declaring(tmp_path, Name="pytest", License_Expression="MIT")
    text = write_licences({DEVELOPMENT: {"pytest": "9.1.0"}}, {"pytest": package})
    assert "| pytest | 9.1.0 | MIT |" in text


def said(*packages: Mapping[str, object]) -> str:
    return json.dumps({"dependencies": packages, "fixes": []})


CLEAN = {"name": "a", "version": "1", "vulns": []}
FLAWED = {
    "name": "b",
    "version": "2",
    "vulns": [{"id": "CVE-1", "fix_versions": ["2.1"]}, {"id": "CVE-2", "fix_versions": []}],
}
UNKNOWN = {"name": "c", "skip_reason": "Dependency not found"}


@pytest.mark.parametrize(
    ("report", "expected", "code", "words"),
    [
        (said(CLEAN), 1, 0, "No vulnerability is known of any of the 1 packages"),
        (said(CLEAN, FLAWED), 2, 1, "b 2: CVE-1, mended in 2.1\nb 2: CVE-2, mended in no version"),
        # What pip-audit calls clean where the database knows nothing.
        (said(CLEAN, UNKNOWN), 2, 2, "1 of 2 packages could not be looked up: this is no audit"),
        (said(FLAWED, UNKNOWN), 2, 2, "CVE-1"),
        (said(), 2, 2, "2 of 2 packages could not be looked up"),
        ("", 2, 2, "over the network"),
        ("Traceback", 2, 2, "over the network"),
        ("[]", 2, 2, "over the network"),
    ],
)
def test_only_what_was_looked_up_is_clean(report: str, expected: int, code: int, words: str):
    found = judge(report, expected)
    assert found[0] == code
    assert words in found[1]


def test_an_audit_without_the_database_fails(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    # What is asked crashes, as it does where no connection can be made.
    program = tmp_path / "python"
    program.write_text("#!/bin/sh\necho 'no connection' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(program))
    assert dependencies.audit() == 2
    assert "could not be looked up" in capsys.readouterr().err

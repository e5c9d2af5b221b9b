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
from packaging.requirements import Requirement
from packaging.version import Version

from scripts import dependencies
from scripts.dependencies import (
    DEVELOPMENT,
    LICENCES,
    RUNTIME,
    canonical,
    is_copyleft,
    judge,
    licence_of,
    read_lock,
    write_licences,
    write_lock,
)
from scripts.environment import LOCK, REQUIREMENTS, ROOT

SECTIONS = {RUNTIME: {"pydantic": "2.14.0", "torch": "2.13.0"}, DEVELOPMENT: {"pytest": "9.1.0"}}


def locked() -> dict[str, dict[str, str]]:
    return read_lock((ROOT / LOCK).read_text(encoding="utf-8"))


def required(*files: str) -> dict[str, Requirement]:
    lines = [line for name in files for line in (ROOT / name).read_text().splitlines()]
    found = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    return {canonical(one.name): one for one in found}


def test_what_was_written_is_read():
    text = write_lock(SECTIONS)
    assert read_lock(text) == SECTIONS
    # As pip reads it: comments, and one exact version a line.
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert lines == ["pydantic==2.14.0", "torch==2.13.0", "pytest==9.1.0"]


@pytest.mark.parametrize(
    ("section", "files"), [(RUNTIME, REQUIREMENTS[:2]), (DEVELOPMENT, REQUIREMENTS[2:])]
)
def test_the_lock_has_every_requirement_at_a_version_that_it_allows(
    section: str, files: tuple[str, ...]
):
    versions = {**locked()[RUNTIME], **locked()[section]}
    wrong = {
        name: versions.get(name)
        for name, one in required(*files).items()
        if name not in versions or Version(versions[name]) not in one.specifier
    }
    assert not wrong, "`make lock` chooses versions anew."


def test_the_lock_holds_for_every_machine():
    text = (ROOT / LOCK).read_text(encoding="utf-8")
    names = [line for line in text.splitlines() if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[a-z0-9-]+==[0-9][0-9a-z.]*", line) for line in names)
    assert len(names) == len({line.partition("==")[0] for line in names})


def test_the_licences_are_those_of_the_lock_and_none_is_the_gpl():
    text = LICENCES.read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([a-z0-9-]+) \| (\S+) \| (.+) \|$", text, flags=re.MULTILINE)
    assert {name: version for name, version, _ in rows if name != "package"} == {
        name: version for part in locked().values() for name, version in part.items()
    }
    assert [row for row in rows if is_copyleft(row[2])] == []
    assert [row for row in rows if row[2] == "not declared"] == []
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

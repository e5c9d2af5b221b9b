"""The programs tests need: found where they are, installed where that is possible."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from scripts import programs
from tests import browser, postgresql


def program(path: Path, *, code: int = 0) -> Path:
    """An executable file at `path` that exits with `code`."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\nexit {code}\n")
    path.chmod(0o755)
    return path


@pytest.fixture(autouse=True)
def bare_machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine with nothing installed."""
    monkeypatch.setenv("PATH", str(tmp_path / "bin"))
    monkeypatch.setenv("PLAYWRIGHT_BROWSERS_PATH", str(tmp_path / "downloads"))
    monkeypatch.delenv("VERISCOPE_CHROMIUM", raising=False)
    monkeypatch.delenv("VERISCOPE_POSTGRESQL", raising=False)
    monkeypatch.setattr(browser, "APPLICATIONS", ())
    monkeypatch.setattr(postgresql, "FOLDERS", (f"{str(tmp_path)[1:]}/postgresql/*/bin",))
    monkeypatch.setattr(postgresql, "PACKAGE", "postgresql_for_tests")
    monkeypatch.setattr(programs, "can_install", lambda: False)


def test_an_installed_browser_is_found_on_the_path(tmp_path: Path):
    chrome = program(tmp_path / "bin" / "google-chrome")
    assert browser.find_chromium() == chrome
    chromium = program(tmp_path / "bin" / "chromium")
    assert browser.find_chromium() == chromium


def test_the_newest_download_is_found(tmp_path: Path):
    program(tmp_path / "downloads" / "chromium-999" / "chrome-linux" / "chrome")
    newest = program(tmp_path / "downloads" / "chromium-1208" / "chrome-linux64" / "chrome")
    assert browser.find_chromium() == newest


def test_the_browser_named_is_taken_or_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    program(tmp_path / "bin" / "chromium")
    named = program(tmp_path / "elsewhere" / "chrome")
    monkeypatch.setenv("VERISCOPE_CHROMIUM", str(named))
    assert browser.find_chromium() == named
    named.unlink()
    assert browser.find_chromium() is None


def test_a_missing_browser_says_what_to_do():
    assert browser.find_chromium() is None
    with pytest.raises(RuntimeError, match="make browser"):
        browser.require_chromium()


def test_a_browser_that_starts_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    chromium = program(tmp_path / "bin" / "chromium")
    monkeypatch.setattr(programs, "installers", lambda *_, **__: iter([pytest.fail]))
    assert programs.ensure_browser() == chromium


def test_installers_are_tried_until_a_browser_starts(tmp_path: Path):
    path = tmp_path / "bin" / "chromium"
    tried: list[str] = []

    def lacking_libraries() -> None:
        tried.append("lacking libraries")
        program(path, code=127)

    def whole() -> None:
        tried.append("whole")
        program(path)

    ways = iter([lacking_libraries, whole, pytest.fail])
    assert programs.ensure(programs.working_browser, ways, "none") == path
    assert tried == ["lacking libraries", "whole"]


def test_no_browser_at_all_fails_loudly(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(programs, "installers", lambda *_, **__: iter([lambda: None]))
    with pytest.raises(SystemExit, match="apt-get install chromium"):
        programs.ensure_browser()


def test_debian_is_asked_before_a_download(monkeypatch: pytest.MonkeyPatch):
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(programs, "can_install", lambda: True)
    monkeypatch.setattr(programs, "install", lambda *packages: asked.append(packages))
    first, last = programs.installers("chromium", download=pytest.fail)
    first()
    assert asked == [("chromium",)]
    assert last is pytest.fail


def postgresql_version(folder: Path) -> Path:
    for name in postgresql.PROGRAMS:
        program(folder / name)
    return folder


def test_the_newest_complete_postgresql_is_found(tmp_path: Path):
    assert postgresql.find_postgresql() is None
    postgresql_version(tmp_path / "postgresql" / "9" / "bin")
    newest = postgresql_version(tmp_path / "postgresql" / "15" / "bin")
    program(tmp_path / "postgresql" / "17" / "bin" / "initdb")
    assert postgresql.find_postgresql() == newest


def test_the_postgresql_named_or_on_the_path_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    postgresql_version(tmp_path / "postgresql" / "15" / "bin")
    on_path = postgresql_version(tmp_path / "bin")
    assert postgresql.find_postgresql() == on_path
    named = postgresql_version(tmp_path / "own")
    monkeypatch.setenv("VERISCOPE_POSTGRESQL", str(named))
    assert postgresql.find_postgresql() == named
    (named / "pg_ctl").unlink()
    assert postgresql.find_postgresql() is None


def test_the_postgresql_of_a_package_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(str(tmp_path))
    package = tmp_path / "postgresql_for_tests"
    postgresql_version(package / "pginstall" / "bin")
    newest = postgresql_version(package / "pginstall18" / "bin")
    assert postgresql.find_postgresql() == newest
    system = postgresql_version(tmp_path / "postgresql" / "15" / "bin")
    assert postgresql.find_postgresql() == system


def test_postgresql_is_installed_where_that_is_possible(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    folder = tmp_path / "postgresql" / "15" / "bin"
    monkeypatch.setattr(programs, "can_install", lambda: True)
    monkeypatch.setattr(programs, "install", lambda package: postgresql_version(folder))
    assert programs.ensure_postgresql() == folder


def test_no_postgresql_fails_loudly():
    with pytest.raises(SystemExit, match="apt-get install postgresql"):
        programs.ensure_postgresql()
    with pytest.raises(RuntimeError, match="make postgresql"):
        postgresql.require_postgresql()


def test_a_package_that_cannot_be_fetched_is_not_installed(monkeypatch: pytest.MonkeyPatch):
    ran: list[str] = []

    def apt(command: list[str], **options: object) -> subprocess.CompletedProcess[str]:
        ran.append(command[1])
        return subprocess.CompletedProcess(command, returncode=100)

    monkeypatch.setattr(subprocess, "run", apt)
    assert not programs.install("chromium")
    assert ran == ["update"]

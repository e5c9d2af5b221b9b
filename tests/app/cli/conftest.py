"""The command line as tests run it."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from app.cli import main as cli

CommandLine = Callable[..., tuple[int, str, str]]
"""Runs a command, its arguments as texts; gives status, standard output and error."""


@pytest.fixture
def command_line(capsys: pytest.CaptureFixture[str]) -> CommandLine:
    def run(*arguments: str) -> tuple[int, str, str]:
        status = cli.main([*arguments])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return run

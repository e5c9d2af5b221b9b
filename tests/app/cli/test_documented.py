"""Every command that the documents show is one that the command line takes, with its options."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.cli import main as cli

ROOT = Path(__file__).resolve().parents[3]
DOCUMENTS = (ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md")))
BEGINS = "python -m pipelines "


def commands(document: Path) -> Iterator[str]:
    """The arguments of the commands in the blocks of a document, those of one command a text."""
    blocks = re.findall(r"^```sh\n(.*?)^```", document.read_text("utf-8"), re.DOTALL | re.MULTILINE)
    for line in "".join(blocks).replace("\\\n", " ").splitlines():
        if line.startswith(BEGINS):
            yield line.removeprefix(BEGINS)


SHOWN = [(path.name, command) for path in DOCUMENTS for command in commands(path)]


@pytest.mark.parametrize(("document", "command"), SHOWN)
def test_a_command_of_a_document_can_be_given(document: str, command: str):
    given = shlex.split(command, comments=True)
    if "<" in given:
        # The shell takes the rest.
        given = given[: given.index("<")]
    _, unknown = cli._parser().parse_known_args(given)
    # Three dots stand for options that were shown before.
    assert set(unknown) <= {"..."}


def test_the_documents_show_commands():
    assert len(SHOWN) > 80
    assert {name for name, _ in SHOWN} >= {"README.md", "command-line.md", "evaluation.md"}

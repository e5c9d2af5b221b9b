"""What the commands share: names in a list, and the text of a file."""

from __future__ import annotations

from pathlib import Path

import pytest

from app.cli.shared import listed_names, text_of_file
from pipelines.error_words import phrase
from pipelines.errors import InvalidInputError


def test_names_are_listed_without_spaces_and_gaps():
    assert listed_names(" drad, slm,,ever ") == ["drad", "slm", "ever"]
    assert listed_names(" , ") == []


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_the_text_of_a_file_begins_without_a_mark(tmp_path: Path, encoding: str):
    path = tmp_path / "list.txt"
    path.write_text("北京\nParis\n", encoding=encoding)
    assert text_of_file(path, phrase("wanted.text_file")) == "北京\nParis\n"


def test_a_file_that_cannot_be_read_says_what_to_do(tmp_path: Path):
    latin = tmp_path / "latin.txt"
    latin.write_bytes(b"caf\xe9")
    for path, problem in ((latin, "UnicodeDecodeError"), (tmp_path / "none", "FileNotFoundError")):
        with pytest.raises(InvalidInputError, match=problem) as refused:
            text_of_file(path, phrase("wanted.text_file"))
        assert refused.value.remedy == "Give the path of a text file."

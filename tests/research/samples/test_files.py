"""A folder of public files by their names."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import InvalidInputError
from research.samples.files import Sources, sources_in


def test_what_is_there_is_found_by_its_name(tmp_path: Path):
    (tmp_path / "halueval_qa.jsonl").touch()
    (tmp_path / "fool_me_twice.jsonl").touch()
    (tmp_path / "another.jsonl").touch()
    found = sources_in(tmp_path)
    assert found == Sources(
        qa=tmp_path / "halueval_qa.jsonl", hard=tmp_path / "fool_me_twice.jsonl"
    )
    assert found.stances is None


def test_a_folder_without_any_of_them_is_an_error_that_names_them(tmp_path: Path):
    with pytest.raises(InvalidInputError) as caught:
        sources_in(tmp_path)
    assert "fever_symmetric.jsonl" in caught.value.remedy

"""The wording files: words, and regular expressions put together from parts."""

from __future__ import annotations

import pytest

from pipelines.base import ASSETS, WordingFile, load_wording

ENTRIES = {
    "names": "Ada\n  Emil ",
    "greeting": ["hello", "good ${time}"],
    "time": ["morning", "night"],
    "whole": r"\A${greeting}, \w+\Z",
}


def test_words_stand_between_white_space():
    assert WordingFile(ENTRIES).words("names") == {"Ada", "Emil"}


@pytest.mark.parametrize(
    ("text", "matches"),
    [("Hello, Ada", True), ("good night, Ada", True), ("night, Ada", False), ("hello, ", False)],
)
def test_a_pattern_is_put_together_from_its_parts_and_reads_any_case(text: str, matches: bool):
    assert bool(WordingFile(ENTRIES).pattern("whole").search(text)) == matches


@pytest.mark.parametrize("name", sorted(path.stem for path in (ASSETS / "wording").iterdir()))
def test_every_pattern_of_the_files_can_be_read(name: str):
    wording = load_wording(name)
    # Tables hold words, and texts that belong together.
    keys = [
        key
        for key, entry in wording.entries.items()
        if isinstance(entry, str) or (isinstance(entry, list) and isinstance(entry[0], str))
    ]
    assert keys
    assert all(wording.pattern(key).pattern for key in keys)

"""The words of failures: none is missing, none is left over."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from pipelines.errors import failure, failure_words
from pipelines.remote.failures import _CONNECTIONS

ROOT = Path(__file__).resolve().parents[3]
NAMES = [f"{group}.{key}" for group, entries in failure_words().items() for key in entries]


@pytest.mark.parametrize("name", NAMES)
def test_every_failure_is_an_error_of_a_class_of_its_own_with_a_remedy(name: str):
    group, key = name.split(".")
    words = failure_words()[group][key]
    facts = {one for part in words.values() for _, one, _, _ in Formatter().parse(part) if one}
    error = failure(name, "provider", **dict.fromkeys(facts, "fact"))
    assert error.code == words["code"]
    assert error.message
    assert error.remedy
    assert error.provider == "provider"
    assert "{" not in str(error)


def test_the_failures_of_the_file_are_those_that_happen():
    files = [path for room in ("app", "pipelines") for path in (ROOT / room).rglob("*.py")]
    code = "".join(path.read_text(encoding="utf-8") for path in files)
    quoted = set(re.findall(r'"(?:[a-z]+\.)?([a-z_0-9]+)"', code))
    assert {name.split(".")[1] for name in NAMES} <= quoted
    for group in ("service", "search"):
        assert set(_CONNECTIONS) <= set(failure_words()[group])

"""The words of failures: none is missing, none is left over."""

from __future__ import annotations

import re
from pathlib import Path
from string import Formatter

import pytest

from pipelines import models
from pipelines.errors import VeriscopeError
from pipelines.models.failures import _table, failure
from pipelines.models.hosted_errors import _CONNECTIONS

ROOT = Path(str(models.__file__)).parent
NAMES = [f"{group}.{key}" for group, entries in _table().items() for key in entries]


@pytest.mark.parametrize("name", NAMES)
def test_every_failure_is_an_error_of_a_class_of_its_own_with_a_remedy(name: str):
    group, key = name.split(".")
    words = _table()[group][key]
    facts = {one for part in words.values() for _, one, _, _ in Formatter().parse(part) if one}
    error = failure(name, "provider", **dict.fromkeys(facts, "fact"))
    assert type(error) is not VeriscopeError
    assert error.message
    assert error.remedy
    assert error.provider == "provider"
    assert "{" not in str(error)


def test_the_failures_of_the_file_are_those_that_happen():
    code = "".join(path.read_text(encoding="utf-8") for path in ROOT.rglob("*.py"))
    quoted = set(re.findall(r'"(?:service\.|loading\.|computing\.)?([a-z_]+)"', code))
    assert {name.split(".")[1] for name in NAMES} <= quoted
    assert set(_CONNECTIONS) <= set(_table()["service"])

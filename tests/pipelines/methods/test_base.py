"""What a method asks for, and what it concludes, as values."""

from __future__ import annotations

from math import inf, nan
from typing import Any

import pytest
from pydantic import ValidationError

from pipelines.base import Language
from pipelines.errors import InvalidInputError
from pipelines.methods.base import Method, Need
from pipelines.methods.registry import METHODS
from pipelines.models.base import Capabilities
from pipelines.run.events import ROLES

EN, BOTH = frozenset[Language]({"en"}), frozenset[Language]({"en", "zh"})


def speaks(languages: frozenset[Language]) -> Capabilities:
    return Capabilities(languages=languages)


@pytest.mark.parametrize(
    ("wanted", "spoken", "unmet"),
    [
        (EN, EN, False),
        (EN, BOTH, False),
        (BOTH, BOTH, False),
        (BOTH, EN, True),
        (frozenset[Language](), EN, False),
    ],
)
def test_a_model_has_to_speak_every_language_wanted(
    wanted: frozenset[Language], spoken: frozenset[Language], unmet: bool
):
    need = Need(reason="languages", role="verifier", languages=wanted)
    assert need.unmet({"verifier": speaks(spoken)}, has_evidence=False) is unmet


def test_languages_are_asked_of_the_role_that_was_named():
    need = Need(reason="languages", languages=BOTH)
    assert need.unmet({"main": speaks(EN), "verifier": speaks(BOTH)}, has_evidence=True)
    assert need.unmet({"verifier": speaks(BOTH)}, has_evidence=True)


def test_any_model_that_writes_will_do_but_there_has_to_be_one():
    need = Need(reason="model", role="verifier")
    assert need.unmet({"main": speaks(BOTH)}, has_evidence=True)
    assert not need.unmet({"verifier": Capabilities(languages=EN)}, has_evidence=False)


@pytest.mark.parametrize(
    ("need", "field"),
    [(Need(reason="logprobs"), "logprobs"), (Need(reason="proxy"), "scores")],
)
def test_a_capability_is_wanted_of_the_model(need: Need, field: str):
    assert need.unmet({"main": Capabilities()}, has_evidence=True)
    able = Capabilities.model_validate({field: True})
    assert not need.unmet({"main": able}, has_evidence=False)
    assert need.unmet({}, has_evidence=True)


def test_evidence_is_wanted_of_no_model():
    need = Need(reason="evidence")
    assert need.unmet({"main": speaks(BOTH)}, has_evidence=False)
    assert not need.unmet({}, has_evidence=True)


def test_there_is_no_other_reason():
    with pytest.raises(ValidationError):
        Need.model_validate({"reason": "luck"})


@pytest.mark.parametrize("value", [nan, inf, -inf])
@pytest.mark.parametrize("method", METHODS.values(), ids=lambda method: method.name)
def test_every_setting_is_bounded_so_that_it_is_a_number(method: Method[Any], value: float):
    for name, field in method.settings_type.model_fields.items():
        if "float" in str(field.annotation):
            with pytest.raises(InvalidInputError, match=name):
                method.settings({name: value})


def test_every_method_uses_roles_that_can_be_given():
    for name, method in METHODS.items():
        assert method.name == name
        assert set(method.roles) <= set(ROLES) - {"main"}
        needed = {need.role for need in method.needs(method.settings())}
        assert needed <= {"main", *method.roles}

"""Checking a text on the Space: what its form asks for."""

from __future__ import annotations

import pytest

from app.public.check import asked_in, check_spec
from app.public.session import checked_run
from pipelines.engine.checking import FEWER, TextToCheck, is_check
from pipelines.errors import InvalidInputError
from pipelines.run import defaults
from pipelines.run.defaults import default_models
from pipelines.run.spec import EvidenceSpec, MethodSpec

TEXT = "Marie Curie was born in Warsaw. She died in Florida."


def test_a_text_is_checked_by_those_of_the_chosen_that_can():
    spec = check_spec(TextToCheck(text=TEXT), [*FEWER, "selfcheck"], default_models())
    assert is_check(spec)
    names = [one.name for one in spec.methods]
    assert "selfcheck" not in names
    assert {"slm", "haarag", "p_yes"} <= set(names)
    assert spec.evidence == EvidenceSpec()


def test_chinese_is_checked_by_judges_where_nobody_speaks_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(defaults, "fetched_file", lambda _: None)
    spec = check_spec(TextToCheck(text="居里夫人出生于华沙。"), FEWER, default_models())
    assert [one.name for one in spec.methods] == ["haarag", "slm", "p_yes"]


def test_where_none_can_it_says_so():
    with pytest.raises(InvalidInputError, match="No detector"):
        check_spec(TextToCheck(text=TEXT), ["selfcheck"], default_models())
    with pytest.raises(InvalidInputError, match="no text"):
        check_spec(TextToCheck(text=""), FEWER, default_models())


def test_a_question_is_asked_as_before():
    spec = checked_run("Who was Curie?", [MethodSpec(name="direct")], default_models())
    assert not is_check(spec)
    assert asked_in(spec) == "Who was Curie?"


def test_a_check_can_be_tried_again():
    given = TextToCheck(text=TEXT, question="Who?", sources=("One.", "Two."))
    spec = check_spec(given, FEWER, default_models())
    assert asked_in(spec) == given.model_copy(update={"language": "en"})

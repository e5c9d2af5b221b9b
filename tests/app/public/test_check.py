"""Checking a text on the Space: what its form asks for."""

from __future__ import annotations

import pytest

from app.public.parts import asked_in, check_request
from pipelines.engine.asking import RunRequest, plan_run
from pipelines.engine.checking import FEWER, TextToCheck
from pipelines.run import events
from pipelines.run.events import EvidenceSpec, MethodSpec, default_models

TEXT = "Marie Curie was born in Warsaw. She died in Florida."


def asked(text: str, *detectors: str) -> list[str]:
    request = check_request(TextToCheck(text=text), detectors, default_models())
    assert (request.text, request.evidence) == (TextToCheck(text=text), EvidenceSpec())
    return [one.name for one in request.methods]


def test_a_text_is_checked_by_those_of_the_chosen_that_can():
    names = asked(TEXT, *FEWER, "selfcheck")
    assert "selfcheck" not in names
    assert {"slm", "haarag", "p_yes"} <= set(names)
    assert asked(TEXT, "selfcheck") == []


def test_chinese_is_checked_by_judges_where_nobody_speaks_it(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(events, "fetched_file", lambda _: None)
    assert asked("居里夫人出生于华沙。", *FEWER) == ["haarag", "slm", "p_yes"]


def test_what_was_asked_can_be_asked_again():
    given = TextToCheck(text=TEXT, question="Who?", sources=("One.", "Two."))
    spec = plan_run(check_request(given, FEWER, default_models())).spec
    assert asked_in(spec) == given.model_copy(update={"language": "en"})
    question = RunRequest("Who was Curie?", methods=[MethodSpec(name="direct")])
    assert asked_in(plan_run(question).spec) == "Who was Curie?"

"""The forms in which all systems answer, as wordings of their prompts."""

from __future__ import annotations

import re

import pytest

from pipelines.evaluation.forms import forms
from pipelines.evaluation.metrics.reference import yes_or_no
from pipelines.methods.registry import wording_of
from pipelines.methods.replies.announced import read_answer


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("name", ["reasoned", "yes_no"])
def test_each_shot_reasons_and_ends_with_its_short_answer(name: str, language: str):
    text = forms()[name]["direct"][language]["system"]
    _, *shots = re.split(r"\n\n(?:Question: |问题：)", text)
    # As many as published comparisons show for 2WikiMultihopQA and StrategyQA.
    assert len(shots) == 6
    found = [read_answer(shot) for shot in shots]
    assert all(found)
    assert all(len(shot) > 3 * len(answer) for shot, answer in zip(shots, found, strict=True))
    said = [yes_or_no(answer) for answer in found]
    assert (said.count("yes"), said.count("no")) == ((3, 3) if name == "yes_no" else (0, 0))


def test_a_form_is_of_the_prompts_by_which_systems_write():
    form = forms()["reasoned"]
    # What else a prompt asks for stays.
    assert "Rely on the passages." in form["rag"]["en"]["system"]
    assert "The context does not answer this question." in form["haarag"]["en"]["system"]
    for method in ("direct", "rag", "drad", "flare", "ircot", "haarag", "cove", "selfcheck"):
        assert wording_of([method], form)
    # These have forms of their own.
    assert not wording_of(["rowen", "ever"], form)

"""What can be chosen for a run, and what a check of a model changes about it."""

from __future__ import annotations

import pytest

from app.choices import assumed_capabilities, examples
from app.probing import bare, with_findings
from pipelines.models.base import Capabilities
from pipelines.models.probe import ProbeReport
from pipelines.run.spec import ModelKind, ModelSpec
from pipelines.text import detect_language

SERVER = ModelSpec(kind="openai", name="n", model="m", base_url="http://h/v1")
FOUND = ProbeReport(
    capabilities=Capabilities(
        languages=frozenset({"zh", "en"}),
        logprobs=True,
        top_logprobs=20,
        prefill=True,
        structured_output=True,
    ),
    findings=(),
)


def test_the_first_example_is_the_one_everybody_knows():
    assert examples("en")[0] == "Where was Bill Clinton born and raised?"


@pytest.mark.parametrize("language", ["en", "zh"])
def test_examples_are_different_and_in_the_pages_language(language):
    assert len(set(examples(language))) == len(examples(language)) >= 5
    assert {detect_language(question) for question in examples(language)} == {language}


@pytest.mark.parametrize(
    ("kind", "top", "logprobs", "languages"),
    [
        ("embedded", None, True, {"en"}),
        ("local", None, True, {"en", "zh"}),
        ("openai", None, True, {"en", "zh"}),
        ("openai", 0, False, {"en", "zh"}),
        ("openai", 5, True, {"en", "zh"}),
    ],
)
def test_what_a_model_is_taken_to_do_before_it_is_loaded(
    kind: ModelKind, top: int | None, logprobs: bool, languages: set[str]
):
    can = assumed_capabilities(ModelSpec(kind=kind, top_logprobs=top))
    assert can.logprobs is logprobs
    assert can.languages == languages


def test_what_was_found_is_kept_with_a_server():
    kept = with_findings(SERVER, FOUND)
    assert (kept.top_logprobs, kept.prefill, kept.structured_output) == (20, True, True)
    assert kept.languages == ("en", "zh")
    assert bare(kept) == SERVER


def test_no_probabilities_are_kept_as_none_at_all():
    without = FOUND.model_copy(
        update={"capabilities": FOUND.capabilities.model_copy(update={"logprobs": False})}
    )
    assert with_findings(SERVER, without).top_logprobs == 0


def test_a_local_model_knows_by_itself_but_for_its_languages():
    local = ModelSpec(kind="local", name="n", model="/m")
    assert with_findings(local, FOUND) == local.model_copy(update={"languages": ("en", "zh")})

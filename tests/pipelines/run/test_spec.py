"""What a run is made of, also when an earlier version wrote it down."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from pipelines.run.events import JUDGES, ROLES, EvidenceSpec, MethodSpec, ModelSpec, RunSpec


def test_every_role_is_named_once_and_the_writer_comes_first():
    assert ROLES[0] == "main"
    assert len(set(ROLES)) == len(ROLES)
    assert set(ROLES) == {"main", "verifier", "proxy", *JUDGES}
    assert JUDGES == ("judge_1", "judge_2", "judge_3")


def test_evidence_is_the_sample_library_unless_something_else_is_chosen():
    evidence = EvidenceSpec()
    assert (evidence.source, evidence.name, evidence.mode) == ("library", "sample", "hybrid")
    assert evidence.base_url is None


@pytest.mark.parametrize("source", ["serper", "duckduckgo", "wikipedia"])
def test_a_search_of_the_web_is_called_by_its_own_name(source):
    assert EvidenceSpec(source=source, library="sample").name == source


def test_a_library_is_called_by_its_name():
    assert EvidenceSpec(library="mine").name == "mine"


def test_there_is_no_other_source():
    with pytest.raises(ValidationError, match="source"):
        EvidenceSpec.model_validate({"source": "elsewhere"})


def test_a_run_written_down_before_the_web_could_be_searched_is_read():
    old = """{
        "question": "Who?",
        "methods": [{"name": "drad", "settings": {"theta_1": 0.5}}],
        "models": {
            "main": {"kind": "openai", "name": "n", "model": "m", "base_url": "http://h/v1"},
            "proxy": {"kind": "local", "name": "p", "model": "embedded"}
        },
        "evidence": {"library": "mine", "mode": "bm25"},
        "language": null, "seed": 3, "reproducible": true
    }"""
    assert RunSpec.model_validate_json(old) == RunSpec(
        question="Who?",
        methods=(MethodSpec(name="drad", settings={"theta_1": 0.5}),),
        models={
            "main": ModelSpec(kind="openai", name="n", model="m", base_url="http://h/v1"),
            "proxy": ModelSpec(kind="local", name="p", model="embedded"),
        },
        evidence=EvidenceSpec(source="library", library="mine", mode="bm25"),
        seed=3,
        reproducible=True,
    )


def test_a_run_comes_back_as_it_was_written():
    spec = RunSpec(
        question="谁？",
        methods=(MethodSpec(name="rag"),),
        models={role: ModelSpec(kind="dashscope", name=role, model="m") for role in ROLES},
        evidence=EvidenceSpec(source="serper", base_url="http://127.0.0.1:9"),
    )
    assert RunSpec.model_validate_json(spec.model_dump_json()) == spec


def test_models_that_are_configured_alike_are_one():
    one, same = (ModelSpec(name="n", languages=("en", "zh")) for _ in range(2))
    assert list(dict.fromkeys([one, same, ModelSpec()])) == [one, ModelSpec()]

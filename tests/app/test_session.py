"""Keys of one visitor: each goes to the model or search it was given for, and nowhere else."""

from __future__ import annotations

import pytest
import streamlit as st

from app.session import keep_key, key_for, keys_for
from pipelines.run.events import EvidenceSpec, MethodSpec, ModelSpec, RunSpec

SERVER = ModelSpec(kind="openai", name="mine", model="m", base_url="http://127.0.0.1:9/v1")
WEB = EvidenceSpec(source="serper")


@pytest.fixture(autouse=True)
def session(monkeypatch: pytest.MonkeyPatch) -> None:
    """A session with nothing in it."""
    monkeypatch.setattr(st, "session_state", {})


def run(evidence: EvidenceSpec | None = None, **models: ModelSpec) -> RunSpec:
    return RunSpec(
        question="Who?",
        methods=(MethodSpec(name="direct"),),
        models={"main": ModelSpec(), **models},
        evidence=evidence or EvidenceSpec(),
    )


def test_nobody_has_a_key_at_first():
    assert key_for(SERVER) is None
    assert not key_for("serper")
    assert keys_for(run(WEB, verifier=SERVER)) == {}


def test_a_model_has_the_key_it_was_given():
    keep_key(SERVER, "sk-mine")
    assert key_for(SERVER) == "sk-mine"
    assert keys_for(run(verifier=SERVER)) == {"mine": "sk-mine"}
    assert keys_for(run()) == {}


@pytest.mark.parametrize(
    "changes",
    [
        {"base_url": "http://elsewhere/v1"},
        {"base_url": None},
        {"kind": "dashscope"},
        {"name": "other"},
    ],
)
def test_a_key_is_meant_for_one_kind_name_and_address(changes: dict[str, object]):
    keep_key(SERVER, "sk-mine")
    other = SERVER.model_copy(update=changes)
    assert key_for(other) is None
    assert keys_for(run(main=other)) == {}


def test_a_model_keeps_its_key_when_a_check_finds_out_more_about_it():
    keep_key(SERVER, "sk-mine")
    checked = SERVER.model_copy(update={"top_logprobs": 0, "languages": ("zh",)})
    assert key_for(checked) == "sk-mine"


def test_a_models_key_is_forgotten_when_it_is_taken_back():
    keep_key(SERVER, "sk-mine")
    keep_key(SERVER, "")
    assert key_for(SERVER) is None
    keep_key(SERVER, "")
    assert key_for(SERVER) is None


def test_a_searchs_key_goes_along_only_where_that_search_is_used():
    keep_key("serper", "a-key")
    assert key_for("serper")
    assert not key_for("wikipedia")
    assert keys_for(run(WEB)) == {"search:serper": "a-key"}
    assert keys_for(run()) == keys_for(run(EvidenceSpec(source="wikipedia"))) == {}


def test_models_and_searches_of_the_same_name_have_keys_of_their_own():
    namesake = ModelSpec(kind="openai", name="serper", model="m")
    keep_key("serper", "a-key")
    assert key_for(namesake) is None
    assert keys_for(run(WEB, main=namesake)) == {"search:serper": "a-key"}
    keep_key(namesake, "sk-mine")
    assert keys_for(run(WEB, main=namesake)) == {"search:serper": "a-key", "serper": "sk-mine"}
    keep_key(namesake, "")
    assert key_for("serper")


def test_a_searchs_key_is_not_sent_to_another_address():
    keep_key("serper", "a-key")
    elsewhere = EvidenceSpec(source="serper", base_url="https://elsewhere.example")
    assert keys_for(run(elsewhere)) == {}


def test_a_searchs_key_is_forgotten_when_it_is_taken_back():
    keep_key("serper", "a-key")
    for _ in range(2):
        keep_key("serper", "")
    assert not key_for("serper")
    assert keys_for(run(WEB)) == {}

"""What can be chosen for a run, and what a check of a model changes about it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from app.screens.setup import EVIDENCE_SOURCES, assumed_capabilities
from pipelines.engine.service import Engine
from pipelines.methods.registry import METHODS
from pipelines.models.base import Capabilities
from pipelines.models.probe import ProbeReport
from pipelines.run.events import JUDGES, ROLES, EvidenceSpec, ModelSpec, RunSpec, default_models
from tests.app.opening import page_engine

ME = "a" * 48

SERVER = ModelSpec(kind="openai", name="n", model="m", base_url="http://127.0.0.1:9/v1")
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


@pytest.mark.parametrize(
    ("kind", "top", "logprobs", "languages"),
    [
        ("embedded", None, True, {"en"}),
        ("local", None, True, {"en", "zh"}),
        ("openai", None, True, {"en", "zh"}),
        ("openai", 0, False, {"en", "zh"}),
        ("openai", 5, True, {"en", "zh"}),
        ("judge", None, False, {"en"}),
    ],
)
def test_what_a_model_is_taken_to_do_before_it_is_loaded(
    kind: str, top: int | None, logprobs: bool, languages: set[str]
):
    can = assumed_capabilities(ModelSpec(kind=kind, top_logprobs=top))
    assert can.logprobs is logprobs
    assert can.languages == languages


def test_what_was_found_is_kept_with_a_server():
    kept = SERVER.with_capabilities(FOUND.capabilities)
    assert (kept.top_logprobs, kept.prefill, kept.structured_output) == (20, True, True)
    assert kept.languages == ("en", "zh")
    assert kept.without_capabilities() == SERVER


def test_no_probabilities_are_kept_as_none_at_all():
    without = FOUND.model_copy(
        update={"capabilities": FOUND.capabilities.model_copy(update={"logprobs": False})}
    )
    assert SERVER.with_capabilities(without.capabilities).top_logprobs == 0


def test_a_local_model_knows_all_but_its_languages_and_its_strength():
    local = ModelSpec(kind="local", name="n", model="/m")
    found = local.with_capabilities(FOUND.capabilities)
    assert found == local.model_copy(
        update={"languages": ("en", "zh"), "weak": False, "judges": True}
    )


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    """An engine whose visitor saved a server."""
    with page_engine(tmp_path) as opened:
        opened.service.store.models.save(ME, SERVER)
        yield opened


def chosen(*methods: str, **state: object) -> RunSpec:
    """The run that the session's state describes, with `methods` ticked and no others."""

    def script() -> None:
        import streamlit as st

        from app.screens.setup import chosen_request
        from pipelines.engine.asking import plan_run

        st.session_state["result"] = plan_run(chosen_request("Who?")).spec

    test = AppTest.from_function(script, default_timeout=30)
    ticks = {f"method.{name}": name in methods for name in METHODS}
    for key, value in {"_owner": ME, **ticks, **state}.items():
        test.session_state[key] = value
    test.run()
    assert not test.exception
    return test.session_state["result"]


SCORER = "SmolLM2-135M-Instruct (transformers)"
EVERY_ROLE = {f"model.{role}": SCORER for role in ROLES}


def test_a_run_is_given_only_the_roles_that_its_methods_use(engine: Engine):
    assert set(chosen("direct", **EVERY_ROLE).models) == {"main"}
    assert set(chosen("direct", "drad", **EVERY_ROLE).models) == {"main", "proxy", *JUDGES}


def test_every_role_is_given_its_own_model(engine: Engine):
    spec = chosen("drad", **{"model.main": "n", "model.proxy": SCORER})
    assert spec.models["main"] == SERVER
    assert (spec.models["proxy"].kind, spec.models["proxy"].name) == ("local", SCORER)


def test_a_model_that_is_gone_leaves_the_default_and_no_second_one(engine: Engine):
    spec = chosen("drad", **{"model.main": "gone", "model.proxy": "gone"})
    usual = default_models("en").items()
    assert spec.models == {role: one for role, one in usual if role in ("main", *JUDGES)}


def test_the_sample_library_is_searched_unless_something_else_is_chosen(engine: Engine):
    assert chosen("direct").evidence == EvidenceSpec()
    spec = chosen("direct", **{"evidence.library": "mine", "evidence.mode": "bm25"})
    assert spec.evidence == EvidenceSpec(library="mine", mode="bm25")
    assert spec.evidence.source == "library"


@pytest.mark.parametrize("source", [one for one in EVIDENCE_SOURCES if one != "library"])
def test_a_search_of_the_web_is_chosen_like_a_library(engine: Engine, source: str):
    evidence = chosen("direct", **{"evidence.library": source}).evidence
    assert (evidence.source, evidence.name, evidence.base_url) == (source, source, None)


def test_a_qdrant_server_is_offered_where_the_environment_names_one(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VERISCOPE_QDRANT_URL", "http://127.0.0.1:9")
    monkeypatch.setenv("VERISCOPE_QDRANT_COLLECTION", "papers")
    chosen_one = {"evidence.library": "qdrant", "evidence.mode": "bm25"}
    assert chosen("direct", **chosen_one).evidence == EvidenceSpec(
        source="qdrant", library="papers", mode="bm25", base_url="http://127.0.0.1:9"
    )

"""Judges of the hub on the Models page: saved, pinned, chosen for a role, downloaded when asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from huggingface_hub import constants
from streamlit.testing.v1 import AppTest

from pipelines.engine.service import Engine
from pipelines.models.base import Claim
from pipelines.models.judges.hub import HubJudge
from pipelines.run.events import ModelSpec
from tests.app.opening import page_engine
from tests.app.test_screens import ME, page, told
from tests.pipelines.models.hub import COMMIT, Hub, serve_hub
from tests.pipelines.models.hub_judges.made import save_encoder

NLI = ("contradiction", "entailment", "neutral")
CLAIM = Claim(statement="He was born in Hope.", evidence=("Clinton was born in Hope.",))


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Hub]:
    """A hub with a judge that names its labels, and one that does not."""
    with serve_hub() as served:
        monkeypatch.setattr(constants, "ENDPOINT", served.url)
        addresses = constants.HUGGINGFACE_CO_URL_TEMPLATE
        moved = addresses.replace("https://huggingface.co", served.url)
        monkeypatch.setattr(constants, "HUGGINGFACE_CO_URL_TEMPLATE", moved)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        for name, labels in (("a/named", NLI), ("a/unnamed", ("LABEL_0", "LABEL_1", "LABEL_2"))):
            folder = save_encoder(tmp_path / name, "xlm-roberta", labels)
            files = {path.name: path.read_bytes() for path in folder.iterdir()}
            served.files[name] = files | {"README.md": b"---\nlanguage: en\n---\n# Card\n"}
        yield served


@pytest.fixture
def engine(tmp_path: Path) -> Iterator[Engine]:
    with page_engine(tmp_path / "data") as opened:
        yield opened


def form(model: str, **fields: object) -> AppTest:
    """The form for a judge with this model in it, saved."""
    test = page("models", **{"new.kind": "hub_judge"}).run()
    test.text_input(key="new.model").set_value(model)
    for name, value in fields.items():
        widget = {"format": test.selectbox, "labels": test.text_input}[name]
        widget(key=f"new.judge.{name}").set_value(value)
    test.button(key="new-save").click().run()
    assert not test.exception
    return test


def saved(engine: Engine) -> list[ModelSpec]:
    return engine.service.store.models.list(ME)


def test_a_judge_is_saved_with_its_commit_and_chosen_as_one(engine: Engine, hub: Hub):
    test = form("a/named@main")
    assert saved(engine) == [
        ModelSpec(
            kind="hub_judge",
            name="a/named",
            model="a/named",
            revision=COMMIT,
            judge_format="nli",
            judge_labels=("contradicted", "supported", "not_enough"),
            languages=("en",),
        )
    ]
    # Its settings were read, and none of its weights.
    assert hub.requests_of("config.json")
    assert not hub.requests_of("model.safetensors")
    assert "commit ccccccc" in told(test)
    assert "NLI: pair of texts" in told(test)
    assert "judges only" in told(test)
    assert "a/named" in test.selectbox(key="model.judge_1").options
    assert "a/named" not in test.selectbox(key="model.main").options
    # A judge writes nothing that could be checked.
    assert not [one for one in test.button if one.key == f"probe-{b'a/named'.hex()}"]
    # It is downloaded when it is first asked, at the commit that was saved.
    judge = HubJudge("a/named", revision=COMMIT)
    assert hub.requests_of("model.safetensors")
    assert judge.read([CLAIM])


def test_labels_are_asked_for_where_they_are_not_clear(engine: Engine, hub: Hub):
    test = form("a/unnamed")
    assert saved(engine) == []
    assert "does not say what its outputs mean" in told(test)
    assert "entailment, neutral, contradiction" in told(test)
    test.text_input(key="new.judge.labels").set_value("entailment, neutral, contradiction")
    test.button(key="new-save").click().run()
    (spec,) = saved(engine)
    assert spec.judge_labels == ("supported", "not_enough", "contradicted")
    # The form is empty again.
    assert test.text_input(key="new.judge.labels").value == ""


def test_without_the_hub_it_says_so(engine: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", True)
    test = form("somebody/nowhere-to-be-found")
    assert saved(engine) == []
    assert "the hub cannot be reached" in told(test)


def test_on_an_open_workbench_no_judge_can_be_named(
    engine: Engine, hub: Hub, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setenv("VERISCOPE_ALLOW_ANY_ADDRESS", "0")
    test = page("models", **{"new.kind": "hub_judge"}).run()
    assert test.text_input(key="new.model").disabled
    assert test.selectbox(key="new.judge.format").disabled
    assert test.button(key="new-save").disabled
    assert hub.asked == []

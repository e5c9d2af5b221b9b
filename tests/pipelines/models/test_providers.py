"""The table of providers: from a configuration to a model, and everything that reads the table."""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from app.cli.run_options import add_model_options
from pipelines.errors import InvalidInputError, UnknownModelError
from pipelines.methods.registry import used_models
from pipelines.models import providers
from pipelines.models.base import EMBEDDED_NAME, Capabilities, GenerationRequest, Model
from pipelines.models.dashscope_model import DashScopeModel
from pipelines.models.llamacpp import EmbeddedModel
from pipelines.models.openai import OpenAIModel
from pipelines.models.providers import (
    BUILT_IN,
    PROVIDERS,
    BuildRequest,
    ModelSpec,
    Price,
    Provider,
    build_model,
    known_capabilities,
)
from pipelines.models.scripted import ScriptedModel
from pipelines.models.transformers import LocalModel


def build(kind: str, key: str | None = None, **options: Any) -> Model:
    return build_model(ModelSpec(kind=kind, name="a name", **options), key)


def test_abilities_are_written_in_one_order():
    program = (
        "from pipelines.models.base import Capabilities\n"
        "found = Capabilities(languages=('en', 'zh')).model_dump_json()\n"
        "print(found == Capabilities.model_validate_json(found).model_dump_json(), found)"
    )
    # With this seed both languages have the same place in a set: the order is that of insertion.
    said = subprocess.run(
        [sys.executable, "-c", program],
        env=os.environ | {"PYTHONHASHSEED": "8"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith('True {"languages":["en","zh"]')


def test_an_unknown_kind_names_those_there_are():
    with pytest.raises(InvalidInputError, match=", ".join(PROVIDERS)):
        build("magic")
    assert known_capabilities(ModelSpec(kind="magic")) is None


def test_the_embedded_model_speaks_english_only():
    model = build("embedded")
    assert isinstance(model, EmbeddedModel)
    assert model.name == EMBEDDED_NAME
    assert model.capabilities.languages == {"en"}
    assert model.capabilities.logprobs


def test_a_server_is_taken_for_what_the_probe_found():
    model = build(
        "openai",
        model="m",
        base_url="http://127.0.0.1:9/v1",
        top_logprobs=0,
        prefill=False,
        structured_output=False,
        languages=("zh",),
    )
    assert isinstance(model, OpenAIModel)
    can = model.capabilities
    assert (can.logprobs, can.prefill, can.structured_output) == (False, False, False)
    assert can.languages == {"zh"}


def test_dashscope_is_asked_at_its_own_address_or_at_another():
    model = build("dashscope", model="qwen-plus", key="sk-1", top_logprobs=3, languages=("zh",))
    assert isinstance(model, DashScopeModel)
    assert model.provider == "dashscope.aliyuncs.com"
    assert (model.capabilities.top_logprobs, model.capabilities.languages) == (3, {"zh"})
    abroad = build("dashscope", model="m", base_url="https://dashscope-intl.aliyuncs.com/api/v1")
    assert isinstance(abroad, DashScopeModel)
    assert abroad.provider == "dashscope-intl.aliyuncs.com"


def test_a_script_keeps_its_configured_name(tmp_path: Path):
    path = tmp_path / "s.json"
    path.write_text('["one"]', encoding="utf-8")
    model = build("scripted", model=str(path))
    assert isinstance(model, ScriptedModel)
    assert model.name == "a name"


@pytest.mark.parametrize("missing", ["no/such/folder", "no/such/file.gguf", "no-such-script.json"])
def test_what_is_not_there_is_said_when_it_is_loaded(missing: str, tmp_path: Path):
    kind = "scripted" if missing.endswith(".json") else "local"
    with pytest.raises((InvalidInputError, UnknownModelError)):
        build(kind, model=str(tmp_path / missing))


async def test_a_script_of_the_samples_is_found_by_its_name_and_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(providers, "SAMPLE_DATA", tmp_path)
    scripts = {role: {"name": "unused", "replies": [role]} for role in ("main", "verifier")}
    (tmp_path / "walks").mkdir()
    (tmp_path / "walks" / "one.json").write_text(json.dumps({"models": scripts}), encoding="utf-8")
    for role in scripts:
        model = build("scripted", model=f"walks/one.json#{role}")
        assert model.name == "a name"
        (reply,) = await model.generate(GenerationRequest(messages=()))
        assert reply.text == role
    with pytest.raises(InvalidInputError, match=r"one\.json"):
        build("scripted", model="walks/one.json#proxy")


def test_the_embedded_weights_are_no_judge(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(LocalModel, "load", lambda self: None)
    small = build("local", model="embedded").capabilities
    assert (small.judges, small.scores, small.languages) == (False, True, {"en"})
    other = build("local", model="somebody/else").capabilities
    assert (other.judges, other.scores, other.languages) == (True, True, {"en", "zh"})


class Server:
    """Stands in for a running llama.cpp."""

    name, key, limiter = "served", "key", None

    def start(self, progress: Any) -> str:
        return "http://127.0.0.1:9/v1"


@pytest.fixture
def served(monkeypatch: pytest.MonkeyPatch) -> EmbeddedModel:
    """The embedded model, whose server is not started."""
    monkeypatch.setattr("pipelines.models.llamacpp.shared_server", Server)
    return EmbeddedModel()


def test_the_embedded_model_is_no_judge_on_its_server_either(served: EmbeddedModel):
    assert not served.capabilities.judges
    assert served.capabilities.logprobs


def test_a_servers_model_may_judge():
    assert build("openai", model="m", base_url="http://127.0.0.1:9/v1").capabilities.judges


@pytest.mark.parametrize(
    "spec",
    [
        *(spec for spec in BUILT_IN if spec.kind != "embedded"),
        ModelSpec(kind="openai", model="m"),
        ModelSpec(kind="openai", model="m", top_logprobs=0, prefill=True, languages=("zh",)),
        ModelSpec(kind="dashscope", model="m"),
        ModelSpec(kind="dashscope", model="m", top_logprobs=2, structured_output=False),
        ModelSpec(kind="local", model="somebody/else"),
        ModelSpec(kind="local", model="somebody/else", languages=("zh",)),
    ],
    ids=lambda spec: f"{spec.kind}-{spec.model}",
)
def test_what_is_known_before_loading_is_what_the_loaded_model_says(
    spec: ModelSpec, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(LocalModel, "load", lambda self: None)
    assert known_capabilities(spec) == build_model(spec).capabilities


def test_what_is_known_of_the_embedded_model_is_what_it_says(served: EmbeddedModel):
    assert known_capabilities(ModelSpec()) == served.capabilities


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> str:
    """A provider that is nothing but an entry of the table."""

    def make(request: BuildRequest) -> Model:
        return ScriptedModel.from_replies(
            [f"{request.spec.model} {request.key} {request.public_only}"]
        )

    entry = Provider(
        label="A brand new provider",
        build=make,
        capabilities=lambda spec: Capabilities(top_logprobs=7).overridden(**spec.overrides),
        base_url="https://new.example/v1",
        key_variable="NEW_KEY",
        offered=True,
        for_visitors=True,
    )
    monkeypatch.setitem(PROVIDERS, "brandnew", entry)
    return "brandnew"


async def test_a_new_provider_is_built_from_its_entry(fake: str):
    spec = ModelSpec(kind=fake, model="m", top_logprobs=3)
    (reply,) = await build_model(spec, "sk").generate(GenerationRequest(messages=()))
    assert reply.text == "m sk False"
    can = known_capabilities(spec)
    assert can is not None
    assert can.top_logprobs == 3
    found = spec.with_capabilities(Capabilities(logprobs=True, top_logprobs=2, prefill=True))
    assert (found.top_logprobs, found.prefill) == (2, True)


def test_a_new_provider_is_an_option_of_the_command_line(fake: str):
    parser = argparse.ArgumentParser()
    add_model_options(parser)
    assert parser.parse_args(["--profile", fake]).profile == fake
    assert "NEW_KEY" in parser.format_help()


def test_a_price_is_optional_and_no_part_of_a_run():
    plain = ModelSpec(kind="openai", name="A", model="a")
    priced = plain.model_copy(update={"price": Price(read=1.0, written=2.5, currency="EUR")})
    assert ModelSpec.model_validate_json(priced.model_dump_json()) == priced
    assert "price" not in plain.model_dump_json()
    assert priced.without_price() == priced.without_capabilities() == plain
    assert used_models(["direct"], {"main": priced}) == {"main": plain}


@pytest.mark.parametrize("amount", [-1.0, float("inf"), float("nan")])
def test_a_price_is_a_number_from_0_on(amount: float):
    with pytest.raises(ValidationError):
        Price(read=amount, written=0.0)

"""From a configuration to a model."""

import json
from pathlib import Path
from typing import Any, cast

import pytest

from pipelines.errors import InvalidInputError, UnknownModelError
from pipelines.models import build_model
from pipelines.models.base import GenerationRequest
from pipelines.models.dashscope_model import DashScopeModel
from pipelines.models.embedded import EMBEDDED_NAME, EmbeddedModel, EmbeddedServer
from pipelines.models.local import LocalModel
from pipelines.models.openai_model import OpenAIModel
from pipelines.models.scripted import ScriptedModel


def build(kind: str, **options: Any):
    fields: dict[str, Any] = {
        "name": "a name",
        "model": "",
        "base_url": None,
        "key": None,
        "top_logprobs": None,
        "prefill": None,
        "structured_output": None,
        "languages": None,
    }
    return build_model(kind, progress=lambda stage, fraction: None, **fields | options)


def test_an_unknown_kind_names_those_there_are():
    with pytest.raises(
        InvalidInputError, match="embedded, local, openai, dashscope, judge, scripted"
    ):
        build("magic")


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
        languages=frozenset({"zh"}),
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
def test_what_is_not_there_is_said_when_it_is_loaded(missing, tmp_path):
    kind = "scripted" if missing.endswith(".json") else "local"
    with pytest.raises((InvalidInputError, UnknownModelError)):
        build(kind, model=str(tmp_path / missing))


async def test_a_script_of_the_samples_is_found_by_its_name_and_role(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr("pipelines.models.build._SAMPLES", tmp_path)
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


def test_the_embedded_model_is_no_judge_on_its_server_either():
    class Server:
        name, key, gate = "served", "key", None

        def start(self, progress: Any) -> str:
            return "http://127.0.0.1:9/v1"

    model = EmbeddedModel(server=cast(EmbeddedServer, Server()))
    assert not model.capabilities.judges
    assert model.capabilities.logprobs


def test_a_servers_model_may_judge():
    assert build("openai", model="m", base_url="http://127.0.0.1:9/v1").capabilities.judges

"""From a configuration to a model."""

from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import InvalidInputError, UnknownModelError
from pipelines.models import build_model
from pipelines.models.embedded import EMBEDDED_NAME, EmbeddedModel
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
    with pytest.raises(InvalidInputError, match="embedded, local, openai, scripted"):
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

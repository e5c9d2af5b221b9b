"""A visitor's own model: what has to be there, and what is refused."""

from __future__ import annotations

import pytest

from app.public.visitors import OwnModel, build_for_visitors
from pipelines.errors import InvalidInputError
from pipelines.models.openai import OpenAIModel
from pipelines.run.events import ModelSpec

KEY = "a-key"


def test_without_a_model_of_their_own_visitors_get_the_available_one():
    assert OwnModel().spec(custom_servers=False) is None
    assert OwnModel("dashscope", " ", "", " ").spec(custom_servers=False) is None


def test_a_providers_model_with_a_key():
    spec = OwnModel("dashscope", "qwen-plus", KEY).spec(custom_servers=False)
    assert spec == ModelSpec(kind="dashscope", name="qwen-plus", model="qwen-plus")
    assert spec is not None
    # The key is not part of what is recorded.
    assert KEY not in spec.model_dump_json()


@pytest.mark.parametrize(
    ("own", "allowed", "told"),
    [
        (OwnModel("openai", "", KEY), False, "no name"),
        (OwnModel("openai", "m", ""), False, "needs a key"),
        (OwnModel("embedded", "m", KEY), False, "no name"),
        (OwnModel("openai", "m", KEY, "https://one.example/v1"), False, "cannot be used here"),
        (OwnModel("openai", "m", KEY, "file:///etc/passwd"), True, "no address"),
        (OwnModel("dashscope", "m", KEY, "http://10.0.0.1/v1"), True, "OpenAI-compatible"),
    ],
)
def test_what_cannot_be_used_is_told(own: OwnModel, allowed: bool, told: str):
    with pytest.raises(InvalidInputError, match=told):
        own.spec(custom_servers=allowed)


def test_a_server_of_ones_own_where_it_is_allowed():
    spec = OwnModel("openai", "m", "", "https://one.example/v1").spec(custom_servers=True)
    assert spec is not None
    assert spec.base_url == "https://one.example/v1"


def test_what_visitors_name_is_sought_outside_only():
    spec = ModelSpec(kind="openai", name="m", model="m", base_url="http://127.0.0.1:9/v1")
    model = build_for_visitors(spec, None, lambda stage, fraction: None)
    assert isinstance(model, OpenAIModel)
    assert model._public_only

"""Models that strangers name reach nothing of this machine's own network and files."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from pipelines.base import Message
from pipelines.engine.library import Libraries
from pipelines.engine.pool import ModelPool
from pipelines.errors import InvalidInputError, UnreachableError
from pipelines.models.base import GenerationRequest
from pipelines.models.catalogue import catalogue
from pipelines.models.providers import (
    BUILT_IN,
    SWITCH,
    ModelSpec,
    build_for_strangers,
    model_spec,
    why_refused,
)
from pipelines.run.events import EvidenceSpec
from tests.scripted.wire import completion, says, serve


def openai(address: str | None) -> ModelSpec:
    return ModelSpec(kind="openai", name="theirs", model="m", base_url=address)


def local(model: str) -> ModelSpec:
    return ModelSpec(kind="local", name="theirs", model=model)


ALLOWED = (
    *BUILT_IN,
    *(model_spec(entry) for entry in catalogue()),
    openai(None),
    openai("https://api.example.com/v1"),
    openai("http://8.8.8.8:8000/v1"),
    ModelSpec(kind="dashscope", name="qwen", model="qwen-plus"),
    ModelSpec(kind="scripted", name="shown", model="walkthroughs/2-zh-great-wall.json#main"),
)
REFUSED = (
    openai("http://localhost:8000/v1"),
    openai("http://api.localhost/v1"),
    openai("http://127.0.0.1:11434/v1"),
    openai("http://[::1]/v1"),
    openai("http://169.254.169.254/latest"),
    openai("http://192.168.0.5/v1"),
    # Connections of this client are not kept from the network here.
    ModelSpec(kind="dashscope", name="q", model="q", base_url="https://example.com/api/v1"),
    local("/etc"),
    local("weights.gguf"),
    local("../models/secret.gguf"),
    local("somebody/model-of-the-hub"),
    ModelSpec(kind="scripted", name="file", model="/etc/passwd"),
    ModelSpec(kind="scripted", name="file", model="../.veriscope/veriscope.db"),
)


@pytest.mark.parametrize("spec", ALLOWED, ids=lambda spec: f"{spec.kind}:{spec.model}")
def test_what_reaches_nothing_of_this_machine_is_allowed(spec: ModelSpec):
    assert why_refused(spec) is None


@pytest.mark.parametrize("spec", REFUSED, ids=lambda spec: f"{spec.base_url or spec.model}")
async def test_what_does_is_refused_before_anything_is_opened(spec: ModelSpec):
    with pytest.raises(InvalidInputError, match=f"{SWITCH}=1"):
        await ModelPool(build_for_strangers).get(spec)


async def test_a_name_that_leads_inside_is_refused_by_the_connection(
    monkeypatch: pytest.MonkeyPatch,
):
    with serve() as wire:
        wire.answers(says(completion("Paris.")))
        port = wire.url.rpartition(":")[2]

        async def leads_inside(host: str, port: int) -> list[str]:
            return ["127.0.0.1"]

        monkeypatch.setattr("pipelines.remote.resolve", leads_inside)
        model = build_for_strangers(openai(f"http://looks-public.example:{port}"), "a-key")
        try:
            request = GenerationRequest(messages=(Message(role="user", content="Hello"),))
            with pytest.raises(UnreachableError, match="not an address on the public internet"):
                await asyncio.wait_for(model.generate(request), 60)
        finally:
            await model.aclose()
        assert wire.seen == []


def test_a_search_is_made_at_its_public_address_alone(tmp_path: Path):
    elsewhere = EvidenceSpec(source="wikipedia", base_url="http://127.0.0.1:1")
    Libraries(tmp_path).search_in(elsewhere)
    kept = Libraries(tmp_path, any_address=False)
    assert kept.search_in(EvidenceSpec(source="wikipedia"))
    with pytest.raises(InvalidInputError, match=f"{SWITCH}=1"):
        kept.search_in(elsewhere)

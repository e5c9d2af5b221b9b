"""Saved model configurations."""

from __future__ import annotations

import pytest

from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.models.providers import Price
from pipelines.run.events import ModelSpec
from pipelines.store import RunStore
from pipelines.store.tables import refuse_keys, to_json

QWEN = ModelSpec(
    kind="openai",
    name="Qwen 千问 '; DROP TABLE models; --",
    model="qwen",
    base_url="https://host:8000/v1?api-version=2024-06-01",
    top_logprobs=20,
    prefill=False,
    languages=("en", "zh"),
)
LOCAL = ModelSpec(kind="local", name="A local one", model="folder/model.gguf")


def test_a_configuration_comes_back_as_it_was(store: RunStore):
    store.models.save("me", QWEN)
    store.models.save("me", LOCAL)
    assert store.models.list("me") == [LOCAL, QWEN]
    assert store.models.list("you") == []


def test_a_price_is_stored_with_the_model_and_may_be_missing(store: RunStore):
    priced = QWEN.model_copy(update={"price": Price(read=0.8, written=2.0, currency="CNY")})
    store.models.save("me", priced)
    store.models.save("me", LOCAL)
    assert store.models.list("me") == [LOCAL, priced]
    # As it was stored before there were prices.
    assert "price" not in to_json(LOCAL)


def test_a_name_is_used_once_per_owner(store: RunStore):
    newer = LOCAL.model_copy(update={"model": "folder/newer.gguf"})
    store.models.save("me", LOCAL)
    store.models.save("you", LOCAL)
    store.models.save("me", newer)
    assert store.models.list("me") == [newer]
    assert store.models.list("you") == [LOCAL]


def test_only_the_owner_deletes(store: RunStore):
    store.models.save("me", LOCAL)
    with pytest.raises(NotFoundError):
        store.models.delete("you", LOCAL.name)
    store.models.delete("me", LOCAL.name)
    assert store.models.list("me") == []
    with pytest.raises(NotFoundError):
        store.models.delete("me", LOCAL.name)


@pytest.mark.parametrize("name", ["", "  ", "x" * 201])
def test_a_name_is_wanted(store: RunStore, name: str):
    with pytest.raises(InvalidInputError, match="1 to 200"):
        store.models.save("me", LOCAL.model_copy(update={"name": name}))


@pytest.mark.parametrize(
    "address",
    [
        "https://user:hunter2@host/v1",
        "https://hunter2@host/v1",
        "https://:hunter2@host/v1",
        "https://@host/v1",
        "https://host/v1?api_key=hunter2",
        "https://host/v1?API-KEY=hunter2",
        "https://host/v1?x=1&access_token=hunter2",
        "https://host/v1?api%5Fkey=hunter2",
        "https://host/v1?sig=hunter2",
        "https://host/v1#secret=hunter2",
        "https://host/sk-hunter2hunter2hunter2/v1",
        "https://host/v1?x=hf_hunter2hunter2hunter2",
        "user:hunter2@host/v1",
        "host/v1",
        "file:///hunter2",
        "https://[hunter2/v1",
        "",
    ],
)
def test_what_looks_like_a_key_is_refused_and_not_repeated(store: RunStore, address: str):
    with pytest.raises(InvalidInputError) as refused:
        store.models.save("me", QWEN.model_copy(update={"base_url": address}))
    assert "hunter2" not in str(refused.value)
    assert store.models.list("me") == []


@pytest.mark.parametrize("field", ["name", "model"])
@pytest.mark.parametrize(
    "pasted",
    ["sk-proj-abcdef0123456789ABCD", "gsk_abcdef0123456789ABCD", "Bearer abc", "AIza" + "x" * 35],
)
def test_a_key_pasted_into_the_wrong_field_is_refused(field: str, pasted: str):
    with pytest.raises(InvalidInputError, match="looks like a key"):
        refuse_keys(QWEN.model_copy(update={field: pasted}))


@pytest.mark.parametrize(
    "address",
    [
        "http://127.0.0.1:8080/v1",
        "http://[::1]:8080/v1",
        "https://host/accounts/0123456789abcdef0123456789abcdef/ai/v1",
        "https://host/v1?deployment=gpt&api-version=1",
        "https://monkey.example/v1/",
        "https://例え.example/v1",
    ],
)
def test_an_ordinary_address_passes(address: str):
    refuse_keys(QWEN.model_copy(update={"base_url": address}))


def test_ordinary_names_pass():
    for name in ("SmolLM2-135M-Instruct", "qwen-turbo", "task-oriented-helper-2024-06", "hf_model"):
        refuse_keys(QWEN.model_copy(update={"name": name, "model": name}))

"""Saved profiles, in both databases."""

from __future__ import annotations

import pytest

from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.run.events import ModelSpec
from pipelines.store import RunStore
from pipelines.store.profiles import MAX_SIZE, Profile, ProfileOrigin

STRICT = Profile(
    name="Strict 严格",
    description="Retrieves more often.",
    settings={"drad": {"theta_1": 0.7, "theta_2": None}, "slm": {"mean": "max"}},
    models={
        "verifier": ModelSpec(kind="openai", name="Qwen", model="qwen", base_url="https://h/v1")
    },
    origin=ProfileOrigin(
        evaluation="e", study="theta_1", metric="f1", held_out=0.5, date="2026-01-02"
    ),
)


def test_a_profile_comes_back_as_it_was_and_is_its_owners(store: RunStore):
    other = Profile(name="Another")
    store.profiles.save("me", STRICT)
    store.profiles.save("me", other)
    assert store.profiles.get("me", STRICT.name) == STRICT
    assert store.profiles.list("me") == [other, STRICT]
    assert store.profiles.list("you") == []
    for call in (store.profiles.get, store.profiles.delete):
        with pytest.raises(NotFoundError):
            call("you", STRICT.name)
    store.profiles.delete("me", STRICT.name)
    assert store.profiles.list("me") == [other]


def test_a_name_is_used_once_and_replaced_only_when_that_is_meant(store: RunStore):
    newer = STRICT.model_copy(update={"description": "newer"})
    store.profiles.save("me", STRICT, replace=False)
    with pytest.raises(InvalidInputError, match="already"):
        store.profiles.save("me", newer, replace=False)
    store.profiles.save("you", newer, replace=False)
    assert store.profiles.get("me", STRICT.name) == STRICT
    store.profiles.save("me", newer)
    assert store.profiles.get("me", STRICT.name) == newer


@pytest.mark.parametrize("name", ["", " ", "x" * 201])
def test_a_name_is_wanted(store: RunStore, name: str):
    with pytest.raises(InvalidInputError, match="1 to 200"):
        store.profiles.save("me", STRICT.model_copy(update={"name": name}))


@pytest.mark.parametrize(
    "change",
    [
        {"description": "key sk-hunter2hunter2hunter2"},
        {"name": "hf_hunter2hunter2hunter2"},
        {"settings": {"slm": {"passage": "Bearer hunter2"}}},
        {"models": {"main": ModelSpec(kind="openai", name="a", base_url="https://u:p@h/v1")}},
        {"models": {"main": ModelSpec(kind="openai", name="a", base_url="https://h/v1?key=x")}},
    ],
)
def test_nothing_that_looks_like_a_key_is_stored(store: RunStore, change: dict[str, object]):
    with pytest.raises(InvalidInputError) as caught:
        store.profiles.save("me", STRICT.model_copy(update=change))
    assert "hunter2" not in str(caught.value)
    assert store.profiles.list("me") == []


def test_a_profile_is_of_limited_size(store: RunStore):
    large = {"slm": {"answer": "x" * MAX_SIZE}}
    with pytest.raises(InvalidInputError, match="more than 300,000"):
        store.profiles.save("me", STRICT.model_copy(update={"settings": large}))

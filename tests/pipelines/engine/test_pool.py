"""Loaded models: once each, kept apart by key, and honest about loading."""

import asyncio
import threading
from typing import Any

import pytest

from pipelines.aio import calls_for, usable_cores
from pipelines.engine import pool
from pipelines.engine.pool import ModelPool
from pipelines.errors import UnreachableError
from pipelines.models.base import Model
from pipelines.models.providers import HOSTED_SLOTS, LOCAL_SLOTS, Price, known_capabilities
from pipelines.models.scripted import ScriptedModel
from pipelines.run.events import ModelSpec
from tests.scripted.fakes import FakeModel, request


class Loader:
    """Builds fake models and counts them; fails while `broken`."""

    def __init__(self) -> None:
        self.built: list[tuple[str, str | None]] = []
        self.seen: list[tuple[str, float]] = []
        self.broken = False
        self.pool = ModelPool(self.build)

    def build(self, spec: ModelSpec, key: str | None, progress: Any) -> Model:
        progress("weights", 0.5)
        self.seen += [(loading.stage, loading.fraction) for loading in self.pool.loading()]
        self.built.append((spec.name, key))
        if self.broken:
            raise UnreachableError("Gone.", remedy="Wait.")
        return FakeModel()


async def test_a_model_wanted_by_many_is_loaded_once():
    loader = Loader()
    slots = await asyncio.gather(*(loader.pool.get(ModelSpec()) for _ in range(5)))
    assert len(loader.built) == 1
    assert all(slot is slots[0] for slot in slots)


async def test_loading_is_told_while_it_lasts():
    loader = Loader()
    await loader.pool.get(ModelSpec(name="A"))
    assert loader.seen == [("weights", 0.5)]
    assert loader.pool.loading() == []


async def test_a_failed_load_is_told_and_tried_again_next_time():
    loader = Loader()
    loader.broken = True
    with pytest.raises(UnreachableError):
        await loader.pool.get(ModelSpec())
    assert loader.pool.loading() == []
    loader.broken = False
    await loader.pool.get(ModelSpec())
    assert len(loader.built) == 2


async def test_a_lazy_model_is_loaded_by_its_first_call_and_known_before():
    loader = Loader()
    judge = ModelSpec(kind="judge", name="Word overlap", model="overlap")
    slot = await loader.pool.get(judge, lazy=True)
    assert loader.built == []
    assert slot.model.name == "Word overlap"
    assert slot.model.capabilities == known_capabilities(judge)
    first, again = slot.model, await loader.pool.get(judge, lazy=True)
    assert again is slot
    replies = await asyncio.gather(*(first.generate(request()) for _ in range(3)))
    assert len(replies) == 3
    assert loader.built == [("Word overlap", None)]
    assert loader.seen == [("weights", 0.5)]
    assert isinstance(slot.model, FakeModel)
    assert first.capabilities == slot.model.capabilities


async def test_a_lazy_load_that_failed_is_tried_again_by_the_next_call():
    loader = Loader()
    loader.broken = True
    slot = await loader.pool.get(ModelSpec(), lazy=True)
    for _ in range(2):
        with pytest.raises(UnreachableError):
            await slot.model.generate(request())
    assert len(loader.built) == 2
    loader.broken = False
    assert await slot.model.generate(request())


async def test_loading_goes_on_when_the_call_that_began_it_is_cancelled():
    begun, go_on = threading.Event(), threading.Event()
    built: list[str] = []

    def build(spec: ModelSpec, key: str | None, progress: Any) -> Model:
        built.append(spec.name)
        begun.set()
        go_on.wait(60)
        return FakeModel()

    pool = ModelPool(build)
    slot = await pool.get(ModelSpec(), lazy=True)
    call = asyncio.create_task(slot.model.generate(request()))
    assert await asyncio.to_thread(begun.wait, 60)
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert len(pool.loading()) == 1
    go_on.set()
    assert await slot.model.generate(request())
    assert len(built) == 1
    await pool.aclose()


async def test_each_kind_of_model_has_the_slots_of_its_provider():
    pool = Loader().pool
    hosted = await pool.get(ModelSpec(kind="openai", model="m"), lazy=True)
    here = await pool.get(ModelSpec(kind="local", model="m.gguf"), lazy=True)
    bundled = await pool.get(ModelSpec(), lazy=True)
    assert (hosted.limiter.slots, here.limiter.slots) == (HOSTED_SLOTS, LOCAL_SLOTS)
    assert bundled.limiter.slots == calls_for(usable_cores())


async def test_other_configurations_and_other_keys_are_other_models():
    loader = Loader()
    one = ModelSpec(kind="openai", name="x", model="m")
    slots = [
        await loader.pool.get(one, "key-1"),
        await loader.pool.get(one, "key-2"),
        await loader.pool.get(one, None),
        await loader.pool.get(one.model_copy(update={"model": "n"}), "key-1"),
    ]
    assert len({id(slot) for slot in slots}) == 4
    assert not any("key-1" in identity for identity in loader.pool._slots)


async def test_of_models_that_visitors_bring_those_used_last_are_kept(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(pool, "_MOST_BROUGHT", 3)
    loader = Loader()
    hosted = ModelSpec(kind="openai", name="x", model="m")
    own = await loader.pool.get(ModelSpec())
    first = await loader.pool.get(hosted, "key 0")
    for number in range(1, 9):
        await loader.pool.get(hosted, f"key {number}")
        assert await loader.pool.get(hosted, "key 0") is first
        await loader.pool.get(hosted.model_copy(update={"base_url": f"http://s/{number}"}))
    assert len(loader.pool._slots) == 4
    assert await loader.pool.get(ModelSpec()) is own


async def test_no_key_and_an_empty_key_share_a_model():
    loader = Loader()
    await loader.pool.get(ModelSpec(name="x"), "")
    await loader.pool.get(ModelSpec(name="x"), None)
    assert len(loader.built) == 1


async def test_a_model_is_kept_with_what_it_answered():
    slot = await ModelPool(lambda spec, key, progress: FakeModel()).get(ModelSpec())
    assert slot.cache is not None


async def test_an_illustration_answers_from_its_script_and_plays_from_the_start_each_time():
    pool = ModelPool(lambda spec, key, progress: ScriptedModel.from_replies(["one", "two"]))
    script = ModelSpec(kind="scripted", model="s.json")
    slots = [await pool.get(script) for _ in range(2)]
    assert [slot.cache for slot in slots] == [None, None]
    for slot in slots:
        replies = [await slot.model.generate(request()) for _ in range(2)]
        assert [reply.text for (reply,) in replies] == ["one", "two"]
    assert pool._slots == {}
    assert pool.loading() == []


async def test_a_price_makes_no_other_model():
    loader = Loader()
    spec = ModelSpec(kind="openai", name="A", model="a")
    priced = spec.model_copy(update={"price": Price(read=1.0, written=2.0)})
    assert await loader.pool.get(spec) is await loader.pool.get(priced)
    assert len(loader.built) == 1


async def test_a_loaded_model_says_how_many_calls_it_works_on_together():
    class Local(FakeModel):
        at_once = 64

    local = ModelPool(lambda spec, key, progress: Local())
    slot = await local.get(ModelSpec(kind="local", name="A", model="a"), lazy=True)
    assert slot.limiter.slots == LOCAL_SLOTS
    await slot.model.prepare()
    assert slot.limiter.slots == 64
    other = ModelPool(lambda spec, key, progress: FakeModel())
    assert (await other.get(ModelSpec(kind="openai", name="A"))).limiter.slots == HOSTED_SLOTS

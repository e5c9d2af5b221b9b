"""The speed to expect of a model, from what another was measured to do."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.base import Generation
from pipelines.models import probe
from pipelines.models.base import Delta, GenerationRequest, Model, Watcher
from pipelines.models.catalogue import catalogue
from pipelines.models.llamacpp import EmbeddedModel, gguf_path
from pipelines.models.scripted import ScriptedModel


async def test_bytes_a_second_are_tokens_times_bytes_a_token(monkeypatch: pytest.MonkeyPatch):
    clock = iter([10.0 + 0.1 * number for number in range(100)])
    monkeypatch.setattr(probe.time, "perf_counter", lambda: next(clock))

    class Ticking(ScriptedModel):
        async def generate(
            self, request: GenerationRequest, watch: Watcher | None = None
        ) -> tuple[Generation, ...]:
            assert watch is not None
            # Alone on the model.
            assert request.reproducible
            for _ in range(21):
                watch(Delta(text="word "))
            return ()

    model: Model = Ticking.from_replies(["x"], name="ticking")
    # 20 tokens follow the first in 2 seconds.
    assert await probe.measure(model, 1000) == pytest.approx(10_000)


async def test_what_writes_next_to_nothing_tells_nothing():
    model = ScriptedModel.from_replies(["In Hope."], name="short")
    assert await probe.measure(model, 1000) is None


async def test_the_embedded_model_is_measured(embedded_model: EmbeddedModel):
    # Two bytes for every one of the file it is made from: its 8-bit copy is in memory.
    size = embedded_model.server.loaded.stat().st_size
    assert size > gguf_path().stat().st_size
    found = await probe.measure(embedded_model, size)
    assert found is not None
    # A laptop of any age is between these two; what is tested is the unit.
    assert 1e7 < found < 1e13


def test_a_model_of_ten_times_the_size_is_a_tenth_as_fast():
    small, *_ = catalogue()
    large = small.model_copy(update={"size": 10 * small.size})
    fast, slow = (probe.tokens_per_second(one, 1e10) for one in (small, large))
    assert fast == pytest.approx(10 * slow)


def test_what_was_measured_is_kept_for_this_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    assert probe.kept_speed(tmp_path) is None
    probe.keep_speed(tmp_path / "models", 2e9)
    assert probe.kept_speed(tmp_path / "models") == 2e9
    monkeypatch.setattr(probe, "usable_cores", lambda: 1000)
    assert probe.kept_speed(tmp_path / "models") is None
    (tmp_path / "models" / "speed.json").write_text("no JSON")
    assert probe.kept_speed(tmp_path / "models") is None

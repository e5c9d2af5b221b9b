"""Adapters that ship: their files are here and small, and only their own models have them."""

from __future__ import annotations

from gguf import GGUFReader

from pipelines.models.adapters import adapted_steps, adapter_of
from pipelines.models.base import EMBEDDED_NAME
from pipelines.models.catalogue import LARGE_MODEL, SMALL_MODEL, catalogue_entry
from pipelines.models.providers import known_capabilities, model_spec

_MOST = 20_000_000


def test_each_adapter_is_a_small_file_that_llama_cpp_reads() -> None:
    for name in (EMBEDDED_NAME, SMALL_MODEL):
        adapter = adapter_of(name)
        assert adapter is not None
        assert adapter.path.stat().st_size <= _MOST
        reader = GGUFReader(adapter.path)
        assert reader.fields["adapter.type"].contents() == "lora"
    assert adapter_of(LARGE_MODEL) is None


def test_only_the_listed_weights_have_the_adapter_of_their_name() -> None:
    listed = model_spec(catalogue_entry(SMALL_MODEL))
    can = known_capabilities(listed)
    assert can is not None
    assert can.adapted == adapted_steps(SMALL_MODEL)
    assert can.judges
    named = listed.model_copy(update={"model": "another/model:file.gguf"})
    other = known_capabilities(named)
    assert other is not None
    assert other.adapted == ()

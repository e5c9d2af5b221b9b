"""The copy of a weights file in 8-bit numbers."""

from __future__ import annotations

import errno
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from gguf import GGMLQuantizationType, GGUFReader, GGUFWriter
from gguf.quants import dequantize, quantize

from pipelines.models.weights import requantized

Q4_1, Q5_0 = GGMLQuantizationType.Q4_1, GGMLQuantizationType.Q5_0
Q8_0 = GGMLQuantizationType.Q8_0
WORDS = ["the", "capital", "巴黎", ""]


_KINDS = {"token_embd.weight": Q8_0, "first": Q4_1, "norm": None, "second": Q4_1}


def written(writer: GGUFWriter, path: Path) -> Path:
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    return path


def save_weights(
    path: Path,
    *,
    seed: int = 0,
    alignment: int | None = None,
    kinds: Mapping[str, GGMLQuantizationType | None] = _KINDS,
) -> Path:
    """A file with fields of several kinds, and with numbers of `kinds`, float32 without one."""
    draw = np.random.default_rng(seed)
    writer = GGUFWriter(path, "llama")
    writer.add_name("Tiny")
    if alignment:
        writer.add_custom_alignment(alignment)
    writer.add_file_type(3)
    writer.add_token_list(WORDS)
    writer.add_token_types([1, 1, 6, 1])
    writer.add_layer_norm_rms_eps(1e-5)
    writer.add_add_bos_token(True)
    for name, kind in kinds.items():
        numbers = draw.standard_normal((3, 64)).astype(np.float32)
        if kind is None:
            writer.add_tensor(name, numbers[0, :5].copy())
        else:
            writer.add_tensor(name, quantize(numbers, kind), raw_dtype=kind)
    return written(writer, path)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    return save_weights(tmp_path / "tiny.Q4_1.gguf")


def fields_of(path: Path) -> dict[str, Any]:
    fields = GGUFReader(path).fields.items()
    return {name: field.contents() for name, field in fields if not name.startswith("GGUF.")}


def test_the_copy_says_the_same_in_8_bits(source: Path, tmp_path: Path):
    copy = requantized(source, tmp_path / "models")
    assert copy is not None
    assert copy.name.startswith("tiny.Q8_0.")
    assert fields_of(copy) == fields_of(source) | {"general.file_type": 7}
    assert fields_of(copy)["tokenizer.ggml.tokens"] == WORDS
    before, after = GGUFReader(source).tensors, GGUFReader(copy).tensors
    assert [tensor.tensor_type.name for tensor in after] == ["Q8_0", "Q8_0", "F32", "Q8_0"]
    for one, other in zip(before, after, strict=True):
        assert (one.name, list(one.shape)) == (other.name, list(other.shape))
        if one.tensor_type is not Q4_1:
            assert np.array_equal(one.data, other.data)
            continue
        wanted, found = dequantize(one.data, Q4_1), dequantize(other.data, Q8_0)
        assert np.array_equal(other.data, quantize(wanted, Q8_0))
        # The numbers of a block lie on steps of 1/127 of its largest.
        assert np.abs(wanted - found).max() <= np.abs(wanted).max() * 0.6 / 127


@pytest.mark.parametrize(
    ("output", "expected"),
    [({}, ["Q8_0", "Q8_0", "F32"]), ({"output.weight": Q8_0}, ["Q5_0", "Q8_0", "F32", "Q8_0"])],
)
def test_a_table_of_words_that_is_only_looked_up_stays(
    tmp_path: Path, output: dict[str, GGMLQuantizationType], expected: list[str]
):
    kinds = {"token_embd.weight": Q5_0, "first": Q5_0, "norm": None} | output
    source = save_weights(tmp_path / "tiny.gguf", kinds=kinds)
    copy = requantized(source, tmp_path / "models")
    assert copy is not None
    assert [tensor.tensor_type.name for tensor in GGUFReader(copy).tensors] == expected


def test_a_file_without_slow_numbers_has_no_copy(tmp_path: Path):
    source = save_weights(tmp_path / "tiny.gguf", kinds={"first": Q8_0, "norm": None})
    assert requantized(source, tmp_path / "models") is None
    assert not (tmp_path / "models").exists()


def test_it_is_made_once(source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    first = requantized(source, tmp_path / "models")
    monkeypatch.setattr(os, "fsync", fail_to_write)
    assert requantized(source, tmp_path / "models") == first


@pytest.mark.parametrize("damage", ["shorter", "other", "empty"])
def test_a_copy_that_is_not_whole_is_made_anew(source: Path, tmp_path: Path, damage: str):
    copy = requantized(source, tmp_path / "models")
    assert copy is not None
    whole = copy.read_bytes()
    other = whole[:-1] + bytes([whole[-1] ^ 1])
    copy.write_bytes({"shorter": whole[:-40], "other": other, "empty": b""}[damage])
    assert requantized(source, tmp_path / "models") == copy
    assert copy.read_bytes() == whole


def test_the_copy_of_another_source_is_not_used(source: Path, tmp_path: Path):
    copy = requantized(source, tmp_path / "models")
    save_weights(source, seed=1)
    other = requantized(source, tmp_path / "models")
    assert other is not None
    assert other != copy


def fail_to_write(_: int) -> None:
    raise OSError(errno.ENOSPC, "No space left on device")


def save_adapter(path: Path, tensors: Mapping[str, Any], *, alpha: float | None = 8.0) -> Path:
    writer = GGUFWriter(path, "llama")
    writer.add_type("adapter")
    if alpha is not None:
        writer.add_float32("adapter.lora.alpha", alpha)
    for name, values in tensors.items():
        writer.add_tensor(name, values)
    return written(writer, path)


@pytest.fixture
def adapter(tmp_path: Path) -> Path:
    """A LoRA of rank 2 on a matrix of 4 bits, and one on a matrix of 8 bits."""
    draw = np.random.default_rng(3)
    sides = {"lora_a": (2, 64), "lora_b": (3, 2)}
    tensors = {
        f"{name}.{side}": draw.standard_normal(shape).astype(np.float16)
        for name in ("first", "token_embd.weight")
        for side, shape in sides.items()
    }
    return save_adapter(tmp_path / "adapter.gguf", tensors)


def test_an_adapter_is_added_to_the_weights_of_the_copy(
    source: Path, adapter: Path, tmp_path: Path
):
    plain = requantized(source, tmp_path / "models")
    copy = requantized(source, tmp_path / "models", adapter=adapter)
    assert copy is not None
    assert copy != plain
    # Each is found again beside the other.
    assert requantized(source, tmp_path / "models") == plain
    assert requantized(source, tmp_path / "models", adapter=adapter) == copy
    parts = {tensor.name: tensor.data.astype(np.float32) for tensor in GGUFReader(adapter).tensors}
    for one, other in zip(GGUFReader(source).tensors, GGUFReader(copy).tensors, strict=True):
        wanted = dequantize(one.data, one.tensor_type)
        if f"{one.name}.lora_a" in parts:
            # alpha 8 by rank 2
            wanted = wanted + 4 * parts[f"{one.name}.lora_b"] @ parts[f"{one.name}.lora_a"]
            assert np.array_equal(other.data, quantize(wanted, Q8_0))
        elif one.name == "norm":
            assert np.array_equal(other.data, one.data)


def test_an_adapter_of_other_weights_makes_no_copy(source: Path, tmp_path: Path):
    numbers = np.ones((2, 64), np.float16)
    other = {"third.lora_a": numbers, "third.lora_b": np.ones((3, 2), np.float16)}
    adapter = save_adapter(tmp_path / "other.gguf", other)
    assert requantized(source, tmp_path / "models", adapter=adapter) is None
    none = save_adapter(tmp_path / "none.gguf", {"first": numbers}, alpha=None)
    assert requantized(source, tmp_path / "models", adapter=none) is None
    assert list((tmp_path / "models").iterdir()) == []


def test_a_full_disk_leaves_nothing_behind(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
):
    monkeypatch.setattr(os, "fsync", fail_to_write)
    assert requantized(source, tmp_path / "models") is None
    assert list((tmp_path / "models").iterdir()) == []
    assert "No space left on device" in caplog.text


def test_a_folder_that_cannot_be_made_is_no_failure(source: Path, tmp_path: Path):
    (tmp_path / "models").write_text("a file")
    assert requantized(source, tmp_path / "models") is None


@pytest.mark.parametrize("content", [b"", b"GGUF", b"GGUF\x02" + bytes(60), b"PK" * 60])
def test_a_source_that_cannot_be_read_has_no_copy(tmp_path: Path, content: bytes):
    source = tmp_path / "tiny.Q4_1.gguf"
    source.write_bytes(content)
    assert requantized(source, tmp_path / "models") is None


def test_a_source_whose_end_is_missing_has_no_copy(source: Path, tmp_path: Path):
    source.write_bytes(source.read_bytes()[:-60])
    assert requantized(source, tmp_path / "models") is None
    assert list((tmp_path / "models").iterdir()) == []


def test_an_unusual_alignment_is_left_alone(tmp_path: Path):
    source = save_weights(tmp_path / "tiny.Q4_1.gguf", alignment=64)
    assert requantized(source, tmp_path / "models") is None


def test_what_a_killed_process_left_is_deleted(source: Path, tmp_path: Path):
    models = tmp_path / "models"
    copy = requantized(source, models)
    assert copy is not None
    stem = copy.name.rsplit(".", 2)[0]
    old, new = models / f"{stem}.old.part", models / f"{stem}.new.part"
    for part in (old, new):
        part.write_bytes(b"half")
    os.utime(old, (0, 0))
    copy.unlink()
    assert requantized(source, models) == copy
    assert not old.exists()
    # Another process may be writing it.
    assert new.exists()


def test_a_copy_in_another_folder_is_used_and_never_deleted(source: Path, tmp_path: Path):
    shared, own = tmp_path / "shared", tmp_path / "models"
    copy = requantized(source, shared)
    assert copy is not None
    assert requantized(source, own, shared) == copy
    damaged = copy.read_bytes()[:-40]
    copy.write_bytes(damaged)
    made = requantized(source, own, shared)
    assert made is not None
    assert made.parent == own
    assert copy.read_bytes() == damaged

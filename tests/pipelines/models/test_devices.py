"""The choice of a device, batches by memory, and what happens where memory is short; on the CPU."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from pipelines.errors import InvalidInputError
from pipelines.models import devices
from pipelines.models.devices import (
    SWITCH,
    device_for,
    free_memory,
    in_halves,
    like_lengths,
    rows_of_length,
    stays_close,
)

CARD = torch.device("cuda")
CPU = torch.device("cpu")


@pytest.mark.parametrize(
    ("said", "card", "zero", "writing", "reading"),
    [
        ("", True, False, "cuda", "cuda"),
        ("all", True, False, "cuda", "cuda"),
        ("writing", True, False, "cuda", "cpu"),
        ("none", True, False, "cpu", "cpu"),
        ("", False, False, "cpu", "cpu"),
        # Its card is there for moments, in another process.
        ("", True, True, "cuda", "cpu"),
    ],
)
def test_the_card_is_used_as_far_as_it_is_there_and_allowed(
    monkeypatch: pytest.MonkeyPatch, said: str, card: bool, zero: bool, writing: str, reading: str
):
    monkeypatch.setattr("torch.cuda.is_available", lambda: card)
    monkeypatch.setenv(SWITCH, said)
    monkeypatch.setenv("SPACES_ZERO_GPU", "1" if zero else "")
    assert (device_for("writing").type, device_for("reading").type) == (writing, reading)


def test_a_card_is_known_of_before_pytorch_is_imported(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
):
    monkeypatch.delenv(SWITCH, raising=False)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    assert devices.has_card()
    monkeypatch.delitem(sys.modules, "torch")
    for driver in (tmp_path, tmp_path / "none"):
        monkeypatch.setattr(devices, "_DRIVER", driver)
        assert devices.has_card() is driver.exists()
    monkeypatch.setattr(devices, "_DRIVER", tmp_path)
    monkeypatch.setenv(SWITCH, "none")
    assert not devices.has_card()


def test_a_setting_that_says_nothing_known_is_refused(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv(SWITCH, "some")
    with pytest.raises(InvalidInputError, match="VERISCOPE_GPU"):
        device_for("reading")


def test_the_machine_tells_its_free_memory():
    assert 10_000_000 < free_memory(CPU) < 10**14


def test_a_batch_takes_a_quarter_of_what_is_free(monkeypatch: pytest.MonkeyPatch):
    config = SimpleNamespace(hidden_size=10, intermediate_size=40, num_attention_heads=1)
    rows = rows_of_length(CARD, config, 8)
    # A text of 10 tokens takes 4 * 10 * (12 * 10 + 3 * 40 + 2 * 1 * 10) = 10,400 bytes.
    for free, expected in ((4 * 10_400 * 5, 5), (4 * 10_400 * 500, 64), (1, 1)):
        monkeypatch.setattr(devices, "free_memory", lambda device, free=free: free)
        assert rows(10) == expected
    assert rows_of_length(CPU, config, 8)(10_000) == 8


def test_texts_of_like_length_are_read_together():
    lengths = [5, 1, 9, 2, 6]
    # Of 2 and more tokens 6 at most, of 5 tokens 2, of 6 tokens 2, of 9 tokens 1.
    batches = list(like_lengths(lengths, lambda length: 12 // length))
    assert batches == [[1, 3], [0, 4], [2]]
    assert list(like_lengths([30], lambda length: 0)) == [[0]]
    assert list(like_lengths([], lambda length: 1)) == []


class Small:
    """Has room for so many at a time."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.tried: list[int] = []

    def __call__(self, items: Sequence[int]) -> list[int]:
        self.tried.append(len(items))
        if len(items) > self.room:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return [10 * item for item in items]


def test_what_does_not_fit_together_is_read_in_halves():
    small = Small(2)
    assert in_halves(range(7), small) == [0, 10, 20, 30, 40, 50, 60]
    assert small.tried == [7, 3, 1, 2, 4, 2, 2]
    with pytest.raises(torch.OutOfMemoryError):
        in_halves([1, 2], Small(0))


def test_other_errors_are_not_tried_again():
    tried = []

    def work(items: Sequence[int]) -> list[int]:
        tried.append(items)
        raise RuntimeError("no")

    with pytest.raises(RuntimeError, match="no"):
        in_halves([1, 2], work)
    assert len(tried) == 1


@pytest.mark.parametrize(
    ("narrow", "close"),
    [([[0.6, 0.8]], True), ([[0.59, 0.8]], False), ([0.5], True), ([0.52], False)],
)
def test_16_bits_are_used_where_they_change_nothing_by_a_hundredth(
    monkeypatch: pytest.MonkeyPatch, narrow: list[object], close: bool
):
    wide = [[0.6, 0.8]] if isinstance(narrow[0], list) else [0.505]
    said = iter([wide, narrow])
    # What a card would compute: the CPU has no autocast for it.
    monkeypatch.setattr(devices, "mixed_precision", lambda device, enabled: np.errstate())
    assert stays_close(CARD, lambda: next(said)) is close


def test_on_the_processor_nothing_is_compared():
    assert not stays_close(CPU, lambda: pytest.fail("read"))

"""The benchmark itself works; what it measures is not asserted here."""

from __future__ import annotations

import re

import pytest

from scripts import bench


@pytest.mark.verify
async def test_rowen_is_measured_against_its_longest_chain():
    row = await bench.rowen()
    assert row.chain == 7
    assert row.floor == pytest.approx(7 * bench.DELAY)
    # Reasoning and answer, a list, translations, answers (3 x 6 x 2), verdicts, queries, repair.
    assert row.calls == 2 + 1 + 6 + 36 + 12 + 6 + 1
    # A chain of calls that need one another cannot take less time than they do.
    assert row.measured >= row.floor


def test_a_row_names_what_it_is_a_ratio_of():
    row = bench.Row(
        "A run", chain=2, calls=6, floor=2 * bench.DELAY, measured=3 * bench.DELAY, pause=0.0123
    )
    assert str(row) == (
        "A run: 0.60 s for a chain of 2 calls of 200 ms (0.40 s), ratio 1.50;"
        " its 6 calls one after another would take 1.2 s;"
        " longest collection of garbage 12 ms"
    )


@pytest.mark.verify
async def test_a_verdict_is_timed_beside_embedding_its_evidence(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bench, "_TIMES", 1)
    said = await bench.judge_row()
    assert re.fullmatch(
        r"Judge, one sentence against 10 passages: \d+ ms, [\d.]+ times as long as embedding them",
        said,
    )


def test_entities_of_a_long_text_are_timed_beside_those_of_its_pieces(
    monkeypatch: pytest.MonkeyPatch,
):
    monkeypatch.setattr(bench, "_TIMES", 1)
    said = bench.entities_row()
    assert re.fullmatch(r"Entities of 4\d KB: [\d.]+ times as long as of its 8 pieces", said)

"""Passages on disk."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.base import Passage
from pipelines.retrieval.base import PassageStore, ranked

PASSAGES = [
    Passage(id="a#0", title="A", text="One\ntwo “three”.", source="a.md", start=3, end=18),
    Passage(id="b#0", title="大熊猫", text="大熊猫吃竹子。🙂", source="b.md", url="https://b.cn"),
]


def test_passages_come_back_by_position(tmp_path: Path):
    PassageStore.write(tmp_path, PASSAGES)
    store = PassageStore.open(tmp_path)
    assert len(store) == 2
    assert [store[0], store[1]] == PASSAGES
    assert store[-1] == PASSAGES[1]
    with pytest.raises(IndexError):
        store[2]


def test_what_a_search_adds_is_not_stored(tmp_path: Path):
    searched = PASSAGES[0].model_copy(update={"score": 2.0, "rank": 1, "scores": {"bm25": 2.0}})
    PassageStore.write(tmp_path, [searched])
    assert PassageStore.open(tmp_path)[0] == PASSAGES[0]


def test_ranked(tmp_path: Path):
    PassageStore.write(tmp_path, PASSAGES)
    found = ranked(PassageStore.open(tmp_path), [(1, 0.9, {"x": 0.9}), (0, 0.1, {"x": 0.1})])
    assert [(p.id, p.rank, p.score, p.scores["x"]) for p in found] == [
        ("b#0", 1, 0.9, 0.9),
        ("a#0", 2, 0.1, 0.1),
    ]


def test_lines_are_memory_mapped(tmp_path: Path):
    PassageStore.write(tmp_path, PASSAGES)
    store = PassageStore.open(tmp_path)
    with (tmp_path / "passages.jsonl").open("r+b") as lines:
        lines.seek(lines.read().index(b"two"))
        lines.write(b"owt")
    assert store[0].text == "One\nowt “three”."


def test_files_that_do_not_belong_together(tmp_path: Path):
    PassageStore.write(tmp_path, PASSAGES)
    with (tmp_path / "passages.jsonl").open("ab") as lines:
        lines.write(b"more")
    with pytest.raises(ValueError, match="do not belong together"):
        PassageStore.open(tmp_path)

"""Loading side by side: transformers is imported and loads for one thread at a time."""

from __future__ import annotations

import gc
import subprocess
import sys

import pytest

from pipelines.base import keep_what_is_imported, kept, loading, quiet_transformers

SIDE_BY_SIDE = """
import threading
from pipelines.models.judges.trained import TrainedJudge
from pipelines.retrieval.indexes import EnglishEmbedder

failed = []

def load(work):
    try:
        work()
    except BaseException as error:
        failed.append(error)

works = [TrainedJudge, lambda: EnglishEmbedder().embed(["a"]), TrainedJudge]
threads = [threading.Thread(target=load, args=(work,)) for work in works]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
assert not failed, failed
"""


@pytest.mark.verify
def test_judge_and_embedder_can_be_loaded_at_the_same_time():
    # A process of its own: here everything has long been imported.
    done = subprocess.run(
        [sys.executable, "-c", SIDE_BY_SIDE], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "Loading weights" not in done.stderr


def test_progress_bars_come_back():
    from transformers.utils import logging

    before = logging.is_progress_bar_enabled()
    with quiet_transformers():
        assert not logging.is_progress_bar_enabled()
        # The same thread may go on to load something else.
        with quiet_transformers(), loading():
            pass
    assert logging.is_progress_bar_enabled() == before


def looked_at(one: object) -> bool:
    return any(found is one for found in gc.get_objects())


@pytest.mark.parametrize("load", [kept, loading])
def test_what_was_loaded_is_not_looked_at_by_later_collections(load):
    other: list[object] = [[]]
    assert looked_at(other)
    with load():
        assert not gc.isenabled()
        model: list[object] = [[]]
    assert gc.isenabled()
    assert not looked_at(model)


def test_a_failed_load_leaves_collecting_as_it_was():
    @kept()
    def load() -> None:
        raise EOFError

    for _ in range(2):
        with pytest.raises(EOFError):
            load()
        assert gc.isenabled()


def test_what_is_imported_is_kept_once_and_not_with_every_run():
    keep_what_is_imported.cache_clear()
    imported: list[object] = [[]]
    keep_what_is_imported()
    assert not looked_at(imported)
    of_a_run: list[object] = [[]]
    keep_what_is_imported()
    assert looked_at(of_a_run)

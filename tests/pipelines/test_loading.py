"""Loading side by side: transformers is imported and loads for one thread at a time."""

from __future__ import annotations

import subprocess
import sys

import pytest

from pipelines.base import ONE_AT_A_TIME, quiet_transformers

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
        with quiet_transformers(), ONE_AT_A_TIME:
            pass
    assert logging.is_progress_bar_enabled() == before

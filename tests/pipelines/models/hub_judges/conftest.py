"""Tiny judges on disk, made once a session; no connection, no weights in the tree."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
import torch
from transformers.utils import logging


@pytest.fixture(scope="package", autouse=True)
def one_thread_of_the_cpu() -> Iterator[None]:
    """Models this small lose more by sharing their sums between threads than they gain."""
    before, bars = torch.get_num_threads(), logging.is_progress_bar_enabled()
    torch.set_num_threads(1)
    logging.disable_progress_bar()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("torch.cuda.is_available", lambda: False)
        yield
    torch.set_num_threads(before)
    if bars:
        logging.enable_progress_bar()

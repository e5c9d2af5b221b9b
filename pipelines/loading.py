"""Loading models with transformers: one thread at a time, and without its progress bars.

Its modules are imported when a name is first asked for, which two threads must not do at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

ONE_AT_A_TIME = threading.RLock()
"""Held while transformers, or a library on top of it, is imported or loads a model."""


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Nobody else loads meanwhile, and no bars are drawn on the terminal."""
    with ONE_AT_A_TIME:
        from transformers.utils import logging

        shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            if shown:
                logging.enable_progress_bar()

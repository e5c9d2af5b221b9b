"""How the command line ends: at once when it is interrupted, whatever threads still do.

Importing PyTorch takes seconds and cannot be stopped. Who presses Ctrl-C waits for the run to be
stored, and for nothing else.
"""

from __future__ import annotations

import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import NoReturn

INTERRUPTED = 130
"""The exit status after Ctrl-C."""


class Unawaited(ThreadPoolExecutor):
    """Threads whose work nobody waits for when the event loop ends."""

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more work; what is under way goes on by itself."""
        super().shutdown(wait=False, cancel_futures=True)


def leave(status: int) -> NoReturn:
    """End the process with `status`; when it was interrupted, without waiting for its threads."""
    if status == INTERRUPTED:
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):
                stream.flush()
        os._exit(status)
    sys.exit(status)

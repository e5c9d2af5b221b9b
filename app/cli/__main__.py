"""`python -m app.cli`, `python -m pipelines`, or `veriscope` where it is installed."""

from __future__ import annotations

import signal
from typing import NoReturn


def run() -> NoReturn:
    """Carry out the command of this process, and end it."""
    # While modules are imported nothing has begun, so that Ctrl-C may end the process where it is:
    # to take apart what is half imported would take seconds.
    takes = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if takes:
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    from app.cli.leaving import INTERRUPTED, leave
    from app.cli.main import main

    if takes:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        status = main()
    except KeyboardInterrupt:
        status = INTERRUPTED
    leave(status)


if __name__ == "__main__":
    run()

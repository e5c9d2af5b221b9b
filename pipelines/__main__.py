"""`python -m pipelines`: the command line."""

import signal

# While modules are imported nothing has begun, so that Ctrl-C may end the process where it is: to
# take apart what is half imported would take seconds.
_takes = signal.getsignal(signal.SIGINT) is signal.default_int_handler
if _takes:
    signal.signal(signal.SIGINT, signal.SIG_DFL)

from pipelines.cli.leaving import INTERRUPTED, leave  # noqa: E402
from pipelines.cli.main import main  # noqa: E402

if _takes:
    signal.signal(signal.SIGINT, signal.default_int_handler)
try:
    status = main()
except KeyboardInterrupt:
    status = INTERRUPTED
leave(status)

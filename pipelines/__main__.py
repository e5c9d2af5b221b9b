"""`python -m pipelines`: the command line."""

import sys

try:
    from pipelines.cli.leaving import leave
    from pipelines.cli.main import main

    status = main()
except KeyboardInterrupt:
    # While modules were still being imported: nothing has begun.
    sys.exit(130)
leave(status)

"""`python -m pipelines`: the command line."""

import sys

from pipelines.cli import main

sys.exit(main())

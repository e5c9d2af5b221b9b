"""`python -m pipelines`: the command line."""

import sys

from pipelines.cli.main import main

sys.exit(main())

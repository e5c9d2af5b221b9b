"""`python -m pipelines.research.default_report`: asks the shipped default, and reports."""

import sys

from pipelines.research.measure.default import main

if __name__ == "__main__":
    sys.exit(main())

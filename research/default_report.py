"""`python -m research.default_report`: asks the shipped default, and reports."""

import sys

from research.measure.default import main

if __name__ == "__main__":
    sys.exit(main())

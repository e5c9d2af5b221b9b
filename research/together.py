"""`python -m research.together --kept FOLDER`: fits one verdict of several detectors."""

import sys

from research.calibrate.together import main

if __name__ == "__main__":
    sys.exit(main())

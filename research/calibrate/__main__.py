"""`python -m research.calibrate METHOD`: derives what a paper leaves open.

The fitted combination of detectors has its own command, `python -m research.together`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from research.calibrate import cosines, drad, haarag, slm
from research.commands import run_command

COMMANDS = {
    "drad": drad.COMMAND,
    "slm": slm.COMMAND,
    "centres": cosines.CENTRES,
    "nearest": cosines.NEAREST,
    "rowen": cosines.ROWEN,
    "haarag": haarag.COMMAND,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0, 1 when it failed, 2 for unusable input."""
    return run_command("calibrate", COMMANDS, arguments, __doc__)


if __name__ == "__main__":
    sys.exit(main())

"""`python -m research.measure COMMAND`: measures what ships, for the tables of docs/.

The default model's own command is `python -m research.default_report`.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence

from research.commands import run_command
from research.measure import (
    checks,
    detectors,
    effort,
    entities,
    judges,
    no_facts,
    report,
    suites,
)

COMMANDS = {
    "suites": suites.COMMAND,
    "judges": judges.COMMAND,
    "report": report.COMMAND,
    "detectors": detectors.COMMAND,
    "checks": checks.COMMAND,
    "check-effort": effort.COMMAND,
    "no-facts": no_facts.COMMAND,
    "entities": entities.COMMAND,
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; returns 0, 1 when it failed, 2 for unusable input."""
    return run_command("measure", COMMANDS, arguments, __doc__)


if __name__ == "__main__":
    sys.exit(main())

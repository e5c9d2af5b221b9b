"""Make sure that database tests have PostgreSQL: `python -m scripts.ensure_postgresql`."""

from __future__ import annotations

import sys
from pathlib import Path

from scripts import debian
from tests.postgresql import find_postgresql

REMEDY = (
    "Verification needs the PostgreSQL server programs, and they could not be found or installed.\n"
    "Install them (Debian: apt-get install postgresql), or name their folder:\n"
    "VERISCOPE_POSTGRESQL=/path/to/bin make verify"
)


def ensure_postgresql() -> Path:
    """The programs' folder, installed if need be; SystemExit with a remedy where there is none."""
    folder = find_postgresql()
    if folder is None and debian.can_install():
        debian.install("postgresql")
        folder = find_postgresql()
    if folder is None:
        sys.exit(REMEDY)
    return folder


if __name__ == "__main__":
    print(f"PostgreSQL for tests: {ensure_postgresql()}")

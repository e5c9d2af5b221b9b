"""What a day draws: long tests take a part of what there is, another one every day.

`VERISCOPE_DRAWN` names the day whose part is wanted, such as that of a result that failed.
"""

from __future__ import annotations

import os
from datetime import UTC, datetime
from random import Random

DRAWN = "VERISCOPE_DRAWN"


def seed_of_the_day() -> int:
    """Return the seed: the day as YYYYMMDD, in UTC, where `VERISCOPE_DRAWN` names no other."""
    return int(os.environ.get(DRAWN) or f"{datetime.now(UTC):%Y%m%d}")


def drawn_today() -> Random:
    """Return the day's own source of chance."""
    return Random(seed_of_the_day())

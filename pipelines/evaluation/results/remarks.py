"""Which intervals have to be read with care, and what is said of them outside the pages."""

from __future__ import annotations

from collections.abc import Iterable

from pipelines.evaluation.statistics.resampling import Estimate

FEW_GROUPS = 10
"""With fewer independent groups a bootstrap interval covers less often than it says: the spread
among a few groups underestimates that among all (Cameron, Gelbach and Miller 2008)."""

FEW_MARK = "*"
FEW_NOTE = (
    f"{FEW_MARK} An interval from fewer than {FEW_GROUPS} groups of items is likely too narrow."
)


def has_few_groups(estimate: Estimate) -> bool:
    """Return whether an interval is a bootstrap of so few groups that it is likely too narrow.

    Wilson's interval of a proportion holds for few items as well.
    """
    drawn = estimate.method in ("bca", "percentile") and estimate.low is not None
    return drawn and estimate.groups < FEW_GROUPS


def few_notes(estimates: Iterable[Estimate]) -> list[str]:
    """Return what the mark means, where one of these is marked."""
    return [FEW_NOTE] if any(map(has_few_groups, estimates)) else []

"""Which model gives the verdicts of a check: the main model, or one made to judge claims."""

from __future__ import annotations

from collections.abc import Set
from typing import Literal

from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES

__all__ = ["CheckedBy", "checker"]

CheckedBy = Literal["auto", "judge", "main"]
"""Who checks: a judge, the main model, or automatically the more reliable of the two."""


def checker(scope: Scope, languages: Set[str], wanted: CheckedBy) -> str:
    """The role that checks: "main", or the first judge made for it that reads all `languages`.

    "auto" leaves the check to the main model unless its verdicts were measured to be no better than
    chance. Without a judge of that kind the main model checks in any case.
    """
    if wanted == "main" or (wanted == "auto" and scope.model().capabilities.judges):
        return "main"
    for role in JUDGES:
        if scope.has_model(role):
            can = scope.model(role).capabilities
            if not can.writes and languages <= can.languages:
                return role
    return "main"

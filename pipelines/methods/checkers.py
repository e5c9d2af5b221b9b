"""Whose verdict a check rests on: the main model's, or that of a model made to judge claims."""

from __future__ import annotations

from collections.abc import Set
from typing import Literal

from pipelines.run.scope import Scope
from pipelines.run.spec import JUDGES

__all__ = ["CheckedBy", "checker"]

CheckedBy = Literal["auto", "judge", "main"]
"""Who checks: a judge, the main model, or whichever of the two is known to be worth more."""


def checker(scope: Scope, languages: Set[str], wanted: CheckedBy) -> str:
    """The role that checks: "main", or the first judge made for it that reads all `languages`.

    "auto" leaves the check to the main model unless its verdicts were measured to be no better than
    chance. Without a judge of that kind the main model checks in any case.
    """
    if wanted == "main" or (wanted == "auto" and scope.model().capabilities.judges):
        return "main"
    return next((role for role in JUDGES if _made_to_judge(scope, role, languages)), "main")


def _made_to_judge(scope: Scope, role: str, languages: Set[str]) -> bool:
    if not scope.has_model(role):
        return False
    can = scope.model(role).capabilities
    return not can.writes and languages <= can.languages

"""What a study chose, as a profile that runs can use."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from pipelines.engine.profiles import checked_profile
from pipelines.errors import failure
from pipelines.evaluation.studies.grid import Value
from pipelines.evaluation.studies.table import Study
from pipelines.store.profiles import Profile, ProfileOrigin


def profile_of(study: Study, settings: Mapping[str, Any], name: str) -> Profile:
    """Return the settings of the chosen point of `study` over those of the system.

    `settings` are those with which the system was evaluated. Raises InvalidInputError where nothing
    was chosen, for a study of scores, and as `checked_profile`.
    """
    choice = study.choice
    if study.kind == "scores":
        raise failure("study.scores_no_setting")
    if choice is None:
        raise failure("study.nothing_chosen")
    values: dict[str, Value] = study.points[choice.point].values
    origin = ProfileOrigin(
        evaluation=study.evaluation,
        data_set=study.data_set,
        system=study.system,
        study=", ".join(axis.name for axis in study.axes),
        metric=choice.metric,
        held_out=choice.held_out.value,
        date=f"{datetime.now(UTC):%Y-%m-%d}",
    )
    changed = {study.method: {**settings, **values}}
    return checked_profile(Profile(name=name, settings=changed, origin=origin))

"""Thresholds fitted on labels as a profile, so that the next run uses them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from pydantic import Field

from pipelines.annotation.detectors import FittedDetector, fitted_settings, setting_of
from pipelines.annotation.types import Hidden, ItemPlace, Task
from pipelines.engine.profiles import checked_profile
from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.store import RunStore
from pipelines.store.annotations import StoredItem, WholeSession
from pipelines.store.profiles import Profile, ProfileOrigin
from pipelines.types import Frozen


class Behind(Frozen):
    """The method behind the name that a detector has in a session.

    `settings` are those with which it ran; where they differed between runs, those that were the
    same in all.
    """

    method: str
    settings: dict[str, Any] = Field(default_factory=dict)


def methods_behind(store: RunStore, whole: WholeSession) -> dict[str, Behind]:
    """By the names of a session's detectors, the methods that they are.

    In items of runs they have the methods' names; in those of an evaluation those of its systems.
    Evaluations and runs that are not there any more are left out, and so is a name that means two
    methods.
    """
    owner = whole.session.owner
    places = [ItemPlace.model_validate(one.body.get("place", {})) for one in whole.items]
    ran: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for evaluation in dict.fromkeys(one.evaluation for one in places if one.evaluation):
        try:
            stored = store.evaluations.get(evaluation, owner)
        except NotFoundError:
            continue
        for system in EvaluationSpec.model_validate(stored.spec).systems:
            settings = dict(system.method.settings)
            ran.setdefault(system.name, []).append((system.method.name, settings))
    runs = list(dict.fromkeys(one.run for one in places if one.run and not one.evaluation))
    for spec in store.specs(owner, runs).values():
        for method in spec.methods:
            ran.setdefault(method.name, []).append((method.name, dict(method.settings)))
    for name in _names(whole.items):
        # Of a run that is gone nothing is known but the method, whose name it is.
        if name not in ran and setting_of(name, ""):
            ran[name] = [(name, {})]
    return {
        name: Behind(method=known[0][0], settings=_common([settings for _, settings in known]))
        for name, known in ran.items()
        if len({method for method, _ in known}) == 1
    }


def fitted_profile(
    name: str,
    session: str,
    task: Task,
    fitted: Iterable[FittedDetector],
    behind: Mapping[str, Behind],
) -> Profile:
    """A profile called `name` with the fitted thresholds, over the settings of the methods' runs.

    `session` is the name of the session. Raises InvalidInputError where none of `fitted` has a
    threshold that is a setting of its method, where two are of one method, and as
    `checked_profile`.
    """
    settings: dict[str, dict[str, Any]] = {}
    told: list[str] = []
    studied: list[str] = []
    system = ""
    held_out: float | None = None
    for one, known in savable(fitted, behind):
        if known.method in settings:
            raise InvalidInputError(
                f"Two of the chosen thresholds are of the method {known.method!r}.",
                remedy="Choose one of them.",
            )
        found = fitted_settings([one.model_copy(update={"method": known.method})])
        settings[known.method] = {**known.settings, **found[known.method]}
        ((setting, value),) = found[known.method].items()
        studied.append(f"{setting} ({known.method})")
        accuracy = one.accuracy.value if one.accuracy else None
        told.append(
            f"{known.method}: {setting} = {value:g}, fitted on {one.trained} items"
            + (f", accuracy {accuracy:.2f} on {one.tested} others" if accuracy is not None else "")
        )
        system, held_out = one.method, accuracy
    if not settings:
        raise InvalidInputError(
            "There is no fitted threshold to save.",
            remedy="Choose a method whose threshold was fitted and is one of its settings.",
        )
    return checked_profile(
        Profile(
            name=name,
            description=f"Task: {task}. {'; '.join(told)}."[:2000],
            settings=settings,
            origin=ProfileOrigin(
                data_set=session,
                system=system if len(settings) == 1 else "",
                study=", ".join(studied),
                metric="Youden's J",
                held_out=held_out if len(settings) == 1 else None,
                date=f"{datetime.now(UTC):%Y-%m-%d}",
            ),
        )
    )


def savable(
    fitted: Iterable[FittedDetector], behind: Mapping[str, Behind]
) -> list[tuple[FittedDetector, Behind]]:
    """Those of `fitted` whose threshold is a setting that their method accepts."""
    found: list[tuple[FittedDetector, Behind]] = []
    for one in fitted:
        known = behind.get(one.method)
        if known is None or one.threshold is None:
            continue
        setting = setting_of(known.method, one.score)
        renamed = one.model_copy(update={"method": known.method, "setting": setting})
        if fitted_settings([renamed]):
            found.append((renamed.model_copy(update={"method": one.method}), known))
    return found


def _names(items: Iterable[StoredItem]) -> list[str]:
    return list(
        dict.fromkeys(
            verdict.method
            for item in items
            for verdict in Hidden.model_validate(item.hidden).verdicts
        )
    )


def _common(settings: Sequence[dict[str, Any]]) -> dict[str, Any]:
    first = settings[0]
    return {
        name: value
        for name, value in first.items()
        if all(name in other and other[name] == value for other in settings)
    }

"""What was fitted on labels as a profile, so that the next run uses it."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

from pydantic import Field, ValidationError

from pipelines.annotation.detectors import (
    THRESHOLDS,
    FittedDetector,
    fitted_settings,
    setting_of,
)
from pipelines.annotation.types import Hidden, ItemPlace, Task
from pipelines.engine.calibrations import conditions
from pipelines.engine.profiles import checked_profile
from pipelines.errors import NotFoundError, VeriscopeError, failure
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.methods.registry import get_method, used_models
from pipelines.models.providers import ModelSpec
from pipelines.prompts import Wording
from pipelines.run.calibrations import Calibration, CalibrationKind, Isotonic, Platt
from pipelines.run.spec import MethodSpec
from pipelines.store import RunStore
from pipelines.store.annotation_records import MAX_NAME, StoredItem, WholeSession
from pipelines.store.profiles import MAX_DESCRIPTION, Profile, ProfileOrigin
from pipelines.types import Frozen

_Value = TypeVar("_Value")


class Behind(Frozen):
    """The method behind the name that a detector has in a session.

    `settings` are those with which it ran; where they differed between runs, those that were the
    same in all. `conditions` maps each of its settings that may be a score's threshold, and "" for
    none, to what decided its scores otherwise (`pipelines.engine.calibrations`); one that is not
    there differed between runs, or is not known. `models` are the names of those models, by role,
    that were the same in all.
    """

    method: str
    settings: dict[str, Any] = Field(default_factory=dict)
    conditions: dict[str, str] = Field(default_factory=dict)
    models: dict[str, str] = Field(default_factory=dict)


class Savable(NamedTuple):
    """What a profile can keep of a fitted detector: its threshold, its calibration, or both.

    `settings` has the setting that holds the threshold with its value; it is empty without one.
    """

    fitted: FittedDetector
    behind: Behind
    settings: Mapping[str, Any]
    calibrated: bool

    @property
    def threshold(self) -> str:
        """The setting that holds the threshold, "" without one."""
        return next(iter(self.settings), "")


class _Ran(NamedTuple):
    """With what a method ran once; `conditions` as in `Behind`."""

    method: str
    settings: dict[str, Any]
    conditions: dict[str, str]
    models: dict[str, str]


def methods_behind(store: RunStore, whole: WholeSession) -> dict[str, Behind]:
    """Return, by the names of a session's detectors, the methods that they are.

    In items of runs they have the methods' names; in those of an evaluation those of its systems.
    Evaluations and runs that are not there any more are left out, and so is a name that means two
    methods.
    """
    owner = whole.session.owner
    places = [ItemPlace.model_validate(one.body.get("place", {})) for one in whole.items]
    ran: dict[str, list[_Ran]] = {}
    known: set[str] = set()
    for evaluation in dict.fromkeys(one.evaluation for one in places if one.evaluation):
        try:
            stored = store.evaluations.get(evaluation, owner)
        except NotFoundError:
            continue
        known.add(evaluation)
        for system in EvaluationSpec.model_validate(stored.spec).systems:
            found = _ran(system.method, system.prompts, system.models)
            ran.setdefault(system.name, []).append(found)
    runs = list(dict.fromkeys(one.run for one in places if one.run and not one.evaluation))
    for run, spec in store.specs(owner, runs).items():
        known.add(run)
        for method in spec.methods:
            found = _ran(method, spec.prompts, spec.models)
            ran.setdefault(method.name, []).append(found)
    for name, lacking in _names(whole.items, places, known).items():
        # Of a run that is gone nothing is known but the method, whose name it is.
        if name not in ran and setting_of(name, ""):
            ran[name] = [_Ran(name, {}, {}, {})]
        elif name in ran and lacking:
            ran[name] = [one._replace(conditions={}) for one in ran[name]]
    return {
        name: Behind(
            method=found[0].method,
            settings=_common([one.settings for one in found]),
            conditions=_common([one.conditions for one in found]),
            models=_common([one.models for one in found]),
        )
        for name, found in ran.items()
        if len({one.method for one in found}) == 1
    }


def _ran(method: MethodSpec, wording: Wording, models: Mapping[str, ModelSpec]) -> _Ran:
    told: dict[str, str] = {}
    used: dict[str, ModelSpec] = {}
    # What this version of the methods does not know any more tells nothing.
    with suppress(VeriscopeError, ValidationError):
        used = used_models([method.name], models)
        fields = get_method(method.name).settings_type.model_fields
        told = {
            name: conditions(method.name, method.settings, wording, name)
            for name in ("", *THRESHOLDS)
            if not name or name in fields
        }
    names = {role: model.name[:MAX_NAME] for role, model in used.items() if model.name}
    return _Ran(method.name, dict(method.settings), told, names)


def fitted_profile(
    name: str,
    session: str,
    task: Task,
    fitted: Iterable[FittedDetector],
    behind: Mapping[str, Behind],
    kind: CalibrationKind | None = "platt",
) -> Profile:
    """Return a profile called `name` with what was fitted, over the settings of the methods' runs.

    Kept are the thresholds that are settings of their methods, and the calibrations of this `kind`
    (None: no calibrations). `session` is the name of the session. Raises InvalidInputError where
    there is nothing of `fitted` to keep, where two are of one method, and as `checked_profile`.
    """
    settings: dict[str, dict[str, Any]] = {}
    kept: list[Calibration] = []
    told: list[str] = []
    studied: list[str] = []
    systems: list[tuple[str, float | None]] = []
    today = f"{datetime.now(UTC):%Y-%m-%d}"
    for one in savable(fitted, behind):
        known = one.behind
        calibrated = one.calibrated and kind is not None
        if not (one.threshold or calibrated):
            continue
        if known.method in settings:
            raise failure("annotation.same_method", method=known.method)
        settings[known.method] = {**known.settings, **one.settings}
        on = f"{one.fitted.tested} others"
        said: list[str] = []
        accuracy = one.fitted.accuracy.value if one.fitted.accuracy else None
        for setting, value in one.settings.items():
            studied.append(f"{setting} ({known.method})")
            systems.append((one.fitted.method, accuracy))
            said.append(f"{setting} = {value:g}")
            if accuracy is not None:
                said[-1] += f", accuracy {accuracy:.2f} on {on}"
        if calibrated and kind is not None:
            made = _calibration(one, session, task, kind, today)
            kept.append(made)
            studied.append(f"{kind} ({known.method})")
            said.append(f"{kind} calibration of {made.score}")
            if made.brier is not None:
                said[-1] += f", Brier score {made.brier:.3f} on {on}"
        told.append(f"{known.method}, fitted on {one.fitted.trained} items: {', '.join(said)}")
    if not told:
        raise failure("annotation.nothing_fitted")
    alone = systems[0] if len(settings) == len(systems) == 1 else ("", None)
    return checked_profile(
        Profile(
            name=name,
            description=f"Task: {task}. {'; '.join(told)}."[:MAX_DESCRIPTION],
            settings=settings,
            calibrations=tuple(kept),
            origin=ProfileOrigin(
                data_set=session,
                system=alone[0],
                study=", ".join(studied),
                metric="Youden's J" if systems else "",
                held_out=alone[1],
                date=today,
            ),
        )
    )


def savable(fitted: Iterable[FittedDetector], behind: Mapping[str, Behind]) -> list[Savable]:
    """Return those of `fitted` of which a profile can keep something.

    A threshold has to be a setting that its method accepts. A calibration has to be of one score,
    of verdicts on what people labelled, in runs that differed in nothing but that threshold.
    """
    found: list[Savable] = []
    for one in fitted:
        known = behind.get(one.method)
        if known is None:
            continue
        setting = setting_of(known.method, one.score)
        renamed = one.model_copy(update={"method": known.method, "setting": setting})
        settings = fitted_settings([renamed]).get(known.method, {})
        usable = 0 < len(one.score) <= MAX_NAME and not one.indirect
        calibrated = usable and setting in known.conditions and _has_curves(one)
        if settings or calibrated:
            kept = one.model_copy(update={"setting": setting})
            found.append(Savable(kept, known, settings, calibrated))
    return found


def _has_curves(one: FittedDetector) -> bool:
    """Return whether both calibrations are there, and can be told of the score instead of
    the doubt.
    """
    if one.platt is None or one.isotonic is None:
        return False
    try:
        for fit in (one.platt, one.isotonic):
            _of_score(fit, one.turn)
    except ValidationError:
        # An imported session may hold scores on no scale.
        return False
    return True


def _of_score(fit: Platt | Isotonic, turn: float | None) -> Platt | Isotonic:
    """Return a fit of the doubt as one of the method's own score."""
    return fit if turn is None else fit.turned(turn)


def _calibration(
    one: Savable, session: str, task: Task, kind: CalibrationKind, today: str
) -> Calibration:
    """Return the calibration of this kind, of the method's own score instead of its doubt."""
    fitted, turn = one.fitted, one.fitted.turn
    fit = fitted.platt if kind == "platt" else fitted.isotonic
    if fit is None or task == "comparison":
        raise ValueError("There is no calibration.")
    quality = fitted.quality.get(kind)
    return Calibration(
        method=one.behind.method,
        score=fitted.score,
        task=task,
        bad="above" if turn is None else "below",
        fit=_of_score(fit, turn),
        labels=fitted.trained,
        tested=fitted.tested,
        brier=quality.brier if quality else None,
        calibration_error=quality.calibration_error if quality else None,
        session=session,
        date=today,
        setting=fitted.setting,
        conditions=one.behind.conditions[fitted.setting],
        models=one.behind.models,
    )


def _names(
    items: Iterable[StoredItem], places: Iterable[ItemPlace], known: Collection[str]
) -> dict[str, bool]:
    """Return the detectors of `items`, and whether one of their runs or evaluations is not
    `known`.
    """
    found: dict[str, bool] = {}
    for item, place in zip(items, places, strict=True):
        lacking = (place.evaluation or place.run) not in known
        for verdict in Hidden.model_validate(item.hidden).verdicts:
            found[verdict.method] = found.get(verdict.method, False) or lacking
    return found


def _common(told: Sequence[dict[str, _Value]]) -> dict[str, _Value]:
    """Return what all of `told` have alike."""
    return {
        name: value
        for name, value in told[0].items()
        if all(name in other and other[name] == value for other in told)
    }

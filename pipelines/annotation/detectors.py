"""What labels say about the detectors: rankings, curves, thresholds and calibration.

Thresholds and calibrations are fitted on a part of the items and reported on the rest. Items of one
group, such as one run or one document, are always in the same part.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from pydantic import Field, ValidationError

from pipelines.annotation.agreement import SAMPLING
from pipelines.annotation.types import Hidden, ItemPlace, Label, ModelVerdict, Task, is_wrong
from pipelines.base import Frozen
from pipelines.engine.calibrations import conditions
from pipelines.engine.profiles import checked_profile
from pipelines.errors import NotFoundError, VeriscopeError, failure
from pipelines.evaluation.metrics import best_cut, brier, calibration_error
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.statistics.agreement import Share, share
from pipelines.evaluation.statistics.detection import (
    Curve,
    DetectorRankings,
    ReliabilityPoint,
    curves,
    detection,
    reliability,
)
from pipelines.evaluation.statistics.estimates import Floats, Sampling, group_numbers
from pipelines.methods.registry import get_method, used_models
from pipelines.models.providers import ModelSpec
from pipelines.prompts import Wording
from pipelines.run.calibrated import JUDGED_AS
from pipelines.run.calibrations import (
    BEYOND,
    Calibration,
    CalibrationKind,
    Isotonic,
    Platt,
    isotonic,
)
from pipelines.run.events import MethodSpec
from pipelines.store import RunStore
from pipelines.store.annotations import MAX_NAME, StoredItem, WholeSession
from pipelines.store.profiles import MAX_DESCRIPTION, Profile, ProfileOrigin

Flags = NDArray[np.bool_]

LEAST = 10
"""Items of each part of the split, with both kinds among them, without which nothing is fitted."""

_LEAST_WIDTH = 1e-9

_SETTINGS = {"entity_probability": "theta_1", "evidence_alignment": "tau_a"}
"""By score, the setting that is its threshold; for other scores it is called "threshold"."""

THRESHOLDS = ("threshold", *_SETTINGS.values())
"""Every setting that may be the threshold of a score."""


class LabelledScores(NamedTuple):
    """The doubts of detectors on labelled items of one task.

    `scores` is [methods, items], NaN where a method said nothing; `labels` [items] is 1 where
    people found an error. `turn` is what a method's score and its doubt add up to where a lower
    score is worse, None where they are equal. Of methods in `mixed` the doubts come from more than
    one score, all of which are in `names`; on their scales a common threshold means nothing. `own`
    [methods, items] says which doubts come from a score, and not from a verdict without a number;
    None: all do. Of methods in `indirect` some are of verdicts on something else than what people
    labelled, such as the text to which a sentence belongs.
    """

    methods: tuple[str, ...]
    scores: Floats
    labels: Floats
    groups: tuple[str, ...]
    names: tuple[str, ...]
    turn: tuple[float | None, ...]
    mixed: frozenset[str] = frozenset()
    own: Flags | None = None
    indirect: frozenset[str] = frozenset()


class DetectorReport(Frozen):
    """How well detectors tell the items in which people found an error.

    `curves` are the ROC and the precision-recall curve; `reliability` is only of detectors whose
    doubts are in [0, 1].
    """

    detection: DetectorRankings
    curves: dict[str, tuple[Curve, Curve]]
    reliability: dict[str, list[ReliabilityPoint]]


class FitQuality(Frozen):
    """Predictions on items that were not fitted on; both errors in [0, 1], 0 is best."""

    brier: float
    calibration_error: float


class FittedDetector(Frozen):
    """A threshold and calibrations fitted on `trained` items, reported on `tested` others.

    `threshold` is in the method's own score `score`, `cut` in its doubt: an item is flagged above
    it. `accuracy`, `found` (of the items with an error, those flagged) and `spared` (of those
    without, those not flagged) are on the tested items. `why` says why something is missing.
    `platt` and `isotonic` are functions of the doubt; `turn` and `indirect` are as in
    `LabelledScores`.
    """

    method: str
    score: str
    trained: int
    tested: int
    cut: float | None = None
    threshold: float | None = None
    setting: str = ""
    accuracy: Share | None = None
    found: Share | None = None
    spared: Share | None = None
    platt: Platt | None = None
    isotonic: Isotonic | None = None
    quality: dict[str, FitQuality] = Field(default_factory=dict)
    turn: float | None = None
    indirect: bool = False
    why: str = ""


def labelled_scores(
    task: Task, items: Iterable[StoredItem], labels: Mapping[int, Label]
) -> LabelledScores:
    """Return the detectors' doubts and people's labels on the items of `task` that have both.

    `labels` are final labels by item; those that do not tell whether there is an error, such as an
    abstention, are left out. Control items are left out too: they were chosen, not drawn.
    """
    rows: list[tuple[Hidden, bool, str]] = []
    for item in items:
        label = labels.get(item.number)
        wrong = None if label is None or item.task != task or item.gold else is_wrong(label)
        if wrong is not None:
            group = str(item.body.get("group") or "")
            rows.append((Hidden.model_validate(item.hidden), wrong, group))
    methods = tuple(
        dict.fromkeys(
            one.method for hidden, _, _ in rows for one in hidden.verdicts if one.doubt is not None
        )
    )
    scores = np.full((len(methods), len(rows)), np.nan)
    own = np.zeros(scores.shape, dtype=np.bool_)
    names: list[dict[str, None]] = [{} for _ in methods]
    turns: list[float | None] = [None] * len(methods)
    indirect: set[str] = set()
    for column, (hidden, _, _) in enumerate(rows):
        for one in hidden.verdicts:
            if one.doubt is None:
                continue
            row = methods.index(one.method)
            scores[row, column] = one.doubt
            if not _is_about(one, task):
                indirect.add(one.method)
            # Of a method that judged an item more than once, the last word counts.
            own[row, column] = one.value is not None
            if one.value is not None:
                names[row][one.score] = None
                # A score in the middle of its range is its own doubt, turned or not.
                if one.value != one.doubt:
                    turns[row] = one.value + one.doubt
    return LabelledScores(
        methods=methods,
        scores=scores,
        labels=np.array([wrong for _, wrong, _ in rows], dtype=np.float64),
        groups=tuple(group for _, _, group in rows),
        names=tuple(", ".join(one) for one in names),
        turn=tuple(turns),
        mixed=frozenset(method for method, one in zip(methods, names, strict=True) if len(one) > 1),
        own=own,
        indirect=frozenset(indirect),
    )


def _is_about(said: ModelVerdict, task: Task) -> bool:
    """Return whether a verdict is about what people labelled, not about a part or the whole."""
    if task == "comparison":
        return False
    # A verdict that does not say what it is about is about the text, unless it has a place.
    about = said.what or ("answer" if said.at is None else JUDGED_AS[task][0])
    return about in JUDGED_AS[task]


def detector_report(found: LabelledScores, sampling: Sampling = SAMPLING) -> DetectorReport:
    """Return rankings, curves, reliability; raises InvalidInputError without scores and labels."""
    if not found.methods:
        raise failure("annotation.no_scores")
    every = {
        method: curves(row, found.labels)
        for method, row in zip(found.methods, found.scores, strict=True)
    }
    return DetectorReport(
        detection=detection(found.scores, found.labels, found.methods, found.groups, sampling),
        curves={method: both for method, both in every.items() if both is not None},
        reliability={
            method: reliability(row, found.labels)
            for method, row in zip(found.methods, found.scores, strict=True)
            if _probabilities(row)
        },
    )


def fit_detectors(
    found: LabelledScores, *, share_trained: float = 0.5, seed: int = 0
) -> list[FittedDetector]:
    """Return a threshold (the largest Youden's J) and calibrations of each method.

    `share_trained` in (0, 1) of the groups are fitted on, drawn with `seed`.
    """
    if not 0 < share_trained < 1:
        raise ValueError("The share of groups to fit on lies between 0 and 1.")
    numbers = group_numbers(found.groups)
    count = int(numbers.max(initial=-1)) + 1
    order = np.random.default_rng(seed).permutation(count)
    train = np.isin(numbers, order[: round(share_trained * count)])
    return [_fitted(found, row, train) for row in range(len(found.methods))]


def fitted_settings(fitted: Iterable[FittedDetector]) -> dict[str, dict[str, Any]]:
    """Return, by method, the settings that hold the fitted threshold, for methods that have such a
    setting.

    They are checked by the method itself; one that it refuses is left out.
    """
    settings: dict[str, dict[str, Any]] = {}
    for one in fitted:
        if one.threshold is None or not one.setting:
            continue
        given = {one.setting: round(one.threshold, 6)}
        try:
            get_method(one.method).settings(given)
        except (VeriscopeError, ValidationError):
            continue
        settings[one.method] = given
    return settings


def setting_of(method: str, score: str) -> str:
    """Return the setting of a method that is the threshold of its score; "" where it has none."""
    name = _SETTINGS.get(score, "threshold")
    try:
        return name if name in get_method(method).settings_type.model_fields else ""
    except VeriscopeError:
        # A system of an evaluation has a name of its own.
        return ""


def predicted(fit: Platt | Isotonic, doubts: Sequence[float] | Floats) -> Floats:
    """Return P(error) in [0, 1] of each doubt."""
    return np.array([fit.probability(float(one)) for one in doubts], dtype=np.float64)


def _fitted(found: LabelledScores, row: int, train: Any) -> FittedDetector:
    known = np.abs(found.scores[row]) <= BEYOND
    if found.own is not None and found.own[row].any():
        # The doubt of a verdict without a number, 0, 0.5 or 1, is on no score's scale.
        known &= found.own[row]
    parts = [
        (found.scores[row][known & part], found.labels[known & part]) for part in (train, ~train)
    ]
    (scores, labels), (held, truth) = parts
    base = FittedDetector(
        method=found.methods[row],
        score=found.names[row],
        trained=len(scores),
        tested=len(held),
        turn=found.turn[row],
        indirect=found.methods[row] in found.indirect,
    )
    if base.method in found.mixed:
        why = f"Its doubts come from several scores ({base.score}), which have no common threshold."
        return base.model_copy(update={"why": why})
    for values, what in ((labels, "fit on"), (truth, "report on")):
        if len(values) < LEAST or len(np.unique(values)) < 2:
            why = f"There are too few items to {what}: {LEAST}, of both kinds, are needed."
            return base.model_copy(update={"why": why})
    platt, isotonic = _platt(scores, labels), _isotonic(scores, labels)
    quality = {
        "platt": _quality(predicted(platt, held), truth),
        "isotonic": _quality(predicted(isotonic, held), truth),
    }
    if _probabilities(held):
        quality["raw"] = _quality(held, truth)
    base = base.model_copy(update={"platt": platt, "isotonic": isotonic, "quality": quality})
    cut = best_cut(scores.tolist(), (labels == 1).tolist())
    if cut is None or not np.isfinite(cut.threshold):
        return base.model_copy(update={"why": "No threshold is better than chance."})
    flagged, wrong = held > cut.threshold, truth == 1
    turn = found.turn[row]
    return base.model_copy(
        update={
            "cut": cut.threshold,
            "threshold": cut.threshold if turn is None else turn - cut.threshold,
            "setting": setting_of(found.methods[row], found.names[row]),
            "accuracy": share(int((flagged == wrong).sum()), len(held)),
            "found": share(int((flagged & wrong).sum()), int(wrong.sum())),
            "spared": share(int((~flagged & ~wrong).sum()), int((~wrong).sum())),
        }
    )


def _platt(scores: Floats, labels: Floats) -> Platt:
    """Return the logistic regression on Platt's targets, which keep small samples uncertain."""
    from sklearn.linear_model import LogisticRegression

    wrong = float((labels == 1).sum())
    right = len(labels) - wrong
    high, low = (wrong + 1) / (wrong + 2), 1 / (right + 2)
    targets = np.where(labels == 1, high, low)
    # Each item is one of either kind with the weight of its target.
    x = np.concatenate([scores, scores])[:, None]
    y = np.concatenate([np.ones(len(scores)), np.zeros(len(scores))])
    weights = np.concatenate([targets, 1 - targets])
    # Scores are standardised, so that the small penalty weighs the same on every scale.
    middle, width = float(scores.mean()), float(scores.std())
    # A smaller spread than this comes from rounding alone.
    width = width if width > _LEAST_WIDTH * max(1.0, abs(middle)) else 1.0
    standardised = (x - middle) / width
    model = LogisticRegression(C=1e6, max_iter=1000).fit(standardised, y, sample_weight=weights)
    slope = float(np.ravel(model.coef_)[0]) / width
    return Platt(slope=slope, intercept=float(np.ravel(model.intercept_)[0]) - slope * middle)


def _isotonic(scores: Floats, labels: Floats) -> Isotonic:
    from sklearn.isotonic import IsotonicRegression

    model = IsotonicRegression(y_min=0, y_max=1, out_of_bounds="clip").fit(scores, labels)
    x, y = (np.asarray(one).tolist() for one in (model.X_thresholds_, model.y_thresholds_))
    return isotonic(x, np.clip(y, 0, 1).tolist())


def _quality(predictions: Floats, truth: Floats) -> FitQuality:
    values, events = predictions.tolist(), (truth == 1).tolist()
    return FitQuality(
        brier=brier(values, events), calibration_error=calibration_error(values, events)
    )


def _probabilities(values: Floats) -> bool:
    known = values[np.isfinite(values)]
    return bool(known.size and known.min() >= 0 and known.max() <= 1)


# What was fitted on labels as a profile, so that the next run uses it.

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
    """Return whether both calibrations are there and can be told of the score, not the doubt."""
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
    """Return the detectors of `items`, and whether a run or evaluation of them is not `known`."""
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

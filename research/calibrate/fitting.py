"""The combinations behind "together", and thresholds of single detectors, fitted and measured.

A combination is a logistic regression with an L2 penalty; folds of the cross-validation share no
article or page. A language is fitted with the other one's statements where that has the smaller
log loss.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations as subsets
from typing import NamedTuple, cast, get_args

import numpy as np
from numpy.typing import NDArray
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss, roc_auc_score
from sklearn.model_selection import GroupKFold
from sklearn.preprocessing import StandardScaler

from pipelines.base import Language
from pipelines.methods.limits import HeldOutScores, Limit, Use
from pipelines.methods.together.features import (
    READINGS,
    BestEvidence,
    Features,
    Reading,
    SentenceReadings,
    feature_names,
    row_of,
)
from pipelines.methods.together.verdict import Bin, Combination, LinearLogOdds
from research.samples.statements import LabelledStatement

_PENALTY = 0.3
"""scikit-learn's C: the inverse of the strength of the L2 penalty, on standardised features."""

_FOLDS = 10
_MOST_FALSE = 0.10
"""The share of false statements that may be called supported in cross-validation."""

_BINS = 10
LIMITED = {"slm": "slm", "bundled": "slm", "p_yes": "p_yes"}
"""What a detector is called among the cells, and its method."""

_FEWEST = 40
"""Statements of a use and a language below which nothing is fitted."""


class Cell(NamedTuple):
    """What one detector alone says: its score, whether it calls the statement supported, and the
    names of the models behind it."""

    score: float
    supported: bool
    models: tuple[str, ...]


class Seen(NamedTuple):
    """A statement with what was read of it, and what each detector alone says, by its name."""

    statement: LabelledStatement
    readings: SentenceReadings
    evidence: BestEvidence
    features: Features
    cells: dict[str, Cell]

    @property
    def supported(self) -> bool:
        """Whether the evidence supports it."""
        return self.statement.label == "supported"


Array = NDArray[np.float64]


def measured(
    probabilities: Sequence[float] | Array, truth: Sequence[bool], threshold: float
) -> HeldOutScores:
    """Return how good "supported from `threshold` on" is; NaN nowhere, 0.5 for AUROC of one
    class."""
    p, y = np.asarray(probabilities, float), np.asarray(truth, bool)
    said = p >= threshold
    both = y.any() and not y.all()
    return HeldOutScores(
        statements=len(y),
        auroc=round(float(roc_auc_score(y, p)) if both else 0.5, 4),
        accuracy=round(float((said == y).mean()), 4),
        false_supported=round(float(said[~y].mean()) if (~y).any() else 0.0, 4),
        true_doubted=round(float((~said[y]).mean()) if y.any() else 0.0, 4),
    )


def fit_all(seen: Sequence[Seen]) -> list[Combination]:
    """Return a combination for each use, language and set of readings for which there are
    statements."""
    found: list[Combination] = []
    for use in _uses(seen):
        for language in get_args(Language):
            of = [one for one in seen if one.statement.use == use]
            own = [one for one in of if one.statement.language == language]
            for readings in _sets(own):
                names = feature_names(readings)
                able = [one for one in own if set(names) <= set(one.features)]
                fits = [one for one in able if one.statement.part == "fit"]
                if len(fits) < _FEWEST:
                    continue
                others = [
                    one
                    for one in of
                    if one.statement.language != language
                    and one.statement.part == "fit"
                    and set(names) <= set(one.features)
                ]
                found.append(_combination(use, language, readings, able, others))
    return found


def _uses(seen: Sequence[Seen]) -> list[Use]:
    return list(dict.fromkeys(one.statement.use for one in seen))


def _sets(seen: Sequence[Seen]) -> Iterable[tuple[Reading, ...]]:
    there = [r for r in READINGS if any(r in one.readings.values for one in seen)]
    for size in range(len(there) + 1):
        yield from cast(Iterable[tuple[Reading, ...]], subsets(there, size))


def _combination(
    use: Use,
    language: Language,
    readings: tuple[Reading, ...],
    able: Sequence[Seen],
    others: Sequence[Seen],
) -> Combination:
    names = feature_names(readings)
    fits = [one for one in able if one.statement.part == "fit"]
    alone = cross_validated(fits, names)
    chosen, added = alone, ()
    if others:
        helped = cross_validated(fits, names, others)
        truth = [one.supported for one in fits]
        if log_loss(truth, helped) < log_loss(truth, alone):
            chosen, added = helped, others
    truth = [one.supported for one in fits]
    threshold = _threshold(chosen, truth)
    support, means = _line(
        _rows([*fits, *added], names), [one.supported for one in [*fits, *added]]
    )
    doubted = [one for one in [*fits, *added] if not one.supported]
    against, _ = _line(
        _rows(doubted, names), [one.statement.label == "contradicted" for one in doubted]
    )
    reported = [one for one in able if one.statement.part == "report"]
    kinds = dict.fromkeys(one.statement.wording for one in reported)
    groups = {kind: [one for one in reported if one.statement.wording == kind] for kind in kinds}
    return Combination(
        use=use,
        languages=(language,),
        readings=readings,
        names=names,
        support=support,
        against=against,
        means=means,
        threshold=threshold,
        fitted=len(fits) + len(added),
        groups=len({one.statement.group for one in [*fits, *added]}),
        cross_validated=measured(chosen, truth, threshold),
        reliability=reliability(
            np.array([support.probability(row_of(one.features, names)) for one in reported]),
            [one.supported for one in reported],
        ),
        reported={
            name: measured(
                [support.probability(row_of(one.features, names)) for one in of],
                [one.supported for one in of],
                threshold,
            )
            for name, of in {"all": reported, **groups}.items()
            if of
        },
    )


def cross_validated(
    fits: Sequence[Seen], names: Sequence[str], others: Sequence[Seen] = ()
) -> Array:
    """Return P(supported) of each statement by a fit on other groups; shape [statements]."""
    rows, truth = _rows(fits, names), np.array([one.supported for one in fits])
    groups = [one.statement.group for one in fits]
    extra, theirs = _rows(others, names), np.array([one.supported for one in others], bool)
    found = np.zeros(len(fits))
    for train, test in GroupKFold(min(_FOLDS, len(set(groups)))).split(rows, truth, groups):
        x = np.vstack([rows[train], extra]) if len(others) else rows[train]
        y = np.concatenate([truth[train], theirs])
        line, _ = _line(x, y)
        found[test] = [line.probability(row) for row in rows[test]]
    return found


def _rows(seen: Sequence[Seen], names: Sequence[str]) -> Array:
    return np.array([row_of(one.features, names) for one in seen], float).reshape(-1, len(names))


def _line(
    rows: Array, truth: Sequence[bool] | NDArray[np.bool_]
) -> tuple[LinearLogOdds, tuple[float, ...]]:
    """Return the fitted line on features as they are, and the features' means."""
    y = np.asarray(truth, bool)
    means = tuple(round(float(one), 4) for one in rows.mean(axis=0))
    if y.all() or not y.any():
        # One class alone: nothing tells them apart.
        return LinearLogOdds(weights=(0.0,) * rows.shape[1], bias=20.0 if y.all() else -20.0), means
    scaler = StandardScaler().fit(rows)
    model = LogisticRegression(C=_PENALTY, max_iter=1000).fit(scaler.transform(rows), y)
    weights = model.coef_[0] / scaler.scale_
    bias = float(model.intercept_[0] - weights @ scaler.mean_)
    return LinearLogOdds(
        weights=tuple(round(float(w), 4) for w in weights), bias=round(bias, 4)
    ), means


def _threshold(probabilities: Array, truth: Sequence[bool]) -> float:
    """Return one half, or what is needed so that few false statements are called supported."""
    false = np.sort(probabilities[~np.asarray(truth, bool)])[::-1]
    most = int(_MOST_FALSE * len(false))
    return round(max(0.5, float(false[most]) + 0.005 if most < len(false) else 0.5), 2)


def reliability(probabilities: Array, truth: Sequence[bool]) -> tuple[Bin, ...]:
    """Return the curve of what was said against how often it was so, in ten steps."""
    y = np.asarray(truth, bool)
    at = np.minimum((probabilities * _BINS).astype(int), _BINS - 1)
    return tuple(
        Bin(
            said=round(float(probabilities[at == step].mean()), 3),
            was=round(float(y[at == step].mean()), 3),
            count=int((at == step).sum()),
        )
        for step in range(_BINS)
        if (at == step).any()
    )


def limits(seen: Sequence[Seen]) -> list[Limit]:
    """Return the threshold of the SLM check and of P(yes) for each use, language and set of judges.

    Of those that call at most one in ten false statements supported, the one that doubts the fewest
    true ones; measured on the reporting half.
    """
    found: list[Limit] = []
    for use in _uses(seen):
        for language in get_args(Language):
            for cell, method in LIMITED.items():
                of = [
                    one
                    for one in seen
                    if (one.statement.use, one.statement.language) == (use, language)
                    and cell in one.cells
                ]
                fits = [one for one in of if one.statement.part == "fit"]
                others = [one for one in of if one.statement.part == "report"]
                if len(fits) < _FEWEST or not others:
                    continue
                false = sorted((o.cells[cell].score for o in fits if not o.supported), reverse=True)
                value = round(false[int(_MOST_FALSE * len(false))] + 0.0005, 3)
                found.append(
                    Limit(
                        use=use,
                        language=language,
                        method=method,
                        judges=fits[0].cells[cell].models,
                        value=value,
                        fitted=len(fits),
                        reported=measured(
                            [one.cells[cell].score for one in others],
                            [one.supported for one in others],
                            value,
                        ),
                    )
                )
    return found

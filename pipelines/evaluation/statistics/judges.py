"""How far a judge agrees with people, and its rate corrected by their labels.

This is the only file that asks truescore. Labels and verdicts are lists of equal length; a verdict
that was undecided is left out by the caller.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import isfinite, sqrt
from typing import Literal

import numpy as np
from scipy.special import ndtri, stdtrit

from pipelines.base import Frozen
from pipelines.evaluation.statistics.estimates import (
    Estimate,
    Floats,
    group_numbers,
    wilson,
    within_unit,
)

# A judge's mean corrected by labels that were drawn with known probabilities.
#
# `statistics.judges` takes it where labels have different probabilities, or groups are labelled in
# part.

FEW = 5
"""Labels of the rarer of two classes below which a normal interval is not to be trusted."""


class PoweredMean(Frozen):
    """A judge's mean, corrected; `tuning` in [0, 1] is how far the judge was relied on."""

    corrected: Estimate
    tuning: float


def powered_mean(
    judge: Sequence[float],
    labels: Sequence[float],
    labelled: Sequence[int],
    probabilities: Sequence[float] | None = None,
    groups: Sequence[str] = (),
    *,
    level: float = 0.95,
) -> PoweredMean:
    """Return the mean of what people would say of all answers, of which they labelled a part.

    `judge` are values in [0, 1] of all N answers, `labels` those of people at the places
    `labelled`, `probabilities` in (0, 1] those with which these were drawn (None: all the same).
    With w = 1 / probability, f the judge and Y the labels, it is

        tuning * mean(f) + sum(w * (Y - tuning * f)) / sum(w)

    where the sums are over labelled answers: prediction-powered inference (Angelopoulos and others
    2023, Science 382) with inverse-probability weights (Horvitz and Thompson 1952, in the form of
    Hajek 1971), as in active statistical inference (Zrnic and Candes 2024, arXiv 2403.03208). The
    weights need be right up to a factor only: labels that are still missing do no harm if they are
    missing at random. The tuning is the one with the smallest variance in [0, 1] (PPI++, arXiv
    2311.01453). The variance is that of the linearised estimate, summed within `groups`, which may
    be labelled in part. The interval is Student's; where there are fewer than five labels of one
    kind, it is not narrower than Wilson's for as many labels as the weights are worth (Kish 1965).

    Raises ValueError with fewer than two labelled groups, or for lists that do not fit.
    """
    f, y = np.asarray(judge, dtype=np.float64), np.asarray(labels, dtype=np.float64)
    at = np.asarray(labelled, dtype=np.intp)
    drawn = np.ones(len(y)) if probabilities is None else np.asarray(probabilities, np.float64)
    if not len(y) == len(at) == len(drawn) or (len(groups) and len(groups) != len(f)):
        raise ValueError("There must be one label and one probability for each labelled answer.")
    if not ((drawn > 0) & (drawn <= 1)).all():
        raise ValueError("A probability lies in (0, 1].")
    numbers = group_numbers(groups or [""] * len(f))
    held, every = len(np.unique(numbers[at])), len(np.unique(numbers))
    if held < 2:
        raise ValueError("Two labelled groups are needed at least.")
    weights = 1 / drawn
    # What each label stands for: these add up to the number of answers.
    counts = len(f) * weights / weights.sum()
    mean_y, mean_f = float(counts @ y) / len(f), float(counts @ f[at]) / len(f)
    of_labels = _by_group(counts * (y - mean_y), numbers[at], every)
    of_judged = _by_group(counts * (f[at] - mean_f), numbers[at], every)
    of_judge = _by_group(f - f.mean(), numbers, every)
    gained = of_judge - of_judged
    least = float(gained @ gained)
    tuning = min(1.0, max(0.0, -float(of_labels @ gained) / least)) if least > 1e-12 else 0.0
    rectified = of_labels - tuning * of_judged
    relied = tuning * of_judge
    by_labels = held / (held - 1) * float(rectified @ rectified) / len(f) ** 2
    by_judge = float(relied @ relied + 2 * relied @ rectified) / len(f) ** 2
    value = tuning * float(f.mean()) + mean_y - tuning * mean_f
    half = float(stdtrit(held - 1, (1 + level) / 2)) * sqrt(max(0.0, by_labels + by_judge))
    binary = bool(np.isin(y, (0.0, 1.0)).all())
    few = binary and min(y.sum(), len(y) - y.sum()) < FEW
    if few:
        worth = float(weights.sum() ** 2 / (weights**2).sum())
        half = max(half, _wilson_half(mean_y, worth, float(ndtri((1 + level) / 2))))
    return PoweredMean(
        corrected=Estimate(
            value=within_unit(value),
            low=within_unit(value - half),
            high=within_unit(value + half),
            n=len(f),
            groups=every,
        ),
        tuning=tuning,
    )


def _by_group(values: Floats, numbers: np.ndarray, groups: int) -> Floats:
    return np.bincount(numbers, weights=values, minlength=groups).astype(np.float64)


def _wilson_half(share: float, n: float, z: float) -> float:
    """Return half the width of Wilson's interval of a share of `n`."""
    return z / (n + z**2) * sqrt(n * share * (1 - share) + z**2 / 4)


class JudgeAgreement(Frozen):
    """How a judge's grades compare with people's.

    `confusion` has a row for each grade of people and a column for each grade of the judge, in the
    order of `grades`. `accuracy` has Wilson's interval, `kappa` (Cohen 1960, in [-1, 1]) that of
    its asymptotic variance (Fleiss, Cohen and Everitt 1969), and none where this is zero, as it is
    with perfect agreement. `undecided` labelled answers have no verdict and are in none of these.
    """

    grades: tuple[str, ...]
    confusion: tuple[tuple[int, ...], ...]
    accuracy: Estimate
    kappa: Estimate
    undecided: int = 0


Correction = Literal["", "powered", "weighted", "labels"]
"""How a rate was corrected: prediction-powered, with equal probabilities; with weights by the
probabilities, or by groups that are labelled in part; or not at all, because every answer is
labelled. "" where it was not."""


class CorrectedRate(Frozen):
    """The share of right answers: as the judge has it, and corrected by people's labels.

    `judge` is of all judged answers; `people` of the labelled ones alone, None where these were not
    all as probable. `corrected` (`by`: Angelopoulos and others 2023) needs labels of these very
    answers, drawn at random; `rogan_gladen` (Rogan and Gladen 1978) takes the judge's rates of
    error from the labels. Each is None where it is not defined, with the reason in `why`.
    """

    judge: float
    n: int
    labels: int
    people: Estimate | None = None
    corrected: Estimate | None = None
    by: Correction = ""
    rogan_gladen: Estimate | None = None
    why: str = ""


def agreement(
    people: Sequence[str],
    judge: Sequence[str],
    grades: Sequence[str],
    *,
    undecided: int = 0,
    level: float = 0.95,
) -> JudgeAgreement:
    """Return the agreement of grades of people and of a judge, both among `grades`.

    Raises ValueError for lists of different lengths, or empty ones.
    """
    from sklearn.metrics import confusion_matrix

    if len(people) != len(judge) or not people:
        raise ValueError("There must be one verdict for each label, and one label at least.")
    table = confusion_matrix(people, judge, labels=list(grades))
    n, same = int(table.sum()), int(np.trace(table))
    low, high = wilson(same, n, level)
    accuracy = Estimate(value=same / n, low=low, high=high, n=n, groups=n, method="wilson")
    return JudgeAgreement(
        grades=tuple(grades),
        confusion=tuple(tuple(int(count) for count in row) for row in table),
        accuracy=accuracy,
        kappa=_kappa(people, judge, table, n, level),
        undecided=undecided,
    )


def agreement_of(
    pairs: Iterable[tuple[str, str | None]], grades: Sequence[str]
) -> JudgeAgreement | None:
    """Return the agreement of pairs of people's grade and the judge's, which is None where it is
    undecided; None where the judge decided on nothing.
    """
    known = list(pairs)
    decided = [(people, judge) for people, judge in known if judge is not None]
    if not decided:
        return None
    people, judge = zip(*decided, strict=True)
    return agreement(people, judge, grades, undecided=len(known) - len(decided))


def _kappa(
    people: Sequence[str], judge: Sequence[str], table: np.ndarray, n: int, level: float
) -> Estimate:
    """Return Cohen's kappa with its interval; without a value where all grades are one and
    the same.
    """
    from sklearn.metrics import cohen_kappa_score
    from statsmodels.stats.inter_rater import cohens_kappa

    value = float("nan") if len({*people, *judge}) < 2 else float(cohen_kappa_score(people, judge))
    if not isfinite(value):
        return Estimate(value=None, n=n, groups=n, reason="all_equal")
    base = Estimate(value=value, n=n, groups=n)
    with np.errstate(invalid="ignore", divide="ignore"):
        # Of small tables some of what it computes is not defined.
        variance = float(vars(cohens_kappa(table))["var_kappa"])
    if not variance > 0:
        return base
    half = float(ndtri((1 + level) / 2)) * sqrt(variance)
    low, high = max(-1.0, value - half), min(1.0, value + half)
    return base.model_copy(update={"low": low, "high": high})


def corrected_rate(
    judge: Sequence[float],
    labels: Sequence[float],
    labelled: Sequence[int],
    groups: Sequence[str] = (),
    probabilities: Sequence[float] | None = None,
    *,
    level: float = 0.95,
) -> CorrectedRate:
    """Return the share of right answers by a judge, corrected by labels of a part of the same
    answers.

    `judge` are values in [0, 1] of all answers; `labels` people's values of those at the places
    `labelled`, which were drawn with `probabilities` in (0, 1] (None: all the same). Answers of one
    of the `groups` are not independent. Where the labels hold each group whole or not at all, and
    all were as probable, `corrected` is the usual prediction-powered rate, else `powered_mean`'s.
    Raises ValueError without answers.
    """
    from truescore import ppi_estimate, rogan_gladen_estimate

    if not judge:
        raise ValueError("There is no judged answer.")
    rate = float(np.mean(judge))
    found = CorrectedRate(judge=rate, n=len(judge), labels=len(labels))
    if len(labels) < 2:
        return found.model_copy(update={"why": "Two labels are needed at least."})
    equal = probabilities is None or max(probabilities) - min(probabilities) < 1e-9
    clusters = _clusters(groups, labelled)
    alpha, why = 1 - level, []
    corrected: Estimate | None = None
    by: Correction = ""
    if len(labels) == len(judge):
        why.append("Every answer is labelled: the labels themselves are the result.")
    elif equal:
        try:
            powered = ppi_estimate(
                list(judge), list(labels), list(labelled), alpha=alpha, clusters=clusters
            )
        except ValueError:
            # A group that is labelled in part is more than it takes.
            pass
        else:
            corrected, by = _estimate(powered, len(judge)), "powered"
    if corrected is None:
        try:
            mean = powered_mean(judge, labels, labelled, probabilities, groups, level=level)
        except ValueError as error:
            why.append(f"Prediction-powered: {error}")
        else:
            corrected = mean.corrected
            by = "labels" if len(labels) == len(judge) else "weighted"
    inverted: Estimate | None = None
    if not equal:
        why.append("Rogan-Gladen: the labels were not all as probable.")
    elif {*judge, *labels} <= {0.0, 1.0}:
        try:
            told = rogan_gladen_estimate(
                [int(one) for one in judge],
                [int(one) for one in labels],
                list(labelled),
                alpha=alpha,
            )
        except ValueError as error:
            why.append(f"Rogan-Gladen: {error}")
        else:
            inverted = _estimate(told, len(judge))
    else:
        why.append("Rogan-Gladen: there are grades between right and wrong.")
    return found.model_copy(
        update={
            "people": _of_people(labels, level, independent=clusters is None) if equal else None,
            "corrected": corrected,
            "by": by,
            "rogan_gladen": inverted,
            "why": " ".join(why),
        }
    )


def transferred_rate(
    judge: Sequence[float],
    people: Sequence[float],
    judge_of_people: Sequence[float],
    *,
    level: float = 0.95,
) -> Estimate | None:
    """Return the Rogan-Gladen rate of `judge`, with the errors that the judge made on other
    answers.

    `people` and `judge_of_people` are labels and verdicts of those, 0 or 1 each. The interval is
    that of Lang and Reiczigel (2014), as Lee and others (arXiv 2511.21140) use it for judges: every
    share is smoothed, so that few answers without an error are not taken for no error at all. None
    where the judge is no better than chance there, also by the smoothed shares, or where one of the
    two kinds is missing.
    """
    right = [said for said, truth in zip(judge_of_people, people, strict=True) if truth == 1]
    wrong = [said for said, truth in zip(judge_of_people, people, strict=True) if truth == 0]
    if not right or not wrong or not judge:
        return None
    sensitivity, specificity = float(np.mean(right)), 1 - float(np.mean(wrong))
    youden = sensitivity + specificity - 1
    found = _lang_reiczigel(judge, right, wrong, float(ndtri((1 + level) / 2)))
    if youden <= 0 or found is None:
        return None
    value = within_unit((float(np.mean(judge)) + specificity - 1) / youden)
    # The smoothed interval has another centre; what is reported is in it.
    low, high = min(found[0], value), max(found[1], value)
    return Estimate(value=value, low=low, high=high, n=len(judge), groups=len(judge))


def _lang_reiczigel(
    judge: Sequence[float], right: Sequence[float], wrong: Sequence[float], z: float
) -> tuple[float, float] | None:
    """Return the interval of `transferred_rate`; `z` is the normal quantile, the rest are
    verdicts.
    """
    n, n_right, n_wrong = len(judge) + z**2, len(right) + 2, len(wrong) + 2
    observed = (sum(judge) + z**2 / 2) / n
    sensitivity = (sum(right) + 1) / n_right
    specificity = (len(wrong) - sum(wrong) + 1) / n_wrong
    youden = sensitivity + specificity - 1
    if youden <= 0:
        return None
    rate = within_unit((observed + specificity - 1) / youden)
    of_right = sensitivity * (1 - sensitivity) / n_right
    of_wrong = specificity * (1 - specificity) / n_wrong
    centre = rate + 2 * z**2 * (rate * of_right - (1 - rate) * of_wrong)
    variance = observed * (1 - observed) / n + rate**2 * of_right + (1 - rate) ** 2 * of_wrong
    half = z * sqrt(variance) / youden
    return within_unit(centre - half), within_unit(centre + half)


def _of_people(labels: Sequence[float], level: float, *, independent: bool) -> Estimate:
    """Return the mean of the labels; with an interval where they are right or wrong and none is
    like another.
    """
    n = len(labels)
    if independent and set(labels) <= {0.0, 1.0}:
        low, high = wilson(int(sum(labels)), n, level)
        return Estimate(value=sum(labels) / n, low=low, high=high, n=n, groups=n, method="wilson")
    return Estimate(value=float(np.mean(labels)), n=n, groups=n)


def _clusters(groups: Sequence[str], labelled: Sequence[int]) -> list[str] | None:
    """Return groups for truescore: None where no two answers share one."""
    named = [group or f"\0{place}" for place, group in enumerate(groups)]
    return named if len(set(named)) < len(named) else None


def _estimate(found: object, n: int) -> Estimate:
    """Return truescore's estimate as ours, within [0, 1]."""
    value, low, high = (float(getattr(found, name)) for name in ("point", "low", "high"))
    return Estimate(
        value=within_unit(value), low=within_unit(low), high=within_unit(high), n=n, groups=n
    )

"""The arithmetic of the SLM check: from judges' probabilities to scores and verdicts.

Source: the SLM framework's scoring steps. A judge m gives sentence j the probability s_j(m) that
it says yes; z = (s - mu_m) / sigma_m makes judges comparable; their average is the sentence's
score, and a mean over sentences the response's. How a score of 0 or less enters a harmonic or
geometric mean is left open there: both ways offered here are ours.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from math import erfc, exp, fsum, log, sqrt
from typing import Any, Literal

from pipelines.base import Language, calibration
from pipelines.methods.limits import limit_for
from pipelines.methods.slm.settings import MEANS, Mean, Scaling, SlmSettings
from pipelines.prompts import load_prompts
from pipelines.run.events import Judged, Score, Trace, Verdict
from pipelines.run.findings import CellJudged, JudgeScale, PanelJudge, ThresholdSource

_NEED_POSITIVE = ("harmonic", "geometric")


def z_score(score: float, scale: JudgeScale) -> float:
    """Return (s - mu) / sigma; 0 for a judge that has always said the same, which then says
    nothing.
    """
    return (score - scale.mu) / scale.sigma if scale.sigma > 0 else 0.0


def scale_of_scores(
    scores: Sequence[float], source: Literal["calibrated", "history"]
) -> JudgeScale:
    """Return the mean and (population) standard deviation of `scores`; neutral for none."""
    if not scores:
        return JudgeScale()
    mu = fsum(scores) / len(scores)
    sigma = sqrt(fsum((score - mu) ** 2 for score in scores) / len(scores))
    return JudgeScale(mu=mu, sigma=sigma, n=len(scores), source=source)


def average(values: Iterable[float | None]) -> float | None:
    """Return the mean of those that are known; None when none is."""
    known = _known(values)
    return fsum(known) / len(known) if known else None


def normal_cdf(z: float) -> float:
    """Return Phi(z), the standard normal distribution function, in [0, 1]."""
    return erfc(-z / sqrt(2)) / 2


def even_score(mean: Mean, scaling: Scaling) -> float:
    """Return what a response scores whose every sentence is as likely right as wrong, P(yes) =
    0.5 (ours).

    With the neutral scale that is z = 0: 0.5 under Phi and for plain P(yes), 0 for z itself, and
    the floor where a mean needs positive numbers and the floor lies above.
    """
    score = response_score([0.0 if scaling.normalise else 0.5], mean, scaling)
    assert score is not None
    return score


def response_score(scores: Sequence[float], mean: Mean, scaling: Scaling) -> float | None:
    """Return the response's score from its sentences' averages (z, or P(yes) when not normalised).

    Phi maps every z to (0, 1) before any mean. Epsilon is a floor where a mean needs positive
    numbers: under the harmonic and geometric means, for z and for P(yes) alike. None for no scores.
    """
    if not scores:
        return None
    values = list(scores)
    if scaling.key == "phi":
        values = [normal_cdf(value) for value in values]
    elif mean in _NEED_POSITIVE:
        values = [max(value, scaling.epsilon) for value in values]
    match mean:
        case "arithmetic":
            return fsum(values) / len(values)
        case "min":
            return min(values)
        case "max":
            return max(values)
        # Phi of a z below -38 is 0 in floating point.
        case "harmonic":
            return 0.0 if min(values) == 0 else len(values) / fsum(1 / value for value in values)
        case "geometric":
            return 0.0 if min(values) == 0 else exp(fsum(map(log, values)) / len(values))


def sentence_score(
    values: Sequence[float | None],
    settings: SlmSettings,
    threshold: float | None,
    behind: Sequence[str],
) -> Score:
    """Return a sentence's average over judges, taken for a response of its own.

    `values` are the judges' z, or their P(yes) when not normalised; None where unscored.
    """
    score = _score(settings.mean, (average(values),), settings, threshold, behind)
    return score.model_copy(
        update={
            "name": "slm_sentence",
            "formula": f"slm.sentence.{settings.scaling().key}",
            "inputs": tuple(_known(values)),
        }
    )


def response_scores(
    averages: Sequence[float | None],
    wholes: Sequence[float | None],
    settings: SlmSettings,
    threshold: float | None,
    behind: Sequence[str],
    behind_wholes: Sequence[str],
) -> tuple[Score, ...]:
    """Return the response's score under every mean, the chosen one first with its threshold.

    The last is the baseline, the judges' mean P(yes) for the whole response, where it was asked.
    """
    chosen = settings.mean
    means: tuple[Mean, ...] = (chosen, *(mean for mean in MEANS if mean != chosen))
    scores = [
        _score(mean, averages, settings, threshold if mean == chosen else None, behind)
        for mean in means
    ]
    if behind_wholes:
        known = _known(wholes)
        scores.append(
            Score(
                name="slm_whole",
                value=average(known),
                formula="slm.whole",
                inputs=tuple(known),
                behind=tuple(behind_wholes),
            )
        )
    return tuple(scores)


def verdict_of(score: Score) -> Verdict:
    """Return the verdict: supported above the threshold; nothing follows without a score or a
    threshold.
    """
    if score.value is None or score.threshold is None:
        return "unchecked"
    return "supported" if score.value > score.threshold else "doubtful"


def _score(
    mean: Mean,
    averages: Sequence[float | None],
    settings: SlmSettings,
    threshold: float | None,
    behind: Iterable[str],
) -> Score:
    scaling = settings.scaling()
    known = _known(averages)
    value = response_score(known, mean, scaling)
    # z beyond three deviations is drawn at 3.
    low = 0.0 if scaling.key != "epsilon" or mean in ("harmonic", "geometric") else -3.0
    return Score(
        name=f"slm_{mean}",
        value=value,
        threshold=threshold,
        flagged=value is not None and threshold is not None and not value > threshold,
        low=low,
        high=3.0 if scaling.key == "epsilon" else 1.0,
        formula=f"slm.{mean}.{scaling.key}",
        inputs=tuple(known),
        behind=tuple(behind),
    )


def _known(values: Iterable[float | None]) -> list[float]:
    return [value for value in values if value is not None]


# What a judge's scores are measured against: shipped calibration, or its own earlier scores.
#
# The paper normalises by the running mean and deviation of a judge's earlier scores. A number that
# moved with every call would make runs depend on each other, and no run could be repeated from its
# record. So it stands still within a run: a judge is measured against the calibration shipped for
# it, or against the earlier runs a visitor chooses to count (`history_of`), which are handed over
# as a setting and recorded with it.

_MIN_HISTORY = 30
"""Earlier scores from which on a judge is measured against them (ours)."""


def shipped_scale(judge: str, language: Language) -> JudgeScale:
    """Return the scale shipped for a judge under the present prompts; neutral for one never
    measured.
    """
    entry: dict[str, Any] | None = calibration("slm").get("judges", {}).get(judge, {}).get(language)
    if entry is None or entry["prompt"] != load_prompts("slm").hash:
        return JudgeScale()
    return JudgeScale(mu=entry["mu"], sigma=entry["sigma"], n=entry["n"], source="calibrated")


def shipped_panel(judges: Iterable[str]) -> dict[str, Any]:
    """Return thresholds and report of exactly these judges together; empty if they were never
    measured.
    """
    wanted = sorted(judges)
    panels = calibration("slm").get("panels", ())
    return next((panel for panel in panels if panel["judges"] == wanted), {})


def shipped_thresholds(judges: Iterable[str]) -> dict[str, dict[str, dict[str, float]]]:
    """Return thresholds by what they were tuned for, by kind of scale, by mean.

    Those calibrated for these judges together, else for the panel that did best; empty when there
    is no calibration.
    """
    panel = shipped_panel(judges)
    if not panel:
        panels = calibration("slm").get("panels", ())
        panel = max(panels, key=lambda each: each["report"]["auroc"]["harmonic"], default={})
    return panel.get("thresholds", {})


def scale_in_use(name: str, language: Language, settings: SlmSettings) -> JudgeScale:
    """Return what a judge's scores are measured against: enough earlier ones, else what is shipped.

    Without z no scale is used; a threshold then rests on what was shipped with it alone.
    """
    earlier = settings.history.get(name) if settings.normalise else None
    if earlier is not None and earlier.n >= _MIN_HISTORY and earlier.sigma > 0:
        return earlier.model_copy(update={"source": "history"})
    return shipped_scale(name, language)


def threshold_in_use(
    settings: SlmSettings, judges: Sequence[PanelJudge], language: Language
) -> tuple[float | None, ThresholdSource]:
    """Return the threshold on the response's score under the chosen mean, and where it
    comes from.
    """
    if settings.threshold is not None:
        return settings.threshold, "set"
    scaling = settings.scaling()
    if any(judge.scale.source == "neutral" for judge in judges):
        fitted = limit_for("slm", "own", language, [judge.name for judge in judges])
        usual = (settings.mean, scaling) == (MEANS[0], Scaling())
        if fitted is not None and usual:
            return fitted.value, "statements"
        # What is usual for other judges says nothing about one that was never measured.
        return even_score(settings.mean, scaling), "neutral"
    shipped = shipped_thresholds(judge.name for judge in judges)
    value = shipped.get(settings.tuned_for, {}).get(scaling.key, {}).get(settings.mean)
    if value is None:
        return None, "missing"
    measured = all(judge.scale.source == "calibrated" for judge in judges)
    usual = settings.epsilon == Scaling().epsilon or scaling.key == "phi"
    return value, "calibrated" if measured and usual else "borrowed"


def history_of(traces: Iterable[Trace], language: Language) -> dict[str, JudgeScale]:
    """Return the mean and deviation of every judge's scores in earlier runs, as
    `SlmSettings.history`.

    Counts first-token probabilities given under the present prompts in `language`, every distinct
    statement of a question once, so that running a question again changes nothing.
    """
    scores: dict[str, dict[tuple[str, str], float]] = defaultdict(dict)
    for trace in traces:
        header = trace.header
        if header.language != language or header.prompts.get("slm") != load_prompts("slm").hash:
            continue
        for event in trace.of_method("slm"):
            if isinstance(event, Judged) and event.what == "cell" and event.scores:
                value, said = event.scores[0].value, event.detail
                if value is not None and isinstance(said, CellJudged) and said.source != "text":
                    scores[event.label][header.spec.question, event.text] = value
    return {
        judge: scale_of_scores(list(found.values()), "history") for judge, found in scores.items()
    }

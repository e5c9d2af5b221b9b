"""From judges' numbers to scores with thresholds, and to verdicts: the SLM check's last steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from pipelines.methods.slm.scale import MIN_HISTORY
from pipelines.methods.slm.scores import MEANS, Mean, Scaling, average, even_score, response_score
from pipelines.methods.slm.settings import SlmSettings
from pipelines.run.events import Score, Verdict
from pipelines.run.findings import JudgeScale, PanelJudge, ThresholdSource

Thresholds = Mapping[str, Mapping[str, Mapping[str, float]]]


def scale_in_use(shipped: JudgeScale, name: str, settings: SlmSettings) -> JudgeScale:
    """What a judge's scores are measured against: enough earlier ones, else what is shipped.

    Without z no scale is used; a threshold then rests on what was shipped with it alone.
    """
    earlier = settings.history.get(name) if settings.normalise else None
    if earlier is not None and earlier.n >= MIN_HISTORY and earlier.sigma > 0:
        return earlier.model_copy(update={"source": "history"})
    return shipped


def threshold_in_use(
    settings: SlmSettings, shipped: Thresholds, judges: Sequence[PanelJudge]
) -> tuple[float | None, ThresholdSource]:
    """The threshold on the response's score under the chosen mean, and where it comes from."""
    if settings.threshold is not None:
        return settings.threshold, "set"
    if any(judge.scale.source == "neutral" for judge in judges):
        # What is usual for other judges says nothing about one that was never measured.
        return even_score(settings.mean, settings.scaling()), "neutral"
    by_mean = shipped.get(settings.tuned_for, {}).get(settings.scaling().key, {})
    value = by_mean.get(settings.mean)
    if value is None:
        return None, "missing"
    measured = all(judge.scale.source == "calibrated" for judge in judges)
    usual = settings.epsilon == Scaling().epsilon or settings.scaling().key == "phi"
    return value, "calibrated" if measured and usual else "borrowed"


def sentence_score(
    values: Sequence[float | None],
    settings: SlmSettings,
    threshold: float | None,
    behind: Sequence[str],
) -> Score:
    """A sentence's average over judges, taken for a response of its own.

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
    """The response's score under every mean, the chosen one first with its threshold.

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
    """Supported above the threshold; nothing follows without a score or a threshold."""
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


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]

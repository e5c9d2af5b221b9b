"""The SLM check's decision: from what judges said to a verdict, for any settings, no call made."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

from pydantic import Field

from pipelines.methods.base import Decision
from pipelines.methods.slm.reading import Cell, Judge, Reading, Statement
from pipelines.methods.slm.scale import MIN_HISTORY
from pipelines.methods.slm.scores import (
    MEANS,
    JudgeScale,
    Mean,
    Scaling,
    average,
    even_score,
    response_score,
    z_score,
)
from pipelines.methods.slm.settings import SlmSettings
from pipelines.run.events import Score, Verdict
from pipelines.types import Answer, Frozen

__all__ = ["JudgeInUse", "SlmDecision", "ThresholdSource", "weigh"]

Row = tuple[float | None, ...]
ThresholdSource = Literal["set", "calibrated", "borrowed", "neutral", "missing"]
"""A threshold is borrowed where it was measured with another scale or floor.

It is neutral, the score of P(yes) = 0.5, as soon as one judge was never measured: what is usual for
other judges says nothing about that one.
"""


class JudgeInUse(Frozen):
    """A judge and what its scores are measured against with the settings at hand."""

    role: str
    name: str
    scale: JudgeScale


class SlmDecision(Decision):
    """Every number between the judges' words and the verdict.

    `matrix[j][m]` is judge m's P(yes) for sentence j and `z[j][m]` its distance from the judge's
    mean in standard deviations, None where unscored. `averages[j]` is the mean of a sentence's z
    over judges (of its P(yes) when not normalised); `sentence_scores[j]` is that number taken for
    a response of its own, and `verdicts[j]` what follows from it. `scores` holds the response's
    score under every mean, `response` the same with formulas, the chosen one first and the
    baseline, P(yes) on the whole response, last. `supported` is None when nothing was decided.
    """

    text: str = ""
    sentences: tuple[Statement, ...] = ()
    judges: tuple[JudgeInUse, ...] = ()
    matrix: tuple[Row, ...] = ()
    z: tuple[Row, ...] = ()
    averages: Row = ()
    sentence_scores: tuple[Score, ...] = ()
    verdicts: tuple[Verdict, ...] = ()
    scores: dict[Mean, float | None] = Field(default_factory=dict)
    response: tuple[Score, ...] = ()
    threshold: float | None = None
    threshold_source: ThresholdSource = "missing"
    supported: bool | None = None

    @property
    def verdict(self) -> Verdict:
        """The verdict on the whole answer."""
        return _verdict(self.supported)


def weigh(reading: Reading, settings: SlmSettings, *, complete: bool) -> SlmDecision:
    """The decision that follows from `reading`; its answer is known when it is `complete`."""
    panel, scaling, mean = reading.panel, settings.scaling(), settings.mean
    cells = {(cell.role, cell.sentence): cell for cell in reading.cells}
    judges = [_in_use(judge, reading, settings) for judge in panel.judges]
    rows = [
        [cells.get((judge.role, number)) for judge in judges]
        for number in range(len(panel.sentences))
    ]
    matrix = tuple(tuple(cell and cell.p_yes for cell in row) for row in rows)
    z = tuple(
        tuple(
            None if value is None else z_score(value, judge.scale)
            for value, judge in zip(row, judges, strict=True)
        )
        for row in matrix
    )
    averages = tuple(map(average, z if settings.normalise else matrix))
    threshold, source = _threshold(settings, panel.thresholds, judges)
    sentence_scores = tuple(
        _score("slm_sentence", (value,), mean, scaling, threshold, _spans(row), inputs=inputs)
        for value, row, inputs in zip(
            averages, rows, z if settings.normalise else matrix, strict=True
        )
    )
    behind = _spans(cell for row in rows for cell in row)
    response = [_score(f"slm_{mean}", averages, mean, scaling, threshold, behind)]
    response += [
        _score(f"slm_{other}", averages, other, scaling, None, behind)
        for other in MEANS
        if other != mean
    ]
    if settings.whole_response:
        response += _whole([cells.get((judge.role, None)) for judge in judges])
    supported = _supported(response[0])
    return SlmDecision(
        flagged=response[0].flagged,
        score=response[0],
        answer=_answer(reading, response[0]) if complete else None,
        text=panel.text,
        sentences=panel.sentences,
        judges=tuple(judges),
        matrix=matrix,
        z=z,
        averages=averages,
        sentence_scores=sentence_scores,
        verdicts=tuple(_verdict(_supported(score)) for score in sentence_scores),
        scores={each: response_score(_known(averages), each, scaling) for each in MEANS},
        response=tuple(response),
        threshold=threshold,
        threshold_source=source,
        supported=supported,
    )


def _in_use(judge: Judge, reading: Reading, settings: SlmSettings) -> JudgeInUse:
    # A text counts 0 or 1: what probabilities were measured to be says nothing about that.
    by_text = any(c.role == judge.role and c.source == "text" for c in reading.cells)
    # Without z no scale is used: then a threshold rests on what was shipped with it alone.
    earlier = settings.history.get(judge.name) if settings.normalise else None
    scale = JudgeScale() if by_text else judge.shipped
    if not by_text and earlier is not None and earlier.n >= MIN_HISTORY and earlier.sigma > 0:
        scale = earlier.model_copy(update={"source": "history"})
    return JudgeInUse(role=judge.role, name=judge.name, scale=scale)


def _threshold(
    settings: SlmSettings,
    shipped: Mapping[str, Mapping[str, Mapping[str, float]]],
    judges: Sequence[JudgeInUse],
) -> tuple[float | None, ThresholdSource]:
    if settings.threshold is not None:
        return settings.threshold, "set"
    if any(judge.scale.source == "neutral" for judge in judges):
        return even_score(settings.mean, settings.scaling()), "neutral"
    by_mean = shipped.get(settings.tuned_for, {}).get(settings.scaling().key, {})
    value = by_mean.get(settings.mean)
    if value is None:
        return None, "missing"
    measured = all(judge.scale.source == "calibrated" for judge in judges)
    usual = settings.epsilon == Scaling().epsilon or settings.scaling().key == "phi"
    return value, "calibrated" if measured and usual else "borrowed"


def _score(
    name: str,
    averages: Sequence[float | None],
    mean: Mean,
    scaling: Scaling,
    threshold: float | None,
    behind: tuple[str, ...],
    *,
    inputs: Sequence[float | None] | None = None,
) -> Score:
    value = response_score(_known(averages), mean, scaling)
    low, high = _bounds(mean, scaling)
    kind = "sentence" if name == "slm_sentence" else mean
    return Score(
        name=name,
        value=value,
        threshold=threshold,
        flagged=value is not None and threshold is not None and not value > threshold,
        low=low,
        high=high,
        formula=f"slm.{kind}.{scaling.key}",
        inputs=tuple(_known(averages if inputs is None else inputs)),
        behind=behind,
    )


def _bounds(mean: Mean, scaling: Scaling) -> tuple[float, float]:
    """The ends of the scale that a score is drawn on; z beyond three deviations is drawn at 3."""
    if scaling.key != "epsilon":
        return 0.0, 1.0
    return (0.0 if mean in ("harmonic", "geometric") else -3.0), 3.0


def _whole(cells: Sequence[Cell | None]) -> list[Score]:
    if not any(cells):
        return []
    known = _known([cell and cell.p_yes for cell in cells])
    return [
        Score(
            name="slm_whole",
            value=average(known),
            formula="slm.whole",
            inputs=tuple(known),
            behind=_spans(cells),
        )
    ]


def _answer(reading: Reading, headline: Score) -> Answer:
    flags = list(reading.panel.flags)
    if any(cell.source == "text" for cell in reading.cells):
        flags.append("judge_by_text")
    if any(cell.error is not None for cell in reading.cells):
        flags.append("judge_failed")
    if headline.value is None and reading.panel.sentences:
        flags.append("not_checked")
    text = reading.panel.text
    return Answer(text=text, original=text, flags=tuple(flags))


def _supported(score: Score) -> bool | None:
    if score.value is None or score.threshold is None:
        return None
    return score.value > score.threshold


def _verdict(supported: bool | None) -> Verdict:
    if supported is None:
        return "unchecked"
    return "supported" if supported else "doubtful"


def _known(values: Sequence[float | None]) -> list[float]:
    return [value for value in values if value is not None]


def _spans(cells: Iterable[Cell | None]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(cell.span for cell in cells if cell is not None))

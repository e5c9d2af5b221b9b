"""What judges said, read from the store for tables and calibrations."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from pipelines.evaluation.judging.calibration import GradedAnswer, JudgeCalibration
from pipelines.evaluation.judging.facts import FactSpec, fact_values
from pipelines.evaluation.judging.runner import answers_of
from pipelines.evaluation.judging.spec import Judgement, JudgeSpec
from pipelines.evaluation.results.packed import PackedScores
from pipelines.evaluation.results.scores import (
    FACT_METRICS,
    FACTSCORE,
    JUDGED,
    WEAK,
    JudgeInfo,
)
from pipelines.store.evaluations import EvaluationStore, JudgementStore, StoredJudge

_SYSTEMS = 4
"""So many systems have their corrected rate in one line; the command prints all."""


def read_judge(stored: StoredJudge) -> JudgeSpec | FactSpec:
    """Return who a stored judge is: one of whole answers, or one of their facts."""
    kind = FactSpec if stored.spec.get("kind") == "facts" else JudgeSpec
    return kind.model_validate(stored.spec)


def judges_of_answers(judges: Sequence[StoredJudge]) -> list[StoredJudge]:
    """Return the judges that grade whole answers."""
    return [one for one in judges if isinstance(read_judge(one), JudgeSpec)]


def column_names(judges: Sequence[StoredJudge]) -> dict[str, str]:
    """Return a map from fingerprint to the column of each judge: "judged", "judged 2", and
    "factscore" of one of facts; the first to begin first.
    """
    names: dict[str, str] = {}
    seen: Counter[str] = Counter()
    for one in judges:
        spec = read_judge(one)
        name = FACTSCORE if isinstance(spec, FactSpec) else JUDGED
        seen[name] += 1
        numbered = name if seen[name] == 1 else f"{name} {seen[name]}"
        names[one.judge] = f"{numbered}{WEAK if spec.weak else ''}"
    return names


def graded_answers(
    store: EvaluationStore,
    evaluation: str,
    owner: str,
    judge: str,
    systems: Sequence[str],
) -> list[GradedAnswer]:
    """Return the answers of an evaluation that `judge` has judged, undecided ones too."""
    said = store.judgements.judged(evaluation, owner, judge)
    return [
        GradedAnswer(
            one.item,
            systems[one.system],
            one.group,
            Judgement.model_validate(said[one.number]),
            one.repeat,
        )
        for one in answers_of(store, evaluation, owner)
        if one.number in said
    ]


def with_judgements(
    judgements: JudgementStore,
    evaluation: str,
    owner: str,
    scores: PackedScores,
    tasks: NDArray[np.intp],
) -> tuple[PackedScores, dict[str, JudgeInfo]]:
    """Return the scores with the values of every judge, and who the judges are, by column.

    `tasks` are the numbers of their tasks, in order. An undecided answer has no value. Without
    judges the scores are what they were.
    """
    judges = judgements.judges(evaluation, owner)
    columns = column_names(judges)
    infos = dict[str, JudgeInfo]()
    for stored in judges:
        column = columns[stored.judge]
        spec = read_judge(stored)
        said = judgements.judged(evaluation, owner, stored.judge)
        undecided = 0
        if column == FACTSCORE:
            # One scorer for all: what a method said of its own facts is no score beside it.
            own: dict[str, float | None] = dict.fromkeys(FACT_METRICS)
            scores = scores.with_values(np.arange(len(scores)), [own] * len(scores))
        places: list[int] = []
        told: list[dict[str, float | None]] = []
        for number, body in said.items():
            judgement = Judgement.model_validate(body)
            undecided += judgement.undecided
            values: dict[str, float | None] = {column: judgement.value}
            if isinstance(spec, FactSpec):
                suffix = column.removeprefix(FACTSCORE)
                values = {
                    f"{name}{suffix}": value for name, value in fact_values(judgement).items()
                }
            # Sentences of one text are scores of one task.
            first, behind = np.searchsorted(tasks, [number, number + 1]).tolist()
            places += range(first, behind)
            told += [values] * (behind - first)
        scores = scores.with_values(np.array(places, dtype=np.intp), told)
        held = stored.calibration
        calibration = JudgeCalibration.model_validate(held) if held else None
        infos[column] = JudgeInfo(
            title=spec.title,
            weak=spec.weak,
            judged=len(said),
            undecided=undecided,
            calibration=calibration_line(calibration) if calibration else "",
            source=calibration.source if calibration else "",
            labels=calibration.agreement.accuracy.n if calibration else 0,
            accuracy=calibration.agreement.accuracy.value if calibration else None,
            kappa=calibration.agreement.kappa.value if calibration else None,
        )
    return scores, infos


def calibration_line(found: JudgeCalibration) -> str:
    """Return the agreement, and the corrected rates of the first systems, in one line."""
    kappa = found.agreement.kappa
    accuracy = found.agreement.accuracy
    parts = [f"agreement with {found.source}: {accuracy.value:.2f} of {accuracy.n}"]
    if kappa.value is not None:
        ends = "" if kappa.low is None else f" [{kappa.low:.2f}, {kappa.high:.2f}]"
        parts.append(f"kappa {kappa.value:.2f}{ends}")
    for system, rate in list(found.rates.items())[:_SYSTEMS]:
        best = rate.corrected or rate.rogan_gladen
        if best is not None and best.value is not None:
            parts.append(
                f"{system} {rate.judge:.2f}, corrected {best.value:.2f}"
                f" [{best.low:.2f}, {best.high:.2f}]"
            )
    for system, estimate in list(found.transferred.items())[:_SYSTEMS]:
        if estimate is not None and estimate.value is not None:
            parts.append(
                f"{system} corrected by errors there: {estimate.value:.2f}"
                f" [{estimate.low:.2f}, {estimate.high:.2f}]"
            )
    return "; ".join(parts)

"""Systems made of others, from their scores alone: detectors combined, and a repair that a detector
triggers.
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, nan

import numpy as np

from pipelines.errors import failure
from pipelines.evaluation.results.packed import ItemScore, PackedScores
from pipelines.evaluation.results.scores import (
    COSTS,
    DETECTOR_VALUES,
    HALLUCINATED,
    HALLUCINATION_SCORE,
    Evaluation,
    ScoredSystem,
)
from pipelines.evaluation.results.table import Grid, cost_reader, detector_arrays


def combined(evaluation: Evaluation, name: str, systems: Sequence[str]) -> Evaluation:
    """Return `evaluation` with a further system `name`, which combines the detectors `systems`.

    Its score of an item is the mean of theirs, each less its mean and over its standard deviation
    on the items that all of them score (Manakul and others 2023, section 5.4); its cost is the sum
    of theirs. Raises InvalidInputError for a name that is there already, for fewer than two
    systems, and for a system that is no detector here.
    """
    if name in evaluation.systems or not name:
        raise failure("evaluation.same_name", name=name)
    grid = Grid.of(evaluation)
    known, scores, labels = detector_arrays(evaluation, grid)
    missing = [one for one in systems if one not in known]
    if missing or len(set(systems)) < 2:
        raise failure("evaluation.no_detector", systems=list(systems), known=known)
    rows = [known.index(one) for one in dict.fromkeys(systems)]
    chosen, label = scores[rows], labels[rows[0]]
    held = np.flatnonzero(np.isfinite(chosen).all(axis=0) & np.isfinite(label))
    if not held.size:
        raise failure("evaluation.no_detector", systems=list(systems), known=known)
    chosen = chosen[:, held]
    spread = chosen.std(axis=1, keepdims=True)
    normal = (chosen - chosen.mean(axis=1, keepdims=True)) / np.where(spread > 0, spread, 1)
    places = [grid.systems.index(one) for one in dict.fromkeys(systems)]
    costs = {cost: grid.means(grid.read(cost_reader(cost)))[places][:, held] for cost in COSTS}
    made = PackedScores.of(
        ItemScore(
            item=grid.items[item],
            group=grid.groups[item],
            method=name,
            values={
                HALLUCINATION_SCORE: float(normal[:, place].mean()),
                HALLUCINATED: float(label[item]),
            },
            cost={
                cost: float(values[:, place].sum())
                for cost, values in costs.items()
                if np.isfinite(values[:, place]).all()
            },
        )
        for place, item in enumerate(held)
    )
    first = evaluation.systems[systems[0]]
    system = ScoredSystem(
        method=first.method, settings={"combines": list(systems)}, models=first.models
    )
    return evaluation.model_copy(
        update={
            "systems": {**evaluation.systems, name: system},
            "scores": PackedScores.joined([evaluation.scores, made]),
        }
    )


def triggered(
    evaluation: Evaluation,
    name: str,
    detector: str,
    repair: str,
    cut: float,
    *,
    share: bool = False,
) -> Evaluation:
    """Return `evaluation` with a further system: `repair`, where the detector asks for it.

    An item whose hallucination score by `detector` is above `cut` has the answer that `repair` ends
    with, any other the one that it began with (Rowen's comparison of detectors as triggers of its
    retrieval). With `share`, `cut` is in [0, 1]: so large a part of the items is above it, rounded,
    and fewer where scores are equal there. An item that the detector does not score asks for
    nothing. The repair has to have been made for every item, such as by Rowen with a threshold
    that nothing reaches. Raises InvalidInputError for a name that is there already and for systems
    that are no detector and no repair.
    """
    if name in evaluation.systems or not name:
        raise failure("evaluation.same_name", name=name)
    scores = evaluation.scores
    asked = scores.taken(scores.methods.those(detector))
    read = asked.column("values", HALLUCINATION_SCORE)
    doubts = read[np.isfinite(read)]
    if share and len(doubts):
        highest = np.sort(doubts)[::-1]
        above = round(cut * len(highest))
        cut = float(highest[above]) if above < len(highest) else -inf
    said = dict(zip(asked.item_repeats(), zip(asked, read.tolist(), strict=True), strict=True))
    repairs = scores.taken(scores.methods.those(repair) & ~scores.failed)
    made = PackedScores.of(
        # What has no score (NaN) is above nothing.
        _triggered(one, first, name, goes=doubt > cut)
        for one, key in zip(repairs, repairs.item_repeats(), strict=True)
        if one.original_values
        for first, doubt in [said.get(key, (None, nan))]
    )
    if not made or not len(doubts):
        raise failure("evaluation.no_trigger", detector=detector, repair=repair)
    first = evaluation.systems[repair]
    system = ScoredSystem(
        method=first.method,
        settings={"triggered_by": detector, "above": cut},
        models=first.models,
    )
    return evaluation.model_copy(
        update={
            "systems": {**evaluation.systems, name: system},
            "scores": PackedScores.joined([evaluation.scores, made]),
        }
    )


def _triggered(repair: ItemScore, asked: ItemScore | None, name: str, *, goes: bool) -> ItemScore:
    values = repair.values if goes else repair.values | repair.original_values
    cost = dict(asked.cost) if asked else {}
    for what, amount in repair.cost.items() if goes else ():
        cost[what] = cost.get(what, 0.0) + amount
    # The share of items that it repairs is the mean of its searches.
    cost |= {} if goes else {"retrievals": 0.0}
    return repair.model_copy(
        update={
            "method": name,
            "run": "",
            "values": {
                metric: value for metric, value in values.items() if metric not in DETECTOR_VALUES
            },
            "cost": cost,
            "answer": repair.answer if goes else repair.original,
        }
    )

"""A detector made of several: the mean of their normalised scores (SelfCheckGPT's combination)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pipelines.errors import failure
from pipelines.evaluation.results.scores import (
    COSTS,
    HALLUCINATED,
    HALLUCINATION_SCORE,
    Evaluation,
    ItemScore,
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
    made = tuple(
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
            "scores": (*evaluation.scores, *made),
        }
    )

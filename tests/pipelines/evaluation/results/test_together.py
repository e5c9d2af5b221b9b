"""A table shares its draws; every number in it is the one that is computed alone."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pipelines.errors import InvalidInputError
from pipelines.evaluation.results.scores import HALLUCINATED, HALLUCINATION_SCORE, Evaluation
from pipelines.evaluation.results.table import Grid, results_table, value_reader
from pipelines.evaluation.statistics.estimates import (
    Estimate,
    Estimator,
    Sampling,
    corrections,
    mean_estimates,
    paired_differences,
)
from tests.pipelines.evaluation.results.evaluations import binary, evaluation, score

SAMPLING = Sampling(resamples=120, permutations=99)


@st.composite
def evaluations(draw: st.DrawFn) -> Evaluation:
    """Up to three systems on up to 20 items, with gaps, ties, repeats, groups and failures."""
    source = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    items, grouped = draw(st.integers(1, 20)), draw(st.booleans())
    made = [
        score(
            f"q{item}",
            system,
            float(source.integers(2)),
            repeat=repeat,
            group=f"g{item // 3}" if grouped else "",
            error="timeout" if source.random() < 0.1 else "",
            answer=str(source.choice(["one", "two words"])),
            original="one",
            values={
                "accuracy": float(source.integers(2)),
                "f1": float(source.choice([0.25, source.random()])),
                HALLUCINATED: float(source.integers(2)),
                HALLUCINATION_SCORE: float(source.random()),
            },
            original_values={"accuracy": float(source.integers(2))},
        )
        for system in "abc"[: draw(st.integers(1, 3))]
        for item in range(items)
        for repeat in range(int(source.integers(0, 3)))
    ]
    return evaluation(made or [score("q0", "a", 1)])


def near(found: Estimate, wanted: Estimate) -> None:
    """Equal, but for the rounding of sums whose columns stand beside others."""
    assert found.model_dump(exclude={"low", "high", "value"}) == wanted.model_dump(
        exclude={"low", "high", "value"}
    )
    for name in ("value", "low", "high"):
        one, other = getattr(found, name), getattr(wanted, name)
        assert one == other or one == pytest.approx(other, rel=1e-12, abs=1e-14)


@settings(max_examples=25)
@given(evaluations())
def test_every_number_is_the_one_that_is_computed_alone(made: Evaluation) -> None:
    table = results_table(made, sampling=SAMPLING)
    grid = Grid.of(made)
    for info in table.metrics:
        values = grid.read(value_reader(info.name))
        means = grid.means(values)
        alone = mean_estimates(means, grid.groups, SAMPLING)
        for row, wanted in zip(table.rows, alone, strict=True):
            near(row.metrics[info.name], wanted)
        if info.name not in table.differences:
            continue
        pairs = paired_differences(means, grid.systems, grid.groups, SAMPLING)
        for found, wanted in zip(table.differences[info.name], pairs, strict=True):
            near(found.difference, wanted.difference)
            assert found.model_dump(exclude={"difference"}) == wanted.model_dump(
                exclude={"difference"}
            )
    originals = grid.read(value_reader("accuracy", original=True))
    finals = grid.read(value_reader("accuracy"))
    for k, row in enumerate(table.rows):
        if "accuracy" in row.corrections:
            before, after = grid.by_repeat(originals, k), grid.by_repeat(finals, k)
            wanted = corrections(Estimator(grid.groups, SAMPLING), before, after)()
            for name in ("corrected", "spoiled", "change"):
                near(getattr(row.corrections["accuracy"], name), getattr(wanted, name))


@settings(max_examples=15)
@given(evaluations())
def test_a_choice_of_metrics_is_taken_out_of_the_whole_table(made: Evaluation) -> None:
    whole = results_table(made, sampling=SAMPLING)
    names = [info.name for info in whole.metrics][-1:]
    chosen, computed = (
        whole.with_metrics(names),
        results_table(made, metrics=names, sampling=SAMPLING),
    )
    assert [info.name for info in chosen.metrics] == [info.name for info in computed.metrics]
    for found, wanted in zip(chosen.rows, computed.rows, strict=True):
        assert list(found.metrics) == list(wanted.metrics)
        for name, estimate in wanted.metrics.items():
            near(found.metrics[name], estimate)
        assert set(found.corrections) == set(wanted.corrections)
    assert list(chosen.differences) == list(computed.differences)
    assert chosen.bands == computed.bands
    assert chosen.detection == computed.detection


def test_a_metric_that_the_table_lacks_cannot_be_chosen() -> None:
    with pytest.raises(InvalidInputError, match="no metric 'bleu'"):
        results_table(binary(a=[1, 0])).with_metrics(["bleu"])

"""A detector made of several, worked out by hand."""

from __future__ import annotations

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.results.combining import combined
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.results.table import results_table
from pipelines.evaluation.statistics.estimates import Sampling
from tests.pipelines.evaluation.results.evaluations import evaluation, score

QUICK = Sampling(resamples=100, permutations=99)


def two_detectors() -> Evaluation:
    # On four items; c has no scores.
    scores = {"a": [1.0, 3.0, 1.0, 3.0], "b": [0.0, 10.0, 10.0, 20.0]}
    return evaluation([
        *(
            score(f"q{n}", system, None, cost={"calls": n}, values={
                "hallucination_score": value, "hallucinated": float(n > 1)})
            for system, row in scores.items()
            for n, value in enumerate(row)
        ),
        score("q0", "c", 1),
    ])  # fmt: skip


def test_it_is_the_mean_of_normalised_scores():
    found = combined(two_detectors(), "both", ["a", "b"])
    ours = [one for one in found.scores if one.method == "both"]
    # a: mean 2, deviation 1; b: mean 10, deviation sqrt(50).
    far = 10 / 50**0.5
    assert [one.values["hallucination_score"] for one in ours] == pytest.approx(
        [(-1 - far) / 2, 0.5, -0.5, (1 + far) / 2]
    )
    assert [one.cost["calls"] for one in ours] == [0, 2, 4, 6]
    table = results_table(found, sampling=QUICK)
    assert table.detection is not None
    assert "both" in table.detection.detectors


@pytest.mark.parametrize(
    ("name", "systems"), [("a", ["a", "b"]), ("x", ["a"]), ("x", ["a", "c"]), ("", ["a", "b"])]
)
def test_what_cannot_be_combined_is_refused(name: str, systems: list[str]):
    with pytest.raises(InvalidInputError):
        combined(two_detectors(), name, systems)

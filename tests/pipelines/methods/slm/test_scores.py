"""The SLM check's arithmetic against values worked out by hand."""

from math import exp, log, sqrt

import pytest

from pipelines.methods.slm.scores import (
    average,
    even_score,
    normal_cdf,
    response_score,
    scale_of_scores,
    z_score,
)
from pipelines.methods.slm.settings import MEANS, Mean, Scaling
from pipelines.run.findings import JudgeScale

PHI, EPSILON, RAW = Scaling(), Scaling(lift="epsilon", epsilon=0.1), Scaling(normalise=False)


def test_z_is_the_distance_from_the_judges_mean_in_deviations():
    # (0.9 - 0.6) / 0.2
    assert z_score(0.9, JudgeScale(mu=0.6, sigma=0.2)) == pytest.approx(1.5)
    assert z_score(0.5, JudgeScale(mu=0.6, sigma=0.2)) == pytest.approx(-0.5)


def test_a_judge_that_always_says_the_same_says_nothing():
    assert z_score(0.9, JudgeScale(mu=0.6, sigma=0.0)) == 0.0


def test_nothing_known_means_an_even_spread():
    # Uniform on [0, 1]: mean 1/2, deviation sqrt(1/12) = 0.2887; z of 1 is sqrt(3).
    assert JudgeScale() == JudgeScale(mu=0.5, sigma=sqrt(1 / 12), n=0, source="neutral")
    assert z_score(1.0, JudgeScale()) == pytest.approx(sqrt(3))


def test_a_scale_is_the_mean_and_the_population_deviation():
    # Mean 0.5; squares (0.3^2 + 0.1^2 + 0.1^2 + 0.3^2) / 4 = 0.05.
    scale = scale_of_scores([0.2, 0.4, 0.6, 0.8], "history")
    assert (scale.n, scale.source) == (4, "history")
    assert (scale.mu, scale.sigma) == (pytest.approx(0.5), pytest.approx(sqrt(0.05)))
    assert scale_of_scores([], "history") == JudgeScale()
    assert scale_of_scores([0.7], "history").sigma == 0.0


@pytest.mark.parametrize(
    ("z", "phi"), [(0, 0.5), (1, 0.841345), (-1, 0.158655), (1.959964, 0.975), (-9, 1.128588e-19)]
)
def test_phi_is_the_normal_distribution_function(z: float, phi: float):
    assert normal_cdf(z) == pytest.approx(phi, rel=1e-5)


def test_the_unscored_are_left_out_of_an_average():
    assert average([0.2, None, 0.6]) == pytest.approx(0.4)
    assert average([None, None]) is None
    assert average([]) is None


@pytest.mark.parametrize(
    ("mean", "score"),
    [
        # Phi(1) = 0.841345, Phi(-1) = 0.158655.
        ("harmonic", 2 / (1 / 0.841345 + 1 / 0.158655)),  # 0.266966
        ("arithmetic", 0.5),
        ("geometric", sqrt(0.841345 * 0.158655)),  # 0.365352
        ("min", 0.158655),
        ("max", 0.841345),
    ],
)
def test_means_of_phi(mean: Mean, score: float):
    assert response_score([1.0, -1.0], mean, PHI) == pytest.approx(score, rel=1e-5)


@pytest.mark.parametrize(
    ("mean", "score"),
    [
        # Only where a mean needs positive numbers does -1 become 0.1.
        ("harmonic", 2 / (1 / 1 + 1 / 0.1)),  # 0.181818
        ("geometric", sqrt(0.1)),
        ("arithmetic", 0.0),
        ("min", -1.0),
        ("max", 1.0),
    ],
)
def test_means_of_z_with_a_floor(mean: Mean, score: float):
    assert response_score([1.0, -1.0], mean, EPSILON) == pytest.approx(score)


@pytest.mark.parametrize(
    ("mean", "score"),
    [
        ("harmonic", 2 / (1 / 0.9 + 1 / 0.3)),  # 0.45
        ("geometric", exp((log(0.9) + log(0.3)) / 2)),
        ("arithmetic", 0.6),
        ("min", 0.3),
        ("max", 0.9),
    ],
)
def test_means_of_probabilities_that_are_not_normalised(mean: Mean, score: float):
    assert response_score([0.9, 0.3], mean, RAW) == pytest.approx(score)


def test_a_probability_of_zero_does_not_end_a_harmonic_mean():
    # Floor 0.01: 2 / (1 / 0.5 + 1 / 0.01)
    assert response_score([0.5, 0.0], "harmonic", RAW) == pytest.approx(2 / 102)


def test_a_z_too_low_for_floating_point_counts_as_zero():
    assert response_score([-50.0, 1.0], "harmonic", PHI) == 0.0
    assert response_score([-50.0, 1.0], "geometric", PHI) == 0.0


@pytest.mark.parametrize("scaling", [PHI, EPSILON, RAW], ids=lambda s: s.key)
@pytest.mark.parametrize("mean", MEANS)
def test_of_a_single_sentence_every_mean_is_its_score(mean: Mean, scaling: Scaling):
    one = response_score([0.4], mean, scaling)
    assert one == pytest.approx(normal_cdf(0.4) if scaling.key == "phi" else 0.4)
    assert response_score([], mean, scaling) is None


@pytest.mark.parametrize("mean", MEANS)
def test_an_even_response_scores_what_its_every_sentence_does(mean: Mean):
    floor = 0.1 if mean in ("harmonic", "geometric") else 0.0
    assert even_score(mean, PHI) == pytest.approx(0.5)
    assert even_score(mean, RAW) == pytest.approx(0.5)
    assert even_score(mean, EPSILON) == pytest.approx(floor)
    assert even_score(mean, EPSILON) == response_score([0.0] * 3, mean, EPSILON)


def test_the_paper_s_order_of_means_holds():
    scores = {mean: response_score([0.3, -0.4, 1.2], mean, PHI) for mean in MEANS}
    ordered = sorted(MEANS, key=lambda mean: scores[mean] or 0.0)
    assert ordered == ["min", "harmonic", "geometric", "arithmetic", "max"]

"""Values of settings that studies try."""

from __future__ import annotations

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.studies.grid import Axis, checked_axes, default_axis, points, read_axis
from pipelines.methods.registry import METHODS

WITHOUT_RANGE = {("slm", "history"), ("slm", "epsilon")}
DRAD, SLM = METHODS["drad"], METHODS["slm"]


def test_values_as_they_are_written():
    assert read_axis(DRAD, "theta_1=0.5:0.6:0.05").values == (0.5, 0.55, 0.6)
    assert read_axis(DRAD, "pooling=mean, min").values == ("mean", "min")
    assert read_axis(DRAD, "theta_2=null,1.5").values == (None, 1.5)
    assert read_axis(DRAD, "use_entropy").values == (False, True)


def test_the_whole_range_without_values():
    assert default_axis(SLM, "mean").values == ("harmonic", "arithmetic", "geometric", "min", "max")
    assert default_axis(METHODS["ever"], "max_rounds").values == (0, 1, 2, 3, 4)
    theta = default_axis(DRAD, "theta_1").values
    assert (theta[0], theta[1], theta[-1], len(theta)) == (0.0, 0.05, 1.0, 21)


@pytest.mark.parametrize(
    ("method", "setting"),
    [
        (name, setting)
        for name, one in METHODS.items()
        for setting in one.settings_type.REPLAYABLE
        # What a study has to be given values for.
        if (name, setting) not in WITHOUT_RANGE
    ],
)
def test_every_setting_that_is_offered_has_a_range(method: str, setting: str):
    assert len(default_axis(METHODS[method], setting).values) > 1


@pytest.mark.parametrize(("method", "setting"), sorted(WITHOUT_RANGE))
def test_a_setting_without_a_range_says_what_to_give(method: str, setting: str):
    with pytest.raises(InvalidInputError, match="no range of its own") as caught:
        default_axis(METHODS[method], setting)
    assert setting in str(caught.value.remedy)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("theta=0.5", "no setting 'theta'"),
        ("theta_1=2", "theta_1"),
        ("theta_1=null", "always has a value"),
        ("theta_1=0.5:0.4:0.1", "no range"),
        ("theta_1=0:1:0", "no range"),
        ("theta_1=0:nan:0.1", "no range"),
        ("theta_1=0:1:0.0001", "10,001 values"),
        ("pooling=median", "pooling"),
        ("max_tokens=x", "max_tokens"),
    ],
)
def test_what_cannot_be_is_refused(text: str, said: str):
    with pytest.raises(InvalidInputError, match=said):
        read_axis(DRAD, text)


@pytest.mark.parametrize(
    ("method", "text", "said"),
    [
        # A step so small that the number of steps is infinite, and ends whose distance is.
        ("drad", "theta_1=0:1:1e-320", "too many values"),
        ("drad", "theta_1=-1e308:1e308:1", "too many values"),
        ("slm", "history={}", "more than one word or number"),
    ],
)
def test_values_of_no_use_are_refused(method: str, text: str, said: str):
    with pytest.raises(InvalidInputError, match=said):
        read_axis(METHODS[method], text)


def test_points_are_all_combinations():
    axes = [Axis(name="a", values=(1, 2)), Axis(name="b", values=("x", None))]
    assert points(checked_axes(axes)) == (
        {"a": 1, "b": "x"}, {"a": 1, "b": None}, {"a": 2, "b": "x"}, {"a": 2, "b": None},
    )  # fmt: skip
    with pytest.raises(InvalidInputError, match="one or two different"):
        checked_axes([axes[0], axes[0]])
    with pytest.raises(InvalidInputError, match="400 points"):
        checked_axes([Axis(name=one, values=tuple(range(20))) for one in "ab"])

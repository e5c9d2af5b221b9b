"""What the environment lets visitors take."""

from __future__ import annotations

import pytest

from app.public.visitors import VisitorLimits
from pipelines.errors import InvalidInputError

NAMES = {
    "VERISCOPE_MAX_RUNS": "3",
    "VERISCOPE_MAX_RUNS_PER_VISITOR": "2",
    "VERISCOPE_MAX_QUEUE": "7",
    "VERISCOPE_IDLE_TIMEOUT": "2.5",
}
SET = VisitorLimits(max_runs=3, max_runs_per_visitor=2, max_queue=7, idle_timeout=2.5)


def test_an_empty_environment_leaves_the_defaults():
    assert VisitorLimits.of({}) == VisitorLimits()
    assert VisitorLimits.of({"VERISCOPE_MAX_RUNS": ""}) == VisitorLimits()


def test_every_limit_can_be_set(caplog: pytest.LogCaptureFixture):
    more = {
        "VERISCOPE_SECONDS": "60",
        "VERISCOPE_TOKENS": "100",
        "VERISCOPE_KEEP_HOURS": "1",
        "VERISCOPE_CUSTOM_SERVERS": "on",
    }
    found = VisitorLimits.of({**NAMES, **more})
    changed = {"seconds": 60.0, "tokens": 100, "keep_hours": 1.0, "custom_servers": True}
    assert found == SET.model_copy(update=changed)
    assert not caplog.records


@pytest.mark.parametrize("variable", ["VERISCOPE_MAX_RUNS", "VERISCOPE_IDLE_TIMEOUT"])
def test_what_cannot_be_used_is_named_as_it_was_set(variable: str):
    with pytest.raises(InvalidInputError, match=f"{variable} cannot be used") as caught:
        VisitorLimits.of({variable: "0"})
    assert caught.value.remedy

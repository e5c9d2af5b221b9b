"""Errors that come from another process or a recorded run, and how a command ends with one."""

from __future__ import annotations

import pickle
from errno import ENOSPC

import pytest

from pipelines.errors import (
    BusyError,
    ModelTimeoutError,
    RateLimitError,
    VeriscopeError,
    exit_status,
    failure,
    revived,
)
from pipelines.remote import not_again


@pytest.mark.parametrize(
    "error",
    [
        BusyError("Too many.", remedy="Wait.", provider="p"),
        RateLimitError("Slow down.", remedy="Wait.", retry_after=3.5),
        not_again(ModelTimeoutError("Too late.", remedy="Wait.")),
    ],
)
def test_they_arrive_as_they_were(error: VeriscopeError):
    found = pickle.loads(pickle.dumps(error))
    assert type(found) is type(error)
    assert str(found) == str(error)
    assert found.info() == error.info()
    assert vars(found) == vars(error)


def test_a_recorded_error_is_revived_as_it_was():
    late = ModelTimeoutError("Too late.", remedy="Wait.", provider="p")
    for error in (late, not_again(ModelTimeoutError("Too late.", remedy="Wait."))):
        found = revived(error.info())
        assert type(found) is ModelTimeoutError
        assert found.info() == error.info()
    # What is made anew can be tried again or not as its class says.
    assert failure("storage.busy").retryable
    assert not failure("storage.full").retryable


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (TimeoutError(), "(TimeoutError)"),
        (ConnectionError("gone"), "(ConnectionError)"),
        (OSError(ENOSPC, "No space left on device"), "(No space left on device)"),
    ],
)
def test_a_command_that_fails_for_the_system_says_how(
    error: OSError,
    said: str,
    capfd: pytest.CaptureFixture[str],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
):
    # The rest of the output is not discarded in this process.
    monkeypatch.setattr("pipelines.errors._discard_output", lambda: None)

    def command() -> int:
        raise error

    caplog.set_level("DEBUG", logger="pipelines.errors")
    assert exit_status(command) == 1
    assert said in capfd.readouterr().err
    (record,) = caplog.records
    assert record.exc_info is not None
    assert record.exc_info[1] is error
    assert (record.levelname == "ERROR") == (error.strerror is None)


def test_a_command_says_it_in_the_language_of_its_terminal(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def command() -> int:
        raise failure("asking.no_method")

    monkeypatch.setenv("LC_ALL", "zh_CN.UTF-8")
    assert exit_status(command) == 2
    assert "没有选择方法。请至少选择一种方法。" in capfd.readouterr().err

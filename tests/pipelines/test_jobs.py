"""Jobs: begun once for each key, watched, stopped, failed, kept and forgotten."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Event, Thread
from typing import Any

import pytest

from pipelines.errors import InvalidInputError, VeriscopeError, failure
from pipelines.jobs import Job, Jobs, JobStoppedError, NotYet, Steps, stop_jobs

_SECONDS = 60.0
"""So long a test waits for what it let go, before it fails."""


class Held:
    """Work in two steps that waits between them until it is let go, and counts how often."""

    def __init__(self, result: str = "made") -> None:
        self.begun, self.go = Event(), Event()
        self.times = 0
        self._result = result

    def __call__(self, job: Job[Steps, str]) -> str:
        self.times += 1
        job.tell(Steps(1, 2))
        self.begun.set()
        assert self.go.wait(_SECONDS)
        job.tell(Steps(2, 2))
        return self._result


@pytest.fixture
def held() -> Held:
    return Held()


def test_a_job_tells_how_far_it_is_and_ends_with_its_result(held: Held):
    jobs: Jobs[Steps, str] = Jobs()
    job = jobs.start("a", held, Steps(0, 2))
    assert held.begun.wait(_SECONDS)
    assert (job.key, job.state, job.progress, job.going_on) == ("a", "running", (1, 2), True)
    assert not job.wait(0)
    held.go.set()
    assert job.wait(_SECONDS)
    assert (job.state, job.progress, job.result()) == ("done", (2, 2), "made")
    assert jobs.get("a") is job
    assert jobs.get("b") is None
    assert job.error is None


def test_a_key_has_one_job_at_a_time_and_a_new_one_after_its_end(held: Held):
    jobs: Jobs[Steps, str] = Jobs()
    first = jobs.start("a", held, Steps())
    assert jobs.start("a", held, Steps()) is first
    held.go.set()
    assert jobs.start("b", held, Steps()).result() == "made"
    assert first.wait(_SECONDS)
    again = jobs.start("a", held, Steps())
    assert again is not first
    assert again.result() == "made"
    assert held.times == 3


def test_two_threads_that_start_the_same_begin_it_once(held: Held):
    jobs: Jobs[Steps, str] = Jobs()
    together, found = Barrier(2), list[Job[Steps, str]]()

    def race() -> None:
        together.wait(_SECONDS)
        found.append(jobs.start("a", held, Steps()))

    threads = [Thread(target=race) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(_SECONDS)
    held.go.set()
    assert found[0] is found[1]
    assert found[0].result() == "made"
    assert held.times == 1


def test_one_that_is_stopped_ends_with_its_next_step(held: Held):
    job = Job("a", held, Steps()).start()
    assert held.begun.wait(_SECONDS)
    job.stop()
    assert (job.stopped, job.state) == (True, "running")
    held.go.set()
    assert job.wait(_SECONDS)
    assert (job.state, job.error) == ("stopped", None)
    with pytest.raises(VeriscopeError):
        job.result()


def test_one_that_takes_no_step_any_more_is_done_though_it_was_stopped():
    begun, go = Event(), Event()

    def work(_: Job[None, int]) -> int:
        begun.set()
        assert go.wait(_SECONDS)
        return 3

    job = Job("a", work, None).start()
    assert begun.wait(_SECONDS)
    job.stop()
    go.set()
    assert (job.result(), job.state, job.stopped) == (3, "done", True)


def test_work_that_waits_for_something_else_says_what_ends_it():
    ready, calls = Event(), list[str]()

    def work(job: Job[None, None]) -> None:
        end = Event()
        job.when_stopped(lambda: calls.append("replaced"))
        job.when_stopped(lambda: (calls.append("ended"), end.set()))
        ready.set()
        assert end.wait(_SECONDS)
        # Too late for `stop` to call it: it is called at once.
        job.when_stopped(lambda: calls.append("at once"))
        job.go_on()

    job = Job("a", work, None).start()
    assert ready.wait(_SECONDS)
    job.stop()
    job.stop()
    assert job.wait(_SECONDS)
    assert (job.state, calls) == ("stopped", ["ended", "at once"])
    # There is nothing left to end.
    job.stop()
    assert calls == ["ended", "at once"]


def test_a_failure_has_its_key_and_facts_and_is_raised_as_it_was():
    def fails(_: Job[None, None]) -> None:
        raise failure("study.unknown", name="x", known=["y"])

    job = Job("a", fails, None).start()
    assert job.wait(_SECONDS)
    assert job.state == "failed"
    assert job.error is not None
    assert (job.error.key, job.error.facts["name"]) == ("study.unknown", "x")
    with pytest.raises(InvalidInputError):
        job.result()


def test_a_mistake_is_logged_and_shown_without_internals(caplog: pytest.LogCaptureFixture):
    def wrong(_: Job[None, None]) -> None:
        raise ZeroDivisionError("/a/secret/path")

    job = Job("a", wrong, None).start()
    assert job.wait(_SECONDS)
    assert job.error is not None
    assert job.error.key == "asking.unexpected"
    assert "secret" not in job.error.model_dump_json()
    assert "ZeroDivisionError" in caplog.text


def test_in_turn_one_follows_the_other_and_what_waits_is_stopped_at_once():
    jobs: Jobs[Steps, str] = Jobs(in_turn=True)
    first, second, third = Held("1"), Held("2"), Held("3")
    one, two, three = (
        jobs.start(key, work, Steps()) for key, work in (("a", first), ("b", second), ("c", third))
    )
    assert first.begun.wait(_SECONDS)
    assert (one.state, two.state, three.state) == ("running", "waiting", "waiting")
    two.stop()
    assert (two.state, two.going_on) == ("stopped", False)
    third.go.set()
    first.go.set()
    assert (one.result(), three.result()) == ("1", "3")
    assert second.times == 0
    # The thread has ended with the last of them; the next job has another one.
    assert jobs.start("d", third, Steps()).result() == "3"


def test_a_result_is_made_once_and_who_asks_again_does_not_wait():
    jobs: Jobs[None, str] = Jobs()
    go, times = Event(), list[str]()

    def make() -> str:
        times.append("made")
        assert go.wait(_SECONDS)
        return "result"

    with pytest.raises(NotYet) as asked:
        jobs.made("a", make, patience=0)
    with pytest.raises(NotYet) as again:
        jobs.made("a", make, patience=_SECONDS)
    assert again.value.job is asked.value.job
    go.set()
    assert asked.value.job.wait(_SECONDS)
    assert jobs.made("a", make, patience=0) == "result"
    assert times == ["made"]


def test_what_could_not_be_made_is_tried_again():
    jobs: Jobs[None, str] = Jobs()
    outcomes: list[Callable[[], str]] = [lambda: "result", _unreachable]

    def make() -> str:
        return outcomes.pop()()

    with pytest.raises(VeriscopeError, match="database"):
        jobs.made("a", make, patience=_SECONDS)
    assert jobs.get("a") is None
    assert jobs.made("a", make, patience=_SECONDS) == "result"


def test_those_that_ended_longest_ago_are_forgotten(held: Held):
    jobs: Jobs[Any, Any] = Jobs(kept=2)
    going = jobs.start("going", held, Steps())
    for key in "abc":
        assert jobs.start(key, lambda _: None, None).wait(_SECONDS)
    # What goes on is not forgotten, and counts.
    assert [jobs.get(key) is not None for key in ("going", *"abc")] == [True, False, False, True]
    held.go.set()
    assert going.wait(_SECONDS)


def test_one_is_forgotten_and_all_are_ended(held: Held):
    jobs: Jobs[Steps, str] = Jobs()
    one = jobs.start("a", held, Steps())
    assert held.begun.wait(_SECONDS)
    held.go.set()
    assert jobs.forget("a") is one
    assert jobs.forget("a") is None
    assert one.stopped
    assert one.wait(_SECONDS)
    others = [jobs.start(key, _until_stopped, Steps()) for key in "bc"]
    jobs.clear()
    assert [other.state for other in others] == ["stopped", "stopped"]
    assert jobs.get("b") is None
    last = Job("d", _until_stopped, Steps()).start()
    stop_jobs(_SECONDS)
    assert last.state == "stopped"


def _unreachable() -> str:
    raise failure("storage.unreachable")


def _until_stopped(job: Job[Steps, str]) -> str:
    end = Event()
    job.when_stopped(end.set)
    assert end.wait(_SECONDS)
    raise JobStoppedError

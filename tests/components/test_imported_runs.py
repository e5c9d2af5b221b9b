"""Whatever is accepted as an exported run is shown everywhere; all else is refused in words.

Every field of every kind of event is changed, one at a time. The whole set has some 20,000
changes; `make verify` takes every seventh, `make test` a few.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from signal import ITIMER_REAL, SIGALRM, setitimer, signal
from typing import Any, get_args

import pytest

from pipelines.errors import InvalidInputError
from pipelines.run.findings import Finding, StepDetail
from pipelines.store.exchange import export_lines, parse_lines
from tests.components.imported import Imported, runs
from tests.components.mutations import Mutation, mutations

_LONGEST = 30.0
"""Seconds after which a view is taken to hang."""

_EVERY = 7
_FEW = 110
_REFUSAL = re.compile(r"Line \d+ of the run cannot be used: .+")

Case = tuple[list[str], Mutation]


@cache
def cases() -> list[Case]:
    """Every change of every run, with the lines of that run."""
    seen: set[Any] = set()
    return [
        (lines, mutation)
        for trace in runs()
        for lines in [list(export_lines(trace))]
        for mutation in mutations(trace, seen)
    ]


@pytest.fixture
def in_time() -> Iterator[Callable[[], None]]:
    """Starts the clock again; what takes too long ends with an error."""

    def late(*_: Any) -> None:
        raise TimeoutError("A view takes too long.")

    before = signal(SIGALRM, late)
    yield lambda: setitimer(ITIMER_REAL, _LONGEST) and None
    setitimer(ITIMER_REAL, 0)
    signal(SIGALRM, before)


def tried(chosen: list[Case], in_time: Callable[[], None]) -> Counter[str]:
    """What became of the changed files; fails at the first that is accepted and cannot be shown."""
    found: Counter[str] = Counter()
    for number, (lines, mutation) in enumerate(chosen):
        in_time()
        try:
            events = parse_lines(mutation.applied(lines))
        except InvalidInputError as refused:
            found["refused"] += 1
            found["unclear"] += not _REFUSAL.match(refused.message)
            continue
        try:
            Imported(events).draw("zh" if number % 4 == 3 else "en")
        except Exception as error:
            raise AssertionError(f"This is accepted and cannot be shown: {mutation}") from error
        found["shown"] += 1
    assert not found["unclear"]
    return found


def test_the_runs_hold_every_kind_of_finding():
    unions = (get_args(Finding)[0], get_args(StepDetail)[0])
    wanted = {kind.model_fields["kind"].default for union in unions for kind in get_args(union)}
    events = [event for trace in runs() for event in trace.events]
    details = (getattr(event, "detail", None) for event in events)
    # None of these texts cites anything.
    assert {detail.kind for detail in details if detail is not None} == wanted - {"citation"}


def test_some_changes_of_a_field_are_shown_or_refused(
    in_time: Callable[[], None],
):
    chosen = cases()
    found = tried(chosen[:: len(chosen) // _FEW], in_time)
    assert found["refused"] > _FEW // 3
    assert found["shown"] > _FEW // 5


@pytest.mark.verify
def test_changes_of_every_field_are_shown_or_refused(
    in_time: Callable[[], None],
):
    chosen = cases()
    assert len(chosen) > 15_000
    found = tried(chosen[3::_EVERY], in_time)
    print(f"{found.total()} changes: {dict(found)}")

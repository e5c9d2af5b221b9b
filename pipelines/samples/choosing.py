"""Which of the recorded runs are shipped: those that show best what the methods are for.

The choice is a pure function of the outcomes. It is never made by hand.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations

from pipelines.store.recordings import ChosenRun, Outcome, RecordingChoice

MOST = 4
"""How many runs are shipped at most."""

SHOWS: dict[Outcome, int] = {"corrects": 2, "catches": 2, "mends": 2, "withholds": 1}
"""What a method is for. To give no answer is less than to give the right one."""

FAILS: dict[Outcome, int] = {
    "spoils": 5,
    "misses": 4,
    "stays_wrong": 3,
    "unchecked": 2,
    "doubts": 1,
}
"""What a method should not do, the worst first."""

Outcomes = Mapping[str, Mapping[str, Outcome]]
"""Of every run, in the order in which they were asked for, what each method made of it."""


def choose(outcomes: Outcomes, most: int = MOST) -> RecordingChoice:
    """Return at most `most` of the runs, and what each of them stands for.

    First as many methods as possible do what they are for in each language, as well as possible;
    then as many as possible fail once; then the runs are as few as possible, the failures as bad,
    and the runs as early in the list. Every method stands for itself in one run of a language and
    fails in at most one.
    """
    sets = [group for size in range(most + 1) for group in combinations(outcomes, size)]
    runs = max(sets, key=lambda group: _worth(outcomes, group))
    fails = _assigned(outcomes, runs, FAILS)
    shows: dict[str, dict[str, Outcome]] = {}
    for one_language in _by_language(runs):
        shows |= _assigned(outcomes, one_language, SHOWS)
    return RecordingChoice(
        recorded={run: dict(found) for run, found in outcomes.items()},
        runs=tuple(ChosenRun(run=run, shows=shows[run], fails=fails[run]) for run in runs),
    )


def _worth(outcomes: Outcomes, runs: Iterable[str]) -> tuple[int, ...]:
    runs = tuple(runs)
    by_language = [_best(outcomes, group, SHOWS) for group in _by_language(runs)]
    failed = _best(outcomes, runs, FAILS)
    return (
        sum(len(shown) for shown in by_language),
        sum(sum(shown.values()) for shown in by_language),
        len(failed),
        -len(runs),
        sum(failed.values()),
    )


def _by_language(runs: Iterable[str]) -> list[list[str]]:
    """Return the runs of each language, with which the id of a sample question begins: "zh-010"."""
    groups: dict[str, list[str]] = {}
    for run in runs:
        language, dash, _ = run.partition("-")
        groups.setdefault(language if dash else "", []).append(run)
    return list(groups.values())


def _best(outcomes: Outcomes, runs: Iterable[str], worth: Mapping[Outcome, int]) -> dict[str, int]:
    """Return, of every method, the most that one of its outcomes is worth, where any is worth
    something.
    """
    best: dict[str, int] = {}
    for run in runs:
        for method, outcome in outcomes[run].items():
            if outcome in worth:
                best[method] = max(best.get(method, 0), worth[outcome])
    return best


def _assigned(
    outcomes: Outcomes, runs: Iterable[str], worth: Mapping[Outcome, int]
) -> dict[str, dict[str, Outcome]]:
    """Return, for every run, its outcomes that no other run has better, each method in one run.

    Among equals it is the run that stands for the most methods, then the earliest.
    """
    best = _best(outcomes, runs, worth)
    able = {
        run: [m for m, found in outcomes[run].items() if worth.get(found) == best.get(m, -1)]
        for run in runs
    }
    ranked = sorted(runs, key=lambda run: -len(able[run]))
    place = {method: next(run for run in ranked if method in able[run]) for method in best}
    return {
        run: {m: found for m, found in outcomes[run].items() if place.get(m) == run} for run in runs
    }

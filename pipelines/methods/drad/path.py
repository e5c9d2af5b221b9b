"""DRAD's decision taken again from a recorded run, for other thresholds and poolings."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.methods.base import Decision
from pipelines.methods.drad import rhd
from pipelines.methods.drad.rhd import EntityReading, EntityVerdict, Thresholds
from pipelines.methods.drafts import recorded_drafts
from pipelines.run.events import Event, Judged, Retrieved, Revised, Score, SpanEnded, SpanStarted
from pipelines.run.trace import Trace
from pipelines.types import Answer

__all__ = ["DradDecision", "walk"]


class DradDecision(Decision):
    """RHD's verdicts on every recorded draft, and the drafts the run would go through.

    `readings[d]` and `verdicts[d]` belong to draft `d`; `path` lists draft numbers from the
    original to the last one known; `targets` the entity corrected at each step of the path.
    """

    readings: tuple[tuple[EntityReading, ...], ...] = ()
    verdicts: tuple[tuple[EntityVerdict, ...], ...] = ()
    path: tuple[int, ...] = ()
    targets: tuple[EntityReading, ...] = ()


def walk(
    trace: Trace,
    method: str,
    thresholds: Thresholds,
    *,
    skip_repeats: bool,
    same_start: bool,
    same_correction: bool,
) -> DradDecision:
    """Follow the recorded drafts for as long as the same entity would be corrected next.

    `same_start` says that the draft would be the recorded one, `same_correction` that searches and
    corrections would be; where either is False the walk ends where it would matter.
    """
    events = trace.of_method(method)
    drafts = {event.draft: event for event in recorded_drafts(trace, method)}
    if not drafts:
        return DradDecision(flagged=False)
    readings = [_readings(events, number) for number in range(len(drafts))]
    verdicts = [[rhd.judge(reading, thresholds) for reading in each] for each in readings]
    corrections, resumed = _steps(events)

    def decision(
        path: list[int],
        targets: list[EntityReading],
        *,
        diverges_at: int | None = None,
        flags: Sequence[str] = (),
    ) -> DradDecision:
        original = drafts[0].after
        final = drafts[path[-1]].after
        return DradDecision(
            flagged=any(verdict.doubtful for verdict in verdicts[0]),
            score=headline(readings[0], verdicts[0], thresholds, skip_repeats=skip_repeats),
            answer=None
            if diverges_at is not None
            else Answer(text=final, original=original, flags=tuple(flags)),
            diverges_at=diverges_at,
            readings=tuple(map(tuple, readings)),
            verdicts=tuple(map(tuple, verdicts)),
            path=tuple(path),
            targets=tuple(targets),
        )

    path, targets, settled = [0], [], -1
    if not same_start:
        return decision(path, targets, diverges_at=0)
    while True:
        at = path[-1]
        target = rhd.first_doubtful(
            readings[at], verdicts[at], after=settled, skip_repeats=skip_repeats
        )
        if target is None:
            if drafts[at].generation.finish_reason != "watcher":
                return decision(path, targets, flags=_flags(events, path))
            if at not in resumed:
                return decision(path, targets, diverges_at=at)
            path.append(resumed[at])
            continue
        step = (at, target.start, target.end)
        if step not in corrections or not same_correction:
            return decision(path, targets, diverges_at=at)
        settled = target.sentence_start
        targets.append(target)
        following = corrections[step]
        if following is not None:
            path.append(following)


def headline(
    readings: Sequence[EntityReading],
    verdicts: Sequence[EntityVerdict],
    thresholds: Thresholds,
    *,
    skip_repeats: bool,
) -> Score | None:
    """The number that settled a draft: of the entity corrected, else of the least probable one."""
    judged = [
        (reading, verdict)
        for reading, verdict in zip(readings, verdicts, strict=True)
        if not (skip_repeats and reading.repeats) and verdict.probability is not None
    ]
    if not judged:
        return None
    target = rhd.first_doubtful(readings, verdicts, after=-1, skip_repeats=skip_repeats)
    if target is None:
        chosen = min(judged, key=lambda pair: pair[1].probability or 0.0)
    else:
        chosen = next(pair for pair in judged if pair[0] is target)
    probability, entropy = rhd.scores_of(*chosen, thresholds)
    return entropy if entropy.flagged and not probability.flagged else probability


def _readings(events: Sequence[Event], draft: int) -> list[EntityReading]:
    return [
        rhd.read_judged(event)
        for event in events
        if isinstance(event, Judged) and event.what == "entity" and event.draft == draft
    ]


def _steps(
    events: Sequence[Event],
) -> tuple[dict[tuple[int, int, int], int | None], dict[int, int]]:
    """Completed corrections (draft and entity -> next draft, None without evidence) and resumes."""
    corrections: dict[tuple[int, int, int], int | None] = {}
    resumed: dict[int, int] = {}
    revised = {event.span: event.draft for event in events if isinstance(event, Revised)}
    complete = {
        event.span for event in events if isinstance(event, SpanEnded) and event.outcome == "ok"
    }
    for event in events:
        if not isinstance(event, SpanStarted) or event.span not in complete:
            continue
        if event.step == "correct":
            detail = event.detail
            key = (detail["draft"], detail["start"], detail["end"])
            corrections[key] = revised.get(event.span)
        elif event.step == "resume":
            resumed[event.detail["draft"]] = revised[event.span]
    return corrections, resumed


def _flags(events: Sequence[Event], path: Sequence[int]) -> list[str]:
    """The remarks on the answer, as the live run makes them, for the steps on `path`."""
    flags: list[str] = []
    started = {event.span: event for event in events if isinstance(event, SpanStarted)}
    for event in started.values():
        source = event.detail.get("confidence", "logprobs") if event.step == "draft" else "logprobs"
        if source != "logprobs":
            flags.append(f"confidence_{source}")
    for event in events:
        if not isinstance(event, Retrieved) or started[event.span].detail["draft"] not in path:
            continue
        flag = "search_failed" if event.error else None if event.passages else "no_evidence"
        if flag and flag not in flags:
            flags.append(flag)
    return flags

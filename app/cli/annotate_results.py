"""What an annotation session has come to, on the command line: progress, agreement, detectors."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, get_args

from pydantic import Field

from app.cli.forms import add_command, add_worded
from app.cli.shared import OWNER, listed_names, whole
from pipelines.annotation.adjudication import Status
from pipelines.annotation.agreement import SAMPLING, TaskAgreement, task_agreement
from pipelines.annotation.detectors import (
    Behind,
    FittedDetector,
    fit_detectors,
    fitted_profile,
    methods_behind,
    savable,
)
from pipelines.annotation.results import (
    DETECTOR_COLUMNS,
    FinalLabels,
    detector_rows,
    session_detectors,
    session_finals,
    session_labels,
)
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import TASKS, Task
from pipelines.annotation.watching import PersonProgress, SessionProgress, session_progress
from pipelines.base import Frozen, printable, printable_json
from pipelines.engine.service import Service
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.evaluation.results.columns import estimates_in, held
from pipelines.evaluation.results.export import aligned_parts, columns_markdown
from pipelines.evaluation.results.scores import few_notes
from pipelines.evaluation.statistics.agreement import WORDS, Coefficient, Share
from pipelines.evaluation.statistics.detection import DetectorRankings, ProbabilityErrors
from pipelines.evaluation.statistics.estimates import Sampling
from pipelines.run.calibrations import CalibrationKind
from pipelines.store.annotations import StoredSession, WholeSession
from pipelines.store.profiles import Profile

_LEVEL = "Brackets are 95 % intervals."


class SessionStatus(Frozen):
    """What `status --json` prints."""

    session: StoredSession
    progress: SessionProgress
    agreement: tuple[TaskAgreement, ...]


class TaskResults(Frozen):
    """What the labels of one task say of the detectors.

    `status` counts the items by where their final label comes from; `why` says why there is no
    `detection`.
    """

    task: Task
    status: dict[Status, int]
    detection: DetectorRankings | None = None
    errors: dict[str, ProbabilityErrors] = Field(default_factory=dict)
    groups: int = 0
    fitted: tuple[FittedDetector, ...] = ()
    why: str = ""


async def _status(service: Service, options: argparse.Namespace) -> int:
    lead = await asyncio.to_thread(Lead, service.store, options.session, OWNER)
    whole = await asyncio.to_thread(lead.whole)
    progress = await asyncio.to_thread(session_progress, lead)
    agreements = await asyncio.to_thread(_agreements, whole, options.seed)
    if options.json:
        told = SessionStatus(session=whole.session, progress=progress, agreement=tuple(agreements))
        print(printable_json(told.model_dump_json()))
    else:
        print(printable(status_text(whole, progress, agreements)), end="")
    return 0


def _agreements(whole: WholeSession, seed: int) -> list[TaskAgreement]:
    found, sampling = session_labels(whole), _sampling(seed)
    return [task_agreement(task, found.last, found.bodies, sampling) for task in found.tasks]


def _sampling(seed: int) -> Sampling:
    """Return the draws of the pages, with another seed."""
    return SAMPLING.model_copy(update={"seed": seed})


def status_text(
    whole: WholeSession, progress: SessionProgress, agreements: Sequence[TaskAgreement]
) -> str:
    """Return progress, people and agreement in lines."""
    session = whole.session
    state = "open" if session.closed is None else f"closed {session.closed:%Y-%m-%d %H:%M}"
    gold = sum(one.gold is not None for one in whole.items)
    controls = f" and {gold} control items" if gold else ""
    lines = [
        f"{session.name}: {state}, {progress.items} items{controls}, {session.overlap} people per"
        f" item, guidelines version {session.guidelines}",
        f"{progress.finished} of {progress.items} items have all their labels;"
        f" {progress.missing} labels are missing.",
    ]
    lines += [
        f"  {items} items need {missing} more"
        for missing, items in progress.needs.items()
        if missing
    ]
    if progress.stuck:
        lines.append(
            f"{progress.stuck} items cannot be finished by those who have joined: invite more"
            " people, or lower the overlap."
        )
    if progress.gaps:
        lines.append(f"{len(progress.gaps)} items show a gap in the guidelines.")
    if progress.people:
        lines += ["", "People", *(f"  {_person(one)}" for one in progress.people)]
    if agreements:
        lines += ["", f"Agreement (Krippendorff's alpha: 1 is perfect, 0 is chance). {_LEVEL}"]
        lines += [f"  {_agreement(one)}" for one in agreements]
    return "\n".join(lines) + "\n"


def _person(one: PersonProgress) -> str:
    said = [f"{one.name} ({one.kind}): {one.labelled} labelled, {one.skipped} skipped"]
    if one.changed:
        said.append(f"{one.changed} changed")
    if one.median_seconds is not None:
        said.append(f"{one.median_seconds:.1f} s for a label (median)")
    if one.fast:
        said.append(f"{one.fast} too fast")
    if one.gold.n:
        said.append(f"control items right {_share(one.gold)}")
    if one.overruled.n:
        said.append(f"decided otherwise {_share(one.overruled)}")
    return ", ".join(said)


def _agreement(one: TaskAgreement) -> str:
    overall = one.overall
    said = (
        f"{one.task}: alpha {_coefficient(overall.alpha)}; {overall.shared} items with two labels"
    )
    if overall.raw is not None:
        said += f", {overall.raw:.2f} of pairs are equal"
    if one.spans is not None:
        f1 = "".join(f", F1 {name} {value:.2f}" for name, value in one.spans.f1.items())
        said += f"; characters: alpha {_coefficient(one.spans.characters)}"
        said += f"; spans: gamma {_coefficient(one.spans.gamma)}{f1}"
    return said


def _coefficient(one: Coefficient) -> str:
    if one.value is None:
        return f"not defined. {WORDS[one.why]}".rstrip(". ")
    if one.low is None or one.high is None:
        return f"{one.value:.2f}"
    return f"{one.value:.2f} [{one.low:.2f}, {one.high:.2f}]"


def _share(one: Share) -> str:
    told = f"{one.hits} of {one.n}"
    if one.low is None or one.high is None:
        return told
    return f"{told} [{one.low:.2f}, {one.high:.2f}]"


async def _results(service: Service, options: argparse.Namespace) -> int:
    if options.save_profile and not options.fit:
        raise failure("command.save_without_fit")
    lead = await asyncio.to_thread(Lead, service.store, options.session, OWNER)
    whole = await asyncio.to_thread(lead.whole)
    behind = await asyncio.to_thread(methods_behind, service.store, whole)
    found = await asyncio.to_thread(session_results, whole, options, behind)
    profile = _profile(found, whole, options, behind) if options.save_profile else None
    if options.format == "json":
        for one in found:
            print(printable_json(one.model_dump_json()))
    else:
        text = "\n".join(results_text(one, markdown=options.format == "markdown") for one in found)
        print(printable(text), end="")
    if profile is not None:
        save = service.store.profiles.save
        await asyncio.to_thread(save, OWNER, profile, replace=options.replace)
        print(printable(f"Saved as the profile {profile.name!r}."), file=sys.stderr)
    return 0


def _profile(
    found: Sequence[TaskResults],
    whole: WholeSession,
    options: argparse.Namespace,
    behind: Mapping[str, Behind],
) -> Profile:
    """Return what was fitted for the detectors that are asked for. Raises InvalidInputError."""
    fitted = [one for one in found if one.fitted]
    if len(fitted) > 1:
        tasks = ", ".join(one.task for one in fitted)
        raise failure("annotation.several_fitted", tasks=tasks)
    detectors = [one for result in fitted for one in result.fitted]
    names = [one.method for one in detectors]
    if odd := sorted({*options.detectors} - {*names}):
        raise failure("annotation.no_detector", name=odd[0], known=[*names])
    chosen = [one for one in detectors if not options.detectors or one.method in options.detectors]
    task = fitted[0].task if fitted else "answer"
    kind = None if options.calibration == "none" else options.calibration
    return fitted_profile(options.save_profile, whole.session.name, task, chosen, behind, kind)


def session_results(
    whole: WholeSession, options: argparse.Namespace, behind: Mapping[str, Behind]
) -> list[TaskResults]:
    """Return what the labels say of detectors, by task; raises InvalidInputError without labels."""
    people = None
    if options.annotator is not None:
        names = {one.name: one.number for one in whole.annotators if one.kind != "lead"}
        if options.annotator not in names:
            raise failure(
                "annotation.nobody_labelled",
                name=options.annotator,
                known=", ".join(names) or phrase("detail.nobody_yet"),
            )
        people = {names[options.annotator]}
    finals = session_finals(whole, "blind" if options.blind else "last", people)
    # A comparison says which of two texts is better, and marks no error in either.
    tasks = dict.fromkeys(one.task for one in whole.items if one.task != "comparison")
    found = [
        _of_task(task, whole, finals, options, behind)
        for task in TASKS
        if task in tasks and options.task in (None, task)
    ]
    if not found:
        raise failure("annotation.nothing_to_compare")
    return found


def _of_task(
    task: Task,
    whole: WholeSession,
    finals: FinalLabels,
    options: argparse.Namespace,
    behind: Mapping[str, Behind],
) -> TaskResults:
    detectors = session_detectors(whole, finals, task, _sampling(options.seed))
    scores, base = detectors.scores, TaskResults(task=task, status=detectors.status)
    if detectors.report is None:
        return base.model_copy(update={"why": "No labelled item has a detector's score."})
    fitted: list[FittedDetector] = []
    if options.fit:
        fitted = fit_detectors(scores, share_trained=options.train / 100, seed=options.seed)
        # A system of an evaluation has a name of its own, but the settings of its method.
        settings = {one.fitted.method: one.threshold for one in savable(fitted, behind)}
        fitted = [
            one.model_copy(update={"setting": settings.get(one.method, "")}) for one in fitted
        ]
    return base.model_copy(
        update={
            "detection": detectors.report.detection,
            "errors": detectors.errors,
            "groups": len({*scores.groups}),
            "fitted": tuple(fitted),
        }
    )


def results_text(found: TaskResults, *, markdown: bool = False) -> str:
    """Return the detectors of one task, a line each."""
    said = ", ".join(f"{number} {name}" for name, number in sorted(found.status.items()))
    lines = [f"{found.task}: final labels of the items: {said}."]
    detection = found.detection
    if detection is None:
        return f"{lines[0]}\n{found.why}\n"
    rate = detection.base_rate
    lines.append(
        f"{detection.n} items in {found.groups} texts have a label and a score. {_LEVEL}"
        + ("" if rate is None else f" AUC-PR of chance: {rate:.2f} errors, {1 - rate:.2f} others.")
    )
    rows = detector_rows(detection, found.errors)
    columns = held(DETECTOR_COLUMNS, rows)
    few = few_notes(estimates_in(columns, rows))
    if markdown:
        lines = [columns_markdown(columns, rows, [*lines, *few], 2).rstrip("\n")]
    else:
        lines += [*aligned_parts(columns, rows), *few]
    if found.fitted:
        lines += ["", "Fitted on a part of the texts, reported on the others:"]
        lines += [f"{'- ' if markdown else '  '}{_fit(one)}" for one in found.fitted]
    return "\n".join(lines) + "\n"


def _fit(one: FittedDetector) -> str:
    if one.threshold is None or one.cut is None:
        return f"{one.method}: {one.why}"
    said = f"{one.method}: {one.score} {one.threshold:.4g}"
    said += f" ({one.setting})" if one.setting else " (no setting of the method)"
    said += f", fitted on {one.trained}, reported on {one.tested}"
    for words, part in (
        ("right", one.accuracy),
        ("errors flagged", one.found),
        ("others not flagged", one.spared),
    ):
        if part is not None:
            said += f"; {words} {_share(part)}"
    errors = [f"{name} {quality.brier:.3f}" for name, quality in one.quality.items()]
    return said + (f"; Brier score {', '.join(errors)}" if errors else "")


def add_result_commands(parts: Any) -> None:
    """Add the commands `annotations status` and `results`."""
    status = add_command(parts, "cli.command.annotations.status", _status)
    status.add_argument("session")
    add_worded(status, "cli.seed.intervals", "--seed", type=whole, default=0)
    add_worded(status, "cli.json", "--json", action="store_true")
    results = add_command(parts, "cli.command.annotations.results", _results)
    results.add_argument("session")
    add_worded(results, "cli.results.task", "--task", choices=TASKS)
    add_worded(results, "cli.results.annotator", "--annotator", metavar="NAME")
    add_worded(results, "cli.blind", "--blind", action="store_true")
    add_worded(
        results,
        "cli.results.format",
        "--format",
        choices=["text", "markdown", "json"],
        default="text",
    )
    add_worded(results, "cli.seed.split", "--seed", type=whole, default=0)
    add_worded(results, "cli.fit", "--fit", action="store_true")
    add_worded(
        results,
        "cli.train",
        "--train",
        type=partial(whole, least=1, most=99),
        default=50,
        metavar="PERCENT",
    )
    add_worded(
        results, "cli.fit.detectors", "--detectors", type=listed_names, default=[], metavar="A,B"
    )
    add_worded(results, "cli.fit.save_profile", "--save-profile", metavar="NAME")
    add_worded(
        results,
        "cli.fit.calibration",
        "--calibration",
        choices=[*get_args(CalibrationKind), "none"],
        default="platt",
    )
    add_worded(results, "cli.replace", "--replace", action="store_true")

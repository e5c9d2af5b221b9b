"""What the labels of a session come to: agreement of people, and detectors against final labels.

The pages and the command line both read it, so that the same labels have the same intervals.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Set
from typing import NamedTuple

from pipelines.annotation.adjudication import Status, final_labels
from pipelines.annotation.agreement import SAMPLING
from pipelines.annotation.detectors import (
    DetectorReport,
    LabelledScores,
    detector_report,
    labelled_scores,
)
from pipelines.annotation.items import LocatedSpans, located_spans
from pipelines.annotation.judges import DetectorAgreement, detector_agreements
from pipelines.annotation.labelling import GivenLabel, Which, decisions, standing_labels
from pipelines.annotation.types import TASKS, ItemBody, Label, Task
from pipelines.evaluation.results.columns import ResultsColumn, measure_column
from pipelines.evaluation.statistics.detection import (
    DetectorRankings,
    ProbabilityErrors,
    Ranking,
    probability_errors,
)
from pipelines.evaluation.statistics.estimates import Estimate, Sampling
from pipelines.store.annotations import WholeSession


class SessionLabels(NamedTuple):
    """The labels of a session, without those of control items, which have one right label.

    `last` are the current ones, `blind` those before models' verdicts were shown; `changed` counts
    the labels that differ between the two, by task.
    """

    bodies: dict[int, ItemBody]
    last: list[GivenLabel]
    blind: list[GivenLabel]
    tasks: tuple[Task, ...]
    changed: dict[Task, int]
    names: dict[int, str]

    def given(self, which: Which) -> list[GivenLabel]:
        """Return the last labels or the blind ones."""
        return self.blind if which == "blind" else self.last


class FinalLabels(NamedTuple):
    """The final label of each item that has one, and for all where theirs comes from."""

    labels: dict[int, Label]
    status: dict[int, Status]


class Detectors(NamedTuple):
    """What the labels say of the detectors on one task.

    `report` is None where no item with a final label has a detector's score. `status` counts the
    items by where their final label comes from. Unresolved ones have labels that differ and no
    decision: they are missing everywhere else.
    """

    scores: LabelledScores
    report: DetectorReport | None
    errors: dict[str, ProbabilityErrors]
    agreements: list[DetectorAgreement]
    located: list[LocatedSpans]
    status: dict[Status, int]

    @property
    def unresolved(self) -> int:
        """The items on which people differ undecided."""
        return self.status.get("unresolved", 0)


class DetectorRow(NamedTuple):
    """A row of the table of detectors; `errors` is None where its doubts are no probabilities."""

    method: str
    rankings: Mapping[Ranking, Estimate]
    errors: ProbabilityErrors | None


def detector_rows(
    found: DetectorRankings, errors: Mapping[str, ProbabilityErrors]
) -> list[DetectorRow]:
    """Return the rows of the table of detectors."""
    ranked = zip(found.detectors, found.rankings, strict=True)
    return [DetectorRow(name, rankings, errors.get(name)) for name, rankings in ranked]


def _ranking(name: Ranking, title: str) -> ResultsColumn[DetectorRow]:
    return measure_column(name, title, lambda row: row.rankings[name])


DETECTOR_COLUMNS: list[ResultsColumn[DetectorRow]] = [
    ResultsColumn("detector", "detector", None, lambda row: row.method, "name"),
    _ranking("auroc", "AUROC"),
    measure_column(
        "auc_pr_nonfactual", "AUC-PR, errors", lambda row: row.rankings["auc_pr_nonfactual"]
    ),
    measure_column("auc_pr_factual", "AUC-PR, others", lambda row: row.rankings["auc_pr_factual"]),
    measure_column("brier", "Brier score", lambda row: row.errors and row.errors.brier),
    measure_column("ece", "ECE", lambda row: row.errors and row.errors.calibration),
    ResultsColumn(
        "n", "n", None, lambda row: row.rankings["auroc"].n, "count", "annotate.results.items"
    ),
]
"""The columns of the table of detectors."""


def session_labels(whole: WholeSession) -> SessionLabels:
    """Return every label of a session."""
    control = {one.number for one in whole.items if one.gold is not None}
    last, blind = (
        [one for one in standing_labels(whole.events, which) if one.item not in control]
        for which in ("last", "blind")
    )
    bodies = {one.number: ItemBody.model_validate(one.body) for one in whole.items}
    first = {(one.item, one.annotator): one.label for one in blind}
    changed: dict[Task, int] = dict.fromkeys(TASKS, 0)
    for one in last:
        earlier = first.get((one.item, one.annotator))
        changed[bodies[one.item].task] += earlier is not None and earlier != one.label
    held = {bodies[one.item].task for one in (*last, *blind)}
    return SessionLabels(
        bodies=bodies,
        last=last,
        blind=blind,
        tasks=tuple(task for task in TASKS if task in held),
        changed=changed,
        names={one.number: one.name for one in whole.annotators},
    )


def session_finals(
    whole: WholeSession, which: Which = "last", people: Set[int] | None = None
) -> FinalLabels:
    """Return the final labels of a session; of `people` their own, whatever was decided."""
    given = standing_labels(whole.events, which, people)
    decided = {} if people else decisions(whole.events)
    found = final_labels((one.number for one in whole.items), given, decided)
    return FinalLabels(
        labels={item: one.label for item, one in found.items() if one.label is not None},
        status={item: one.status for item, one in found.items()},
    )


def session_detectors(
    whole: WholeSession, finals: FinalLabels, task: Task, sampling: Sampling = SAMPLING
) -> Detectors:
    """Return the detectors against the final labels of one task; control items do not count."""
    scores = labelled_scores(task, whole.items, finals.labels)
    errors = {
        method: found
        for method, row in zip(scores.methods, scores.scores, strict=True)
        if (found := probability_errors(row, scores.labels, scores.groups, sampling)) is not None
    }
    own = [one.number for one in whole.items if one.task == task and one.gold is None]
    return Detectors(
        scores=scores,
        report=detector_report(scores, sampling) if scores.methods else None,
        errors=errors,
        agreements=detector_agreements(task, whole.items, finals.labels),
        located=located_spans(whole.items, finals.labels, sampling) if task == "span" else [],
        status=dict(Counter(finals.status[number] for number in own)),
    )

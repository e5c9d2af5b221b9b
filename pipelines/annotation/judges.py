"""Models and detectors that judge answers, compared with the labels that people gave in a session.

A judge of an evaluation graded all of its answers; people labelled some of them. Answers with the
same text to the same record of the data set share one label, also those of several systems or
repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from pipelines.annotation.adjudication import final_labels
from pipelines.annotation.labelling import Which, decisions, standing_labels
from pipelines.annotation.types import (
    AnswerLabel,
    Hidden,
    Label,
    Task,
    is_wrong,
    label_adapter,
    verdict_of,
)
from pipelines.base import Frozen
from pipelines.errors import NotFoundError
from pipelines.evaluation.judging.calibration import GRADES
from pipelines.evaluation.judging.reading import judges_of_answers
from pipelines.evaluation.judging.runner import AnswerToJudge, answers_of
from pipelines.evaluation.judging.spec import GRADE_VALUES, Judgement, JudgeSpec
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.statistics.estimates import Estimate
from pipelines.evaluation.statistics.judges import (
    Correction,
    JudgeAgreement,
    agreement_of,
    corrected_rate,
)
from pipelines.store import RunStore
from pipelines.store.annotations import StoredItem, WholeSession
from pipelines.store.evaluations import StoredEvaluation, StoredJudge

Uncorrected = Literal["", "not_drawn", "few_labels", "other_answers"]
"""Why a rate is not corrected: none of its labelled answers was drawn at random with a recorded
probability; fewer than two of them (or of their groups) are labelled; or the session's items were
drawn from other answers, of which some happen to be those of this system."""

_DEVIATIONS = 4.0
"""From this many standard deviations on, the labelled answers are too few to be drawn from all."""

_BINARY = ("right", "wrong")
_OF_VERDICT = {
    "supported": "right",
    "confident": "right",
    "contradicted": "wrong",
    "doubtful": "wrong",
}
"""What a detector's verdict says of a text; others decide nothing."""

_CONCEPT = {"supported": "true", "contradicted": "false", "not_enough": "not_enough"}


class LabelledRate(Frozen):
    """The share of right answers of one system: by the judge, by people, and corrected.

    `judge` is over all `answers` that the judge decided on. Of these `empty` have no text: they are
    abstentions by their form, which nobody has to label. `labels` of the others were drawn at
    random and labelled, from which `people` and `corrected` are; `chosen` are labelled but were not
    drawn, so that they correct nothing.
    """

    system: str
    judge: float
    answers: int
    empty: int = 0
    labels: int = 0
    chosen: int = 0
    people: Estimate | None = None
    corrected: Estimate | None = None
    by: Correction = ""
    why: Uncorrected = ""

    @property
    def full(self) -> float:
        """The share of answers with a text, in [0, 1]."""
        return (self.answers - self.empty) / self.answers


class LabelledJudge(Frozen):
    """A judge of an evaluation against the labels of a session.

    `agreement` is over the labelled answers, each counted once, None where the judge decided on
    none of them. `items` is how many of the session's items are answers of this evaluation,
    `unresolved` how many of these people labelled differently, without a decision: as long as they
    are missing, the corrected rates lean towards the answers that are easy to judge.
    """

    evaluation: str
    name: str
    judge: str
    title: str
    weak: bool
    agreement: JudgeAgreement | None
    rates: tuple[LabelledRate, ...]
    items: int
    unresolved: int = 0


class SessionJudges(Frozen):
    """All judges of the evaluations whose answers a session has.

    `unjudged` are the names of evaluations that no model has judged, `missing` the ids of those
    that are not there any more.
    """

    judges: tuple[LabelledJudge, ...] = ()
    unjudged: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()


class DetectorAgreement(Frozen):
    """A detector's verdicts against people's final labels on items of one task.

    For concepts with verdicts that include "not enough information", the grades are those of the
    labels. Otherwise they are right and wrong, and a verdict that is neither counts as undecided.
    """

    method: str
    task: Task
    agreement: JudgeAgreement


class _Labelled(NamedTuple):
    """An item with its final label, None where there is none; its probability of being drawn."""

    label: str | None
    unresolved: bool
    probability: float | None


_Labels = Mapping[tuple[str, str], _Labelled]
"""What is known of an answer, by the record of the data set and the text."""


def evaluations_of(items: Iterable[StoredItem]) -> list[str]:
    """Return the ids of the evaluations whose answers are to be labelled, in order."""
    return list(
        dict.fromkeys(
            str(item.body["place"]["evaluation"])
            for item in items
            if item.task == "answer" and item.body.get("place", {}).get("evaluation")
        )
    )


def session_judges(store: RunStore, whole: WholeSession, which: Which = "last") -> SessionJudges:
    """Return every judge of every evaluation of the session's owner that the session has
    answers of.

    Control items do not count where they were chosen. One that was drawn at random with the others
    counts with its right label, without which the rest would be no random part any more.
    """
    judges: list[LabelledJudge] = []
    unjudged: list[str] = []
    missing: list[str] = []
    owner = whole.session.owner
    for evaluation in evaluations_of(whole.items):
        try:
            stored = store.evaluations.get(evaluation, owner)
            known = judges_of_answers(store.judgements.judges(evaluation, owner))
            answers = list(answers_of(store.evaluations, evaluation, owner)) if known else []
        except NotFoundError:
            missing.append(evaluation)
            continue
        if not known:
            unjudged.append(stored.name)
        labels = _labels(whole, evaluation, which)
        for judge in known:
            said = {
                number: Judgement.model_validate(body)
                for number, body in store.judgements.judged(evaluation, owner, judge.judge).items()
            }
            judged = [one for one in answers if one.number in said]
            judges.append(_judge(stored, judge, judged, said, labels))
    return SessionJudges(judges=tuple(judges), unjudged=tuple(unjudged), missing=tuple(missing))


def detector_agreements(
    task: Task, items: Iterable[StoredItem], labels: Mapping[int, Label]
) -> list[DetectorAgreement]:
    """Return every detector that gave verdicts on items of `task`, against their final `labels`.

    Control items do not count. There are none for comparisons, which no detector judges.
    """
    if task == "comparison":
        return []
    pairs: dict[str, list[tuple[Label, str]]] = {}
    for item in items:
        label = labels.get(item.number)
        if item.task != task or item.gold is not None or label is None:
            continue
        # Of a method that judged an item more than once, the last word counts.
        said = {one.method: one.verdict for one in Hidden.model_validate(item.hidden).verdicts}
        for method, verdict in said.items():
            pairs.setdefault(method, []).append((label, verdict))
    found = (_detector(task, method, own) for method, own in pairs.items())
    return [one for one in found if one is not None]


def _labels(whole: WholeSession, evaluation: str, which: Which) -> _Labels:
    """Return, by answer, what people say of it; a drawn control item keeps its right label."""
    items = [
        item
        for item in whole.items
        if item.task == "answer"
        and (item.gold is None or item.probability is not None)
        and item.body.get("place", {}).get("evaluation") == evaluation
    ]
    given = standing_labels(whole.events, which)
    finals = final_labels((one.number for one in items), given, decisions(whole.events))
    found: dict[tuple[str, str], _Labelled] = {}
    for item in items:
        final = finals[item.number]
        label, unresolved = final.label, final.status == "unresolved"
        if item.gold is not None:
            label, unresolved = label_adapter.validate_python(item.gold), False
        found[str(item.body["place"].get("record", "")), str(item.body["text"])] = _Labelled(
            label.verdict if isinstance(label, AnswerLabel) else None, unresolved, item.probability
        )
    return found


def _judge(
    stored: StoredEvaluation,
    judge: StoredJudge,
    answers: Sequence[AnswerToJudge],
    said: Mapping[int, Judgement],
    labels: _Labels,
) -> LabelledJudge:
    spec = JudgeSpec.model_validate(judge.spec)
    systems = [one.name for one in EvaluationSpec.model_validate(stored.spec).systems]
    # Several systems may have given the same answer: it was judged once, and labelled once.
    once = {_key(one): said[one.number] for one in answers}
    known = [
        (label, once[key].grade)
        for key, one in labels.items()
        if key in once and (label := one.label) is not None
    ]
    return LabelledJudge(
        evaluation=stored.id,
        name=stored.name,
        judge=judge.judge,
        title=spec.title,
        weak=spec.weak,
        agreement=agreement_of(known, GRADES),
        rates=tuple(
            _rate(name, own, said, labels)
            for number, name in enumerate(systems)
            if (own := _decided(answers, said, number))
        ),
        items=len(labels),
        unresolved=sum(one.unresolved for one in labels.values()),
    )


def _key(answer: AnswerToJudge) -> tuple[str, str]:
    return answer.item, answer.judged.answer


def _decided(
    answers: Sequence[AnswerToJudge], said: Mapping[int, Judgement], system: int
) -> list[AnswerToJudge]:
    return [one for one in answers if one.system == system and said[one.number].value is not None]


def _rate(
    system: str, answers: Sequence[AnswerToJudge], said: Mapping[int, Judgement], labels: _Labels
) -> LabelledRate:
    """Return the rate of one system, whose `answers` the judge has all decided."""
    values = [said[one.number].value or 0.0 for one in answers]
    base = LabelledRate(
        system=system,
        judge=sum(values) / len(values),
        answers=len(answers),
        empty=sum(not one.judged.answer.strip() for one in answers),
    )
    written = [one for one in answers if one.judged.answer.strip()]
    known = [labels.get(_key(one)) for one in written]
    drawn = {
        place: one.probability
        for place, one in enumerate(known)
        if one is not None and one.probability is not None
    }
    labelled = {
        place: GRADE_VALUES[one.label]
        for place, one in enumerate(known)
        if one is not None and one.label is not None
    }
    places = [place for place in labelled if place in drawn]
    groups = [one.group or one.item for one in written]
    base = base.model_copy(update={"labels": len(places), "chosen": len(labelled) - len(places)})
    # Where answers were drawn and none is of this system, they were drawn from others.
    elsewhere = not drawn and any(one.probability is not None for one in labels.values())
    if not elsewhere and len({groups[place] for place in places}) < 2:
        return base.model_copy(update={"why": "not_drawn" if base.chosen else "few_labels"})
    if elsewhere or not _of_all(drawn, groups):
        return base.model_copy(update={"why": "other_answers"})
    return base.model_copy(
        update=_corrected(
            [said[one.number].value or 0.0 for one in written],
            [labelled[place] for place in places],
            places,
            [drawn[place] for place in places],
            groups,
            base.full,
        )
    )


def _of_all(drawn: Mapping[int, float], groups: Sequence[str]) -> bool:
    """Return whether the answers at the places `drawn` can have been drawn from all of them.

    One over the probabilities adds up to how many there were to draw from, with a deviation that
    follows from them.
    """
    stood: dict[str, float] = {}
    least: dict[str, float] = {}
    for place, probability in drawn.items():
        group = groups[place]
        stood[group] = stood.get(group, 0.0) + 1 / probability
        least[group] = min(least.get(group, 1.0), probability)
    variance = sum(count**2 * (1 - least[group]) for group, count in stood.items())
    return sum(stood.values()) >= len(groups) - _DEVIATIONS * variance**0.5 - 0.5


def _corrected(
    judge: Sequence[float],
    labels: Sequence[float],
    places: Sequence[int],
    drawn: Sequence[float],
    groups: Sequence[str],
    full: float,
) -> dict[str, object]:
    """Return what a rate becomes by `labels`; `full` is the share of answers with a text."""
    found = corrected_rate(judge, labels, places, groups, drawn)
    return {
        "people": _scaled(found.people, full),
        "corrected": _scaled(found.corrected, full),
        "by": found.by,
    }


def _scaled(found: Estimate | None, full: float) -> Estimate | None:
    """Return a rate of the answers with a text as one of all: the others are no right answers."""
    if found is None:
        return None
    ends = {name: getattr(found, name) for name in ("value", "low", "high")}
    return found.model_copy(
        update={name: None if end is None else end * full for name, end in ends.items()}
    )


def _detector(
    task: Task, method: str, pairs: Sequence[tuple[Label, str]]
) -> DetectorAgreement | None:
    """Return one detector; None where no item was decided by both."""
    three = task == "concept" and {verdict for _, verdict in pairs} <= {*_CONCEPT, "unchecked"}
    grades = tuple(_CONCEPT.values()) if three else _BINARY
    graded: list[tuple[str, str | None]] = []
    for label, verdict in pairs:
        if three:
            truth, grade = verdict_of(label), _CONCEPT.get(verdict)
        else:
            wrong = is_wrong(label)
            truth = None if wrong is None else _BINARY[wrong]
            grade = _OF_VERDICT.get(verdict)
        if truth is not None:
            graded.append((truth, grade))
    agreed = agreement_of(graded, grades)
    return None if agreed is None else DetectorAgreement(method=method, task=task, agreement=agreed)

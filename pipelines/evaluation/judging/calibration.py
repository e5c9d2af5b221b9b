"""What people's labels say of a judge: its agreement, and the corrected rate of each system."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from pydantic import Field

from pipelines.base import Frozen
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.evaluation.datasets.files import read_table, unusable
from pipelines.evaluation.judging.spec import GRADE_VALUES, JudgeInput, Judgement
from pipelines.evaluation.plan import Item
from pipelines.evaluation.results.columns import ResultsColumn, Value
from pipelines.evaluation.statistics.estimates import Estimate
from pipelines.evaluation.statistics.judges import (
    CorrectedRate,
    JudgeAgreement,
    agreement_of,
    corrected_rate,
    transferred_rate,
)
from pipelines.text import detect_language

GRADES = tuple(GRADE_VALUES)
"""The grades in their order."""

_BINARY = ("correct", "wrong")
_SPELLED = {
    "correct": ("correct", "right", "true", "yes", "1", "1.0", "正确", "对", "是"),
    "partly": ("partly", "partial", "partially correct", "0.5", "部分正确"),
    "wrong": ("wrong", "incorrect", "false", "no", "0", "0.0", "错误", "错", "否"),
    "abstained": ("abstained", "no answer", "未作答"),
}
_GRADE_OF = {word: grade for grade, words in _SPELLED.items() for word in words}


class LabelKey(NamedTuple):
    """The answer that a label is of; system "" and repeat None where the file names none."""

    item: str
    system: str
    repeat: int | None = None


class HumanGrades(NamedTuple):
    """People's grades by answer, and the name of the file."""

    grades: dict[LabelKey, str]
    name: str


class GradedAnswer(NamedTuple):
    """An answer of an evaluation with what the judge said of it; `repeat` counts from 0."""

    item: str
    system: str
    group: str
    judgement: Judgement
    repeat: int = 0


class JudgeCalibration(Frozen):
    """What labels say of a judge.

    `source` names the labels. `agreement` is with people's grades; where answers of a data set are
    judged, with right and wrong, in which partly and abstained count as wrong. `rates` are the
    corrected rates by system, where the labels are of the evaluation's own answers; `transferred`
    those with the judge's errors on another data set.
    """

    source: str
    agreement: JudgeAgreement
    rates: dict[str, CorrectedRate] = Field(default_factory=dict)
    transferred: dict[str, Estimate | None] = Field(default_factory=dict)


_THERE = "by the errors there (Rogan-Gladen)"


class RateRow(NamedTuple):
    """A row of the table of a judge's rates: a system, corrected by labels or by errors there."""

    system: str
    rate: CorrectedRate | None = None
    there: Estimate | None = None


def rate_rows(found: JudgeCalibration) -> list[RateRow]:
    """Return the rows of the table of a judge's rates."""
    own = [RateRow(name, rate) for name, rate in found.rates.items()]
    return [*own, *(RateRow(name, there=one) for name, one in found.transferred.items())]


def _rate(key: str, title: str, read: Callable[[CorrectedRate], Value]) -> ResultsColumn[RateRow]:
    words = f"evaluate.judge.rate.{key}"
    return ResultsColumn(
        key, title, None, lambda row: row.rate and read(row.rate), "measure", words
    )


def rate_columns(found: JudgeCalibration) -> list[ResultsColumn[RateRow]]:
    """Return the columns of the table of a judge's rates, whose rows are `rate_rows`."""
    name = ResultsColumn[RateRow]("system", "system", None, lambda row: row.system, "name")
    if found.transferred:
        words = "evaluate.judge.rate.there"
        return [name, ResultsColumn("there", _THERE, None, lambda row: row.there, "measure", words)]
    return [
        name,
        _rate("judge", "judge", lambda rate: Estimate(value=rate.judge)),
        _rate("n", "answers", lambda rate: rate.n),
        _rate("labels", "labels", lambda rate: rate.labels),
        _rate("people", "people alone", lambda rate: rate.people),
        _rate("powered", "prediction-powered", lambda rate: rate.corrected),
        _rate("rogan_gladen", "Rogan-Gladen", lambda rate: rate.rogan_gladen),
    ]


def read_labels(path: Path) -> HumanGrades:
    """Return people's labels: a file of JSON Lines or CSV with `id`, `label` and, if need be, more.

    That is `system`, where several are labelled, and `repeat`, counted from 0 as exported scores
    count it, where one answered an item several times. A label is correct, partly, wrong or
    abstained, or one of the usual words and numbers for these. Raises InvalidInputError, which
    names the line.
    """
    table = read_table(path)
    wanted = phrase("wanted.labels_columns")
    found: dict[LabelKey, str] = {}
    for number, row in enumerate(table.rows):
        place = table.place(number)
        if "id" not in row or "label" not in row:
            raise unusable(path, phrase("file_problem.no_id", place=place), wanted)
        said = str(row["label"]).strip().casefold()
        if said not in _GRADE_OF:
            raise unusable(
                path,
                phrase("file_problem.no_label_word", label=row["label"], place=place),
                phrase("wanted.label_words"),
            )
        repeat = str(row["repeat"]).strip() if row.get("repeat") is not None else ""
        if repeat and not (repeat.isascii() and repeat.isdigit()):
            raise unusable(
                path,
                phrase("file_problem.no_repeat", repeat=row["repeat"], place=place),
                phrase("wanted.repeats"),
            )
        key = LabelKey(
            str(row["id"]).strip(),
            str(row.get("system") or "").strip(),
            int(repeat) if repeat else None,
        )
        if found.get(key, _GRADE_OF[said]) != _GRADE_OF[said]:
            raise unusable(
                path, phrase("file_problem.contradicts", place=place, item=key.item), wanted
            )
        found[key] = _GRADE_OF[said]
    if not found:
        raise unusable(path, phrase("file_problem.no_label"), wanted)
    return HumanGrades(found, path.name)


def calibrated(answers: Sequence[GradedAnswer], labels: HumanGrades) -> JudgeCalibration:
    """Return the agreement with labels of the evaluation's answers, and every system's
    corrected rate.

    A label without a system is refused where there are several, and one without a repeat where
    there are several answers that it may be of. Raises InvalidInputError then, and where no label
    fits an answer that was judged.
    """
    systems = list(dict.fromkeys(one.system for one in answers))
    _check_systems(labels, systems)
    _check_repeats(labels, answers)
    of_people = [_label_of(one, labels) for one in answers]
    agreed = agreement_of(
        (
            (said, one.judgement.grade)
            for one, said in zip(answers, of_people, strict=True)
            if said is not None
        ),
        GRADES,
    )
    if agreed is None:
        raise failure("judging.other_labels", file=labels.name)
    rates: dict[str, CorrectedRate] = {}
    for system in systems:
        own = [
            (one, said)
            for one, said in zip(answers, of_people, strict=True)
            if one.system == system and one.judgement.value is not None
        ]
        if not own:
            continue
        places = [place for place, (_, said) in enumerate(own) if said is not None]
        rates[system] = corrected_rate(
            [one.judgement.value or 0.0 for one, _ in own],
            [GRADE_VALUES[own[place][1] or "wrong"] for place in places],
            places,
            [one.group or one.item for one, _ in own],
        )
    return JudgeCalibration(source=labels.name, agreement=agreed, rates=rates)


def _check_systems(labels: HumanGrades, systems: Sequence[str]) -> None:
    unknown = {key.system for key in labels.grades} - {"", *systems}
    if unknown:
        raise failure(
            "judging.unknown_system", file=labels.name, name=min(unknown), known=[*systems]
        )
    if len(systems) > 1 and any(not key.system for key in labels.grades):
        raise failure("judging.which_system", file=labels.name, known=[*systems])


def _check_repeats(labels: HumanGrades, answers: Sequence[GradedAnswer]) -> None:
    """Refuse a label that fits several answers: it was given to one of them."""
    several = Counter(key for one in answers if (key := _key_of(one, labels)) is not None)
    for key, times in several.items():
        if times > 1 and key.repeat is None:
            raise failure("judging.which_repeat", file=labels.name, times=times, item=key.item)
        if times > 1:
            raise failure("judging.same_ids", times=times, item=key.item, file=labels.name)


def _key_of(answer: GradedAnswer, labels: HumanGrades) -> LabelKey | None:
    """Return the label of an answer: the one that says most, of those that fit."""
    fitting = (
        LabelKey(answer.item, system, repeat)
        for system in (answer.system, "")
        for repeat in (answer.repeat, None)
    )
    return next((key for key in fitting if key in labels.grades), None)


def _label_of(answer: GradedAnswer, labels: HumanGrades) -> str | None:
    key = _key_of(answer, labels)
    return None if key is None else labels.grades[key]


class KnownAnswer(NamedTuple):
    """An answer whose truth a data set tells."""

    judged: JudgeInput
    right: bool


def known_answers(items: Iterable[Item]) -> Iterator[KnownAnswer]:
    """Yield answers of labelled items, right and wrong ones.

    A labelled text is one where the item has accepted answers too. Else the second accepted answer
    is judged by the others, so that it is no copy of one, and the first known wrong answer by all;
    an item with a single accepted answer gives that one as a copy, which is easy to judge.
    """
    for item in items:
        if not item.answers or not item.question:
            continue
        language = item.language or detect_language(item.question)
        asked = JudgeInput(
            question=item.question, answer="", references=item.answers, language=language
        )
        if item.text and item.hallucinated is not None:
            judged = asked.model_copy(update={"answer": item.text})
            yield KnownAnswer(judged, not item.hallucinated)
        elif item.wrong_answers:
            right = item.answers[min(1, len(item.answers) - 1)]
            others = tuple(one for one in item.answers if one != right) or item.answers
            yield KnownAnswer(
                asked.model_copy(update={"answer": right, "references": others}), True
            )
            wrong = item.wrong_answers[0]
            yield KnownAnswer(asked.model_copy(update={"answer": wrong}), False)


def calibrated_elsewhere(
    known: Sequence[tuple[KnownAnswer, Judgement]],
    values: Mapping[str, Sequence[float]],
    source: str,
) -> JudgeCalibration:
    """Return the agreement on answers of a data set, and each system's rate corrected by it.

    `values` are the values in [0, 1] of a system's judged answers; what is not fully correct counts
    as wrong. Raises InvalidInputError where no answer was decided.
    """
    agreed = agreement_of(((_BINARY[not one.right], _binary(said)) for one, said in known), _BINARY)
    if agreed is None:
        raise failure("judging.nothing_decided", source=source)
    decided = [(one.right, said) for one, said in known if said.grade is not None]
    people = [float(right) for right, _ in decided]
    judge = [float(said.grade == "correct") for _, said in decided]
    return JudgeCalibration(
        source=source,
        agreement=agreed,
        transferred={
            system: transferred_rate([float(one == 1) for one in own], people, judge)
            for system, own in values.items()
        },
    )


def _binary(said: Judgement) -> str | None:
    """Return correct or wrong; what is not fully correct is wrong."""
    return None if said.grade is None else _BINARY[said.grade != "correct"]

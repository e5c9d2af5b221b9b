"""Stored evaluations whose answers were judged, without any model, for tests of labels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from pipelines.annotation.labelling import ReadLabel
from pipelines.annotation.sessions import Lead, create_session
from pipelines.annotation.types import (
    AnswerLabel,
    ItemBody,
    ItemPlace,
    Label,
    SessionItem,
    SessionSpec,
)
from pipelines.evaluation.judging.runner import answers_of
from pipelines.evaluation.judging.spec import Grade, Judgement, JudgeSpec
from pipelines.evaluation.outcomes import Outcome
from pipelines.evaluation.plan import Item, tasks_of
from pipelines.store import RunStore
from pipelines.store.tables import to_json
from tests.pipelines.evaluation.bench import MAIN, spec, system

JUDGE = JudgeSpec(model=MAIN)
Key = tuple[str, str]
"""The record of the data set, and the text of an answer."""

KEYS: list[Key] = [(f"q{n}", f"Answer {n}") for n in range(40)]
TEXTS = [text for _, text in KEYS]
BY_JUDGE: dict[Key, Grade | None] = {
    key: "wrong" for place, key in enumerate(KEYS) if place % 20 >= 15
}
"""Of every twenty answers a judge finds the last five wrong."""


def graded(*counts: tuple[int, Grade]) -> dict[Key, Grade]:
    """The first keys with their grades: so many of each."""
    keys = iter(KEYS)
    return {key: grade for count, grade in counts for key in islice(keys, count)}


def evaluated(
    store: RunStore,
    answers: Mapping[str, Sequence[str]],
    *,
    repeats: int = 1,
    name: str = "e",
    groups: Sequence[str] = (),
    owner: str = "me",
) -> str:
    """An evaluation: `answers` are the texts of each system, item by item, repeat by repeat."""
    first = next(iter(answers.values()))
    items = [
        Item(
            id=f"q{n}",
            question=f"Who was number {n}?",
            answers=(f"Nobody {n}",),
            group=groups[n] if groups else "",
        )
        for n in range(len(first) // repeats)
    ]
    asked = spec(*(system(one) for one in answers), repeats=repeats)
    tasks = list(tasks_of(asked, items))
    body = asked.model_dump(mode="json")
    rows = [(one.id, one) for one in items]
    store.evaluations.create(name, owner, "Capitals", body, rows, tasks)
    given = list(answers.values())
    for task in tasks:
        text = given[task.system][task.position * repeats + task.repeat]
        outcome = Outcome(answer=text, original=text, abstained=not text)
        store.evaluations.finish(name, owner, task, f"run-{task.number}", to_json(outcome), {})
    return name


def judge(
    store: RunStore, evaluation: str, grades: Mapping[Key, Grade | None], owner: str = "me"
) -> None:
    """Have every answer judged: "correct", unless `grades` says otherwise of it."""
    known = list(answers_of(store.evaluations, evaluation, owner))
    told = JUDGE.fingerprint
    keys = [(one.number, one.judged.key(told)) for one in known]
    store.judgements.begin(evaluation, owner, told, to_json(JUDGE), keys)
    for one, (_, key) in zip(known, keys, strict=True):
        text = one.judged.answer
        grade = grades.get((one.item, text), "correct") if text else "abstained"
        said = Judgement(grade=grade, by="model" if text else "rule")
        store.judgements.keep(
            owner, key, to_json(said), evaluation=evaluation, judge=told, spent={}
        )


def answer_item(
    key: Key, evaluation: str = "e", probability: float | None = None, gold: Grade | None = None
) -> SessionItem:
    """An answer of an evaluation as an item of a session."""
    record, text = key
    return SessionItem(
        key=f"{record}-{text}"[:64],
        body=ItemBody(
            task="answer",
            question="Who?",
            text=text,
            place=ItemPlace(evaluation=evaluation, record=record),
            group=record,
        ),
        gold=None if gold is None else AnswerLabel(verdict=gold),
        probability=probability,
    )


def labelled_session(
    store: RunStore,
    items: Sequence[SessionItem],
    *people: Mapping[Key, Grade],
    owner: str = "me",
) -> Lead:
    """A session of these items, with the labels of each of `people`."""
    told = [
        {
            f"{record}-{text}"[:64]: AnswerLabel(verdict=grade)
            for (record, text), grade in labels.items()
        }
        for labels in people
    ]
    return session_of(store, items, *told, owner=owner)


def session_of(
    store: RunStore,
    items: Sequence[SessionItem],
    *people: Mapping[str, Label],
    owner: str = "me",
    **spec: Any,
) -> Lead:
    """A session of these items; each of `people` has given labels, by the items' keys."""
    settings = SessionSpec.model_validate({"without_gold": True} | spec)
    lead = create_session(store, owner, "Ada", settings, items, guidelines="Read the evidence.")
    for number, labels in enumerate(people):
        lead.import_labels(f"Person {number}", [ReadLabel(*one) for one in labels.items()])
    return lead

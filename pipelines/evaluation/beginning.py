"""Begins an evaluation: which items there is something to do with, and storing all that is asked.

The command line and the workbench begin and forecast evaluations by these functions.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypedDict

from pipelines.evaluation.forecast import Forecast, forecast
from pipelines.evaluation.items import DataSet, Item
from pipelines.evaluation.outcomes import Cost, Outcome
from pipelines.evaluation.plan import EvaluationSpec, checked_spec, code_version, tasks_of
from pipelines.models.providers import provider_of
from pipelines.store import new_run_id
from pipelines.store.evaluations import EvaluationStore

PROBED = 3
"""Items that every system answers before the forecast."""

_BY_SERVERS, _HERE = 8, 2
"""Answers that are worked on at a time."""

_QUESTION = 200
"""Characters of a text without a question that stand for the question."""


class Provenance(TypedDict):
    """The fields of an `EvaluationSpec` that say which data and which code its results are of."""

    data: str
    data_hash: str
    source: str
    licence: str
    code: str


def provenance_of(data: DataSet) -> Provenance:
    """Return what an evaluation on `data` that begins now records of the data set and of
    the code.
    """
    return Provenance(
        data=data.name,
        data_hash=data.hash,
        source=data.source,
        licence=data.licence,
        code=code_version(),
    )


def usable_items(items: Sequence[Item], *, texts: bool) -> list[Item]:
    """Return the items that have a question, or with `texts` a text to be checked.

    A text without a question answers the question what there is to say: its beginning stands for
    the question.
    """
    usable = [item for item in items if (item.text if texts else item.question)]
    if not texts:
        return usable
    return [
        item if item.question else item.model_copy(update={"question": item.text[:_QUESTION]})
        for item in usable
    ]


def create_evaluation(
    store: EvaluationStore, owner: str, spec: EvaluationSpec, items: Sequence[Item], name: str = ""
) -> str:
    """Store an evaluation of `spec` on `items`; return its id. Nothing is asked yet.

    Without a `name` it is called after its data and its systems. Raises InvalidInputError where
    `checked_spec` does.
    """
    checked_spec(spec, items)
    evaluation = new_run_id()
    store.create(
        evaluation,
        owner,
        name or f"{spec.data}: {', '.join(system.name for system in spec.systems)}",
        spec.model_dump(mode="json"),
        [(item.id, item) for item in items],
        tasks_of(spec, items),
    )
    return evaluation


def answers_at_once(spec: EvaluationSpec) -> int:
    """Return how many answers one process works on at a time, unless that is chosen.

    A model server joins what it is asked at the same time, so that more calls keep it busy; a model
    in this process has its processors busy with two.
    """
    hosted = (provider_of(system.models["main"].kind).hosted for system in spec.systems)
    return _BY_SERVERS if all(hosted) else _HERE


def probe_size(spec: EvaluationSpec, tasks: int) -> int:
    """Return the number of answers of the first items by every system: so many of `tasks` come
    before the forecast.
    """
    return min(tasks, PROBED * len(spec.systems) * spec.repeats)


def stored_forecast(
    store: EvaluationStore, evaluation: str, owner: str, *, at_once: int = 1
) -> Forecast:
    """Return what the rest of a stored evaluation takes, from what it has answered; see `forecast`.

    Raises NotFoundError.
    """
    stored = store.get(evaluation, owner)
    names = [system.name for system in EvaluationSpec.model_validate(stored.spec).systems]
    paid: dict[str, list[Cost]] = {name: [] for name in names}
    after = -1
    while rows := store.outcomes(evaluation, owner, after):
        after = rows[-1][0].number
        for task, _, body in rows:
            paid[names[task.system]].append(Outcome.model_validate(body).paid)
    each = stored.tasks // len(names)
    left = {name: each - len(paid[name]) for name in names}
    return forecast(paid, left, at_once=at_once)

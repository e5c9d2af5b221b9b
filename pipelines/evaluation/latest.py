"""The answers that came last while an evaluation is carried out, and whether they are right."""

from __future__ import annotations

from pipelines.evaluation.items import Item
from pipelines.evaluation.outcomes import Outcome
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.scoring import found_right, has_declined
from pipelines.store.evaluations import AnswerTask
from pipelines.types import Frozen

LATEST = 5
"""So many answers are shown while an evaluation goes on."""

_SHOWN = 300
"""Characters of a question or an answer that are kept."""


class LatestAnswer(Frozen):
    """One answer that has just come: task `number` by `system` on an item, recorded as `run`.

    `right` is None where nothing tells whether it is right; who `declined` is not right, and gave
    no wrong answer. `error` is the code of what failed.
    """

    number: int
    system: str
    question: str
    answer: str
    run: str
    right: bool | None = None
    declined: bool = False
    error: str = ""


def latest_answer(
    spec: EvaluationSpec, task: AnswerTask, item: Item, run: str, outcome: Outcome
) -> LatestAnswer:
    """Return what is shown of an outcome. Of a text that was checked, the text and not the
    question.
    """
    return LatestAnswer(
        number=task.number,
        system=spec.systems[task.system].name,
        question=(item.text if spec.checks == "texts" else item.question)[:_SHOWN],
        answer=outcome.answer[:_SHOWN],
        run=run,
        right=found_right(spec, item, outcome),
        declined=spec.checks == "questions" and has_declined(item, outcome),
        error=outcome.error,
    )

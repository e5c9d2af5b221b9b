"""Texts that an evaluation had checked: their labels, and what its systems said, as it counts."""

from __future__ import annotations

import pytest

from pipelines.annotation.items import items_of_checked_text
from pipelines.annotation.types import TASKS
from pipelines.evaluation.plan import Item, LabelledSpan
from pipelines.run.view import fold
from tests.pipelines.annotation.bench import recorded


def item_of(text: str) -> Item:
    """The text of a recorded run as a labelled one, cut in two in the middle of its words."""
    half = len(text) // 2
    return Item(
        id="one",
        question="Who?",
        text=text,
        sentences=(
            LabelledSpan(start=0, end=half, label="accurate"),
            LabelledSpan(start=half, end=len(text), label="major"),
        ),
        hallucinated=True,
    )


def test_each_sentence_has_the_verdict_that_overlaps_most_with_it():
    trace = recorded()
    methods = fold(trace.events).methods
    # The last of the run's methods is the one that a run of a single method would have.
    method = list(methods.values())[-1]
    assert method.answer is not None
    item = item_of(method.answer.original)
    found = items_of_checked_text(
        item, [(trace, "first"), (trace, "second")], TASKS, data="lives", evaluation="e"
    )
    tasks = [made.body.task for made, _ in found]
    assert tasks == ["sentence", "sentence", "answer"]
    labels = [getattr(label, "verdict", None) for _, label in found]
    assert labels == ["accurate", "major", "wrong"]
    for made, _ in found:
        assert (made.body.place.evaluation, made.body.place.record) == ("e", "one")
        assert made.body.place.data == "lives"
        names = [one.method for one in made.hidden.verdicts]
        assert names in ([], ["first", "second"])
        for one in made.hidden.verdicts:
            if one.at is not None and made.body.start is not None and made.body.end is not None:
                assert min(one.at[1], made.body.end) > max(one.at[0], made.body.start)


@pytest.mark.parametrize("tasks", [("sentence",), ("answer",)])
def test_only_the_tasks_that_are_asked_for(tasks: tuple[str, ...]):
    item = item_of("One thing. Another thing.")
    found = items_of_checked_text(item, [], tasks, data="d", evaluation="e")  # type: ignore[arg-type]
    assert {made.body.task for made, _ in found} == set(tasks)
    assert all(made.hidden.verdicts == () for made, _ in found)

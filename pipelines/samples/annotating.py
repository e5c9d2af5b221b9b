"""An annotation session to look around in, made of what is shipped."""

from __future__ import annotations

from pipelines.annotation.sessions import Lead
from pipelines.annotation.sources import Collected, data_steps, make_session, run_steps
from pipelines.annotation.types import SessionSpec, Task
from pipelines.evaluation.datasets import open_data_set
from pipelines.store import RunStore
from pipelines.store.exchange import recordings

EXAMPLE_TASKS: tuple[Task, ...] = ("sentence", "answer")
"""What is labelled in the example."""

_CONTROLS = 3


def example_session(store: RunStore, owner: str, name: str, guidelines: str) -> Lead:
    """Return a session of the recorded sample runs; labelled statements are its control items."""
    found = Collected()
    for step in run_steps(store, owner, [one.id for one in recordings()]):
        found.add(step)
    controls = Collected()
    for step in data_steps(open_data_set("statements:en")):
        controls.add(step)
    for item in controls.chosen(("answer",))[:_CONTROLS]:
        found.items[item.key] = item
        label = controls.known.get(item.key)
        if label is not None:
            found.known[item.key] = label
    return make_session(
        store,
        owner,
        name,
        SessionSpec(tasks=EXAMPLE_TASKS, gold_every=5),
        found,
        overlap=2,
        guidelines=guidelines,
        controls=_CONTROLS,
    )

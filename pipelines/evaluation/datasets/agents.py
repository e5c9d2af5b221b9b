"""What programs of agents keep of a run: the memory of smolagents, the output of CrewAI."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pipelines.engine.messages import Utterance, documents_in, text_of_content
from pipelines.evaluation.datasets.exchanges import TracedStep, first, objects_in
from pipelines.evaluation.datasets.files import Row

_SAID = ("action_output", "final_answer", "output")


def steps_of_agents(rows: Sequence[Row]) -> Iterable[TracedStep] | None:
    """Return the answers of an agent, with what its tools gave before; None for other tables."""
    if all("raw" in row and objects_in(row.get("tasks_output")) for row in rows):
        return [
            _answered(str(at), str(one.get("description") or ""), one.get("raw"))
            for at, one in enumerate(
                (task for row in rows for task in objects_in(row["tasks_output"])), start=1
            )
        ]
    tasks = [row["task"] for row in rows if isinstance(row.get("task"), str)]
    steps = [row for row in rows if "step_number" in row and "observations" in row]
    if len(tasks) != 1 or not steps:
        return None
    last = next((row for row in reversed(steps) if row.get("is_final_answer")), steps[-1])
    observed = [text for row in steps for text in documents_in(row["observations"])]
    return [_answered("run", tasks[0], first(last, _SAID), tuple(dict.fromkeys(observed)))]


def _answered(name: str, task: str, said: object, sources: tuple[str, ...] = ()) -> TracedStep:
    messages = [
        Utterance(speaker="user", text=task),
        Utterance(speaker="assistant", text=text_of_content(said)),
    ]
    return TracedStep(name, messages, sources, trace=name)

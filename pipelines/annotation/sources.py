"""Where the items of a session come from: runs, evaluations, labelled data, files of sessions.

Reading a thousand runs takes minutes, so each source is read in steps between which a page can say
how far it is, or stop. What one run cannot give does not keep the others from being read.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import NamedTuple

from pipelines.annotation.formats import import_session, read_label_studio
from pipelines.annotation.items import (
    items_of_checked_text,
    items_of_data,
    items_of_evaluation,
    items_of_run,
)
from pipelines.annotation.labelling import ReadLabel, standing_labels
from pipelines.annotation.sessions import Lead, create_session
from pipelines.annotation.tables import People, read_label_table
from pipelines.annotation.types import (
    TASKS,
    Hidden,
    ItemBody,
    Label,
    SessionItem,
    SessionSpec,
    SpanLabel,
    Task,
    label_adapter,
)
from pipelines.errors import InvalidInputError, VeriscopeError, failure
from pipelines.evaluation.plan import DataSet, EvaluationSpec, Item
from pipelines.run.events import Trace
from pipelines.store import RunStore
from pipelines.store.exchange import is_recording, load_recording

_DATA_STEP = 100
"""Records of a data set that are read in one step."""

FIRST_CONTROLS = 10
"""Control items that are suggested where so many labels are known."""


class Step(NamedTuple):
    """What one run, answer or part of a file gave; `problem` is why it gave nothing."""

    items: Sequence[tuple[SessionItem, Label | None]] = ()
    problem: VeriscopeError | None = None


@dataclass
class Collected:
    """Items that can be made a session of, each once, in the order in which they were read.

    `known` has the labels that a data set or a file gives some of them, `people` those of
    different people. `problems` are why some sources gave no items.
    """

    items: dict[str, SessionItem] = field(default_factory=dict)
    known: dict[str, Label] = field(default_factory=dict)
    people: dict[str, list[ReadLabel]] = field(default_factory=dict)
    problems: list[VeriscopeError] = field(default_factory=list)

    def add(self, step: Step) -> None:
        """Take what one step gave."""
        if step.problem is not None:
            self.problems.append(step.problem)
        for item, label in step.items:
            self.items.setdefault(item.key, item)
            if label is not None:
                self.known.setdefault(item.key, label)

    def counts(self) -> dict[Task, int]:
        """Return how many items there are of each task that has some."""
        found = Counter(item.body.task for item in self.items.values())
        return {task: found[task] for task in TASKS if found[task]}

    def chosen(self, tasks: Collection[Task]) -> list[SessionItem]:
        """Return the items of `tasks`."""
        return [item for item in self.items.values() if item.body.task in tasks]

    def controls(self, tasks: Collection[Task]) -> list[str]:
        """Return the keys of items of `tasks` whose label is known, so that they can be
        control items.

        Texts with spans are none of them: nobody marks exactly the same characters.
        """
        return [
            key
            for key, label in self.known.items()
            if label.task in tasks and not (isinstance(label, SpanLabel) and label.spans)
        ]


def run_steps(store: RunStore, owner: str, runs: Iterable[str]) -> Iterator[Step]:
    """Yield the items of recorded runs of `owner`, and of recorded samples, a run at a time."""
    for run in runs:
        try:
            found = items_of_run(_load(store, owner, run), TASKS)
        except VeriscopeError as error:
            yield Step(problem=error)
        else:
            yield Step([(item, None) for item in found])


class Answers(NamedTuple):
    """The answers of an evaluation by the place of their item: [(run, system), ...].

    `checked` is the name of the data set whose texts were checked, "" where questions were asked.
    """

    evaluation: str
    by_item: dict[int, list[tuple[str, str]]]
    checked: str = ""


def answers_of_evaluation(
    store: RunStore, owner: str, evaluation: str, systems: Collection[str]
) -> Answers:
    """Return the first answers of `systems` to the items, without reading any run."""
    evaluations = store.evaluations
    spec = EvaluationSpec.model_validate(evaluations.get(evaluation, owner).spec)
    names = [one.name for one in spec.systems]
    found: dict[int, list[tuple[str, str]]] = {}
    after = -1
    while some := evaluations.outcomes(evaluation, owner, after):
        for task, run, _ in some:
            after = task.number
            if task.repeat == 0 and names[task.system] in systems:
                found.setdefault(task.position, []).append((run, names[task.system]))
    return Answers(evaluation, found, spec.data if spec.checks == "texts" else "")


def evaluation_steps(
    store: RunStore, owner: str, answers: Answers, count: int | None, seed: int
) -> Iterator[Step]:
    """Yield the items of an evaluation's answers, an item of its data set at a time.

    With `count`, so many items of the data set are drawn at random; all answers to them are
    labelled, and each keeps the probability with which it was drawn. Texts that were checked come
    with the labels of their data set.
    """
    positions = sorted(answers.by_item)
    share = 1.0
    if count is not None and count < len(positions):
        share = count / len(positions)
        positions = sorted(Random(seed).sample(positions, count))
    for position in positions:
        try:
            record = Item.model_validate(store.evaluations.item(answers.evaluation, position))
            read = [(_load(store, owner, run), system) for run, system in answers.by_item[position]]
            found = _of_record(record, read, answers)
        except VeriscopeError as error:
            yield Step(problem=error)
        else:
            yield Step(
                [(item.model_copy(update={"probability": share}), label) for item, label in found]
            )


def _of_record(
    record: Item, read: Sequence[tuple[Trace, str]], answers: Answers
) -> list[tuple[SessionItem, Label | None]]:
    """Return the items of what the systems made of one item of the data set."""
    name = answers.evaluation
    if answers.checked:
        return items_of_checked_text(record, read, TASKS, data=answers.checked, evaluation=name)
    given = ((trace, name, record.id, system) for trace, system in read)
    return [(item, None) for item in items_of_evaluation(given, TASKS)]


def data_steps(data: DataSet) -> Iterator[Step]:
    """Yield the items of labelled texts, with the labels that the data set gives them."""
    for start in range(0, len(data.items), _DATA_STEP):
        some = data.items[start : start + _DATA_STEP]
        try:
            yield Step(items_of_data(some, TASKS, data.name))
        except VeriscopeError:
            # One of them is too long; the others are not.
            for item in some:
                try:
                    yield Step(items_of_data([item], TASKS, data.name))
                except VeriscopeError as error:
                    yield Step(problem=error)


def read_session_file(name: str, text: str) -> Collected:
    """Return the items and everybody's labels in a session that was exported here, or by
    Label Studio.

    Raises InvalidInputError that names the place which is wrong.
    """
    if name.lower().endswith(".json"):
        items, people = read_label_studio(text)
        found = Collected(people=people)
        found.items = {item.key: item for item in items}
    else:
        found = _of_export(text)
    found.known |= _unanimous(found.people)
    return found


def read_labels(name: str, data: bytes, items: Collection[SessionItem] = ()) -> People:
    """Return everybody's labels in a file: a session, an export of labels, or that of a tool.

    See `read_label_table` for the last two, which are matched with `items`. Raises
    InvalidInputError that names the place which is wrong, and for a file without labels.
    """
    text = _own_text(name, data)
    if text is None:
        return read_label_table(name, data, items)
    try:
        people: People = read_session_file(name, text).people
        if not people:
            raise failure("annotation.no_labels", file=name)
    except InvalidInputError:
        # Tasks of Label Studio with words of their own say something of items that are known.
        if not items or not name.lower().endswith(".json"):
            raise
        return read_label_table(name, data, items)
    keys = {item.key for item in items}
    if not items or any(one.key in keys for labels in people.values() for one in labels):
        return people
    try:
        return read_label_table(name, data, items)
    except InvalidInputError:
        return people


def session_items(lead: Lead) -> list[SessionItem]:
    """Return the items of a session, as labels that are read for it are matched with them."""
    return [
        SessionItem(key=one.key, body=ItemBody.model_validate(one.body)) for one in lead.items()
    ]


def _own_text(name: str, data: bytes) -> str | None:
    """Return the text of an exported session, or of Label Studio; None for any other file."""
    ending = name.lower().rpartition(".")[2]
    if ending not in ("json", "jsonl"):
        return None
    try:
        text = data.decode("utf-8-sig")
        first = json.loads(text if ending == "json" else text.lstrip().partition("\n")[0])
    except (ValueError, RecursionError):
        return None
    if ending == "jsonl":
        return text if isinstance(first, dict) and "session" in first else None
    is_task = isinstance(first, list) and all(
        isinstance(one, dict) and "data" in one for one in first
    )
    return text if is_task else None


def _of_export(text: str) -> Collected:
    with TemporaryDirectory() as folder:
        # It is checked in the same way as a session that is taken over whole.
        store = RunStore(f"sqlite:///{Path(folder) / 'import.db'}")
        try:
            whole = import_session(store, "import", text.split("\n")).whole()
        finally:
            store.close()
    found = Collected()
    keys = {item.number: item.key for item in whole.items}
    names = {one.number: one.name for one in whole.annotators}
    for item in whole.items:
        found.items[item.key] = SessionItem(
            key=item.key,
            body=ItemBody.model_validate(item.body),
            hidden=Hidden.model_validate(item.hidden),
            probability=item.probability,
        )
        if item.gold is not None:
            found.known[item.key] = label_adapter.validate_python(item.gold)
    for label in standing_labels(whole.events):
        found.people.setdefault(names[label.annotator], []).append(label.read(keys[label.item]))
    return found


def _unanimous(people: People) -> dict[str, Label]:
    """Return labels by item on which everybody agrees, and at least two people labelled it."""
    said: dict[str, list[Label]] = {}
    for labels in people.values():
        for one in labels:
            said.setdefault(one.key, []).append(one.label)
    return {
        key: labels[0]
        for key, labels in said.items()
        if len(labels) > 1 and all(one == labels[0] for one in labels)
    }


def make_session(
    store: RunStore,
    owner: str,
    name: str,
    spec: SessionSpec,
    collected: Collected,
    *,
    overlap: int,
    guidelines: str,
    controls: int = 0,
    seed: int = 0,
    keep: str = "",
) -> Lead:
    """Return a session of the collected items of the tasks in `spec`.

    So many `controls` of those with a known label are drawn as control items. `keep` is the name of
    the person under which the other known labels are imported, "" where they are not; labels of
    people in a file are imported under their names. Raises InvalidInputError.
    """
    items = collected.chosen(spec.tasks)
    known = collected.controls(spec.tasks)
    drawn = set(Random(seed).sample(known, min(controls, len(known))))
    items = [
        item.model_copy(update={"gold": collected.known[item.key]}) if item.key in drawn else item
        for item in items
    ]
    spec = spec.model_copy(update={"without_gold": spec.without_gold and not drawn})
    lead = create_session(store, owner, name, spec, items, overlap=overlap, guidelines=guidelines)
    tasks = set(spec.tasks)
    people: dict[str, Sequence[ReadLabel]] = {}
    if keep:
        known_labels = [ReadLabel(key, label) for key, label in collected.known.items()]
        people = dict(collected.people) or {keep: known_labels}
    for person, labels in people.items():
        own = [one for one in labels if one.label.task in tasks and one.key not in drawn]
        if own:
            lead.import_labels(person, own)
    return lead


def _load(store: RunStore, owner: str, run: str) -> Trace:
    return load_recording(run) if is_recording(run) else store.load(run, owner)

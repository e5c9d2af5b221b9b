"""Annotation sessions on the command line: make, invite, export, import, close, delete.

What a session has come to is in `app.cli.annotate_results`.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections.abc import Callable, Collection, Iterator
from functools import partial
from pathlib import Path
from typing import Any

from app.cli.annotate_results import add_result_commands
from app.cli.evaluate import column_mapping
from app.cli.forms import add_command, add_group, add_option, add_worded, terminal_words
from app.cli.shared import (
    OWNER,
    amount,
    count,
    listed_names,
    read_bytes,
    read_export,
    say,
    text_of_file,
    whole,
    write_archive,
    write_export,
)
from components.evaluate.reading import reading_line
from components.forms import SESSION
from pipelines.annotation.formats import (
    export_csv,
    export_label_studio,
    export_precomputed_scores,
    export_ragtruth,
    export_ragtruth_sources,
    export_session,
    import_session,
)
from pipelines.annotation.items import drawn
from pipelines.annotation.judges import LabelledJudge, LabelledRate, SessionJudges, session_judges
from pipelines.annotation.sessions import Lead
from pipelines.annotation.sources import (
    Collected,
    Step,
    answers_of_evaluation,
    data_steps,
    evaluation_steps,
    make_session,
    read_labels,
    read_session_file,
    run_steps,
    session_items,
)
from pipelines.annotation.tables import export_workbook
from pipelines.annotation.types import TASKS, SessionSpec, Task, parse_spec
from pipelines.base import printable, printable_json
from pipelines.engine.service import Service
from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.evaluation.datasets.opening import open_data_set
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.results.export import estimate_words
from pipelines.evaluation.statistics.judges import JudgeAgreement
from pipelines.store import RunStore

# Models that judged evaluations, against the labels of a session, on the command line.

_BY = {
    "labels": "every answer is labelled, so the labels are the result",
    "powered": "prediction-powered inference",
    "weighted": "prediction-powered inference, weighted by the probabilities of the draw",
}
_WHY = {
    "few_labels": "at least two answers have to be labelled",
    "not_drawn": "the labelled answers were chosen and not drawn at random",
    "other_answers": "the items were drawn from the answers of other systems",
}


async def _judges(service: Service, options: argparse.Namespace) -> int:
    lead = await asyncio.to_thread(Lead, service.store, options.session, OWNER)
    whole = await asyncio.to_thread(lead.whole)
    which = "blind" if options.blind else "last"
    found = await asyncio.to_thread(session_judges, service.store, whole, which)
    if not (found.judges or found.unjudged or found.missing):
        raise failure("annotation.no_answers")
    if options.json:
        for one in found.judges:
            print(printable_json(one.model_dump_json()))
    else:
        print(printable(judges_text(found)), end="")
    return 0


def judges_text(found: SessionJudges) -> str:
    """Return every judge: its agreement with people, and its score for each system, corrected."""
    parts = [_judge(one) for one in found.judges]
    parts += [
        [f"No model has judged the answers of {name!r}: `evaluations judge` has one do it."]
        for name in found.unjudged
    ]
    if found.missing:
        parts.append([f"Deleted meanwhile: the evaluation {', '.join(found.missing)}."])
    return "\n\n".join("\n".join(lines) for lines in parts) + "\n"


def _judge(found: LabelledJudge) -> list[str]:
    lines = [f"{found.title} as the judge of {found.name!r}. Brackets are 95 % intervals."]
    if found.weak:
        lines.append("It was measured to judge no better than chance.")
    if found.unresolved:
        lines.append(
            f"Answers on which people disagree: {found.unresolved}. Decide them first: what is left"
            " out is what is hard to judge."
        )
    lines.append(_agreement(found.agreement))
    lines += [f"  {_rate(one)}" for one in found.rates]
    return lines


def _agreement(found: JudgeAgreement | None) -> str:
    if found is None:
        return "No labelled answer was graded by this judge."
    return (
        f"Judge and people: Cohen's kappa {estimate_words(found.kappa, 2, 'not defined')}, same"
        f" grade {estimate_words(found.accuracy, 2)} of {found.accuracy.n} answers,"
        f" {found.undecided} undecided."
    )


def _rate(one: LabelledRate) -> str:
    """Return a text such as "rag: judge 0.84 of 900 answers, corrected 0.71 [0.68, 0.74]"."""
    said = f"{one.system}: judge {one.judge:.2f} of {one.answers} answers"
    if one.corrected is None:
        said += f", not corrected: {_WHY[one.why or 'few_labels']}"
    else:
        said += f", corrected {estimate_words(one.corrected, 2)} by {one.labels} labels"
        said += f" ({_BY[one.by]})" if one.by else ""
    if one.people is not None:
        said += f"; by the labels alone {estimate_words(one.people, 2)}"
    if one.empty:
        said += f"; {one.empty} without a text count as not right"
    if one.chosen:
        said += f"; {one.chosen} labelled answers were not drawn and correct nothing"
    return f"{said}."


def add_judges_command(parts: Any) -> None:
    """Add the command `annotations judges`."""
    parser = add_command(parts, "cli.command.annotations.judges", _judges)
    parser.add_argument("session")
    add_worded(parser, "cli.blind", "--blind", action="store_true")
    add_worded(parser, "cli.json.judge", "--json", action="store_true")


JOIN_DAYS = 30.0
"""So long a link works that a command makes, unless it says otherwise."""

_TOLD = 5
"""Sources that could not be read, of which it is told why."""

_FORMATS: dict[str, Callable[[Lead], str]] = {
    "jsonl": lambda lead: "".join(export_session(lead)),
    "csv": export_csv,
    "label-studio": export_label_studio,
    "ragtruth": lambda lead: "".join(export_ragtruth(lead)),
    "ragtruth-sources": lambda lead: "".join(export_ragtruth_sources(lead)),
}
_EXCEL = "xlsx"
"""The form that is no text."""

_OF_TASK = "inspect"
"""The form that holds the labels of one task."""


def link_path(token: str) -> str:
    """Return where the workbench shows what a link allows."""
    return f"/annotate?link={token}"


async def _list(service: Service, options: argparse.Namespace) -> int:
    for one in await asyncio.to_thread(service.store.annotations.list, OWNER):
        if options.json:
            print(printable_json(one.model_dump_json()))
        else:
            state = "open" if one.closed is None else "closed"
            size = f"{one.items} items, overlap {one.overlap}"
            print(
                printable(f"{one.id}  {one.created:%Y-%m-%d %H:%M}  {state:6}  {size}  {one.name}")
            )
    return 0


async def _create(service: Service, options: argparse.Namespace) -> int:
    lead = await asyncio.to_thread(_created, service.store, options)
    print(lead.session_id)
    token = await asyncio.to_thread(partial(lead.invite, "join", days=options.days))
    print(link_path(token))
    return 0


def _created(store: RunStore, options: argparse.Namespace) -> Lead:
    """Make the session that the options describe. Raises InvalidInputError saying what to do."""
    guidelines = ""
    if options.guidelines:
        guidelines = text_of_file(options.guidelines, phrase("wanted.text_file"))
    if options.gold is None and not options.without_gold:
        raise failure("annotation.no_controls")
    found = _collected(store, options)
    tasks: list[Task] = [*found.counts()]
    if options.tasks:
        tasks = [task for task in tasks if task in options.tasks]
    if not tasks:
        asked = ", ".join(options.tasks or TASKS)
        raise failure("annotation.nothing_to_label", tasks=asked)
    if options.sample is not None and not options.evaluation:
        chosen = drawn(found.chosen(tasks), options.sample, options.seed)
        found.items = {item.key: item for item in chosen}
        found.known = {key: one for key, one in found.known.items() if key in found.items}
    controls = options.gold or 0
    known = sum(key in found.items for key in found.controls(tasks))
    if controls > known:
        raise failure("annotation.few_controls", controls=controls, known=known)
    lead = make_session(
        store,
        OWNER,
        options.name,
        _spec(options, tasks, without_gold=not controls),
        found,
        overlap=options.overlap,
        guidelines=guidelines,
        controls=controls,
        seed=options.seed,
        keep=options.keep_labels or "",
    )
    items = lead.session.items
    say(f"{items} items ({', '.join(tasks)}), {controls} of them control items.")
    if options.keep_labels:
        kept = {one.name for one in lead.annotators() if one.kind == "imported"}
        said = f"Labels are kept as those of {', '.join(sorted(kept))}." if kept else "No labels."
        say(said)
    return lead


def _spec(
    options: argparse.Namespace, tasks: Collection[Task], *, without_gold: bool
) -> SessionSpec:
    told = {name: getattr(options, name) for name in SESSION.fields}
    told |= {"tasks": tuple(tasks), "without_gold": without_gold}
    return parse_spec({name: value for name, value in told.items() if value is not None})


def _collected(store: RunStore, options: argparse.Namespace) -> Collected:
    """Return what the source offers; says what could not be read."""
    if options.file:
        text = text_of_file(options.file, phrase("wanted.session_file"))
        return read_session_file(options.file.name, text)
    steps, total = _steps(store, options)
    found = Collected()
    for number, step in enumerate(steps, start=1):
        found.add(step)
        if total > 1 and sys.stderr.isatty():
            print(f"\r{number} of {total} read   ", end="", file=sys.stderr)
    if total > 1 and sys.stderr.isatty():
        print(file=sys.stderr)
    for problem in found.problems[:_TOLD]:
        say(f"Left out: {problem}")
    if len(found.problems) > _TOLD:
        say(f"Left out: {len(found.problems) - _TOLD} more.")
    if found.problems and not found.items:
        raise found.problems[0]
    return found


def _steps(store: RunStore, options: argparse.Namespace) -> tuple[Iterator[Step], int]:
    """Return the steps in which the source is read, and their number (1: not worth a word)."""
    if options.run:
        return run_steps(store, OWNER, options.run), len(options.run)
    if options.evaluation:
        spec = EvaluationSpec.model_validate(store.evaluations.get(options.evaluation, OWNER).spec)
        names = [system.name for system in spec.systems]
        if odd := sorted({*(options.systems or ())} - {*names}):
            raise failure("evaluation.no_system", system=odd[0], known=[*names])
        answers = answers_of_evaluation(store, OWNER, options.evaluation, options.systems or names)
        total = min(len(answers.by_item), options.sample or len(answers.by_item))
        steps = evaluation_steps(store, OWNER, answers, options.sample, options.seed)
        return steps, total
    data = open_data_set(
        options.data_set,
        kind=options.kind,
        mapping=column_mapping(options.map),
        part=options.part,
        seed=options.seed,
        leave_out=options.leave_out_bad,
    )
    if data.reading is not None:
        say(reading_line(data.reading, terminal_words()))
    return data_steps(data), 1


async def _invite(service: Service, options: argparse.Namespace) -> int:
    def invited() -> str:
        lead = Lead(service.store, options.session, OWNER)
        number = None
        if options.annotator is not None:
            people = {one.name: one.number for one in lead.annotators() if one.kind == "person"}
            if options.annotator not in people:
                raise failure(
                    "annotation.nobody_joined",
                    name=options.annotator,
                    known=", ".join(people) or phrase("detail.nobody_yet"),
                )
            number = people[options.annotator]
        role = "annotator" if number is not None else options.role
        return lead.invite(role, annotator=number, days=options.days)

    if options.annotator is not None and options.role:
        raise failure("command.role_of_link")
    options.role = options.role or "join"
    print(link_path(await asyncio.to_thread(invited)))
    return 0


async def _links(service: Service, options: argparse.Namespace) -> int:
    lead = await asyncio.to_thread(Lead, service.store, options.session, OWNER)
    if options.revoke:
        await asyncio.to_thread(lead.revoke, options.revoke)
    names = {one.number: one.name for one in await asyncio.to_thread(lead.annotators)}
    for link in await asyncio.to_thread(lead.links):
        until = "for ever" if link.expires is None else f"until {link.expires:%Y-%m-%d %H:%M}"
        state = until if link.revoked is None else f"withdrawn {link.revoked:%Y-%m-%d %H:%M}"
        whose = "" if link.annotator is None else f"  {names.get(link.annotator, '')}"
        print(printable(f"{link.id}  {link.role:9}  {state}{whose}"))
    return 0


async def _export(service: Service, options: argparse.Namespace) -> int:
    lead = await asyncio.to_thread(Lead, service.store, options.session, OWNER)
    if options.format == _EXCEL:
        if options.to is None:
            raise failure("command.needs_to", format=_EXCEL)
        write_archive(await asyncio.to_thread(export_workbook, lead), options.to)
        return 0
    text = await asyncio.to_thread(_exported, lead, options)
    if options.format == "csv" and options.to is None:
        sys.stdout.write(text)
    else:
        write_export(text, options.to)
    return 0


def _exported(lead: Lead, options: argparse.Namespace) -> str:
    if options.format != _OF_TASK:
        if options.task is not None:
            raise failure("command.task_of_format", format=_OF_TASK)
        return _FORMATS[options.format](lead)
    task, *others = lead.spec.tasks
    if options.task is None and others:
        raise failure("annotation.several_tasks", tasks=(task, *others))
    return "".join(export_precomputed_scores(lead, options.task or task))


async def _import(service: Service, options: argparse.Namespace) -> int:
    store, path = service.store, options.file
    data = read_bytes(path, "annotations export")
    if options.into is None:
        if options.name is not None:
            raise failure("command.as_without_into")
        text = read_export(path, "annotations export")
        lead = await asyncio.to_thread(import_session, store, OWNER, text.split("\n"))
        print(lead.session_id)
        return 0
    lead = await asyncio.to_thread(Lead, store, options.into, OWNER)
    items = await asyncio.to_thread(session_items, lead)
    people = {**await asyncio.to_thread(read_labels, path.name, data, items)}
    if options.name is not None:
        if len(people) > 1:
            raise failure("annotation.several_people", people=sorted(people))
        people = dict(zip([options.name], people.values(), strict=True))
    keys = {item.key for item in items}
    for name, labels in people.items():
        new = await asyncio.to_thread(lead.import_labels, name, labels)
        strange = sum(one.key not in keys for one in labels)
        left = f"; {strange} are of items that the session does not have" if strange else ""
        print(printable(f"{name}: {len(labels)} labels, {new} of them new{left}"))
    return 0


async def _close(service: Service, options: argparse.Namespace) -> int:
    lead = await asyncio.to_thread(Lead, service.store, options.session, OWNER)
    await asyncio.to_thread(partial(lead.close, closed=not options.reopen))
    return 0


async def _delete(service: Service, options: argparse.Namespace) -> int:
    await asyncio.to_thread(service.store.annotations.delete, options.session, OWNER)
    return 0


def add_annotation_commands(commands: Any) -> None:
    """Add the command `annotations`."""
    parts = add_group(commands, "cli.command.annotations")
    listed = add_command(parts, "cli.command.annotations.list", _list)
    add_worded(listed, "cli.json.session", "--json", action="store_true")
    _add_create(parts)
    invited = add_command(parts, "cli.command.annotations.invite", _invite)
    add_worded(invited, "cli.link.role", "--role", choices=["join", "lead"])
    add_worded(invited, "cli.link.annotator", "--annotator", metavar="NAME")
    _add_days(invited)
    links = add_command(parts, "cli.command.annotations.links", _links)
    add_worded(links, "cli.link.revoke", "--revoke", metavar="LINK")
    exported = add_command(parts, "cli.command.annotations.export", _export)
    formats = [*_FORMATS, _EXCEL, _OF_TASK]
    add_worded(exported, "cli.format", "--format", choices=formats, default="jsonl")
    add_worded(exported, "cli.format.task", "--task", choices=TASKS, facts={"format": _OF_TASK})
    add_worded(exported, "cli.to", "--to", type=Path, metavar="FILE")
    closed = add_command(parts, "cli.command.annotations.close", _close)
    add_worded(closed, "cli.reopen", "--reopen", action="store_true")
    deleted = add_command(parts, "cli.command.annotations.delete", _delete)
    for command in (invited, links, exported, closed, deleted):
        command.add_argument("session")
    imported = add_command(parts, "cli.command.annotations.import", _import)
    imported.add_argument("file", type=Path)
    add_worded(imported, "cli.into", "--into", metavar="SESSION")
    add_worded(imported, "cli.as", "--as", dest="name", metavar="NAME")
    add_result_commands(parts)
    add_judges_command(parts)


def _add_create(parts: Any) -> None:
    parser = add_command(parts, "cli.command.annotations.create", _create)
    add_worded(parser, "cli.session.name", "name")
    source = parser.add_mutually_exclusive_group(required=True)
    add_worded(source, "cli.label.run", "--run", action="append", metavar="ID")
    add_worded(source, "cli.label.evaluation", "--evaluation", metavar="ID")
    add_worded(source, "cli.label.data", "--data", dest="data_set", metavar="FILE")
    add_worded(source, "cli.label.file", "--file", type=Path)
    add_worded(parser, "cli.label.systems", "--systems", type=listed_names, metavar="A,B")
    add_worded(parser, "cli.kind", "--kind")
    add_worded(
        parser, "cli.map.as_evaluate", "--map", action="append", default=[], metavar="PART=COLUMN"
    )
    add_worded(parser, "cli.leave_out_bad", "--leave-out-bad", action="store_true")
    parser.add_argument("--part", choices=["all", "even", "odd"], default="all")
    add_worded(parser, "cli.sample", "--sample", type=count, metavar="N")
    add_worded(parser, "cli.seed.draws", "--seed", type=whole, default=0)
    add_worded(parser, "cli.overlap", "--overlap", type=count, default=2, metavar="N")
    add_worded(parser, "cli.guidelines", "--guidelines", type=Path, metavar="FILE")
    controls = parser.add_mutually_exclusive_group()
    add_worded(controls, "cli.gold", "--gold", type=count, metavar="N")
    for name, field in SESSION.fields.items():
        add_option(controls if name == "without_gold" else parser, field)
    add_worded(parser, "cli.keep_labels", "--keep-labels", metavar="NAME")
    _add_days(parser)


def _add_days(parser: argparse.ArgumentParser) -> None:
    add_worded(parser, "cli.days", "--days", type=amount, default=JOIN_DAYS)

"""Studies on the command line: other settings of an evaluated system, from its recorded runs."""

from __future__ import annotations

import argparse
import asyncio
import sys
from functools import partial
from typing import Any

from app.cli.evaluate import selected
from app.cli.forms import add_command, add_worded
from app.cli.run_options import add_tag_option
from app.cli.shared import OWNER, listed_names, option_error
from pipelines.base import printable
from pipelines.engine.service import Service
from pipelines.errors import failure
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.scoring import read_results
from pipelines.evaluation.studies.grid import read_axis
from pipelines.evaluation.studies.named import named_studies, run_named_study
from pipelines.evaluation.studies.replays import find_system
from pipelines.evaluation.studies.running import profile_of, score_sweep, sweep
from pipelines.evaluation.studies.table import STUDY_FORMATS, Study, study_text
from pipelines.jobs import Job, Steps
from pipelines.methods.registry import get_method


async def study(service: Service, options: argparse.Namespace) -> int:
    """Make a study of an evaluation; prints its table."""
    if options.list:
        print(printable(_listed()), end="")
        return 0
    if not options.evaluation:
        raise failure("study.no_evaluation")
    if bool(options.name) + bool(options.vary) + options.scores != 1:
        raise failure("study.no_kind")
    names = listed_names(options.metrics)
    if names and options.format != "text":
        raise failure("command.metrics_of_text")
    job = Job("study", partial(_run, service, options), Steps()).start()
    try:
        found = await asyncio.to_thread(job.result)
    finally:
        # After Ctrl-C it ends before the next answer.
        job.stop()
    # An unknown metric is told before anything is saved.
    text = study_text(found, names) if names else STUDY_FORMATS[options.format](found)
    if options.save_profile:
        await asyncio.to_thread(_save, service, options, found)
    sys.stdout.write(printable(text) if options.format == "text" else text)
    return 0


def add_study_command(commands: Any) -> None:
    """Add the command `study`."""
    parser = add_command(commands, "cli.command.study", study)
    add_worded(parser, "cli.study.name", "name", nargs="?", default="")
    add_worded(parser, "cli.study.list", "--list", action="store_true")
    add_worded(parser, "cli.study.evaluation", "--evaluation", default="", metavar="ID")
    add_worded(parser, "cli.study.system", "--system", default="")
    add_worded(
        parser, "cli.study.vary", "--vary", action="append", default=[], metavar="SETTING[=VALUES]"
    )
    add_worded(parser, "cli.study.scores", "--scores", action="store_true")
    add_worded(parser, "cli.study.choose", "--choose", metavar="METRIC")
    add_worded(parser, "cli.study.at_least", "--at-least", type=_minimum, metavar="METRIC=VALUE")
    add_worded(parser, "cli.study.save_profile", "--save-profile", metavar="NAME")
    add_tag_option(parser)
    add_worded(parser, "cli.replace", "--replace", action="store_true")
    add_worded(parser, "cli.format.table", "--format", choices=list(STUDY_FORMATS), default="text")
    add_worded(parser, "cli.metrics", "--metrics", default="", metavar="A,B")


def _run(service: Service, options: argparse.Namespace, job: Job[Steps, Study]) -> Study:
    store, evaluation = service.store, options.evaluation
    rules = {"choose": options.choose, "at_least": options.at_least}

    def progress(done: int, total: int) -> None:
        _show(done, total)
        job.tell(Steps(done, total))

    if options.name:
        name, system = options.name, options.system
        found = run_named_study(
            store,
            evaluation,
            OWNER,
            name,
            system=system,
            tags=options.tag,
            progress=progress,
            **rules,
        )
    else:
        spec = EvaluationSpec.model_validate(store.evaluations.get(evaluation, OWNER).spec)
        system = options.system or _only(spec)
        _, chosen = find_system(spec, system)
        if options.scores:
            _, results = read_results(store.evaluations, evaluation, OWNER)
            rules["choose"] = options.choose or "verdict_f1"
            found = score_sweep(selected(results, options.tag), evaluation, system, **rules)
        else:
            method = get_method(chosen.method.name)
            axes = [read_axis(method, text) for text in options.vary]
            found = sweep(
                *(store, evaluation, OWNER, system, axes),
                tags=options.tag,
                progress=progress,
                **rules,
            )
    print(file=sys.stderr)
    return found


def _save(service: Service, options: argparse.Namespace, found: Study) -> None:
    """Keep what the study chose as a profile."""
    stored = service.store.evaluations.get(found.evaluation, OWNER)
    _, system = find_system(EvaluationSpec.model_validate(stored.spec), found.system)
    profile = profile_of(found, system.method.settings, options.save_profile)
    service.store.profiles.save(OWNER, profile, replace=options.replace)
    print(printable(f"Saved as the profile {profile.name!r}."), file=sys.stderr)


def _only(spec: EvaluationSpec) -> str:
    """Return the only system of an evaluation. Raises InvalidInputError where there are several."""
    names = [system.name for system in spec.systems]
    if len(names) > 1:
        raise failure("study.several_systems", names=[*names])
    return names[0]


def _listed() -> str:
    lines: list[str] = []
    for name, one in named_studies().items():
        lines += [f"{name}: {one.title.en}", f"    {one.source.en}"]
    return "\n".join(lines) + "\n"


def _minimum(text: str) -> tuple[str, float]:
    name, _, value = text.partition("=")
    try:
        return name.strip(), float(value)
    except ValueError:
        raise option_error("option.no_minimum", text=text) from None


def _show(done: int, total: int) -> None:
    print(f"\r{done} of {total} answers replayed   ", end="", file=sys.stderr)

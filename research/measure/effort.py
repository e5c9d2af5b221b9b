"""Measure what the default models take to check given texts, for `assets/effort.json`.

The English texts of `sample_data/checks.json` are checked as far as their first sentence and as a
whole, and those of `sample_data/measured_checks.json` as a whole, so that it is known what every
further sentence and fact takes. They have a question only where a detector needs one. The result
becomes the part `checks` of the table. What strong models take is read from the English
walkthroughs. What questions take comes from the records of `research.default_report`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import aclosing
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import numpy as np
from scipy.optimize import nnls

from pipelines.base import ASSETS, Language
from pipelines.engine.asking import RunRequest, plan_run
from pipelines.engine.checking import (
    STANDARD,
    TextToCheck,
    detectors,
    unmet_needs,
)
from pipelines.engine.estimate import (
    Effort,
    EffortTable,
    MeasuredChecks,
    MeasuredEffort,
    Pace,
    PerText,
    RunUsage,
    TextSize,
    efforts_of,
    mean_efforts,
    past_of,
    size_of,
)
from pipelines.engine.pool import ModelPool
from pipelines.engine.service import Service
from pipelines.methods.registry import METHODS
from pipelines.models.base import Capabilities, SimilarityRequest
from pipelines.models.providers import known_capabilities
from pipelines.run.calls import request_key
from pipelines.run.events import JUDGES, MethodSpec, default_models
from pipelines.run.view import RunView, fold
from pipelines.samples.walkthroughs import (
    SampleText,
    build_unpaced,
    measured_texts,
    sample_texts,
    walkthroughs,
)
from pipelines.text import split_sentences
from research.commands import Command
from research.measure.asking import MethodAnswer, QuestionRecord

_MUCH = 0.7
"""Below this part of its calls, a method that shares the others takes much less than alone."""

_FIELDS = ("calls", "read", "written")

Efforts = dict[str, dict[str, Effort]]
"""What methods took, by role."""


# --- Questions ------------------------------------------------------------------------------------


def with_records(
    table: EffortTable, records: Sequence[QuestionRecord], played: Sequence[RunView], cores: int
) -> EffortTable:
    """Return `table` with what the methods took in `records`, on `cores` cores, by language, and in
    the walkthroughs `played`.

    Methods that `records` do not have stay as they were measured, on fewer questions.
    """
    english, chinese = (
        [record for record in records if record.asked.language == code] for code in ("en", "zh")
    )
    changes: dict[str, object] = {}
    if english:
        new, old = _measured(english, "en"), table.default
        kept = {name: one for name, one in old.methods.items() if name not in new.methods}
        fewer = {name: old.fewer.get(name, old.questions) for name in kept}
        methods = {**new.methods, **kept}
        scripted = mean_efforts([efforts_of(one, by_characters=True) for one in played])
        changes = {
            "default": new.model_copy(update={"methods": methods, "fewer": fewer}),
            "walkthroughs": MeasuredEffort(
                model="", questions=len(played), methods=_rounded(scripted)
            ),
            "pace": question_pace(english, cores),
        }
    if chinese:
        changes["chinese"] = _measured(chinese, "zh")
        changes["chinese_pace"] = question_pace(chinese, cores)
    return table.model_copy(update=changes)


def with_rows(table: EffortTable, records: Sequence[QuestionRecord]) -> EffortTable:
    """Return `table` with what the methods took that it does not have yet; `records` were asked
    apart.

    The other rows and the pace stay as they were measured.
    """
    default = table.default
    taken = [
        {name: one for name, one in _taken(record).items() if name not in default.methods}
        for record in records
    ]
    found = _rounded(mean_efforts(taken))
    fewer = {name: sum(name in one for one in taken) for name in found}
    changed = default.model_copy(
        update={"methods": {**default.methods, **found}, "fewer": {**default.fewer, **fewer}}
    )
    return table.model_copy(update={"default": changed})


def _measured(records: Sequence[QuestionRecord], language: Language) -> MeasuredEffort:
    return MeasuredEffort(
        model=default_models(language)["main"].name,
        questions=len(records),
        methods=_rounded(mean_efforts([_taken(record) for record in records])),
    )


def _taken(record: QuestionRecord) -> Efforts:
    """Return the efforts: records do not tell judges apart, nor what these read, which costs
    nothing."""
    return {
        name: {
            "main": Effort(calls=one.calls, read=one.prompt_tokens, written=one.tokens),
            JUDGES[0]: Effort(calls=one.judge_calls),
        }
        for name, one in record.methods.items()
        if not one.error
    }


def question_pace(records: Sequence[QuestionRecord], cores: int) -> Pace:
    """Return the seconds of a run by the tokens it reads and writes and the verdicts it asks
    for."""

    def total(of: Sequence[MethodAnswer], field: str) -> float:
        return sum(getattr(one, field) for one in of)

    fields = ("prompt_tokens", "tokens", "judge_calls")
    rows = [[total(list(one.methods.values()), field) for field in fields] for one in records]
    return _pace(rows, [record.seconds for record in records], cores)


def _pace(rows: Sequence[Sequence[float]], seconds: Sequence[float], cores: int) -> Pace:
    """Return the seconds by tokens read, tokens written and verdicts: least squares without
    negative terms."""
    found = nonnegative(np.array([[1.0, *row] for row in rows]), np.array(seconds))
    start, read, written, judged = (float(f"{value:.4g}") for value in found)
    return Pace(start=start, read=read, written=written, cores=cores, judged=judged)


def nonnegative(columns: np.ndarray, values: np.ndarray) -> list[float]:
    """Return the weights of `columns` (rows by terms), none below 0, that come nearest to
    `values`."""
    # Columns of like size: tokens are thousands, and the first column is 1.
    scale = np.linalg.norm(columns, axis=0)
    scale[scale == 0] = 1.0
    weights, _ = nnls(columns / scale, values)
    return (weights / scale).tolist()


async def play_english() -> list[RunView]:
    """Return the English walkthroughs whose models are scripted, played without a pause."""
    chosen = [one for one in walkthroughs() if one.language == "en" and one.models is not None]
    with TemporaryDirectory() as data:
        service = Service(Path(data), pool=ModelPool(build_unpaced))
        async with aclosing(service):
            traces = [await service.record(one.spec(), owner="effort") for one in chosen]
    return [fold(trace.events) for trace in traces]


def _rounded(methods: Efforts) -> Efforts:
    """Return the efforts, rounded for a file that people read."""
    return {
        name: {role: _effort(effort.model_dump()) for role, effort in roles.items()}
        for name, roles in methods.items()
    }


def _effort(parts: Mapping[str, float]) -> Effort:
    return Effort(**{key: round(float(value), 2) for key, value in parts.items()})


# --- Given texts ----------------------------------------------------------------------------------


class CheckUsage(NamedTuple):
    """What a method took, by role, to check a text of this `size`."""

    size: TextSize
    roles: Mapping[str, Effort]


def without_question() -> list[str]:
    """Return the standard detectors that can work on an English text whose question nobody
    knows."""
    can = {
        role: known_capabilities(one) or Capabilities() for role, one in default_models().items()
    }
    needs = unmet_needs(can, asked=False, has_evidence=True, language="en")
    return [name for name in STANDARD if needs[name] is None]


def texts(*, asked: bool) -> list[TextToCheck]:
    """Return the English samples, each as far as its first sentence and as a whole, and the texts
    on which detectors are measured; `asked`: with a question."""
    found: list[TextToCheck] = []
    for sample in (one for one in sample_texts() if one.language == "en"):
        first = split_sentences(sample.text)[0].end
        found += [_given(sample, text, asked=asked) for text in (sample.text[:first], sample.text)]
    return [*found, *(_given(sample, sample.text, asked=asked) for sample in measured_texts())]


def _given(sample: SampleText, text: str, *, asked: bool) -> TextToCheck:
    about = sample.title.split(":")[0]
    question = (sample.question or f"What can you tell me about {about}?") if asked else ""
    return TextToCheck(text=text, question=question, sources=sample.sources)


def fitted(taken: Sequence[CheckUsage]) -> dict[str, PerText]:
    """Return, by role, what a text, each sentence and each fact takes: least squares, none below
    0."""
    sizes = np.array([[1.0, *map(float, one.size)] for one in taken])
    found: dict[str, PerText] = {}
    for role in dict.fromkeys(role for one in taken for role in one.roles):
        used = [one.roles.get(role, Effort()) for one in taken]
        weights = {
            field: nonnegative(sizes, np.array([getattr(one, field) for one in used]))
            for field in _FIELDS
        }
        text, sentence, fact = (
            _effort({field: weights[field][at] for field in _FIELDS}) for at in range(3)
        )
        found[role] = PerText(text=text, sentence=sentence, fact=fact)
    return found


def measured(views: Sequence[RunView]) -> MeasuredChecks:
    """Return what the methods took in checks of the default models."""
    taken, apart = (defaultdict[str, list[CheckUsage]](list) for _ in range(2))
    shares: dict[str, set[str]] = defaultdict(set)
    pasts = [past_of(view) for view in views]
    sizes = [past.size or TextSize(1, 1) for past in pasts]
    for view, past, size in zip(views, pasts, sizes, strict=True):
        before: list[str] = []
        for name, roles in past.methods.items():
            taken[name].append(CheckUsage(size, roles))
            one = replace(view, methods={name: view.methods[name]})
            apart[name].append(CheckUsage(size, efforts_of(one)[name]))
            shares[name] |= {n for n in before if _asked(view, n) & _asked(view, name)}
            before.append(name)
    # What little others share changes nothing.
    matters = [
        name
        for name in METHODS
        if shares.get(name) and _calls(taken[name]) < _MUCH * _calls(apart[name])
    ]
    return MeasuredChecks(
        model=default_models()["main"].name,
        texts=len(pasts),
        sentences=sum(size.sentences for size in sizes),
        methods={name: fitted(taken[name]) for name in METHODS if name in taken},
        shares={name: tuple(n for n in METHODS if n in shares[name]) for name in matters},
        alone={name: fitted(apart[name]) for name in matters},
        pace=pace(pasts, os.cpu_count() or 1),
    )


def _calls(taken: Sequence[CheckUsage]) -> float:
    return sum(effort.calls for one in taken for effort in one.roles.values())


def _asked(view: RunView, method: str) -> set[tuple[str, str]]:
    """Return the requests of a method to language models and judges, those with a text of chance
    aside."""
    return {
        (call.model, request_key(call.request))
        for call in view.methods[method].calls
        if call.error is None and not isinstance(call.request, SimilarityRequest)
    }


def pace(pasts: Sequence[RunUsage], cores: int) -> Pace:
    """Return the seconds of a check by the tokens it reads and writes and by its verdicts."""
    rows = [[one.made.read, one.made.written, one.verdicts] for one in pasts]
    return _pace(rows, [one.seconds for one in pasts], cores)


def illustrated(played: Sequence[RunView]) -> MeasuredChecks:
    """Return what checks take with strong models, by the answers of walkthroughs `played`: for each
    of their sentences where a method goes through a text, for the whole where it does not."""
    taken: dict[str, list[CheckUsage]] = defaultdict(list)
    for view in played:
        for name, roles in efforts_of(view, by_characters=True).items():
            answer = view.methods[name].answer
            if METHODS[name].checks and answer is not None:
                taken[name].append(CheckUsage(size_of(answer.original), roles))
    known = [one for of in taken.values() for one in of]
    return MeasuredChecks(
        model="",
        texts=max((len(of) for of in taken.values()), default=0),
        sentences=sum(one.size.sentences for one in known) // max(1, len(taken)),
        methods={name: _of_answers(name, taken[name]) for name in METHODS if name in taken},
    )


def _of_answers(name: str, taken: Sequence[CheckUsage]) -> dict[str, PerText]:
    by_sentence = METHODS[name].checks == "text"
    parts = sum(one.size.sentences for one in taken) if by_sentence else len(taken)
    found: dict[str, PerText] = {}
    for role in dict.fromkeys(role for one in taken for role in one.roles):
        total = sum((one.roles.get(role, Effort()) for one in taken), Effort()) * (1 / parts)
        each = _effort({field: getattr(total, field) for field in _FIELDS})
        found[role] = PerText(sentence=each) if by_sentence else PerText(text=each)
    return found


async def check_all(chosen: Sequence[TextToCheck], names: Sequence[str]) -> list[RunView]:
    """Check every text by the detectors `names`, all in one run."""
    views: list[RunView] = []
    methods = [MethodSpec(name=name) for name in names]
    with TemporaryDirectory() as folder:
        async with aclosing(Service(Path(folder))) as service:
            for number, text in enumerate(chosen, start=1):
                plan = plan_run(RunRequest(text=text, methods=methods))
                view = fold((await service.record(plan, owner="effort")).events)
                views.append(view)
                print(f"{number}/{len(chosen)} {view.time:.1f} s", file=sys.stderr, flush=True)
    return views


def _run(options: argparse.Namespace) -> None:
    table = EffortTable.model_validate_json(options.table.read_bytes())
    asked = not set(options.detectors) <= set(without_question())
    found = measured(asyncio.run(check_all(texts(asked=asked), options.detectors)))
    before = table.checks.get("default")
    if before is not None:
        methods = {**before.methods, **found.methods}
        # The standard ones are what is known of texts, sentences, pace and what they share.
        whole = found if set(without_question()) <= set(options.detectors) else before
        found = whole.model_copy(update={"methods": methods})
    if options.no_pace:
        found = found.model_copy(update={"pace": None})
    strong = illustrated(asyncio.run(play_english()))
    changed = table.model_copy(update={"checks": {"default": found, "walkthroughs": strong}})
    options.table.write_text(f"{changed.model_dump_json(indent=2)}\n", encoding="utf-8")


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--table", type=Path, default=ASSETS / "effort.json")
    parser.add_argument(
        "--detectors",
        nargs="+",
        choices=list(detectors()),
        default=without_question(),
        help="default: the standard ones that need no question; those that were measured before"
        " stay in the table",
    )
    what = "the machine is not quiet: leave the seconds to the pace of questions"
    parser.add_argument("--no-pace", action="store_true", help=what)


COMMAND = Command(__doc__, _options, _run)

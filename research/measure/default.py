"""Measure the shipped default on the questions of the sample data, in tables.

Rows are numbered from 1 as the file lists the questions of a language. `tune` are the even rows of
`sample_data/questions.csv`, `report` the odd ones, `held-out` all of
`sample_data/held_out_questions.csv`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import aclosing, nullcontext
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeVar, get_args

import numpy as np
from pydantic import ValidationError

from pipelines.base import ASSETS, Language
from pipelines.engine.estimate import EffortTable
from pipelines.engine.estimate import effort_table as shipped_efforts
from pipelines.engine.service import Service
from pipelines.errors import failure
from pipelines.evaluation.metrics.reference import words_of
from pipelines.methods.registry import METHODS, get_method, standard_methods
from pipelines.models.base import EMBEDDED_NAME
from pipelines.run.events import DOUBTS
from research.commands import Command, positive, run_command
from research.measure.asking import (
    PARTS,
    MethodAnswer,
    Part,
    QuestionRecord,
    ReportConcept,
    ReportQuestion,
    ask_all,
    questions,
)
from research.measure.effort import play_english, with_records, with_rows
from research.tables import markdown, put

T = TypeVar("T")

FIRST = ("direct", "rag", "drad")
"""The methods whose answers a visitor sees first."""

ENOUGH, PARAPHRASES = 4, 6
"""Of six paraphrases that Rowen asks for, four are enough for its comparison to mean something."""

_PARTS: dict[Part, str] = {
    "tune": "Questions for tuning (even rows)",
    "report": "Questions for the report (odd rows)",
    "held-out": "Held-out questions",
}
_LANGUAGES: dict[Language, str] = {"en": "", "zh": " in Chinese"}
_MENDERS = ("drad", "rowen", "ever", "haarag", "rag")
_NOTHING = "–"

OpenService = Callable[[Path], Service]


# --- Counts over the records of a part ------------------------------------------------------------


class Ratio(NamedTuple):
    """So many of so many."""

    part: int
    of: int

    def __str__(self) -> str:
        percentage = f"{100 * self.part / self.of:.0f} %" if self.of else _NOTHING
        return f"{self.part} of {self.of} ({percentage})"


def share(of: Sequence[T], holds: Callable[[T], bool]) -> Ratio:
    """Return how many of some things a condition holds for."""
    return Ratio(sum(map(holds, of)), len(of))


def outcomes(attempts: Iterable[MethodAnswer]) -> dict[str, Ratio]:
    """Return how many answers are right, wrong, abstained and failed."""
    counts = Counter(one.outcome for one in attempts)
    total = counts.total()
    return {name: Ratio(counts[name], total) for name in ("right", "wrong", "abstained", "failed")}


def originals_right(attempts: Sequence[MethodAnswer]) -> Ratio:
    """Return how many of a method's originals are right."""
    return share(attempts, lambda one: one.original_outcome == "right")


def repairs(records: Iterable[QuestionRecord], method: str) -> tuple[Ratio, Ratio]:
    """Return, of the wrong Direct answers, those that `method` has right, and of the right ones
    those that it spoils; abstaining spoils too."""
    pairs = [(one.methods["direct"].outcome, one.methods[method].outcome) for one in records]
    return (
        share([b for a, b in pairs if a == "wrong"], lambda after: after == "right"),
        share([b for a, b in pairs if a == "right"], lambda after: after != "right"),
    )


def detection(attempts: Sequence[MethodAnswer]) -> tuple[Ratio, Ratio]:
    """Return, of a method's own wrong originals and of its right ones, those that it doubts; a
    verdict that was not reached doubts nothing."""

    def doubted(outcome: str) -> Ratio:
        of = [one for one in attempts if one.original_outcome == outcome]
        return share(of, lambda one: one.verdict in DOUBTS)

    return doubted("wrong"), doubted("right")


def paraphrasing(records: Sequence[QuestionRecord]) -> list[list[Any]]:
    """Return what became of the paraphrases, in rows; those over the six that are wanted do not
    count."""
    written = [one for record in records for one in record.paraphrases]
    reasons = Counter(one.discarded for one in written if one.discarded)
    taken = [sum(not one.discarded for one in record.paraphrases) for record in records]
    return [
        ["paraphrases written that were taken", share(written, lambda one: not one.discarded)],
        *([f"discarded: {reason}", count] for reason, count in reasons.most_common()),
        [
            f"questions with {ENOUGH} of {PARAPHRASES} or more",
            share(taken, lambda count: count >= ENOUGH),
        ],
    ]


def checking(records: Iterable[QuestionRecord]) -> list[list[Any]]:
    """Return what EVER's concepts were asked by, and what their verdicts are about, in rows.

    Where a claim says the same as the whole sentence, the verdict is one on the concept only if the
    sentence has no other.
    """
    found = [
        (one, len({other.text for other in record.concepts if other.sentence == one.sentence}))
        for record in records
        for one in record.concepts
    ]

    def narrow(one: ReportConcept) -> bool:
        return words_of(one.claim) != words_of(one.sentence)

    verdicts = Counter(one.verdict for one, _ in found)
    return [
        [
            "validation question written by the model and usable",
            share(found, lambda pair: not pair[0].fallback),
        ],
        [
            "verdict about one concept alone",
            share(found, lambda pair: narrow(pair[0]) or pair[1] == 1),
        ],
        ["verdict about less than the whole sentence", share(found, lambda pair: narrow(pair[0]))],
        *([f"verdict: {verdict}", count] for verdict, count in verdicts.most_common()),
    ]


class Duration(NamedTuple):
    """Seconds: median and 90th percentile over `runs` runs."""

    median: float
    high: float
    runs: int


def until(records: Iterable[QuestionRecord], methods: Iterable[str]) -> Duration | None:
    """Return seconds from the start of a run until all `methods` have answered; None without such a
    run.

    A run in which one of them fails is left out.
    """
    wanted = list(methods)
    ends = [[record.methods[name].seconds for name in wanted] for record in records]
    known = [[second for second in end if second is not None] for end in ends]
    return duration([max(end) for end in known if len(end) == len(wanted)])


def duration(seconds: Sequence[float]) -> Duration | None:
    """Return what so many runs took; None without a run."""
    if not seconds:
        return None
    median, high = np.percentile(seconds, (50, 90)).tolist()
    return Duration(median, high, len(seconds))


def cost(attempts: Sequence[MethodAnswer]) -> list[float]:
    """Return means over the attempts: calls of language models and of judges, tokens read and
    written."""
    rows = [(one.calls, one.judge_calls, one.prompt_tokens, one.tokens) for one in attempts]
    return np.mean(rows, axis=0).tolist() if rows else [float("nan")] * 4


# --- The report -----------------------------------------------------------------------------------


def report(records: Iterable[QuestionRecord], cores: int) -> str:
    """Return the whole report, with a section for each part in the order of `records`."""
    parts = [list(found) for _, found in groupby(records, key=_part)]
    sections = [_section(found) for found in parts]
    return "\n\n".join([_head(cores), *sections]) + "\n"


def _part(record: QuestionRecord) -> tuple[Language, Part]:
    return record.asked.language, record.asked.part


def _head(cores: int) -> str:
    return f"""\
# The default on questions of fact

What the shipped default does ({EMBEDDED_NAME}, the bundled judges, the sample library,
default settings) when it is asked questions of `sample_data/`, English ones where a heading does
not say Chinese. One run at a time, all methods in one run, models and library already loaded,
on {cores} cores. Written by `python -m research.default_report`.

An answer is right when it names the reference answer or one of its other spellings as whole words.
Yes-or-no questions go by the first word; where it is neither yes nor no, by whether the first
sentence says the question again or denies it. What else an answer says is not judged. The article
with the answer is in the library for every question. Rows are counted from 1: even ones are for
tuning, odd ones for reporting; DRAD's θ₂ was fitted on answers to the odd English ones.
Nothing is tuned on the Chinese held-out questions; what was chosen in view of the English ones is
in docs/measurements.md."""


def _section(records: Sequence[QuestionRecord]) -> str:
    attempts = {name: [one.methods[name] for one in records] for name in records[0].methods}
    language, part = _part(records[0])
    blocks = [f"## {_PARTS[part]}{_LANGUAGES[language]}: {len(records)}"]

    def add(
        title: str, head: Sequence[str], rows: Sequence[Sequence[object]], note: str = ""
    ) -> None:
        if rows:
            below = f"\n\n{note}" if note else ""
            blocks.append(f"### {title}\n\n{markdown(head, rows)}{below}")

    add(
        "Answers",
        ["method", "right", "wrong", "abstained", "failed", "its original right"],
        [
            [_title(name), *outcomes(found).values(), originals_right(found)]
            for name, found in attempts.items()
        ],
    )
    if "direct" in attempts:
        add(
            "Mended and spoiled",
            ["method", "wrong Direct answers made right", "right Direct answers spoiled"],
            [[_title(name), *repairs(records, name)] for name in _MENDERS if name in attempts],
        )
    judging = {name: found for name, found in attempts.items() if METHODS[name].judges}
    add(
        "Doubts",
        ["method", "wrong originals doubted", "right originals doubted"],
        [[_title(name), *detection(found)] for name, found in judging.items()],
    )
    if "rowen" in attempts:
        add("Rowen's paraphrases", ["", "count"], paraphrasing(records))
    if "ever" in attempts:
        add("EVER's concepts", ["", "count"], checking(records))
    ends = {"Direct is complete": FIRST[:1], "Direct, RAG and DRAD are complete": FIRST}
    known = {label: wanted for label, wanted in ends.items() if set(wanted) <= set(attempts)}
    whole = duration([record.seconds for record in records])
    add(
        "Time",
        ["seconds from the start until", "median", "90th percentile", "runs"],
        [
            *([label, *_seconds(until(records, wanted))] for label, wanted in known.items()),
            ["all methods are complete", *_seconds(whole)],
        ],
    )
    costs = {name: cost(found) for name, found in attempts.items()}
    add(
        "Cost",
        [
            *("method", "seconds, median", "90th percentile"),
            *("model calls", "judge calls", "tokens read", "tokens written"),
        ],
        [
            *(
                [_title(name), *_seconds(until(records, [name]))[:2], *_means(means)]
                for name, means in costs.items()
            ),
            ["all", *_seconds(whole)[:2], *_means(np.nansum(list(costs.values()), axis=0))],
        ],
        "Calls and tokens are means over runs. A call that several methods share is counted once."
        "\nChoices between given options report no tokens.",
    )
    return "\n\n".join(blocks)


def _seconds(found: Duration | None) -> list[str]:
    if found is None:
        return [_NOTHING, _NOTHING, "0"]
    return [f"{found.median:.1f}", f"{found.high:.1f}", str(found.runs)]


def _means(means: Iterable[float]) -> list[str]:
    forms = ("{:.1f}", "{:.1f}", "{:,.0f}", "{:,.0f}")
    return [
        _NOTHING if np.isnan(one) else form.format(one)
        for form, one in zip(forms, means, strict=True)
    ]


def _title(name: str) -> str:
    """Return the method's name on screens."""
    return _texts()[f"method.{name}.title"]


@cache
def _texts() -> dict[str, str]:
    return json.loads((ASSETS / "locale" / "en.json").read_text(encoding="utf-8"))


# --- The command ----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None, *, open_service: OpenService = Service) -> int:
    """Ask, and write the report; returns 0, 1 when it failed, 2 for unusable input.

    `open_service` is given the folder for the service's data.
    """
    command = Command(__doc__, _options, lambda options: _run(options, open_service))
    return run_command("default_report", command, arguments)


def _run(options: argparse.Namespace, open_service: OpenService) -> None:
    cores = os.cpu_count() or 1
    if options.again:
        records = _read(options.again)
    else:
        methods = [get_method(name).name for name in options.methods]
        asked = [
            one
            for language in dict.fromkeys(options.language)
            for part in dict.fromkeys(options.part)
            for one in questions(part, options.limit, language)
        ]
        records = asyncio.run(_ask(asked, methods, options, open_service))
    if options.add_effort:
        _write(options.add_effort, with_rows(_efforts(options.add_effort), records))
        return
    text = report(records, cores)
    if options.effort:
        played = asyncio.run(play_english())
        # What checks of given texts take is measured apart.
        _write(options.effort, with_records(shipped_efforts(), records, played, cores))
    put(text, options.output)


async def _ask(
    asked: Sequence[ReportQuestion],
    methods: Sequence[str],
    options: argparse.Namespace,
    open_service: OpenService,
) -> list[QuestionRecord]:
    records: list[QuestionRecord] = []
    to: Path | None = options.records
    runs = len(asked) * (len(methods) if options.apart else 1)
    with (
        TemporaryDirectory() as folder,
        to.open("w", encoding="utf-8") if to else nullcontext() as file,
    ):
        async with aclosing(open_service(Path(folder))) as service:
            print("Loading the models and the library", file=sys.stderr)
            async for record in ask_all(service, asked, methods, apart=options.apart):
                records.append(record)
                if file is not None:
                    file.write(f"{record.model_dump_json()}\n")
                    file.flush()
                right = [name for name, one in record.methods.items() if one.outcome == "right"]
                print(
                    f"{len(records)}/{runs} {record.asked.id} {record.seconds:.1f} s,"
                    f" right: {', '.join(right) or 'none'}",
                    file=sys.stderr,
                    flush=True,
                )
    return records


def _efforts(path: Path) -> EffortTable:
    try:
        return EffortTable.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise failure("research.no_efforts", file=path.name) from None


def _write(path: Path, table: EffortTable) -> None:
    path.write_text(f"{table.model_dump_json(indent=2)}\n", encoding="utf-8")


def _read(path: Path) -> list[QuestionRecord]:
    """Return records written earlier, scored anew."""
    try:
        lines = path.read_text(encoding="utf-8").split("\n")
        records = [QuestionRecord.model_validate_json(line).scored() for line in lines if line]
    except (OSError, UnicodeDecodeError, ValidationError):
        records = []
    if not records:
        raise failure("research.no_records", file=path.name)
    return records


def _options(parser: argparse.ArgumentParser) -> None:
    def file(name: str, what: str) -> None:
        parser.add_argument(name, type=Path, metavar="FILE", help=what)

    parser.add_argument(
        "--part", nargs="+", choices=PARTS, default=["report"], help="one or more (report)"
    )
    parser.add_argument(
        "--language", nargs="+", choices=get_args(Language), default=["en"], help="one or both (en)"
    )
    parser.add_argument("--limit", type=positive, metavar="N", help="the first N of each part")
    parser.add_argument(
        "--methods",
        type=lambda text: text.split(","),
        default=standard_methods(),
        metavar="A,B",
        help="default: those that are ticked at first",
    )
    file("--output", "default: standard output")
    file("--records", "a JSON line a question")
    file("--effort", "also write what estimates rest on (shipped as assets/effort.json)")
    parser.add_argument(
        "--apart", action="store_true", help="each method in a run of its own, sharing no reply"
    )
    what = "in place of a report: add to this table the methods that it does not have"
    file("--add-effort", what)
    file("--again", "ask nothing: score these records anew")

"""`python -m pipelines.research.default_report`: ask the shipped default, and report.

Rows are numbered from 1 as the file lists the questions of a language. `tune` are the even rows of
`sample_data/questions.csv`, `report` the odd ones, `held-out` all of
`sample_data/held_out_questions.csv`.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import aclosing, nullcontext
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import get_args

from pydantic import ValidationError

from pipelines.engine.effort_table import EffortTable
from pipelines.engine.effort_table import effort_table as shipped_efforts
from pipelines.engine.service import Service
from pipelines.errors import InvalidInputError, VeriscopeError, failure
from pipelines.methods.registry import get_method, standard_methods
from pipelines.research.default_report.asking import (
    PARTS,
    QuestionRecord,
    ReportQuestion,
    ask_all,
    questions,
)
from pipelines.research.default_report.effort import play_english, with_records, with_rows
from pipelines.research.default_report.table import report
from pipelines.types import Language

OpenService = Callable[[Path], Service]


def main(arguments: Sequence[str] | None = None, *, open_service: OpenService = Service) -> int:
    """Ask, and write the report; returns 0, 1 when it failed, 2 for unusable input.

    `open_service` is given the folder for the service's data.
    """
    options = _parser().parse_args(arguments)
    try:
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
            _add_effort(options.add_effort, records)
            return 0
        text = report(records, os.cpu_count() or 1)
        if options.effort:
            played = asyncio.run(play_english())
            # What checks of given texts take is measured apart.
            table = with_records(shipped_efforts(), records, played, os.cpu_count() or 1)
            options.effort.write_text(f"{table.model_dump_json(indent=2)}\n", encoding="utf-8")
        if options.output:
            options.output.write_text(text, encoding="utf-8")
        else:
            print(text, end="")
    except VeriscopeError as error:
        print(f"veriscope: {error}", file=sys.stderr)
        return 2 if isinstance(error, InvalidInputError) else 1
    except KeyboardInterrupt:
        return 130
    return 0


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
                done = f"{len(records)}/{runs}"
                right = [name for name, one in record.methods.items() if one.outcome == "right"]
                print(
                    f"{done} {record.asked.id} {record.seconds:.1f} s,"
                    f" right: {', '.join(right) or 'none'}",
                    file=sys.stderr,
                    flush=True,
                )
    return records


def _add_effort(path: Path, records: Sequence[QuestionRecord]) -> None:
    """Add the rows that the table in `path` does not have."""
    try:
        table = EffortTable.model_validate_json(path.read_bytes())
    except (OSError, ValidationError):
        raise failure("research.no_efforts", file=path.name) from None
    path.write_text(f"{with_rows(table, records).model_dump_json(indent=2)}\n", encoding="utf-8")


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


def _positive(text: str) -> int:
    if (number := int(text)) < 1:
        raise ValueError(text)
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.research.default_report",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--part", nargs="+", choices=PARTS, default=["report"], help="one or more (report)"
    )
    parser.add_argument(
        "--language", nargs="+", choices=get_args(Language), default=["en"], help="one or both (en)"
    )
    parser.add_argument("--limit", type=_positive, metavar="N", help="the first N of each part")
    parser.add_argument(
        "--methods",
        type=lambda text: text.split(","),
        default=standard_methods(),
        metavar="A,B",
        help="default: those that are ticked at first",
    )
    parser.add_argument("--output", type=Path, metavar="FILE", help="default: standard output")
    parser.add_argument("--records", type=Path, metavar="FILE", help="a JSON line a question")
    parser.add_argument(
        "--effort",
        type=Path,
        metavar="FILE",
        help="also write what estimates rest on (shipped as assets/effort.json)",
    )
    parser.add_argument(
        "--apart", action="store_true", help="each method in a run of its own, sharing no reply"
    )
    parser.add_argument(
        "--add-effort",
        type=Path,
        metavar="FILE",
        help="in place of a report: add to this table the methods that it does not have",
    )
    parser.add_argument(
        "--again", type=Path, metavar="FILE", help="ask nothing: score these records anew"
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

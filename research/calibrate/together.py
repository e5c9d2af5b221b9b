"""Fit one verdict of several detectors.

Statements whose truth is known are checked by the detectors, as the page Check does it; what a
check has recorded is kept in FOLDER and not asked again, so that the command can be stopped and
goes on where it was. Then the combinations are fitted, written to
`assets/calibration/together.json`, and the tables are printed and written into docs/verdicts.md.
After a change of a detector, delete its file in FOLDER: `judges.jsonl` (SLM check, P(yes) and
HAARAG with the default judges of the language), `bundled.jsonl` (SLM check without a language
model), `ever.jsonl`, that of the larger language model, or those for given sources.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from pipelines.base import ASSETS
from pipelines.models.catalogue import LARGE_MODEL
from research.calibrate.asking import (
    Asking,
    ask,
    language_model,
    seen_of,
    usual,
    views_of,
)
from research.calibrate.fitting import fit_all, limits
from research.calibrate.verdict_tables import tables
from research.commands import Command, run_command
from research.samples.files import Sources, sources_in
from research.samples.statements import (
    LabelledStatement,
    decided_statements,
    public_statements,
    with_articles,
)

_OUT = ASSETS / "calibration" / "together.json"


_BEGIN, _END = "<!-- tables -->", "<!-- end of tables -->"
"""Between what the tables stand in the document."""


def _run(options: argparse.Namespace) -> int:
    """Ask, fit, write and print; returns 3 while statements are left to be asked."""
    options.kept.mkdir(parents=True, exist_ok=True)
    data = sources_in(options.data) if options.data else Sources()
    given = [*with_articles(), *public_statements(data, options.most)]
    own = decided_statements()
    askings: list[tuple[Asking, list[LabelledStatement]]] = []
    larger = language_model(LARGE_MODEL)
    askings += [(one, own) for one in (*usual(), larger) if one.name not in options.without]
    judges, bundled, *_ = usual()
    askings += [(one._replace(name=f"{one.name}-sources"), given) for one in (judges, bundled)]
    left = 0
    if not options.no_asking:
        for asking, statements in askings:
            left += asyncio.run(ask(asking, statements, options.kept, options.seconds))
    if left:
        print(f"{left} checks are left: run the command again.", file=sys.stderr)
        return 3
    names = [asking.name for asking, _ in askings]
    statements = [*own, *given]
    seen = seen_of(statements, views_of(names, statements, options.kept))
    found = fit_all(seen)
    thresholds = limits(seen)
    listed = {"combinations": found, "limits": thresholds}
    record = _written(_provenance(own, given, options), listed)
    options.out.write_text(record, encoding="utf-8")
    told = tables(seen, found, thresholds)
    print(told)
    if options.doc:
        before, _, rest = options.doc.read_text(encoding="utf-8").partition(_BEGIN)
        _, _, after = rest.partition(_END)
        whole = f"{before}{_BEGIN}\n\n{told}\n\n{_END}{after}"
        options.doc.write_text(whole, encoding="utf-8")
    return 0


def _written(record: dict[str, Any], listed: Mapping[str, Sequence[BaseModel]]) -> str:
    """Return the record as JSON, with one line for each thing in its lists."""
    head = json.dumps(record, indent=1, ensure_ascii=False).removesuffix("\n}")
    lists = (
        f' "{name}": [\n' + ",\n".join(f"  {one.model_dump_json()}" for one in of) + "\n ]"
        for name, of in listed.items()
    )
    return ",\n".join([head, *lists]) + "\n}\n"


def _provenance(
    own: Sequence[LabelledStatement],
    given: Sequence[LabelledStatement],
    options: argparse.Namespace,
) -> dict[str, Any]:
    return {
        "date": options.date.isoformat(),
        "data": {
            "library": f"{len(own)} statements of sample_data/decided_statements.csv about the"
            " sample library; the part `fit` fits, the part `report` reports on other facts",
            "given": f"{len(given)} statements with their sources: the part `fit` with its articles"
            " fits, and in English public claims report (odd records of"
            f" {', '.join(dict.fromkeys(one.wording for one in given if one.kind == ''))}), in"
            " Chinese the part `report` with its articles",
            "web": "none: the nearest use is a searched library",
            "own": "none: the nearest use is a searched library",
        },
        "criterion": "logistic regression with an L2 penalty; grouped cross-validation (article or"
        " page); supported from one half on, or from what keeps false statements that are called"
        " supported at one in ten in cross-validation",
    }


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kept", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--data", type=Path, metavar="FOLDER", help="public files, for the use with given sources"
    )
    parser.add_argument("--most", type=int, default=75, help="claims of a public file at most (75)")
    parser.add_argument(
        "--without",
        action="append",
        default=[],
        choices=["ever", LARGE_MODEL],
        help="who is not asked; the larger language model has to be fetched",
    )
    parser.add_argument("--seconds", type=float, default=1e9, help="time for each set of detectors")
    parser.add_argument("--no-asking", action="store_true", help="fit what the folder holds")
    parser.add_argument("--out", type=Path, default=_OUT, metavar="FILE")
    parser.add_argument(
        "--doc", type=Path, metavar="FILE", help="a document with a place for the tables"
    )
    parser.add_argument("--date", type=date.fromisoformat, default=date.today())


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0, 3 while statements are left, 1 or 2 when it failed."""
    return run_command("together", Command(__doc__, _options, _run), arguments)

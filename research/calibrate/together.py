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
from pipelines.methods.limits import Use
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


_USES: tuple[Use, ...] = ("library", "given")
"""The uses for which there are statements."""

_END = "<!-- end of tables -->"
"""Where the tables of a use end in the document; they begin at `<!-- tables: USE -->`."""


def _run(options: argparse.Namespace) -> int:
    """Ask, fit, write and print; returns 3 while statements are left to be asked."""
    options.kept.mkdir(parents=True, exist_ok=True)
    chosen: Sequence[Use] = options.use or _USES
    of_use: dict[Use, _Asked] = {use: _asked_of(use, options) for use in chosen}
    left = 0
    if not options.no_asking:
        for askings, statements in of_use.values():
            for asking in askings:
                left += asyncio.run(ask(asking, statements, options.kept, options.seconds))
    if left:
        print(f"{left} checks are left: run the command again.", file=sys.stderr)
        return 3
    before = json.loads(options.out.read_text(encoding="utf-8")) if options.out.is_file() else {}
    record: dict[str, Any] = {
        "dates": {use: _of_before(before, "dates", use) for use in _USES},
        "data": {use: _of_before(before, "data", use) for use in _USES} | _NEAREST,
        "criterion": _CRITERION,
    }
    listed: dict[str, list[Any]] = {
        name: [one for one in before.get(name, ()) if one["use"] not in of_use]
        for name in ("combinations", "limits")
    }
    for use, (askings, statements) in of_use.items():
        views = views_of([one.name for one in askings], statements, options.kept)
        seen = seen_of(statements, views)
        found, thresholds = fit_all(seen), limits(seen)
        record["dates"][use] = options.date.isoformat()
        record["data"][use] = _DATA[use].format(count=len(statements))
        listed["combinations"] += found
        listed["limits"] += thresholds
        told = tables(seen, found, thresholds)
        print(told)
        if options.doc:
            _document(options.doc, use, told)
    for of in listed.values():
        of.sort(key=lambda one: _USES.index(one["use"] if isinstance(one, dict) else one.use))
    options.out.write_text(_written(record, listed), encoding="utf-8")
    return 0


_Asked = tuple[list[Asking], list[LabelledStatement]]


def _asked_of(use: Use, options: argparse.Namespace) -> _Asked:
    """Return who is asked about the statements of a use, and these."""
    judges, bundled, *_ = usual()
    if use == "library":
        asked = (*usual(), language_model(LARGE_MODEL))
        return [one for one in asked if one.name not in options.without], decided_statements()
    data = sources_in(options.data) if options.data else Sources()
    askings = [one._replace(name=f"{one.name}-sources") for one in (judges, bundled)]
    return askings, [*with_articles(), *public_statements(data, options.most)]


def _of_before(record: Mapping[str, Any], name: str, use: str) -> str:
    return record.get(name, {}).get(use, "")


def _document(path: Path, use: str, told: str) -> None:
    """Put the tables of a use into the document, in the place of those that are there."""
    begin = f"<!-- tables: {use} -->"
    before, _, rest = path.read_text(encoding="utf-8").partition(begin)
    _, _, after = rest.partition(_END)
    path.write_text(f"{before}{begin}\n\n{told}\n\n{_END}{after}", encoding="utf-8")


def _written(
    record: Mapping[str, Any], listed: Mapping[str, Sequence[BaseModel | dict[str, Any]]]
) -> str:
    """Return the record as JSON, with one line for each thing in its lists."""
    head = json.dumps(record, indent=1, ensure_ascii=False).removesuffix("\n}")
    lists = (
        f' "{name}": [\n' + ",\n".join(f"  {_line(one)}" for one in of) + "\n ]"
        for name, of in listed.items()
    )
    return ",\n".join([head, *lists]) + "\n}\n"


def _line(one: BaseModel | dict[str, Any]) -> str:
    if isinstance(one, BaseModel):
        return one.model_dump_json()
    return json.dumps(one, ensure_ascii=False, separators=(",", ":"))


_DATA: Mapping[Use, str] = {
    "library": "{count} statements of sample_data/decided_statements.csv about the sample library;"
    " the part `fit` fits, the part `report` reports on other facts",
    "given": "{count} statements with their sources: the part `fit` with its articles fits, and in"
    " English public claims report (odd records of fever_symmetric, fool_me_twice, wice_claims,"
    " claim_evidence_stance), in Chinese the part `report` with its articles",
}
_NEAREST = dict.fromkeys(("web", "own"), "none: the nearest use is a searched library")
_CRITERION = (
    "logistic regression with an L2 penalty; grouped cross-validation (article or page); supported"
    " from one half on, or from what keeps false statements that are called supported at one in ten"
    " in cross-validation"
)


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--kept", type=Path, required=True, metavar="FOLDER")
    parser.add_argument(
        "--use",
        action="append",
        choices=_USES,
        help="fit for this use alone; what was fitted for others stays (both)",
    )
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

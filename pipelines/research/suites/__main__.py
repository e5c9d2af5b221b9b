"""`python -m pipelines.research.suites --data FOLDER`: a judge on every suite, as Markdown.

What a judge says is kept in batches under `--work`, so that an interrupted measurement goes on and
a judge that was measured before costs nothing. Data files are public ones, read where they are.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from datetime import date
from functools import partial
from pathlib import Path
from typing import Any

from pipelines.errors import exit_status, failure
from pipelines.evaluation.statistics.resampling import Sampling
from pipelines.models.judges.trained import WEIGHTS, TrainedJudge
from pipelines.paths import data_folder
from pipelines.research.sources import sources_in
from pipelines.research.suites.results import SuiteResult, as_json, result_of
from pipelines.research.suites.scoring import (
    as_words,
    doubts,
    fingerprint,
    kept,
    name_of,
    verdicts,
)
from pipelines.research.suites.sets import WORDS, Suite, odd_suites
from pipelines.research.suites.speed import times_of
from pipelines.research.suites.table import JudgeFigures, report


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; returns 0, 1 when it failed, 2 for unusable input."""
    options = _parser().parse_args(arguments)
    return exit_status(partial(_run, options))


def _run(options: argparse.Namespace) -> None:
    sampling = Sampling(resamples=options.resamples)
    suites = odd_suites(sources_in(options.data), options.more)
    if options.only:
        suites = [suite for suite in suites if suite.name in options.only]
    if not suites:
        raise failure("research.no_suites")
    folders = [("trained", options.judge)]
    if options.beside is not None:
        folders.append(("before", options.beside))
    names = options.names or [name for name, _ in folders]
    if len(names) != len(folders):
        raise failure("research.other_names")
    judges = [
        JudgeFigures(name, tuple(measured(folder, suites, options.work, sampling)))
        for name, (_, folder) in zip(names, folders, strict=True)
    ]
    seconds = times_of(TrainedJudge(options.judge)) if options.speed else {}
    _write(options, judges, report(judges, sampling, options.date, seconds), seconds)


def measured(
    folder: Path, suites: Sequence[Suite], work: Path, sampling: Sampling
) -> list[SuiteResult]:
    """Return the results of the judge in `folder` on every suite; what `work` holds is not
    asked again.
    """
    judge = TrainedJudge(folder)
    own = work / fingerprint(folder)
    return [_result(judge, suite, own, sampling) for suite in suites]


def _result(judge: TrainedJudge, suite: Suite, own: Path, sampling: Sampling) -> SuiteResult:
    def ask(what: str, claims: Sequence[Any], reads: Any) -> list[Any]:
        say = partial(_say, f"{own.name}: {what}", len(claims))
        return kept(own / name_of(what, claims), claims, reads, say)

    said = ask(suite.name, suite.claims, verdicts(judge))
    alone = suite.alone if suite.people else []
    even = [example.claim for example in suite.even]
    words = None
    if suite.name in WORDS:
        found = ask("words", suite.claims, doubts(judge))
        words = [as_words(one) for one in found]
    return result_of(
        suite,
        said,
        sampling,
        alone=ask(f"{suite.name} alone", alone, verdicts(judge)) if alone else (),
        even=ask(f"{suite.name} even", even, verdicts(judge)) if even else (),
        words=words,
    )


def _say(what: str, of: int, done: int) -> None:
    print(f"{what}: {done} of {of}", file=sys.stderr, flush=True)


def _write(
    options: argparse.Namespace,
    judges: Sequence[JudgeFigures],
    text: str,
    seconds: dict[str, float],
) -> None:
    if options.json is not None:
        found = {"date": options.date.isoformat(), "seconds": seconds}
        figures = {judge.name: as_json(judge.results) for judge in judges}
        options.json.write_text(
            json.dumps({**found, "judges": figures}, indent=2) + "\n", encoding="utf-8"
        )
    if options.output is None:
        print(text, end="")
    else:
        options.output.write_text(text, encoding="utf-8")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.research.suites", description=__doc__
    )
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data files")
    parser.add_argument("--judge", type=Path, default=WEIGHTS, help="folder of the judge's weights")
    parser.add_argument("--beside", type=Path, metavar="FOLDER", help="another judge's weights")
    parser.add_argument("--names", nargs="+", help="of the judges in the tables")
    parser.add_argument(
        "--more",
        type=Path,
        nargs="+",
        default=[],
        metavar="FILE",
        help="labelled texts with evidence, such as RAGTruth's",
    )
    parser.add_argument("--only", nargs="+", metavar="SUITE", help="measure these suites alone")
    parser.add_argument(
        "--work", type=Path, default=data_folder() / "suites", help="for what judges say"
    )
    parser.add_argument("--resamples", type=int, default=2000, help="of the bootstrap")
    parser.add_argument("--speed", action="store_true", help="also measure times: needs quiet")
    parser.add_argument("--output", type=Path, help="file of the tables, else they are printed")
    parser.add_argument("--json", type=Path, help="file of the figures")
    parser.add_argument("--date", type=date.fromisoformat, default=date.today())
    return parser


if __name__ == "__main__":
    sys.exit(main())

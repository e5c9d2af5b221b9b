"""`python -m pipelines.research.detectors ID`: the table of the detectors of an evaluation.

The evaluation is one that `python -m pipelines evaluate` has made: of texts with labelled sentences
(--texts), or of questions that the detectors' own model answers. Nothing is asked.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from contextlib import closing
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from pipelines.cli.shared import OWNER
from pipelines.errors import exit_status
from pipelines.evaluation.items import Item
from pipelines.evaluation.plan import EvaluationSpec
from pipelines.evaluation.results.papers import paper_figures
from pipelines.evaluation.results.scores import Evaluation
from pipelines.evaluation.scoring import read_results
from pipelines.evaluation.statistics.resampling import Estimate, Sampling
from pipelines.research.detectors.measures import (
    LENGTH,
    OVERLAP,
    DetectorTable,
    answer_table,
    sentence_table,
)
from pipelines.run.defaults import default_models
from pipelines.store import RunStore, file_url
from pipelines.store.evaluations import EvaluationStore

_VERSIONS = ("numpy", "scipy", "scikit-learn", "torch", "transformers")
_CHOICES = ("variant", "ngram", "measure", "compared", "samples")
"""Settings that tell one system of a detector from another."""

_CONTROLS = {LENGTH: "length (control)", OVERLAP: "word overlap (control)"}


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; returns 0, 1 when it failed, 2 for unusable input."""
    options = _parser().parse_args(arguments)
    return exit_status(lambda: _print(options))


def _print(options: argparse.Namespace) -> None:
    with closing(RunStore(file_url(options.data))) as runs:
        store = runs.evaluations
        stored, found = read_results(store, options.evaluation, OWNER)
        spec = EvaluationSpec.model_validate(stored.spec)
        sampling = Sampling(seed=spec.seed)
        items = {item.id: item for item in _items(store, options.evaluation)}
        if spec.checks == "texts" and any(item.sentences for item in items.values()):
            table = sentence_table(found, items, sampling)
        else:
            table = answer_table(found, sampling)
    print(markdown(table, found))
    print(_caption(table, found, sampling))


def _items(store: EvaluationStore, evaluation: str) -> list[Item]:
    items: list[Item] = []
    while bodies := store.items(evaluation, OWNER, len(items) - 1):
        items += [Item.model_validate(body) for body in bodies]
    return items


def markdown(table: DetectorTable, evaluation: Evaluation) -> str:
    """Return the table in Markdown: a line a detector, the controls and chance; then what
    papers print.
    """
    lines = [["detector", "n", *table.measures], ["---", "---:", *["---:"] * len(table.measures)]]
    for row in table.rows:
        cells = [_words(row.measures[name]) for name in table.measures]
        lines.append([_title(row.name, evaluation), str(row.n), *cells])
    chance = [f"{table.chance[one]:.3f}" if one in table.chance else "" for one in table.measures]
    lines.append(["chance", str(table.n), *chance])
    text = "\n".join(f"| {' | '.join(line)} |" for line in lines)
    return f"{text}\n{_published(evaluation)}"


def _published(evaluation: Evaluation) -> str:
    """Return what papers print about these detectors on this data, a line a system of theirs."""
    figures: dict[str, list[str]] = {}
    methods = dict.fromkeys(system.method for system in evaluation.systems.values())
    for method in methods:
        for one in paper_figures(method, evaluation.data_set):
            source = f"{one.title.partition(':')[0]}, {one.date}; {one.model.en}; {one.data.en}"
            line = figures.setdefault(f"{one.row.en} ({source})", [])
            line.append(f"{one.column.en} {one.value}")
    lines = [f"- {name}: {', '.join(values)}" for name, values in figures.items()]
    return "\n".join(["", "Published:", "", *lines, ""]) if lines else ""


def _title(name: str, evaluation: Evaluation) -> str:
    if name in _CONTROLS:
        return _CONTROLS[name]
    system = evaluation.systems[name]
    chosen = [f"{key} {system.settings[key]}" for key in _CHOICES if key in system.settings]
    return f"{system.method} ({', '.join(chosen)})" if chosen else system.method


def _words(estimate: Estimate) -> str:
    if estimate.value is None:
        return "–"
    if estimate.low is None or estimate.high is None:
        return f"{estimate.value:.3f}"
    return f"{estimate.value:.3f} [{estimate.low:.3f}, {estimate.high:.3f}]"


def _caption(table: DetectorTable, evaluation: Evaluation, sampling: Sampling) -> str:
    made = datetime.fromtimestamp(evaluation.created, UTC)
    models = {
        f"{role} {name}"
        for system in evaluation.systems.values()
        for role, name in system.models.items()
    } or {default_models()["main"].name}
    versions = ", ".join(f"{name} {version(name)}" for name in _VERSIONS)
    return (
        f"{evaluation.data_set} ({evaluation.data_hash[:12]}), {table.n} items in {table.groups}"
        f" groups, {made:%Y-%m-%d}; code {evaluation.versions.get('code', '')}; {versions}; models:"
        f" {', '.join(sorted(models))}. Brackets: {100 * sampling.level:g} % intervals,"
        f" {sampling.resamples} bootstrap draws over groups, seed {sampling.seed}."
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m pipelines.research.detectors",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("evaluation", help="its id, as `evaluations list` prints it")
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(".veriscope"),
        help="the folder in which evaluations are kept (default: %(default)s)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())

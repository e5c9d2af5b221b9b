"""A comparison of systems as files: the pairs as a table, the items one by one.

Markdown and LaTeX hold the pairs, for papers; CSV and JSON Lines hold the items, for programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pipelines.evaluation.results.columns import ResultsColumn
from pipelines.evaluation.results.compare import ComparedItem, SystemComparison
from pipelines.evaluation.results.export import (
    Cell,
    columns_latex,
    columns_markdown,
    csv_text,
    estimate_words,
)
from pipelines.evaluation.results.remarks import few_notes
from pipelines.evaluation.statistics.paired import PairedDifference

_TESTS = {"mcnemar": "McNemar, mid-p", "none": None}


def pair_columns(found: SystemComparison) -> list[ResultsColumn[PairedDifference]]:
    """Return the columns of a table of pairs; what is right is told of a metric that finds it."""
    # What is discordant on a metric of what is wrong, or abstained, is not right.
    right = found.metric.better == "higher"
    return [
        ResultsColumn("first", "First", None, lambda pair: pair.first),
        ResultsColumn("second", "Second", None, lambda pair: pair.second),
        ResultsColumn("difference", "First minus second", None, lambda pair: pair.difference),
        ResultsColumn("p", "p", None, lambda pair: pair.p),
        ResultsColumn("adjusted", "p, Holm", None, lambda pair: pair.adjusted),
        ResultsColumn("test", "Test", None, lambda pair: _TESTS.get(pair.test, pair.test)),
        ResultsColumn(
            "only_first", "Only first right", None, lambda pair: pair.only_first if right else None
        ),
        ResultsColumn(
            "only_second",
            "Only second right",
            None,
            lambda pair: pair.only_second if right else None,
        ),
    ]


def comparison_csv(found: SystemComparison) -> str:
    """Return every item, a row each: its value, answer and run by each system; numbers are not
    rounded.
    """

    def row(item: ComparedItem) -> dict[str, Cell]:
        cells = {"item": item.item, "question": item.summary.text, "spread": item.spread}
        for system, one in zip(found.systems, item.answers, strict=True):
            for part in ("value", "repeats", "answer", "run", "error"):
                cells[f"{system}.{part}"] = getattr(one, part)
        return cells

    return csv_text(map(row, found.items))


def comparison_jsonl(found: SystemComparison) -> str:
    """Return a first line with the estimates, pairs and bands, then every item as one line
    of JSON.
    """
    head = {"comparison": found.model_dump(mode="json", exclude={"items"})}
    lines = [head, *(item.model_dump(mode="json") for item in found.items)]
    return "".join(json.dumps(line, ensure_ascii=False) + "\n" for line in lines)


def comparison_markdown(found: SystemComparison, digits: int = 3) -> str:
    """Return every pair of systems in Markdown, with what the numbers are."""
    return columns_markdown(
        pair_columns(found), found.pairs, comparison_notes(found, digits), digits
    )


def comparison_latex(
    found: SystemComparison, digits: int = 3, label: str = "tab:comparison"
) -> str:
    """Return every pair of systems in LaTeX for the package booktabs."""
    below = [*comparison_notes(found, digits)]
    return columns_latex(pair_columns(found), found.pairs, below, label, digits)


def _caption(found: SystemComparison) -> str:
    sampling = found.sampling
    versions = ", ".join(f"{name} {one}" for name, one in sampling.versions.items())
    return (
        f"{found.metric.name} on the {found.n} items that all of them have, {found.left_out} left "
        f"out. Brackets: {100 * sampling.level:g} % intervals, {sampling.resamples} bootstrap "
        f"draws over groups of items, seed {sampling.seed}; Holm's correction is over these "
        f"pairs. {versions}."
    )


def comparison_notes(found: SystemComparison, digits: int) -> Iterator[str]:
    """Yield what the numbers are, the value of each system, who cannot be told apart, and what
    is likely too narrow.
    """
    yield _caption(found)
    for name, estimate in zip(found.systems, found.estimates, strict=True):
        yield f"{name}: {estimate_words(estimate, digits)}"
    for band in found.bands:
        if len(band) > 1:
            yield f"Cannot be told apart at 5 %: {', '.join(band)}"
    yield from few_notes([*found.estimates, *(pair.difference for pair in found.pairs)])

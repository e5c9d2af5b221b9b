"""A comparison of systems as files: the pairs as a table, the items one by one.

Markdown and LaTeX hold the pairs, for papers; CSV and JSON Lines hold the items, for programs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from pipelines.evaluation.results.compare import ComparedItem, SystemComparison
from pipelines.evaluation.results.export import (
    Cell,
    csv_text,
    estimate_words,
    latex_table,
    markdown_table,
)
from pipelines.evaluation.results.remarks import FEW_NOTE, has_few_groups
from pipelines.evaluation.statistics.paired import PairedDifference

_HEADS: tuple[tuple[str, str | None], ...] = (
    ("First", None),
    ("Second", None),
    ("First minus second", None),
    ("p", None),
    ("p, Holm", None),
    ("Test", None),
    ("Only first right", None),
    ("Only second right", None),
)


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
    rows = [_pair(pair, found, digits) for pair in found.pairs]
    return markdown_table(_HEADS, rows, [_caption(found), *_notes(found, digits)])


def comparison_latex(
    found: SystemComparison, digits: int = 3, label: str = "tab:comparison"
) -> str:
    """Return every pair of systems in LaTeX for the package booktabs."""
    rows = [_pair(pair, found, digits) for pair in found.pairs]
    return latex_table(_HEADS, rows, _caption(found), label, _notes(found, digits))


def _pair(pair: PairedDifference, comparison: SystemComparison, digits: int) -> list[str]:
    right = comparison.metric.better == "higher"

    def p(value: float | None) -> str:
        return "–" if value is None else f"{value:.3g}"

    def count(value: int | None) -> str:
        return "–" if value is None else str(value)

    return [
        pair.first,
        pair.second,
        estimate_words(pair.difference, digits),
        p(pair.p),
        p(pair.adjusted),
        {"mcnemar": "McNemar, mid-p", "none": "–"}.get(pair.test, pair.test),
        # What is discordant on a metric of what is wrong, or abstained, is not right.
        count(pair.only_first if right else None),
        count(pair.only_second if right else None),
    ]


def _caption(found: SystemComparison) -> str:
    sampling = found.sampling
    versions = ", ".join(f"{name} {one}" for name, one in sampling.versions.items())
    return (
        f"{found.metric.name} on the {found.n} items that all of them have, {found.left_out} left "
        f"out. Brackets: {100 * sampling.level:g} % intervals, {sampling.resamples} bootstrap "
        f"draws over groups of items, seed {sampling.seed}; Holm's correction is over these "
        f"pairs. {versions}."
    )


def _notes(found: SystemComparison, digits: int) -> Iterator[str]:
    """Yield the value of each system, who cannot be told apart, and what is likely too narrow."""
    for name, estimate in zip(found.systems, found.estimates, strict=True):
        yield f"{name}: {estimate_words(estimate, digits)}"
    for band in found.bands:
        if len(band) > 1:
            yield f"Cannot be told apart at 5 %: {', '.join(band)}"
    if any(map(has_few_groups, [*found.estimates, *(pair.difference for pair in found.pairs)])):
        yield FEW_NOTE

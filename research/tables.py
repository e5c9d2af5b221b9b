"""Tables in Markdown, and figures with their intervals as words."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from pipelines.evaluation.statistics.estimates import Estimate


def markdown(head: Sequence[str], rows: Iterable[Sequence[object]], *, numbers: int = 0) -> str:
    """Return a table whose last `numbers` columns are set to the right; None is an empty cell."""
    rule = ["---"] * (len(head) - numbers) + ["---:"] * numbers
    lines = [head, rule, *rows]
    cells = (["" if cell is None else str(cell) for cell in line] for line in lines)
    return "\n".join(f"| {' | '.join(line)} |" for line in cells)


def shown(estimate: Estimate | None, digits: int = 3, times: float = 1) -> str:
    """Return a number with its interval, multiplied by `times`; "–" where there is none."""
    if estimate is None or estimate.value is None:
        return "–"
    value = f"{times * estimate.value:.{digits}f}"
    if estimate.low is None or estimate.high is None:
        return value
    return f"{value} [{times * estimate.low:.{digits}f}, {times * estimate.high:.{digits}f}]"


def percent(estimate: Estimate | None) -> str:
    """Return a share in % with its interval; "–" where there is none."""
    return shown(estimate, 1, 100)


def put(text: str, to: Path | None) -> None:
    """Write `text` into a file, or print it where none is given."""
    if to is None:
        print(text, end="" if text.endswith("\n") else "\n")
    else:
        to.write_text(text, encoding="utf-8")

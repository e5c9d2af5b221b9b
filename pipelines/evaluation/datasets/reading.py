"""How a table was read: which column became which part of an item, and what its labels mean."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence

from pipelines.evaluation.datasets.files import BadRow, DataTable
from pipelines.evaluation.datasets.mapping import PARTS, ColumnMapping, is_missing, written
from pipelines.evaluation.plan import Item, LabelRead, PartRead, Reading

_EXAMPLES = 3
_LONGEST = 60
"""Characters of an example."""

_LABELS = 8
"""Different labels that are told."""

_LEFT_OUT = 20
"""Rows that were left out of which it is told why."""

_VALUES: dict[str, Callable[[Item], Sequence[str]]] = {
    "question": lambda item: [item.question],
    "language": lambda item: [item.language or ""],
    "answers": lambda item: item.answers,
    "wrong_answers": lambda item: item.wrong_answers,
    "lists": lambda item: [one[0] for one in item.lists],
    "passages": lambda item: [one.text for one in item.passages],
    "text": lambda item: [item.text],
    "sentences": lambda item: [item.text[one.start : one.end] for one in item.sentences],
    "spans": lambda item: [item.text[one.start : one.end] for one in item.spans],
    "samples": lambda item: item.samples,
    "tags": lambda item: item.tags,
}
_TOLD_WITH_A_COLUMN = frozenset({"id", "language", "group", "tags"})
"""Parts that are told only where a column was taken for them."""


def reading_of(
    table: DataTable,
    form: str,
    mapping: ColumnMapping | None,
    rows: Sequence[tuple[int, Sequence[Item]]],
    bad: Sequence[BadRow],
) -> Reading:
    """Return how `table` was read as `form`, "" for a mapping of columns.

    `rows` are the numbers of the rows that were read, each with its items; `bad` are those that
    were left out.
    """
    items = [item for _, made in rows for item in made]
    columns = mapping.columns() if mapping else {}
    parts = list[PartRead]()
    for part in PARTS:
        values = _VALUES.get(part)
        found = _first(value for item in items for value in (values(item)[:1] if values else ()))
        named = columns.get(part, ())
        if part != "hallucinated" and (named or (found and part not in _TOLD_WITH_A_COLUMN)):
            parts.append(PartRead(part=part, columns=named, examples=found))
    labels = Counter[tuple[str, bool | None]]()
    column = mapping.hallucinated if mapping else ""
    for number, made in rows:
        raw = table.rows[number].get(column) if column else None
        for item in made:
            if item.hallucinated is not None or not is_missing(raw):
                labels[written(raw) if not is_missing(raw) else "", item.hallucinated] += 1
    if column or any(said is not None for _, said in labels):
        parts.append(PartRead(part="hallucinated", columns=(column,) if column else ()))
    return Reading(
        form=form,
        parts=tuple(parts),
        labels=tuple(
            LabelRead(value=value[:_LONGEST], hallucinated=said, count=count)
            for (value, said), count in labels.most_common(_LABELS)
        ),
        notes=table.notes,
        left_out=tuple(one.told() for one in bad[:_LEFT_OUT]),
        left_out_count=len(bad),
    )


def _first(values: Iterable[str]) -> tuple[str, ...]:
    """Return the first different examples, each on one line."""
    found: dict[str, None] = {}
    for value in values:
        short = " ".join(value.split())
        if short:
            found.setdefault(short if len(short) <= _LONGEST else f"{short[: _LONGEST - 1]}…")
        if len(found) == _EXAMPLES:
            break
    return tuple(found)

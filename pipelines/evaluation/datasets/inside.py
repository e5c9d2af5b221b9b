"""Tables whose texts, or the evidence for them, lie in objects of their cells."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence

from pipelines.engine.attached import attached_texts
from pipelines.evaluation.datasets.columns import is_any_answer, part_of
from pipelines.evaluation.datasets.files import DataTable, Row
from pipelines.evaluation.datasets.formats import recognised
from pipelines.evaluation.datasets.nested import laid_out, lying_inside


def with_texts_inside(table: DataTable) -> DataTable:
    """Return a table of which only the objects in its cells hold texts with these as columns; any
    other table as it is.
    """
    rows = None if recognised(table) is not None else _rows_with_texts(table.rows)
    if rows is None:
        return table
    return with_evidence_inside(table._replace(rows=rows, places=list(range(1, len(rows) + 1))))


_NUMBERED = re.compile(r"(?P<name>.*[^\W\d_])[ _-]?(?P<number>\d)|(?P<of>.*)_(?P<letter>[ab])")


def with_each_text(table: DataTable) -> DataTable:
    """Return a table with a row for each of the texts of several models, where these stand in
    columns of one name with a number or a letter: "output_1" beside "output_2", with
    "generator_1"; any other table as it is.
    """
    told = [_numbered(name) for name in table.columns]
    # Answers alone are right ones; beside scores or sources of each they are those of models.
    several = Counter(number for _, number in told if number)
    texts = {
        (base, number)
        for base, number in told
        if number and (part_of(base) == "text" or (is_any_answer(base) and several[number] > 1))
    }
    names = {base for base, _ in texts}
    numbers = sorted(number for _, number in texts)
    plain = {part_of(base) for base, number in told if not number}
    if len(names) != 1 or len(numbers) < 2 or "text" in plain or recognised(table) is not None:
        return table
    rows: list[Row] = []
    places: list[int] = []
    for row, place in zip(table.rows, table.places, strict=True):
        for wanted in numbers:
            known = ((*_numbered(name), cell) for name, cell in row.items())
            rows.append(
                {
                    "response" if base in names else base: cell
                    for base, number, cell in known
                    if number in ("", wanted)
                }
            )
            places.append(place)
    return table._replace(rows=rows, places=places)


def _numbered(name: str) -> tuple[str, str]:
    """Return the name of a column without the number or the letter at its end, and that; "" for a
    column without one.
    """
    found = _NUMBERED.fullmatch(name)
    if found is None:
        return name, ""
    return found["name"] or found["of"], found["number"] or found["letter"]


def with_evidence_inside(table: DataTable) -> DataTable:
    """Return a table of texts with the evidence that lies beside them under other names."""
    parts = {part_of(name) for name in table.columns}
    said = "text" in parts or any(map(_answers_in_words, table.rows[:1]))
    if not said or "passages" in parts or recognised(table) is not None:
        return table
    free = [{n: cell for n, cell in row.items() if not part_of(n)} for row in table.rows]
    found = list(map(attached_texts, free))
    rows = [{**row, "context": one} for row, one in zip(table.rows, found, strict=True)]
    return table._replace(rows=rows) if any(found) else table


def _answers_in_words(row: Row) -> bool:
    return any(isinstance(cell, str) and is_any_answer(name) for name, cell in row.items())


def _rows_with_texts(rows: Sequence[Row]) -> list[Row] | None:
    """Return the rows with texts that lie in `rows`; None where none do."""
    if (several := _several_answers(rows)) is not None:
        return several
    for level in ([*rows], *lying_inside(rows)):
        for one in (level, laid_out(level)):
            kept = [row for row in one or () if "text" in map(part_of, row)]
            parts = {part_of(name) for row in kept for name in row}
            whole = len(kept) == len(level) or parts >= {"question", "text"}
            if kept and whole and not parts.isdisjoint(("question", "passages", "hallucinated")):
                return list(map(_with_question, kept))
    return None


def _with_question(row: Row) -> Row:
    """Return a row that has only a `history` with what was asked last in it."""
    said = row.get("history")
    texts = isinstance(said, list) and all(isinstance(one, str) for one in said)
    if not said or not texts or "question" in map(part_of, row):
        return row
    return {**row, "question": said[-1]}


def _several_answers(rows: Sequence[Row]) -> list[Row] | None:
    """Return a row for each of the answers of several models to the question of a row; None for
    rows of anything else.
    """
    asked = {name: part_of(name) for row in rows for name in row}
    told = [name for name in asked if all(map(_by_models, (row.get(name) for row in rows)))]
    if len(told) != 1 or "question" not in asked.values():
        return None
    found: list[Row] = []
    for row in rows:
        around = {name: cell for name, cell in row.items() if asked[name] == "question"}
        found += [{**around, **one, "response": _said_by(one)} for one in row[told[0]]]
    return found


def _by_models(cell: object) -> bool:
    """Return whether a cell holds what several models said."""
    said = cell if isinstance(cell, list) else []
    return len(said) > 1 and all(
        isinstance(one, Mapping) and "model" in one and _said_by(one) is not None for one in said
    )


def _said_by(one: Mapping[str, object]) -> str | None:
    texts = (one[name] for name in one if part_of(name) in ("text", "answers"))
    return next((text for text in texts if isinstance(text, str)), None)

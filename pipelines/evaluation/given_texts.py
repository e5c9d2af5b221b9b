"""Files of texts that are to be checked: one in each row or block, with what is known about it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

from pipelines.engine.checking import TextToCheck, split_sources
from pipelines.errors import failure
from pipelines.evaluation.datasets.files import read_table, read_text
from pipelines.types import Language

MAX_TEXTS = 10_000
"""Texts of one file."""

_TEXT = ("text", "answer")
_SOURCES = ("sources", "context")


class NamedText(NamedTuple):
    """A text under the name that its results have."""

    id: str
    given: TextToCheck


def texts_of(
    path: Path,
    *,
    sources: tuple[str, ...] = (),
    language: Language | None = None,
    most: int = MAX_TEXTS,
) -> Iterator[NamedText]:
    """Yield the texts of a file of JSON lines, JSON, CSV, TSV or, between empty lines, plain text.

    Tables have the columns text (or answer) and, where wanted, id, question, sources (or context)
    and samples. `sources` are those of texts that bring none. Raises InvalidInputError for a file
    that cannot be read or holds no texts or more than `most`.
    """
    rows = _rows(path)
    if len(rows) > most:
        facts = {"count": f"{len(rows):,}", "most": f"{most:,}"}
        raise failure("texts.many", file=path.name, **facts)
    for number, row in enumerate(rows, start=1):
        given = TextToCheck(
            text=_text(row, _TEXT),
            question=_text(row, ("question",)),
            sources=_texts(row, _SOURCES) or sources,
            samples=_texts(row, ("samples",)),
            language=language,
        )
        yield NamedText(_text(row, ("id",)) or str(number), given)


def _rows(path: Path) -> list[dict[str, Any]]:
    if path.suffix.lower() == ".txt":
        blocks = split_sources(read_text(path))
        if not blocks:
            raise failure("texts.none", file=path.name)
        return [{"text": block} for block in blocks]
    table = read_table(path)
    if not any(name in table.columns for name in _TEXT):
        raise failure("texts.no_column", file=path.name, columns=[*table.columns])
    return table.rows


def _text(row: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of these fields that the row has, as text."""
    found = next((row[name] for name in names if row.get(name) not in (None, "")), "")
    return found if isinstance(found, str) else json.dumps(found, ensure_ascii=False)


def _texts(row: Mapping[str, Any], names: tuple[str, ...]) -> tuple[str, ...]:
    """Return a list of texts; in CSV a list of JSON, or blocks with an empty line between them."""
    found = next((row[name] for name in names if row.get(name) not in (None, "")), None)
    if isinstance(found, str):
        with suppress(ValueError):
            read = json.loads(found)
            found = read if isinstance(read, list) else found
    if isinstance(found, str):
        return tuple(split_sources(found))
    if not isinstance(found, list):
        return ()
    return tuple(one if isinstance(one, str) else str(one) for one in found)

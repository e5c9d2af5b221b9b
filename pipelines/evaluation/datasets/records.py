"""Records that data sets and annotation tools consist of, and the items that come of them."""

from __future__ import annotations

import hashlib
import re
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, TypeVar

from pydantic import (
    ConfigDict,
    ValidationError,
)

from pipelines.base import Frozen, Passage
from pipelines.error_words import Phrase, first_problem, phrase
from pipelines.evaluation.datasets.files import DataTable, read_json_lines, unusable
from pipelines.evaluation.plan import Item
from pipelines.text import detect_language


class Record(Frozen):
    """A record of a data file; fields that are not named here are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class TextRecord(Record):
    """An object of which only its text counts."""

    text: str


class ItemRecord(Record, ABC):
    """A record that items can be made of."""

    @abstractmethod
    def items(self) -> Iterator[Item]:
        """Return the items of this record, one at least."""


R = TypeVar("R", bound=Record)


def read_records(path: Path | None, record: type[R]) -> list[R]:
    """Return every line of `path`, a file of JSON lines, as a `record`; none where `path` is None.

    Raises InvalidInputError, which names the line, for a file that cannot be read or holds
    something else.
    """
    return [] if path is None else validated(read_json_lines(path), record)


def validated(table: DataTable, record: type[R]) -> list[R]:
    """Return every row of `table` as a `record`; InvalidInputError names the first that is none."""
    return [validated_row(table, number, record) for number in range(len(table.rows))]


def validated_row(table: DataTable, number: int, record: type[R]) -> R:
    """Return row `number`, from 0, as a `record`; InvalidInputError where it is none."""
    try:
        return record.model_validate(table.rows[number])
    except ValidationError as error:
        where, what = first_problem(error)
        reason = phrase(
            "file_problem.other_form", place=table.place(number), where=where, problem=what
        )
        raise unusable(Path(table.name), reason, required_fields(record)) from None


def required_fields(record: type[Record]) -> Phrase:
    """Return the fields that `record` needs, for a message."""
    fields = record.model_fields.items()
    names = [field.alias or name for name, field in fields if field.is_required()]
    return phrase("wanted.fields", names=names)


def make_item(identifier: object = "", **fields: Any) -> Item:
    """Return an item with the data set's own id, else a hash of its content, and its language.

    The hash is the same wherever the item stands in a file.
    """
    if fields.get("language") is None:
        fields["language"] = detect_language(fields.get("question") or fields.get("text", ""))
    own = "" if identifier is None else str(identifier).strip()
    item = Item(id=own or "?", **fields)
    return item if own else item.model_copy(update={"id": content_hash(item)})


def content_hash(item: Item) -> str:
    """Return twelve hexadecimal digits of a hash of all of an item but its id."""
    content = item.model_dump_json(exclude={"id"})
    return hashlib.sha256(content.encode()).hexdigest()[:12]


def with_unique_ids(items: Iterable[Item]) -> list[Item]:
    """Return the items; where an id repeats, the later ones are named by their content too."""
    seen = set[str]()
    unique: list[Item] = []
    for item in items:
        name = item.id
        if name in seen and not name.endswith(content_hash(item)):
            name = f"{name}-{content_hash(item)}"
        number = 2
        base = name
        while name in seen:
            name = f"{base}-{number}"
            number += 1
        seen.add(name)
        unique.append(item if name == item.id else item.model_copy(update={"id": name}))
    return unique


def make_passages(
    texts: Iterable[str], source: str, titles: Sequence[str] = (), supporting: Iterable[str] = ()
) -> tuple[Passage, ...]:
    """Return passages of `texts`, empty ones left out, numbered from 1.

    `titles` has one title for each text, or none. A passage whose title is in `supporting` has a
    score "supporting" of 1.
    """
    needed = set(supporting)
    return tuple(
        Passage(
            id=str(number),
            title=title,
            text=text.strip(),
            source=source,
            end=len(text.strip()),
            rank=number,
            scores={"supporting": 1.0} if title in needed else {},
        )
        for number, (text, title) in enumerate(_titled(texts, titles), start=1)
    )


def _titled(texts: Iterable[str], titles: Sequence[str]) -> Iterator[tuple[str, str]]:
    for number, text in enumerate(texts):
        if text.strip():
            yield text, titles[number] if number < len(titles) else ""


def distinct(texts: Iterable[str | None]) -> tuple[str, ...]:
    """Return the texts without white space at their ends; of those that differ in case only,
    the first.
    """
    kept: dict[str, str] = {}
    for text in texts:
        if text and text.strip():
            kept.setdefault(text.strip().casefold(), text.strip())
    return tuple(kept.values())


def locate(text: str, piece: str, start: int = 0) -> tuple[int, int] | None:
    """Return where `piece` stands in `text` from `start` on, with any white space between
    its words.
    """
    words = piece.split()
    if not words:
        return None
    pattern = re.compile(r"\s*".join(map(re.escape, words)))
    found = pattern.search(text, start)
    return found.span() if found else None

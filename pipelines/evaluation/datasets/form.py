"""A form in which a data set is published, and what tells it from others."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from pipelines.evaluation.datasets.columns import part_of
from pipelines.evaluation.datasets.grids import Row
from pipelines.evaluation.datasets.mapping import ColumnMapping, suggested_mapping
from pipelines.evaluation.datasets.records import ItemRecord


class Format(NamedTuple):
    """A form in which a data set is published. Several forms may have the same `kind`.

    `columns` are those that the first row has to have, `types` the types of some of them. Its rows
    are read as a `record` or, where that is None, by `mapping`, of whose columns a table may lack
    some. Halves of a set are taken of its records, or with `halves_of_items` of its items. In the
    rows of a form that is `whole` no conversation is looked for: its record reads all of them.
    """

    kind: str
    title: str
    record: type[ItemRecord] | None
    columns: frozenset[str]
    mapping: ColumnMapping = ColumnMapping()
    types: dict[str, type] = {}  # noqa: RUF012 - never changed
    fits: Callable[[Row], bool] = lambda _row: True
    source: str = ""
    licence: str = ""
    halves_of_items: bool = False
    whole: bool = False

    def describes(self, row: Row) -> bool:
        """Return whether `row` has this form."""
        return (
            row.keys() >= self.columns
            and all(isinstance(row[name], kind) for name, kind in self.types.items())
            and self.fits(row)
        )

    def mapping_of(self, columns: Collection[str]) -> ColumnMapping:
        """Return the mapping of a table with these columns, in a form that is read by one.

        What the form says nothing of is mapped by the usual names.
        """
        told: dict[str, Any] = {
            part: kept
            for part, names in self.mapping.columns().items()
            if (kept := tuple(name for name in names if name in columns))
        }
        taken = {name for names in told.values() for name in names}
        usual = suggested_mapping([name for name in columns if name not in taken])
        for part in ("id", "language", "samples", "wrong_answers", "tags"):
            if part not in told and (found := usual.columns().get(part)):
                told[part] = found
        several = {part for part in told if isinstance(getattr(self.mapping, part), tuple)}
        fields = {part: kept if part in several else kept[0] for part, kept in told.items()}
        return self.mapping.model_copy(
            update={part: () if part in several else "" for part in self.mapping.columns()}
        ).model_copy(update=fields)


def form_of_records(
    kind: str, title: str, record: type[ItemRecord], columns: str, /, **rest: Any
) -> Format:
    """Return a form whose rows are read as a record; `columns` are separated by "|"."""
    return Format(kind, title, record, frozenset(columns.split("|")), **rest)


def form_by_columns(
    kind: str, title: str, columns: str, /, mapping: ColumnMapping, **rest: Any
) -> Format:
    """Return a form whose rows are read by a mapping; `columns` are separated by "|"."""
    return Format(kind, title, None, frozenset(columns.split("|")), mapping=mapping, **rest)


# What a row has to be like, beside having the columns of a form.


def holds_lists(column: str) -> Callable[[Row], bool]:
    """Return whether `column` holds a list of lists."""
    return lambda row: bool(row[column]) and all(isinstance(one, list) for one in row[column])


def only_asks(column: str) -> Callable[[Row], bool]:
    """Return whether `column` holds texts and the row nothing else but a question that counts."""
    others = ("passages", "wrong_answers", "text", "samples", "lists")
    return lambda row: (
        all(isinstance(one, str) for one in row[column])
        and all(part_of(one) not in others for one in row)
    )


def lacks(column: str) -> Callable[[Row], bool]:
    """Return whether a row has no such column."""
    return lambda row: column not in row


def says_pass_or_fail(column: str) -> Callable[[Row], bool]:
    """Return whether a label says "PASS" or "FAIL"."""
    return lambda row: str(row[column]).strip().casefold() in ("pass", "fail")


def holds_words(column: str) -> Callable[[Row], bool]:
    """Return whether the label is a word: what a number means, the columns do not say."""
    return lambda row: isinstance(row[column], str) and not row[column].strip().isdigit()


def has_columns(*columns: str) -> Callable[[Row], bool]:
    """Return whether a row has these columns as well."""
    return lambda row: row.keys() >= {*columns}


def is_doccano(labels: str) -> Callable[[Row], bool]:
    """Return whether the labels are those of doccano: words, pieces [start, end, word], or
    entities. Several annotated texts may have none.
    """

    def is_label(one: Any) -> bool:
        if isinstance(one, dict):
            return "start_offset" in one
        return isinstance(one, str) or (isinstance(one, list) and len(one) == 3)

    return lambda row: all(map(is_label, row[labels])) and not row.keys() & {"claim", "question"}


def has_aliases(column: str) -> Callable[[Row], bool]:
    """Return whether an answer is an object with its spellings in small letters, as TriviaQA's."""
    return lambda row: any(
        name.replace("_", "").lower() == "normalizedaliases" for name in row[column]
    )


def columns_end(*endings: str) -> Callable[[Row], bool]:
    """Return whether for each ending a column has a name with it."""
    return lambda row: all(any(name.endswith(one) for name in row) for one in endings)

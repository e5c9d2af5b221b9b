"""Opening a data set: the one function for the command line, the screens and the tests."""

from __future__ import annotations

import csv
import hashlib
import importlib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, Literal, NamedTuple, get_args

from pipelines.base import SAMPLE_DATA, Language, Passage
from pipelines.engine.checking import TextToCheck, split_sources
from pipelines.error_words import PhraseError, phrase
from pipelines.errors import InvalidInputError, VeriscopeError, failure
from pipelines.evaluation.datasets.choices import with_options
from pipelines.evaluation.datasets.columns import part_of
from pipelines.evaluation.datasets.files import (
    BadRow,
    DataTable,
    bad_rows,
    read_table,
    read_text,
    unusable,
)
from pipelines.evaluation.datasets.folders import (
    ragtruth_folder,
    read_ragtruth,
    with_evidence,
)
from pipelines.evaluation.datasets.form import Format
from pipelines.evaluation.datasets.formats import format_of, recognised
from pipelines.evaluation.datasets.inside import with_texts_inside
from pipelines.evaluation.datasets.labels import may_be_labels
from pipelines.evaluation.datasets.mapping import (
    ColumnMapping,
    MappedTable,
    listed,
    mapping_for,
    suggested_mapping,
)
from pipelines.evaluation.datasets.reading import reading_of
from pipelines.evaluation.datasets.records import (
    content_hash,
    make_item,
    validated_row,
    with_unique_ids,
)
from pipelines.evaluation.datasets.traces import answers_in
from pipelines.evaluation.plan import DataSet, Item, Reading
from pipelines.retrieval.documents import Document, load_library

# The data sets that the project brings: questions and statements on the sample library.


def sample_rows(name: str, language: Language) -> list[dict[str, str]]:
    """Return the rows in `language` of a table of the sample data, such as "questions.csv"."""
    with (SAMPLE_DATA / name).open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["language"] == language]


def sample_questions(language: Language) -> list[Item]:
    """Return the sample questions, each with the article that answers it; the article is the group.

    The tag is the question's kind: fact, yes_no, misconception or list. The answer of a list is
    there twice: as one text, with "; " between its entities, and as `lists`.
    """
    return [_question(row, language) for row in sample_rows("questions.csv", language)]


def sample_statements(language: Language) -> list[Item]:
    """Return the statements about articles, to be checked.

    One that its article contradicts or does not decide is labelled as hallucinated. The tags are
    the label (supported, contradicted or not_enough) and how the statement was made.
    """
    return [
        make_item(
            text=row["statement"],
            language=language,
            hallucinated=row["label"] != "supported",
            passages=_article(f"{language}/{row['article']}"),
            group=f"{language}/{row['article']}",
            tags=(row["label"], row["kind"]),
        )
        for row in sample_rows("statements.csv", language)
    ]


BUNDLED: dict[str, Callable[[Language], list[Item]]] = {
    "sample": sample_questions,
    "statements": sample_statements,
}
"""Name of each bundled data set to what reads its part in one language."""


def _question(row: dict[str, str], language: Language) -> Item:
    is_list = row["kind"] == "list"
    return make_item(
        row["id"],
        question=row["question"],
        language=language,
        answers=(row["answer"], *filter(None, row["aliases"].split("|"))),
        lists=tuple((one.strip(),) for one in row["answer"].split(";")) if is_list else (),
        passages=_article(row["article"]),
        group=row["article"],
        tags=(row["kind"],),
    )


def _article(name: str) -> tuple[Passage, ...]:
    article = _library()[name]
    return (
        Passage(
            id=article.id,
            title=article.title,
            text=article.text,
            source=article.source,
            end=len(article.text),
            rank=1,
        ),
    )


@cache
def _library(folder: Path = SAMPLE_DATA / "library") -> dict[str, Document]:
    return {document.id: document for document in load_library(folder)}


# Data sets of the Hugging Face hub, through the library `datasets` where it is installed.
#
# The library is no requirement of the application: requirements-hub.txt names it.

MAXIMUM_ROWS = 200_000
"""The longest split that is read."""

_ADDRESS = re.compile(
    r"hub:(?P<name>\w[\w.-]*(?:/\w[\w.-]*)?)(?:/(?P<config>[\w.-]+))?(?:@(?P<split>[^\s@]+))?"
)
_PREFERRED_SPLITS = ("validation", "test", "train")


class HubAddress(NamedTuple):
    """A data set of the hub ("owner/name"), its configuration, and its split where one is named."""

    name: str
    config: str | None = None
    split: str | None = None

    @classmethod
    def of(cls, address: str) -> HubAddress:
        """Return what "hub:NAME/CONFIG@SPLIT" names; InvalidInputError for anything else.

        Of two parts, "hub:owner/name", both are the name.
        """
        found = _ADDRESS.fullmatch(address)
        if found is None:
            raise failure("data.no_hub_name", address=address)
        if Path(found["name"]).exists():
            # The library would read the folder in place of the hub.
            raise failure("data.local_path", name=found["name"])
        return cls(found["name"], found["config"], found["split"])


def read_hub(address: HubAddress) -> DataTable:
    """Return the rows of a split; where none is named, of validation, else test, else train.

    Classes that the hub stores as numbers are read as their names. Raises InvalidInputError when
    `datasets` is not installed or the split cannot be used, NotFoundError when there is no such
    data set or it is private, and OfflineError when the hub cannot be reached.
    """
    library = _hub_library()
    try:
        split = address.split or _split(
            library.get_dataset_split_names(address.name, address.config)
        )
        loaded = library.load_dataset(address.name, address.config, split=split)
    except Exception as error:
        raise _explained(address, error) from error
    if loaded.num_rows > MAXIMUM_ROWS:
        raise failure(
            "data.many_rows",
            name=address.name,
            split=split,
            rows=loaded.num_rows,
            most=MAXIMUM_ROWS,
        )
    names = {
        column: feature.names
        for column, feature in loaded.features.items()
        if isinstance(getattr(feature, "names", None), list)
    }
    rows = [_with_names(row, names) for row in loaded]
    if not rows:
        raise failure("data.no_rows", name=address.name, split=split)
    places = list(range(1, len(rows) + 1))
    return with_options(DataTable(f"{address.name}@{split}", rows, places, "row"))


def _hub_library() -> Any:
    try:
        return importlib.import_module("datasets")
    except ImportError:
        raise failure("data.no_library") from None


def _split(names: list[str]) -> str:
    return next((name for name in _PREFERRED_SPLITS if name in names), names[0])


def _with_names(row: Mapping[str, Any], names: Mapping[str, list[str]]) -> dict[str, Any]:
    """Return the row with the names of classes; -1 is the hub's number for no class."""
    return {
        column: _class_name(cell, names[column]) if column in names else cell
        for column, cell in row.items()
    }


def _class_name(cell: Any, names: list[str]) -> Any:
    return (names[cell] if 0 <= cell < len(names) else None) if isinstance(cell, int) else cell


def _explained(address: HubAddress, error: Exception) -> VeriscopeError:
    """Return what a failure of the library means; its classes are told by name, as it may
    be absent.
    """
    kinds = {kind.__name__ for kind in type(error).__mro__}
    said = str(error).strip().partition("\n")[0][:200]
    if "DatasetNotFoundError" in kinds:
        return failure("data.not_public", name=address.name)
    if kinds & {"ConnectionError", "TimeoutError", "ConnectError", "TransportError"}:
        return failure("data.offline")
    return failure(
        "data.unreadable_at_hub", name=address.name, problem=type(error).__name__, said=said
    )


Part = Literal["all", "even", "odd"]
"""Which records, counted from 0 in file order; even ones may fit, odd ones report."""


def open_data_set(
    path_or_name: str | Path,
    *,
    kind: str | None = None,
    mapping: ColumnMapping | None = None,
    part: Part = "all",
    limit: int | None = None,
    seed: int = 0,
    leave_out: bool = False,
) -> DataSet:
    """Return the data set at a path, of the hub ("hub:OWNER/NAME/CONFIG@SPLIT"), or a bundled one.

    Bundled are "sample" and "statements", in one language "sample:en". A file is recognised by
    its columns, unless `kind` or `mapping` says what it is. One that is not recognised is read by
    `mapping_for`. The part is taken first, then `limit` items are drawn with `seed`. An
    item has the same id in every part and sample. How it was read is its `reading`.

    Raises InvalidInputError, which says what was found and what to do, also for rows that cannot
    be read, unless these shall be left out (`leave_out`); of the hub also NotFoundError and
    OfflineError.
    """
    opened = _bundled(str(path_or_name)) or _read(
        open_table(path_or_name, mapping), kind, mapping, leave_out=leave_out
    )
    return _taken(opened, part, limit, seed)


def data_set_of(
    table: DataTable,
    *,
    kind: str | None = None,
    mapping: ColumnMapping | None = None,
    part: Part = "all",
    leave_out: bool = False,
) -> DataSet:
    """Return the data set in a table that was read already; all else as in `open_data_set`."""
    return _taken(_read(table, kind, mapping, leave_out=leave_out), part, None, 0)


def open_table(path_or_name: str | Path, mapping: ColumnMapping | None = None) -> DataTable:
    """Return the rows of a file, a folder of RAGTruth or a set of the hub, for a look at its
    columns. Rows that cannot be read are in its `bad`.

    Where no column is known, and those of `mapping` are not there, objects in cells are laid out in
    columns of their own. Raises as `open_data_set` does.
    """
    if isinstance(path_or_name, str) and path_or_name.startswith("hub:"):
        return read_hub(HubAddress.of(path_or_name))
    path = Path(path_or_name)
    if not path.exists():
        raise failure("data.unknown", name=path.name, known=[*BUNDLED])
    if (folder := ragtruth_folder(path)) is not None:
        return read_ragtruth(folder)
    table = answers_in(read_table(path, keep_bad=True))
    if not _is_understood(table, mapping):
        table = with_texts_inside(table)
    return with_evidence(with_options(table), path)


def _is_understood(table: DataTable, mapping: ColumnMapping | None) -> bool:
    """Return whether the columns of a table say themselves what they hold, or `mapping` does."""
    if mapping is not None:
        named = {name for names in mapping.columns().values() for name in names}
        return named <= {*table.columns}
    if not table.rows or recognised(table) is not None:
        return True
    suggested = mapping_for(table)
    return bool(suggested.question) or _is_said(table.rows[0], suggested)


def _is_said(row: Mapping[str, Any], mapping: ColumnMapping) -> bool:
    """Return whether a row has a text, and not objects that hold those of several models."""
    told = row.get(mapping.text) if mapping.text else None
    several = isinstance(told, list) and any(isinstance(one, Mapping) for one in told)
    return bool(mapping.text) and not several


def sampled(data_set: DataSet, limit: int | None, seed: int = 0) -> DataSet:
    """Return at most `limit` items of `data_set`, drawn with `seed`, in their order; all with None.

    A larger sample with the same seed holds the smaller one, so that its results can be used
    again.
    """
    if limit is None or limit >= len(data_set.items):
        return data_set
    items = _drawn(data_set.items, limit, seed)
    return data_set.model_copy(update={"items": tuple(items), "hash": hash_of(items)})


def hash_of(items: Iterable[Item]) -> str:
    """Return sixteen hexadecimal digits of a hash of the items in their order."""
    digest = hashlib.sha256()
    for item in items:
        digest.update(item.model_dump_json().encode())
        digest.update(b"\n")
    return digest.hexdigest()[:16]


class _Opened(NamedTuple):
    name: str
    records: list[list[Item]]
    source: str
    licence: str
    reading: Reading | None = None


def _bundled(name: str) -> _Opened | None:
    base, _, language = name.partition(":")
    if base not in BUNDLED or language not in ("", *get_args(Language)):
        return None
    languages = [one for one in get_args(Language) if language in ("", one)]
    items = [item for one in languages for item in BUNDLED[base](one)]
    return _Opened(name, [[item] for item in items], "the sample data of Veriscope", "Apache-2.0")


def _taken(opened: _Opened, part: Part, limit: int | None, seed: int) -> DataSet:
    """Return the items of `part`, of which `limit` are drawn with `seed`."""
    if part not in get_args(Part):
        raise failure("data.no_part", part=part)
    if limit is not None and limit < 1:
        raise failure("data.no_limit", limit=limit)
    items = _drawn(_part_of(opened.records, part), limit, seed)
    if not items:
        raise failure("data.empty_part", data=opened.name, part=part)
    return DataSet(
        name=opened.name if part == "all" else f"{opened.name}:{part}",
        items=tuple(items),
        hash=hash_of(items),
        source=opened.source,
        licence=opened.licence,
        reading=opened.reading,
    )


def _read(
    table: DataTable, kind: str | None, mapping: ColumnMapping | None, *, leave_out: bool
) -> _Opened:
    if mapping is not None:
        if kind is not None:
            raise failure("data.kind_and_mapping")
        mapping = _understood(table, mapping)
        return _mapped(_with_unread_labels(table, mapping), None, mapping, leave_out)
    form = recognised(table) if kind is None else format_of(table, kind)
    if form is not None and form.record is None:
        return _mapped(table, form, form.mapping_of(table.columns), leave_out)
    if form is not None:
        record = form.record
        assert record is not None
        rows, bad = _each(
            table, lambda number: validated_row(table, number, record).items(), leave_out
        )
        return _opened(table, form, None, rows, bad)
    suggested = mapping_for(table)
    if not (suggested.question or suggested.text):
        raise failure("data.unrecognised", file=table.name, columns=listed(table.columns))
    return _mapped(_with_unread_labels(table, suggested), None, suggested, leave_out)


def _with_unread_labels(table: DataTable, mapping: ColumnMapping) -> DataTable:
    """Return a table of texts without labels with a note on the column that may hold them."""
    if not mapping.text or mapping.hallucinated or mapping.sentences or mapping.spans:
        return table
    taken = {name for names in mapping.columns().values() for name in names} - {*mapping.tags}
    found = may_be_labels(table.rows, [name for name in table.columns if name not in taken])
    if found is None:
        return table
    column, values = found
    note = phrase("note.may_be_labels", column=column, values=listed(values))
    return table._replace(notes=(*table.notes, note))


def _understood(table: DataTable, mapping: ColumnMapping) -> ColumnMapping:
    """Return the mapping with what the table's known form says of its labels."""
    form = recognised(table)
    if form is None or mapping.label_is or form.mapping.hallucinated != mapping.hallucinated:
        return mapping
    return mapping.model_copy(update={"label_is": form.mapping.label_is})


_Rows = list[tuple[int, list[Item]]]


def _mapped(
    table: DataTable, form: Format | None, mapping: ColumnMapping, leave_out: bool
) -> _Opened:
    mapped = MappedTable(table, mapping)
    rows, bad = _each(table, lambda number: [mapped.item(number)], leave_out)
    return _opened(table, form, mapping, rows, bad)


def _each(
    table: DataTable, make: Callable[[int], Iterable[Item]], leave_out: bool
) -> tuple[_Rows, list[BadRow]]:
    """Return the items of each row, and the rows that have none because they cannot be read.

    Raises InvalidInputError for these, unless they shall be left out and others are left.
    """
    rows: _Rows = []
    bad = list(table.bad)
    for number in range(len(table.rows)):
        try:
            rows.append((number, list(make(number))))
        except InvalidInputError as error:
            bad.append(BadRow(None, error.phrase(), error))
        except PhraseError as error:
            place = table.place(number)
            raised = unusable(
                Path(table.name),
                phrase("detail.at", place=place, problem=error.phrase),
                phrase("wanted.as_published"),
            )
            bad.append(BadRow(place, error.phrase, raised))
    if bad and not (leave_out and rows):
        raise bad_rows(table.name, bad)
    return rows, bad


def _opened(
    table: DataTable,
    form: Format | None,
    mapping: ColumnMapping | None,
    rows: _Rows,
    bad: Sequence[BadRow],
) -> _Opened:
    name = table.name
    if "@" not in name:
        name = Path(name.removesuffix(".gz")).stem
    source = form.source if form is not None else ""
    if form is None and mapping is not None:
        source = "; ".join(
            f"{part} from {', '.join(names)}" for part, names in mapping.columns().items()
        )
    records = [items for _, items in rows]
    if form is not None and form.halves_of_items:
        records = [[item] for items in records for item in items]
    told = reading_of(table, form.title if form else "", mapping, rows, bad)
    return _Opened(name, records, source, form.licence if form else "", told)


def _part_of(records: Sequence[Sequence[Item]], part: Part) -> list[Item]:
    """Return the items of the records of `part`; ids are made unique among all records before."""
    unique = iter(with_unique_ids(item for record in records for item in record))
    named = [[next(unique) for _ in record] for record in records]
    first, step = {"all": (0, 1), "even": (0, 2), "odd": (1, 2)}[part]
    return [item for record in named[first::step] for item in record]


def _drawn(items: Sequence[Item], limit: int | None, seed: int) -> list[Item]:
    if limit is None or limit >= len(items):
        return list(items)
    first = sorted(items, key=lambda item: _draw(item.id, seed))[:limit]
    kept = {item.id for item in first}
    return [item for item in items if item.id in kept]


def _draw(identifier: str, seed: int) -> bytes:
    """Return the place of an item in the draw, which depends on no other item."""
    return hashlib.sha256(f"{seed}:{identifier}".encode()).digest()


# Files of texts that are to be checked: one in each row or block, with what is known about it.

MAX_TEXTS = 10_000
"""Texts of one file."""


class NamedText(NamedTuple):
    """A text under the name that its results have."""

    id: str
    given: TextToCheck


class TextFile(NamedTuple):
    """The texts of a file, and how it was read; `reading` is None for plain text."""

    texts: list[NamedText]
    reading: Reading | None = None

    @property
    def without_sources(self) -> int:
        """How many texts bring no sources."""
        return sum(not one.given.sources for one in self.texts)


def texts_of(
    path: Path,
    *,
    sources: tuple[str, ...] = (),
    language: Language | None = None,
    most: int = MAX_TEXTS,
) -> TextFile:
    """Return the texts of a table or, between empty lines, of plain text (.txt).

    Tables are read as in `open_data_set`: of a known form, or by the usual names of columns, where
    "answer" is the text if there is no other. Conversations and traces are read answer by answer
    (`traces.py`). `sources` are those of texts that bring none. Raises InvalidInputError for a file
    that cannot be read or holds no texts or more than `most`.
    """
    if path.suffix.lower() == ".txt":
        blocks = split_sources(read_text(path))
        _check_count(path, len(blocks), most)
        given = [TextToCheck(text=one, sources=sources, language=language) for one in blocks]
        return TextFile([NamedText(str(at), one) for at, one in enumerate(given, start=1)])
    table = answers_in(read_table(path))
    if not any(_is_said(row, _mapping_of_texts(tuple(row), row)) for row in table.rows):
        table = with_texts_inside(table)
    _check_count(path, len(table.rows), most)
    opened = _texts_in(table)
    items = [item for record in opened.records for item in record]
    _check_count(path, len(items), most)
    texts = list[NamedText]()
    for number, item in enumerate(items, start=1):
        passages = [passage.text for passage in item.passages]
        own = tuple(passages if len(passages) > 1 else split_sources("".join(passages)))
        given = TextToCheck(
            text=item.text,
            question=item.question,
            sources=own or sources,
            samples=item.samples,
            language=language,
        )
        named = item.id and item.id != content_hash(item)
        texts.append(NamedText(item.id if named else str(number), given))
    return TextFile(texts, opened.reading)


def _check_count(path: Path, count: int, most: int) -> None:
    if not count:
        raise failure("texts.none", file=path.name)
    if count > most:
        raise failure("texts.many", file=path.name, count=f"{count:,}", most=f"{most:,}")


def _texts_in(table: DataTable) -> _Opened:
    """Return what a table holds that can be checked. What its labels mean does not matter here."""
    opened = _read(table, None, None, leave_out=False) if recognised(table) is not None else None
    if opened is not None:
        if any(item.text for record in opened.records for item in record):
            return opened
        if "text" not in map(part_of, table.columns) and (own := _with_own_answers(opened)):
            return own
    # Records of JSON may have different fields.
    firsts: dict[tuple[str, ...], Mapping[str, Any]] = {}
    for row in table.rows:
        firsts.setdefault(tuple(row), row)
    kinds = {columns: _mapping_of_texts(columns, row) for columns, row in firsts.items()}
    if not any(mapping.text for mapping in kinds.values()):
        raise failure("texts.no_column", file=table.name, columns=[*table.columns])
    mapped = {
        columns: MappedTable(table, mapping)
        for columns, mapping in kinds.items()
        if mapping.text or mapping.question
    }
    rows: _Rows = []
    for number, row in enumerate(table.rows):
        mapping = kinds[tuple(row)]
        if any(str(row.get(name) or "").strip() for name in (mapping.text, mapping.question)):
            rows.append((number, [mapped[tuple(row)].item(number)]))
        else:
            # It is said of the text that it is empty, where it is checked.
            rows.append((number, [Item(id=str(number + 1))]))
    first = next(mapping for mapping in kinds.values() if mapping.text)
    return _opened(table, None, first, rows, ())


def _with_own_answers(opened: _Opened) -> _Opened | None:
    """Return a known data set without texts of models with its own first answers as texts; None
    where it has none.
    """
    records = [
        [one.model_copy(update={"text": one.answers[0]}) for one in record if one.answers]
        for record in opened.records
    ]
    if not any(records) or opened.reading is None:
        return None
    notes = (*opened.reading.notes, phrase("note.own_answers"))
    told = opened.reading.model_copy(update={"notes": notes})
    return opened._replace(records=records, reading=told)


def _mapping_of_texts(columns: tuple[str, ...], row: Mapping[str, Any]) -> ColumnMapping:
    return suggested_mapping(columns, row, labelled=True).model_copy(
        update={"hallucinated": "", "sentences": "", "spans": "", "lists": "", "language": ""}
    )

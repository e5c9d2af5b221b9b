"""Opening a data set: the one function for the command line, the screens and the tests."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Literal, NamedTuple, get_args

from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.evaluation.datasets.bundled import BUNDLED
from pipelines.evaluation.datasets.files import DataTable, read_table, unusable
from pipelines.evaluation.datasets.formats import Format, format_of, listed, recognised
from pipelines.evaluation.datasets.hub import HubAddress, read_hub
from pipelines.evaluation.datasets.mapping import ColumnMapping, mapped_items, suggested_mapping
from pipelines.evaluation.datasets.records import validated, with_unique_ids
from pipelines.evaluation.items import DataSet, Item
from pipelines.types import Language

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
) -> DataSet:
    """Return the data set at a path, of the hub ("hub:OWNER/NAME/CONFIG@SPLIT"), or a bundled one.

    Bundled are "sample" and "statements", in one language "sample:en". A file is recognised by
    its columns, unless `kind` or `mapping` says what it is. One that is not recognised is read by
    `suggested_mapping`. The part is taken first, then `limit` items are drawn with `seed`. An
    item has the same id in every part and sample.

    Raises InvalidInputError, which says what was found and what to do; of the hub also
    NotFoundError and OfflineError.
    """
    opened = _bundled(str(path_or_name)) or _read(open_table(path_or_name), kind, mapping)
    return _taken(opened, part, limit, seed)


def data_set_of(
    table: DataTable,
    *,
    kind: str | None = None,
    mapping: ColumnMapping | None = None,
    part: Part = "all",
) -> DataSet:
    """Return the data set in a table that was read already; all else as in `open_data_set`."""
    return _taken(_read(table, kind, mapping), part, None, 0)


def open_table(path_or_name: str | Path) -> DataTable:
    """Return the rows of a file, a folder of RAGTruth or a set of the hub, for a look at its
    columns.

    Raises as `open_data_set` does.
    """
    if isinstance(path_or_name, str) and path_or_name.startswith("hub:"):
        return read_hub(HubAddress.of(path_or_name))
    path = Path(path_or_name)
    if path.is_dir() or path.name == _RESPONSES:
        return _ragtruth(path if path.is_dir() else path.parent)
    if not path.exists():
        raise failure("data.unknown", name=path.name, known=[*BUNDLED])
    return read_table(path)


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
    )


def _read(table: DataTable, kind: str | None, mapping: ColumnMapping | None) -> _Opened:
    name = Path(table.name).stem if "@" not in table.name else table.name
    if mapping is not None:
        if kind is not None:
            raise failure("data.kind_and_mapping")
        return _mapped(table, name, mapping)
    form = recognised(table) if kind is None else format_of(table, kind)
    if form is not None:
        return _Opened(name, _records_of(table, form), form.source, form.licence)
    suggested = suggested_mapping(table.columns)
    if not (suggested.question or suggested.text):
        raise failure("data.unrecognised", file=table.name, columns=listed(table.columns))
    return _mapped(table, name, suggested)


def _mapped(table: DataTable, name: str, mapping: ColumnMapping) -> _Opened:
    columns = "; ".join(
        f"{part} from {', '.join(names)}" for part, names in mapping.columns().items()
    )
    records = [[item] for item in mapped_items(table, mapping)]
    return _Opened(name, records, columns, "")


def _records_of(table: DataTable, form: Format) -> list[list[Item]]:
    records = [list(record.items()) for record in validated(table, form.record)]
    if form.halves_of_items:
        return [[item] for record in records for item in record]
    return records


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


_RESPONSES = "response.jsonl"
_SOURCES = "source_info.jsonl"


def _ragtruth(folder: Path) -> DataTable:
    """Return RAGTruth's sources, in their order, each with its responses."""
    if not (folder / _RESPONSES).is_file() or not (folder / _SOURCES).is_file():
        raise unusable(
            folder,
            phrase("file_problem.folder"),
            phrase("wanted.ragtruth_folder", responses=_RESPONSES, sources=_SOURCES),
        )
    sources, responses = read_table(folder / _SOURCES), read_table(folder / _RESPONSES)
    by_source: dict[object, list[dict]] = {}
    for number, row in enumerate(responses.rows):
        if "source_id" not in row:
            raise unusable(
                folder / _RESPONSES,
                phrase("file_problem.no_source_id", place=responses.place(number)),
                phrase("wanted.as_published"),
            )
        by_source.setdefault(str(row["source_id"]), []).append(row)
    known = {str(row.get("source_id")) for row in sources.rows}
    if unknown := by_source.keys() - known:
        reason = phrase("file_problem.no_source", source=min(map(str, unknown)), file=_RESPONSES)
        raise unusable(folder / _SOURCES, reason, phrase("wanted.same_version"))
    rows, places = [], []
    for place, row in zip(sources.places, sources.rows, strict=True):
        if answered := by_source.get(str(row.get("source_id"))):
            rows.append({**row, "responses": answered})
            places.append(place)
    if not rows:
        raise unusable(folder, phrase("file_problem.no_response"), phrase("wanted.two_files"))
    return DataTable(folder.name, rows, places, sources.unit)

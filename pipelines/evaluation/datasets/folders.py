"""Data sets that are published in several files: RAGTruth's two, TriviaQA's questions and pages."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from pipelines.error_words import phrase
from pipelines.evaluation.datasets.files import BadRow, DataTable, bad_rows, read_table, unusable
from pipelines.evaluation.datasets.grids import Row
from pipelines.run.events import MAX_TEXT

_RESPONSES = "response.jsonl"
_SOURCES = "source_info.jsonl"


def ragtruth_folder(path: Path) -> Path | None:
    """Return the folder of RAGTruth that `path`, or the file of responses there, stands for."""
    if path.is_dir():
        return path
    return path.parent if path.name == _RESPONSES and (path.parent / _SOURCES).is_file() else None


def read_ragtruth(folder: Path) -> DataTable:
    """Return RAGTruth's sources, in their order, each with its responses.

    Raises InvalidInputError, which names the file, where the two do not belong together.
    """
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


# TriviaQA's pages lie under "evidence", beside the folder "qa" of its questions.

_EVIDENCE, _QUESTIONS = "evidence", "qa"
_PAGES = {"EntityPages": ("wikipedia", "wiki_context"), "SearchResults": ("web", "search_context")}
"""Where a question lists its pages: the folder of their files, and the name of their text."""


def with_evidence(table: DataTable, path: Path) -> DataTable:
    """Return the table at `path` with the pages of TriviaQA's evidence, where its folder is there.

    Of a question's pages as much is read as a run reads, `MAX_TEXT` characters. A question of which
    a page's file is missing is one of the `bad` rows; InvalidInputError where all are. Any other
    table is returned as it is.
    """
    beside = path.parent.parent if path.parent.name == _QUESTIONS else path.parent
    folder = beside / _EVIDENCE
    if not folder.is_dir() or not any(column in row for row in table.rows for column in _PAGES):
        return table
    rows: list[Row] = []
    places: list[int] = []
    bad = list(table.bad)
    for number, row in enumerate(table.rows):
        try:
            rows.append(_with_pages(row, folder))
            places.append(table.places[number])
        except FileNotFoundError as error:
            place, problem = table.place(number), phrase("file_problem.no_page", page=str(error))
            at = phrase("detail.at", place=place, problem=problem)
            bad.append(BadRow(place, problem, unusable(path, at, phrase("wanted.evidence"))))
    if not rows:
        raise bad_rows(path.name, bad)
    note = phrase("note.evidence", folder=_EVIDENCE)
    return table._replace(rows=rows, places=places, bad=tuple(bad), notes=(*table.notes, note))


def _with_pages(row: Row, folder: Path) -> Row:
    """Return the row with the text of its pages; FileNotFoundError names one that is missing."""
    filled, left = dict(row), MAX_TEXT
    for column, (place, text) in _PAGES.items():
        listed = row.get(column)
        pages: list[Any] = []
        for page in listed if isinstance(listed, list) else ():
            name = page.get("Filename") if isinstance(page, Mapping) else None
            if name and left > 0:
                written = _beginning(folder, f"{place}/{name}")
                left -= len(written)
                pages.append({**page, text: written})
            elif not name:
                # What the search engine showed of it is all there is.
                pages.append(page)
        filled[column] = pages
    return filled


def _beginning(folder: Path, name: str) -> str:
    """Return as much of a page as a run reads."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()) or not path.is_file():
        raise FileNotFoundError(f"{_EVIDENCE}/{name}")
    with path.open(encoding="utf-8", errors="replace") as file:
        return file.read(MAX_TEXT)

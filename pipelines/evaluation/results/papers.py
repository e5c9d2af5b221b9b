"""What papers report: the figures of `assets/papers/<method>.toml`, by method and data set.

Figures are shown beside results of this program, always with their model, data and date: they were
measured with other models, prompts and items.
"""

from __future__ import annotations

import re
import tomllib
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from pipelines.base import ASSETS, Frozen, Language

_UNITS = {"percent": " %", "points": " of 100", "seconds": " s"}

Text = Annotated[str, Field(min_length=1)]
Unit = Literal["percent", "points", "fraction", "seconds", "per_question"]
"""`points` run from 0 to 100, a `fraction` from 0 to 1; the others are what they are called."""


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class BilingualText(_Record):
    """A text in both languages of the interface."""

    en: Text
    zh: Text

    def text(self, language: Language) -> str:
        """Return the text in `language`."""
        return self.zh if language == "zh" else self.en


def _alike(value: Any) -> Any:
    return {"en": value, "zh": value} if isinstance(value, str) else value


Name = Annotated[BilingualText, BeforeValidator(_alike)]
"""As `BilingualText`; one string stands for a name that both languages share."""


class PaperColumn(_Record):
    """A metric; `better` None for one that is neither good nor bad in itself.

    `metric` is the name that evaluations here have for it, where they compute the same. `data_set`
    is the data set of this column, where a table has several.
    """

    key: Text
    name: Name
    unit: Unit
    better: Literal["higher", "lower"] | None = None
    metric: Text | None = None
    data_set: Text | None = None


class PaperRow(_Record):
    """One line of figures by column key, digits as printed; a column left out was not given.

    `method` is the method that this line is of, as the registry calls it. `data_set` is the data
    set of this line, where lines are data sets.
    """

    name: Name
    values: dict[str, Annotated[Decimal, Field(ge=0)]]
    method: Text | None = None
    data_set: Text | None = None


class PaperTable(_Record):
    """Figures of one model and data set. `ranked` is False where rows are not rivals.

    `data_set` and `method` hold for all lines and columns that do not say otherwise.
    """

    key: Text
    caption: BilingualText
    model: Name
    data: Name
    rows_are: BilingualText
    data_set: Text | None = None
    method: Text | None = None
    ranked: bool = True
    columns: Annotated[tuple[PaperColumn, ...], Field(min_length=1)]
    rows: Annotated[tuple[PaperRow, ...], Field(min_length=1)]
    notes: tuple[BilingualText, ...] = ()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        keys = [column.key for column in self.columns]
        if len(set(keys)) < len(keys):
            raise ValueError(f"Table {self.key!r} has a column twice.")
        filled = {key for row in self.rows for key in row.values}
        if filled != set(keys):
            odd = ", ".join(sorted(filled ^ set(keys)))
            raise ValueError(f"Columns and values of table {self.key!r} differ in: {odd}.")
        return self

    def best(self, column: PaperColumn) -> Decimal | None:
        """Return the best value of `column`, or None where no values are compared."""
        values = [row.values[column.key] for row in self.rows if column.key in row.values]
        if not self.ranked or column.better is None or len(values) < 2:
            return None
        return max(values) if column.better == "higher" else min(values)


class Paper(_Record):
    """A method's paper and its tables in order."""

    title: Text
    authors: tuple[Text, ...] = ()
    venue: Text | None = None
    pages: Text | None = None
    arxiv: Annotated[str, Field(pattern=r"^\d{4}\.\d{4,5}$")] | None = None
    tables: Annotated[tuple[PaperTable, ...], Field(min_length=1)]

    @property
    def date(self) -> str:
        """When it appeared: "2024-02" from its number on arXiv, else a year, else empty."""
        if self.arxiv:
            return f"20{self.arxiv[:2]}-{self.arxiv[2:4]}"
        year = re.search(r"\b(19|20)\d\d\b", self.venue or "")
        return year[0] if year else ""


def has_paper(method: str) -> bool:
    """Return whether figures of a paper of `method` are kept."""
    return (ASSETS / "papers" / f"{method}.toml").exists()


@cache
def paper(method: str) -> Paper:
    """Return what the paper of `method` reports.

    Raises FileNotFoundError for a method without one, ValidationError for figures that do not fit.
    """
    source = (ASSETS / "papers" / f"{method}.toml").read_text(encoding="utf-8")
    # Decimals keep the zeros that a paper prints: 7.60 stays 7.60.
    return Paper.model_validate(tomllib.loads(source, parse_float=Decimal))


class PaperFigure(Frozen):
    """One printed number of a method on a data set, with everything that it depends on.

    `paper` is the method whose paper prints it, `title` and `date` are the paper's, `row` is what
    the paper calls the system and `column` what it calls the metric. `metric` is the metric of
    evaluations here, None where none here is the same.
    """

    paper: str
    title: str
    date: str
    method: str
    row: BilingualText
    column: BilingualText
    metric: str | None
    value: Decimal
    unit: Unit
    better: Literal["higher", "lower"] | None
    model: BilingualText
    data: BilingualText


def paper_figures(method: str, data_set: str) -> tuple[PaperFigure, ...]:
    """Return what all papers print about `method` on the data set called `data_set`.

    A data set here may be a part of the paper's: "truthfulqa-mc" is of "TruthfulQA"; case and
    signs do not count. Empty where no paper has any.
    """
    wanted = _plain(data_set)
    return tuple(
        figure
        for name, figure in _all_figures()
        if figure.method == method and wanted and name and wanted.startswith(name)
    )


def table_figures(method: str, table: str, row: str) -> tuple[PaperFigure, ...]:
    """Return the figures of one line of the table `table` of the paper of `method`, by its
    English name.

    Empty where there is no such line.
    """
    return tuple(
        _figure(method, found, line, column, line.method or found.method or method, value)
        for found in paper(method).tables
        if found.key == table
        for line in found.rows
        if line.name.en == row
        for column in found.columns
        if (value := line.values.get(column.key)) is not None
    )


def _figure(
    source: str,
    table: PaperTable,
    row: PaperRow,
    column: PaperColumn,
    method: str,
    value: Decimal,
) -> PaperFigure:
    known = paper(source)
    return PaperFigure(
        paper=source,
        title=known.title or "",
        date=known.date,
        method=method,
        row=row.name,
        column=column.name,
        metric=column.metric,
        value=value,
        unit=column.unit,
        better=column.better,
        model=table.model,
        data=table.data,
    )


@cache
def _all_figures() -> tuple[tuple[str, PaperFigure], ...]:
    """Return every figure of a known method on a known data set, after the plain name of
    the latter.
    """
    found: list[tuple[str, PaperFigure]] = []
    for path in sorted((ASSETS / "papers").glob("*.toml")):
        source = paper(path.stem)
        for table in source.tables:
            for row in table.rows:
                for column in table.columns:
                    data_set = row.data_set or column.data_set or table.data_set
                    method = row.method or table.method
                    value = row.values.get(column.key)
                    if data_set is None or method is None or value is None:
                        continue
                    figure = _figure(path.stem, table, row, column, method, value)
                    found.append((_plain(data_set), figure))
    return tuple(found)


def _plain(name: str) -> str:
    return "".join(character for character in name.casefold() if character.isalnum())


def paper_value(figure: PaperFigure) -> str:
    """Return the digits as printed, with the unit where it is not a fraction or a count."""
    return with_unit(figure.value, figure.unit)


def with_unit(value: Decimal, unit: Unit) -> str:
    """Return a printed value with its unit, as `paper_value` does."""
    return f"{value:f}{_UNITS.get(unit, '')}"


def paper_words(figure: PaperFigure) -> str:
    """Return a paper's figure in one line, with all that it depends on."""
    source = " ".join(filter(None, [figure.paper, figure.date]))
    model, data = (words.en for words in (figure.model, figure.data))
    what = f"{figure.row.en}, {figure.column.en}: {paper_value(figure)}"
    return f"{what} (model: {model}; data: {data}; paper: {source})"

"""What the methods' papers report: figures of `assets/papers/<method>.toml`, shown as tables."""

from __future__ import annotations

import tomllib
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, Self

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator

from components.elements import Column, Row, fold, table
from components.markup import Child, Html, join, tag
from components.messages import Catalogue, named
from components.theme import ASSETS
from pipelines.types import Language

Text = Annotated[str, Field(min_length=1)]
Unit = Literal["percent", "points", "fraction", "seconds", "per_question"]
"""`points` run from 0 to 100, a `fraction` from 0 to 1; the others are what they are called."""

_ARROWS = {"higher": "↑", "lower": "↓"}


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Words(_Record):
    """A text in both languages of the interface."""

    en: Text
    zh: Text

    def text(self, language: Language) -> str:
        """The text in `language`."""
        return self.zh if language == "zh" else self.en


def _alike(value: Any) -> Any:
    return {"en": value, "zh": value} if isinstance(value, str) else value


Name = Annotated[Words, BeforeValidator(_alike)]
"""As `Words`; one string stands for a name that both languages share."""


class PaperColumn(_Record):
    """A metric; `better` None for one that is neither good nor bad in itself."""

    key: Text
    name: Name
    unit: Unit
    better: Literal["higher", "lower"] | None = None


class PaperRow(_Record):
    """One line of figures by column key, digits as printed; a column left out was not given."""

    name: Name
    values: dict[str, Annotated[Decimal, Field(ge=0)]]


class PaperTable(_Record):
    """Figures of one model and data set. `ranked` is False where rows are not rivals."""

    key: Text
    caption: Words
    model: Name
    data: Name
    rows_are: Words
    ranked: bool = True
    columns: Annotated[tuple[PaperColumn, ...], Field(min_length=1)]
    rows: Annotated[tuple[PaperRow, ...], Field(min_length=1)]
    notes: tuple[Words, ...] = ()

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
        """The best value of `column`, or None where no values are compared."""
        values = [row.values[column.key] for row in self.rows if column.key in row.values]
        if not self.ranked or column.better is None or len(values) < 2:
            return None
        return max(values) if column.better == "higher" else min(values)


class Paper(_Record):
    """A method's paper, as far as it is known, and its tables in order."""

    title: Text | None = None
    authors: tuple[Text, ...] = ()
    venue: Text | None = None
    pages: Text | None = None
    arxiv: Annotated[str, Field(pattern=r"^\d{4}\.\d{4,5}$")] | None = None
    tables: Annotated[tuple[PaperTable, ...], Field(min_length=1)]


def has_paper(method: str) -> bool:
    """Whether figures of a paper of `method` are kept."""
    return (ASSETS / "papers" / f"{method}.toml").exists()


@cache
def paper(method: str) -> Paper:
    """What the paper of `method` reports.

    Raises FileNotFoundError for a method without one, ValidationError for figures that do not fit.
    """
    source = (ASSETS / "papers" / f"{method}.toml").read_text(encoding="utf-8")
    # Decimals keep the zeros that a paper prints: 7.60 stays 7.60.
    return Paper.model_validate(tomllib.loads(source, parse_float=Decimal))


def paper_section(method: str, t: Catalogue) -> Html:
    """The figures of the paper of `method`, closed until they are asked for."""
    source, name = paper(method), named("method", method, t)
    content = tag(
        "div.vs-stack",
        _reference(source, name, t),
        tag("p.vs-paper-words", t("papers.not_comparable")),
        tag("p.vs-note", t("papers.legend")),
        (_table(table, t) for table in source.tables),
    )
    return fold(t("papers.title", method=name), content, css="vs-paper", key=f"paper-{method}")


def _reference(source: Paper, name: str, t: Catalogue) -> Html:
    if source.title is None:
        return tag("p.vs-paper-words", t("papers.untitled", method=name))
    pages = t("papers.pages", pages=source.pages) if source.pages else None
    where: list[Child] = [part for part in (source.venue, pages) if part]
    if source.arxiv:
        address = f"https://arxiv.org/abs/{source.arxiv}"
        label = f"arXiv:{source.arxiv}"
        where.append(tag("a", label, href=address, rel="noopener noreferrer", target="_blank"))
    return tag(
        "p.vs-paper-words",
        tag("cite.vs-strong", source.title, lang="en"),
        tag("br"),
        tag("span", ", ".join(source.authors), lang="en"),
        tag("br"),
        join(where, " · "),
    )


def _table(source: PaperTable, t: Catalogue) -> Html:
    """The table under its caption, with its notes behind it."""
    language = t.language
    facts = {"papers.model": source.model, "papers.data": source.data}
    caption = [
        tag("span.vs-strong", source.caption.text(language)),
        *(tag("span", t(key, name=value.text(language))) for key, value in facts.items()),
    ]
    columns = [Column(source.rows_are.text(language)), *(_column(c, t) for c in source.columns)]
    rows = (
        Row(None, [row.name.text(language), *(_cell(row, c, source, t) for c in source.columns)])
        for row in source.rows
    )
    css = "vs-paper-table"
    body = table(caption, columns, rows, css=css, caption_css=None, row_names=True)
    notes = (tag("li", note.text(language)) for note in source.notes)
    behind = tag("ul.vs-paper-notes.vs-note", notes) if source.notes else None
    return tag("div.vs-paper-part", body, behind, key=source.key)


def _column(column: PaperColumn, t: Catalogue) -> Column:
    name, unit = column.name.text(t.language), t(f"papers.unit.{column.unit}")
    arrow = _ARROWS.get(column.better or "", "")
    direction: list[Child] = []
    if column.better is not None:
        better = tag("span.vs-sr", t(f"papers.better.{column.better}"))
        direction = [" ", tag("span", arrow, aria_hidden=True), better]
    head = join([name, " ", tag("span.vs-paper-unit", unit, direction)])
    # On a narrow screen the heads are out of sight, and this stands above each figure.
    return Column(head, "vs-num", f"{name} {unit} {arrow}".strip())


def _cell(row: PaperRow, column: PaperColumn, source: PaperTable, t: Catalogue) -> Child:
    value = row.values.get(column.key)
    if value is None:
        missing = tag("span.vs-sr", t("papers.not_given"))
        return join([tag("span", "–", aria_hidden=True), missing])
    if value == source.best(column):
        return tag("strong", f"{value:f}", tag("span.vs-sr", t("papers.best")))
    return f"{value:f}"

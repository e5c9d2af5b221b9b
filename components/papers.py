"""What the methods' papers report: figures of `assets/papers/<method>.toml`, shown as tables."""

from __future__ import annotations

from components.elements import Column, TableRow, fold, table
from components.markup import Child, Html, join, tag
from components.messages import Catalogue, named
from pipelines.evaluation.results.papers import Paper, PaperColumn, PaperRow, PaperTable, paper

_ARROWS = {"higher": "↑", "lower": "↓"}


def paper_section(method: str, t: Catalogue) -> Html:
    """Return the figures of the paper of `method`, closed until they are asked for."""
    source, name = paper(method), named("method", method, t)
    content = tag(
        "div.vs-stack",
        _reference(source, t),
        tag("p.vs-paper-words", t("papers.not_comparable")),
        tag("p.vs-note", t("papers.legend")),
        (_table(table, t) for table in source.tables),
    )
    return fold(t("papers.title", method=name), content, css="vs-paper", key=f"paper-{method}")


def _reference(source: Paper, t: Catalogue) -> Html:
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
    """Return the table under its caption, with its notes behind it."""
    language = t.language
    facts = {"papers.model": source.model, "papers.data": source.data}
    caption = [
        tag("span.vs-strong", source.caption.text(language)),
        *(tag("span", t(key, name=value.text(language))) for key, value in facts.items()),
    ]
    columns = [Column(source.rows_are.text(language)), *(_column(c, t) for c in source.columns)]
    rows = (
        TableRow(
            None, [row.name.text(language), *(_cell(row, c, source, t) for c in source.columns)]
        )
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

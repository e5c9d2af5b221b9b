"""Methods of one or several runs side by side: answers, verdicts, evidence, costs, settings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from components.compare_rows import (
    CompareColumn,
    SharedPassage,
    differences,
    run_numbers,
    sentence_verdicts,
    shared_evidence,
)
from components.diff import diff_html
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue
from components.method_card import MethodRow, costs, error_note, judgement
from components.names import named
from components.run_view import language_unsupported, method_row
from components.sections import illustration_note, notice, section
from components.verdict import status_badge, verdict_badge

__all__ = ["MOST_COMPARED", "Against", "CompareColumn", "compare_view"]

Against = Literal["original", "first"]
"""What every answer is compared with: the answer it began as, or the first column's answer."""


MOST_COMPARED = 6
"""Columns that can still be read beside each other."""


def compare_view(
    columns: Sequence[CompareColumn],
    t: Catalogue,
    *,
    against: Against = "original",
    now: float | None = None,
) -> str:
    """Two to six columns side by side, on a narrow screen one below the other.

    `now` is the present (seconds since the epoch) while one of the runs goes on.
    """
    if not columns:
        return tag("p", t("compare.nothing"), class_="vs-empty", data_key="compare")
    rows = [method_row(column.view, column.method, now) for column in columns]
    evidence = shared_evidence(columns)
    numbers = run_numbers(columns)
    parts = [
        _column(columns, rows, n, numbers, evidence[n], against, t) for n in range(len(columns))
    ]
    return tag(
        "div",
        next(filter(None, (illustration_note(column.view, t) for column in columns)), None),
        _notices(columns, t),
        tag(
            "div",
            parts,
            class_="vs-compare",
            role="region",
            aria_label=t("compare.columns"),
            tabindex=0,
            data_key="columns",
        ),
        section("differences", t("compare.differences"), _differences(columns, rows, t)),
        class_="vs-run",
        data_key="compare",
    )


def _notices(columns: Sequence[CompareColumn], t: Catalogue) -> Html | None:
    """What the visitor has to know before comparing at all."""
    notes: list[Child] = []
    if len({column.spec.question for column in columns}) > 1:
        notes.append(notice(t("compare.other_questions"), "questions"))
    if any(language_unsupported(column.view) for column in columns):
        notes.append(notice(t("flag.language_unsupported"), "language"))
    return tag("div", notes, class_="vs-notices", data_key="notices") if notes else None


def _column(
    columns: Sequence[CompareColumn],
    rows: Sequence[MethodRow],
    own: int,
    numbers: Sequence[int],
    evidence: Sequence[SharedPassage],
    against: Against,
    t: Catalogue,
) -> Html:
    column, row = columns[own], rows[own]
    key = f"column-{column.key}"
    several = max(numbers) > 1
    return tag(
        "article",
        tag(
            "header",
            tag(
                "h3",
                tag("span", own + 1, class_="vs-column-number vs-num"),
                " ",
                named("method", row.method, t),
                class_="vs-method-name",
                id=f"{key}-name",
            ),
            status_badge(row.status, t),
            tag("p", t("compare.run", number=numbers[own]), class_="vs-note") if several else None,
            tag("p", shown(column.spec.question), class_="vs-note", dir="auto")
            if several
            else None,
        ),
        _part("verdict", t("compare.verdict"), judgement(row, t) or _pending(row)),
        _part("answer", t("ask.answer"), _answer(rows, own, against, t)),
        _part("sentences", t("compare.sentences"), _sentences(column, row, t)),
        _part("evidence", t("evidence.title"), _evidence(column, row, evidence, t)),
        _part(
            "costs",
            t("compare.cost"),
            [
                tag("dl", costs(row, t), class_="vs-compare-costs vs-num"),
                tag("p", t("cost.cached", count=row.cached), class_="vs-note")
                if row.cached
                else None,
            ],
        ),
        class_=f"vs-card vs-column vs-column-{row.status}",
        aria_labelledby=f"{key}-name",
        aria_busy="true" if row.status == "running" else None,
        data_key=key,
    )


def _part(name: str, title: str, content: Sequence[Child]) -> Html:
    return tag(
        "div",
        tag("h4", title, class_="vs-label"),
        list(content),
        class_=f"vs-part vs-part-{name}",
        data_key=name,
    )


def _pending(row: MethodRow) -> list[Child]:
    if row.status in ("waiting", "running"):
        return [tag("span", class_="vs-reserved", aria_hidden="true")]
    return [tag("p", "–", class_="vs-note")]


def _answer(rows: Sequence[MethodRow], own: int, against: Against, t: Catalogue) -> list[Child]:
    row = rows[own]
    parts: list[Child] = []
    if row.error is not None:
        parts.append(error_note(row.error, t))
    text = _text(row)
    if row.abstained:
        parts.append(tag("p", t("ask.abstained"), class_="vs-strong"))
    elif text is None:
        parts += [] if parts else _pending(row)
    else:
        parts += _changes(rows, own, text, against, t)
    parts += [tag("p", t(f"flag.{flag}"), class_="vs-flag") for flag in row.flags]
    return parts


def _changes(
    rows: Sequence[MethodRow], own: int, text: str, against: Against, t: Catalogue
) -> list[Child]:
    """The answer with the words that differ from what it is compared with."""
    row, first = rows[own], rows[0]
    plain = tag("p", shown(text), class_="vs-answer", dir="auto")
    if against == "original":
        if not row.original:
            return [plain]
        if row.original == text:
            words = t("compare.unchanged" if row.rewrites else "ask.checked")
            return [plain, tag("p", words, class_="vs-note")]
        return [diff_html(row.original, text, row.language, t)]
    reference = _text(first)
    if own == 0 or reference is None:
        return [plain]
    if row.language != first.language:
        return [plain, tag("p", t("compare.other_language"), class_="vs-note")]
    return [diff_html(reference, text, row.language, t)]


def _text(row: MethodRow) -> str | None:
    """The answer as far as there is one: until it is corrected, the original is the answer."""
    return row.answer if row.answer is not None else row.original or None


def _sentences(column: CompareColumn, row: MethodRow, t: Catalogue) -> list[Child]:
    if not row.judges:
        return [tag("p", t("verdict.none"), class_="vs-note")]
    judged = [] if language_unsupported(column.view) else sentence_verdicts(column)
    if not judged:
        return _pending(row)
    items = (
        tag(
            "li",
            verdict_badge(sentence.verdict or "unchecked", t),
            tag("span", shown(sentence.text), class_="vs-answer", dir="auto"),
            data_key=str(number),
        )
        for number, sentence in enumerate(judged)
    )
    return [tag("ol", items, class_="vs-sentences")]


def _evidence(
    column: CompareColumn, row: MethodRow, evidence: Sequence[SharedPassage], t: Catalogue
) -> list[Child]:
    if not evidence:
        if row.status in ("waiting", "running"):
            return _pending(row)
        searched = column.progress is not None and column.progress.searches
        words = t("evidence.none" if searched else "compare.unasked")
        return [tag("p", words, class_="vs-note")]
    items = (
        tag(
            "li",
            tag(
                "details",
                tag("summary", tag("bdi", shown(item.passage.title or item.passage.id))),
                tag("p", shown(item.passage.text), class_="vs-answer", dir="auto"),
                class_="vs-details",
            ),
            tag("span", _where(item, t), class_="vs-chip" if item.others else "vs-note"),
            data_key=str(number),
        )
        for number, item in enumerate(evidence)
    )
    return [tag("ul", items, class_="vs-shared")]


def _where(item: SharedPassage, t: Catalogue) -> str:
    if not item.others:
        return t("compare.only_here")
    listed = t("list.separator").join(str(number + 1) for number in item.others)
    return t("compare.also_in", list=listed)


def _differences(columns: Sequence[CompareColumn], rows: Sequence[MethodRow], t: Catalogue) -> Html:
    found = differences(columns, t)
    if not found:
        return tag("p", t("compare.same"), class_="vs-note", data_key="same")
    titles = [f"{n} {named('method', row.method, t)}" for n, row in enumerate(rows, start=1)]
    head = [t("compare.what"), *titles]
    return tag(
        "table",
        tag("caption", t("compare.differences"), class_="vs-sr"),
        tag(
            "thead",
            tag(
                "tr",
                (tag("th", name, scope="col", role="columnheader") for name in head),
                role="row",
            ),
            role="rowgroup",
        ),
        tag(
            "tbody",
            (
                tag(
                    "tr",
                    tag("td", difference.name, role="cell", class_="vs-strong"),
                    (
                        tag("td", tag("bdi", shown(value)), role="cell", data_label=title)
                        for value, title in zip(difference.values, titles, strict=True)
                    ),
                    role="row",
                    data_key=str(number),
                )
                for number, difference in enumerate(found)
            ),
            role="rowgroup",
        ),
        class_="vs-table vs-compare-table",
        role="table",
        data_key="differences",
    )

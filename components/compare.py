"""Methods of one or several runs side by side: answers, verdicts, evidence, costs, settings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

from components.diff import diff_html
from components.elements import (
    SEVERITY,
    Column,
    Row,
    error_note,
    notice,
    status_badge,
    table,
    verdict_badge,
)
from components.markup import Child, Html, tag
from components.messages import Catalogue, named
from components.method_cards import MethodRow, costs, judgement
from components.page import illustration_note, section
from components.run_view import language_unsupported, method_row, passages_of
from pipelines.errors import VeriscopeError
from pipelines.methods.registry import get_method
from pipelines.run.events import Judged, Verdict
from pipelines.run.spec import EvidenceSpec, ModelSpec, RunSpec
from pipelines.run.view import MethodView, RunView
from pipelines.text import split_sentences, text_key
from pipelines.types import Passage

__all__ = [
    "MOST_COMPARED",
    "Against",
    "CompareColumn",
    "Difference",
    "SentenceVerdict",
    "SharedPassage",
    "compare_view",
    "differences",
    "run_numbers",
    "sentence_verdicts",
    "shared_evidence",
]

_PARTS = ("sentence", "entity", "concept")
_NONE = "–"


@dataclass(frozen=True)
class CompareColumn:
    """One method of one run, as far as it has come. The run has to have a header."""

    view: RunView
    method: str

    @property
    def key(self) -> str:
        """What distinguishes it from every other column."""
        return f"{self.view.run}-{self.method}"

    @property
    def spec(self) -> RunSpec:
        """What the run was asked for."""
        assert self.view.header is not None
        return self.view.header.spec

    @property
    def progress(self) -> MethodView | None:
        """The method's part of the run, once it has begun."""
        return self.view.methods.get(self.method)


class SentenceVerdict(NamedTuple):
    """A sentence of the original answer and its worst verdict; None when none was given."""

    text: str
    verdict: Verdict | None


class SharedPassage(NamedTuple):
    """A passage a column found, and the other columns (from 0) that found the same text."""

    passage: Passage
    others: tuple[int, ...]


class Difference(NamedTuple):
    """Something that is not the same in every column, with its value in each."""

    name: str
    values: tuple[str, ...]


def run_numbers(columns: Sequence[CompareColumn]) -> list[int]:
    """The number of each column's run, counted from 1 in the order they appear."""
    runs = list(dict.fromkeys(column.view.run for column in columns))
    return [runs.index(column.view.run) + 1 for column in columns]


def sentence_verdicts(column: CompareColumn) -> list[SentenceVerdict]:
    """The sentences of the original with what the method made of each, at its first look.

    Verdicts on entities and concepts count for the sentences they stand in. Where only the answer
    as a whole was judged, it is one entry.
    """
    method = column.progress
    text = method_row(column.view, column.method).original
    if method is None or not text:
        return []
    parts = [event for event in method.judged if event.what in _PARTS]
    if not parts:
        wholes = [event for event in method.judged if event.what == "answer"]
        return [SentenceVerdict(text, wholes[-1].verdict)] if wholes else []
    first_looks = _first_looks(method, parts)
    return [
        SentenceVerdict(
            span.text, max(first_looks.get(span.text, ()), key=SEVERITY.index, default=None)
        )
        for span in split_sentences(text)
    ]


def shared_evidence(columns: Sequence[CompareColumn]) -> list[list[SharedPassage]]:
    """For every column the passages it found, each with the other columns that found it too."""
    found = [
        [passage for passage, _ in passages_of(column.progress)] if column.progress else []
        for column in columns
    ]
    known = [{_same(passage) for passage in passages} for passages in found]
    return [
        [
            SharedPassage(
                passage,
                tuple(n for n, keys in enumerate(known) if n != own and _same(passage) in keys),
            )
            for passage in passages
        ]
        for own, passages in enumerate(found)
    ]


def differences(columns: Sequence[CompareColumn], t: Catalogue) -> list[Difference]:
    """Questions, models, evidence and settings that are not the same in all columns."""
    specs = [column.spec for column in columns]
    languages = [column.view.header and column.view.header.language for column in columns]
    roles = dict.fromkeys(role for spec in specs for role in spec.models)
    compared: list[tuple[str, list[Any], Callable[[Any, Catalogue], str]]] = [
        (t("compare.question"), [spec.question for spec in specs], lambda text, _: text),
        (t("compare.language"), languages, lambda code, t: named("language", code, t)),
        *((named("role", r, t), [spec.models.get(r) for spec in specs], _model) for r in roles),
        (t("evidence.title"), [spec.evidence for spec in specs], _source),
        (t("setting.run.seed"), [spec.seed for spec in specs], lambda seed, _: str(seed)),
        (t("setting.run.reproducible"), [spec.reproducible for spec in specs], _yes_or_no),
    ]
    found = [
        Difference(name, tuple(_NONE if value is None else words(value, t) for value in values))
        for name, values, words in compared
        if any(value != values[0] for value in values)
    ]
    return found + _settings(columns, t)


def _first_looks(method: MethodView, parts: Sequence[Judged]) -> dict[str, list[Verdict]]:
    """Verdicts by the sentence they stand in, from the first draft in which it was judged."""
    drafts = {draft.draft: split_sentences(draft.after) for draft in method.drafts}
    looked: dict[str, int] = {}
    verdicts: dict[str, list[Verdict]] = {}
    for event in parts:
        for span in drafts.get(event.draft, ()):
            if span.start >= event.end or event.start >= span.end:
                continue
            if looked.setdefault(span.text, event.draft) == event.draft:
                verdicts.setdefault(span.text, []).append(event.verdict)
    return verdicts


def _same(passage: Passage) -> str:
    return text_key(passage.text) or passage.id


def _model(spec: ModelSpec, _t: Catalogue) -> str:
    more = [spec.model] if spec.model and spec.model != spec.name else []
    return " · ".join([spec.name, *more, *([spec.base_url] if spec.base_url else [])])


def _source(spec: EvidenceSpec, t: Catalogue) -> str:
    if spec.source == "given":
        return t("evidence.given")
    if spec.source != "library":
        return named("evidence.web", spec.source, t)
    return f"{named('library', spec.library, t)} · {t(f'evidence.mode.{spec.mode}')}"


def _yes_or_no(value: bool, t: Catalogue) -> str:
    return t("probe.yes" if value else "probe.no")


def _settings(columns: Sequence[CompareColumn], t: Catalogue) -> list[Difference]:
    """Settings that at least two columns have and that are not the same in all of those."""
    values = [_values(column) for column in columns]
    found: list[Difference] = []
    for field in dict.fromkeys(field for each in values for field in each):
        having = [n for n, each in enumerate(values) if field in each]
        if len(having) < 2 or all(values[n][field] == values[having[0]][field] for n in having):
            continue
        method = columns[having[0]].method
        name = named(f"setting.{method}", field, t)
        words = [
            _setting(column.method, field, each[field], t) if field in each else _NONE
            for column, each in zip(columns, values, strict=True)
        ]
        found.append(Difference(name, tuple(words)))
    return found


def _values(column: CompareColumn) -> dict[str, Any]:
    """Every setting the method ran with; the recorded ones where this installation differs."""
    chosen = next((m.settings for m in column.spec.methods if m.name == column.method), {})
    try:
        return get_method(column.method).settings(chosen).model_dump(mode="json")
    except VeriscopeError:
        return dict(chosen)


def _setting(method: str, field: str, value: Any, t: Catalogue) -> str:
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return _yes_or_no(value, t)
    if isinstance(value, str):
        return named(f"setting.{method}.{field}", value, t)
    return f"{value:g}" if isinstance(value, float) else str(value)


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
        return tag("p.vs-empty", t("compare.nothing"), key="compare")
    rows = [method_row(column.view, column.method, now) for column in columns]
    evidence = shared_evidence(columns)
    numbers = run_numbers(columns)
    parts = [
        _column(columns, rows, n, numbers, evidence[n], against, t) for n in range(len(columns))
    ]
    return tag(
        "div.vs-run",
        next(filter(None, (illustration_note(column.view, t) for column in columns)), None),
        _notices(columns, t),
        tag(
            "div.vs-compare",
            parts,
            role="region",
            aria_label=t("compare.columns"),
            tabindex=0,
            key="columns",
        ),
        section("differences", t("compare.differences"), _differences(columns, rows, t)),
        key="compare",
    )


def _notices(columns: Sequence[CompareColumn], t: Catalogue) -> Html | None:
    """What the visitor has to know before comparing at all."""
    notes: list[Child] = []
    if len({column.spec.question for column in columns}) > 1:
        notes.append(notice(t("compare.other_questions"), "questions"))
    if any(language_unsupported(column.view) for column in columns):
        notes.append(notice(t("flag.language_unsupported"), "language"))
    return tag("div.vs-notices", notes, key="notices") if notes else None


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
        f"article.vs-card.vs-column.vs-column-{row.status}",
        tag(
            "header",
            tag(
                "h3.vs-method-name",
                tag("span.vs-column-number.vs-num", own + 1),
                " ",
                named("method", row.method, t),
                id=f"{key}-name",
            ),
            status_badge(row.status, t),
            tag("p.vs-note", t("compare.run", number=numbers[own])) if several else None,
            tag("p.vs-note", column.spec.question, dir="auto") if several else None,
        ),
        _part("verdict", t("compare.verdict"), judgement(row, t) or _pending(row)),
        _part("answer", t("ask.answer"), _answer(rows, own, against, t)),
        _part("sentences", t("compare.sentences"), _sentences(column, row, t)),
        _part("evidence", t("evidence.title"), _evidence(column, row, evidence, t)),
        _part(
            "costs",
            t("compare.cost"),
            [
                tag("dl.vs-compare-costs.vs-num", costs(row, t)),
                tag("p.vs-note", t("cost.cached", count=row.cached)) if row.cached else None,
            ],
        ),
        aria_labelledby=f"{key}-name",
        aria_busy=row.status == "running",
        key=key,
    )


def _part(name: str, title: str, content: Sequence[Child]) -> Html:
    return tag(f"div.vs-part.vs-part-{name}", tag("h4.vs-label", title), list(content), key=name)


def _pending(row: MethodRow) -> list[Child]:
    if row.status in ("waiting", "running"):
        return [tag("span.vs-reserved", aria_hidden=True)]
    return [tag("p.vs-note", "–")]


def _answer(rows: Sequence[MethodRow], own: int, against: Against, t: Catalogue) -> list[Child]:
    row = rows[own]
    parts: list[Child] = []
    if row.error is not None:
        parts.append(error_note(row.error, t))
    text = _text(row)
    if row.abstained:
        parts.append(tag("p.vs-strong", t("ask.abstained")))
    elif text is None:
        parts += [] if parts else _pending(row)
    else:
        parts += _changes(rows, own, text, against, t)
    parts += [tag("p.vs-flag", t(f"flag.{flag}")) for flag in row.flags]
    return parts


def _changes(
    rows: Sequence[MethodRow], own: int, text: str, against: Against, t: Catalogue
) -> list[Child]:
    """The answer with the words that differ from what it is compared with."""
    row, first = rows[own], rows[0]
    plain = tag("p.vs-answer", text, dir="auto")
    if against == "original":
        if not row.original:
            return [plain]
        if row.original == text:
            words = t("compare.unchanged" if row.rewrites else "ask.checked")
            return [plain, tag("p.vs-note", words)]
        return [diff_html(row.original, text, row.language, t)]
    reference = _text(first)
    if own == 0 or reference is None:
        return [plain]
    if row.language != first.language:
        return [plain, tag("p.vs-note", t("compare.other_language"))]
    return [diff_html(reference, text, row.language, t)]


def _text(row: MethodRow) -> str | None:
    """The answer as far as there is one: until it is corrected, the original is the answer."""
    return row.answer if row.answer is not None else row.original or None


def _sentences(column: CompareColumn, row: MethodRow, t: Catalogue) -> list[Child]:
    if not row.judges:
        return [tag("p.vs-note", t("verdict.none"))]
    judged = [] if language_unsupported(column.view) else sentence_verdicts(column)
    if not judged:
        return _pending(row)
    items = (
        tag(
            "li",
            verdict_badge(sentence.verdict or "unchecked", t),
            tag("span.vs-answer", sentence.text, dir="auto"),
            key=str(number),
        )
        for number, sentence in enumerate(judged)
    )
    return [tag("ol.vs-sentences", items)]


def _evidence(
    column: CompareColumn, row: MethodRow, evidence: Sequence[SharedPassage], t: Catalogue
) -> list[Child]:
    if not evidence:
        if row.status in ("waiting", "running"):
            return _pending(row)
        searched = column.progress is not None and column.progress.searches
        words = t("evidence.none" if searched else "compare.unasked")
        return [tag("p.vs-note", words)]

    def where(item: SharedPassage) -> str:
        if not item.others:
            return t("compare.only_here")
        listed = t("list.separator").join(str(number + 1) for number in item.others)
        return t("compare.also_in", list=listed)

    items = (
        tag(
            "li",
            tag(
                "details.vs-details",
                tag("summary", tag("bdi", item.passage.title or item.passage.id)),
                tag("p.vs-answer", item.passage.text, dir="auto"),
            ),
            tag("span", where(item), class_="vs-chip" if item.others else "vs-note"),
            key=str(number),
        )
        for number, item in enumerate(evidence)
    )
    return [tag("ul.vs-shared", items)]


def _differences(columns: Sequence[CompareColumn], rows: Sequence[MethodRow], t: Catalogue) -> Html:
    found = differences(columns, t)
    if not found:
        return tag("p.vs-note", t("compare.same"), key="same")
    titles = [f"{n} {named('method', row.method, t)}" for n, row in enumerate(rows, start=1)]
    lines = (
        Row(str(n), [tag("span.vs-strong", one.name), *(tag("bdi", v) for v in one.values)])
        for n, one in enumerate(found)
    )
    head = [Column(t("compare.what"), label=""), *titles]
    name, css = t("compare.differences"), ".vs-compare-table"
    return table(name, head, lines, css=css, key="differences")

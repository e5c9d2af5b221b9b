"""Methods of one or several runs side by side: answers, verdicts, evidence, costs, settings."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Literal, NamedTuple

from components.diff import diff_html
from components.elements import (
    SEVERITY,
    Column,
    TableRow,
    answer_text,
    error_note,
    fold,
    notice,
    part,
    reserved,
    status_badge,
    table,
    verdict_badge,
)
from components.markup import Child, Content, Html, tag
from components.messages import Catalogue, named, setting_key, two_digits
from components.method_cards import MethodRow, costs, judgement
from components.page import illustration_note, section
from components.prompts import own_prompts_words
from components.run_view import language_unsupported, method_row, passages_of
from pipelines.errors import VeriscopeError
from pipelines.methods.registry import METHODS, get_method
from pipelines.prompts import Wording, own_prompts
from pipelines.retrieval.passages import passage_key
from pipelines.run.changes import model_words
from pipelines.run.events import Judged, Verdict
from pipelines.run.spec import EvidenceSpec, RunSpec
from pipelines.run.view import MethodView, RunView
from pipelines.text import split_sentences
from pipelines.types import Passage

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


class Difference(NamedTuple):
    """Something that is not the same in every column, with its value in each."""

    name: str
    values: tuple[str, ...]


def run_numbers(columns: Sequence[CompareColumn]) -> list[int]:
    """Return the number of each column's run, counted from 1 in the order they appear."""
    runs = list(dict.fromkeys(column.view.run for column in columns))
    return [runs.index(column.view.run) + 1 for column in columns]


def sentence_verdicts(column: CompareColumn) -> list[tuple[str, Verdict | None]]:
    """Return the sentences of the original with what the method made of each, at its first look.

    That is the worst verdict on it, None where none was given. Verdicts on entities and concepts
    count for the sentences they stand in. Where only the answer as a whole was judged, it is one
    entry.
    """
    method = column.progress
    text = method_row(column.view, column.method).original
    if method is None or not text:
        return []
    parts = [event for event in method.judged if event.what in ("sentence", "entity", "concept")]
    if not parts:
        wholes = [event for event in method.judged if event.what == "answer"]
        return [(text, wholes[-1].verdict)] if wholes else []
    looks = _first_looks(method, parts)
    return [
        (span.text, max(looks.get(span.text, ()), key=SEVERITY.index, default=None))
        for span in split_sentences(text)
    ]


def shared_evidence(columns: Sequence[CompareColumn]) -> list[list[tuple[Passage, list[int]]]]:
    """Return for every column the passages it found, each with the other columns that found it too.

    Columns are counted from 0; what has the same text is the same passage.
    """
    methods = [column.progress for column in columns]
    found = [[one for one, _ in passages_of(method)] if method else [] for method in methods]
    known = [{passage_key(passage) for passage in passages} for passages in found]
    return [
        [
            (one, [n for n, keys in enumerate(known) if n != own and passage_key(one) in keys])
            for one in passages
        ]
        for own, passages in enumerate(found)
    ]


def differences(columns: Sequence[CompareColumn], t: Catalogue) -> list[Difference]:
    """Return questions, models, evidence and settings that are not the same in all columns."""
    specs = [column.spec for column in columns]
    languages = [column.view.header and column.view.header.language for column in columns]
    compared: dict[str, list[Any]] = {
        t("compare.question"): [spec.question for spec in specs],
        t("compare.language"): [named("language", str(code), t) for code in languages],
    }
    for role in dict.fromkeys(role for spec in specs for role in spec.models):
        models = (spec.models.get(role) for spec in specs)
        compared[named("role", role, t)] = [model and model_words(model) for model in models]
    compared |= {
        t("evidence.title"): [source_words(spec.evidence, t) for spec in specs],
        t("setting.run.seed"): [str(spec.seed) for spec in specs],
        t("setting.run.reproducible"): [yes_or_no(spec.reproducible, t) for spec in specs],
        t("nav.prompts"): [wording_words(spec.prompts, t) for spec in specs],
    }
    found = [
        Difference(name, tuple(_NONE if value is None else value for value in values))
        for name, values in compared.items()
        if any(value != values[0] for value in values)
    ]
    return found + _settings(columns, t)


def _first_looks(method: MethodView, parts: Sequence[Judged]) -> dict[str, list[Verdict]]:
    """Return verdicts by the sentence they stand in, from the first draft in which it
    was judged.
    """
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


def source_words(spec: EvidenceSpec, t: Catalogue) -> str:
    """Return where passages come from, and how they are searched, in words."""
    if spec.source == "given":
        return t("evidence.given")
    if spec.source == "qdrant":
        name = t("evidence.qdrant", name=spec.library)
        return f"{name} · {t(f'evidence.mode.{spec.mode}')}"
    if spec.source != "library":
        return named("evidence.web", spec.source, t)
    return f"{named('library', spec.library, t)} · {t(f'evidence.mode.{spec.mode}')}"


def wording_words(wording: Wording, t: Catalogue) -> str | None:
    """Return the prompts that are not the default's, by name; None where all are."""
    own = own_prompts(wording)
    if not own:
        return None
    # The same prompt may have been worded in two other ways.
    texts = "\n".join(own.values())
    return f"{own_prompts_words(own, t)} · {sha256(texts.encode()).hexdigest()[:6]}"


def yes_or_no(value: bool, t: Catalogue) -> str:
    """Return a switch in words."""
    return t("compare.yes" if value else "compare.no")


def _settings(columns: Sequence[CompareColumn], t: Catalogue) -> list[Difference]:
    """Return settings that at least two columns have and that are not the same in all of those."""
    values = [_values(column) for column in columns]
    found: list[Difference] = []
    for field in dict.fromkeys(field for each in values for field in each):
        having = [n for n, each in enumerate(values) if field in each]
        if len(having) < 2 or all(values[n][field] == values[having[0]][field] for n in having):
            continue
        method = columns[having[0]].method
        kind = setting_key(method, field, t).rpartition(".")[0]
        name = named(kind, field, t)
        words = [
            setting_words(column.method, field, each[field], t) if field in each else _NONE
            for column, each in zip(columns, values, strict=True)
        ]
        found.append(Difference(name, tuple(words)))
    return found


def _values(column: CompareColumn) -> dict[str, Any]:
    """Return every setting the method ran with; the recorded ones where this installation
    differs.
    """
    chosen = next((m.settings for m in column.spec.methods if m.name == column.method), {})
    try:
        return get_method(column.method).settings(chosen).model_dump(mode="json")
    except VeriscopeError:
        return dict(chosen)


def default_numbers(unset: Mapping[str, float], key: str, t: Catalogue) -> str:
    """Return the number that applies while a setting is not given; "" where there is none.

    Where several are possible, each stands with the option that it belongs to. `key` is the
    setting's in the texts.
    """
    each = [
        two_digits(number)
        if len(unset) == 1
        else t(
            "setting.effective_default_option",
            value=two_digits(number),
            option=t(f"{key.rpartition('.')[0]}.{option}"),
        )
        for option, number in unset.items()
    ]
    return t("list.separator").join(each)


def setting_words(method: str, field: str, value: Any, t: Catalogue) -> str:
    """Return the value of a method's setting in words."""
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return yes_or_no(value, t)
    if isinstance(value, str):
        return named(setting_key(method, field, t), value, t)
    return f"{value:g}" if isinstance(value, float) else str(value)


Against = Literal["original", "first"]
"""What every answer is compared with: the answer it began as, or the first column's answer."""


MOST_COMPARED = len(METHODS)
"""Columns at most: every method of a run. What does not fit beside each other is scrolled."""


def compare_view(
    columns: Sequence[CompareColumn],
    t: Catalogue,
    *,
    against: Against = "original",
    now: float | None = None,
) -> str:
    """Return the columns side by side, on a narrow screen one below the other.

    `now` is the present (seconds since the epoch) while one of the runs goes on.
    """
    if not columns:
        return tag("p.vs-empty", t("compare.nothing"), key="compare")
    rows = [method_row(column.view, column.method, now) for column in columns]
    page = _Comparison(columns, rows, shared_evidence(columns), against, t)
    illustrated = (illustration_note(column.view, t) for column in columns)
    parts = tag(
        "div.vs-compare",
        map(page.column, range(len(columns))),
        role="region",
        aria_label=t("compare.columns"),
        tabindex=0,
        key="columns",
    )
    differing = section("differences", t("compare.differences"), page.differences())
    first = next(filter(None, illustrated), None)
    return tag("div.vs-run", first, page.notices(), parts, differing, key="compare")


@dataclass(frozen=True)
class _Comparison:
    """One drawing of the page; the columns are counted from 0."""

    columns: Sequence[CompareColumn]
    rows: Sequence[MethodRow]
    evidence: Sequence[Sequence[tuple[Passage, list[int]]]]
    against: Against
    t: Catalogue

    def notices(self) -> Html | None:
        """Return what the visitor has to know before comparing at all."""
        t, notes = self.t, list[Html]()
        if len({column.spec.question for column in self.columns}) > 1:
            notes.append(notice(t("compare.other_questions"), "questions"))
        if any(language_unsupported(column.view) for column in self.columns):
            notes.append(notice(t("flag.language_unsupported"), "language"))
        return tag("div.vs-notices", notes, key="notices") if notes else None

    def column(self, own: int) -> Html:
        """Return one method with everything that is compared."""
        t, column, row = self.t, self.columns[own], self.rows[own]
        key, numbers = f"column-{column.key}", run_numbers(self.columns)
        number = tag("span.vs-column-number.vs-num", own + 1)
        title = [number, " ", named("method", row.method, t)]
        heading: list[Child] = [
            tag("h3.vs-method-name", title, id=f"{key}-name"),
            status_badge(row.status, t),
        ]
        if max(numbers) > 1:
            heading.append(tag("p.vs-note", t("compare.run", number=numbers[own])))
            heading.append(tag("p.vs-note", column.spec.question, dir="auto"))
        cached = row.cached > 0 and tag("p.vs-note", t("cost.cached", count=row.cached))
        spent = [tag("dl.vs-compare-costs.vs-num", costs(row, t)), cached]
        parts: list[tuple[str, str, Content]] = [
            ("verdict", t("compare.verdict"), judgement(row, t) or _pending(row)),
            ("answer", t("ask.answer"), self._answer(own)),
            ("sentences", t("compare.sentences"), self._sentences(own)),
            ("evidence", t("evidence.title"), self._evidence(own)),
            ("costs", t("compare.cost"), spent),
        ]
        return tag(
            f"article.vs-card.vs-column.vs-column-{row.status}",
            tag("header", heading),
            (part(title, body, css=f"vs-part-{name}", key=name) for name, title, body in parts),
            aria_labelledby=f"{key}-name",
            aria_busy=row.status == "running",
            key=key,
        )

    def _answer(self, own: int) -> list[Child]:
        t, row, text = self.t, self.rows[own], _text(self.rows[own])
        parts: list[Child] = [error_note(row.error, t)] if row.error is not None else []
        if row.abstained:
            parts.append(tag("p.vs-strong", t("ask.abstained")))
        elif text is not None:
            parts += self._changes(own, text)
        elif not parts:
            parts.append(_pending(row))
        return [*parts, *(tag("p.vs-flag", named("flag", flag, t)) for flag in row.flags)]

    def _changes(self, own: int, text: str) -> list[Child]:
        """Return the answer with the words that differ from what it is compared with."""
        t, row, first = self.t, self.rows[own], self.rows[0]
        reference, remark = row.original, ""
        if self.against == "first":
            reference = _text(first) if own else None
            if reference is not None and row.language != first.language:
                remark = t("compare.other_language")
        elif reference and reference == text:
            remark = t("compare.unchanged" if row.rewrites else "ask.checked")
        if reference and not remark:
            return [diff_html(reference, text, row.language, t)]
        return [answer_text(text), tag("p.vs-note", remark) if remark else None]

    def _sentences(self, own: int) -> Html:
        t, view, row = self.t, self.columns[own].view, self.rows[own]
        if not row.judges:
            return tag("p.vs-note", t("verdict.none"))
        judged = [] if language_unsupported(view) else sentence_verdicts(self.columns[own])
        items = (
            tag(
                "li",
                verdict_badge(verdict or "unchecked", t),
                tag("span.vs-answer", text, dir="auto"),
                key=str(number),
            )
            for number, (text, verdict) in enumerate(judged)
        )
        return tag("ol.vs-sentences", items) if judged else _pending(row)

    def _evidence(self, own: int) -> Html:
        t, method, row = self.t, self.columns[own].progress, self.rows[own]
        if not self.evidence[own]:
            if row.status in ("waiting", "running"):
                return _pending(row)
            searched = method is not None and method.searches
            return tag("p.vs-note", t("evidence.none" if searched else "compare.unasked"))
        items: list[Html] = []
        for number, (passage, others) in enumerate(self.evidence[own]):
            title = tag("bdi", passage.title or passage.id)
            listed = t("list.separator").join(str(other + 1) for other in others)
            where = tag("span.vs-note", t("compare.only_here"))
            if others:
                where = tag("span.vs-chip", t("compare.also_in", list=listed))
            items.append(tag("li", fold(title, answer_text(passage.text)), where, key=str(number)))
        return tag("ul.vs-shared", items)

    def differences(self) -> Html:
        """Return what is not the same in all columns, as a table."""
        t, found = self.t, differences(self.columns, self.t)
        if not found:
            return tag("p.vs-note", t("compare.same"), key="same")
        methods = [named("method", row.method, t) for row in self.rows]
        titles = [f"{number} {method}" for number, method in enumerate(methods, start=1)]
        lines = (
            TableRow(
                str(n), [tag("span.vs-strong", one.name), *(tag("bdi", v) for v in one.values)]
            )
            for n, one in enumerate(found)
        )
        head = [Column(t("compare.what"), label=""), *titles]
        name, css = t("compare.differences"), "vs-compare-table"
        return table(name, head, lines, css=css, key="differences")


def _pending(row: MethodRow) -> Html:
    return reserved() if row.status in ("waiting", "running") else tag("p.vs-note", "–")


def _text(row: MethodRow) -> str | None:
    """Return the answer as far as there is one: until it is corrected, the original is
    the answer.
    """
    return row.answer if row.answer is not None else row.original or None

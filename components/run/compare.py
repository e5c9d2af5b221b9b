"""Methods of one or several runs side by side: answers, verdicts, evidence, costs, settings."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from hashlib import sha256
from typing import Any, Literal, NamedTuple, get_args

from components.ask import outcome_head
from components.base.elements import (
    SEVERITY,
    Column,
    Status,
    TableRow,
    answer_text,
    error_note,
    fold,
    measured,
    notice,
    part,
    reserved,
    score_title,
    status_badge,
    table,
    verdict_badge,
)
from components.base.html import Child, Content, Html, shown, tag
from components.base.words import (
    Catalogue,
    duration,
    integer,
    means_list,
    method_names,
    named,
    setting_key,
    two_digits,
)
from components.page import illustration_note, section
from components.prompts import own_prompts_words, place_words, wording_diff
from components.run.ask import (
    MethodRow,
    costs,
    judgement,
    language_unsupported,
    method_row,
    passages_of,
)
from components.run.spending import calibrations_words
from components.run.text import diff_html
from pipelines.base import Language, Passage
from pipelines.errors import VeriscopeError
from pipelines.methods.registry import METHODS, get_method
from pipelines.prompts import Wording, own_prompts, shipped_text
from pipelines.retrieval.documents import passage_key
from pipelines.run.changes import MethodChanges, RunChanges, RunPair, changes, in_order, model_words
from pipelines.run.events import EvidenceSpec, Judged, RunSpec, Verdict
from pipelines.run.view import MethodView, RunView
from pipelines.store import RunSummary
from pipelines.text import split_sentences

_NONE = "–"
_PASSAGES_SHOWN = 3
"""Passages of a column that are seen before its list is unfolded."""


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
    headed: bool = True,
) -> str:
    """Return the columns side by side, on a narrow screen one below the other.

    `now` is the present (seconds since the epoch) while one of the runs goes on. Where all columns
    are of one run, what became of its answer stands above them, unless not `headed`.
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
    head = _head(columns[0].view, t, now) if headed and max(run_numbers(columns)) == 1 else []
    return tag("div.vs-run", first, head, page.notices(), parts, differing, key="compare")


def _head(view: RunView, t: Catalogue, now: float | None) -> list[Child]:
    """Return the question of a run, and what became of its answer."""
    question = view.header.spec.question if view.header else ""
    asked = tag("h2.vs-question", question, dir="auto", key="question")
    return [asked, outcome_head(view, t, now=now)]


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

    def _evidence(self, own: int) -> list[Child]:
        t, method, row = self.t, self.columns[own].progress, self.rows[own]
        if not self.evidence[own]:
            if row.status in ("waiting", "running"):
                return [_pending(row)]
            searched = method is not None and method.searches
            return [tag("p.vs-note", t("evidence.none" if searched else "compare.unasked"))]
        items: list[Html] = []
        for number, (passage, others) in enumerate(self.evidence[own]):
            title = tag("bdi", passage.title or passage.id)
            listed = t("list.separator").join(str(other + 1) for other in others)
            where = tag("span.vs-note", t("compare.only_here"))
            if others:
                where = tag("span.vs-chip", t("compare.also_in", list=listed))
            items.append(tag("li", fold(title, answer_text(passage.text)), where, key=str(number)))
        first, rest = items[:_PASSAGES_SHOWN], items[_PASSAGES_SHOWN:]
        more = t("compare.more_passages", count=len(rest))
        told: list[Child] = [tag("ul.vs-shared", first)]
        return [*told, fold(more, tag("ul.vs-shared", rest), key="more")] if rest else told

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


# What changed between two runs of a question, side by side: conditions, answers, verdicts.


def changes_view(first: RunView, second: RunView, t: Catalogue) -> str:
    """Return what the later of two runs has otherwise than the earlier one. Both have
    their header.
    """
    before, after = in_order(first, second)
    found = changes(before, after)
    page = _Changes(before, after, found, t)
    illustrated = illustration_note(before, t) or illustration_note(after, t)
    methods = (page.method(one) for one in found.methods)
    return tag(
        "div.vs-run",
        illustrated,
        page.notices(),
        section("runs", t("changes.runs"), page.runs()),
        section("conditions", t("changes.conditions"), page.conditions()),
        section("outcomes", t("changes.outcomes"), tag("div.vs-stack", methods)),
        key="changes",
    )


@dataclass(frozen=True)
class _Changes:
    """One drawing of the page; the earlier run is called the first."""

    before: RunView
    after: RunView
    found: RunChanges
    t: Catalogue

    def notices(self) -> Html:
        """Return what the visitor has to know before anything else."""
        t, found = self.t, self.found
        notes: list[Html] = []
        if not found.same_question:
            notes.append(notice(t("compare.other_questions"), "questions"))
        moved, total = sum(one.changed for one in found.methods), len(found.methods)
        words = t("changes.moved", count=moved, total=total)
        if not moved:
            words = t("changes.not_moved", count=total)
        elif found.same_conditions:
            words = f"{words} {t('changes.same_conditions')}"
        else:
            words = f"{words} {t('changes.other_conditions')}"
        notes.append(notice(words, "summary"))
        return tag("div.vs-notices", notes, key="notices")

    def runs(self) -> Html:
        """Return which run is which."""
        t = self.t
        views = {"changes.first": self.before, "changes.second": self.after}
        items = (self._run(t(name), view) for name, view in views.items())
        return tag("ol.vs-changes-runs", items)

    def _run(self, name: str, view: RunView) -> Html:
        assert view.header is not None
        when = datetime.fromtimestamp(view.header.created, UTC)
        moment = self.t("report.moment", when=f"{when:%Y-%m-%d %H:%M}")
        question = tag("bdi", view.header.spec.question)
        facts = tag("span.vs-note", moment, title=view.run)
        return tag("li", tag("span.vs-label", name), question, facts, key=view.run)

    def conditions(self) -> Html:
        """Return everything that was not the same before the runs began, as a table."""
        t, rows = self.t, list(self._conditions())
        if not (rows or self.found.wording):
            return tag("p.vs-note", t("changes.no_conditions"), key="same")
        head = [Column(t("compare.what"), label=""), t("changes.first"), t("changes.second")]
        name, css = t("changes.conditions"), "vs-compare-table"
        listed = table(name, head, rows, css=css, key="conditions") if rows else None
        words = t("changes.conditions.count", count=len(rows))
        shown = listed and fold(words, listed, key="conditions-fold")
        return tag("div.vs-stack", shown, *self._wording(), key="conditions")

    def _wording(self) -> Iterable[Html]:
        """Yield the prompts that were worded otherwise, each as a difference; the default is
        one too.
        """
        for place, old, new in self.found.wording:
            usual = shipped_text(*place)
            before, after = (usual if text is None else text for text in (old, new))
            shown = wording_diff(place, before, after, self.t)
            yield part(place_words(place, self.t), shown, key="-".join(place))

    def _conditions(self) -> Iterable[TableRow]:
        t, found = self.t, self.found
        for pair in found.facts:
            yield self._row(f"fact-{pair.name}", self._fact_name(pair.name), pair, self._fact)
        for pair in found.models:
            yield self._row(f"role-{pair.name}", named("role", pair.name, t), pair, model_words)
        for method in found.methods:
            title = named("method", method.name, t)
            for pair in method.settings:
                key = setting_key(method.name, pair.name, t)
                name = f"{title}{t('label.separator')}{named(key.rpartition('.')[0], pair.name, t)}"
                words = partial(setting_words, method.name, pair.name, t=t)
                yield self._row(f"{method.name}-{pair.name}", name, pair, words)
        for kind, pairs in (("versions", found.versions), ("prompts", found.prompts)):
            for pair in pairs:
                name = t(f"changes.{kind}", name=pair.name)
                yield self._row(f"{kind}-{pair.name}", name, pair, str)

    def _row(self, key: str, name: str, pair: RunPair, words: Callable[[Any], str]) -> TableRow:
        sides = (pair.before, pair.after)
        values = (_NONE if value is None else words(value) or _NONE for value in sides)
        return TableRow(key, [tag("span.vs-strong", name), *(tag("bdi", one) for one in values)])

    def _fact_name(self, name: str) -> str:
        words = {
            "question": "compare.question",
            "language": "compare.language",
            "evidence": "evidence.title",
            "seed": "setting.run.seed",
            "reproducible": "setting.run.reproducible",
            "profile": "report.profile",
            "calibrations": "calibration.title",
            "answer": "report.given",
        }
        return self.t(words[name])

    def _fact(self, value: Any) -> str:
        if isinstance(value, bool):
            return yes_or_no(value, self.t)
        if isinstance(value, str):
            return named("language", value, self.t) if value in ("en", "zh") else value
        if isinstance(value, tuple):
            return calibrations_words(value, self.t)
        return str(value) if isinstance(value, int) else source_words(value, self.t)

    def method(self, one: MethodChanges) -> Html:
        """Return a method in both runs, or that only one of them has it."""
        t, name = self.t, named("method", one.name, self.t)
        heading = tag("h3.vs-method-name", name, id=f"changes-{one.name}-name")
        if one.before is None or one.after is None:
            only = "changes.only_second" if one.before is None else "changes.only_first"
            where = t(only)
            present = one.after or one.before
            body: list[Child] = [tag("p.vs-note", where)]
            if present is not None and present.answer is not None:
                body.append(part(t("ask.answer"), answer_text(present.answer.text)))
        else:
            body = [self._verdicts(one), self._scores(one), self._answer(one)]
            body += [self._costs(one), self._passages(one)]
        return tag(
            "article.vs-card.vs-padded.vs-stack",
            tag("header", heading),
            body,
            aria_labelledby=f"changes-{one.name}-name",
            key=f"changes-{one.name}",
        )

    def _verdicts(self, one: MethodChanges) -> Html:
        t = self.t
        badges = [
            verdict_badge(verdict, t) if verdict else tag("span.vs-note", t("verdict.none"))
            for verdict in one.verdicts
        ]
        if one.verdicts == (None, None):
            content: list[Child] = [badges[0]]
        elif len(set(one.verdicts)) == 1:
            content = [badges[0], tag("span.vs-note", t("changes.same_verdict"))]
        else:
            content = [badges[0], tag("span", "→", aria_hidden=True), self._then(), badges[1]]
        return part(t("compare.verdict"), tag("p.vs-changes-verdict", content))

    def _then(self) -> Html:
        return tag("span.vs-sr", f" {self.t('changes.then')} ")

    def _scores(self, one: MethodChanges) -> Html | None:
        t = self.t
        if not one.scores:
            return None
        rows: list[TableRow] = []
        for pair in one.scores:
            known = pair.after or pair.before
            assert known is not None
            moved = pair.difference
            words = _NONE if moved is None else "0" if moved == 0 else f"{_signed(moved)}"
            sides = (measured(side, t) if side else _NONE for side in (pair.before, pair.after))
            cells: list[Child] = [score_title(known, t), *sides, tag("span.vs-num", words)]
            rows.append(TableRow(pair.name, cells))
        head = [
            Column(t("changes.score"), label=""),
            t("changes.first"),
            t("changes.second"),
            t("changes.difference"),
        ]
        named_scores = [pair.name for pair in one.scores]
        shown = [table(t("changes.scores"), head, rows), means_list(named_scores, t)]
        return fold(t("changes.scores"), shown, key=f"{one.name}-scores")

    def _answer(self, one: MethodChanges) -> Html:
        t, (before, after) = self.t, one.answers
        if before is None or after is None:
            missing = "changes.first" if before is None else "changes.second"
            note = tag("p.vs-note", t("changes.no_answer", run=t(missing)))
            return part(t("ask.answer"), note, answer_text(after or before or ""))
        if before == after:
            note = tag("p.vs-note", t("changes.same_answer"))
            return part(t("ask.answer"), answer_text(after), note)
        return part(t("ask.answer"), diff_html(before, after, self._language, t))

    @property
    def _language(self) -> Language:
        assert self.after.header is not None
        return self.after.header.language

    def _costs(self, one: MethodChanges) -> Html:
        t = self.t
        sides = [method_row(view, one.name) for view in (self.before, self.after)]
        parts: list[str] = []
        for name in ("calls", "retrievals", "tokens"):
            old, new = (integer(getattr(side, name)) for side in sides)
            parts.append(f"{t(f'cost.{name}')} {old if old == new else f'{old} → {new}'}")
        return part(t("compare.cost"), tag("p.vs-note.vs-num", " · ".join(parts)))

    def _passages(self, one: MethodChanges) -> Html | None:
        t = self.t
        names = ("changes.passages_first", "changes.passages_second")
        folds = [
            fold(t(words, count=len(passages)), _listed(passages), key=f"{one.name}-{words}")
            for words, passages in zip(names, one.passages, strict=True)
            if passages
        ]
        return part(t("evidence.title"), *folds) if folds else None


def _listed(passages: Iterable[Passage]) -> Html:
    items = (
        tag("li", tag("bdi.vs-strong", one.title or one.id), answer_text(one.text))
        for one in passages
    )
    return tag("ol.vs-found", items)


def _signed(value: float) -> str:
    return f"{'+' if value > 0 else '−'}{two_digits(abs(value))}"


# A line of the list of runs: question, verdicts, calls and time, and its owner's labels.

_NOTE = 200
"""Characters of a note that the list shows."""


def run_line(run: RunSummary, when: str, t: Catalogue) -> Html:
    """Return the run in a few lines; `when` is the moment it began, in the reader's own time."""
    status: Status = "done" if run.status == "finished" else run.status
    judged = dict(run.findings)
    facts = [
        method_names(run.methods, t),
        when,
        duration(run.duration, t),
        t("counter.calls", count=run.model_calls),
        *([t("runs.interrupted")] if run.reason == "interrupted" else []),
    ]
    verdicts = [
        tag("span.workbench-run-verdict", named("method", name, t), " ", _badge(judged[name], t))
        for name in run.methods
        if name in judged
    ]
    return tag(
        "div.workbench-run",
        tag("p.workbench-run-question", shown(run.title), dir="auto"),
        run.name and tag("p.workbench-run-facts", shown(run.question), dir="auto"),
        run.original and tag("p.workbench-run-answer", _answers(run, t), dir="auto"),
        tag("p.workbench-run-facts", status_badge(status, t), " · ", " · ".join(facts)),
        verdicts and tag("p.workbench-run-verdicts", verdicts),
        run.tags and tag("p.vs-chips", (tag("span.vs-chip", one) for one in run.tags)),
        run.note and tag("p.workbench-run-note", _shortened(run.note), dir="auto"),
    )


def _answers(run: RunSummary, t: Catalogue) -> list[Child]:
    """Return the original answer, and what most methods ended with where that is another."""
    if not run.corrected:
        return [shown(run.original)]
    return [
        tag("span", shown(run.original)),
        tag("span", " → ", aria_hidden="true"),
        tag("span.vs-sr", t("runs.becomes")),
        tag("span.vs-strong", shown(run.corrected)),
    ]


def _badge(verdict: str, t: Catalogue) -> Child:
    # A run of a newer release may hold a verdict that this one does not know.
    return next((verdict_badge(one, t) for one in get_args(Verdict) if one == verdict), verdict)


def _shortened(text: str) -> str:
    return text if len(text) <= _NOTE else f"{text[:_NOTE].rstrip()}…"

"""What changed between two runs of a question, side by side: conditions, answers, verdicts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import partial
from typing import Any

from components.calibrated import calibrations_words
from components.compare import setting_words, source_words, yes_or_no
from components.diff import diff_html
from components.elements import (
    Column,
    TableRow,
    answer_text,
    fold,
    measured,
    notice,
    part,
    score_title,
    table,
    verdict_badge,
)
from components.glossary import means_list
from components.markup import Child, Html, tag
from components.messages import Catalogue, integer, named, setting_key, two_digits
from components.page import illustration_note, section
from components.prompts import place_words, wording_diff
from components.run_view import method_row
from pipelines.prompts import shipped_text
from pipelines.run.changes import MethodChanges, RunChanges, RunPair, changes, in_order, model_words
from pipelines.run.view import RunView
from pipelines.types import Language, Passage

_NONE = "–"


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
        facts = tag("span.vs-note", moment, " · ", tag("code", view.run))
        return tag("li", tag("span.vs-label", name), question, facts, key=view.run)

    def conditions(self) -> Html:
        """Return everything that was not the same before the runs began, as a table."""
        t, rows = self.t, list(self._conditions())
        if not (rows or self.found.wording):
            return tag("p.vs-note", t("changes.no_conditions"), key="same")
        head = [Column(t("compare.what"), label=""), t("changes.first"), t("changes.second")]
        name, css = t("changes.conditions"), "vs-compare-table"
        shown = table(name, head, rows, css=css, key="conditions") if rows else None
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
        return part(
            t("changes.scores"),
            table(t("changes.scores"), head, rows),
            means_list(named_scores, t),
        )

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

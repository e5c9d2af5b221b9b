"""The SLM check's part of a page: verdict, answer, judges' matrix, means, judges, context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from components.base.elements import (
    Column,
    EvidenceItem,
    TableRow,
    answer_text,
    consequence,
    divergence,
    error_title,
    evidence,
    flag_list,
    fold,
    gauge,
    happened,
    judged_text,
    reserved,
    score_title,
    score_value,
    table,
    verdict_badge,
)
from components.base.html import Child, Html, tag, visible
from components.base.words import Catalogue, integer, means_list, named, probability, two_digits
from components.methods.panel import MethodPanel
from components.page import section
from components.run.ask import nearest_in_words
from components.run.text import heat_class, unsupported_help
from pipelines.methods.slm.scores import shipped_panel
from pipelines.run.events import Judged, Score, Verdict
from pipelines.run.findings import CellJudged, JudgePanel, PanelJudge, SlmVerdict
from pipelines.run.view import RunView


def slm_view(view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str:
    """Return everything about the check, as far as it has come."""
    page = MethodPanel.of("slm", view, t, diverges_at)
    if "slm" not in view.methods:
        return tag("div.vs-run", _reserved(page), key="slm")
    panel, answer = page.detail(JudgePanel), page.method.answer
    check = _SlmPanel(view, page.method, t, diverges_at, panel) if panel is not None else None
    flags = answer.flags if answer else panel.flags if panel else ()
    decision = check.decision() if check else [_undecided(page)]
    main = (
        section("answer", t("slm.answer"), check.answer() if check else _draft(page)),
        section("decision", t("slm.decision"), *decision, flag_list(flags, t, "slm-flags")),
    )
    return tag(
        "div.vs-run",
        page.error(),
        divergence(diverges_at, t),
        tag("div.vs-slm-main", main, key="main"),
        check.details() if check else None,
        key="slm",
    )


def _draft(page: MethodPanel) -> Html:
    """Return the answer before it is judged, as it is written."""
    drafts, step = page.method.drafts, page.step("draft")
    text = drafts[0].after if drafts else step.text if step else ""
    if text:
        return answer_text(text, "vs-card vs-padded", key="slm-answer")
    return _reserved(page) if page.running else tag("p.vs-note", page.t("ask.no_answer"))


def _undecided(page: MethodPanel) -> Html:
    """Return room for what only follows once all judges have answered, or that it never will."""
    return _reserved(page) if page.running else tag("p.vs-note", page.t("slm.unfinished"))


def _reserved(page: MethodPanel) -> Html:
    lines = (reserved(style=f"width:{width}%") for width in (92, 64))
    css = "div.vs-answer-panel.vs-slm-reserved"
    return tag(css, lines, aria_busy=page.running, key="reserved")


_Cell = tuple[Judged, CellJudged]
"""What one judge said about one sentence, or about the whole response."""


@dataclass(frozen=True)
class _SlmPanel(MethodPanel):
    """The check of an answer by a panel of judges."""

    panel: JudgePanel

    @cached_property
    def cells(self) -> dict[tuple[str, int | None], _Cell]:
        """What was said, by role and sentence; the sentence None is the whole response."""
        return {
            (event.detail.role, event.sentence): (event, event.detail)
            for event in self.judged("cell", "whole")
            if isinstance(event.detail, CellJudged)
        }

    @cached_property
    def sentences(self) -> dict[int, Judged]:
        """The verdicts on sentences, by their number."""
        return {e.sentence: e for e in self.judged("sentence") if e.sentence is not None}

    def answer(self) -> Html:
        """Return the answer, each sentence underlined by its verdict."""
        if not self.panel.sentences:
            return tag("p.vs-note", self.t("flag.empty"))
        judged = self.sentences
        marks: list[tuple[int, int, Verdict]] = [
            (one.start, one.end, judged[n].verdict if n in judged else "unchecked")
            for n, one in enumerate(self.panel.sentences)
        ]
        text = judged_text(self.panel.text, marks, self.t)
        return answer_text(text, "vs-card vs-padded", key="slm-answer")

    def decision(self) -> list[Child]:
        """Return the verdict with its score and where its threshold comes from."""
        if self.verdict is None:
            return [_undecided(self)]
        badge = verdict_badge(self.verdict.verdict, self.t)
        return [
            tag("p", badge, key="slm-verdict"),
            self.score_line(self.verdict, self.verdict.deciding),
            tag("p.vs-note", self._threshold(self.verdict)),
        ]

    def details(self) -> list[Html]:
        """Return the matrix, the means, the judges and what they read."""
        t, some = self.t, self.panel.sentences and self.panel.judges
        matrix = self._matrix() if some else tag("p.vs-empty", t("slm.nothing"), key="nothing")
        behind = means_list(("slm_p_yes", "slm_sentence"), t, key="matrix-means") if some else None
        numbered = enumerate(self.verdict.scores if self.verdict else ())
        drawn = [self._mean(score, number == 0) for number, score in numbered]
        means: list[Child] = [_undecided(self)]
        if drawn:
            scores = [score.name for score in self.verdict.scores] if self.verdict else []
            listed = means_list(scores, t, key="means-means")
            means = [tag("ol.vs-slm-means", drawn, key="slm-means"), listed]
        judges = (tag("p.vs-note", t("slm.judges.note")), self._judges())
        # The verdict and the matrix are what decided; the rest is there to be looked up.
        more = (
            section("means", t("slm.means"), fold(t("slm.unfold"), means, key="means-fold")),
            section("judges", t("slm.judges"), fold(t("slm.unfold"), judges, key="judges-fold")),
        )
        words = unsupported_help(t, "slm-unsupported") if self.any_unsupported else None
        note = tag("p.vs-note", t("slm.note"))
        return [
            section("matrix", t("slm.matrix"), note, matrix, words, behind),
            tag("div.vs-slm-main", more, key="more"),
            section(
                "context",
                t("slm.context"),
                fold(t("slm.unfold"), Html(self._context()), key="context-fold"),
            ),
        ]

    def _threshold(self, answer: Judged) -> str:
        """Return where the threshold comes from; for a neutral one, with the judges that have
        no scale.
        """
        judges, t = self.panel.judges, self.t
        neutral = (visible(one.name) for one in judges if one.scale.source == "neutral")
        detail = answer.detail
        source = detail.threshold_source if isinstance(detail, SlmVerdict) else "missing"
        goal = t(f"setting.slm.tuned_for.{self._tuned_for}")
        names = t("list.separator").join(dict.fromkeys(neutral))
        return t(f"slm.threshold.{source}", goal=goal, judges=names)

    @property
    def _tuned_for(self) -> str:
        return self.method.settings.get("tuned_for", "f1")

    def _mean(self, score: Score, chosen: bool) -> Html:
        """Return the response's score under one mean; the chosen one is first, with its
        threshold.
        """
        t = self.t
        chip = tag("span.vs-chip", t("slm.chosen")) if chosen else None
        return tag(
            "li.vs-slm-mean" + (".vs-slm-chosen" if chosen else ""),
            tag("span.vs-score-name.vs-chips", score_title(score, t), chip),
            gauge(score, t),
            tag("span.vs-score-value.vs-num", score_value(score)),
            tag("span.vs-formula.vs-note", t(f"formula.{score.formula}")),
            aria_current=chosen,
            key=score.name,
        )

    def _context(self) -> str:
        settings, key = self.method.settings, "slm-context"
        if settings.get("context") == "given":
            given = tag("p.vs-answer", str(settings.get("passage", "")).strip())
            return tag("div.vs-card.vs-padded", given, key=key)
        if not self.method.searches:
            return tag("p.vs-empty", self.t("slm.context.none"), key=key)
        items = [
            EvidenceItem(
                passage, search.query, marks=nearest_in_words(passage.text, self.panel.text)
            )
            for search in self.method.searches
            for passage in search.passages
        ]
        return evidence(items, self.t, id=key)

    # --- The matrix: sentences by judges, P(yes) as heat, z behind each cell ---

    def _matrix(self) -> Html:
        """Return one row a sentence and one column a judge; on a narrow screen every row is a card.

        Space is reserved for what is still to come.
        """
        counts = {"sentences": len(self.panel.sentences), "judges": len(self.panel.judges)}
        rows = [self._sentence(number) for number in range(len(self.panel.sentences))]
        if any(self._said(None)):
            rows.append(self._whole())
        caption, key = self.t("slm.matrix.caption", **counts), "slm-matrix"
        return table(caption, self._columns(), rows, css="vs-slm-matrix", id=key, key=key)

    def _columns(self) -> list[Column]:
        t = self.t
        judges: list[Column] = []
        for judge in self.panel.judges:
            role = tag("span.vs-note.vs-slm-role", named("role", judge.role, t))
            name = tag("span", tag("bdi", judge.name), role)
            judges.append(Column(name, label=visible(judge.name)))
        words = (t(f"slm.column.{name}") for name in ("sentence", "score", "verdict"))
        sentence, *results = (Column(tag("span", name), label=name) for name in words)
        return [sentence, *judges, *results]

    def _sentence(self, number: int) -> TableRow:
        key, judged = f"slm-{number}", self.sentences.get(number)
        text = self.panel.sentences[number].text
        name = tag(
            "span",
            tag("span.vs-rank.vs-num", number + 1),
            tag("bdi.vs-slm-sentence", self.with_unsupported(text, judged), dir="auto"),
        )
        results = [self._pending(), self._pending()]
        if judged is not None:
            badge = verdict_badge(judged.verdict, self.t)
            results = [self._average(judged, number), badge]
        busy = self.running and judged is None
        return TableRow(key, [name, *self._cells(number, key), *results], busy=busy)

    def _whole(self) -> TableRow:
        scores = self.verdict.scores if self.verdict else ()
        baseline = next((score for score in scores if score.name == "slm_whole"), None)
        cells = [
            tag("span.vs-slm-sentence", self.t("slm.whole")),
            *self._cells(None, "slm-whole"),
            tag("span.vs-num", score_value(baseline), data_score="slm_whole") if baseline else None,
            tag("span.vs-note", self.t("slm.baseline")),
        ]
        return TableRow("slm-whole", cells, "vs-slm-whole")

    def _pending(self) -> Html:
        if self.running:
            return tag("span.vs-reserved.vs-slm-pending", aria_hidden=True)
        return tag("span.vs-note", "–")

    def _said(self, sentence: int | None) -> list[_Cell | None]:
        """Return the judges on one sentence, or on the whole response (None)."""
        return [self.cells.get((judge.role, sentence)) for judge in self.panel.judges]

    def _cells(self, sentence: int | None, key: str) -> list[Html]:
        pairs = zip(self._said(sentence), self.panel.judges, strict=True)
        return [
            self._cell(cell, judge, f"{key}-{judge.role}") if cell else self._pending()
            for cell, judge in pairs
        ]

    def _cell(self, cell: _Cell, judge: PanelJudge, key: str) -> Html:
        """Return P(yes) on its heat; opened, everything the judge said and what was made of it."""
        t, (event, said) = self.t, cell
        value, words = _in_words(cell, t)
        heat = heat_class("probability", event.deciding.value)
        parts: list[Child] = [tag("p.vs-note.vs-num", words)]
        if said.z is not None:
            mu, sigma = two_digits(judge.scale.mu), two_digits(judge.scale.sigma)
            inputs = t("slm.z.inputs", p=probability(event.deciding.value), mu=mu, sigma=sigma)
            parts.append(tag("p.vs-formula", t("slm.z.formula")))
            parts.append(tag("p.vs-note.vs-num", inputs))
        if said.error is not None:
            parts.append(tag("p.vs-note", happened(said.error, t)))
        return tag(
            "details.vs-details.vs-slm-cell",
            tag(
                "summary",
                tag(
                    f"span.vs-slm-p.vs-num.{heat}", value, aria_hidden=True, data_score="slm_p_yes"
                ),
                tag("span.vs-sr", words),
                tag("span.vs-chip", t("slm.text")) if said.source == "text" else None,
                title=words,
            ),
            parts,
            self.calls((event.span,), f"{key}-calls"),
            key=key,
        )

    def _average(self, judged: Judged, sentence: int) -> Html:
        t, score = self.t, judged.deciding
        follows = consequence(score, t)
        said = [cell[1].z for cell in self._said(sentence) if cell is not None]
        known = [z for z in said if z is not None]
        listed = t("list.separator").join(map(signed, known))
        return tag(
            "details.vs-details.vs-slm-cell",
            tag("summary.vs-num", score_value(score), title=follows, data_score=score.name),
            tag("p.vs-note", follows),
            self.calibrated(judged, score),
            tag("p.vs-formula", t(f"formula.{score.formula}")),
            tag("p.vs-note.vs-num", "z: ", listed) if known else None,
        )

    # --- Who judges, on which scale, and how good the judge was found to be ---

    def _judges(self) -> Html:
        """Return one card a judge, those that were left out, and how good the judges are
        together.
        """
        t, panel = self.t, self.panel
        cards = [self._judge(judge) for judge in panel.judges]
        for number, name in enumerate(panel.left_out):
            words = t("slm.left_out", name=visible(name))
            cards.append(tag("li.vs-note", words, key=f"out-{number}"))
        if len(panel.judges) > 1:
            title = tag("p.vs-strong", t("slm.together"))
            quality = tag("p.vs-note", self._quality(panel.judges))
            css = "li.vs-card.vs-padded.vs-slm-judge"
            cards.append(tag(css, title, quality, key="together"))
        return tag("ul.vs-stack", cards, key="slm-judges")

    def _judge(self, judge: PanelJudge) -> Html:
        t, scale = self.t, judge.scale
        normalise = self.method.settings.get("normalise", True)
        roles = (named("role", role, t) for role in (judge.role, *judge.also))
        numbers = t("slm.scale.numbers", mu=two_digits(scale.mu), sigma=two_digits(scale.sigma))
        origin = t(f"slm.scale.{scale.source}", count=integer(scale.n))
        return tag(
            "li.vs-card.vs-padded.vs-slm-judge",
            tag("p", tag("bdi.vs-strong", judge.name), " · ", t("list.separator").join(roles)),
            tag("p.vs-num", numbers) if normalise else None,
            tag("p.vs-note", origin if normalise else t("slm.scale.unused")),
            tag("p.vs-note", self._quality([judge])),
            key=f"judge-{judge.role}",
        )

    def _quality(self, judges: Sequence[PanelJudge]) -> str:
        """Return how often these judges together were right about answers whose truth is known."""
        report = shipped_panel(judge.name for judge in judges).get("report")
        if report is None or any(judge.scale.source == "neutral" for judge in judges):
            return self.t("slm.quality.unknown")
        verdicts = report["verdicts"][self._tuned_for]
        return self.t(
            "slm.quality",
            count=integer(report["answers"]),
            right=_percent(report["right"] / report["answers"]),
            accuracy=_percent(verdicts["accuracy"]),
            ranked=_percent(report["auroc"]["harmonic"]),
            one=_percent(report["one_sentence"]["auroc"]["harmonic"]),
            several=_percent(report["several_sentences"]["auroc"]["harmonic"]),
            baseline=_percent(report["auroc"]["whole_response"]),
            length=_percent(report["auroc"]["answer_length"]),
            supported=_percent(verdicts["supported"] / report["answers"]),
        )


def _in_words(cell: _Cell, t: Catalogue) -> tuple[str, str]:
    """Return what stands in the cell, and the same in a sentence."""
    event, said = cell
    p_yes = event.deciding.value
    if said.error is not None:
        return "✗", t("slm.cell.failed", reason=error_title(said.error.code, t))
    other = probability(said.other_mass)
    if p_yes is None:
        return "?", t("slm.cell.neither", other=other)
    z = "–" if said.z is None else signed(said.z)
    if said.source == "text":
        word = t("slm.cell.yes" if p_yes else "slm.cell.no")
        return word, t("slm.cell.text", said=word, z=z)
    p = probability(p_yes)
    return p, t("slm.cell.words", p=p, no=probability(said.p_no), other=other, z=z)


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"


def signed(value: float) -> str:
    """Return a z with its sign, to two decimals: +1.04, −0.69, 0.00."""
    text = f"{value:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", "−")

"""The SLM check's part of a page: verdict, answer, judges' matrix, means, judges, context."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from components.calls import call_list, calls_within
from components.elements import (
    consequence,
    divergence,
    error_note,
    flag_list,
    gauge,
    judged_text,
    score_line,
    score_title,
    score_value,
    table,
    verdict_badge,
)
from components.evidence import EvidenceItem, evidence
from components.heatmap import heat_level
from components.markup import Child, Html, join, shown, tag, visible
from components.messages import Catalogue, integer, named, probability, two_digits
from components.page import section
from components.run_view import supporting
from pipelines.methods.slm.scale import shipped_panel
from pipelines.run.events import Judged, Score, Verdict
from pipelines.run.findings import CellJudged, JudgePanel, PanelJudge, SlmVerdict
from pipelines.run.view import MethodView, RunView


@dataclass(frozen=True)
class _Cell:
    """What one judge said about one sentence, or about the whole response."""

    p_yes: float | None
    said: CellJudged
    span: str


class _Seen:
    """What the run's events tell so far."""

    def __init__(self, method: MethodView, panel: JudgePanel, *, running: bool) -> None:
        self.method = method
        self.panel = panel
        self.running = running
        self.cells: dict[tuple[str, int | None], _Cell] = {}
        self.sentences: dict[int, Judged] = {}
        self.answer: Judged | None = None
        for event in method.judged:
            match event.what:
                case "cell" | "whole" if isinstance(event.detail, CellJudged):
                    key = event.detail.role, event.sentence
                    self.cells[key] = _Cell(event.scores[0].value, event.detail, event.span)
                case "sentence" if event.sentence is not None:
                    self.sentences[event.sentence] = event
                case "answer":
                    self.answer = event
                case _:
                    pass

    def row(self, sentence: int | None) -> list[_Cell | None]:
        """The judges on one sentence, or on the whole response (None)."""
        return [self.cells.get((judge.role, sentence)) for judge in self.panel.judges]


def slm_view(view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str:
    """Everything about the check, as far as it has come."""
    method = view.methods.get("slm")
    if method is None:
        return tag("div", _reserved(not view.over), class_="vs-run", data_key="slm")
    running = not view.over and method.outcome is None
    panel = next((s.detail for s in method.steps if isinstance(s.detail, JudgePanel)), None)
    seen = _Seen(method, panel, running=running) if panel is not None else None
    answer = seen.answer if seen is not None else None
    flags = method.answer.flags if method.answer else panel.flags if panel else ()
    undecided = _undecided(t, running=running)
    return tag(
        "div",
        error_note(method.error, t, retry="slm") if method.error is not None else None,
        divergence(diverges_at, t),
        tag(
            "div",
            section("answer", t("slm.answer"), _answer(method, seen, t, running=running)),
            section(
                "decision",
                t("slm.decision"),
                *(_decision(seen, answer, t) if seen and answer else [undecided]),
                flag_list(flags, t, "slm-flags"),
            ),
            class_="vs-slm-main",
            data_key="main",
        ),
        _details(seen, _means(answer, t) if answer else undecided, t) if seen is not None else None,
        class_="vs-run",
        data_key="slm",
    )


def _details(seen: _Seen, means: Html, t: Catalogue) -> list[Html]:
    body = (
        _matrix(seen, t)
        if seen.panel.sentences and seen.panel.judges
        else tag("p", t("slm.nothing"), class_="vs-empty", data_key="nothing")
    )
    panel_note = tag("p", t("slm.judges.note"), class_="vs-note")
    return [
        section("matrix", t("slm.matrix"), tag("p", t("slm.note"), class_="vs-note"), body),
        tag(
            "div",
            section("means", t("slm.means"), means),
            section("judges", t("slm.judges"), panel_note, _judges(seen, t)),
            class_="vs-slm-main",
            data_key="more",
        ),
        section("context", t("slm.context"), _context(seen, t)),
    ]


def _undecided(t: Catalogue, *, running: bool) -> Html:
    """Room for what only follows once all judges have answered, or that it never will."""
    return _reserved(running) if running else tag("p", t("slm.unfinished"), class_="vs-note")


def _reserved(running: bool) -> Html:
    return tag(
        "div",
        (
            tag("span", class_="vs-reserved", style=f"width:{width}%", aria_hidden="true")
            for width in (92, 64)
        ),
        class_="vs-answer-panel vs-slm-reserved",
        aria_busy="true" if running else None,
        data_key="reserved",
    )


def _answer(method: MethodView, seen: _Seen | None, t: Catalogue, *, running: bool) -> Html:
    """The answer, each sentence underlined by its verdict; before that, as it is written."""
    if seen is None:
        step = next((s for s in method.steps if s.name == "draft"), None)
        text = method.drafts[0].after if method.drafts else step.text if step else ""
        if not text:
            return _reserved(running) if running else tag("p", t("ask.no_answer"), class_="vs-note")
        body: list[Child] = [shown(text)]
    elif not seen.panel.sentences:
        return tag("p", t("flag.empty"), class_="vs-note")
    else:
        judged = seen.sentences
        marks: list[tuple[int, int, Verdict]] = [
            (one.start, one.end, judged[n].verdict if n in judged else "unchecked")
            for n, one in enumerate(seen.panel.sentences)
        ]
        body = judged_text(seen.panel.text, marks, t)
    return tag("p", body, class_="vs-answer vs-card vs-padded", dir="auto", data_key="slm-answer")


def _decision(seen: _Seen, answer: Judged, t: Catalogue) -> list[Child]:
    headline = answer.scores[0]
    calls = call_list(calls_within(seen.method, headline.behind), t, id="slm-headline-calls")
    return [
        tag("p", verdict_badge(answer.verdict, t), data_key="slm-verdict"),
        score_line(headline, t, behind=calls),
        tag("p", _threshold(seen, answer, t), class_="vs-note"),
    ]


def _threshold(seen: _Seen, answer: Judged, t: Catalogue) -> str:
    """Where the threshold comes from; a neutral one names the judges that call for it."""
    unmeasured = dict.fromkeys(
        visible(judge.name) for judge in seen.panel.judges if judge.scale.source == "neutral"
    )
    source = answer.detail.threshold_source if isinstance(answer.detail, SlmVerdict) else "missing"
    return t(
        f"slm.threshold.{source}",
        goal=t(f"setting.slm.tuned_for.{seen.method.settings.get('tuned_for', 'f1')}"),
        judges=t("list.separator").join(unmeasured),
    )


def _means(answer: Judged, t: Catalogue) -> Html:
    """The response's score under every mean; the chosen one first, with its threshold."""
    return tag(
        "ol",
        (_mean(score, place == 0, t) for place, score in enumerate(answer.scores)),
        class_="vs-slm-means",
        data_key="slm-means",
    )


def _mean(score: Score, chosen: bool, t: Catalogue) -> Html:
    return tag(
        "li",
        tag(
            "span",
            score_title(score, t),
            tag("span", t("slm.chosen"), class_="vs-chip") if chosen else None,
            class_="vs-score-name vs-chips",
        ),
        gauge(score, t),
        tag("span", score_value(score), class_="vs-score-value vs-num"),
        tag("span", t(f"formula.{score.formula}"), class_="vs-formula vs-note"),
        class_="vs-slm-mean" + (" vs-slm-chosen" if chosen else ""),
        aria_current="true" if chosen else None,
        data_key=score.name,
    )


def _context(seen: _Seen, t: Catalogue) -> str:
    if seen.method.settings.get("context") == "given":
        given = tag(
            "p", shown(str(seen.method.settings.get("passage", "")).strip()), class_="vs-answer"
        )
        return tag("div", given, class_="vs-card vs-padded", data_key="slm-context")
    if not seen.method.searches:
        return tag("p", t("slm.context.none"), class_="vs-empty", data_key="slm-context")
    items = [
        EvidenceItem(passage, search.query, marks=supporting(passage.text, seen.panel.text))
        for search in seen.method.searches
        for passage in search.passages
    ]
    return evidence(items, t, id="slm-context")


# --- The matrix: sentences by judges, P(yes) as heat, z behind each cell -----------------------


def _matrix(seen: _Seen, t: Catalogue) -> Html:
    """One row a sentence and one column a judge; on a narrow screen every row is a card.

    What is still to come keeps its place.
    """
    panel = seen.panel
    names = [
        tag("span", t("slm.column.sentence")),
        *(_judge_name(judge, t) for judge in panel.judges),
        tag("span", t("slm.column.score")),
        tag("span", t("slm.column.verdict")),
    ]
    rows = [_row(number, seen, t) for number in range(len(panel.sentences))]
    caption = t("slm.matrix.caption", sentences=len(panel.sentences), judges=len(panel.judges))
    return table(
        caption,
        names,
        filter(None, [*rows, _whole_row(seen, t)]),
        css="vs-slm-matrix",
        id="slm-matrix",
        data_key="slm-matrix",
    )


def signed(value: float) -> str:
    """A z with its sign, to two decimals: +1.04, −0.69, 0.00."""
    text = f"{value:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", "−")


def _judge_name(judge: PanelJudge, t: Catalogue) -> Html:
    return tag(
        "span",
        tag("bdi", shown(judge.name)),
        tag("span", named("role", judge.role, t), class_="vs-note vs-slm-role"),
    )


def _row(number: int, seen: _Seen, t: Catalogue) -> Html:
    key, running = f"slm-{number}", seen.running
    text = tag(
        "span",
        tag("span", number + 1, class_="vs-rank vs-num"),
        tag("bdi", shown(seen.panel.sentences[number].text), class_="vs-slm-sentence", dir="auto"),
    )
    cells = seen.row(number)
    judged = seen.sentences.get(number)
    known = (
        [_average(judged.scores[0], cells, t), verdict_badge(judged.verdict, t)]
        if judged is not None
        else [_pending(running=running), _pending(running=running)]
    )
    shown_cells = _cells(seen, cells, key, t)
    return _table_row(key, [text, *shown_cells, *known], seen, t, busy=running and judged is None)


def _whole_row(seen: _Seen, t: Catalogue) -> Html | None:
    cells = seen.row(None)
    if not any(cells):
        return None
    scores = seen.answer.scores if seen.answer else ()
    baseline = next((score for score in scores if score.name == "slm_whole"), None)
    content: list[Child] = [
        tag("span", t("slm.whole"), class_="vs-slm-sentence"),
        *_cells(seen, cells, "slm-whole", t),
        tag("span", score_value(baseline), class_="vs-num") if baseline else None,
        tag("span", t("slm.baseline"), class_="vs-note"),
    ]
    return _table_row("slm-whole", content, seen, t, css="vs-slm-whole")


def _cells(seen: _Seen, cells: Sequence[_Cell | None], key: str, t: Catalogue) -> list[Html]:
    return [
        _cell(seen, cell, judge, f"{key}-{judge.role}", t)
        for cell, judge in zip(cells, seen.panel.judges, strict=True)
    ]


def _table_row(
    key: str, cells: list[Child], seen: _Seen, t: Catalogue, *, css: str = "", busy: bool = False
) -> Html:
    names = [
        t("slm.column.sentence"),
        *(visible(judge.name) for judge in seen.panel.judges),
        t("slm.column.score"),
        t("slm.column.verdict"),
    ]
    return tag(
        "tr",
        (
            tag("td", cell, role="cell", data_label=name, data_key=f"{key}-{place}")
            for place, (cell, name) in enumerate(zip(cells, names, strict=True))
        ),
        role="row",
        class_=css or None,
        data_key=key,
        aria_busy="true" if busy else None,
    )


def _pending(*, running: bool) -> Html:
    if not running:
        return tag("span", "–", class_="vs-note")
    return tag("span", class_="vs-reserved vs-slm-pending", aria_hidden="true")


def _cell(seen: _Seen, cell: _Cell | None, judge: PanelJudge, key: str, t: Catalogue) -> Html:
    """P(yes) on its heat; opened, everything the judge said and what was made of it."""
    if cell is None:
        return _pending(running=seen.running)
    said, z = cell.said, cell.said.z
    mu, sigma = two_digits(judge.scale.mu), two_digits(judge.scale.sigma)
    value, words = _in_words(cell, t)
    level = heat_level("probability", cell.p_yes)
    css = "vs-hx" if level is None else f"vs-h{level}"
    return tag(
        "details",
        tag(
            "summary",
            tag("span", value, class_=f"vs-slm-p vs-num {css}", aria_hidden="true"),
            tag("span", words, class_="vs-sr"),
            tag("span", t("slm.text"), class_="vs-chip") if said.source == "text" else None,
            title=words,
        ),
        tag("p", words, class_="vs-note vs-num"),
        ()
        if z is None
        else (
            tag("p", t("slm.z.formula"), class_="vs-formula"),
            tag(
                "p",
                t("slm.z.inputs", p=probability(cell.p_yes), mu=mu, sigma=sigma),
                class_="vs-note vs-num",
            ),
        ),
        tag("p", shown(said.error.message), class_="vs-note") if said.error else None,
        call_list(calls_within(seen.method, (cell.span,)), t, id=f"{key}-calls"),
        class_="vs-details vs-slm-cell",
        data_key=key,
    )


def _in_words(cell: _Cell, t: Catalogue) -> tuple[str, str]:
    """What stands in the cell, and the same in a sentence."""
    said = cell.said
    if said.error is not None:
        code = said.error.code if t.has(f"error.{said.error.code}.title") else "unexpected"
        return "✗", t("slm.cell.failed", reason=t(f"error.{code}.title"))
    if cell.p_yes is None:
        return "?", t("slm.cell.neither", other=probability(said.other_mass))
    z = "–" if said.z is None else signed(said.z)
    if said.source == "text":
        word = t("slm.cell.yes" if cell.p_yes else "slm.cell.no")
        return word, t("slm.cell.text", said=word, z=z)
    return probability(cell.p_yes), t(
        "slm.cell.words",
        p=probability(cell.p_yes),
        no=probability(said.p_no),
        other=probability(said.other_mass),
        z=z,
    )


def _average(score: Score, cells: Sequence[_Cell | None], t: Catalogue) -> Html:
    known = [cell.said.z for cell in cells if cell is not None and cell.said.z is not None]
    listed = t("list.separator").join(map(signed, known))
    return tag(
        "details",
        tag("summary", score_value(score), class_="vs-num", title=consequence(score, t)),
        tag("p", consequence(score, t), class_="vs-note"),
        tag("p", t(f"formula.{score.formula}"), class_="vs-formula"),
        tag("p", join(["z: ", listed]), class_="vs-note vs-num") if known else None,
        class_="vs-details vs-slm-cell",
    )


# --- Who judges, what a judge's scores are measured against, and how good it was found to be ----


def _judges(seen: _Seen, t: Catalogue) -> Html:
    """One card a judge, those that were left out, and what the judges are worth together."""
    panel = seen.panel
    cards = [_card(judge, seen.method.settings, t) for judge in panel.judges]
    out: list[Child] = [
        tag("li", t("slm.left_out", name=visible(name)), class_="vs-note", data_key=f"out-{place}")
        for place, name in enumerate(panel.left_out)
    ]
    all_of_them = None
    if len(panel.judges) > 1:
        all_of_them = tag(
            "li",
            tag("p", t("slm.together"), class_="vs-strong"),
            tag("p", _quality(panel.judges, seen.method.settings, t), class_="vs-note"),
            class_="vs-card vs-padded vs-slm-judge",
            data_key="together",
        )
    return tag("ul", cards, out, all_of_them, class_="vs-stack", data_key="slm-judges")


def _card(judge: PanelJudge, settings: dict[str, Any], t: Catalogue) -> Html:
    scale, normalise = judge.scale, settings.get("normalise", True)
    roles = t("list.separator").join(named("role", role, t) for role in (judge.role, *judge.also))
    numbers = t("slm.scale.numbers", mu=two_digits(scale.mu), sigma=two_digits(scale.sigma))
    origin = t(f"slm.scale.{scale.source}", count=integer(scale.n))
    return tag(
        "li",
        tag("p", tag("bdi", shown(judge.name), class_="vs-strong"), " · ", roles),
        tag("p", numbers, class_="vs-num") if normalise else None,
        tag("p", origin if normalise else t("slm.scale.unused"), class_="vs-note"),
        tag("p", _quality([judge], settings, t), class_="vs-note"),
        class_="vs-card vs-padded vs-slm-judge",
        data_key=f"judge-{judge.role}",
    )


def _quality(judges: Sequence[PanelJudge], settings: dict[str, Any], t: Catalogue) -> str:
    """How often these judges together were right about answers whose truth is known."""
    report = shipped_panel(judge.name for judge in judges).get("report")
    if report is None or any(judge.scale.source == "neutral" for judge in judges):
        return t("slm.quality.unknown")
    verdicts = report["verdicts"][settings.get("tuned_for", "f1")]
    return t(
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


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"

"""The judges' matrix of the SLM check: sentences by judges, P(yes) as heat, z behind each cell."""

from __future__ import annotations

from components.calls import call_list, calls_within
from components.markup import Child, Html, join, shown, tag, visible
from components.messages import Catalogue
from components.names import named
from components.numbers import probability, two_digits
from components.scores import consequence, score_value
from components.units import heat_level
from components.verdict import verdict_badge
from pipelines.methods.slm.decision import JudgeInUse, SlmDecision
from pipelines.methods.slm.reading import Cell, Reading
from pipelines.methods.slm.scores import z_score
from pipelines.run.events import Score
from pipelines.run.view import MethodView

__all__ = ["matrix_table", "signed"]


def matrix_table(
    method: MethodView, reading: Reading, decision: SlmDecision, t: Catalogue, *, running: bool
) -> Html:
    """One row a sentence and one column a judge; on a narrow screen every row is a card.

    `decision` may rest on a part of the cells: what is still to come keeps its place.
    """
    judges = decision.judges
    names = [
        tag("span", t("slm.column.sentence")),
        *(_judge_name(judge, t) for judge in judges),
        tag("span", t("slm.column.score")),
        tag("span", t("slm.column.verdict")),
    ]
    head = tag("tr", (tag("th", n, scope="col", role="columnheader") for n in names), role="row")
    rows = [
        _row(number, method, reading, decision, t, running=running)
        for number in range(len(decision.sentences))
    ]
    whole = _whole_row(method, reading, decision, t, running=running)
    caption = t("slm.matrix.caption", sentences=len(decision.sentences), judges=len(judges))
    return tag(
        "table",
        tag("caption", caption, class_="vs-sr"),
        tag("thead", head, role="rowgroup"),
        tag("tbody", rows, whole, role="rowgroup"),
        class_="vs-table vs-slm-matrix",
        role="table",
        id="slm-matrix",
        data_key="slm-matrix",
    )


def signed(value: float) -> str:
    """A z with its sign, to two decimals: +1.04, −0.69, 0.00."""
    text = f"{value:+.2f}"
    return "0.00" if text in ("+0.00", "-0.00") else text.replace("-", "−")


def _judge_name(judge: JudgeInUse, t: Catalogue) -> Html:
    return tag(
        "span",
        tag("bdi", shown(judge.name)),
        tag("span", named("role", judge.role, t), class_="vs-note vs-slm-role"),
    )


def _row(
    number: int,
    method: MethodView,
    reading: Reading,
    decision: SlmDecision,
    t: Catalogue,
    *,
    running: bool,
) -> Html:
    sentence, score = decision.sentences[number], decision.sentence_scores[number]
    cells = [reading.cell(judge.role, number) for judge in decision.judges]
    complete = all(cell is not None for cell in cells)
    text = tag(
        "span",
        tag("span", number + 1, class_="vs-rank vs-num"),
        tag("bdi", shown(sentence.text), class_="vs-slm-sentence", dir="auto"),
    )
    key = f"slm-{number}"
    settled: list[Child] = (
        [_average(score, decision.z[number], t), verdict_badge(decision.verdicts[number], t)]
        if complete
        else [_pending(running=running), _pending(running=running)]
    )
    judged = (
        _cell(method, cell, judge, f"{key}-{judge.role}", t, running=running)
        for cell, judge in zip(cells, decision.judges, strict=True)
    )
    return _table_row(key, [text, *judged, *settled], decision, t, busy=running and not complete)


def _whole_row(
    method: MethodView,
    reading: Reading,
    decision: SlmDecision,
    t: Catalogue,
    *,
    running: bool,
) -> Html | None:
    cells = [reading.cell(judge.role, None) for judge in decision.judges]
    if not any(cells):
        return None
    baseline = next((score for score in decision.response if score.name == "slm_whole"), None)
    content: list[Child] = [
        tag("span", t("slm.whole"), class_="vs-slm-sentence"),
        *(
            _cell(method, cell, judge, f"slm-whole-{judge.role}", t, running=running)
            for cell, judge in zip(cells, decision.judges, strict=True)
        ),
        tag("span", score_value(baseline), class_="vs-num") if baseline else None,
        tag("span", t("slm.baseline"), class_="vs-note"),
    ]
    return _table_row("slm-whole", content, decision, t, css="vs-slm-whole")


def _table_row(
    key: str,
    cells: list[Child],
    decision: SlmDecision,
    t: Catalogue,
    *,
    css: str = "",
    busy: bool = False,
) -> Html:
    names = [
        t("slm.column.sentence"),
        *(visible(judge.name) for judge in decision.judges),
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


def _cell(
    method: MethodView,
    cell: Cell | None,
    judge: JudgeInUse,
    key: str,
    t: Catalogue,
    *,
    running: bool,
) -> Html:
    """P(yes) on its heat; opened, everything the judge said and what was made of it."""
    if cell is None:
        return _pending(running=running)
    z = None if cell.p_yes is None else z_score(cell.p_yes, judge.scale)
    value, words = _in_words(cell, z, t)
    level = heat_level("probability", cell.p_yes)
    css = "vs-hx" if level is None else f"vs-h{level}"
    return tag(
        "details",
        tag(
            "summary",
            tag("span", value, class_=f"vs-slm-p vs-num {css}", aria_hidden="true"),
            tag("span", words, class_="vs-sr"),
            tag("span", t("slm.text"), class_="vs-chip") if cell.source == "text" else None,
            title=words,
        ),
        tag("p", words, class_="vs-note vs-num"),
        tag("p", t("slm.z.formula"), class_="vs-formula") if z is not None else None,
        tag(
            "p",
            t(
                "slm.z.inputs",
                p=probability(cell.p_yes),
                mu=two_digits(judge.scale.mu),
                sigma=two_digits(judge.scale.sigma),
            ),
            class_="vs-note vs-num",
        )
        if z is not None
        else None,
        tag("p", shown(cell.error.message), class_="vs-note") if cell.error else None,
        call_list(calls_within(method, (cell.span,)), t, id=f"{key}-calls"),
        class_="vs-details vs-slm-cell",
        data_key=key,
    )


def _in_words(cell: Cell, z: float | None, t: Catalogue) -> tuple[str, str]:
    """What stands in the cell, and the same in a sentence."""
    if cell.error is not None:
        code = cell.error.code if t.has(f"error.{cell.error.code}.title") else "unexpected"
        return "✗", t("slm.cell.failed", reason=t(f"error.{code}.title"))
    if z is None:
        return "?", t("slm.cell.neither", other=probability(cell.other_mass))
    if cell.source == "text":
        said = t("slm.cell.yes" if cell.p_yes else "slm.cell.no")
        return said, t("slm.cell.text", said=said, z=signed(z))
    return probability(cell.p_yes), t(
        "slm.cell.words",
        p=probability(cell.p_yes),
        no=probability(cell.p_no),
        other=probability(cell.other_mass),
        z=signed(z),
    )


def _average(score: Score, z: tuple[float | None, ...], t: Catalogue) -> Html:
    known = [value for value in z if value is not None]
    listed = t("list.separator").join(map(signed, known))
    return tag(
        "details",
        tag("summary", score_value(score), class_="vs-num", title=consequence(score, t)),
        tag("p", consequence(score, t), class_="vs-note"),
        tag("p", t(f"formula.{score.formula}"), class_="vs-formula"),
        tag("p", join(["z: ", listed]), class_="vs-note vs-num") if known else None,
        class_="vs-details vs-slm-cell",
    )

"""How far the people of a session agree: coefficients with thresholds, pairs, labels, spans."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

import numpy as np
import plotly.graph_objects as go

from components.annotate.sessions import (
    RELIABILITY_SIGNS,
    RELIABLE,
    TENTATIVE,
    Reliability,
    reliability_level,
)
from components.base.elements import Column, TableRow, fold, notice, sign, table
from components.base.html import Child, Html, shown, tag, visible
from components.base.theme import Theme, plotly_template, tokens
from components.base.words import (
    Catalogue,
    comparison,
    integer,
    meaning,
    means_list,
    named,
    what_it_means,
)
from components.evaluate.table import confusion_table, estimate_text, number
from pipelines.annotation.agreement import PersonAgreement, SpanAgreement, TaskAgreement
from pipelines.annotation.types import Task
from pipelines.evaluation.statistics.agreement import Coefficient, PairAgreement
from pipelines.evaluation.statistics.estimates import Estimate, Floats

_COLOURS: dict[Reliability, str] = {
    "unreliable": "vs-verdict-contradicted",
    "tentative": "vs-verdict-not-enough",
    "reliable": "vs-verdict-supported",
}
_PAIRS = 30
"""Pairs of people that are listed, those who agree least."""


class CoefficientRow(NamedTuple):
    """A line of a table of coefficients; `levels` draws the thresholds of alpha behind it.

    `means` is the entry of the glossary that explains it; `help` replaces that sentence.
    """

    key: str
    name: str
    help: str
    value: Coefficient
    levels: bool = False
    undefined: str = ""
    means: str = ""


def verdict_word(task: Task, verdict: str, t: Catalogue) -> str:
    """Return a verdict of a task in words."""
    return t(f"annotate.verdict.{task}.{verdict}")


def agreement_view(found: TaskAgreement, t: Catalogue) -> str:
    """Return the coefficients of a task, each with its interval, its items and what it
    allows to say.
    """
    overall = found.overall
    n = overall.shared
    low, high = overall.raw_ends or (None, None)
    why = "" if overall.raw is not None else "no_items"
    raw = Coefficient(value=overall.raw, low=low, high=high, n=n, why=why)
    lines = [
        _line("alpha", overall.alpha, t, levels=True),
        _line("raw", raw, t),
    ]
    if overall.cohen is not None:
        lines.append(_line("cohen", overall.cohen, t))
    lines.append(_line("fleiss", overall.fleiss, t))
    counts = t(
        "annotate.results.counts",
        people=integer(overall.people),
        items=integer(overall.items),
        shared=integer(n),
    )
    return tag(
        "div.vs-run.vs-stack.vs-coefficients",
        tag("p.vs-note", counts),
        tag("p.vs-note", t("annotate.results.spans.any")) if found.task == "span" else None,
        level_note(overall.alpha, t),
        coefficient_table(t("annotate.results.agreement"), lines, t),
        tag("p.vs-note", t("annotate.results.legend")),
        key="agreement",
    )


def level_note(alpha: Coefficient, t: Catalogue) -> Html:
    """Return what follows from an alpha, in a sentence; or why there is none."""
    if alpha.value is None:
        return notice(t(f"annotate.results.why.{alpha.why or 'no_items'}"), "level-none")
    level = reliability_level(alpha.value)
    limit = TENTATIVE if level == "unreliable" else RELIABLE
    value, compared, threshold = comparison(alpha.value, limit)
    said = t(f"annotate.results.level.{level}", value=value, threshold=threshold, sign=compared)
    reached = RELIABLE if level == "reliable" else TENTATIVE
    if level != "unreliable" and alpha.low is not None and alpha.low < reached:
        low = number(alpha.low, 2)
        said = f"{said} {t('annotate.results.level.unsure', low=low, threshold=f'{reached:g}')}"
    badge = tag(
        f"span.vs-badge.{_COLOURS[level]}",
        sign(RELIABILITY_SIGNS[level]),
        tag("span", t(f"annotate.results.level.{level}.word")),
    )
    return tag("p.vs-coefficient-level", badge, " ", tag("span", said))


def coefficient_table(
    caption: str, lines: Iterable[CoefficientRow], t: Catalogue, *, head: str = ""
) -> Html:
    """Return coefficients, each with its interval on a scale from 0 to 1; `head` is over
    their names.
    """
    columns = [
        Column(head or t("annotate.results.coefficient")),
        Column(t("annotate.results.value"), "vs-num"),
        Column(t("annotate.results.scale"), "vs-coefficient-scale"),
        Column(t("annotate.results.items"), "vs-num"),
    ]
    rows = (
        TableRow(
            f"coefficient-{line.key}",
            [
                tag(
                    "span.vs-estimate-cell",
                    tag("span", line.name),
                    tag("span.vs-note", line.help or meaning(line.means, t)),
                    what_it_means(line.means, t, brief=True),
                ),
                coefficient_cell(line.value, t, line.undefined),
                scale(line.value, levels=line.levels),
                integer(line.value.n),
            ],
        )
        for line in lines
    )
    return table(caption, columns, rows, row_names=True, css="vs-coefficient-table")


def coefficient_cell(found: Coefficient, t: Catalogue, undefined: str = "") -> Html:
    """Return the value with its interval, or why one of them is missing."""
    text = estimate_text(_estimate(found), t)
    why = undefined or (t(f"annotate.results.why.{found.why}") if found.why else "")
    return tag(
        "span.vs-estimate-cell",
        tag("span.vs-estimate", text),
        tag("span.vs-note", why) if why else None,
    )


def scale(found: Coefficient | Estimate, *, levels: bool = False) -> Html | None:
    """Return a value and its interval on a scale from 0 to 1; what is below 0 stands at its
    left end.

    With `levels` the parts from 0.667 and from 0.80 on have different backgrounds.
    """
    if found.value is None:
        return None
    marks: list[Html] = []
    if levels:
        marks.append(tag("span.vs-scale-tentative"))
        marks.append(tag("span.vs-scale-reliable"))
    if found.low is not None and found.high is not None:
        low, high = _share(found.low), _share(found.high)
        marks.append(
            tag("span.vs-scale-range", style=f"left:{low:.2f}%;width:{max(0.5, high - low):.2f}%")
        )
    below = ".vs-scale-below" if found.value < 0 else ""
    marks.append(tag(f"span.vs-scale-point{below}", style=f"left:{_share(found.value):.2f}%"))
    # What it shows stands beside it in numbers.
    return tag("span.vs-scale", marks, aria_hidden=True)


def labels_view(found: TaskAgreement, t: Catalogue) -> str:
    """Return the alpha of each label against all others: which of them people mean differently."""
    lines = (
        CoefficientRow(
            key=verdict,
            name=verdict_word(found.task, verdict, t),
            help="",
            value=alpha,
            levels=True,
            undefined=t("annotate.results.why.label") if alpha.why == "all_equal" else "",
        )
        for verdict, alpha in found.labels.items()
    )
    return tag(
        "div.vs-run.vs-stack",
        tag("p.vs-note", t("annotate.results.labels.help")),
        coefficient_table(
            t("annotate.results.labels"), lines, t, head=t("annotate.results.which.one")
        ),
        means_list(["alpha"], t),
        key="labels",
    )


def spans_view(found: SpanAgreement, t: Catalogue) -> str:
    """Return how far people mark the same pieces: by characters, as whole spans, by overlap,
    exactly.
    """
    lines = [
        CoefficientRow(
            "characters-alpha",
            t("annotate.results.spans.alpha"),
            "",
            found.characters,
            levels=True,
            means="spans.alpha",
        ),
        CoefficientRow(
            "gamma",
            t("annotate.results.spans.gamma"),
            "",
            found.gamma,
            means="spans.gamma",
        ),
    ]
    lines += [
        CoefficientRow(
            f"f1-{match}",
            t(f"annotate.results.spans.{match}"),
            "",
            Coefficient(value=found.f1.get(match), n=found.items, why=_f1_why(found)),
            means=f"spans.{match}",
        )
        for match in ("exact", "iou", "characters")
    ]
    return tag(
        "div.vs-run.vs-stack",
        level_note(found.characters, t),
        coefficient_table(t("annotate.results.spans"), lines, t),
        key="spans",
    )


def _f1_why(found: SpanAgreement) -> Literal["", "no_items"]:
    return "" if found.f1 else "no_items"


def reveal_view(blind: TaskAgreement, last: TaskAgreement, changed: int, t: Catalogue) -> str:
    """Return alpha before models' verdicts were shown, and alpha of the current labels."""
    lines = [
        CoefficientRow(
            which,
            t(f"annotate.results.which.{which}"),
            t(f"annotate.results.which.{which}.help"),
            found.overall.alpha,
            levels=True,
        )
        for which, found in (("blind", blind), ("last", last))
    ]
    return tag(
        "div.vs-run.vs-stack",
        tag("p.vs-note", t("annotate.results.reveal.changed", count=changed)),
        coefficient_table(t("annotate.results.reveal"), lines, t, head=t("annotate.results.which")),
        means_list(["alpha"], t),
        key="reveal",
    )


def people_view(found: Sequence[PersonAgreement], names: Mapping[int, str], t: Catalogue) -> str:
    """Return each person's agreement with the others, and that of the others without them."""
    columns = [
        Column(t("annotate.results.person")),
        Column(t("annotate.results.person.labels"), "vs-num"),
        Column(t("annotate.results.person.kappa"), "vs-num"),
        Column(t("annotate.results.person.without"), "vs-num"),
        Column(t("annotate.results.scale"), "vs-coefficient-scale"),
    ]
    rows = (
        TableRow(
            f"person-{one.person}",
            [
                tag("bdi", shown(names[one.person])),
                integer(one.labels),
                missing(t) if one.kappa is None else number(one.kappa, 2),
                coefficient_cell(one.without, t),
                scale(one.without, levels=True),
            ],
        )
        for one in found
    )
    name = t("annotate.results.people.each")
    return tag(
        "div.vs-run.vs-stack",
        tag("p.vs-note", t("annotate.results.people.help")),
        table(name, columns, rows, row_names=True, css="vs-coefficient-table"),
        means_list(["kappa", "alpha"], t),
        key="people",
    )


def pairs_view(found: TaskAgreement, names: Mapping[int, str], t: Catalogue) -> str:
    """Return every two people, those who agree least first, each with a confusion matrix
    to unfold.
    """
    pairs = [one for one in found.pairs if one.n]
    if not pairs:
        return tag("p.vs-run.vs-note", t("annotate.results.pairs.none"), key="pairs")
    pairs.sort(key=lambda one: (one.cohen.value is None, one.cohen.value or 0.0))
    words = [verdict_word(found.task, verdict, t) for verdict in found.verdicts]
    listed = (_pair(one, found.people, names, words, t) for one in pairs[:_PAIRS])
    more = len(pairs) - _PAIRS
    return tag(
        "div.vs-run.vs-stack",
        tag("p.vs-note", t("annotate.results.pairs.help")),
        tag("ul.vs-pairs", listed),
        tag("p.vs-note", t("annotate.results.pairs.more", count=more)) if more > 0 else None,
        means_list(["kappa"], t),
        key="pairs",
    )


def _pair(
    pair: PairAgreement,
    people: Sequence[int],
    names: Mapping[int, str],
    words: Sequence[str],
    t: Catalogue,
) -> Html:
    first, second = (visible(names[people[at]]) for at in (pair.first, pair.second))
    summary = tag(
        "span.vs-pair",
        tag("span.vs-strong", t("annotate.results.pair", first=first, second=second), dir="auto"),
        tag(
            "span.vs-num",
            t("annotate.results.pair.kappa", value=estimate_text(_estimate(pair.cohen), t)),
        ),
        scale(pair.cohen),
        tag("span.vs-num.vs-note", t("evaluate.n", n=integer(pair.n))),
    )
    why = t(f"annotate.results.why.{pair.cohen.why}") if pair.cohen.why else ""
    body = confusion_table(
        t("annotate.results.confusion", first=first, second=second),
        t("annotate.results.confusion.head", first=first, second=second),
        words,
        pair.confusion,
    )
    key = f"pair-{pair.first}-{pair.second}"
    return tag("li", fold(summary, tag("p.vs-note", why) if why else None, body, key=key))


def detector_name(name: str, t: Catalogue) -> str:
    """Return a detector: a method by its title, a system of an evaluation by its own name."""
    return named("method", name, t)


def _line(name: str, value: Coefficient, t: Catalogue, *, levels: bool = False) -> CoefficientRow:
    key = f"annotate.results.{name}"
    return CoefficientRow(name, t(key), "", value, levels, means=name)


def _estimate(found: Coefficient) -> Estimate:
    return Estimate(value=found.value, low=found.low, high=found.high, n=found.n, groups=found.n)


def _share(value: float) -> float:
    return 100 * min(1.0, max(0.0, value))


def decide_bar(left: int, decided: int, saved: int | None, t: Catalogue) -> str:
    """Return how many items are to be decided, and were; `saved` is the one that just was."""
    total = left + decided
    words = [
        t("annotate.decide.left", count=left),
        t("annotate.decide.decided", count=decided),
    ]
    if saved is not None:
        words.append(t("annotate.decide.saved", number=saved + 1))
    bar = tag(
        "progress",
        max=1,
        value=f"{decided / total:.4f}" if total else "0",
        aria_label=t("annotate.decide.title"),
    )
    return tag(
        "div.vs-run.vs-evaluation-progress",
        bar if total else None,
        tag("p.vs-note", " · ".join(words), role="status"),
        key="decide",
    )


def silent_comments(said: Iterable[tuple[str, str]], t: Catalogue) -> str:
    """Return what people wrote about an item that they gave no label of."""
    lines = (
        tag(
            "li",
            tag("span.vs-strong", shown(name)),
            t("label.separator"),
            tag("span", shown(text), dir="auto"),
        )
        for name, text in said
    )
    return tag(
        "div.vs-run",
        tag("h3.vs-label", t("annotate.decide.comments")),
        tag("ul.vs-silent", lines),
        key="silent",
    )


def missing(t: Catalogue) -> Child:
    """Return a dash, with a text for screen readers."""
    return tag(
        "span",
        tag("span", "–", aria_hidden=True),
        tag("span.vs-sr", t("papers.not_given")),
    )


# Plotly figures of a session's labels beside those of evaluations: how scores are spread.

_BINS = 20
_LOOKS = ((0.0, "right", "supported", ""), (1.0, "wrong", "contradicted", "/"))


def distribution_figure(
    doubts: Floats,
    labels: Floats,
    t: Catalogue,
    theme: Theme = "light",
    *,
    cut: float | None = None,
    whole: bool = False,
) -> go.Figure:
    """Return how often a detector had each doubt, on items that people found right and wrong.

    Both arguments are [items], NaN where one is missing. Shares are of each kind of items, so that
    a rare kind is seen as well; wrong items are hatched. `cut` is the fitted threshold in the
    doubt. With `whole` the axis goes from 0 to 1.
    """
    colour, figure = tokens(theme), go.Figure()
    known = np.isfinite(doubts) & np.isfinite(labels)
    values, truth = doubts[known], labels[known]
    if whole or not values.size:
        low, high = 0.0, 1.0
    else:
        low, high = float(values.min()), float(values.max())
        high = high if high > low else low + 1.0
    edges = np.linspace(low, high, _BINS + 1)
    for kind, name, shade, hatch in _LOOKS:
        own = values[truth == kind]
        counts = np.histogram(own, edges)[0]
        shares = counts / len(own) if len(own) else np.zeros(_BINS)
        figure.add_bar(
            x=((edges[:-1] + edges[1:]) / 2).tolist(),
            y=shares.tolist(),
            width=(edges[1] - edges[0]) * 0.98,
            offset=None,
            customdata=[
                [f"{begin:.3g}", f"{end:.3g}", integer(int(count)), integer(len(own))]
                for begin, end, count in zip(edges[:-1], edges[1:], counts, strict=True)
            ],
            hovertemplate="%{fullData.name}<br>%{customdata[0]} – %{customdata[1]}<br>"
            "%{customdata[2]} / %{customdata[3]}<extra></extra>",
            name=t(f"annotate.results.grade.{name}"),
            marker={
                "color": colour[shade],
                "opacity": 0.7,
                "pattern": {"shape": hatch, "size": 7, "solidity": 0.4},
                "line": {"width": 1, "color": colour[shade]},
            },
        )
    if cut is not None:
        figure.add_vline(
            x=cut,
            line={"color": colour["ink-3"], "width": 1.5, "dash": "dash"},
            annotation={
                "text": t("annotate.results.figure.cut", value=f"{cut:.3g}"),
                "font": {"size": 12, "color": colour["ink-2"]},
                "bgcolor": colour["surface"],
                "borderpad": 2,
            },
            annotation_position="top right",
        )
    figure.update_layout(
        template=plotly_template(theme), height=320, barmode="overlay", bargap=0.02
    )
    figure.update_xaxes(title_text=t("annotate.results.figure.doubt"), range=[low, high])
    figure.update_yaxes(title_text=t("annotate.results.figure.share"), rangemode="tozero")
    return figure

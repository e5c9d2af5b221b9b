"""A run as one file that opens anywhere: everything that its pages show, on paper too.

One function for the workbench, the public page and the command line. The file loads nothing, and
its policy lets it load nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple, Protocol

import plotly.graph_objects as go

from components.ask import ask_view, found_evidence, results
from components.base.elements import Column, TableRow, fact, fold, notice, status_badge, table
from components.base.html import Child, Html, below, join, tag, with_prefix, without_buttons
from components.base.theme import Theme
from components.base.words import Catalogue, duration, integer, method_names, named, setting_key
from components.methods.drad import drad_figures, drad_view
from components.methods.ever import ever_view
from components.methods.haarag import haarag_view
from components.methods.panel import detector_view
from components.methods.rowen import rowen_view
from components.methods.slm import slm_view
from components.page import illustration_note, run_notices, standalone
from components.prompts import wording_diffs
from components.run.ask import clock, run_status, totals
from components.run.calls import (
    CallBar,
    CallsOnce,
    call_bars,
    call_title,
    flow_diagram,
    timeline,
    writing_once,
)
from components.run.check import check_view
from components.run.compare import (
    CompareColumn,
    compare_view,
    setting_words,
    source_words,
    yes_or_no,
)
from components.run.spending import calibrations_words
from pipelines.base import product_version
from pipelines.engine.checking import is_check
from pipelines.engine.pool import Loading
from pipelines.errors import VeriscopeError
from pipelines.evaluation.results.papers import Paper, PaperColumn, PaperRow, PaperTable, paper
from pipelines.methods.registry import METHODS, get_method, method_pages
from pipelines.run.events import MethodSpec
from pipelines.run.view import RunView, StepView

# The head of a report: what was asked, of what, when, with which versions and settings.

PRODUCT = "Veriscope"


def report_head(view: RunView, t: Catalogue) -> Html:
    """Return the only first-level heading, and what has to be known before the rest is read."""
    assert view.header is not None
    told = any(method.error == view.error for method in view.methods.values())
    return tag(
        "header.vs-report-head",
        tag("p.vs-report-kind", tag("span.vs-strong", PRODUCT), " · ", t("report.kind")),
        tag("h1", view.header.spec.question, dir="auto"),
        illustration_note(view, t),
        run_notices(view, None if told else view.error, t),
        key="head",
    )


def report_facts(view: RunView, t: Catalogue, made: datetime) -> Html:
    """Return what the run was: its facts, models, versions and prompts. `made` is when the
    report is.
    """
    return tag(
        "div.vs-stack",
        tag("dl.vs-facts.vs-report-facts", _facts(view, t, made)),
        _models(view, t),
        _versions(view, t),
        _wording(view, t),
    )


def _facts(view: RunView, t: Catalogue, made: datetime) -> list[Html]:
    assert view.header is not None
    spec, header = view.header.spec, view.header
    numbers = totals(view)
    spent = [
        duration(clock(view, None), t),
        *(t(f"counter.{name}", count=integer(count)) for name, count in numbers._asdict().items()),
    ]
    names = method_names((one.name for one in spec.methods), t)
    facts: list[tuple[str, Child]] = [
        (t("report.run"), tag("code", view.run)),
        (t("report.asked"), _moment(datetime.fromtimestamp(header.created, UTC), t)),
        (t("report.made"), t("report.made_with", when=_moment(made, t), product=product())),
        (t("report.state"), status_badge(run_status(view), t)),
        (t("report.spent"), tag("span.vs-num", " · ".join(spent))),
        (t("report.methods"), names),
        (t("compare.language"), named("language", header.language, t)),
        (t("evidence.title"), source_words(spec.evidence, t)),
        (t("setting.run.seed"), tag("span.vs-num", spec.seed)),
        (t("setting.run.reproducible"), yes_or_no(spec.reproducible, t)),
    ]
    if spec.profile:
        facts.append((t("report.profile"), tag("bdi", spec.profile)))
    if spec.calibrations:
        facts.append((t("calibration.title"), calibrations_words(spec.calibrations, t)))
    if spec.answer is not None:
        facts.append((t("report.given"), tag("bdi", spec.answer.text)))
    return [fact(name, value) for name, value in facts]


def product() -> str:
    """Return the product with its version, as far as the installation tells it."""
    return f"{PRODUCT} {product_version()}".strip()


def _moment(when: datetime, t: Catalogue) -> str:
    return t("report.moment", when=f"{when.astimezone(UTC):%Y-%m-%d %H:%M}")


def _models(view: RunView, t: Catalogue) -> Html:
    assert view.header is not None
    columns = [t("report.role"), t("report.model"), t("report.kind_of_model"), t("report.address")]
    rows = (
        TableRow(
            role,
            [
                named("role", role, t),
                tag("bdi", " · ".join(filter(None, dict.fromkeys((model.name, model.model))))),
                tag("bdi", model.kind),
                tag("bdi", " · ".join(filter(None, (model.base_url, model.revision))) or "–"),
            ],
        )
        for role, model in view.header.spec.models.items()
    )
    title = t("report.models")
    return tag("div.vs-part", tag("p.vs-label", title), table(title, columns, rows))


def _versions(view: RunView, t: Catalogue) -> Html | None:
    assert view.header is not None
    header = view.header
    lists = {"report.versions": header.versions, "report.prompts": header.prompts}
    parts = (
        tag(
            "div",
            tag("p.vs-label", t(title)),
            tag(
                "dl.vs-report-versions.vs-num",
                (
                    tag("div", tag("dt", tag("bdi", name)), tag("dd", tag("code", value)))
                    for name, value in values.items()
                ),
            ),
        )
        for title, values in lists.items()
        if values
    )
    if not any(lists.values()):
        return None
    return fold(t("report.made_of"), join(parts), key="versions")


def _wording(view: RunView, t: Catalogue) -> Html | None:
    wording = wording_diffs(view, t)
    return None if wording is None else fold(t("prompts.report"), wording, key="wording")


def method_head(view: RunView, method: MethodSpec, t: Catalogue) -> Html:
    """Return what the method does, and the settings it ran with, in sentences."""
    summary = f"method.{method.name}.summary"
    return tag(
        "div.vs-stack",
        tag("p", t(summary)) if t.has(summary) else None,
        _settings(view, method, t),
        key=f"about-{method.name}",
    )


def _settings(view: RunView, method: MethodSpec, t: Catalogue) -> Html | None:
    began = view.methods.get(method.name)
    values = dict(began.settings) if began and began.settings else dict(method.settings)
    if not values:
        return None
    usual = _defaults(method.name)
    words = partial(setting_words, method.name, t=t)
    rows: list[TableRow] = []
    for field, value in values.items():
        key = setting_key(method.name, field, t)
        name = named(key.rpartition(".")[0], field, t)
        own = field in usual and usual[field] != value
        shown = tag("span.vs-strong" if own else "span", words(field, value))
        default = words(field, usual[field]) if field in usual else "–"
        rows.append(TableRow(field, [name, shown, tag("span.vs-num", default)]))
    changed = sum(field in usual and usual[field] != value for field, value in values.items())
    columns = [t("report.setting"), t("report.value"), Column(t("report.default"), "vs-note")]
    title = t("report.settings", count=len(rows))
    if changed:
        title = f"{title} · {t('report.settings.changed', count=changed)}"
    return fold(title, table(title, columns, rows), key=f"set-{method.name}")


def _defaults(name: str) -> dict[str, object]:
    if name not in METHODS:
        return {}
    try:
        return get_method(name).settings({}).model_dump(mode="json")
    except VeriscopeError:
        return {}


def contents(parts: Sequence[tuple[str, str]], t: Catalogue) -> Html:
    """Return links to the parts of the report, each an id and a title."""
    entries = (tag("li", tag("a", title, href=f"#{anchor}")) for anchor, title in parts)
    return tag(
        "nav.vs-report-contents",
        tag("h2", t("report.contents")),
        tag("ol", entries),
        aria_label=t("report.contents"),
        key="contents",
    )


def remarks(failed: Sequence[str], cut: str, t: Catalogue) -> Html | None:
    """Return what is not in the report, and why; None where everything is."""
    notes: list[Html] = []
    if failed:
        listed = t("list.separator").join(failed)
        notes.append(notice(t("report.failed", count=len(failed), list=listed), "failed"))
    if cut:
        notes.append(notice(cut, "cut"))
    return tag("div.vs-notices", notes, key="remarks") if notes else None


# A run as every front end shows it: its pages, and what draws which method on them. Pure.

_log = logging.getLogger(__name__)


class Panel(Protocol):
    """Draws a method's part of a page from the run's events, as far as the run has come.

    `view` may be a re-evaluated run: then `diverges_at` is the draft from which on only a new run
    can tell, None where everything was recorded.
    """

    def __call__(self, view: RunView, t: Catalogue, *, diverges_at: int | None = None) -> str: ...


class WholePanel(Protocol):
    """A panel below the steps of its method; these have no times where the run was re-evaluated."""

    def __call__(
        self,
        view: RunView,
        t: Catalogue,
        *,
        diverges_at: int | None = None,
        reevaluated: bool = False,
    ) -> str: ...


PANELS: dict[str, Panel] = {
    "rowen": rowen_view,
    "drad": drad_view,
    "ever": ever_view,
    "haarag": haarag_view,
    "slm": slm_view,
}
"""Methods with a view of their own."""

FIGURES: dict[str, Callable[[RunView, Catalogue, Theme], list[tuple[str, go.Figure]]]] = {
    "drad": drad_figures
}
"""Figures with their titles, which the workbench draws below a method's panel."""

PAGES: dict[str, tuple[str, ...]] = {"ask": (), **method_pages(), "compare": (), "check": ()}
"""The pages of a run, each with the methods it shows in detail; those of all methods have none."""


def page_html(
    page: str,
    view: RunView,
    t: Catalogue,
    *,
    now: float | None = None,
    loading: Sequence[Loading] = (),
) -> str:
    """Return a page of the run as far as it has come, with the settings it was run with.

    A part that cannot be drawn is replaced by a remark, and the rest is shown.
    """
    if page == "ask":
        return safely(t("nav.ask"), t, partial(ask_view, view, t, now=now, loading=loading))
    if page == "check":
        return safely(t("check.title"), t, partial(check_view, view, t))
    spec = view.header.spec if view.header else None
    asked = [method.name for method in spec.methods] if spec else []
    if page == "compare":
        columns = [CompareColumn(view, method) for method in asked]
        return safely(t("nav.compare"), t, partial(compare_view, columns, t, now=now))
    parts: list[Child] = [
        illustration_note(view, t),
        tag("h2.vs-question", spec and spec.question, dir="auto", key="question"),
    ]
    for method in PAGES[page]:
        if len(PAGES[page]) > 1:
            parts.append(tag("h2", named("method", method, t), key=f"title-{method}"))
        if method in asked:
            parts.append(safely(named("method", method, t), t, partial(panel_of(method), view, t)))
        else:
            words = t("page.not_used", method=named("method", method, t))
            parts.append(notice(words, f"not-used-{method}"))
    return tag("div.vs-run", parts, key=page)


def safely(name: str, t: Catalogue, draw: Callable[[], str]) -> str:
    """Return what `draw` draws, or the remark that the view of that name cannot be drawn.

    Why is in the log. A view may only fail by a mistake of ours, and that must not take the rest of
    the page away.
    """
    try:
        return draw()
    except Exception:
        _log.exception("The view %s cannot be drawn", name)
        return view_failed(name, t)


def view_failed(name: str, t: Catalogue) -> str:
    """Return the remark that the view of that name cannot be drawn."""
    return notice(t("page.view_failed", view=name), f"failed-{name}", role="alert")


def panel_of(method: str) -> WholePanel:
    """Return the panel of `method`: its steps, then its own view or the general one for
    detectors.
    """
    draw = PANELS.get(method) or partial(detector_view, method=method)

    def panel(
        view: RunView, t: Catalogue, *, diverges_at: int | None = None, reevaluated: bool = False
    ) -> str:
        steps = flow_diagram(method, view, t, timed=not reevaluated)
        return tag("div.vs-panel", steps, draw(view, t, diverges_at=diverges_at))

    return panel


MOST_BYTES = 5_000_000
"""How large a report may be. What is larger opens slowly on a phone, and many mailboxes refuse."""

_TEXTS = (None, 20_000, 5_000, 1_500, 400)
"""Characters of a call's text that are written at most: the next of these where it is too much."""

_LINES = 5_000
"""Calls that are listed where there is no room for their texts."""

_MEGABYTE = 1_000_000
_PART = 2
"""The level of the headings of parts."""


class ReportPart(NamedTuple):
    """A part of the report as it was drawn: its id, its title, and what stands below it.

    What is `folded` is closed until somebody opens it or a link leads there; on paper it is open.
    """

    anchor: str
    title: str
    html: str
    folded: bool = True

    def failed(self, t: Catalogue) -> bool:
        """Return whether there is only a remark that it cannot be drawn."""
        return self.html == view_failed(self.title, t)


def report_html(
    view: RunView,
    t: Catalogue,
    *,
    made: datetime | None = None,
    theme: Theme | None = None,
    most: int = MOST_BYTES,
) -> str:
    """Return the report of a run as a whole HTML document; `made` is the moment it states, None
    for now.

    `theme` None follows the reader's preference. A part that cannot be drawn is replaced by a
    remark, and the beginning names it. Where the document would have more than `most` bytes, texts
    of calls are cut, and it says how much is missing and where that is found. Raises ValueError for
    a run without its first event.
    """
    if view.header is None:
        raise ValueError("A run that has not begun has no report.")
    question, made = view.header.spec.question, made or datetime.now(UTC)
    bars = [bar for bar in call_bars(view) if not isinstance(bar.call, StepView)]
    anchors = {_number(bar): f"timeline-call-{place}" for place, bar in enumerate(bars)}
    with writing_once(CallsOnce(anchors)):
        overview, *parts = _parts(view, t, made)
    head, headless = _head(view, t)
    title = t("report.calls", count=len(bars))

    def document(calls: str, cut: str) -> str:
        every = [overview, *parts, ReportPart("report-calls", title, calls)]
        body = tag(
            "div.vs-run.vs-report",
            head,
            remarks([*headless, *(part.title for part in every if part.failed(t))], cut, t),
            # What became of the answer comes first.
            _section(overview),
            contents([(part.anchor, part.title) for part in every], t),
            map(_section, every[1:]),
            tag("footer.vs-note", t("report.end", product=product())),
        )
        return standalone(body, f"{question} · {PRODUCT}", theme, t.language, report=True)

    for longest in _TEXTS:
        once = CallsOnce(anchors, most=longest)
        with writing_once(once):
            calls = safely(title, t, partial(timeline, bars, t))
        cut = _cut(once, most, t)
        whole = document(calls, cut)
        if len(whole.encode()) <= most:
            return whole
    cut = t("report.cut.calls", size=_size(most), count=len(bars))
    if len(bars) > _LINES:
        cut += " " + t("report.cut.lines", count=integer(_LINES), total=integer(len(bars)))
    return document(safely(title, t, partial(_lines, bars, t)), cut)


def _head(view: RunView, t: Catalogue) -> tuple[str, list[str]]:
    """Return the head, and its name where it cannot be drawn: then the question is the
    heading still.
    """
    assert view.header is not None
    name = t("report.kind")
    drawn = safely(name, t, partial(report_head, view, t))
    if drawn != view_failed(name, t):
        return drawn, []
    heading = tag("h1", view.header.spec.question, dir="auto")
    return join([heading, Html(drawn)]), [name]


def _parts(view: RunView, t: Catalogue, made: datetime) -> Iterator[ReportPart]:
    """Yield everything but the calls: the overview, what the run was, each method, the comparison,
    the evidence.
    """
    assert view.header is not None
    methods = view.header.spec.methods
    yield _part("overview", t("report.overview"), partial(results, view, t), t, folded=False)
    about = partial(report_facts, view, t, made)
    yield _part("about", t("report.about"), about, t, folded=False)
    if is_check(view.header.spec):
        yield _part("check", t("check.title"), partial(check_view, view, t), t)
    for method in methods:
        title = named("method", method.name, t)
        yield _part(f"method-{method.name}", title, partial(_method, view, method, t), t)
    if len(methods) > 1:
        columns = [CompareColumn(view, method.name) for method in methods]
        draw = partial(compare_view, columns, t, headed=False)
        yield _part("compare", t("nav.compare"), draw, t)
    evidence = partial(found_evidence, view, t)
    yield _part("evidence", t("evidence.title"), evidence, t, folded=False)


def _part(
    name: str, title: str, draw: Callable[[], str], t: Catalogue, *, folded: bool = True
) -> ReportPart:
    html = safely(title, t, draw)
    if html == view_failed(title, t):
        return ReportPart(f"report-{name}", title, html, folded=False)
    # The views are pages of their own elsewhere: their ids and headings have to fit together here.
    fitted = with_prefix(below(without_buttons(html), _PART), f"{name}-")
    return ReportPart(f"report-{name}", title, fitted, folded)


def _method(view: RunView, method: MethodSpec, t: Catalogue) -> str:
    return join([method_head(view, method, t), panel_of(method.name)(view, t)])


def _section(part: ReportPart) -> Html:
    title = tag("h2", part.title, id=part.anchor)
    body: list[Child] = [title, Html(part.html)]
    if part.folded:
        body = [fold(title, Html(part.html), key=f"{part.anchor}-fold")]
    return tag("section.vs-report-part", body, aria_labelledby=part.anchor, key=part.anchor)


def _number(bar: CallBar) -> int:
    """Return the number of a call's event."""
    return -1 if isinstance(bar.call, StepView) else bar.call.seq


def _cut(once: CallsOnce, most: int, t: Catalogue) -> str:
    if not once.cut:
        return ""
    left = integer(once.left_out)
    return t("report.cut.texts", size=_size(most), count=once.cut, left=left)


def _size(most: int) -> str:
    return f"{most / _MEGABYTE:g} MB"


def _lines(bars: Sequence[CallBar], t: Catalogue) -> str:
    """Return calls in a line each, without what was sent and came back."""
    entries = (
        tag(
            "li",
            tag("span.vs-strong", named("method", bar.method, t)),
            " ",
            tag("span.vs-num", call_title(bar.call, t, step=bar.step)),
            id=f"timeline-call-{place}",
        )
        for place, bar in enumerate(bars[:_LINES])
    )
    return tag("ol.vs-calls", entries)


# What the methods' papers report: figures of `assets/papers/<method>.toml`, shown as tables.

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

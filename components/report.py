"""A run as one file that opens anywhere: everything that its pages show, on paper too.

One function for the workbench, the public page and the command line. The file loads nothing, and
its policy lets it load nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import NamedTuple

from components.ask import found_evidence, results
from components.calls import call_title
from components.calls_once import CallsOnce, writing_once
from components.check_view import check_view
from components.compare import CompareColumn, compare_view
from components.markup import Html, join, tag
from components.messages import Catalogue, integer, named
from components.page import standalone
from components.report_facts import PRODUCT, contents, method_head, product, remarks, report_head
from components.report_markup import below, with_prefix, without_buttons
from components.run_pages import panel_of, safely, view_failed
from components.theme import Theme
from components.timeline import CallBar, call_bars, timeline
from pipelines.engine.checking import is_check
from pipelines.run.spec import MethodSpec
from pipelines.run.view import RunView, StepView

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
    """A part of the report as it was drawn: its id, its title, and what stands below it."""

    anchor: str
    title: str
    html: str

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
        parts = list(_parts(view, t))
    head, headless = _head(view, t, made)
    title = t("report.calls", count=len(bars))

    def document(calls: str, cut: str) -> str:
        every = [*parts, ReportPart("report-calls", title, calls)]
        body = tag(
            "div.vs-run.vs-report",
            head,
            remarks([*headless, *(part.title for part in every if part.failed(t))], cut, t),
            contents([(part.anchor, part.title) for part in every], t),
            map(_section, every),
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


def _head(view: RunView, t: Catalogue, made: datetime) -> tuple[str, list[str]]:
    """Return the head, and its name where it cannot be drawn: then the question is the
    heading still.
    """
    assert view.header is not None
    name = t("report.kind")
    drawn = safely(name, t, partial(report_head, view, t, made))
    if drawn != view_failed(name, t):
        return drawn, []
    heading = tag("h1", view.header.spec.question, dir="auto")
    return join([heading, Html(drawn)]), [name]


def _parts(view: RunView, t: Catalogue) -> Iterator[ReportPart]:
    """Yield everything but the calls: the overview, each method, the comparison, the evidence."""
    assert view.header is not None
    methods = view.header.spec.methods
    yield _part("overview", t("report.overview"), partial(results, view, t), t)
    if is_check(view.header.spec):
        yield _part("check", t("check.title"), partial(check_view, view, t), t)
    for method in methods:
        title = named("method", method.name, t)
        yield _part(f"method-{method.name}", title, partial(_method, view, method, t), t)
    if len(methods) > 1:
        columns = [CompareColumn(view, method.name) for method in methods]
        yield _part("compare", t("nav.compare"), partial(compare_view, columns, t), t)
    yield _part("evidence", t("evidence.title"), partial(found_evidence, view, t), t)


def _part(name: str, title: str, draw: Callable[[], str], t: Catalogue) -> ReportPart:
    html = safely(title, t, draw)
    if html == view_failed(title, t):
        return ReportPart(f"report-{name}", title, html)
    # The views are pages of their own elsewhere: their ids and headings have to fit together here.
    fitted = with_prefix(below(without_buttons(html), _PART), f"{name}-")
    return ReportPart(f"report-{name}", title, fitted)


def _method(view: RunView, method: MethodSpec, t: Catalogue) -> str:
    return join([method_head(view, method, t), panel_of(method.name)(view, t)])


def _section(part: ReportPart) -> Html:
    return tag(
        "section.vs-report-part",
        tag("h2", part.title, id=part.anchor),
        Html(part.html),
        aria_labelledby=part.anchor,
        key=part.anchor,
    )


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

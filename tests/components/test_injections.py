"""No text of a run becomes part of a page, of the report or of what a terminal obeys."""

from __future__ import annotations

import io
import json
import re
from dataclasses import replace
from functools import cache
from typing import get_args

import pytest

from app.cli.runs import Terminal, describe
from app.public.api import result_of
from components.ask import run_bar
from components.base.html import safe_url
from components.base.words import Catalogue
from components.run.compare import Against, CompareColumn, changes_view, compare_view
from components.run.report import PAGES, page_html, report_html
from pipelines.run.events import Trace
from pipelines.run.view import RunView, fold
from pipelines.store.exchange import export_lines, parse_lines
from tests.components.html_rules import faults, terminal_faults
from tests.components.html_tree import read
from tests.components.imported import runs
from tests.components.injections import Injected, groups, injections

_TOGETHER = 12
"""Strings in one text, so that every field is given every string in bearable time."""


@cache
def injected(number: int) -> Injected:
    """One of the runs of every method, with the places of its texts."""
    return Injected(runs()[number])


def _first(method: str) -> int:
    """The place of the first run of a method alone."""
    asked = [[one.name for one in run.header.spec.methods] for run in runs()]
    return asked.index([method])


def pages(view: RunView, t: Catalogue) -> list[str]:
    """Every page of a run, finished or going on, each as HTML."""
    methods = [one.name for one in view.header.spec.methods] if view.header else []
    views = (view, replace(view, run="other"))
    columns = [CompareColumn(one, name) for one in views for name in methods]
    return [
        run_bar(view, t, now=0.0),
        *(
            page_html(page, view, t)
            for page, shown in PAGES.items()
            if not shown or set(shown) & set(methods)
        ),
        changes_view(view, view, t),
        *(compare_view(columns, t, against=way, now=0.0) for way in get_args(Against)),
    ]


def check(run: Injected, text: str, t: Catalogue) -> None:
    """`text` in all places of the run at once, on every page and in every other output."""
    events = parse_lines(run.lines(text))
    trace = Trace(events=events)
    view = fold(events)
    # Half-way too, with a text that is being written.
    for part in (view, fold(events[: 2 * len(events) // 3])):
        for html in pages(part, t):
            assert 'data-key="failed-' not in html
            assert not list(faults(html)), text[:80]
    assert not terminal_faults(describe(view, colour=True), colour=True)
    assert not terminal_faults(describe(view))
    out = io.StringIO()
    terminal = Terminal(out)
    for event in events:
        terminal.show(event)
    assert not terminal_faults(out.getvalue())
    lines = list(export_lines(trace))
    assert not terminal_faults("".join(lines))
    assert all(json.loads(line) for line in lines)
    assert list(export_lines(Trace(events=parse_lines(lines)))) == lines
    result_of(view, "").model_dump_json()


@pytest.fixture
def t() -> Catalogue:
    """Without the strictness of other tests: what has no words is shown by its name."""
    return Catalogue("en", strict=False)


def test_there_are_several_hundred_strings():
    assert len(set(injections())) == len(injections()) > 400


def test_a_few_texts_in_every_field_of_every_method_stay_text(t: Catalogue):
    every = groups(_TOGETHER)
    for number in (*range(0, len(runs()), 3), _first("slm")):
        check(injected(number), every[number], t)


@pytest.mark.verify
def test_every_text_in_every_field_of_every_method_stays_text(t: Catalogue):
    every = [injected(number) for number in range(len(runs()))]
    assert sum(len(run.places) for run in every) > 2000
    for text in groups(_TOGETHER):
        for run in every:
            check(run, text, t)


def test_every_address_is_safe_or_no_link():
    for text in injections():
        url = safe_url(text)
        assert url is None or re.match(r"https?:|mailto:|#", url, re.IGNORECASE)


def test_the_report_has_our_script_and_style_and_nothing_else(t: Catalogue):
    run = injected(0)
    for text in groups(40):
        view = fold(parse_lines(run.lines(text)))
        page = read(report_html(view, t))
        for name, count in (("script", 1), ("style", 1), ("title", 1), ("meta", 4), ("link", 0)):
            assert len(page.all(name)) == count
        (body,) = page.all("body")
        assert len(body.all("main")) == 1

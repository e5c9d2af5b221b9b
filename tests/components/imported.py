"""Everything that screens, reports, the terminal and the API show of a run that was imported."""

from __future__ import annotations

import asyncio
import io
import json
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import Any, get_args

from app.cli.runs import Terminal, describe
from app.public.api import result_of
from components.ask import run_bar
from components.base.words import Catalogue
from components.run.compare import Against, CompareColumn, changes_view, compare_view
from components.run.report import FIGURES, PAGES, page_html, panel_of, report_html
from pipelines.engine.estimate import past_of
from pipelines.engine.executor import left_out
from pipelines.engine.reevaluate import recorded_settings, reevaluate
from pipelines.errors import VeriscopeError
from pipelines.methods.base import Method
from pipelines.methods.registry import METHODS
from pipelines.run.events import Event, Trace
from pipelines.run.view import RunView, fold
from pipelines.store.exchange import export_lines, load_recording, parse_lines, recordings
from pipelines.store.runs import EventCounts, tally
from pipelines.store.tables import to_json
from tests.pipelines.engine.test_cut_runs import recorded

_WORLDS = (
    ("direct", 0, 0.0),
    ("rag", 0, 0.0),
    ("rowen", 2, 0.0),
    ("rowen", 13, 0.0),
    ("rowen", 28, 0.0),
    ("rowen", 15, 0.1),
    ("drad", 13, 0.0),
    ("drad", 10, 0.0),
    ("ever", 20, 0.0),
    ("ever", 13, 0.0),
    ("ever", 3, 0.1),
    ("haarag", 9, 0.1),
    ("haarag", 7, 0.0),
    ("slm", 0, 0.1),
    ("slm", 2, 0.0),
    ("rarr", 2, 0.0),
)
"""Runs of all methods that hold every kind of event and of finding: method, world, faults."""


@cache
def runs() -> tuple[Trace, ...]:
    """Short runs of every method, and a recorded one with all that only a real model leads to."""

    async def made() -> list[Trace]:
        return [await recorded((name,), seed, faults) for name, seed, faults in _WORLDS]

    with ThreadPoolExecutor(1) as elsewhere:
        # A test may have an event loop that runs.
        short = elsewhere.submit(asyncio.run, made()).result()
    real = load_recording(recordings()[-1].id)
    return (*short, _alone(real, "ever"), _alone(real, "haarag"))


def _alone(trace: Trace, method: str) -> Trace:
    """The run as if nothing but `method` had been asked for."""
    header = trace.header
    spec = header.spec.model_copy(
        update={"methods": tuple(one for one in header.spec.methods if one.name == method)}
    )
    own = [header.model_copy(update={"spec": spec}), *trace.of_method(method)]
    return Trace(
        events=tuple(event.model_copy(update={"seq": seq}) for seq, event in enumerate(own))
    )


def _pages(view: RunView) -> list[str]:
    """The pages that have something to show of a run."""
    asked = {method.name for method in view.header.spec.methods} if view.header else set[str]()
    return [page for page, methods in PAGES.items() if not methods or asked & set(methods)]


class Imported:
    """A run as it was read from a file."""

    def __init__(self, events: tuple[Event, ...]) -> None:
        self.trace = Trace(events=events)
        self.view = fold(events)

    def draw(self, language: Any = "en") -> str:
        """All there is to see of it; raises what a screen would have failed with."""
        t, view = Catalogue(language, strict=False), self.view
        parts = [run_bar(view, t, now=0.0), *(page_html(page, view, t) for page in _pages(view))]
        parts += self.columns(t)
        asked = (METHODS.get(one.name) for one in self.trace.header.spec.methods)
        for method in filter(None, asked):
            # Methods that are not there have no page of their own.
            parts += self._detail(method, t)
        parts.append(describe(view, colour=True))
        terminal = Terminal(out := io.StringIO())
        for event in self.trace.events:
            terminal.show(event)
        parts += [out.getvalue(), result_of(view, "").model_dump_json()]
        json.dumps(to_json(tally(self.trace.events, EventCounts(methods=()))))
        past_of(view)
        left_out(view)
        parts += [report_html(view, t), changes_view(view, view, t)]
        # Exported and imported again it is the same run.
        lines = list(export_lines(self.trace))
        assert list(export_lines(Trace(events=parse_lines(lines)))) == lines
        whole = "\n".join(map(str, parts))
        # A page goes on without a view that failed, which the log tells about.
        assert 'data-key="failed-' not in whole
        return whole

    def columns(self, t: Catalogue) -> list[str]:
        """The run compared with itself, in every way of comparing."""
        methods = [one.name for one in self.trace.header.spec.methods][:3]
        columns = [CompareColumn(self.view, name) for name in [*methods, *methods[:1]]]
        return [compare_view(columns, t, against=way, now=0.0) for way in get_args(Against)]

    def _detail(self, method: Method[Any], t: Catalogue) -> list[str]:
        """The method's page, as recorded and under other settings."""
        try:
            settings = recorded_settings(self.view, method)
        except VeriscopeError:
            # The page says so, and shows nothing else.
            return []
        parts: list[str] = [panel_of(method.name)(self.view, t)]
        views = [self.view]
        for changed in _moved(method, settings.model_dump()):
            again = reevaluate(self.trace, method, changed)
            parts.append(panel_of(method.name)(again.view, t, diverges_at=again.diverges_at))
            views.append(again.view)
        for view in views:
            if method.name in FIGURES:
                FIGURES[method.name](view, t, "light")
        return parts


def _moved(method: Method[Any], settings: dict[str, Any]) -> list[Any]:
    """The settings with one slider moved."""
    moved = []
    for name in method.settings_type.REPLAYABLE:
        value = settings[name]
        for other in (not value,) if isinstance(value, bool) else (0, 1, 0.5):
            try:
                moved.append(method.settings({**settings, name: other}))
            except VeriscopeError:
                continue
            break
    return moved[:2]

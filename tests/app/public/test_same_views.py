"""The workbench and the Space draw the same run from the same components, to the letter."""

from __future__ import annotations

import json

import pytest

from components.base.words import Catalogue
from components.run.report import page_html
from pipelines.engine.service import Engine
from pipelines.methods.registry import method_pages
from pipelines.run.view import fold
from pipelines.store.exchange import recordings
from tests.app.playing import load, opened

RECORDED = recordings()[0]
VIEWS = {
    "ask": ("run-view",),
    **{
        page: tuple(f"{method}-view" for method in methods)
        for page, methods in method_pages().items()
        if set(methods) <= set(RECORDED.methods)
    },
    "compare": ("compare-view",),
}
"""What the workbench calls its views of a recorded run, page by page."""


def shown_by_the_workbench(page: str, run_id: str) -> dict[str, str]:
    """The HTML of each view on a page."""
    pieces: dict[str, str] = {}
    for node in opened(page, run_id).get("bidi_component"):
        data = json.loads(node.proto.json) if node.proto.json else {}
        for name in VIEWS[page]:
            if node.proto.id.endswith(f"-{name}"):
                pieces[name] = data["html"]
    return pieces


@pytest.mark.parametrize("page", VIEWS)
def test_a_recorded_run_looks_the_same_in_both(played: Engine, page: str):
    run_id = RECORDED.id
    trace = load(played, run_id)
    ours = page_html(page, fold(trace.events), Catalogue("en"))
    theirs = shown_by_the_workbench(page, run_id)
    assert set(theirs) == set(VIEWS[page])
    for name, html in theirs.items():
        assert len(html) > 1000, name
        assert html in ours, name

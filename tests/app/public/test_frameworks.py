"""Why some features of Gradio are not used: what the installed version does with them.

docs/space.md names the reasons. Where a new version makes one of these tests fail, the reason is
gone, and the feature is to be used.
"""

from __future__ import annotations

from pathlib import Path

import gradio as gr
import httpx
from gradio import routes

from tests.app.public.conftest import Served


def test_a_deep_link_would_write_every_field_into_a_file_of_the_server():
    source = Path(routes.__file__).read_text(encoding="utf-8")
    written = source.partition("def deep_link(session_hash: str):")[2].partition("@router")[0]
    assert "for c in app.state_holder[session_hash].components" in written
    assert '/ "deep_links" / deep_link' in written
    assert 'open(directory / "state.json", "wb")' in written


def test_a_walkthrough_of_gradios_is_turned_by_hand():
    """It shows the step that is selected: nothing in it plays."""
    assert [str(one) for one in gr.Walkthrough.EVENTS] == ["change", "select"]


def test_links_and_history_of_gradios_are_closed(served: Served):
    assert served.space.page.run_history is False
    for path in ("runs", "runs/", "deep_link?session_hash=any"):
        assert httpx.get(f"{served.url}/gradio_api/{path}").status_code == 404, path

"""How a session goes on, drawn again by itself while people label."""

from __future__ import annotations

from functools import lru_cache

from app.engine import engine
from app.links import require_link
from app.parts import (
    Action,
    draw_again,
    draw_error,
    guarded,
    remembered,
    show_error,
    show_html,
    show_run,
)
from app.session import messages, owner
from components.annotation_progress import progress_view
from components.messages import Catalogue
from pipelines.annotation.leading import Lead
from pipelines.annotation.types import SessionSpec
from pipelines.annotation.watching import SessionWatch, watch_of
from pipelines.errors import VeriscopeError
from pipelines.store.annotation_lists import SessionStanding

PERIOD = 3.0
"""Seconds between two looks at whether anything is new."""

_ERRORS = "annotate-progress"


def draw_progress(lead: Lead, t: Catalogue) -> None:
    """Draw the part of the page; what is shown changes in place."""
    # Somebody else's runs cannot be opened here.
    opens_runs = lead.session.owner == owner()

    def body() -> None:
        t = messages()
        with guarded(t("annotate.part.progress"), key="progress"):
            draw_error(_ERRORS)
            try:
                require_link()
                standing = lead.store.annotations.standing(lead.session_id)
            except VeriscopeError as error:
                show_error(error, key="progress-error")
                return
            watch = watched(standing)
            spec = SessionSpec.model_validate(standing.spec)
            html = progress_view(watch, spec, t, opens_runs=opens_runs)
            show_html(html, key="session-progress", on_action=_act)

    draw_again(body, PERIOD)


def watched(standing: SessionStanding) -> SessionWatch:
    """Return what there is to see of a session that stands so; computed once for each standing."""
    return _watched(standing.id, standing.model_dump_json())


@lru_cache(maxsize=16)
def _watched(session: str, standing: str) -> SessionWatch:
    del standing
    return watch_of(engine().service.store.annotations.whole(session))


def _act(action: Action) -> None:
    """Show the run of an item that was asked for."""
    if action["action"] == "open_run" and action["value"]:
        with remembered(_ERRORS):
            show_run(action["value"])

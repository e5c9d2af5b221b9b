"""The part of the Check page that takes a file of texts: all of them checked, one after another."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import streamlit as st

from app import live
from app.budget import planned
from app.engine import PERIOD
from app.jobs import TextCheck, check_texts, checks
from app.parts import (
    Action,
    draw_again,
    draw_unfolded,
    guarded,
    redraw_whole,
    remembered,
    show_html,
)
from app.session import keys_for, messages, owner
from components.check_many import as_json_lines, as_table, many_view
from components.messages import Catalogue, integer
from pipelines.engine.asking import RunRequest
from pipelines.engine.checking import TextToCheck
from pipelines.errors import VeriscopeError
from pipelines.evaluation.given_texts import NamedText, texts_of

MAX_TEXTS = 100
"""Texts of one file; more are checked on the command line."""

_FILE, _OPEN = "check.file", "check.many.form"
_FORMS = ["csv", "tsv", "json", "jsonl", "txt"]
_MEGABYTES = 4

RequestOf = Callable[[TextToCheck], RunRequest]
"""Returns what is asked for to check a text by what is chosen on the page. Raises VeriscopeError.
"""


def draw_file(t: Catalogue, request_of: RequestOf) -> None:
    """Draw the file, the button, and what has come of the texts so far."""
    job = checks.get(owner())
    st.session_state.setdefault(_OPEN, job is not None and job.going_on)
    part = st.expander(t("check.many"), key=_OPEN, on_change="rerun")
    draw_unfolded(part, partial(_part, t, request_of))


def _part(t: Catalogue, request_of: RequestOf) -> None:
    job = checks.get(owner())
    busy = job is not None and job.going_on
    file = st.file_uploader(
        t("check.many.file"),
        type=_FORMS,
        key=_FILE,
        max_upload_size=_MEGABYTES,
        help=t("check.many.help", most=integer(MAX_TEXTS)),
    )
    st.button(
        t("check.many.run"),
        key="check.many.run",
        disabled=file is None or busy,
        on_click=_begin,
        args=(request_of,),
    )
    if job is not None:
        draw_again(partial(_draw, busy), PERIOD if busy else None)


def _begin(request_of: RequestOf) -> None:
    file = st.session_state.get(_FILE)
    if file is None:
        return
    with remembered("check"), TemporaryDirectory() as folder:
        # The name is a visitor's: only what it ends in is used for a file.
        path = Path(folder) / f"texts{Path(file.name).suffix.lower()}"
        path.write_bytes(file.getvalue())
        asked = [_asked(entry, request_of) for entry in texts_of(path, most=MAX_TEXTS)]
        keys: dict[str, str] = {}
        for one in asked:
            keys.update(keys_for(one.spec) if one.spec is not None else {})
        name = Path(file.name).stem.strip()[:30] or "texts"
        check_texts(name, asked, keys, owner())


def _asked(entry: NamedText, request_of: RequestOf) -> TextCheck:
    try:
        plan = planned(request_of(entry.given))
        return TextCheck(entry.id, entry.given.text, plan.spec, plan.budget)
    except VeriscopeError as error:
        return TextCheck(entry.id, entry.given.text, error=error)


def _draw(was_busy: bool) -> None:
    """Draw, from a fragment, how far it is, and when it is over the files that hold everything."""
    t, job = messages(), checks.get(owner())
    if job is None:
        return
    if was_busy and not job.going_on:
        st.rerun()
    name, total, outcomes = job.progress
    with guarded(t("check.many"), key="check-many"):
        show_html(many_view(outcomes, total, t), key="check-many", on_action=_open)
    with st.container(horizontal=True, key="check-many-buttons"):
        if job.going_on:
            st.button(t("action.stop"), key="check.many.stop", on_click=_stop)
            return
        for form, make in (("csv", as_table), ("jsonl", as_json_lines)):
            st.download_button(
                t(f"check.many.{form}"),
                data=partial(make, outcomes),
                file_name=f"checked-{name}.{form}",
                mime="text/csv" if form == "csv" else "application/jsonl",
                key=f"check-many-{form}",
                on_click="ignore",
            )


def _stop() -> None:
    with remembered("check"):
        if (job := checks.get(owner())) is not None:
            job.stop()


def _open(action: Action) -> None:
    if action["action"] == "open_run" and action["value"]:
        with remembered("check"):
            live.open_run(action["value"])
        redraw_whole()

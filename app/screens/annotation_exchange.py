"""Carrying a session, or its labels, to other programs and back."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import streamlit as st

from app.engine import engine
from app.links import link_check, require_link
from app.parts import draw_error, remembered, show_html
from app.screens.annotation_items import decoded
from app.screens.annotation_place import open_session
from app.session import messages, owner
from components.elements import notice
from components.messages import Catalogue, integer
from pipelines.annotation.benchmark_formats import (
    export_precomputed_scores,
    export_ragtruth,
    export_ragtruth_sources,
)
from pipelines.annotation.exchange import export_session, import_session
from pipelines.annotation.formats import export_csv, export_label_studio
from pipelines.annotation.leading import Lead
from pipelines.annotation.sources import read_labels
from pipelines.annotation.types import TASKS, Task

_ERRORS = "annotate-exchange"
_UPLOADS = "_annotate.imports"
_SAID = "_annotate.imported"
_MEGABYTES = 64
_LABELS = ("json", "jsonl", "csv")
"""Files that hold labels of items, by their endings."""


def draw_exports(lead: Lead, t: Catalogue) -> None:
    """Draw a button for each form."""
    standing = lead.store.annotations.standing(lead.session_id)
    tasks: list[Task] = [*filter(standing.tasks.__contains__, TASKS)]
    st.caption(t("annotate.export.note"))
    forms: list[tuple[str, str, str, Callable[[], str]]] = [
        ("jsonl", "jsonl", "application/jsonl", partial(_joined, export_session, lead)),
        ("csv", "csv", "text/csv", partial(export_csv, lead)),
        ("label_studio", "json", "application/json", partial(export_label_studio, lead)),
    ]
    if "span" in tasks:
        for name, make in (
            ("ragtruth", export_ragtruth),
            ("ragtruth_sources", export_ragtruth_sources),
        ):
            forms.append((name, "jsonl", "application/jsonl", partial(_joined, make, lead)))
    with st.container(horizontal=True, key="annotate-exports"):
        for name, ending, mime, export in forms:
            words = t(f"annotate.export.{name}")
            meaning = t(f"annotate.export.{name}.help")
            _button(lead, name, ending, mime, export, words, meaning)
        for task in tasks:
            words = t("annotate.export.inspect", task=t(f"annotate.task.{task}"))
            export = partial(_scores, lead, task)
            meaning = t("annotate.export.inspect.help")
            name = f"inspect-{task}"
            _button(lead, name, "jsonl", "application/jsonl", export, words, meaning)


def _button(
    lead: Lead,
    name: str,
    ending: str,
    mime: str,
    export: Callable[[], str],
    words: str,
    meaning: str,
) -> None:
    st.download_button(
        words,
        # The file is made when it is asked for, which may be long after the page was drawn.
        data=partial(_checked, link_check(), export),
        file_name=f"veriscope-session-{lead.session_id[:8]}-{name}.{ending}",
        mime=mime,
        key=f"annotate.export.{name}",
        help=meaning,
        on_click="ignore",
    )


def _checked(check: Callable[[], object], export: Callable[[], str]) -> str:
    check()
    return export()


def _joined(export: Callable[[Lead], Any], lead: Lead) -> str:
    return "".join(export(lead))


def _scores(lead: Lead, task: Task) -> str:
    return "".join(export_precomputed_scores(lead, task))


def draw_import(lead: Lead, t: Catalogue) -> None:
    """Draw the import of labels from a file, as those of people who are imported."""
    st.caption(t("annotate.import.note"))
    place = f"annotate.import.labels.{lead.session_id}"
    _uploader(place, t("annotate.import.labels"), partial(_import_labels, lead, place), *_LABELS)
    draw_error(_ERRORS)
    if said := st.session_state.pop(_SAID, ""):
        show_html(notice(said, "imported", role="status"), key="annotate-imported")


def draw_import_session(t: Catalogue) -> None:
    """Draw the import of a whole session that was exported here, taken over as it is."""
    st.caption(t("annotate.import.session.note"))
    place = "annotate.import.session"
    _uploader(place, t("annotate.import.session"), partial(_import_session, place), "jsonl")
    draw_error(_ERRORS)


def _uploader(place: str, words: str, take: Callable[[], None], *kinds: str) -> None:
    st.file_uploader(
        words,
        type=list(kinds),
        key=f"{place}.{st.session_state.get(_UPLOADS, 0)}",
        on_change=take,
        max_upload_size=_MEGABYTES,
    )


def _taken(place: str) -> tuple[str, str] | None:
    """Return the name and the text of what was uploaded; the next file has an uploader of
    its own.
    """
    number = st.session_state.get(_UPLOADS, 0)
    upload: Any = st.session_state.get(f"{place}.{number}")
    if upload is None:
        return None
    st.session_state[_UPLOADS] = number + 1
    return upload.name, decoded(upload.getvalue())


def _import_labels(lead: Lead, place: str) -> None:
    with remembered(_ERRORS):
        file = _taken(place)
        if file is None:
            return
        t = messages()
        found = read_labels(*file)
        require_link()
        new = sum(lead.import_labels(name, labels) for name, labels in found.items())
        known = {item.key for item in lead.items()}
        keys = {one.key for labels in found.values() for one in labels}
        st.session_state[_SAID] = t(
            "annotate.import.done",
            count=integer(new),
            people=integer(len(found)),
            unknown=integer(len(keys - known)),
        )


def _import_session(place: str) -> None:
    with remembered(_ERRORS):
        file = _taken(place)
        if file is None:
            return
        store = engine().service.store
        lead = import_session(store, owner(), file[1].split("\n"))
        open_session(lead.session_id)

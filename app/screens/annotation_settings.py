"""The settings of a session: guidelines, overlap, who may join, its items, its end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import streamlit as st

from app.links import require_link
from app.parts import (
    delete_button,
    draw_error,
    draw_unfolded,
    redraw_whole,
    remembered,
    section_title,
    show_html,
)
from app.screens.annotation_exchange import draw_exports, draw_import
from app.screens.annotation_form import chosen_rules, draw_rules, edit_guidelines
from app.screens.annotation_gold import draw_gold
from app.screens.annotation_items import ItemSelection, draw_items, forget_items
from app.screens.annotation_place import close_session
from app.screens.run_row import local_moment
from app.session import owner
from components.annotation import size_view
from components.elements import notice
from components.messages import Catalogue, integer
from pipelines.annotation.leading import Lead
from pipelines.annotation.types import MOST_OVERLAP, TASKS, Task

_ERRORS = "annotate-settings"
_SAID = "_annotate.said"
_KEPT: Any = {"persist_state": "session"}


def draw_settings(lead: Lead, t: Catalogue) -> None:
    """Draw the part of the page."""
    draw_error(_ERRORS)
    _draw_said(lead)
    section_title(t("annotate.guidelines"))
    _guidelines(lead, t)
    section_title(t("annotate.settings.work"))
    _overlap(lead, t)
    folds = {
        "rules": _rules,
        "gold": draw_gold,
        "add": _add,
        "import": draw_import,
    }
    for name, draw in folds.items():
        fold = st.expander(
            t(f"annotate.settings.{name}"),
            key=f"annotate.{name}.{lead.session_id}",
            on_change="rerun",
        )
        draw_unfolded(fold, partial(draw, lead, t))
    section_title(t("annotate.settings.export"))
    draw_exports(lead, t)
    section_title(t("annotate.settings.end"))
    _end(lead, t)


@contextmanager
def _done(lead: Lead, words: str = "") -> Iterator[None]:
    """Tell on the page what is done inside, until something else is done. Called from a
    callback.
    """
    st.session_state.pop(_SAID, None)
    with remembered(_ERRORS):
        yield
        if words:
            st.session_state[_SAID] = lead.session_id, words


def forget_said() -> None:
    """Remove the message about the last change of the settings."""
    st.session_state.pop(_SAID, None)


def _draw_said(lead: Lead) -> None:
    """Draw what was done last."""
    session, words = st.session_state.get(_SAID, ("", ""))
    if session == lead.session_id:
        show_html(notice(words, "said", role="status"), key="annotate-said")


def _guidelines(lead: Lead, t: Catalogue) -> None:
    versions = lead.store.annotations.guidelines(lead.session_id)
    newest = versions[-1]
    st.caption(t("annotate.guidelines.change.note", version=newest.version))
    key = f"annotate.edit.{lead.session_id}.{newest.version}"
    if key not in st.session_state:
        st.session_state[key] = newest.text
    text = edit_guidelines(key, t)
    st.button(
        t("annotate.guidelines.save", version=newest.version + 1),
        key="annotate.guidelines.save",
        disabled=text == newest.text,
        on_click=_save_guidelines,
        args=(lead, text, t("annotate.guidelines.saved", version=newest.version + 1)),
    )
    if len(versions) > 1:
        fold = st.expander(
            t("annotate.guidelines.earlier", count=len(versions) - 1),
            key=f"annotate.versions.{lead.session_id}",
            on_change="rerun",
        )
        draw_unfolded(fold, partial(_versions, lead, t))


def _versions(lead: Lead, t: Catalogue) -> None:
    earlier = lead.store.annotations.guidelines(lead.session_id)[:-1]
    chosen = st.selectbox(
        t("annotate.guidelines.which"),
        list(reversed(earlier)),
        key=f"annotate.version.{lead.session_id}",
        format_func=lambda one: t(
            "annotate.guidelines.of", version=one.version, when=local_moment(one.created)
        ),
    )
    with st.container(border=True, key="card-guidelines-version"):
        st.markdown(chosen.text or t("annotate.guidelines.none"))


def _save_guidelines(lead: Lead, text: str, said: str) -> None:
    with _done(lead, said):
        require_link()
        lead.set_guidelines(text)


def _overlap(lead: Lead, t: Catalogue) -> None:
    now = lead.session.overlap
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    with left:
        overlap = int(
            st.number_input(
                t("annotate.overlap"),
                min_value=1,
                max_value=MOST_OVERLAP,
                value=now,
                key=f"annotate.overlap.{lead.session_id}.{now}",
                help=t("annotate.overlap.help"),
            )
        )
    with right:
        st.button(
            t("annotate.overlap.save"),
            key="annotate.overlap.save",
            disabled=overlap == now,
            on_click=_save_overlap,
            args=(lead, overlap, t("annotate.overlap.saved", count=overlap)),
        )
    st.caption(t("annotate.overlap.change.note"))


def _save_overlap(lead: Lead, overlap: int, said: str) -> None:
    with _done(lead, said):
        require_link()
        lead.set_overlap(overlap)


def _rules(lead: Lead, t: Catalogue) -> None:
    place = f"annotate.rules.{lead.session_id}"
    spec = lead.spec
    draw_rules(place, spec, t, gold=not spec.without_gold)
    st.button(
        t("action.save"),
        key="annotate.rules.save",
        on_click=_save_rules,
        args=(lead, place, t("annotate.rules.saved")),
    )


def _save_rules(lead: Lead, place: str, said: str) -> None:
    with _done(lead, said):
        require_link()
        lead.change(**chosen_rules(place, lead.spec))


def _add(lead: Lead, t: Catalogue) -> None:
    place = f"annotate.add.{lead.session_id}"
    st.caption(t("annotate.add.note"))
    chosen = draw_items(place, t)
    if chosen is None:
        return
    counts = chosen.items.counts()
    own = lead.spec.tasks
    picked = st.pills(
        t("annotate.make.which"),
        list(counts),
        selection_mode="multi",
        default=[task for task in counts if task in own],
        format_func=lambda task: t(f"annotate.task.{task}"),
        key=f"{place}.tasks.{'-'.join(counts)}",
        **_KEPT,
    )
    tasks: list[Task] = [*filter(picked.__contains__, counts)]
    if counts:
        show_html(size_view(counts, tasks, lead.session.overlap, t), key="annotate-add-size")
    st.button(
        t("annotate.add.go"),
        key="annotate.add.go",
        disabled=not tasks,
        on_click=_add_items,
        args=(lead, place, chosen, tasks, t),
    )


def _add_items(
    lead: Lead, place: str, chosen: ItemSelection, tasks: list[Task], t: Catalogue
) -> None:
    with _done(lead):
        require_link()
        own = lead.spec.tasks
        if more := set(tasks) - set(own):
            lead.change(tasks=tuple(task for task in TASKS if task in {*own, *more}))
        count = lead.add_items(chosen.items.chosen(tasks))
        forget_items(place)
        st.session_state[place] = False
        said = t("annotate.add.done", count=integer(count))
        st.session_state[_SAID] = lead.session_id, said


def _end(lead: Lead, t: Catalogue) -> None:
    stored = lead.session
    closed = stored.closed is not None
    st.caption(t("annotate.reopen.note" if closed else "annotate.close.note"))
    with st.container(horizontal=True, key="annotate-end"):
        st.button(
            t("annotate.reopen" if closed else "annotate.close"),
            key="annotate.close",
            on_click=_close,
            args=(lead, not closed),
        )
        if stored.owner == owner():
            delete_button(stored.id, t("annotate.delete.sure"), partial(_delete, lead))


def _close(lead: Lead, closed: bool) -> None:
    with _done(lead):
        require_link()
        lead.close(closed=closed)


def _delete(lead: Lead) -> None:
    with remembered("annotate"):
        lead.store.annotations.delete(lead.session_id, owner())
        close_session()
    redraw_whole()

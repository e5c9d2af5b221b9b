"""The runs that are picked on the Runs page, and what is done with all of them at once."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import streamlit as st

from app import live
from app.engine import engine
from app.parts import delete_button, draw_unfolded, go_to, remembered
from app.session import owner
from components.compare import MOST_COMPARED
from components.messages import Catalogue
from pipelines.store import RunFilter
from pipelines.store.archive import MOST_RUNS, export_archive
from pipelines.store.labels import MAX_TAG

TO_COMPARE = "_compare.wanted"
"""Where the session keeps the runs that were picked until the Compare page takes them."""

COMPARE_VIEW = "_compare.view"
"""Where the session keeps which of its views the Compare page is to show."""

MOST_PICKED = 10_000
"""Runs that can be picked at once."""

_PICKED = "_runs.picked"
_TWO = 2


def picked_runs() -> list[str]:
    """Return what is picked, in the order of picking, without runs that are gone."""
    picked: list[str] = st.session_state.get(_PICKED, [])
    if picked:
        picked = engine().service.store.owned(picked, owner())
        st.session_state[_PICKED] = picked
    return picked


def pick_box(run_id: str, t: Catalogue, title: str) -> None:
    """Draw the box that picks a run; what is picked decides how it looks."""
    key = f"pick-{run_id}"
    st.session_state[key] = run_id in st.session_state.get(_PICKED, [])
    st.checkbox(
        t("runs.pick", title=title),
        key=key,
        label_visibility="collapsed",
        on_change=_pick,
        args=(run_id,),
    )


def draw_selection(listed: Sequence[str], found: int, where: RunFilter, t: Catalogue) -> None:
    """Draw what can be picked at once, and what is done with it. Nothing moves when a run
    is picked.
    """
    picked = picked_runs()
    with st.container(horizontal=True, vertical_alignment="center", key="runs-picking"):
        whole = bool(listed) and set(listed) <= set(picked)
        st.button(
            t("runs.pick.none_of_page" if whole else "runs.pick.page"),
            key="pick-page",
            type="tertiary",
            disabled=not listed,
            on_click=_pick_page,
            args=(tuple(listed), whole),
        )
        st.button(
            t("runs.pick.found", count=f"{min(found, MOST_PICKED):,}"),
            key="pick-found",
            type="tertiary",
            disabled=found <= len(listed),
            on_click=_pick_found,
            args=(where,),
        )
        st.button(
            t("runs.pick.clear", count=f"{len(picked):,}") if picked else t("runs.pick.nothing"),
            key="pick-clear",
            type="tertiary",
            disabled=not picked,
            on_click=_pick_none,
        )
    with st.container(horizontal=True, vertical_alignment="center", key="runs-actions"):
        _actions(picked, listed, t)


def _actions(picked: Sequence[str], listed: Sequence[str], t: Catalogue) -> None:
    count = len(picked)
    st.button(
        t("runs.compare.count", count=count) if count else t("runs.compare"),
        key="compare",
        disabled=not 1 <= count <= MOST_COMPARED,
        help=t("runs.compare.note", most=MOST_COMPARED),
        on_click=_compare,
        args=(tuple(picked), "side"),
    )
    st.button(
        t("runs.changes"),
        key="changes",
        disabled=count != _TWO,
        help=t("runs.changes.note"),
        on_click=_compare,
        args=(tuple(picked), "changes"),
    )
    st.download_button(
        t("action.export"),
        data=partial(_archive, tuple(picked), owner()),
        file_name="veriscope-runs.zip",
        mime="application/zip",
        key="export-picked",
        disabled=not 1 <= count <= MOST_RUNS,
        help=t("runs.export.many", most=MOST_RUNS),
        on_click="ignore",
    )
    tags = st.popover(t("runs.tag"), key="tag-picked", disabled=not count, on_change="rerun")
    draw_unfolded(tags, partial(_tags, tuple(picked), t))
    if count:
        elsewhere = len(set(picked) - set(listed))
        sure = t("runs.delete.sure_many", count=count)
        if elsewhere:
            sure = f"{sure} {t('runs.delete.elsewhere', count=elsewhere)}"
        delete_button("picked", sure, partial(_delete, tuple(picked)))
    else:
        st.button(t("action.delete"), key="delete-nothing", disabled=True)


def _tags(picked: Sequence[str], t: Catalogue) -> None:
    known = engine().service.store.labels.known(owner()).tags
    with st.form("tag-form", border=False):
        st.multiselect(
            t("runs.tag.add"),
            known,
            key="tag-add",
            accept_new_options=True,
            placeholder=t("runs.tag.placeholder", most=MAX_TAG),
        )
        st.multiselect(t("runs.tag.remove"), known, key="tag-remove", disabled=not known)
        st.form_submit_button(t("action.save"), on_click=_tag, args=(picked,), key="tag-save")


def _tag(picked: Sequence[str]) -> None:
    add, remove = (st.session_state.get(key) or [] for key in ("tag-add", "tag-remove"))
    with remembered("runs"):
        engine().service.store.labels.tag(picked, owner(), add=add, remove=remove)


def _archive(picked: Sequence[str], whose: str) -> bytes:
    store = engine().service.store
    return export_archive(store, store.owned(picked, whose), whose)


def _compare(runs: Sequence[str], view: str) -> None:
    st.session_state[TO_COMPARE] = list(runs)
    st.session_state[COMPARE_VIEW] = view
    go_to("compare")


def _delete(picked: Sequence[str]) -> None:
    watched = live.current()
    if watched is not None and watched.run_id in picked:
        live.close()
    with remembered("runs"):
        engine().call(engine().service.delete_many(picked, owner=owner()))


def _pick(run_id: str) -> None:
    picked: list[str] = st.session_state.get(_PICKED, [])
    others = [one for one in picked if one != run_id]
    chosen = [run_id] if st.session_state[f"pick-{run_id}"] else []
    st.session_state[_PICKED] = [*others, *chosen][:MOST_PICKED]


def _pick_page(listed: Sequence[str], whole: bool) -> None:
    picked: list[str] = st.session_state.get(_PICKED, [])
    others = [one for one in picked if one not in set(listed)]
    st.session_state[_PICKED] = others if whole else [*others, *listed][:MOST_PICKED]


def _pick_found(where: RunFilter) -> None:
    with remembered("runs"):
        st.session_state[_PICKED] = engine().service.store.ids(owner(), where, MOST_PICKED)


def _pick_none() -> None:
    st.session_state[_PICKED] = []

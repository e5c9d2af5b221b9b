"""The part of the Models page where better models are downloaded and put to use."""

from __future__ import annotations

from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from weakref import WeakKeyDictionary

import streamlit as st

from app.engine import engine
from app.parts import (
    choose_one,
    delete_button,
    draw_again,
    draw_error,
    go_to,
    redraw_whole,
    remembered,
    section_title,
    show_error,
    show_html,
)
from app.session import messages, owner
from components.catalogue import download_progress, entry_facts, missing_words, speed_words
from components.messages import Catalogue
from pipelines.engine.thread import Engine
from pipelines.errors import NotFoundError
from pipelines.models.catalogue import (
    EMBEDDER_FILE,
    CatalogueEntry,
    catalogue,
    download_named,
)
from pipelines.models.download import ACTIVE, DownloadState
from pipelines.models.fetch import missing
from pipelines.models.speed import tokens_per_second

_PERIOD = 0.5
_HARDWARE = ("processor", "gpu")

_measurements: WeakKeyDictionary[Engine, Future[float | None]] = WeakKeyDictionary()
"""How fast this machine is, measured once in a process where it was not before."""


def under_way() -> frozenset[str]:
    """Return the names of the models, and other weights, that are being downloaded."""
    downloads = engine().service.downloads
    listed = (*catalogue(), download_named(EMBEDDER_FILE))
    return frozenset(one.name for one in listed if downloads.state(one).stage in ACTIVE)


def draw_missing(t: Catalogue) -> None:
    """Draw, on another page, a line where weights of the default are missing, and the way to
    get them.
    """
    if left := missing():
        with st.container(horizontal=True, vertical_alignment="center", key="missing"):
            st.caption(missing_words(left, t))
            st.button(
                t("nav.models"),
                key="missing-open",
                type="tertiary",
                on_click=go_to,
                args=("models",),
            )


def draw_catalogue(t: Catalogue, seen: frozenset[str]) -> None:
    """Draw the models that can be downloaded, again and again while something goes on.

    `seen` is what was `under_way` before anything of the page was drawn: when one of these is
    over, all of the page is drawn again, for the model is one of those it shows then.
    """
    section_title(t("catalogue.title"))
    st.caption(t("catalogue.note"))
    measuring = not _measurement().done()

    def body() -> None:
        _entries(messages())
        if seen - under_way() or (measuring and _measurement().done()):
            st.rerun()

    draw_again(body, _PERIOD if seen or measuring else None)


def _entries(t: Catalogue) -> None:
    hardware = choose_one(
        t("catalogue.for"), _HARDWARE, "catalogue.for", lambda name: t(f"catalogue.for.{name}")
    )
    st.caption(t(f"catalogue.for.{hardware}.note"))
    draw_error("catalogue")
    _missing(t)
    for entry in catalogue():
        if entry.hardware == hardware:
            _entry(entry, t)


def _missing(t: Catalogue) -> None:
    """Draw what the default lacks, to be fetched in one press; the embedder has its
    progress here.
    """
    left = missing()
    if not left:
        return
    state = engine().service.downloads.state(embedder := download_named(EMBEDDER_FILE))
    with st.container(border=True, key="card-missing"):
        with st.container(horizontal=True, vertical_alignment="center", key="row-missing"):
            st.caption(missing_words(left, t))
            idle = [one for one in left if one.name not in under_way()]
            st.button(
                t("catalogue.missing.fetch"),
                key="missing-fetch",
                on_click=_fetch_missing,
                disabled=not idle,
            )
        if embedder in left and state.stage != "absent":
            show_html(download_progress(state, t), key="arrived-missing")
        if state.error is not None:
            show_error(state.error, key="arrived-error-missing")


def _fetch_missing() -> None:
    for one in missing():
        if isinstance(one, CatalogueEntry):
            engine().service.download(one, owner=owner())
        else:
            engine().service.downloads.start(one)
    redraw_whole()


def _entry(entry: CatalogueEntry, t: Catalogue) -> None:
    slug = entry.name.encode().hex()
    state = engine().service.downloads.state(entry)
    with st.container(border=True, key=f"card-catalogue-{slug}"):
        with st.container(
            horizontal=True, vertical_alignment="center", key=f"row-model-catalogue-{slug}"
        ):
            show_html(entry_facts(entry, _speed(entry, t), t), key=f"catalogue-{slug}")
            with st.container(horizontal=True, width="content", key=f"catalogue-buttons-{slug}"):
                _buttons(entry, state, slug, t)
        if state.stage != "absent":
            show_html(download_progress(state, t), key=f"arrived-{slug}")
        if state.error is not None:
            show_error(state.error, key=f"arrived-error-{slug}")


def _buttons(entry: CatalogueEntry, state: DownloadState, slug: str, t: Catalogue) -> None:
    def button(name: str, does: partial[None], **look: bool | str) -> None:
        st.button(t(f"catalogue.{name}"), key=f"{name}-{slug}", on_click=does, **look)  # type: ignore[arg-type]

    if state.stage in ACTIVE:
        button("pause", partial(_pause, entry))
    elif state.stage == "done":
        for role in ("main", "verifier"):
            used = _name_of(entry) is not None and _name_of(entry) == _holder(role)
            button(f"use.{role}", partial(_use, entry, role), disabled=used)
        sure = t("catalogue.delete.sure", name=entry.name)
        delete_button(f"catalogue-{slug}", sure, partial(_delete, entry))
    else:
        button("resume" if state.done else "download", partial(_start, entry))
    if state.stage in ACTIVE or (state.stage in ("paused", "failed") and state.done):
        button("cancel", partial(_delete, entry), help=t("catalogue.cancel.help"))


def _start(entry: CatalogueEntry) -> None:
    engine().service.download(entry, owner=owner())
    redraw_whole()


def _pause(entry: CatalogueEntry) -> None:
    engine().service.downloads.pause(entry)
    redraw_whole()


def _delete(entry: CatalogueEntry) -> None:
    """Delete the files, and the model that this visitor had by them."""
    with remembered("catalogue"):
        name = _name_of(entry)
        engine().service.downloads.delete(entry)
        if name is not None:
            with suppress(NotFoundError):
                engine().service.store.models.delete(owner(), name)
    redraw_whole()


def _use(entry: CatalogueEntry, role: str) -> None:
    with remembered("catalogue"):
        spec = engine().service.add_downloaded(entry, owner=owner())
        st.session_state[f"model.{role}"] = spec.name
    redraw_whole()


def _holder(role: str) -> str | None:
    """Return the name of the model that has a role."""
    return st.session_state.get(f"model.{role}")


def _name_of(entry: CatalogueEntry) -> str | None:
    """Return what this visitor calls the model; None while it is not one of theirs."""
    saved = engine().service.store.models.list(owner())
    return next(
        (spec.name for spec in saved if (spec.kind, spec.model) == ("local", entry.model)), None
    )


def _measurement() -> Future[float | None]:
    here = engine()
    if here not in _measurements:
        _measurements[here] = here.submit(here.service.measured_speed())
    return _measurements[here]


def _speed(entry: CatalogueEntry, t: Catalogue) -> str:
    """Return what is measured is this machine's processor: of a GPU it says nothing."""
    if entry.hardware == "gpu":
        return ""
    found = _measurement()
    ended = found.done() and not found.cancelled() and found.exception() is None
    rate = found.result() if ended else None
    tokens = None if rate is None else tokens_per_second(entry, rate)
    return speed_words(tokens, t, measuring=not found.done())

"""The Models page: which models there are, what they can do, and which roles they have."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from contextlib import suppress
from functools import partial
from typing import Any, NamedTuple, get_args
from weakref import WeakKeyDictionary

import streamlit as st

from app.engine import engine
from app.exposure import workbench_exposure
from app.forms import draw_field, look_of
from app.page import (
    choose_one,
    delete_button,
    draw_again,
    draw_error,
    draw_unfolded,
    go_to,
    in_rows,
    key_field,
    page_title,
    redraw_whole,
    remembered,
    section_title,
    show_error,
    show_figure,
    show_html,
)
from app.screens.setup import assumed_capabilities, model_select
from app.session import keep_key, key_for, known_models, messages, owner, saved_models, theme
from components.base.elements import notice
from components.base.words import Catalogue
from components.forms import MODEL, PRICE
from components.models import (
    download_progress,
    entry_facts,
    judge_quality,
    judge_report,
    kind_label,
    missing_words,
    model_facts,
    probe_table,
    reliability_figure,
    speed_words,
)
from components.page import loading_note
from pipelines.engine.service import Engine
from pipelines.errors import NotFoundError, VeriscopeError, failure
from pipelines.models.base import CONCESSIONS, Capabilities
from pipelines.models.catalogue import EMBEDDER_FILE, CatalogueEntry, catalogue, download_named
from pipelines.models.download import ACTIVE, DownloadState
from pipelines.models.fetch import missing
from pipelines.models.judges.hub import judge_name, split_revision
from pipelines.models.judges.hub_formats import FORMATS, parse_labels
from pipelines.models.probe import ProbeReport, probe, tokens_per_second
from pipelines.models.providers import (
    BUILT_IN,
    PROVIDERS,
    SWITCH,
    Currency,
    ModelSpec,
    Price,
    provider_of,
    why_refused,
)
from pipelines.run.events import ROLES, default_models

# The part of the Models page where better models are downloaded and put to use.

_PERIOD = 0.5
_HARDWARE = ("processor", "gpu")

_catalogue_measurements: WeakKeyDictionary[Engine, Future[float | None]] = WeakKeyDictionary()
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
    _again(_entries, seen)


def _again(draw: Callable[[Catalogue], None], seen: frozenset[str]) -> None:
    measuring = not _measurement().done()

    def body() -> None:
        draw(messages())
        if seen - under_way() or (measuring and _measurement().done()):
            st.rerun()

    draw_again(body, _PERIOD if seen or measuring else None)


def _entries(t: Catalogue) -> None:
    hardware = choose_one(
        t("catalogue.for"), _HARDWARE, "catalogue.for", lambda name: t(f"catalogue.for.{name}")
    )
    st.caption(t(f"catalogue.for.{hardware}.note"))
    for entry in catalogue():
        if entry.hardware == hardware:
            _entry(entry, t)


def _missing(t: Catalogue) -> None:
    """Draw what the default lacks, to be fetched in one press; the embedder has its
    progress here.
    """
    draw_error("catalogue")
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
        delete_button(f"catalogue-{slug}", sure, partial(_delete_download, entry))
    else:
        button("resume" if state.done else "download", partial(_start, entry))
    if state.stage in ACTIVE or (state.stage in ("paused", "failed") and state.done):
        button("cancel", partial(_delete_download, entry), help=t("catalogue.cancel.help"))


def _start(entry: CatalogueEntry) -> None:
    engine().service.download(entry, owner=owner())
    redraw_whole()


def _pause(entry: CatalogueEntry) -> None:
    engine().service.downloads.pause(entry)
    redraw_whole()


def _delete_download(entry: CatalogueEntry) -> None:
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
    if here not in _catalogue_measurements:
        _catalogue_measurements[here] = here.submit(here.service.measured_speed())
    return _catalogue_measurements[here]


def _speed(entry: CatalogueEntry, t: Catalogue) -> str:
    """Return what is measured is this machine's processor: of a GPU it says nothing."""
    if entry.hardware == "gpu":
        return ""
    found = _measurement()
    ended = found.done() and not found.cancelled() and found.exception() is None
    rate = found.result() if ended else None
    tokens = None if rate is None else tokens_per_second(entry, rate)
    return speed_words(tokens, t, measuring=not found.done())


_BUILT_IN = frozenset(spec.name for spec in BUILT_IN)
_FIELDS = ("name", "model", "address", "key")
_PRICES = ("price.read", "price.written")
_JUDGE_FIELDS: dict[str, Any] = {"format": "", "labels": "", "languages": []}
"""Fields of the form for judges, and what they hold when they are empty."""

_CHECK = "_check"
"""Seconds between two looks at a check that goes on."""

_KEPT: Any = {"persist_state": "session"}
"""Of a field of the form: what was typed is still there when the visitor comes back to the page."""


def _offered() -> list[str]:
    return [kind for kind, provider in PROVIDERS.items() if provider.offered]


class Check(NamedTuple):
    """A check of `spec`, the form's model where `is_new`; the page stays usable meanwhile."""

    spec: ModelSpec
    is_new: bool
    future: Future[ProbeReport]


def show() -> None:
    """Draw the page."""
    t = messages()
    seen = under_way()
    page_title(t("models.title"), t("models.note"))
    _again(_missing, seen)
    models = known_models()
    section_title(t("models.roles"))
    for column, role in in_rows(ROLES, 3):
        with column:
            model_select(t(f"role.{role}").capitalize(), role, models, t)
    check = _current_check()
    section_title(t("models.known"))
    saved = saved_models()
    for name, spec in models.items():
        _model(spec, check, t, mine=name in saved)
    draw_catalogue(t, seen)
    section_title(t("models.add"))
    _add(check, t)


def _model(spec: ModelSpec, check: Check | None, t: Catalogue, *, mine: bool) -> None:
    """Draw a model in the list; one that is not `mine` is the chosen profile's, and stays there."""
    slug = _slug(spec)
    with st.container(border=True, key=f"card-model-{slug}"):
        row = st.container(horizontal=True, vertical_alignment="center", key=f"row-model-{slug}")
        with row:
            facts = model_facts(spec, _capabilities(spec), t)
            show_html(facts, key=f"facts-{slug}")
            if spec.kind in PROVIDERS and PROVIDERS[spec.kind].hosted:
                placeholder = t("models.key.kept" if key_for(spec) else "models.key")
                key_field(
                    t("profiles.key", name=spec.name),
                    f"key-{slug}",
                    placeholder=placeholder,
                    label_visibility="collapsed",
                    width=260,
                    on_change=_keep_key,
                    args=(spec,),
                )
            if assumed_capabilities(spec).writes:
                st.button(
                    t("models.probe"),
                    key=f"probe-{slug}",
                    on_click=_check_saved,
                    args=(spec,),
                )
            here = {one.name for one in default_models("en").values()}
            if mine and spec.name not in _BUILT_IN | here:
                sure = t("models.delete.sure", name=spec.name)
                delete_button(slug, sure, partial(_delete, spec))
        _measurements(spec, t)
        if check is not None and check.spec.name == spec.name and not check.is_new:
            _findings(check, t)


def _capabilities(spec: ModelSpec) -> Capabilities:
    """Return what a model can probably do, with what its server turned out not to take so far."""
    can = assumed_capabilities(spec)
    learned = engine().service.pool.learned(spec, key_for(spec))
    made = tuple(one for one in CONCESSIONS if one in {*can.concessions, *learned})
    return can.model_copy(update={"concessions": made})


def _measurements(spec: ModelSpec, t: Catalogue) -> None:
    """Draw how reliable the model is as a judge, where it was measured."""
    report = judge_report(spec.name, t) if spec.name in _BUILT_IN else ""
    if not report:
        return
    fold = st.expander(t("judged.title"), key=f"measured-{_slug(spec)}", on_change="rerun")

    def draw() -> None:
        if (quality := judge_quality(spec.name, t)) is not None:
            show_html(quality, key=f"quality-{_slug(spec)}")
        show_html(report, key=f"judged-{_slug(spec)}")
        st.caption(t("judged.reliability"))
        show_figure(reliability_figure(spec.name, t, theme()), key=f"reliability-{_slug(spec)}")

    draw_unfolded(fold, draw)


def _findings(check: Check, t: Catalogue) -> None:
    if not check.future.done():
        draw_again(_wait, _PERIOD)
        return
    try:
        show_html(probe_table(check.future.result(), t), key="probe-table")
    except VeriscopeError as error:
        show_error(error, key="probe-error")


def _wait() -> None:
    check = _current_check()
    if check is None or check.future.done():
        st.rerun()
    t = messages()
    loading = [item for item in engine().service.loading() if item.name == check.spec.name]
    note = loading_note(loading, t)
    with st.container(horizontal=True, vertical_alignment="center"):
        st.text(t("probe.under_way"))
        st.button(t("action.stop"), key="probe-stop", on_click=_forget_check)
    if note:
        show_html(note, key="probe-loading")


def _add(check: Check | None, t: Catalogue) -> None:
    restricted = workbench_exposure().restricted
    with st.container(border=True, key="card-new-model"):
        if restricted:
            show_html(notice(t("models.restricted", switch=SWITCH), "restricted"), key="restricted")
        kind = choose_one(
            MODEL["kind"].title(t),
            _offered(),
            "new.kind",
            lambda kind: kind_label(kind, t),
            **_KEPT,
        )
        address = provider_of(kind).placeholder
        fixed = restricted and not provider_of(kind).any_server
        off = restricted and not provider_of(kind).hosted
        if t.has(f"models.kind.{kind}.note"):
            st.caption(t(f"models.kind.{kind}.note"))
        left, right = st.columns(2)
        with left:
            _text("name", t, placeholder="Qwen3-4B", disabled=off)
            if address:
                _text("base_url", t, "address", placeholder=address, disabled=fixed)
        with right:
            label = t.first(f"models.model.{kind}", "models.model")
            _text("model", t, label=label, disabled=off)
            if address:
                key_field(t("models.key"), "new.key", help=t("models.key.note"), **_KEPT)
        if provider_of(kind).hosted:
            _price_fields(t)
        if provider_of(kind).only_judges:
            _judge_fields(t, off=off)
        with st.container(horizontal=True):
            if not provider_of(kind).only_judges:
                st.button(t("models.probe"), key="new-probe", disabled=off, on_click=_check_new)
            st.button(
                t("action.save"), key="new-save", type="primary", disabled=off, on_click=_save
            )
        draw_error("models")
        if check is not None and check.is_new:
            _findings(check, t)


def _text(name: str, t: Catalogue, place: str = "", **look: Any) -> None:
    """Draw a field of text of the form, kept under `place`, else its name."""
    st.text_input(**look_of(MODEL[name], t, f"new.{place or name}", **look))


def _price_fields(t: Catalogue) -> None:
    fields = PRICE.fields.items()
    for column, (name, field) in zip(st.columns([2, 2, 1]), fields, strict=True):
        with column:
            draw_field(field, t, f"new.price.{name}")


def _judge_fields(t: Catalogue, *, off: bool) -> None:
    """Draw what a judge's own files may leave open: how it is read, and which languages
    it reads.
    """
    left, middle, right = st.columns(3)

    def look(name: str, place: str) -> dict[str, Any]:
        return look_of(MODEL[name], t, f"new.judge.{place}", disabled=off)

    with left:
        st.selectbox(
            options=("", *FORMATS),
            format_func=lambda kind: MODEL["judge_format"].word(kind or "auto", t),
            **look("judge_format", "format"),
        )
    with middle:
        st.text_input(
            placeholder="entailment, neutral, contradiction", **look("judge_labels", "labels")
        )
    with right:
        st.multiselect(
            options=MODEL["languages"].choices,
            format_func=lambda code: t(f"language.{code}"),
            **look("languages", "languages"),
        )


def _as_judge(spec: ModelSpec) -> ModelSpec:
    """Return the judge that the form describes; raises InvalidInputError for labels without
    meaning.
    """
    model, revision = split_revision(spec.model)
    given = {name: st.session_state.get(f"new.judge.{name}") for name in _JUDGE_FIELDS}
    return spec.model_copy(
        update={
            "name": judge_name(model) if spec.name == spec.model else spec.name,
            "model": model,
            "revision": revision,
            "judge_format": given["format"] or None,
            "judge_labels": parse_labels(given["labels"] or ""),
            "languages": tuple(given["languages"] or ()) or None,
        }
    )


def _given_price() -> Price | None:
    """Return the price in the form, None for one that was not given; raises for half a price."""
    read, written = (st.session_state.get(f"new.{name}") for name in _PRICES)
    if read is None and written is None:
        return None
    if read is None or written is None:
        raise failure("model.half_a_price")
    currency = st.session_state.get("new.price.currency") or get_args(Currency)[0]
    return Price(read=read, written=written, currency=currency)


def _described() -> ModelSpec:
    """Return the model that the form describes; raises InvalidInputError for what is missing."""
    given = {name: (st.session_state.get(f"new.{name}") or "").strip() for name in _FIELDS}
    kind = st.session_state.get("new.kind") or _offered()[0]
    if not given["model"]:
        raise failure("model.no_name")
    if given["name"] in _BUILT_IN:
        raise failure("model.bundled_name")
    hosted = provider_of(kind).hosted
    spec = ModelSpec(
        kind=kind,
        name=given["name"] or given["model"],
        model=given["model"],
        base_url=(given["address"] or None) if hosted else None,
        price=_given_price() if hosted else None,
    )
    if provider_of(kind).only_judges:
        spec = _as_judge(spec)
    if workbench_exposure().restricted and (refusal := why_refused(spec)):
        raise refusal
    return spec


def _given_key() -> str:
    """Return the key in the form; none for a kind of model that has no field for it."""
    kind = st.session_state.get("new.kind") or _offered()[0]
    return (st.session_state.get("new.key") or "").strip() if provider_of(kind).hosted else ""


def _current_check() -> Check | None:
    """Return the check that this visitor started last."""
    return st.session_state.get(_CHECK)


def _forget_check() -> None:
    """Stop a check that is under way, and delete what was found."""
    check: Check | None = st.session_state.pop(_CHECK, None)
    if check is not None:
        check.future.cancel()


def _begin_check(spec: ModelSpec, key: str | None, *, is_new: bool = False) -> None:
    """Check `spec`, as configured without what was assumed or found before."""
    plain, service, mine = spec.without_capabilities(), engine().service, owner()

    async def check() -> ProbeReport:
        report = await probe(await service.model(plain, key))
        if not is_new:
            await service.unknown.keep(spec, report, owner=mine)
        return report

    _forget_check()
    st.session_state[_CHECK] = Check(plain, is_new, engine().submit(check()))


def _check_saved(spec: ModelSpec) -> None:
    # A key may arrive together with the click, after the page was drawn.
    if st.session_state.get(f"key-{_slug(spec)}"):
        _keep_key(spec)
    _begin_check(spec, key_for(spec))


def _check_new() -> None:
    with remembered("models"):
        _begin_check(_described(), _given_key() or None, is_new=True)


def _save() -> None:
    with remembered("models"):
        spec = _described()
        check = _current_check()
        if check is not None and check.spec == spec.without_capabilities() and check.future.done():
            with suppress(VeriscopeError):
                report = check.future.result()
                spec = spec.with_capabilities(report.capabilities, report.unknown)
        spec = engine().call(engine().service.pinned(spec.to_be_checked()))
        engine().service.store.models.save(owner(), spec)
        keep_key(spec, _given_key())
        _forget_check()
        for name in _FIELDS:
            st.session_state[f"new.{name}"] = ""
        for name in _PRICES:
            st.session_state[f"new.{name}"] = None
        for name, empty in _JUDGE_FIELDS.items():
            st.session_state[f"new.judge.{name}"] = empty


def _delete(spec: ModelSpec) -> None:
    _forget_check()
    keep_key(spec, "")
    with remembered("models"):
        engine().service.store.models.delete(owner(), spec.name)


def _keep_key(spec: ModelSpec) -> None:
    keep_key(spec, (st.session_state.get(f"key-{_slug(spec)}") or "").strip())


def _slug(spec: ModelSpec) -> str:
    """Return a key for a container's class name, the same for the same model."""
    return spec.name.encode().hex()

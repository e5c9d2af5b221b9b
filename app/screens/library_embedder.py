"""The embedder of a collection: the bundled one, a sentence-transformers model, or a service."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, cast

import streamlit as st

from app.parts import draw_error, key_field, remembered, show_html
from app.session import embedder_key, keep_embedder_key
from components.elements import notice
from components.messages import Catalogue
from pipelines.retrieval.dense import default_embedder
from pipelines.retrieval.embedders import (
    ENGLISH_EMBEDDER,
    RECOMMENDED,
    EmbedderKind,
    EmbedderSpec,
)
from pipelines.store.collections import StoredCollection
from pipelines.types import Language

_ERRORS = "library-embedder"
_KINDS: tuple[EmbedderKind, ...] = ("default", "sentence_transformers", "openai", "none")
_LANGUAGES: tuple[Language, ...] = ("en", "zh")
_OTHER = ""


def draw_embedder(
    stored: StoredCollection, change: Callable[[EmbedderSpec], None], t: Catalogue
) -> None:
    """Draw the controls; `change` is given the embedder that was chosen."""
    st.caption(t("library.embedder.note"))
    draw_error(_ERRORS)
    now = stored.embedder
    place = f"library.embedder.{stored.id}"
    default = default_embedder()
    bundled = default.name if default is not None else ENGLISH_EMBEDDER
    kinds = _KINDS if now.kind in _KINDS else (now.kind, *_KINDS)
    kind: EmbedderKind = st.radio(
        t("library.embedder.kind"),
        kinds,
        index=kinds.index(now.kind),
        key=f"{place}.kind",
        format_func=lambda kind: t(f"library.embedder.{kind}", name=bundled),
        captions=[t(f"library.embedder.{kind}.help") for kind in kinds],
    )
    if kind == "sentence_transformers":
        _draw_model(now, place, t)
    if kind == "openai":
        _draw_service(now, place, t)
    if kind in ("sentence_transformers", "openai"):
        st.multiselect(
            t("library.embedder.languages"),
            _LANGUAGES,
            default=list(now.languages),
            key=f"{place}.languages",
            format_func=lambda code: t(f"library.language.{code}"),
            help=t("library.embedder.languages.help"),
        )
    if kind == now.kind == "default" and now.model == ENGLISH_EMBEDDER:
        # A collection keeps the embedder that it was made with.
        words = "english" if bundled == ENGLISH_EMBEDDER else "earlier"
        said = t(f"library.embedder.{words}", name=now.model, bundled=bundled)
        show_html(notice(said, "english"), key="embedder-english")
    st.button(
        t("library.embedder.use"),
        key=f"{place}.use",
        on_click=_use,
        args=(place, kind, change),
        help=t("library.embedder.use.help"),
    )


def _draw_model(now: EmbedderSpec, place: str, t: Catalogue) -> None:
    known = [one.model for one in RECOMMENDED]
    words = {
        one.model: t(
            "library.embedder.model.choice",
            model=one.model,
            millions=one.millions,
            languages=t("list.separator").join(t(f"library.language.{x}") for x in one.languages),
            licence=one.licence,
        )
        for one in RECOMMENDED
    }
    named = now.model if now.kind == "sentence_transformers" else known[0]
    options = [*known, _OTHER]
    chosen = st.selectbox(
        t("library.embedder.model"),
        options,
        index=options.index(named) if named in known else len(known),
        key=f"{place}.model",
        format_func=lambda model: words.get(model, t("library.embedder.model.other")),
    )
    if chosen == _OTHER:
        st.text_input(
            t("library.embedder.id"),
            value=named if named not in known else "",
            key=f"{place}.id",
            placeholder="intfloat/multilingual-e5-base",
            help=t("library.embedder.id.help"),
            max_chars=500,
        )


def _draw_service(now: EmbedderSpec, place: str, t: Catalogue) -> None:
    ours = now if now.kind == "openai" else EmbedderSpec(kind="openai")
    left, right = st.columns(2, gap="medium")
    with left:
        st.text_input(
            t("library.embedder.address"),
            value=ours.base_url or "",
            key=f"{place}.address",
            placeholder="https://api.openai.com/v1",
            help=t("library.embedder.address.help"),
            max_chars=500,
        )
    with right:
        st.text_input(
            t("library.embedder.service_model"),
            value=ours.model,
            key=f"{place}.service_model",
            placeholder="text-embedding-3-small",
            max_chars=500,
        )
    key_field(
        t("library.embedder.key"),
        f"{place}.key",
        help=t("evidence.key.note"),
        placeholder=t("models.key.kept") if embedder_key(ours) else None,
    )
    show_html(notice(t("library.embedder.sent"), "sent"), key="embedder-sent")


def _use(place: str, kind: EmbedderKind, change: Callable[[EmbedderSpec], None]) -> None:
    def said(name: str) -> str:
        return (st.session_state.get(f"{place}.{name}") or "").strip()

    with remembered(_ERRORS):
        chosen: Any = st.session_state.get(f"{place}.languages")
        languages = cast(tuple[Language, ...], tuple(chosen or ()))
        spec = EmbedderSpec(kind=kind)
        if kind == "sentence_transformers":
            spec = EmbedderSpec(kind=kind, model=said("model") or said("id"), languages=languages)
        elif kind == "openai":
            spec = EmbedderSpec(
                kind=kind,
                model=said("service_model"),
                base_url=said("address") or None,
                languages=languages,
            )
            if said("key"):
                keep_embedder_key(spec, said("key"))
        change(spec)

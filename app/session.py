"""What belongs to one visitor: who they are, their language and theme, and their keys.

Keys stay in the session's memory: they are neither stored nor recorded, and gone with the tab.
"""

from __future__ import annotations

from typing import cast

import streamlit as st

from app.owner import owner_of
from components.messages import LANGUAGES, Catalogue
from components.theme import Theme
from pipelines.run.spec import ModelSpec, RunSpec
from pipelines.store import new_owner
from pipelines.types import Language

__all__ = [
    "default_language",
    "forget_key",
    "has_search_key",
    "keep_key",
    "keep_search_key",
    "key_for",
    "keys_for",
    "language",
    "messages",
    "owner",
    "theme",
]

_OWNER = "_owner"
_KEYS = "_keys"


def owner() -> str:
    """Who this browser is. One that refuses cookies is a new visitor in every session."""
    if _OWNER not in st.session_state:
        st.session_state[_OWNER] = owner_of(st.context.cookies) or new_owner()
    return st.session_state[_OWNER]


def default_language() -> Language:
    """Chinese for a browser that asks for it, else English."""
    return "zh" if (st.context.locale or "").lower().startswith("zh") else "en"


def language() -> Language:
    """The interface's language, as chosen with the switch."""
    chosen = st.session_state.get("lang")
    return cast(Language, chosen) if chosen in LANGUAGES else default_language()


def messages() -> Catalogue:
    """The texts of the interface."""
    return Catalogue(language())


def theme() -> Theme:
    """Light or dark, as the page is shown now."""
    return "dark" if st.context.theme.type == "dark" else "light"


def keep_key(spec: ModelSpec, key: str) -> None:
    """Remember a model's key until the tab is closed; an empty one is forgotten."""
    if key:
        _keys()[_place(spec)] = key
    else:
        forget_key(spec)


def forget_key(spec: ModelSpec) -> None:
    """Forget a model's key."""
    _keys().pop(_place(spec), None)


def key_for(spec: ModelSpec) -> str | None:
    """The key of a model, if it was given one."""
    return _keys().get(_place(spec))


def keep_search_key(name: str, key: str) -> None:
    """Remember the key of a web search until the tab is closed; an empty one is forgotten."""
    if key:
        _keys()[_search(name)] = key
    else:
        _keys().pop(_search(name), None)


def has_search_key(name: str) -> bool:
    """Whether the visitor gave a key for this search of the web."""
    return _search(name) in _keys()


def keys_for(spec: RunSpec) -> dict[str, str]:
    """The keys that a run of `spec` may use, by the name of the model or search they open."""
    known = _keys()
    keys = {m.name: known[_place(m)] for m in spec.models.values() if _place(m) in known}
    evidence = spec.evidence
    # A key is meant for the search's own address: a run from elsewhere may name another.
    if evidence.base_url is None and _search(evidence.source) in known:
        # Named so that no model of the same name is sent it.
        keys[f"search:{evidence.source}"] = known[_search(evidence.source)]
    return keys


def _keys() -> dict[tuple[str, str, str], str]:
    return st.session_state.setdefault(_KEYS, {})


def _place(spec: ModelSpec) -> tuple[str, str, str]:
    """A key is meant for one address: a model saved anew with another does not inherit it."""
    return spec.kind, spec.name, spec.base_url or ""


def _search(name: str) -> tuple[str, str, str]:
    return "search", name, ""

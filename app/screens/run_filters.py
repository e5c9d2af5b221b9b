"""The controls that say which runs the Runs page lists. The address keeps what they say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from app.engine import engine
from app.session import owner
from components.forms import RUN_FILTER
from components.messages import Catalogue, named
from pipelines.store import RunFilter
from pipelines.store.filters import MAX_SEARCH

PAGE = "runs.page"
"""The key of the page number, which every other choice sets back."""

_TEXT = "runs.text"
_STARRED = "runs.starred"
_OWN_PROMPTS = "runs.own_prompts"
_SINCE = "runs.since"
_UNTIL = "runs.until"
_LISTS = ("runs.methods", "runs.models", "runs.verdicts", "runs.tags")
_FILTERS = (*_LISTS, _SINCE, _UNTIL, _STARRED, _OWN_PROMPTS)
# The address keeps what they say. Lists are kept by hand: Streamlit would write the words of the
# options into it, which are other words in another language.
_BOUND: Any = {"bind": "query-params"}
_UNFOLDED = "_runs.unfolded"
_FOLLOWED = "_runs.followed"


def draw_search(t: Catalogue) -> None:
    """Draw the field for words of the question, the name or the note."""
    _follow_address()
    label = RUN_FILTER["text"].title(t)
    st.text_input(
        label,
        type="search",
        key=_TEXT,
        placeholder=label,
        label_visibility="collapsed",
        max_chars=MAX_SEARCH,
        live="300ms",
        on_change=_first_page,
        **_BOUND,
    )


def draw_filters(t: Catalogue) -> None:
    """Draw the other filters, folded away until one of them is wanted."""
    if _UNFOLDED not in st.session_state:
        # An address with a filter shows that filter.
        st.session_state[_UNFOLDED] = any(name in st.query_params for name in _FILTERS)
    known = engine().service.store.labels.known(owner())
    with st.expander(t("runs.filters"), expanded=st.session_state[_UNFOLDED], key="runs-filters"):
        with st.container(key="settings-run-filters"):
            _choose(t, "methods", known.methods, lambda name: named("method", name, t))
            _choose(t, "models", known.models, str)
            verdicts = [one for one in RUN_FILTER["verdicts"].choices if one in known.verdicts]
            _choose(t, "verdicts", verdicts, lambda name: t(f"verdict.{name}"))
            _choose(t, "tags", known.tags, str)
            for key, name in ((_SINCE, "since"), (_UNTIL, "until")):
                st.date_input(
                    RUN_FILTER[name].title(t),
                    value=None,
                    key=key,
                    format="YYYY-MM-DD",
                    on_change=_first_page,
                    **_BOUND,
                )
            for key, name in ((_STARRED, "starred"), (_OWN_PROMPTS, "own_prompts")):
                st.toggle(RUN_FILTER[name].title(t), key=key, on_change=_first_page, **_BOUND)
        st.caption(t("runs.filter.help"))


def chosen_filter() -> RunFilter:
    """Return what the controls say; they have to be drawn before."""
    state = st.session_state
    since, until = state.get(_SINCE), state.get(_UNTIL)
    methods, models, verdicts, tags = (tuple(state.get(key) or ()) for key in _LISTS)
    return RunFilter(
        text=(state.get(_TEXT) or "").strip(),
        methods=methods,
        models=models,
        verdicts=verdicts,
        tags=tags,
        starred=bool(state.get(_STARRED)),
        own_prompts=bool(state.get(_OWN_PROMPTS)),
        since=_midnight(since) if since else None,
        # The day itself counts.
        until=_midnight(until + timedelta(days=1)) if until else None,
    )


def keep_address() -> None:
    """Write into the address what the controls do not write themselves.

    What says nothing is left out.
    """
    state = st.session_state
    said: dict[str, list[str]] = {key: list(state.get(key) or ()) for key in _LISTS}
    said[PAGE] = [str(state[PAGE])] if (state.get(PAGE) or 1) > 1 else []
    for key, values in said.items():
        if values and st.query_params.get_all(key) != values:
            st.query_params[key] = values
        elif not values and key in st.query_params:
            del st.query_params[key]


def _follow_address() -> None:
    """Follow what an address says that was opened; afterwards the controls decide."""
    state, asked = st.session_state, st.query_params
    if state.get(_FOLLOWED):
        return
    state[_FOLLOWED] = True
    for key in _LISTS:
        if values := asked.get_all(key):
            known = RUN_FILTER["verdicts"].choices if key == "runs.verdicts" else values
            state[key] = [one for one in values if one in known]
    with suppress(KeyError, ValueError):
        state[PAGE] = max(1, int(asked[PAGE]))


def clear_filters() -> None:
    """List every run again. Called from a callback."""
    st.session_state[_TEXT] = ""
    st.session_state[_STARRED] = False
    st.session_state[_OWN_PROMPTS] = False
    for key in _LISTS:
        st.session_state[key] = []
    for key in (_SINCE, _UNTIL):
        st.session_state[key] = None
    _first_page()


def here() -> tzinfo:
    """Return the visitor's own time zone."""
    try:
        return ZoneInfo(st.context.timezone or "UTC")
    except (ZoneInfoNotFoundError, ValueError):
        return UTC


def _choose(t: Catalogue, name: str, options: Sequence[str], words: Callable[[str], str]) -> None:
    key = f"runs.{name}"
    # What was chosen stays a choice, although the last run that has it may have been deleted.
    every = list(dict.fromkeys([*options, *(st.session_state.get(key) or ())]))
    st.multiselect(
        RUN_FILTER[name].title(t),
        every,
        key=key,
        format_func=words,
        placeholder=t("runs.filter.any"),
        disabled=not every,
        on_change=_first_page,
        persist_state="session",
    )


def _midnight(day: date) -> datetime:
    return datetime.combine(day, time.min, here())


def _first_page() -> None:
    st.session_state[PAGE] = 1

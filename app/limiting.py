"""What a press on the button will take, and what can be done where that passes a limit.

Written once for the pages that start a run: the question's and the given text's.
"""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app.page import remembered, show_html
from app.session import session_limits, set_limits
from components.base.html import tag
from components.base.words import Catalogue
from components.run.spending import (
    amount_words,
    estimate_help,
    estimate_line,
    limits_words,
    over_words,
)
from pipelines.engine.estimate import Excess, RunEstimate, excesses, raised

_OVER = "_over_limit"
"""Whether a run was not started because it is expected to pass a limit; followed by the page."""


def draw_estimate(found: RunEstimate | None, nothing: str, t: Catalogue) -> None:
    """Draw the estimate with the session's limits, in a line that is always there: nothing moves.

    `nothing` stands there where there is nothing to estimate.
    """
    with st.container(key="estimate"):
        if found is None:
            st.caption(nothing)
            return
        line, limited = estimate_line(found, t), limits_words(session_limits(), t)
        st.caption(f"{line} · {limited}" if limited else line, help=estimate_help(found, t))


def hold_back(page: str, found: RunEstimate | None) -> bool:
    """Return whether the run is not started, because it is expected to pass a limit.

    None lets it start.
    """
    st.session_state[_place(page)] = held = bool(_excesses(found))
    return held


def draw_over_limit(
    page: str,
    found: RunEstimate | None,
    t: Catalogue,
    *,
    start: Callable[[], None],
    fewer: Callable[[], None],
) -> bool:
    """Draw which limits the run is expected to pass, and what can be done; return whether it was
    not started.

    `start` starts it all the same, `fewer` shows what it can do without. As soon as it fits, there
    is nothing to say.
    """
    over = _excesses(found)
    if not over or not st.session_state.get(_place(page)):
        st.session_state.pop(_place(page), None)
        return False
    words = [over_words(one, t) for one in over]
    show_html(
        tag(
            "div.vs-notice",
            tag(
                "div",
                [tag("p", one, key=str(number)) for number, one in enumerate(words)],
                tag("p.vs-note", t("limit.over.what")),
            ),
            role="alert",
            key="over-limit",
        ),
        key="over-limit",
    )
    with st.container(horizontal=True, key="over-limit-ways"):
        st.button(t("limit.over.anyway"), key="limit-anyway", on_click=start)
        st.button(
            t("limit.over.raise", limits=_raised_words(over, t)),
            key="limit-raise",
            on_click=_raise_limits,
            args=(page, over),
        )
        st.button(t("limit.over.fewer"), key="limit-fewer", on_click=fewer)
    return True


def _excesses(found: RunEstimate | None) -> tuple[Excess, ...]:
    return () if found is None else excesses(found, session_limits())


def _raised_words(over: tuple[Excess, ...], t: Catalogue) -> str:
    limits = raised(session_limits(), over)
    amounts = (
        t(
            f"limit.short.{one.limit}",
            most=amount_words(one.limit, getattr(limits, one.limit), t, one.currency),
        )
        for one in over
    )
    return t("list.separator").join(amounts)


def _raise_limits(page: str, over: tuple[Excess, ...]) -> None:
    with remembered(page):
        set_limits(raised(session_limits(), over))


def _place(page: str) -> str:
    return f"{_OVER}.{page}"

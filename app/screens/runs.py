"""The Runs page: what this browser has run, to find, name, open, compare, export and delete."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import partial
from math import ceil
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

import streamlit as st

from app import page
from app.engine import engine
from app.page import (
    delete_button,
    draw_error,
    draw_unfolded,
    go_to,
    guarded,
    page_of_run,
    page_title,
    remembered,
    save_buttons,
    show_address,
    show_html,
    show_run,
)
from app.session import messages, owner
from components.base.elements import error_note, notice
from components.base.html import tag, visible
from components.base.words import Catalogue, named
from components.forms import RUN_FILTER
from components.run.compare import MOST_COMPARED, run_line
from pipelines.errors import VeriscopeError, failure
from pipelines.store import RunFilter, RunSummary
from pipelines.store.annotations import StoredSession
from pipelines.store.archive import MOST_RUNS, export_archive, import_archive, is_archive
from pipelines.store.evaluations import StoredEvaluation
from pipelines.store.filters import MAX_SEARCH
from pipelines.store.labels import MAX_NOTE, MAX_RUN_NAME, MAX_TAG

# The controls that say which runs the Runs page lists. The address keeps what they say.

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


# The runs that are picked on the Runs page, and what is done with all of them at once.

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
        delete_button("picked", sure, partial(_delete_runs, tuple(picked)))
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


def _delete_runs(picked: Sequence[str]) -> None:
    watched = page.current()
    if watched is not None and watched.run_id in picked:
        page.close()
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


# A run in the list of the Runs page: what it is, and what can be done with it alone.


def draw_row(run: RunSummary, t: Catalogue) -> None:
    """Draw the card of a run."""
    with st.container(
        border=True, horizontal=True, vertical_alignment="center", key=f"card-run-{run.id}"
    ):
        pick_box(run.id, t, visible(run.title))
        st.html(run_line(run, local_time(run), t))
        with st.container(horizontal=True, width="content", gap="small"):
            st.button(
                t("runs.starred" if run.starred else "runs.star"),
                key=f"star-{run.id}",
                type="tertiary",
                help=t("runs.star.take" if run.starred else "runs.star.give"),
                on_click=_star,
                args=(run.id, not run.starred),
            )
            st.button(t("action.open"), key=f"open-{run.id}", on_click=_open, args=(run.id,))
            more = st.popover(t("runs.more_about"), key=f"more-{run.id}", on_change="rerun")
            draw_unfolded(more, partial(_details, run, t))
            delete_button(run.id, t("runs.delete.sure"), partial(_delete, run.id))


def local_time(run: RunSummary | StoredEvaluation | StoredSession) -> str:
    """Return the start in the visitor's own time."""
    return local_moment(run.created)


def local_moment(moment: datetime) -> str:
    """Return a moment in the visitor's own time."""
    return moment.astimezone(here()).strftime("%Y-%m-%d %H:%M")


def _details(run: RunSummary, t: Catalogue) -> None:
    known = engine().service.store.labels.known(owner()).tags
    with st.form(f"labels-{run.id}", border=False):
        st.text_input(
            t("runs.name"),
            value=run.name,
            key=f"name-{run.id}",
            max_chars=MAX_RUN_NAME,
            placeholder=t("runs.name.placeholder"),
        )
        st.multiselect(
            t("runs.tags"),
            list(dict.fromkeys([*known, *run.tags])),
            default=list(run.tags),
            key=f"tags-{run.id}",
            accept_new_options=True,
            placeholder=t("runs.tag.placeholder", most=MAX_TAG),
        )
        st.text_area(t("runs.note_field"), value=run.note, key=f"note-{run.id}", max_chars=MAX_NOTE)
        st.form_submit_button(
            t("action.save"), key=f"save-{run.id}", on_click=_save, args=(run.id,)
        )
    st.caption(t("runs.labels.own"))
    show_address(run.id, t)
    with st.container(horizontal=True):
        save_buttons(run.id, t, key=run.id)
        st.button(
            t("runs.replay"),
            key=f"replay-{run.id}",
            help=t("runs.replay.help"),
            on_click=_replay,
            args=(run.id,),
        )


def _save(run_id: str) -> None:
    state = st.session_state
    with remembered("runs"):
        engine().service.store.labels.save(
            run_id,
            owner(),
            name=state.get(f"name-{run_id}") or "",
            note=state.get(f"note-{run_id}") or "",
            tags=state.get(f"tags-{run_id}") or [],
        )


def _star(run_id: str, starred: bool) -> None:
    with remembered("runs"):
        engine().service.store.labels.star(run_id, owner(), starred)


def _open(run_id: str) -> None:
    with remembered("runs"):
        show_run(run_id)


def _replay(run_id: str) -> None:
    with remembered("runs"):
        service = engine().service
        again = engine().call(service.replay(run_id, owner=owner()))
        show_run(again)
        if (why := service.why_not_stored(again, owner=owner())) is not None:
            # It can be looked at until the server ends, and the page it is shown on says so.
            st.session_state[f"_error.{page_of_run()}"] = why.info()


def _delete(run_id: str) -> None:
    watched = page.current()
    if watched is not None and watched.run_id == run_id:
        page.close()
    with remembered("runs"):
        engine().call(engine().service.delete(run_id, owner=owner()))


LISTED = 20
"""Runs of a page of the list."""

_UPLOADS = "runs.uploads"
_IMPORTED = "_runs.imported"
_MEGABYTES = 64
_REFUSED = 5


def show() -> None:
    """Draw the page."""
    t = messages()
    page_title(t("runs.title"), t("runs.note"))
    failed = draw_error("runs")
    left, right = st.columns([3, 2], gap="large", vertical_alignment="bottom")
    with left:
        draw_search(t)
    with right:
        st.file_uploader(
            t("runs.import"),
            type=["jsonl", "json", "zip"],
            key=f"runs.upload.{st.session_state.get(_UPLOADS, 0)}",
            on_change=_bring_in,
            max_upload_size=_MEGABYTES,
        )
    _imported(t)
    draw_filters(t)
    where = chosen_filter()
    try:
        found = engine().service.store.count(owner(), where)
        whole = found if where.empty else engine().service.store.count(owner())
    except VeriscopeError as error:
        if not failed:
            show_html(error_note(error.info(), t), key="runs-unreadable")
        return
    _found(found, whole, where, t)
    with guarded(t("runs.title"), key="list"):
        _list(found, where, t)
    keep_address()


def _found(found: int, whole: int, where: RunFilter, t: Catalogue) -> None:
    """Draw how many runs are listed of how many; a line that is always there, so that
    nothing moves.
    """
    with st.container(horizontal=True, vertical_alignment="center", key="runs-found"):
        words = t("runs.count", count=f"{whole:,}")
        if not where.empty:
            words = t("runs.found", count=f"{found:,}", total=f"{whole:,}")
        st.caption(words, width="content")
        if not where.empty:
            st.button(t("runs.clear"), key="runs-clear", type="tertiary", on_click=clear_filters)
    if where.since and where.until and where.until <= where.since:
        show_html(notice(t("runs.dates_reversed"), "dates"), key="runs-dates")


def _list(found: int, where: RunFilter, t: Catalogue) -> None:
    if not found:
        words = t("runs.none" if where.empty else "runs.none_found")
        st.html(tag("p", words, class_="workbench-empty"))
        return
    # The list stands above the control that turns its pages, and needs to know what that says.
    listing = st.container(key="runs-list")
    pages, page = ceil(found / LISTED), 1
    if pages > 1:
        st.session_state[PAGE] = min(st.session_state.get(PAGE) or 1, pages)
        page = st.pagination(pages, key=PAGE, persist_state="session", width="stretch")
    with listing:
        runs = engine().service.store.list(
            owner(), limit=LISTED, where=where, offset=LISTED * (page - 1)
        )
        draw_selection([run.id for run in runs], found, where, t)
        for run in runs:
            draw_row(run, t)


def _imported(t: Catalogue) -> None:
    """Draw what became of a file with several runs, until the next file."""
    told = st.session_state.get(_IMPORTED)
    if told is None:
        return
    count, refused = told
    if count:
        show_html(notice(t("runs.imported", count=count), "imported"), key="runs-imported")
    for name, error in refused[:_REFUSED]:
        show_html(tag("p.vs-label", visible(name)), key=f"refused-name-{name}")
        show_html(error_note(error, t), key=f"refused-{name}")
    if len(refused) > _REFUSED:
        st.caption(t("runs.refused_more", count=len(refused) - _REFUSED))


def _bring_in() -> None:
    uploads = st.session_state.get(_UPLOADS, 0)
    file = st.session_state.get(f"runs.upload.{uploads}")
    if file is None:
        return
    # The uploader keeps its file until it is another uploader.
    st.session_state[_UPLOADS] = uploads + 1
    st.session_state[_IMPORTED] = None
    with remembered("runs"):
        data = file.getvalue()
        if is_archive(data):
            brought = import_archive(engine().service.store, data, owner())
            refused = [(name, error.info()) for name, error in brought.refused]
            st.session_state[_IMPORTED] = (len(brought.runs), refused)
            return
        try:
            text = data.decode("utf-8-sig")
        except UnicodeDecodeError:
            raise failure("storage.no_run_file") from None
        show_run(engine().service.store.import_run(text, owner()))

"""Choosing what is evaluated on: a file or a set of the hub with its columns, or a bundled one."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, get_args

import streamlit as st

from app.exposure import workbench_exposure
from app.forms import draw_field, look_of, read_form
from app.jobs import fetched
from app.page import (
    choose_one,
    computing_shown,
    draw_error,
    in_rows,
    remembered,
    show_error,
    show_html,
)
from components.base.elements import notice
from components.base.html import visible
from components.base.words import Catalogue, integer
from components.evaluate.progress import BUNDLED, data_words, items_view, offers_words, rows_view
from components.evaluate.reading import reading_line
from components.forms import BUDGET, MAPPING
from pipelines.errors import VeriscopeError
from pipelines.evaluation.datasets import (
    PARTS,
    ColumnMapping,
    DataTable,
    Part,
    data_set_of,
    mapping_for,
    open_data_set,
    open_table,
    sampled,
)
from pipelines.evaluation.datasets.files import ROW_ERRORS, TABLE_ENDINGS
from pipelines.evaluation.datasets.formats import FORMATS, KINDS, recognised
from pipelines.evaluation.datasets.mapping import open_labels
from pipelines.evaluation.datasets.opening import HubAddress
from pipelines.evaluation.plan import Budget, DataSet
from pipelines.models.providers import SWITCH

MOST_MEGABYTES = 64
"""The largest file that can be uploaded, as the server's own limit."""

_ENDINGS = [*TABLE_ENDINGS]
_PARTS: tuple[Part, ...] = get_args(Part)
_MAPPED = "columns"
"""The kind of a file whose columns are mapped by hand."""

_USUAL = ("question", "answers", "passages", "text", "hallucinated")
_COLUMNS = (*_USUAL, *(part for part in PARTS if part not in _USUAL))
"""The parts of an item, those that most files hold first."""

_FIRST_ROWS = 5
_AT_FIRST = 20
"""Items that are taken until somebody says otherwise: a first look should not take hours."""

_HERE = "evaluate"
_KEPT: Any = {"persist_state": "session"}


class _Upload(NamedTuple):
    """A file that was read; `number` tells it from those of before."""

    number: int
    table: DataTable


def draw_data(
    t: Catalogue, seed: int, *, place: str = _HERE, bundled: Sequence[str] = tuple(BUNDLED)
) -> DataSet | None:
    """Draw the controls that choose a data set, and its first items; return it, None until
    there is one.

    Of its part so many items are drawn with `seed` as are asked for. `place` is the page whose
    choice it is, `bundled` the names of the bundled data sets that it offers.
    """
    source = choose_one(
        t("evaluate.data.source"),
        # Data sets of the hub are for evaluations.
        ("bundled", "file", *(["hub"] if place == _HERE else [])),
        f"{place}.source",
        lambda name: t(f"evaluate.data.{name}"),
        **_KEPT,
    )
    if source == "bundled":
        token, read = _bundled(t, place, bundled)
    else:
        token, read = _file(t, place) if source == "file" else _hub(t, place)
    if read is None:
        return None
    left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
    with left:
        part = choose_one(
            t("evaluate.half"),
            _PARTS,
            f"{place}.half",
            lambda name: t(f"evaluate.half.{name}"),
            help=t("evaluate.half.help"),
            **_KEPT,
        )
    try:
        whole: DataSet = _once(place, "whole", f"{token} {part}", partial(read, part))
    except VeriscopeError as error:
        show_error(error, key="data-error")
        if error.key in ROW_ERRORS:
            _draw_leaving_out(t, place, token)
        return None
    if whole.reading is not None and whole.reading.left_out_count:
        _draw_leaving_out(t, place, token)
    total = len(whole.items)
    with right:
        limit = st.number_input(
            t("evaluate.limit", total=integer(total)),
            min_value=1,
            max_value=total,
            value=min(_AT_FIRST, total),
            key=f"{place}.limit.{token}.{part}.{total}",
            help=t("evaluate.limit.help"),
            **_KEPT,
        )
    chosen: DataSet = _once(
        place,
        "sample",
        f"{token} {part} {limit} {seed}",
        partial(sampled, whole, int(limit), seed),
    )
    show_html(items_view(chosen.items[:_FIRST_ROWS], t), key="first-items")
    st.caption(offers_words(chosen.items, t))
    if chosen.reading is not None:
        st.caption(reading_line(chosen.reading, t).replace("`", "'").replace("$", r"\$"))
    return chosen


def _once(place: str, what: str, token: str, make: Any) -> Any:
    """Return what `make` makes, made anew only when `token` is another one than last time."""
    known: dict[str, tuple[str, Any]] = st.session_state.setdefault(f"_{place}.read", {})
    if what not in known or known[what][0] != token:
        known[what] = token, make()
    return known[what][1]


def _bundled(t: Catalogue, place: str, names: Sequence[str]) -> tuple[str, Any]:
    name = st.selectbox(
        t("evaluate.data.which"),
        list(names),
        key=f"{place}.bundled",
        format_func=partial(data_words, t=t),
        **_KEPT,
    )
    return name, lambda part: open_data_set(name, part=part)


def _file(t: Catalogue, place: str) -> tuple[str, Any]:
    """Return the name that tells this data from other data, and what reads a part of it; None
    for none.
    """
    st.file_uploader(
        t("evaluate.upload", size=MOST_MEGABYTES),
        type=_ENDINGS,
        key=f"{place}.file",
        on_change=_take_file,
        args=(place,),
        max_upload_size=MOST_MEGABYTES,
        help=t("evaluate.upload.help"),
    )
    draw_error(f"{place}.file")
    upload: _Upload | None = st.session_state.get(f"_{place}.upload")
    if upload is None:
        return "", None
    return _of_table(upload.table, f"{upload.number}", t, place)


def _hub(t: Catalogue, place: str) -> tuple[str, Any]:
    """Return what `_file` returns, of a data set of the Hugging Face hub."""
    if workbench_exposure().restricted:
        said = t("evaluate.hub.restricted", switch=SWITCH)
        show_html(notice(said, "hub-restricted"), key="hub-restricted")
        return "", None
    left, right = st.columns([3, 1], gap="medium", vertical_alignment="bottom")
    with left:
        st.text_input(
            t("evaluate.hub.name"),
            key=f"{place}.hub",
            placeholder="OWNER/NAME@SPLIT",
            help=t("evaluate.hub.name.help"),
            max_chars=200,
            **_KEPT,
        )
    with right:
        st.button(t("evaluate.hub.read"), key=f"{place}.hub.read", on_click=_ask_hub, args=(place,))
    draw_error(f"{place}.hub")
    address: HubAddress | None = st.session_state.get(f"_{place}.hub")
    if address is None:
        return "", None
    table: DataTable | None = None
    with computing_shown(f"{place}-hub"):
        table = fetched(address)
    if table is None:
        return "", None
    return _of_table(table, ".".join(["hub", *filter(None, address)]), t, place)


def _ask_hub(place: str) -> None:
    with remembered(f"{place}.hub"):
        name = (st.session_state.get(f"{place}.hub") or "").strip()
        st.session_state.pop(f"_{place}.hub", None)
        address = HubAddress.of(f"hub:{name.removeprefix('hub:')}")
        st.session_state[f"_{place}.hub"] = address


def _of_table(table: DataTable, number: str, t: Catalogue, place: str) -> tuple[str, Any]:
    """Return what `_file` returns, of rows that were read; `number` tells them from others."""
    st.caption(
        t(
            "evaluate.file.read",
            name=visible(table.name).replace("`", "'"),
            rows=integer(len(table.rows)),
            columns=integer(len(table.columns)),
        )
    )
    kinds = [*_kinds(table), _MAPPED]
    kind = st.selectbox(
        t("evaluate.kind"),
        kinds,
        key=f"{place}.kind.{number}",
        format_func=lambda kind: KINDS.get(kind) or t("evaluate.kind.columns"),
        help=t("evaluate.kind.help"),
        **_KEPT,
    )
    token = f"file {number} {kind}"
    if kind != _MAPPED:
        leave_out = _leaves_out(place, number)
        return (
            f"{token} {leave_out}",
            lambda part: data_set_of(table, kind=kind, part=part, leave_out=leave_out),
        )
    show_html(rows_view(table.columns, table.rows[:_FIRST_ROWS], t), key="first-rows")
    mapping = _mapping(table, f"{place}.map.{number}", t)
    if not (mapping.question or mapping.text):
        st.caption(t("evaluate.mapping.needed"))
        return token, None
    leave_out = _leaves_out(place, number)
    return (
        f"{token} {mapping.model_dump_json()} {leave_out}",
        lambda part: data_set_of(table, mapping=mapping, part=part, leave_out=leave_out),
    )


def _leaves_out(place: str, number: str) -> bool:
    """Return whether rows of the file that cannot be read are left out, as the page was told."""
    return bool(st.session_state.get(f"{place}.leave_out.{number}"))


def _draw_leaving_out(t: Catalogue, place: str, token: str) -> None:
    _, number, *_ = token.split(" ")
    st.checkbox(
        t("evaluate.leave_out"),
        key=f"{place}.leave_out.{number}",
        help=t("evaluate.leave_out.help"),
        **_KEPT,
    )


def _kinds(table: DataTable) -> list[str]:
    """Return the kinds of public data sets that the file may be, the likeliest first."""
    fitting = [one.kind for one in FORMATS if one.describes(table.rows[0])]
    first = recognised(table)
    return list(dict.fromkeys([*([first.kind] if first else []), *fitting]))


def _mapping(table: DataTable, where: str, t: Catalogue) -> ColumnMapping:
    """Return the columns of every part of an item; usual names are chosen already."""
    suggested = mapping_for(table)
    columns = list(table.columns)
    chosen: dict[str, Any] = {}
    for column, part in in_rows(_COLUMNS, 3):
        place = f"{where}.{part}"
        look = look_of(MAPPING[part], t, place, placeholder=t("evaluate.mapping.none"))
        found = getattr(suggested, part)
        with column:
            if MAPPING[part].several:
                chosen[part] = tuple(st.multiselect(options=columns, default=list(found), **look))
            else:
                index = columns.index(found) if found else None
                chosen[part] = st.selectbox(options=columns, index=index, **look) or ""
    left, right = st.columns(2, gap="medium", vertical_alignment="bottom")
    with left:
        separator = st.selectbox(
            options=MAPPING["separator"].choices,
            format_func=lambda one: json.dumps(one) if one else t("evaluate.separator.none"),
            **look_of(MAPPING["separator"], t, f"{where}.separator"),
        )
    with right:
        off = not chosen["hallucinated"]
        yes = st.text_input(
            value=", ".join(suggested.hallucinated_values),
            **look_of(MAPPING["hallucinated_values"], t, f"{where}.yes", disabled=off),
        )
    values = tuple(one.strip() for one in (yes or "").split(",") if one.strip())
    mapping = ColumnMapping(**chosen, separator=separator, hallucinated_values=values)
    asked = f"{where}.label_is"
    if open_labels(table, mapping) or st.session_state.get(asked):
        choices = MAPPING["label_is"].choices
        label_is = st.selectbox(
            options=choices,
            index=choices.index(suggested.label_is),
            format_func=lambda one: t(f"evaluate.label_is.{one}"),
            **look_of(MAPPING["label_is"], t, asked),
        )
        mapping = mapping.model_copy(update={"label_is": label_is})
    return mapping


def _take_file(place: str) -> None:
    upload = st.session_state.get(f"{place}.file")
    kept, count = f"_{place}.upload", f"_{place}.uploads"
    earlier: _Upload | None = st.session_state.pop(kept, None)
    st.session_state.pop(f"_{place}.read", None)
    with remembered(f"{place}.file"):
        if upload is not None:
            number = st.session_state.get(count, 0) + 1
            st.session_state[count] = number
            try:
                table = read_upload(upload.name, upload.getvalue())
            except VeriscopeError:
                # What was there before is still there.
                st.session_state[kept] = earlier
                raise
            st.session_state[kept] = _Upload(number, table)


def read_upload(name: str, data: bytes) -> DataTable:
    """Return the rows of an uploaded file, and in `bad` those that cannot be read.

    Raises InvalidInputError where the whole file cannot be read.
    """
    with TemporaryDirectory() as folder:
        path = Path(folder) / safe_name(name)
        path.write_bytes(data)
        return open_table(path)


def safe_name(name: str) -> str:
    """Return the name of an uploaded file, so that a file here can have it: its ending tells
    the form.

    Nothing else of it is trusted.
    """
    bare = Path(name.replace("\\", "/")).name
    safe = "".join(one if one.isalnum() or one in "-_. " else "_" for one in bare)
    return safe[-100:].lstrip(".") or "file"


# How fast an evaluation goes and where it stops: controls on the form and on its own page.

MOST_AT_ONCE = 16
_AT_ONCE = 2
_LIMITS_KEPT: Any = {"persist_state": "session"}


def at_once() -> int:
    """Return how many answers are worked on at a time."""
    return int(st.session_state.get("evaluate.at_once") or _AT_ONCE)


def draw_limits(
    t: Catalogue, currencies: Sequence[str], *, scope: str = "", start: Budget | None = None
) -> None:
    """Draw the controls; `scope` tells those of one evaluation, which begin with `start`.

    `currencies` are those of the models' prices: without any, or with several, there can be no
    limit of money.
    """
    columns = st.columns(len(BUDGET.fields) + 1, gap="medium", vertical_alignment="bottom")
    with columns[0]:
        st.number_input(
            t("evaluate.at_once"),
            min_value=1,
            max_value=MOST_AT_ONCE,
            value=_AT_ONCE,
            key="evaluate.at_once",
            help=t("evaluate.at_once.help"),
            **_LIMITS_KEPT,
        )
    one = currencies[0] if len(currencies) == 1 else None
    for column, (name, field) in zip(columns[1:], BUDGET.fields.items(), strict=True):
        key, known = f"{_place(scope)}.{name}", getattr(start, name) if start else None
        look: dict[str, Any] = {}
        if name == "money" and one is not None:
            look["label"] = t("evaluate.most.money_in", currency=one)
        elif name == "money" and known is None:
            look["disabled"] = True
            if st.session_state.get(key) is not None:
                # Models with a price were chosen when it was set.
                st.session_state[key] = None
        with column:
            draw_field(field, t, key, known, **look)
    if one is None:
        st.caption(t("evaluate.most.several" if currencies else "evaluate.most.no_price"))


def chosen_limits(*, scope: str = "", start: Budget | None = None) -> Budget:
    """Return what the controls say; where they were never drawn, `start`."""
    return read_form(BUDGET, _place(scope), start)


def _place(scope: str) -> str:
    return f"evaluate.{scope}.most" if scope else "evaluate.most"

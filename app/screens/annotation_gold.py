"""The control items of a session: items whose right label is known, added and removed."""

from __future__ import annotations

from functools import partial
from typing import Any

import streamlit as st

from app.links import require_link
from app.parts import draw_error, remembered
from app.screens.annotation_links import asking_button
from components.annotation import label_text
from components.markup import shown, tag
from components.messages import Catalogue, integer
from pipelines.annotation.leading import Lead
from pipelines.annotation.types import VERDICTS, ItemBody, label_adapter
from pipelines.annotation.watching import ItemBrief, brief_of
from pipelines.errors import failure
from pipelines.store.annotation_records import StoredItem

_ERRORS = "annotate-gold"
_MOST = 100
"""Items that are listed at once; a search finds the others."""


def draw_gold(lead: Lead, t: Catalogue) -> None:
    """Draw what there is, and the controls that add one."""
    draw_error(_ERRORS)
    st.caption(t("annotate.gold.note"))
    items = lead.items()
    given = {one.item for one in lead.store.annotations.claims(lead.session_id)}
    controls = [item for item in items if item.gold is not None]
    if not controls:
        st.html(tag("p", t("annotate.gold.none"), class_="workbench-empty"))
    for item in controls[:_MOST]:
        _control(lead, item, t, removable=item.number not in given)
    if len(controls) > _MOST:
        st.caption(t("annotate.more", count=integer(len(controls) - _MOST)))
    free = [item for item in items if item.gold is None and item.number not in given]
    if not free:
        st.caption(t("annotate.gold.all_given"))
        return
    _new(lead, free, t)


def _control(lead: Lead, item: StoredItem, t: Catalogue, *, removable: bool) -> None:
    body = ItemBody.model_validate(item.body)
    label = label_adapter.validate_python(item.gold)
    with st.container(
        border=True, horizontal=True, vertical_alignment="center", key=f"card-gold-{item.number}"
    ):
        st.html(
            tag(
                "div.workbench-run",
                tag("p.workbench-run-question", shown(_words(brief_of(item, body), t))),
                tag(
                    "p.workbench-run-facts",
                    t("annotate.gold.right", label=label_text(label, body.text, t)),
                    None if removable else f" · {t('annotate.gold.given')}",
                ),
            )
        )
        if removable:
            asking_button(
                t("annotate.gold.remove"),
                f"gold-{item.number}",
                t("annotate.gold.remove.sure"),
                partial(_remove, lead, item.number),
            )


def _words(brief: ItemBrief, t: Catalogue) -> str:
    head = t("annotate.item", number=brief.number + 1, task=t(f"annotate.task.{brief.task}"))
    return f"{head}{t('label.separator')}{brief.text}"


def _new(lead: Lead, free: list[StoredItem], t: Catalogue) -> None:
    text = st.text_input(
        t("annotate.gold.search"), key="annotate.gold.search", live="300ms", max_chars=200
    )
    sought = (text or "").casefold()
    bodies = {item.number: ItemBody.model_validate(item.body) for item in free}
    found = [
        brief_of(item, bodies[item.number])
        for item in free
        if sought in bodies[item.number].piece.casefold()
    ][:_MOST]
    if not found:
        st.caption(t("annotate.gold.not_found"))
        return
    words = {one.number: _words(one, t) for one in found}
    number = st.selectbox(
        t("annotate.gold.item"),
        list(words),
        key="annotate.gold.item",
        format_func=lambda one: words.get(one, ""),
    )
    body = bodies[number]
    if body.task == "span":
        st.text(body.text)
        st.text_area(
            t("annotate.gold.pieces"),
            key=f"annotate.gold.pieces.{number}",
            help=t("annotate.gold.pieces.help"),
            placeholder=t("annotate.gold.pieces.none"),
        )
    else:
        st.selectbox(
            t("annotate.gold.label"),
            VERDICTS[body.task],
            key=f"annotate.gold.label.{number}",
            format_func=lambda one: t(f"annotate.verdict.{body.task}.{one}"),
        )
    st.button(
        t("annotate.gold.add"), key="annotate.gold.add", on_click=_add, args=(lead, number, body)
    )


def _add(lead: Lead, number: int, body: ItemBody) -> None:
    with remembered(_ERRORS):
        require_link()
        lead.set_gold(number, _label(number, body))
        if lead.spec.without_gold:
            lead.change(without_gold=False)


def _remove(lead: Lead, number: int) -> None:
    with remembered(_ERRORS):
        require_link()
        lead.set_gold(number, None)
        if not any(item.gold is not None for item in lead.items()):
            lead.change(without_gold=True)


def _label(number: int, body: ItemBody) -> dict[str, Any]:
    """Return the label that the controls say. Raises InvalidInputError."""
    if body.task != "span":
        verdict = st.session_state.get(f"annotate.gold.label.{number}")
        return {"task": body.task, "verdict": verdict}
    lines = str(st.session_state.get(f"annotate.gold.pieces.{number}") or "").splitlines()
    spans: list[dict[str, Any]] = []
    for line in filter(None, map(str.strip, lines)):
        start = body.text.find(line)
        if start < 0:
            raise failure("annotation.not_in_text", line=line)
        spans.append({"start": start, "end": start + len(line), "kind": "other"})
    return {"task": "span", "spans": spans}

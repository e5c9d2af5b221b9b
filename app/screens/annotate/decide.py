"""Deciding the items on which people disagree.

The items are listed with the lowest agreement first. The one that is looked at is shown with
everybody's labels under its text; once it is decided, the next one follows by itself.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial
from random import Random
from typing import Any, Literal, cast

import streamlit as st

from app.login import require_link
from app.page import (
    Action,
    choose_one,
    computing_shown,
    draw_error,
    guarded,
    redraw_whole,
    remembered,
    show_html,
    show_labelling,
    show_run,
)
from app.results import Disputed, Disputes, computed, disputes_of, now
from app.screens.annotate.label import LabellingState, refusal_words
from app.session import messages, owner
from components.annotate.labelling import CONFIDENCE, Opinion, decision_data, stored_value
from components.annotate.results import decide_bar, silent_comments
from components.base.elements import error_title, notice
from components.base.html import tag, visible
from components.base.words import Catalogue
from components.evaluate.table import number
from pipelines.annotation.adjudication import adjudicate, merged_spans
from pipelines.annotation.labelling import Adjudication
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import MAX_COMMENT, TASKS, Label, SpanLabel, Task, parse_label
from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.store.annotations import MAX_NAME

# Requests of the component on the page "Decide": each is carried out once and acknowledged.
#
# As with labels (`app.screens.annotate.label`), a request may come again, and is stored once.


@dataclass
class Deciding(LabellingState):
    """What the page remembers of an adjudicator between two drawings.

    `merged` holds the labels that were merged of others' for the item `merging`, by the rule as in
    `Adjudication.merged`; the last one is the draft. `saved` is the item that was just decided.
    """

    merging: int | None = None
    merged: dict[str, Label] = field(default_factory=dict)
    saved: int | None = None

    def draft(self, item: int) -> Label | None:
        """Return the label to begin with, where one was merged for `item`."""
        if self.merging != item or not self.merged:
            return None
        return list(self.merged.values())[-1]


def handle_decision(
    lead: Lead,
    found: Disputes,
    name: str,
    request: dict[str, Any],
    deciding: Deciding,
    t: Catalogue,
) -> None:
    """Carry out a request of the adjudicator called `name`, and note in `deciding` what came of it.

    What cannot be done is refused there in words. Raises VeriscopeError for what may succeed when
    it is sent again, such as a database that is busy; it is not acknowledged then.
    """
    client, item = str(request.get("client") or ""), request.get("item")
    deciding.notice, deciding.saved = "", None
    try:
        if not isinstance(item, int) or isinstance(item, bool) or item not in found.bodies:
            raise failure("annotation.no_item")
        match request.get("action"):
            case "merge":
                _merge(found, item, request, deciding)
            case "decide":
                if not name:
                    raise failure("annotation.bad_name", most=MAX_NAME)
                _decide(lead, found, name, item, request, deciding)
            case other:
                problem = phrase("label.no_request", name=str(other)[:40])
                raise failure("annotation.bad_value", problem=problem)
    except VeriscopeError as error:
        if error.retryable:
            raise
        deciding.notice = refusal_words(error, t)
        if request.get("action") == "decide" and not name:
            deciding.notice = t("annotate.decide.name.first")
        deciding.answer(client, deciding.notice)
    except Exception:
        deciding.answer(client, error_title("unexpected", t))
        raise
    else:
        deciding.answer(client)


def _merge(found: Disputes, item: int, request: dict[str, Any], deciding: Deciding) -> None:
    rule, person = request.get("rule"), request.get("person")
    given = found.labels.get(item, [])
    spans = [one.label for one in given if isinstance(one.label, SpanLabel)]
    taken: Label | None = None
    if rule == "person":
        taken = next((one.label for one in given if one.annotator == person), None)
        rule = f"annotator:{person}"
    elif rule in ("union", "majority"):
        taken = merged_spans(spans, rule) if spans else None
    if taken is None:
        raise failure("annotation.bad_value", problem=phrase("label.no_merging"))
    if deciding.merging != item:
        deciding.merging, deciding.merged = item, {}
    deciding.merged.pop(str(rule), None)
    deciding.merged[str(rule)] = taken


def _decide(
    lead: Lead,
    found: Disputes,
    name: str,
    item: int,
    request: dict[str, Any],
    deciding: Deciding,
) -> None:
    client = str(request.get("client") or "")
    if _stored(lead, item, client):
        # It came again: how the label was merged may be forgotten by now.
        deciding.saved = item
        return
    body = found.bodies[item]
    label = parse_label(stored_value(body.task, request.get("value")), body)
    known = deciding.merged if deciding.merging == item else {}
    rules = [rule for rule, merged in known.items() if merged == label]
    decision = Adjudication(
        label=label,
        note=str(request.get("note") or "")[:MAX_COMMENT],
        confidence=CONFIDENCE.get(str(request.get("confidence") or "")),
        gap=request.get("gap") is True,
        merged=rules[-1] if rules else "",
    )
    adjudicate(lead, name, item, decision, client=client)
    deciding.merging, deciding.merged, deciding.saved = None, {}, item


def _stored(lead: Lead, item: int, client: str) -> bool:
    """Return whether the decision that this request gave is stored already."""
    events = lead.store.annotations.events(lead.session_id, item=item)
    return any(one.client == client and one.kind == "adjudicated" for one in events)


_ERRORS = "annotate-decide"
_KEPT: Any = {"persist_state": "session"}
_LISTS = ("open", "decided")
_EXCERPT = 70
"""Characters of an item's text by which it is known again in a list."""

_ITEM, _LIST, _TASK = "annotate.decide.item", "annotate.decide.list", "annotate.decide.task"


def draw_decide(lead: Lead, t: Catalogue) -> None:
    """Draw the items, lowest agreement first, and everybody's labels of the one that is
    looked at.
    """
    with guarded(t("annotate.decide.title"), key="decide"), computing_shown("decide"):
        draw_error(_ERRORS)
        found = computed(disputes_of, now(lead))
        saved = _deciding(lead).saved
        show_html(decide_bar(len(found.open), len(found.decided), saved, t), key="decide-bar")
        if not found.open and not found.decided:
            st.html(tag("p", t("annotate.decide.none"), class_="workbench-empty"))
            return
        name = _name(lead, found, t)
        items = _filtered(found, t)
        if not items:
            key = "annotate.decide.empty" if found.open else "annotate.decide.done"
            st.html(tag("p", t(key), class_="workbench-empty"))
            return
        item = _choose(items, found, t)
        if not name:
            show_html(notice(t("annotate.decide.name.first"), "name"), key="decide-name")
        _draw(lead, found, item, name, t)


def _name(lead: Lead, found: Disputes, t: Catalogue) -> str:
    """Return who decides, under which name decisions are stored; who did it last is offered.

    The field gives way to the name once that is known, so that the keys belong to the item at once.
    """
    key = f"annotate.decide.name.{lead.session_id}"
    changing = f"_{key}.changing"
    leads = [one.name for one in found.people.values() if one.kind == "lead"]
    name = st.session_state.get(key, leads[-1] if leads else "")
    known = bool((name or "").strip()) and not st.session_state.get(changing)
    align = "center" if known else "bottom"
    with st.container(horizontal=True, vertical_alignment=align, key="annotate-decide-name"):
        if known:
            st.text(t("annotate.decide.as", name=visible(name.strip())), width="content")
            st.button(
                t("annotate.decide.rename"),
                key="annotate.decide.rename",
                type="tertiary",
                on_click=partial(_set, changing, True),
            )
        else:
            name = st.text_input(
                t("annotate.decide.name"),
                value=name or "",
                key=key,
                max_chars=MAX_NAME,
                help=t("annotate.decide.name.help"),
                on_change=partial(_set, changing, False),
                **_KEPT,
            )
        st.toggle(
            t("annotate.decide.hide"),
            key="annotate.decide.hide",
            help=t("annotate.decide.hide.help"),
            **_KEPT,
        )
    return (name or "").strip()


def _set(key: str, value: bool) -> None:
    st.session_state[key] = value


def _filtered(found: Disputes, t: Catalogue) -> list[Disputed]:
    """Return what is to be decided, or was, of all tasks or one."""
    with st.container(horizontal=True, key="annotate-decide-filter"):
        which = choose_one(
            t("annotate.decide.list"),
            _LISTS,
            _LIST,
            lambda one: t(f"annotate.decide.list.{one}"),
            label_visibility="collapsed",
            **_KEPT,
        )
        items = found.open if which == "open" else found.decided
        tasks, task = _tasks(found), cast("Task | Literal['all']", "all")
        if len(tasks) > 2:
            task = choose_one(
                t("annotate.decide.task"),
                tasks,
                _task_key(found),
                lambda one: t(f"annotate.results.task.{one}"),
                label_visibility="collapsed",
                **_KEPT,
            )
    return [one for one in items if task in ("all", one.task)]


def _choose(items: Sequence[Disputed], found: Disputes, t: Catalogue) -> Disputed:
    """Return the item that is looked at, with the way to its neighbours."""
    numbers = [one.item for one in items]
    if st.session_state.get(_ITEM) not in numbers:
        st.session_state[_ITEM] = numbers[0]
    words = {one.item: _words(one, found, t) for one in items}
    with st.container(horizontal=True, vertical_alignment="bottom", key="annotate-decide-item"):
        chosen = st.selectbox(
            t("annotate.decide.item", count=len(items)),
            numbers,
            key=_ITEM,
            format_func=words.__getitem__,
        )
        at = numbers.index(chosen)
        for name, step in (("previous", -1), ("next", 1)):
            place = at + step
            there = 0 <= place < len(numbers)
            st.button(
                t(f"annotate.decide.{name}"),
                key=f"annotate.decide.{name}",
                disabled=not there,
                on_click=_look,
                args=(numbers[place] if there else chosen,),
            )
    return items[at]


def _words(one: Disputed, found: Disputes, t: Catalogue) -> str:
    """Return an item in one line: its number, task, agreement and text."""
    text = " ".join(visible(found.bodies[one.item].piece).split())
    short = text if len(text) <= _EXCERPT else text[:_EXCERPT].rstrip() + " …"
    return t(
        "annotate.decide.option",
        number=one.item + 1,
        task=t(f"annotate.results.task.{one.task}"),
        agreement=number(one.agreement, 2),
        text=short,
    )


def _look(item: int) -> None:
    st.session_state[_ITEM] = item


def _draw(lead: Lead, found: Disputes, one: Disputed, name: str, t: Catalogue) -> None:
    body, decision = found.bodies[one.item], found.decisions.get(one.item)
    names = _names(lead.session_id, found, one.item, t)
    said = [(each.annotator, each.text) for each in found.comments if each.item == one.item]
    people = [
        Opinion(
            name=names[given.annotator],
            label=given.label,
            comments=tuple(text for who, text in said if who == given.annotator),
            number=given.annotator,
        )
        for given in found.labels.get(one.item, [])
    ]
    people.sort(key=lambda each: list(names).index(each.number))
    deciding = _deciding(lead)
    data = decision_data(
        one.item,
        body,
        people,
        decision,
        t,
        deciding.draft(one.item),
        scope=f"{lead.session_id}.decide",
        acknowledged=deciding.acknowledged,
    )
    data |= {"refused": deciding.refused, "notice": deciding.notice}
    show_labelling(
        data,
        key=f"annotate-decide-{lead.session_id[:12]}",
        on_request=lambda request: _asked(lead, found, name, request),
    )
    voiced = {each.number for each in people}
    said += [
        (each.annotator, t("annotate.decide.skipped", reason=each.reason))
        for each in found.skips
        if each.item == one.item
    ]
    silent = [(names[who], text) for who, text in said if who not in voiced]
    if silent:
        show_html(silent_comments(silent, t), key="decide-comments")
    if body.place.run and lead.session.owner == owner():
        st.button(
            t("annotate.decide.run"),
            key="annotate.decide.run",
            on_click=_open,
            args=({"action": "open_run", "value": body.place.run},),
        )


def _names(session: str, found: Disputes, item: int, t: Catalogue) -> dict[int, str]:
    """Return, by their numbers, what people are called; hidden, in an order of the item's own."""
    numbers = list(found.people)
    if not st.session_state.get("annotate.decide.hide"):
        return {one: found.people[one].name for one in numbers}
    here = {given.annotator for given in found.labels.get(item, [])}
    Random(f"{session}:{item}").shuffle(numbers)
    # Who labelled it comes first, so that they count without a gap.
    numbers.sort(key=lambda one: one not in here)
    return {
        one: t("annotate.decide.person", number=place) for place, one in enumerate(numbers, start=1)
    }


def _open(action: Action) -> None:
    with remembered(_ERRORS):
        show_run(action["value"] or "")


def _asked(lead: Lead, found: Disputes, name: str, request: dict[str, Any]) -> None:
    """Do what the component asks for, a merged label or a decision; then the next item follows."""
    deciding = _deciding(lead)
    with remembered(_ERRORS):
        require_link()
        queue = [one.item for one in _listed(found)]
        handle_decision(lead, found, name, request, deciding, messages())
        item = deciding.saved
        if item in queue:
            at = queue.index(item)
            rest = [*queue[at + 1 :], *queue[:at]]
            if rest:
                st.session_state[_ITEM] = rest[0]
    redraw_whole()


def _deciding(lead: Lead) -> Deciding:
    """Return what is remembered of the adjudicator."""
    return st.session_state.setdefault(f"_annotate.decide.{lead.session_id}", Deciding())


def _listed(found: Disputes) -> list[Disputed]:
    """Return the items to decide as they are filtered now, none where decided ones are
    looked at.
    """
    if st.session_state.get(_LIST) == "decided":
        return []
    chosen = st.session_state.get(_task_key(found)) or "all"
    return [one for one in found.open if chosen in ("all", one.task)]


def _tasks(found: Disputes) -> list[Task | Literal["all"]]:
    present = {one.task for one in (*found.open, *found.decided)}
    return ["all", *(one for one in TASKS if one in present)]


def _task_key(found: Disputes) -> str:
    return f"{_TASK}.{'.'.join(_tasks(found))}"

"""A session as an annotator sees it: join, read the guidelines, label item by item."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import partial
from typing import Any
from uuid import uuid4

import streamlit as st

from app.login import current_link, draw_join, require_link
from app.page import (
    Action,
    draw_again,
    draw_error,
    draw_unfolded,
    guarded,
    page_title,
    remembered,
    section_title,
    show_error,
    show_html,
    show_labelling,
)
from app.session import messages
from components.annotate.labelling import (
    LabellingProgress,
    Last,
    Overruled,
    OwnLabel,
    label_data,
    overruled_labels,
    own_labels,
    short_piece,
    stored_value,
)
from components.base.elements import error_title, explained, notice
from components.base.html import tag, without_images
from components.base.words import Catalogue, duration, integer
from pipelines.annotation.labelling import AssignedItem, GivenLabel, Worker
from pipelines.annotation.sessions import Invitation
from pipelines.error_words import entries, phrase, phrase_in
from pipelines.errors import VeriscopeError, failure
from pipelines.store.annotations import MAX_NAME
from pipelines.store.labelling import NothingToDo

# Requests of the component on an annotator's page: each is carried out once and acknowledged.
#
# The component sends a request again until it is acknowledged or refused, because a connection may
# be lost and a server restarted at any moment. The store knows a request by its name.

_KEPT = 50
"""Acknowledgements that are told again: the component drops a request once it has heard of it."""


@dataclass
class LabellingState:
    """What the page remembers of one person between two drawings.

    `looked` is an item that they labelled before and look at again, `guidelines` that they asked to
    read these, `read` the version that they have read.
    """

    acknowledged: list[str] = field(default_factory=list)
    refused: dict[str, str] = field(default_factory=dict)
    notice: str = ""
    looked: int | None = None
    guidelines: bool = False
    read: int = 0

    def answer(self, client: str, refusal: str = "") -> None:
        """Acknowledge a request, or refuse it in words."""
        if refusal:
            self.refused[client] = refusal
            for old in list(self.refused)[:-_KEPT]:
                del self.refused[old]
        elif client not in self.acknowledged:
            self.acknowledged = [*self.acknowledged[1 - _KEPT :], client]


def handle(worker: Worker, request: dict[str, Any], state: LabellingState, t: Catalogue) -> None:
    """Carry out a request, and write into `state` what came of it.

    What cannot be done is refused there in words. Raises VeriscopeError for what may succeed when
    it is sent again, such as a database that is busy; it is not acknowledged then.
    """
    client, item = str(request.get("client") or ""), request.get("item")
    state.notice = ""
    try:
        if not isinstance(item, int) or isinstance(item, bool):
            raise failure("annotation.no_item")
        _carry_out(worker, request, item, client, state, t)
    except VeriscopeError as error:
        if error.retryable:
            raise
        state.notice = refusal_words(error, t)
        state.looked = None
        state.answer(client, state.notice)
    except Exception:
        state.answer(client, error_title("unexpected", t))
        raise
    else:
        state.answer(client)


def _carry_out(
    worker: Worker,
    request: dict[str, Any],
    item: int,
    client: str,
    state: LabellingState,
    t: Catalogue,
) -> None:
    match request.get("action"):
        case "label" | "change" as action:
            give = worker.label if action == "label" else worker.change
            value = _value(worker, item, request.get("value"))
            seconds = _seconds(request.get("seconds"))
            # Newer guidelines, which nobody has read yet, are not those of this label.
            read = state.read or None
            give(item, value, client=client, seconds=seconds, guidelines=read)
            state.looked = item if action == "change" else None
        case "undo":
            worker.undo(item, client=client)
            state.looked = None
        case "redo":
            worker.redo(item, client=client)
            state.looked = None
        case "skip":
            worker.skip(item, _text(request.get("reason"), t), client=client)
            state.looked = None
        case "comment":
            worker.comment(item, _text(request.get("text"), t), client=client)
        case "reveal":
            worker.reveal(item, client=client)
            state.looked = item
        case "renew":
            worker.renew(item)
        case "look":
            state.looked = item
        case "next":
            state.looked = None
        case "guidelines":
            state.guidelines = True
        case other:
            raise failure(
                "annotation.bad_value", problem=phrase("label.no_request", name=str(other)[:40])
            )


def refusal_words(error: VeriscopeError, t: Catalogue) -> str:
    """Return why something was refused, in words for who has just sent a label where there
    are any.
    """
    own = f"annotating.{error.key.partition('.')[2]}"
    if error.key.startswith("annotation.") and own in entries():
        return phrase_in(phrase(own), t.language)
    return t("annotate.refused.other", problem=explained(error.info(), t))


def _value(worker: Worker, item: int, value: object) -> dict[str, Any]:
    given = worker.own(item)
    return stored_value(given.body.task, value, swapped=given.swapped)


def _seconds(value: object) -> float | None:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return float(value)


def _text(value: object, t: Catalogue) -> str:
    text = value.strip() if isinstance(value, str) else ""
    if not text:
        raise failure("annotation.bad_value", problem=t("annotate.label.write_something"))
    return text


_PAGE = "annotate"
_JOINED = "_annotate.joined"
_PROBLEM = "_annotate.join.problem"
_SHOWN = 20
_AGAIN = 15.0
"""Seconds until it is looked again whether other people have left an item, or more were added."""


def draw_invitation(invitation: Invitation, t: Catalogue) -> None:
    """Draw the form to join with."""
    page_title(invitation.name, t("annotate.join.note"))
    draw_error(_PAGE)
    if invitation.login:
        draw_join(invitation, t, _joined)
        return
    with st.form("annotate-join", border=False, width=440):
        st.text_input(
            t("annotate.join.name"),
            key="annotate.join.name",
            help=t("annotate.join.help"),
            max_chars=MAX_NAME,
            autocomplete="name",
        )
        if problem := st.session_state.get(_PROBLEM):
            show_html(notice(problem, "join-problem", role="alert"), key="join-problem")
        st.form_submit_button(
            t("annotate.join.go"), type="primary", on_click=_join, args=(invitation,)
        )


def _join(invitation: Invitation) -> None:
    st.session_state.pop(_PROBLEM, None)
    with remembered(_PAGE):
        require_link()
        try:
            _, token = invitation.join(str(st.session_state.get("annotate.join.name") or ""))
        except VeriscopeError as error:
            if error.retryable:
                raise
            st.session_state[_PROBLEM] = refusal_words(error, messages())
            return
        _joined(token)


def _joined(token: str) -> None:
    st.session_state[_JOINED] = token
    # The address becomes the personal link, which is all that is needed to come back.
    st.query_params["link"] = token


def draw_worker(worker: Worker, t: Catalogue) -> None:
    """Draw the item to label, or what there is to see when none is left."""
    state = standing_of(worker)
    with st.container(horizontal=True, vertical_alignment="bottom", key="annotate-head"):
        page_title(worker.session_name, t("annotate.task.as", name=worker.name))
        _own_link(t)
    draw_error(_PAGE)
    _new_link(t)
    if worker.closed:
        _closed(worker, t)
        return
    labels = worker.labels()
    if _unread(worker, state, labels):
        _read_first(worker, state, t, changed=state.read > 0)
        return
    with guarded(t("annotate.title"), key="task"):
        if state.guidelines:
            state.guidelines = False
            st.dialog(t("annotate.label.guidelines"), width="large")(_guidelines)(worker, t)
        try:
            _item(worker, state, labels, t)
        except VeriscopeError as error:
            # It was closed, or deleted, a moment ago.
            show_error(error, key="annotate-item-error")
    _own(worker, labels, t)


def standing_of(worker: Worker) -> LabellingState:
    """Return what this browser tab remembers of somebody's work."""
    key = f"_annotate.standing.{worker.session_id}.{worker.annotator}"
    return st.session_state.setdefault(key, LabellingState())


def _own_link(t: Catalogue) -> None:
    """Draw the personal link, out of the way once it was kept."""
    if st.session_state.get(_JOINED) == current_link():
        return
    with st.popover(t("annotate.task.link"), key="annotate.link"):
        st.markdown(t("annotate.task.link.help"))
        st.code(_address(), language=None, wrap_lines=True)


def _new_link(t: Catalogue) -> None:
    """Draw the personal link of somebody who has just joined."""
    if st.session_state.get(_JOINED) != current_link():
        return
    with st.container(border=True, key="card-annotate-link"):
        st.markdown(t("annotate.task.link.new"))
        st.code(_address(), language=None, wrap_lines=True)
        st.button(t("annotate.task.link.kept"), key="annotate.link.kept", on_click=_link_kept)


def _address() -> str:
    return f"{st.context.url or ''}?link={current_link()}"


def _link_kept() -> None:
    st.session_state.pop(_JOINED, None)


def _unread(worker: Worker, state: LabellingState, labels: list[GivenLabel]) -> bool:
    """Return whether there are guidelines that this person has not labelled with, nor read."""
    if not worker.guidelines.strip():
        return False
    newest = worker.guidelines_version
    if not labels and not state.read and worker.started:
        # Who was given an item has read what there was then: nothing comes between them and a label
        # that is on its way again after the server was started anew.
        state.read = newest
    # Remembered, because a label may be taken back.
    state.read = max([state.read, *(one.guidelines for one in labels)])
    return newest > state.read


def _read_first(worker: Worker, state: LabellingState, t: Catalogue, *, changed: bool) -> None:
    section_title(t("annotate.label.guidelines"))
    if changed:
        words = t("annotate.task.guidelines.changed")
        show_html(notice(words, "guidelines-changed"), key="guidelines-changed")
    _guidelines(worker, t)
    word = "continue" if changed else "begin"
    st.button(
        t(f"annotate.task.{word}"),
        type="primary",
        key="annotate.begin",
        on_click=_have_read,
        args=(state, worker.guidelines_version),
    )


def _have_read(state: LabellingState, version: int) -> None:
    state.read = version


def _guidelines(worker: Worker, t: Catalogue) -> None:
    """Draw the guidelines as Markdown; HTML in them is shown as it was written."""
    text = worker.guidelines
    with st.container(key="annotate-guidelines"):
        st.markdown(without_images(text) if text.strip() else t("annotate.task.guidelines.none"))


def _item(worker: Worker, state: LabellingState, labels: list[GivenLabel], t: Catalogue) -> None:
    own = {one.item: one for one in labels}
    looked = own.get(-1 if state.looked is None else state.looked)
    newest = max(labels, key=lambda one: one.at, default=None)
    found = worker.own(looked.item) if looked is not None else worker.next()
    if isinstance(found, NothingToDo):
        _nothing(worker, found, newest, t)
        return
    progress, spec = worker.progress(), worker.spec
    total = progress.labelled + progress.skipped + progress.left
    at = progress.labelled + progress.skipped + (looked is None)
    undo = looked or newest
    hidden = found.hidden if looked is not None else None
    revealed = hidden is not None and (bool(hidden.verdicts) or hidden.judge is not None)
    data = label_data(
        found,
        t,
        scope=f"{worker.session_id[:16]}.{worker.annotator}",
        progress=LabellingProgress(max(1, min(at, total)), max(1, total)),
        label=None if looked is None else looked.label,
        last=None if newest is None else _last(worker, newest),
        lease=spec.lease,
        offer=spec.offer_spans,
        undo=None if undo is None else undo.item,
        can_reveal=looked is not None and not revealed and worker.can_reveal(looked.item),
        acknowledged=state.acknowledged,
        refused=state.refused,
        notice=state.notice,
    )
    show_labelling(data, key="annotate-item", on_request=partial(_asked, worker))


def _last(worker: Worker, newest: GivenLabel) -> Last:
    task: AssignedItem = worker.own(newest.item)
    return Last(
        newest.item,
        newest.label,
        short_piece(task.body),
        task.swapped,
        worker.can_reveal(newest.item),
    )


def _asked(worker: Worker, request: dict[str, Any]) -> None:
    """Carry out what the component asks for; called from its callback."""
    with remembered(_PAGE):
        require_link()
        handle(worker, request, standing_of(worker), messages())


def _do(worker: Worker, action: str, item: int) -> None:
    """Do what a button of the page asks for, as if the component had asked for it."""
    _asked(worker, {"action": action, "item": item, "client": uuid4().hex})


def _nothing(worker: Worker, found: NothingToDo, newest: GivenLabel | None, t: Catalogue) -> None:
    _refused(worker)
    section_title(t(f"annotate.task.{found.status}"))
    progress = worker.progress()
    wait = t("annotate.task.wait.note", count=found.others)
    said = wait if found.status == "wait" else t("annotate.task.done.note")
    so_far = t("annotate.task.so_far", count=integer(progress.labelled))
    time = t("annotate.task.time", time=duration(progress.seconds, t))
    words = tag("p.vs-answer", said), tag("p.vs-note", f"{so_far} · {time}")
    show_html(
        tag("div.vs-run.vs-stack", words, role="status", key="nothing"), key="annotate-nothing"
    )
    with st.container(horizontal=True, key="annotate-nothing-buttons"):
        if found.status == "wait":
            st.button(t("annotate.task.again"), key="annotate.again", type="primary")
        if newest is not None:
            st.button(
                t("annotate.task.undo_last"),
                key="annotate.undo",
                on_click=_do,
                args=(worker, "undo", newest.item),
            )
    draw_again(partial(_look_again, worker), _AGAIN)


def _refused(worker: Worker) -> None:
    """Tell by the page, where no item is shown, what became of the request before."""
    if words := standing_of(worker).notice:
        show_html(notice(words, "refused", role="status"), key="annotate-refused")


def _look_again(worker: Worker) -> None:
    with guarded(messages()("annotate.title"), key="again"):
        try:
            require_link()
            left = not isinstance(worker.next(), NothingToDo)
        except VeriscopeError:
            # Drawn anew, the page says what happened.
            left = True
        if left:
            st.rerun()


def _own(worker: Worker, labels: list[GivenLabel], t: Catalogue) -> None:
    if not labels:
        return
    fold = st.expander(
        t("annotate.task.own", count=integer(len(labels))),
        key="annotate.own",
        on_change="rerun",
    )
    draw_unfolded(fold, partial(_own_rows, worker, labels, t))


def _own_rows(worker: Worker, labels: list[GivenLabel], t: Catalogue) -> None:
    newest = sorted(labels, key=lambda one: one.at, reverse=True)
    limit = st.session_state.get("annotate.own.shown", _SHOWN)
    rows = [_own_label(worker, one) for one in newest[:limit]]
    show_html(own_labels(rows, t), key="own-labels", on_action=partial(_look, worker))
    if len(newest) > limit:
        st.button(t("runs.more"), key="annotate.own.more", on_click=_show_more)


def _own_label(worker: Worker, one: GivenLabel) -> OwnLabel:
    task = worker.own(one.item)
    return OwnLabel(one.item, task.body, one.label, task.swapped)


def _look(worker: Worker, action: Action) -> None:
    value = action["value"] or ""
    if value.isdecimal():
        _do(worker, "look", int(value))


def _show_more() -> None:
    shown = st.session_state.get("annotate.own.shown", _SHOWN)
    st.session_state["annotate.own.shown"] = shown + _SHOWN


def _closed(worker: Worker, t: Catalogue) -> None:
    """Draw what is left to see once a session is closed."""
    _refused(worker)
    section_title(t("annotate.task.closed"))
    labels = worker.labels()
    st.markdown(t("annotate.task.closed.note", count=integer(len(labels))))
    found = [
        Overruled(
            OwnLabel(item, (task := worker.own(item)).body, own, task.swapped), decision, note
        )
        for item, own, decision, note in worker.overruled()
    ]
    section_title(t("annotate.task.overruled"))
    if not found:
        st.markdown(t("annotate.task.overruled.none"))
        return
    st.caption(t("annotate.task.overruled.note", count=len(found), total=integer(len(labels))))
    show_html(overruled_labels(found, t), key="overruled")

"""The settings of a session: guidelines, overlap, who may join, its items, its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import streamlit as st

from app.engine import engine
from app.login import link_check, require_link
from app.page import (
    delete_button,
    draw_error,
    draw_unfolded,
    redraw_whole,
    remembered,
    section_title,
    show_html,
)
from app.screens.annotate.links import asking_button, close_session, open_session
from app.screens.annotate.make import (
    ItemSelection,
    chosen_rules,
    decoded,
    draw_items,
    draw_rules,
    edit_guidelines,
    forget_items,
)
from app.screens.runs import local_moment
from app.session import messages, owner
from components.annotate.sessions import label_text, size_view
from components.base.elements import notice
from components.base.html import shown, tag, without_images
from components.base.words import Catalogue, integer
from pipelines.annotation.formats import (
    export_csv,
    export_label_studio,
    export_precomputed_scores,
    export_ragtruth,
    export_ragtruth_sources,
    export_session,
    import_session,
)
from pipelines.annotation.sessions import Lead
from pipelines.annotation.sources import read_labels, session_items
from pipelines.annotation.tables import export_workbook
from pipelines.annotation.types import MOST_OVERLAP, TASKS, VERDICTS, ItemBody, Task, label_adapter
from pipelines.annotation.watching import ItemBrief, brief_of
from pipelines.errors import failure
from pipelines.evaluation.datasets.files import TABLE_ENDINGS
from pipelines.evaluation.results.workbook import EXCEL
from pipelines.store.annotations import StoredItem

# Carrying a session, or its labels, to other programs and back.

_EXCHANGE_ERRORS = "annotate-exchange"
_UPLOADS = "_annotate.imports"
_EXCHANGE_SAID = "_annotate.imported"
_MEGABYTES = 64
_LABELS = TABLE_ENDINGS
"""Files that hold labels of items, by their endings."""


def draw_exports(lead: Lead, t: Catalogue) -> None:
    """Draw a button for each form."""
    standing = lead.store.annotations.standing(lead.session_id)
    tasks: list[Task] = [*filter(standing.tasks.__contains__, TASKS)]
    st.caption(t("annotate.export.note"))
    forms: list[tuple[str, str, str, Callable[[], str | bytes]]] = [
        ("jsonl", "jsonl", "application/jsonl", partial(_joined, export_session, lead)),
        ("csv", "csv", "text/csv", partial(export_csv, lead)),
        ("xlsx", "xlsx", EXCEL, partial(export_workbook, lead)),
        ("label_studio", "json", "application/json", partial(export_label_studio, lead)),
    ]
    if "span" in tasks:
        for name, make in (
            ("ragtruth", export_ragtruth),
            ("ragtruth_sources", export_ragtruth_sources),
        ):
            forms.append((name, "jsonl", "application/jsonl", partial(_joined, make, lead)))
    with st.container(horizontal=True, key="annotate-exports"):
        for name, ending, mime, export in forms:
            words = t(f"annotate.export.{name}")
            meaning = t(f"annotate.export.{name}.help")
            _button(lead, name, ending, mime, export, words, meaning)
        for task in tasks:
            words = t("annotate.export.inspect", task=t(f"annotate.task.{task}"))
            export = partial(_scores, lead, task)
            meaning = t("annotate.export.inspect.help")
            name = f"inspect-{task}"
            _button(lead, name, "jsonl", "application/jsonl", export, words, meaning)


def _button(
    lead: Lead,
    name: str,
    ending: str,
    mime: str,
    export: Callable[[], str | bytes],
    words: str,
    meaning: str,
) -> None:
    st.download_button(
        words,
        # The file is made when it is asked for, which may be long after the page was drawn.
        data=partial(_checked, link_check(), export),
        file_name=f"veriscope-session-{lead.session_id[:8]}-{name}.{ending}",
        mime=mime,
        key=f"annotate.export.{name}",
        help=meaning,
        on_click="ignore",
    )


def _checked(check: Callable[[], object], export: Callable[[], str | bytes]) -> str | bytes:
    check()
    return export()


def _joined(export: Callable[[Lead], Any], lead: Lead) -> str:
    return "".join(export(lead))


def _scores(lead: Lead, task: Task) -> str:
    return "".join(export_precomputed_scores(lead, task))


def draw_import(lead: Lead, t: Catalogue) -> None:
    """Draw the import of labels from a file, as those of people who are imported."""
    st.caption(t("annotate.import.note"))
    place = f"annotate.import.labels.{lead.session_id}"
    _uploader(place, t("annotate.import.labels"), partial(_import_labels, lead, place), *_LABELS)
    draw_error(_EXCHANGE_ERRORS)
    if said := st.session_state.pop(_EXCHANGE_SAID, ""):
        show_html(notice(said, "imported", role="status"), key="annotate-imported")


def draw_import_session(t: Catalogue) -> None:
    """Draw the import of a whole session that was exported here, taken over as it is."""
    st.caption(t("annotate.import.session.note"))
    place = "annotate.import.session"
    _uploader(place, t("annotate.import.session"), partial(_import_session, place), "jsonl")
    draw_error(_EXCHANGE_ERRORS)


def _uploader(place: str, words: str, take: Callable[[], None], *kinds: str) -> None:
    st.file_uploader(
        words,
        type=list(kinds),
        key=f"{place}.{st.session_state.get(_UPLOADS, 0)}",
        on_change=take,
        max_upload_size=_MEGABYTES,
    )


def _taken(place: str) -> tuple[str, bytes] | None:
    """Return the name and the bytes of what was uploaded; the next file has an uploader of
    its own.
    """
    number = st.session_state.get(_UPLOADS, 0)
    upload: Any = st.session_state.get(f"{place}.{number}")
    if upload is None:
        return None
    st.session_state[_UPLOADS] = number + 1
    return upload.name, upload.getvalue()


def _import_labels(lead: Lead, place: str) -> None:
    with remembered(_EXCHANGE_ERRORS):
        file = _taken(place)
        if file is None:
            return
        t = messages()
        items = session_items(lead)
        found = read_labels(*file, items)
        require_link()
        new = sum(lead.import_labels(name, labels) for name, labels in found.items())
        known = {item.key for item in items}
        keys = {one.key for labels in found.values() for one in labels}
        st.session_state[_EXCHANGE_SAID] = t(
            "annotate.import.done",
            count=integer(new),
            people=integer(len(found)),
            unknown=integer(len(keys - known)),
        )


def _import_session(place: str) -> None:
    with remembered(_EXCHANGE_ERRORS):
        file = _taken(place)
        if file is None:
            return
        store = engine().service.store
        lead = import_session(store, owner(), decoded(file[1]).split("\n"))
        open_session(lead.session_id)


# The control items of a session: items whose right label is known, added and removed.

_GOLD_ERRORS = "annotate-gold"
_MOST = 100
"""Items that are listed at once; a search finds the others."""


def draw_gold(lead: Lead, t: Catalogue) -> None:
    """Draw what there is, and the controls that add one."""
    draw_error(_GOLD_ERRORS)
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
        t("annotate.gold.add"),
        key="annotate.gold.add",
        on_click=_add_gold,
        args=(lead, number, body),
    )


def _add_gold(lead: Lead, number: int, body: ItemBody) -> None:
    with remembered(_GOLD_ERRORS):
        require_link()
        lead.set_gold(number, _label(number, body))
        if lead.spec.without_gold:
            lead.change(without_gold=False)


def _remove(lead: Lead, number: int) -> None:
    with remembered(_GOLD_ERRORS):
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


_ERRORS = "annotate-settings"
_SAID = "_annotate.said"
_KEPT: Any = {"persist_state": "session"}


def draw_settings(lead: Lead, t: Catalogue) -> None:
    """Draw the part of the page."""
    draw_error(_ERRORS)
    _draw_said(lead)
    section_title(t("annotate.guidelines"))
    _guidelines(lead, t)
    section_title(t("annotate.settings.work"))
    _overlap(lead, t)
    folds = {
        "rules": _rules,
        "gold": draw_gold,
        "add": _add,
        "import": draw_import,
    }
    for name, draw in folds.items():
        fold = st.expander(
            t(f"annotate.settings.{name}"),
            key=f"annotate.{name}.{lead.session_id}",
            on_change="rerun",
        )
        draw_unfolded(fold, partial(draw, lead, t))
    section_title(t("annotate.settings.export"))
    draw_exports(lead, t)
    section_title(t("annotate.settings.end"))
    _end(lead, t)


@contextmanager
def _done(lead: Lead, words: str = "") -> Iterator[None]:
    """Tell on the page what is done inside, until something else is done. Called from a
    callback.
    """
    st.session_state.pop(_SAID, None)
    with remembered(_ERRORS):
        yield
        if words:
            st.session_state[_SAID] = lead.session_id, words


def forget_said() -> None:
    """Remove the message about the last change of the settings."""
    st.session_state.pop(_SAID, None)


def _draw_said(lead: Lead) -> None:
    """Draw what was done last."""
    session, words = st.session_state.get(_SAID, ("", ""))
    if session == lead.session_id:
        show_html(notice(words, "said", role="status"), key="annotate-said")


def _guidelines(lead: Lead, t: Catalogue) -> None:
    versions = lead.store.annotations.guidelines(lead.session_id)
    newest = versions[-1]
    st.caption(t("annotate.guidelines.change.note", version=newest.version))
    key = f"annotate.edit.{lead.session_id}.{newest.version}"
    if key not in st.session_state:
        st.session_state[key] = newest.text
    text = edit_guidelines(key, t)
    st.button(
        t("annotate.guidelines.save", version=newest.version + 1),
        key="annotate.guidelines.save",
        disabled=text == newest.text,
        on_click=_save_guidelines,
        args=(lead, text, t("annotate.guidelines.saved", version=newest.version + 1)),
    )
    if len(versions) > 1:
        fold = st.expander(
            t("annotate.guidelines.earlier", count=len(versions) - 1),
            key=f"annotate.versions.{lead.session_id}",
            on_change="rerun",
        )
        draw_unfolded(fold, partial(_versions, lead, t))


def _versions(lead: Lead, t: Catalogue) -> None:
    earlier = lead.store.annotations.guidelines(lead.session_id)[:-1]
    chosen = st.selectbox(
        t("annotate.guidelines.which"),
        list(reversed(earlier)),
        key=f"annotate.version.{lead.session_id}",
        format_func=lambda one: t(
            "annotate.guidelines.of", version=one.version, when=local_moment(one.created)
        ),
    )
    with st.container(border=True, key="card-guidelines-version"):
        st.markdown(without_images(chosen.text) or t("annotate.guidelines.none"))


def _save_guidelines(lead: Lead, text: str, said: str) -> None:
    with _done(lead, said):
        require_link()
        lead.set_guidelines(text)


def _overlap(lead: Lead, t: Catalogue) -> None:
    now = lead.session.overlap
    left, right = st.columns([2, 3], gap="medium", vertical_alignment="bottom")
    with left:
        overlap = int(
            st.number_input(
                t("annotate.overlap"),
                min_value=1,
                max_value=MOST_OVERLAP,
                value=now,
                key=f"annotate.overlap.{lead.session_id}.{now}",
                help=t("annotate.overlap.help"),
            )
        )
    with right:
        st.button(
            t("annotate.overlap.save"),
            key="annotate.overlap.save",
            disabled=overlap == now,
            on_click=_save_overlap,
            args=(lead, overlap, t("annotate.overlap.saved", count=overlap)),
        )
    st.caption(t("annotate.overlap.change.note"))


def _save_overlap(lead: Lead, overlap: int, said: str) -> None:
    with _done(lead, said):
        require_link()
        lead.set_overlap(overlap)


def _rules(lead: Lead, t: Catalogue) -> None:
    place = f"annotate.rules.{lead.session_id}"
    spec = lead.spec
    draw_rules(place, spec, t, gold=not spec.without_gold)
    st.button(
        t("action.save"),
        key="annotate.rules.save",
        on_click=_save_rules,
        args=(lead, place, t("annotate.rules.saved")),
    )


def _save_rules(lead: Lead, place: str, said: str) -> None:
    with _done(lead, said):
        require_link()
        lead.change(**chosen_rules(place, lead.spec))


def _add(lead: Lead, t: Catalogue) -> None:
    place = f"annotate.add.{lead.session_id}"
    st.caption(t("annotate.add.note"))
    chosen = draw_items(place, t)
    if chosen is None:
        return
    counts = chosen.items.counts()
    own = lead.spec.tasks
    picked = st.pills(
        t("annotate.make.which"),
        list(counts),
        selection_mode="multi",
        default=[task for task in counts if task in own],
        format_func=lambda task: t(f"annotate.task.{task}"),
        key=f"{place}.tasks.{'-'.join(counts)}",
        **_KEPT,
    )
    tasks: list[Task] = [*filter(picked.__contains__, counts)]
    if counts:
        show_html(size_view(counts, tasks, lead.session.overlap, t), key="annotate-add-size")
    st.button(
        t("annotate.add.go"),
        key="annotate.add.go",
        disabled=not tasks,
        on_click=_add_items,
        args=(lead, place, chosen, tasks, t),
    )


def _add_items(
    lead: Lead, place: str, chosen: ItemSelection, tasks: list[Task], t: Catalogue
) -> None:
    with _done(lead):
        require_link()
        own = lead.spec.tasks
        if more := set(tasks) - set(own):
            lead.change(tasks=tuple(task for task in TASKS if task in {*own, *more}))
        count = lead.add_items(chosen.items.chosen(tasks))
        forget_items(place)
        st.session_state[place] = False
        said = t("annotate.add.done", count=integer(count))
        st.session_state[_SAID] = lead.session_id, said


def _end(lead: Lead, t: Catalogue) -> None:
    stored = lead.session
    closed = stored.closed is not None
    st.caption(t("annotate.reopen.note" if closed else "annotate.close.note"))
    with st.container(horizontal=True, key="annotate-end"):
        st.button(
            t("annotate.reopen" if closed else "annotate.close"),
            key="annotate.close",
            on_click=_close,
            args=(lead, not closed),
        )
        if stored.owner == owner():
            delete_button(stored.id, t("annotate.delete.sure"), partial(_delete, lead))


def _close(lead: Lead, closed: bool) -> None:
    with _done(lead):
        require_link()
        lead.close(closed=closed)


def _delete(lead: Lead) -> None:
    with remembered("annotate"):
        lead.store.annotations.delete(lead.session_id, owner())
        close_session()
    redraw_whole()

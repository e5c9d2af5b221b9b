"""The progress of an annotation session: labels, agreement, people, and what the lead must read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from components.annotation import alpha_cell, coefficient_text, percent, share_text
from components.elements import Column, TableRow, button, fold, notice, sign, table
from components.glossary import means_list
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue, duration, integer, two_digits
from pipelines.annotation.progress import PersonProgress
from pipelines.annotation.types import SessionSpec
from pipelines.annotation.watching import Note, NoteKind, SessionWatch, TaskWatch

MOST_NOTES = 20
"""Notes of one kind that are shown."""

_KINDS: tuple[NoteKind, ...] = ("stuck", "gap", "skip", "comment")


def progress_view(
    watch: SessionWatch, spec: SessionSpec, t: Catalogue, *, opens_runs: bool = False
) -> str:
    """Return the whole view; with `opens_runs` each item has a button that opens its run."""
    return tag(
        "div.vs-run.vs-session",
        _whole(watch, t),
        _tasks(watch, t),
        _people(watch.progress.people, spec, t),
        _notes(watch.notes, t, opens_runs=opens_runs),
        key="session-progress",
    )


def _section(name: str, title: str, *content: Child) -> Html:
    heading = tag("h2.vs-session-title", title, id=f"session-{name}")
    return tag("section.vs-stack", heading, *content, aria_labelledby=f"session-{name}", key=name)


def _whole(watch: SessionWatch, t: Catalogue) -> Html:
    """Return how many labels there are, and how many labels items still lack."""
    given = sum(one.given for one in watch.tasks)
    wanted = sum(one.wanted for one in watch.tasks)
    share = given / wanted if wanted else 0.0
    said = t(
        "annotate.progress.labels",
        given=integer(given),
        wanted=integer(wanted),
        percent=percent(share),
    )
    return _section(
        "labels",
        t("annotate.progress.title"),
        tag("p.vs-session-lead.vs-num", said, role="status"),
        _needs(watch.progress.needs, watch.overlap, t),
        _lacking(watch, t),
    )


def _lacking(watch: SessionWatch, t: Catalogue) -> Html | None:
    """Return how many people have to join before any item can have its labels."""
    if not watch.lacking:
        return None
    said = t("annotate.lacking", count=integer(watch.lacking), overlap=watch.overlap)
    return notice(said, "lacking")


def _needs(needs: Mapping[int, int], overlap: int, t: Catalogue) -> Html | None:
    """Return a bar with a piece for each number of missing labels, the finished ones first,
    and a list.
    """
    total = sum(needs.values())
    if not total:
        return None
    pieces, lines = [], []
    for missing, count in sorted(needs.items()):
        if not count:
            continue
        level = round(4 * missing / overlap) if overlap else 0
        css = f"vs-needs-{min(4, max(1, level)) if missing else 0}"
        pieces.append(tag(f"span.{css}", style=f"flex-grow:{count}", key=f"needs-{missing}"))
        words = (
            t("annotate.needs.more", count=missing, items=integer(count))
            if missing
            else t("annotate.needs.none", items=integer(count))
        )
        lines.append(tag("li", tag(f"span.vs-needs-key.{css}", aria_hidden=True), words))
    return tag(
        "div.vs-needs",
        tag("div.vs-needs-bar", pieces, aria_hidden=True),
        tag("ul.vs-num", lines),
        key="needs",
    )


def _tasks(watch: SessionWatch, t: Catalogue) -> Html:
    columns = [
        Column(t("annotate.column.task")),
        Column(t("annotate.column.labels"), "vs-num"),
        Column(t("annotate.column.finished"), "vs-num"),
        Column(t("annotate.column.gold"), "vs-num"),
        Column(t("annotate.column.agreement"), "vs-num vs-session-wide"),
        Column(t("annotate.column.then"), "vs-num vs-session-wide"),
    ]
    rows = (TableRow(f"task-{one.task}", _task_cells(one, t)) for one in watch.tasks)
    body = table(t("annotate.agreement.title"), columns, rows, row_names=True)
    folded = [
        fold(
            t("annotate.rounds", task=t(f"annotate.task.{one.task}")),
            _rounds(one, t),
            key=f"rounds-{one.task}",
        )
        for one in watch.tasks
        if len(one.rounds) > 1
    ]
    return _section(
        "agreement",
        t("annotate.agreement.title"),
        body,
        tag("p.vs-note", t("annotate.agreement.help")),
        means_list(["alpha"], t),
        *folded,
    )


def _task_cells(one: TaskWatch, t: Catalogue) -> list[Child]:
    of = t("annotate.of", done=integer(one.given), total=integer(one.wanted))
    bar = tag(
        "progress",
        max=1,
        value=f"{one.given / one.wanted:.4f}" if one.wanted else "0",
        aria_label=t(f"annotate.task.{one.task}"),
    )
    return [
        t(f"annotate.task.{one.task}"),
        tag("span.vs-session-bar", of, bar),
        t("annotate.of", done=integer(one.finished), total=integer(one.items)),
        integer(one.gold),
        alpha_cell(one.now, t),
        _then(one, t),
    ]


def _then(one: TaskWatch, t: Catalogue) -> Html:
    """Return how much narrower the missing labels are expected to make the interval."""
    missing = one.wanted - one.given
    if one.half is None:
        return tag("span.vs-note", t("annotate.then.unknown"))
    if one.half_then is None:
        return tag("span.vs-note", t("annotate.then.done", half=two_digits(one.half)))
    said = t(
        "annotate.then",
        count=integer(missing),
        half=two_digits(one.half),
        then=two_digits(one.half_then),
    )
    return tag("span.vs-note", said)


def _rounds(one: TaskWatch, t: Catalogue) -> Html:
    columns = [
        Column(t("annotate.column.after"), "vs-num"),
        Column(t("annotate.column.so_far"), "vs-num"),
        Column(t("annotate.column.recent"), "vs-num"),
    ]
    rows = (
        TableRow(
            f"round-{one.task}-{each.labels}",
            [
                t("annotate.labels.count", count=integer(each.labels)),
                coefficient_text(each.so_far, t),
                coefficient_text(each.recent, t),
            ],
        )
        for each in one.rounds
    )
    return table(t("annotate.rounds.caption"), columns, rows)


def _people(people: Sequence[PersonProgress], spec: SessionSpec, t: Catalogue) -> Html:
    title = t("annotate.people.title")
    if not people:
        return _section("people", title, tag("p.vs-note", t("annotate.people.none")))
    fast = t("annotate.column.fast", seconds=two_digits(spec.too_fast))
    names = ("person", "labels", "rate", "time", "median", "right", "", "changed", "skipped")
    columns = [
        Column(fast if not name else t(f"annotate.column.{name}"), "vs-num" if at else None)
        for at, name in enumerate((*names, "overruled"))
    ]
    rows = (TableRow(f"person-{one.number}", _person_cells(one, t)) for one in people)
    wide = tag(
        "div.vs-evaluation-scroll",
        table(title, columns, rows, row_names=True),
        role="region",
        aria_label=title,
        tabindex=0,
    )
    return _section("people", title, wide, tag("p.vs-note", t("annotate.people.help")))


def _person_cells(one: PersonProgress, t: Catalogue) -> list[Child]:
    kind = None if one.kind == "person" else tag("span.vs-note", t(f"annotate.who.{one.kind}"))
    rate = 3600 * one.labelled / one.seconds if one.seconds else None
    median = "–" if one.median_seconds is None else duration(one.median_seconds, t)
    fast: Child = integer(one.fast)
    if one.fast:
        fast = tag("span", sign("!"), " ", integer(one.fast))
    return [
        tag("span.vs-estimate-cell", tag("span", shown(one.name), dir="auto"), kind),
        integer(one.labelled),
        "–" if rate is None else two_digits(rate),
        duration(one.seconds, t) if one.seconds else "–",
        median,
        share_text(one.gold, t),
        fast,
        integer(one.changed),
        integer(one.skipped),
        share_text(one.overruled, t),
    ]


def _notes(notes: Sequence[Note], t: Catalogue, *, opens_runs: bool) -> Html:
    title = t("annotate.notes.title")
    if not notes:
        return _section("notes", title, tag("p.vs-note", t("annotate.notes.none")))
    parts: list[Child] = []
    for kind in _KINDS:
        own = [one for one in notes if one.kind == kind]
        if not own:
            continue
        lines = [_note(one, t, opens_runs=opens_runs) for one in own[:MOST_NOTES]]
        more = len(own) - MOST_NOTES
        parts.append(
            tag(
                "div.vs-stack",
                tag("h3.vs-label", t(f"annotate.notes.{kind}", count=integer(len(own)))),
                tag("p.vs-note", t(f"annotate.notes.{kind}.help")),
                tag("ul.vs-session-notes", lines),
                tag("p.vs-note", t("annotate.more", count=integer(more))) if more > 0 else None,
                key=f"notes-{kind}",
            )
        )
    return _section("notes", title, *parts)


def _note(one: Note, t: Catalogue, *, opens_runs: bool) -> Html:
    item = one.item
    head = t("annotate.item", number=item.number + 1, task=t(f"annotate.task.{item.task}"))
    said: Child = None
    if one.text:
        who = tag("span.vs-strong", shown(one.who), t("label.separator")) if one.who else None
        said = tag("p", who, tag("span", shown(one.text), dir="auto"))
    elif one.who:
        said = tag("p", tag("span.vs-strong", shown(one.who)))
    opens = None
    if opens_runs and item.run:
        opens = button(t("annotate.open_run"), "open_run", item.run, of=head)
    return tag(
        "li",
        tag("p.vs-note", head, t("label.separator"), tag("span", shown(item.text), dir="auto")),
        said,
        opens,
    )

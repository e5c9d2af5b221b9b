"""Annotation sessions in lists and headings: what one is, how far it is, its links and versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from components.base.elements import (
    Column,
    Status,
    TableRow,
    button,
    fold,
    notice,
    sign,
    status_badge,
    table,
)
from components.base.html import Child, Html, shown, tag
from components.base.words import Catalogue, comparison, duration, integer, means_list, two_digits
from components.evaluate.table import estimate_text
from pipelines.annotation.types import TASKS, Label, SessionSpec, SpanLabel, Task
from pipelines.annotation.watching import Note, NoteKind, PersonProgress, SessionWatch, TaskWatch
from pipelines.evaluation.statistics.agreement import Coefficient, Share
from pipelines.evaluation.statistics.estimates import Estimate
from pipelines.store.annotations import Link, SessionStanding, StoredSession

TENTATIVE, RELIABLE = 0.667, 0.8
"""Krippendorff (2004, chapter 11): below the first of these values of alpha no conclusions should
be drawn, from the second on labels count as reliable, between them conclusions are tentative."""

Reliability = Literal["unreliable", "tentative", "reliable"]
RELIABILITY_SIGNS: dict[Reliability, str] = {"unreliable": "✗", "tentative": "?", "reliable": "✓"}

LinkState = Literal["valid", "expired", "withdrawn"]


class Agreed(NamedTuple):
    """How far people agree on one task of a session, as its list shows it."""

    task: Task
    alpha: Coefficient


def session_badge(standing: SessionStanding, t: Catalogue) -> Html:
    """Return the state of a session as a badge: closed, waiting for people, in progress or
    labelled.
    """
    if standing.closed is not None:
        return status_badge("done", t, t("annotate.state.closed"))
    if standing.wanted and standing.given >= standing.wanted:
        return status_badge("done", t, t("annotate.state.labelled"))
    state: Status = "running" if standing.people else "waiting"
    return status_badge(state, t, t(f"annotate.state.{state}"))


def session_card(
    stored: StoredSession,
    standing: SessionStanding,
    agreed: Agreed | None,
    when: str,
    t: Catalogue,
) -> str:
    """Return a session in the list: its name, its state, items, people, how much is done,
    agreement.
    """
    facts = [
        t("annotate.items.count", count=integer(standing.items)),
        t("annotate.people.count", count=integer(standing.people)),
        t("annotate.done.share", percent=percent(standing.share)),
    ]
    if agreed is not None and agreed.alpha.value is not None:
        said = t(f"annotate.task.{agreed.task}")
        facts.append(t("annotate.agreement.short", task=said, value=two_digits(agreed.alpha.value)))
    facts.append(when)
    return tag(
        "div.workbench-run",
        tag("p.workbench-run-question", shown(stored.name), dir="auto"),
        tag(
            "p.workbench-run-facts", session_badge(standing, t), " · ", " · ".join(map(str, facts))
        ),
    )


def about_view(standing: SessionStanding, spec: SessionSpec, t: Catalogue) -> str:
    """Return what a session asks for, in a line or two under its name."""
    tasks = (
        t("annotate.task.count", task=t(f"annotate.task.{task}"), count=integer(one.items))
        for task in TASKS
        if (one := standing.tasks.get(task)) is not None
    )
    facts = [
        t("annotate.overlap.count", count=standing.overlap),
        t("annotate.gold.count", count=integer(standing.gold)),
        t(f"annotate.show.{spec.show}.short"),
        t("annotate.guidelines.version", version=standing.guidelines),
    ]
    return tag(
        "div.vs-run.vs-session-about",
        tag("p", session_badge(standing, t), " · ", t("list.separator").join(tasks)),
        tag("p.vs-note", " · ".join(facts)),
        key="session-about",
    )


def percent(share: float) -> str:
    """Return a share in [0, 1] as whole percent; 100 only for all, and 0 only for none."""
    if 0 < share < 0.01:
        return "<1"
    return f"{min(99, round(100 * share)) if share < 1 else 100}"


def state_of(link: Link, now: datetime) -> LinkState:
    """Return whether a link still works."""
    if link.revoked is not None:
        return "withdrawn"
    return "expired" if link.expires is not None and link.expires <= now else "valid"


def link_line(
    link: Link, state: LinkState, whose: str, made: str, expires: str, t: Catalogue
) -> str:
    """Return a link in the list: what it allows, for whom, when it was made and when it ends."""
    status: Status = "done" if state == "valid" else "cancelled"
    facts = [t("annotate.link.made", when=made)]
    if state == "valid":
        facts.append(
            t("annotate.link.expires", when=expires) if expires else t("annotate.link.forever")
        )
    role = t(f"annotate.link.{link.role}")
    return tag(
        "div.workbench-run",
        tag("p.workbench-run-question", role, f": {whose}" if whose else None),
        tag(
            "p.workbench-run-facts",
            status_badge(status, t, t(f"annotate.link.{state}")),
            " · ",
            " · ".join(facts),
        ),
    )


def problems_view(problems: Sequence[str], t: Catalogue, most: int = 5) -> str:
    """Return why some sources gave no items; "" where all did."""
    if not problems:
        return ""
    lines = [tag("li", shown(one)) for one in problems[:most]]
    if len(problems) > most:
        lines.append(tag("li", t("annotate.more", count=integer(len(problems) - most))))
    said = t("annotate.make.left_out", count=integer(len(problems)))
    return tag(
        "div.vs-run",
        tag("div.vs-notice", tag("p", said), tag("ul", lines), role="note", key="left-out"),
    )


def size_view(counts: Mapping[Task, int], tasks: Sequence[Task], overlap: int, t: Catalogue) -> str:
    """Return the tasks with what each asks and how many items it has, and the size of a session of
    `tasks`, which are marked.
    """
    lines = [
        tag(
            "li" if task in tasks else "li.vs-session-off",
            tag("span.vs-strong", sign("✓" if task in tasks else "–"), t(f"annotate.task.{task}")),
            tag("span.vs-num", t("annotate.items.count", count=integer(count))),
            tag("span.vs-note", t(f"annotate.task.{task}.help")),
            key=f"size-{task}",
        )
        for task, count in counts.items()
    ]
    items = sum(counts.get(task, 0) for task in tasks)
    said = t(
        "annotate.make.size",
        items=integer(items),
        overlap=overlap,
        count=integer(items * overlap),
    )
    return tag(
        "div.vs-run.vs-session-size",
        tag("ul", lines),
        tag("p.vs-strong.vs-num", said) if items else None,
        key="session-size",
    )


def collecting_view(done: int, total: int, t: Catalogue) -> str:
    """Return how far the reading of items is."""
    bar = tag("progress", max=1, value=f"{done / total:.4f}" if total else None)
    said = t("annotate.make.reading", done=integer(done), total=integer(total))
    return tag(
        "div.vs-run.vs-evaluation-progress", bar, tag("p.vs-note.vs-num", said), role="status"
    )


def empty_view(t: Catalogue) -> str:
    """Return what the page is for, before there is a session."""
    steps = ("items", "invite", "label", "decide", "results")
    return tag(
        "div.vs-run.vs-session-empty",
        tag("p", t("annotate.empty")),
        tag(
            "ol",
            (
                tag(
                    "li",
                    tag("span.vs-strong", t(f"annotate.empty.{step}")),
                    tag("span", t(f"annotate.empty.{step}.note")),
                )
                for step in steps
            ),
        ),
    )


def coefficient_text(found: Coefficient, t: Catalogue) -> str:
    """Return a text such as "0.62 [0.40, 0.80]", the number alone without an interval, a dash
    without a number.
    """
    estimate = Estimate(value=found.value, low=found.low, high=found.high, n=found.n)
    return estimate_text(estimate, t)


def share_text(found: Share, t: Catalogue) -> str:
    """Return a text such as "0.83 [0.55, 0.95] of 12"; a dash where there is none."""
    if found.value is None:
        return "–"
    estimate = Estimate(value=found.value, low=found.low, high=found.high, n=found.n)
    return t("annotate.share", value=estimate_text(estimate, t), n=integer(found.n))


def reliability_level(alpha: float) -> Reliability:
    """Return how reliable labels with this alpha are, by Krippendorff's thresholds."""
    if alpha >= RELIABLE:
        return "reliable"
    return "tentative" if alpha >= TENTATIVE else "unreliable"


def alpha_cell(found: Coefficient, t: Catalogue) -> Html:
    """Return Krippendorff's alpha with its interval, how many items it is of, and what follows."""
    if found.value is None:
        said = t(f"annotate.alpha.{found.why or 'no_items'}")
        return tag("span.vs-estimate-cell", tag("span", "–"), tag("span.vs-note", said))
    level = reliability_level(found.value)
    threshold = TENTATIVE if level == "unreliable" else RELIABLE
    mark = sign(RELIABILITY_SIGNS[level])
    compared = " ".join(comparison(found.value, threshold)).replace(">", "≥")
    return tag(
        "span.vs-estimate-cell",
        tag("span.vs-estimate.vs-strong", mark, " ", coefficient_text(found, t)),
        tag("span.vs-note", t(f"annotate.alpha.{level}", compared=compared)),
        tag("span.vs-note", t("annotate.alpha.n", count=integer(found.n))),
    )


def label_text(label: Label, text: str, t: Catalogue) -> str:
    """Return a label in words; `text` is that of its item, from which spans are quoted."""
    if not isinstance(label, SpanLabel):
        return t(f"annotate.verdict.{label.task}.{label.verdict}")
    if not label.spans:
        return t("annotate.label.no_spans")
    pieces = (f"“{text[one.start : one.end]}”" for one in label.spans)
    return t("list.separator").join(pieces)


def closed_notice(t: Catalogue) -> str:
    """Return the notice that nobody can label any more."""
    return notice(t("annotate.closed.note"), "closed")


# The progress of an annotation session: labels, agreement, people, and what the lead must read.

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

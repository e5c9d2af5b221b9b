"""Annotation sessions in lists and headings: what one is, how far it is, its links and versions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Literal, NamedTuple

from components.elements import Status, notice, sign, status_badge
from components.evaluation_numbers import estimate_text
from components.markup import Html, shown, tag
from components.messages import Catalogue, comparison, integer, two_digits
from pipelines.annotation.types import TASKS, Label, SessionSpec, SpanLabel, Task
from pipelines.evaluation.statistics.agreement import Coefficient, Share
from pipelines.evaluation.statistics.resampling import Estimate
from pipelines.store.annotation_links import Link
from pipelines.store.annotation_lists import SessionStanding
from pipelines.store.annotation_records import StoredSession

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

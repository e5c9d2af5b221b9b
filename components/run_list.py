"""A line of the list of runs: question, verdicts, calls and time, and its owner's labels."""

from __future__ import annotations

from typing import get_args

from components.elements import Status, status_badge, verdict_badge
from components.markup import Child, Html, shown, tag
from components.messages import Catalogue, duration, named
from pipelines.run.events import Verdict
from pipelines.store import RunSummary

_NOTE = 200
"""Characters of a note that the list shows."""


def run_line(run: RunSummary, when: str, t: Catalogue) -> Html:
    """Return the run in a few lines; `when` is the moment it began, in the reader's own time."""
    status: Status = "done" if run.status == "finished" else run.status
    judged = dict(run.findings)
    facts = [
        t("list.separator").join(named("method", name, t) for name in run.methods),
        when,
        duration(run.duration, t),
        t("counter.calls", count=run.model_calls),
        *([t("runs.interrupted")] if run.reason == "interrupted" else []),
    ]
    verdicts = [
        tag("span.workbench-run-verdict", named("method", name, t), " ", _badge(judged[name], t))
        for name in run.methods
        if name in judged
    ]
    return tag(
        "div.workbench-run",
        tag("p.workbench-run-question", shown(run.title), dir="auto"),
        run.name and tag("p.workbench-run-facts", shown(run.question), dir="auto"),
        tag("p.workbench-run-facts", status_badge(status, t), " · ", " · ".join(facts)),
        verdicts and tag("p.workbench-run-verdicts", verdicts),
        run.tags and tag("p.vs-chips", (tag("span.vs-chip", one) for one in run.tags)),
        run.note and tag("p.workbench-run-note", _shortened(run.note), dir="auto"),
    )


def _badge(verdict: str, t: Catalogue) -> Child:
    # A run of a newer release may hold a verdict that this one does not know.
    return next((verdict_badge(one, t) for one in get_args(Verdict) if one == verdict), verdict)


def _shortened(text: str) -> str:
    return text if len(text) <= _NOTE else f"{text[:_NOTE].rstrip()}…"

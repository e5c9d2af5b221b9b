"""The head of the public page, and the note for visitors who wait."""

from __future__ import annotations

from collections.abc import Mapping

from components.elements import fold, notice
from components.markup import Html, tag
from components.messages import Catalogue, duration
from components.models import judge_quality
from pipelines.engine.admission import Turn
from pipelines.run.spec import ModelSpec


def space_head(
    models: Mapping[str, ModelSpec],
    t: Catalogue,
    *,
    max_runs: int,
    seconds: float,
    hours: float,
    failed: bool = False,
) -> str:
    """The name, what it is, and in one line who answers here and how good they are.

    `max_runs` are the runs that go on at a time, `seconds` what each may take, `hours` how long it
    is kept. `failed` says that better models were wanted and could not be fetched.
    """
    main = models["main"]
    judge = next((m for m in models.values() if m.kind == "judge"), None)
    limits = t("space.limits", max_runs=max_runs, seconds=f"{seconds:g}", hours=f"{hours:g}")
    facts = fold(
        t.first(f"space.model.{main.kind}", "space.model", name=main.name),
        judge_quality(judge.name, t) if judge else None,
        tag("p", t("space.problem")) if failed else None,
        tag("p", limits),
    )
    title = tag("h1.vs-title", t("app.name"))
    return tag("header.vs-space-head", title, tag("p", t("app.tagline")), facts, key="head")


def queue_note(turn: Turn, t: Catalogue) -> Html:
    """How many are before, and how long that may take."""
    before = turn.before or 0
    words = t("space.queue", count=before) if before else t("space.queue.next")
    if turn.wait is not None:
        words += " " + t("space.queue.wait", value=duration(turn.wait, t))
    return notice(words, "queue", role="status")

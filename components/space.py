"""The head of the public page, and the note for visitors who wait."""

from __future__ import annotations

from collections.abc import Mapping

from components.elements import notice
from components.markup import Html, tag
from components.messages import Catalogue, duration
from components.models import judge_quality
from pipelines.engine.admission import Turn
from pipelines.run.spec import ModelSpec

__all__ = ["queue_note", "space_head"]


def space_head(
    models: Mapping[str, ModelSpec],
    t: Catalogue,
    *,
    places: int,
    seconds: float,
    hours: float,
    failed: bool = False,
) -> str:
    """The name, what it is, and in one line who answers here and how good they are.

    `places` are the runs that go on at a time, `seconds` what each may take, `hours` how long it is
    kept. `failed` says that better models were wanted and could not be fetched.
    """
    main = models["main"]
    judge = next((m for m in models.values() if m.kind == "judge"), None)
    quality = judge_quality(judge.name, t) if judge else None
    return tag(
        "header",
        tag("h1", t("app.name"), class_="vs-title"),
        tag("p", t("app.tagline")),
        tag(
            "details",
            tag("summary", t.first(f"space.model.{main.kind}", "space.model", name=main.name)),
            quality,
            tag("p", t("space.problem")) if failed else None,
            tag(
                "p",
                t("space.limits", places=places, seconds=f"{seconds:g}", hours=f"{hours:g}"),
            ),
            class_="vs-details",
        ),
        class_="vs-space-head",
        data_key="head",
    )


def queue_note(turn: Turn, t: Catalogue) -> Html:
    """How many are before, and how long that may take."""
    before = turn.before or 0
    place = t("space.queue", count=before) if before else t("space.queue.next")
    if turn.wait is None:
        return notice(place, "queue", role="status")
    wait = t("space.queue.wait", value=duration(turn.wait, t))
    return notice(f"{place} {wait}", "queue", role="status")

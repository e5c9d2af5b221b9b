"""The guided tour: what it points at on which page, and in which order. The script is in assets."""

from __future__ import annotations

from typing import Any, NamedTuple

from components.base.words import Catalogue
from pipelines.samples.walkthroughs import Walkthrough, walkthroughs

METHOD = "drad"
"""The method whose verdict and correction the tour shows: every walkthrough of it has both."""


class Stop(NamedTuple):
    """A step of the tour: the page it is on, and selectors of which the first that is found counts.

    Its texts are `tour.stop.<id>` and `tour.stop.<id>.title`.
    """

    id: str
    page: str
    targets: tuple[str, ...]


STOPS: tuple[Stop, ...] = (
    Stop("question", "ask", (".st-key-ask-question",)),
    Stop("draft", "ask", (".vs-section-answer .vs-answer-panel",)),
    Stop("verdict", "ask", (f"#methods-{METHOD} .vs-method-verdict",)),
    Stop("evidence", "ask", (".vs-section-evidence .vs-passage-card",)),
    Stop("correction", "ask", (f"#methods-{METHOD} .vs-method-outcome",)),
    Stop("compare", "compare", (".vs-compare",)),
    Stop("calls", "ask", ("#timeline .vs-lanes",)),
    Stop("steps", METHOD, (".vs-flow",)),
)

_WORDS = ("next", "back", "end", "finish", "waiting")


def tour_sample(t: Catalogue) -> Walkthrough | None:
    """Return the tour's walkthrough: the first in the language of `t` with its method."""
    return next(
        (
            one
            for one in walkthroughs()
            if one.language == t.language and METHOD in [method.name for method in one.methods]
        ),
        None,
    )


def tour_data(t: Catalogue, *, at: int, turn: int, page: str) -> dict[str, Any]:
    """Return what the script needs: the stops, the one it is at, and the page that is shown.

    `turn` grows whenever the server sets the step; otherwise the script keeps its own step.
    """
    stops = [
        {
            "id": stop.id,
            "page": stop.page,
            "targets": list(stop.targets),
            "title": t(f"tour.stop.{stop.id}.title"),
            "text": t(f"tour.stop.{stop.id}"),
            "place": t("tour.place", number=number, count=len(STOPS)),
            "elsewhere": t("tour.elsewhere", page=t(f"nav.{stop.page}")),
            "go": t("tour.go", page=t(f"nav.{stop.page}")),
        }
        for number, stop in enumerate(STOPS, start=1)
    ]
    words = {word: t(f"tour.{word}") for word in _WORDS}
    return {"stops": stops, "at": at, "turn": turn, "page": page, "words": words}

"""What has to be known about a run before anything else on its page is read."""

from __future__ import annotations

from components.markup import Child, Html, tag
from components.messages import Catalogue
from components.method_card import error_note
from components.run_view import language_unsupported
from components.sections import notice
from pipelines.errors import ErrorInfo
from pipelines.run.view import RunView

__all__ = ["run_notices"]


def run_notices(
    view: RunView, error: ErrorInfo | None, t: Catalogue, *, diverges: str = ""
) -> Html | None:
    """The language, how the run was cut short, `error`, and why it would go another way now.

    `diverges` is a key under `diverges.*`; None when there is nothing to say.
    """
    notes: list[Child] = []
    if language_unsupported(view):
        notes.append(notice(t("flag.language_unsupported"), "language"))
    if view.status == "cancelled":
        reason = view.reason or "stopped"
        notes.append(notice(t(f"run.cancelled.{reason}"), "cancelled", t("action.retry")))
    if diverges:
        notes.append(notice(t(f"diverges.{diverges}"), "diverges"))
    if error is not None:
        notes.append(error_note(error, t, retry="run"))
    return tag("div", notes, class_="vs-notices", data_key="notices") if notes else None

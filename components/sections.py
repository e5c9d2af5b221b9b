"""The parts that pages are made of: headed sections, notices, what is being prepared."""

from __future__ import annotations

from collections.abc import Sequence

from components.markup import Child, Html, shown, tag
from components.messages import Catalogue
from pipelines.run.pool import Loading
from pipelines.run.view import RunView

__all__ = ["illustration_note", "loading_note", "notice", "section"]


def section(name: str, title: str, *content: Child) -> Html:
    """A part of a page under its heading."""
    return tag(
        "section",
        tag("h2", title, class_="vs-section-title", id=f"section-{name}"),
        *content,
        class_=f"vs-section vs-section-{name}",
        aria_labelledby=f"section-{name}",
        data_key=f"section-{name}",
    )


def notice(text: str, key: str, retry: str | None = None, *, role: str = "note") -> Html:
    """A remark on the whole run; `retry` adds a button of that name, which asks for "retry"."""
    button = None
    if retry is not None:
        button = tag(
            "button",
            retry,
            type="button",
            class_="vs-button",
            data_action="retry",
            data_value="run",
        )
    return tag("div", tag("p", text), button, class_="vs-notice", role=role, data_key=key)


def illustration_note(view: RunView, t: Catalogue) -> Html | None:
    """Says, for as long as the run is shown, that its replies are not a model's own."""
    models = view.header.spec.models.values() if view.header else ()
    if not any(model.kind == "scripted" for model in models):
        return None
    return tag(
        "p",
        tag("span", "✎", class_="vs-sign", aria_hidden="true"),
        tag("span", t("illustration.note")),
        class_="vs-illustration",
        role="note",
        data_key="illustration",
    )


def loading_note(loading: Sequence[Loading], t: Catalogue) -> Html | None:
    """What is being prepared, each with how far it is."""
    if not loading:
        return None
    rows = (
        tag(
            "li",
            tag("span", shown(item.name), class_="vs-strong"),
            tag("span", t.first(f"loading.{item.stage}", "loading.load"), class_="vs-note"),
            tag(
                "progress",
                max="1",
                value=f"{item.fraction:.3f}" if 0 < item.fraction < 1 else None,
                aria_label=item.name,
            ),
            data_key=item.name,
        )
        for item in loading
    )
    return tag("ul", rows, class_="vs-loading", role="status", data_key="loading")

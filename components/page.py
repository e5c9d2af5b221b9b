"""What all pages of a run share, and a page as one file that opens without a server."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence

from components.base.elements import error_note, notice, sign
from components.base.html import Child, Html, Styles, tag, visible
from components.base.theme import Theme, report_script, report_sheet, script, stylesheet
from components.base.words import Catalogue, lang
from components.prompts import own_prompts_note
from components.run.ask import language_unsupported
from pipelines.base import Language
from pipelines.engine.pool import Loading
from pipelines.errors import ErrorInfo, limit_in
from pipelines.run.view import RunView


def section(name: str, title: str, *content: Child) -> Html:
    """Return a part of a page under its heading."""
    return tag(
        f"section.vs-section.vs-section-{name}",
        tag("h2.vs-section-title", title, id=f"section-{name}"),
        *content,
        aria_labelledby=f"section-{name}",
        key=f"section-{name}",
    )


def illustration_note(view: RunView, t: Catalogue) -> Html | None:
    """Return a note that says, for as long as the run is shown, that its replies are not a
    model's own.
    """
    models = view.header.spec.models.values() if view.header else ()
    if not any(model.kind == "scripted" for model in models):
        return None
    return tag(
        "p.vs-illustration",
        sign("✎"),
        tag("span", t("illustration.note")),
        role="note",
        key="illustration",
    )


def loading_note(loading: Sequence[Loading], t: Catalogue) -> Html | None:
    """Return what is being prepared, each with how far it is."""
    if not loading:
        return None
    rows: list[Html] = []
    for item in loading:
        name, known = tag("span.vs-strong", item.name), 0 < item.fraction < 1
        stage = tag("span.vs-note", t.first(f"loading.{item.stage}", "loading.load"))
        value = f"{item.fraction:.3f}" if known else None
        bar = tag("progress", max="1", value=value, aria_label=item.name)
        rows.append(tag("li", name, stage, bar, key=item.name))
    return tag("ul.vs-loading", rows, role="status", key="loading")


def run_notices(view: RunView, error: ErrorInfo | None, t: Catalogue) -> Html | None:
    """Return the language, how the run was cut short, and `error`; None when there is
    nothing to say.
    """
    notes: list[Child] = []
    if language_unsupported(view):
        notes.append(notice(t("flag.language_unsupported"), "language"))
    elif any(m.answer and "other_language" in m.answer.flags for m in view.methods.values()):
        notes.append(notice(t("flag.other_language"), "language"))
    notes.append(own_prompts_note(view, t))
    if view.status == "cancelled":
        reason = view.reason or "stopped"
        notes.append(notice(t(f"run.cancelled.{reason}"), "cancelled", t("action.retry")))
    if view.over and view.limit is not None:
        notes.append(notice(t(f"run.limit.{view.limit}"), "limit", t("action.retry")))
        # The same in other words.
        error = None if error is not None and limit_in(error.code) else error
    if error is not None:
        notes.append(error_note(error, t, retry="run"))
    return tag("div.vs-notices", notes, key="notices") if any(notes) else None


def standalone(
    html: str,
    title: str,
    theme: Theme | None = None,
    language: Language = "en",
    *,
    report: bool = False,
) -> str:
    """Return a static HTML document around `html`, styles and script inside it.

    `theme` None follows the reader's preference. `html` must come from this package. As a second
    protection, the document's policy lets nothing run and nothing style but this package's script
    and sheets (by their hashes), and nothing load from anywhere. `report` adds what a report needs
    besides: its looks, on paper too, and folds that open where links lead.
    """
    styles = Styles()
    html = styles.collect(html)
    sheets = [stylesheet(), *([report_sheet()] if report else []), styles.sheet()]
    sheet = "\n".join(["", *sheets, ""])
    code = script() + '\nmount(document.querySelector(".vs-root"));\n'
    if report:
        code += report_script()
    policy = (
        f"default-src 'none'; script-src 'sha256-{_digest(code)}'; "
        f"style-src 'sha256-{_digest(sheet)}'; base-uri 'none'; form-action 'none'"
    )
    head = (
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("meta", name="referrer", content="no-referrer"),
        tag("title", visible(title)),
    )
    scheme = f' data-theme="{theme}"' if theme else ""
    return (
        f'<!doctype html>\n<html lang="{lang(language)}"{scheme}>\n<head>\n'
        + "\n".join(head)
        + f"\n<style>{sheet}</style>\n</head>\n"
        + f'<body class="vs-page">\n<main class="vs-root">{html}</main>\n'
        + f'<script type="module">{code}</script>\n</body>\n</html>\n'
    )


def _digest(text: str) -> str:
    """Return the hash by which a content security policy allows a script or a sheet."""
    return base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()

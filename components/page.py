"""A whole page in one file: for reports that are kept, mailed and opened without a server."""

from __future__ import annotations

import base64
import hashlib

from components.markup import tag
from components.theme import Theme, script, stylesheet
from pipelines.types import Language

__all__ = ["standalone"]

_START = '\nmount(document.querySelector(".vs-root"));\n'


def standalone(html: str, title: str, theme: Theme | None = None, language: Language = "en") -> str:
    """A static HTML document around `html`, styles and script inside it.

    `theme` None follows the reader's preference. `html` must come from this package. As a second
    wall the document's own policy lets nothing run but this package's script (by its hash) and
    nothing load from anywhere.
    """
    code = script() + _START
    digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
    policy = (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )
    head = (
        tag("meta", charset="utf-8"),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", http_equiv="Content-Security-Policy", content=policy),
        tag("title", title),
    )
    lang = "zh-CN" if language == "zh" else "en"
    scheme = f' data-theme="{theme}"' if theme else ""
    return (
        f'<!doctype html>\n<html lang="{lang}"{scheme}>\n<head>\n'
        + "\n".join(head)
        + f"\n<style>\n{stylesheet()}\n</style>\n</head>\n"
        + f'<body class="vs-page">\n<main class="vs-root">{html}</main>\n'
        + f'<script type="module">{code}</script>\n</body>\n</html>\n'
    )

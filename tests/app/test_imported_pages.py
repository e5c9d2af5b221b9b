"""The screens of the workbench on imported runs in which a single field was changed."""

from __future__ import annotations

import pytest

from components.base.words import Catalogue
from components.run.report import PAGES
from pipelines.engine.service import Engine
from pipelines.errors import InvalidInputError
from pipelines.store.exchange import export_lines, parse_lines
from tests.app.playing import opened, seen
from tests.app.test_screens import ME
from tests.components.imported import runs
from tests.components.mutations import Mutation, mutations

_TRIED = 24
_SCREEN = ("spec", "settings", "models", "language", "created", "question")
"""Fields that the screens themselves read, and not only the views on them."""


def accepted() -> list[tuple[str, list[str], Mutation]]:
    """Changed runs that can be imported, each with the page of its method."""
    found: list[tuple[str, list[str], Mutation]] = []
    for trace in runs():
        lines = list(export_lines(trace))
        asked = trace.header.spec.methods[0].name
        page = next((name for name, methods in PAGES.items() if asked in methods), "ask")
        for mutation in mutations(trace):
            if set(mutation.path) & set(_SCREEN):
                changed = mutation.applied(lines)
                try:
                    parse_lines(changed)
                except InvalidInputError:
                    continue
                found.append((page, changed, mutation))
    return found


@pytest.mark.verify
def test_screens_show_what_was_imported(played: Engine, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delenv("VERISCOPE_STRICT_MESSAGES")
    failed = Catalogue("en")("page.view_failed", view="|").split("|")[0]
    every = accepted()
    tried = every[:: max(1, len(every) // _TRIED)]
    run = ""
    for number, (page, lines, mutation) in enumerate(tried):
        run = played.service.store.import_run(lines, ME)
        for name in (page, "ask") if number % 2 else (page, "compare"):
            test = opened(name, run)
            assert not test.exception, (str(mutation), name, test.exception)
            assert failed not in seen(test), (str(mutation), name)
    test = opened("runs", run)
    assert not test.exception

"""The workbench in a real browser, on runs and models with hostile text in every field."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from components.run.report import PAGES
from pipelines.annotation.types import SessionSpec
from pipelines.models.providers import ModelSpec
from pipelines.retrieval.embedders import EmbedderSpec
from pipelines.store import RunStore
from pipelines.store.collections import NewDocument, new_document_id
from pipelines.store.profiles import Profile, ProfileOrigin
from pipelines.store.tables import to_json
from tests.app.serving import (
    DESKTOP,
    SCRIPTED,
    Workbench,
    bring_recording,
    serve_workbench,
    wait_until_drawn,
)
from tests.browser import PATIENCE
from tests.components.imported import runs
from tests.components.injections import Injected, injections
from tests.components.sentinel import Sentinel

_MODELS = 30
"""Models of the visitor with hostile names."""

_THINGS = 6
"""Profiles, collections and annotation sessions of the visitor with hostile texts."""

_LISTS = ("runs", "models", "profiles", "prompts", "library", "evaluate", "annotate")
"""Pages that list what the visitor has."""


def brought(workbench: Workbench, owner: str) -> list[str]:
    """Stores a run of every method, and models, of `owner`; the runs' ids."""
    store = RunStore(f"sqlite:///{workbench.data / 'veriscope.db'}")
    try:
        texts = injections()
        for number in range(_MODELS):
            name = texts[number * len(texts) // _MODELS].strip()[:100] or "none"
            store.models.save(owner, ModelSpec(kind="openai", name=name, model=name))
        bring_things(store, owner, texts)
        each = (Injected(trace).spread(number * 17) for number, trace in enumerate(runs()))
        return [store.import_run(lines, owner) for lines in each]
    finally:
        store.close()


def bring_things(store: RunStore, owner: str, texts: tuple[str, ...]) -> None:
    """Profiles, collections with documents, and annotation sessions with hostile texts."""
    for number in range(_THINGS):
        text = texts[(number * len(texts) + 5) // _THINGS]
        name = "".join(filter(str.isprintable, text)).strip()[:80] or "none"
        origin = ProfileOrigin(data_set=text, system=text, study=text, metric=text)
        profile = Profile(name=f"{number} {name}", description=text, origin=origin)
        store.profiles.save(owner, profile)
        place = store.collections.create(owner, f"{number} {name}", EmbedderSpec())
        document = NewDocument(id=new_document_id(), name=name, digest=str(number), size=1)
        store.collections.add(owner, place, [document])
        store.annotations.create(owner, f"{number} {name}", to_json(SessionSpec()), 1, text)


def opened(page: Page, address: str) -> None:
    page.goto(address)
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    wait_until_drawn(page)


@pytest.mark.verify
def test_nothing_in_the_workbench_is_executed_or_asked_for(browser: Browser, tmp_path: Path):
    with serve_workbench(tmp_path, SCRIPTED, strict=False) as workbench:
        look_through(browser, workbench)


def look_through(browser: Browser, workbench: Workbench) -> None:
    """Opens every page of every run, and uses what is on it."""
    finished = bring_recording(workbench)
    (cookie,) = finished.browser.get("cookies", [])
    ids = brought(workbench, cookie.get("value", ""))
    methods = [trace.header.spec.methods[0].name for trace in runs()]
    context = browser.new_context(
        viewport=DESKTOP, reduced_motion="reduce", storage_state=finished.browser
    )
    sentinel = Sentinel(context)
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    try:
        # The last run of every method is the one with the most in it.
        latest = dict(zip(methods, ids, strict=True))
        for method, run in latest.items():
            own = next((name for name, shown in PAGES.items() if method in shown), "ask")
            for address in ("ask", own):
                opened(page, f"{workbench.url}/{address}?run={run}")
                sentinel.look(page)
                assert page.get_by_test_id("stException").count() == 0
        opened(page, f"{workbench.url}/compare?runs={','.join(ids[-3:])}")
        sentinel.look(page)
        for address in (*_LISTS, f"check?run={ids[0]}"):
            opened(page, f"{workbench.url}/{address}")
            sentinel.look(page)
            assert page.get_by_test_id("stException").count() == 0
        sentinel.assert_quiet()
        print(f"{sentinel.pages} pages, {sentinel.requests} requests")
    finally:
        context.close()

"""The lead's side of the Annotate page in a browser: a session from the samples to its export."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from components.base.words import LANGUAGES, Catalogue
from pipelines.annotation.labelling import AssignedItem, Worker
from pipelines.annotation.sessions import Invitation, Lead, enter
from pipelines.base import Language
from pipelines.store import RunStore
from tests.app.conftest import Visit
from tests.app.serving import (
    SCRIPTED,
    Workbench,
    expect_to_fit_everywhere,
    serve_workbench,
    unfold,
    visiting,
    wait_until_drawn,
)
from tests.app.test_browser_evaluate import press

VERDICTS = {"sentence": "minor", "answer": "partly", "concept": "true", "comparison": "same"}


@pytest.fixture
def beside(workbench: Workbench) -> Iterator[RunStore]:
    """The database of the workbench, for people who label beside the browser."""
    store = RunStore(f"sqlite:///{workbench.data / 'veriscope.db'}")
    yield store
    store.close()


def labelled(worker: Worker, most: int = 1000, **verdicts: str) -> int:
    """Label at most so many items; how many there were."""
    count = 0
    while count < most and isinstance(found := worker.next(), AssignedItem):
        task = found.body.task
        value: dict[str, Any] = {"task": task}
        if task != "span":
            value["verdict"] = verdicts.get(task, VERDICTS[task])
        worker.label(found.item, value, client=f"{worker.annotator}-{found.item}", seconds=6)
        count += 1
    return count


def choose_radio(page: Page, name: str) -> None:
    wait_until_drawn(page)
    page.get_by_role("radio", name=name, exact=True).click()
    wait_until_drawn(page)


def tick(page: Page, key: str) -> None:
    wait_until_drawn(page)
    page.locator(f"[class*='st-key-{key}'] label").first.click()
    wait_until_drawn(page)


def link_of(page: Page) -> str:
    """The address of the link that was just made."""
    return page.locator(".st-key-card-made-link code").inner_text().strip()


def join(store: RunStore, address: str, name: str) -> Worker:
    invitation = enter(store, address.partition("link=")[2], "127.0.0.1")
    assert isinstance(invitation, Invitation)
    return invitation.join(name)[0]


@pytest.mark.verify
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_session_of_the_sample_runs_is_made_shared_and_watched(
    visit: Visit, beside: RunStore, tmp_path: Path, language: Language
) -> None:
    t = Catalogue(language)
    page = visit().open("/annotate")
    if language == "zh":
        wait_until_drawn(page)
        page.get_by_text("中文").first.click()
    expect(page.get_by_role("heading", level=1, name=t("annotate.title"))).to_be_visible()
    expect(page.get_by_text(t("annotate.empty"))).to_be_visible()
    expect_to_fit_everywhere(page)

    # Made of the recorded samples: a new browser has no run of its own.
    unfold(page, "annotate-new")
    choose_radio(page, t("annotate.source.runs"))
    tick(page, "annotate-make-all")
    tick(page, "annotate-make-without_gold")
    field = page.get_by_role("textbox", name=t("annotate.make.name"))
    field.fill("Samples")
    field.press("Enter")
    expect_to_fit_everywhere(page)
    press(page, t("annotate.make.go"))
    page.wait_for_url(re.compile(r"[?&]session="))
    expect(page.get_by_role("heading", level=1, name="Samples")).to_be_visible()
    expect(page.get_by_text(t("annotate.people.none"))).to_be_visible()
    expect_to_fit_everywhere(page)

    # The link that is shown once is whole, and lets people in.
    press(page, t("annotate.link.make"))
    expect(page.locator(".st-key-card-made-link code")).to_contain_text("/annotate?link=")
    address = link_of(page)
    assert address.startswith(page.url.partition("?")[0])
    press(page, t("annotate.link.hide"))
    expect(page.locator(".st-key-card-made-link")).to_have_count(0)

    # What people do is seen without a touch, and nothing moves while it is.
    expect(page.locator(".vs-session-lead")).to_contain_text(re.compile(r"\b0 ?%"))
    ann = join(beside, address, "Ann")
    first = ann.next()
    assert isinstance(first, AssignedItem)
    ann.skip(first.item, "Broken <b>item</b>.", client="skip")
    whole = labelled(ann)
    expect(page.locator(".vs-session-notes").first).to_contain_text("Broken <b>item</b>.")
    expect(page.locator("[data-key='person-0']")).to_contain_text("Ann")
    page.evaluate("document.querySelector('[data-testid=\"stMain\"]').scrollTop = 200")
    before = page.locator("#session-labels").bounding_box()
    bob = join(beside, address, "Bob")
    labelled(bob, 4, sentence="major")
    expect(page.locator("[data-key='person-1']")).to_contain_text("Bob")
    after = page.locator("#session-labels").bounding_box()
    assert before is not None
    assert after is not None
    assert after["y"] == pytest.approx(before["y"], abs=1)
    assert whole > 10
    expect_to_fit_everywhere(page)

    # An export, and the run behind an item.
    choose_radio(page, t("annotate.part.settings"))
    expect_to_fit_everywhere(page)
    with page.expect_download() as download:
        page.get_by_role("button", name=t("annotate.export.jsonl")).click()
    saved = tmp_path / "session.jsonl"
    download.value.save_as(saved)
    assert '"format": "veriscope-annotation"' in saved.read_text(encoding="utf-8")
    choose_radio(page, t("annotate.part.progress"))
    page.get_by_role("button", name=t("annotate.open_run")).first.click()
    expect(page.get_by_role("heading", level=1, name=t("ask.title"))).to_be_visible()


@pytest.mark.verify
def test_items_are_added_beside_an_open_page(visit: Visit, beside: RunStore) -> None:
    t = Catalogue("en")
    page = visit().open("/annotate")
    press(page, t("annotate.example"))
    page.wait_for_url(re.compile(r"[?&]session="))
    press(page, t("annotate.link.make"))
    address = link_of(page)
    lead = Lead(beside, page.url.partition("session=")[2].partition("&")[0])
    # Ann has an item in hand, and Bob has none left.
    labelled(join(beside, address, "Bob"))
    ann = visit().open("/annotate" + address.partition("/annotate")[2])
    ann.get_by_role("textbox", name=t("annotate.join.name")).fill("Ann")
    press(ann, t("annotate.join.go"))
    press(ann, t("annotate.task.begin"))
    expect(ann.locator(".vs-lab-ask")).to_be_visible()
    bob = visit().open(f"/annotate?link={lead.invite('annotator', annotator=0)}")
    expect(bob.get_by_text(t("annotate.task.done.note"))).to_be_visible()
    count = len(lead.items())
    text = ann.locator(".vs-lab-text, .vs-lab-paper").first
    held, at = text.inner_text(), ann.locator(".vs-lab-at").inner_text()

    choose_radio(page, t("annotate.part.settings"))
    unfold(page, f"annotate-add-{lead.session_id}")
    # The session has all samples already; labelled statements are new to it.
    choose_radio(page, t("annotate.source.data"))
    press(page, t("annotate.add.go"))
    expect(page.locator(".st-key-annotate-said")).to_be_visible()
    more = len(lead.items())
    assert more > count

    # Nothing is taken from Ann: she labels the item that she had, and has more to come.
    assert (text.inner_text(), ann.locator(".vs-lab-at").inner_text()) == (held, at)
    ann.keyboard.press("1")
    expect(ann.locator(".vs-lab-at")).to_have_text(t("annotate.label.progress", at=2, total=more))
    # Bob's page finds one by itself.
    expect(bob.locator(".vs-lab-ask")).to_be_visible(timeout=60_000)


@pytest.mark.verify
def test_a_session_is_the_same_in_an_empty_workbench(
    visit: Visit, browser: Browser, beside: RunStore, tmp_path: Path
) -> None:
    t = Catalogue("en")
    page = visit().open("/annotate")
    press(page, t("annotate.example"))
    page.wait_for_url(re.compile(r"[?&]session="))
    press(page, t("annotate.link.make"))
    address = link_of(page)
    labelled(join(beside, address, "Ann"))
    labelled(join(beside, address, "Bob"), 4, sentence="major")
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    save_session(page, t, first)
    empty = tmp_path / "empty"
    empty.mkdir()
    with serve_workbench(empty, SCRIPTED) as other, visiting(browser, other) as visitor:
        copy = visitor.open("/annotate")
        expect(copy.get_by_text(t("annotate.empty"))).to_be_visible()
        unfold(copy, "annotate-import")
        copy.locator(".st-key-annotate-import input[type='file']").set_input_files(first)
        copy.wait_for_url(re.compile(r"[?&]session="))
        save_session(copy, t, second)
    assert second.read_bytes() == first.read_bytes()


def save_session(page: Page, t: Catalogue, to: Path) -> None:
    """Export the session that is looked at."""
    choose_radio(page, t("annotate.part.settings"))
    with page.expect_download() as download:
        page.get_by_role("button", name=t("annotate.export.jsonl")).click()
    download.value.save_as(to)


@pytest.mark.verify
def test_an_example_is_one_press_away(visit: Visit) -> None:
    t = Catalogue("en")
    page = visit().open("/annotate")
    press(page, t("annotate.example"))
    page.wait_for_url(re.compile(r"[?&]session="))
    expect(page.get_by_role("heading", level=1, name=t("annotate.example.name"))).to_be_visible()
    press(page, t("annotate.all"))
    expect(page.locator(".workbench-run-question")).to_have_text(t("annotate.example.name"))

"""Two browsers at the same time, each with a key, a profile, limits and documents of its own.

Neither ever sees anything of the other's, each server is sent its own key alone, and what is stored
or handed out after the session holds neither.
"""

from __future__ import annotations

import re
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.sync_api import Download, Page, expect

from tests.app.conftest import Visit
from tests.app.serving import (
    Visitor,
    Workbench,
    ask,
    choose,
    go_to,
    leave_out,
    ticked_at_first,
    wait_for_end,
    wait_until_drawn,
)
from tests.app.test_browser_keys import keys_sent, type_into
from tests.scripted.wire import Wire, says, serve

QUESTION = "Where was Bill Clinton born and raised?"
ANSWER = {
    "choices": [{"message": {"role": "assistant", "content": "In Hope."}, "finish_reason": "stop"}],
    "usage": {"prompt_tokens": 9, "completion_tokens": 3},
}


@dataclass
class Person:
    """A browser, and what belongs to it alone."""

    visitor: Visitor
    wire: Wire
    name: str

    @property
    def key(self) -> str:
        return f"never-to-be-stored-{self.name}-5521"


@pytest.fixture
def people(visit: Visit) -> Iterator[tuple[Person, Person]]:
    """Two visitors with a model server each."""
    with ExitStack() as stack:
        wires = [stack.enter_context(serve()) for _ in range(2)]
        for wire in wires:
            wire.answers(says(ANSWER))
        yield Person(visit(), wires[0], "zabrowska"), Person(visit(), wires[1], "quillfeather")


def save_model(person: Person, page: Page) -> None:
    """A model of one's own, with its key."""
    wait_until_drawn(page)
    for label, text in (
        ("Name", f"model of {person.name}"),
        ("Model, as the server calls it", "some-model"),
        ("Address", person.wire.url),
    ):
        type_into(page.get_by_label(label, exact=label == "Name"), text)
        page.keyboard.press("Tab")
    type_into(page.locator(".st-key-card-new-model input[type='password']"), person.key)
    page.keyboard.press("Tab")
    page.locator(".st-key-new-save button").click()
    row = page.locator(f".st-key-row-model-{f'model of {person.name}'.encode().hex()}")
    expect(row).to_be_visible()


def choose_model(person: Person, page: Page) -> None:
    leave_out(page, *(name for name in ticked_at_first() if name != "direct"))
    choose(page, "Model", f"model of {person.name}")
    wait_until_drawn(page)


def save_profile(person: Person, page: Page) -> None:
    go_to(page, "Profiles")
    wait_until_drawn(page)
    field = page.get_by_role("textbox", name="Name").first
    field.fill(f"profile of {person.name}")
    field.blur()
    wait_until_drawn(page)
    page.locator(".st-key-profiles-save button").click()
    expect(page.locator("[class*='st-key-card-profile-']")).to_have_count(1)


def set_limit(page: Page, calls: int) -> None:
    page.get_by_text("Settings", exact=True).click()
    page.get_by_role("tab", name="This run").click()
    field = page.get_by_role("spinbutton", name="Limit of calls")
    field.fill(str(calls))
    field.press("Enter")
    expect(page.locator(".st-key-estimate")).to_contain_text(f"limit: {calls} calls")


def add_document(person: Person, page: Page) -> str:
    """A collection with a document; the address of the collection."""
    page.get_by_role("link", name="Library", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Library")).to_be_visible()
    page.get_by_role("textbox", name="Name of the collection").fill(f"texts of {person.name}")
    wait_until_drawn(page)
    page.get_by_role("button", name="Create", exact=True).click()
    page.wait_for_url(re.compile(r"[?&]collection="))
    wait_until_drawn(page)
    text = f"A secret text of {person.name}.".encode()
    note = {"name": f"{person.name}.txt", "mimeType": "text/plain", "buffer": text}
    page.locator("input[type='file']").set_input_files(note)  # type: ignore[arg-type]
    expect(page.get_by_role("table", name="Documents of the collection")).to_contain_text(
        person.name
    )
    return page.url


def content_of(download: Download) -> bytes:
    path = Path(download.path())
    if zipfile.is_zipfile(path):
        with zipfile.ZipFile(path) as archive:
            return b"".join(archive.read(name) for name in archive.namelist())
    return path.read_bytes()


def handed_out(page: Page) -> bytes:
    """Everything that the pages of one visitor save as files: the run, its report, the profile."""
    found: list[bytes] = []
    page.get_by_role("link", name="Runs", exact=True).click()
    expect(page.get_by_role("heading", level=1, name="Runs")).to_be_visible()
    wait_until_drawn(page)
    page.get_by_role("button", name="Pick this page").click()
    wait_until_drawn(page)
    with page.expect_download() as download:
        page.locator(".st-key-export-picked button").first.click()
    found.append(content_of(download.value))
    go_to(page, "Profiles")
    wait_until_drawn(page)
    with page.expect_download() as download:
        page.get_by_role("button", name="Export").first.click()
    found.append(content_of(download.value))
    page.get_by_role("link", name="Ask", exact=True).click()
    wait_until_drawn(page)
    with page.expect_download() as download:
        page.locator(".st-key-run-kept").get_by_role("button", name="Report").click()
    found.append(content_of(download.value))
    return b"\n".join(found)


@pytest.mark.verify
def test_neither_sees_anything_of_the_other_and_no_key_is_kept(
    people: tuple[Person, Person], workbench: Workbench
) -> None:
    pages = [person.visitor.open("/models") for person in people]
    runs: list[str] = []
    # Step by step both, so that they are in the same place at the same time.
    for person, page in zip(people, pages, strict=True):
        save_model(person, page)
    for person, page in zip(people, pages, strict=True):
        go_to(page, "Ask")
        choose_model(person, page)
    for person, page in zip(people, pages, strict=True):
        save_profile(person, page)
        go_to(page, "Ask")
    for page, calls in zip(pages, (7, 9), strict=True):
        set_limit(page, calls)
    for page in pages:
        ask(page, QUESTION)
    for page in pages:
        runs.append(wait_for_end(page))
        expect(page.locator(".vs-spending")).to_contain_text("limit " + ("7", "9")[len(runs) - 1])
    collections = [add_document(*both) for both in zip(people, pages, strict=True)]

    # Each server was sent the key of its own visitor and no other.
    assert [keys_sent(person.wire) for person in people] == [[one.key] for one in people]
    files = [handed_out(page) for page in pages]
    for number, (person, page) in enumerate(zip(people, pages, strict=True)):
        other = people[1 - number]
        assert person.name.encode() in files[number]
        assert other.name.encode() not in files[number]
        for address in ("/models", "/profiles", "/library", "/runs", "/check"):
            page.goto(person.visitor.url + address)
            wait_until_drawn(page)
            shown = page.content()
            assert f"of {other.name}" not in shown
            assert runs[1 - number] not in shown
        # Nor by an address that was overheard.
        for address in (f"{person.visitor.url}/?run={runs[1 - number]}", collections[1 - number]):
            page.goto(address)
            expect(page.get_by_role("alert").first).to_be_visible()
            expect(page.get_by_text("In Hope.")).to_have_count(0)
            expect(page.get_by_text(other.name)).to_have_count(0)
        for place in ("/report/{}.html", "/record/{}.jsonl"):
            own, others = (
                page.request.get(person.visitor.url + place.format(run)).text()
                for run in (runs[number], runs[1 - number])
            )
            assert QUESTION in own
            assert QUESTION not in others
            files.append(own.encode())

    stored = [path for path in workbench.data.rglob("*") if path.is_file()]
    told = [*files, *(path.read_bytes() for path in stored)]
    everything = b"".join(told)
    # The database, its journal, the log and every file of a collection are among these.
    assert {"veriscope.db", "server.log"} <= {path.name for path in stored}
    assert b"A secret text of zabrowska." in everything
    for person in people:
        assert person.key.encode() not in everything
        assert person.key not in str(person.visitor.context.storage_state())

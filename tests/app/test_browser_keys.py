"""What is typed into the fields of a form, however they are left, and where a key goes to."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import Locator, Page, expect

from tests.app.conftest import Visit
from tests.app.serving import Workbench, choose, go_to, open_setup, wait_until_drawn
from tests.scripted.wire import Wire, says, serve

KEY = "never-to-be-stored-9203"
KEPT = "Key kept for this session"


@pytest.fixture
def wire() -> Iterator[Wire]:
    """A server that refuses every key: what it was sent is all that matters here."""
    with serve() as served:
        served.answers(says({"error": {"message": "No such key."}}, 401))
        yield served


def keys_sent(wire: Wire) -> list[str]:
    """The keys that the server was sent, each once, in their order."""
    heads = [{name.lower(): value for name, value in seen.headers.items()} for seen in wire.seen]
    return list(dict.fromkeys(head["authorization"].removeprefix("Bearer ") for head in heads))


def wait_for(wire: Wire, key: str) -> None:
    """Wait until the server was sent `key`."""
    while key not in keys_sent(wire):
        assert wire.arrived.wait(60), f"It was sent {keys_sent(wire)} only."
        wire.arrived.clear()


def press_tab(page: Page) -> None:
    page.keyboard.press("Tab")


def press_shift_tab(page: Page) -> None:
    page.keyboard.press("Shift+Tab")


def press_enter(page: Page) -> None:
    page.keyboard.press("Enter")


def click_elsewhere(page: Page) -> None:
    page.get_by_role("heading", level=1).click()


def stay(page: Page) -> None:
    """Press nothing: the next control is used at once."""


LEAVING: tuple[Callable[[Page], None], ...] = (
    press_tab,
    press_shift_tab,
    press_enter,
    click_elsewhere,
    stay,
)


def type_into(field: Locator, text: str) -> None:
    """Letter by letter, in place of what is there."""
    field.click()
    field.page.keyboard.press("ControlOrMeta+a")
    field.page.keyboard.type(text)


def key_of_form(page: Page) -> Locator:
    return page.locator(".st-key-card-new-model input[type='password']")


def fill_form(page: Page, wire: Wire, leave: Callable[[Page], None]) -> None:
    for label, text in (
        ("Name", "typed"),
        ("Model, as the server calls it", "some-model"),
        ("Address", wire.url),
    ):
        type_into(page.get_by_label(label, exact=label == "Name"), text)
        leave(page)


@pytest.mark.verify
def test_every_field_of_a_new_model_keeps_what_was_typed_however_it_is_left(
    visit: Visit, wire: Wire
) -> None:
    page = visit().open("/models")
    wait_until_drawn(page)
    keys = [f"{KEY}-{leave.__name__}" for leave in LEAVING]
    for leave, key in zip(LEAVING, keys, strict=True):
        fill_form(page, wire, leave)
        type_into(key_of_form(page), key)
        leave(page)
        page.locator(".st-key-new-probe button").click()
        wait_for(wire, key)
        expect(key_of_form(page)).to_have_value(key)

    # Another page and back: it is all still there, and used.
    page.get_by_role("link", name="Runs").click()
    expect(page.get_by_role("heading", level=1, name="Runs")).to_be_visible()
    go_to(page, "Models")
    expect(page.get_by_label("Name", exact=True)).to_have_value("typed")
    expect(page.get_by_label("Address")).to_have_value(wire.url)
    type_into(key_of_form(page), f"{KEY}-saved")
    press_tab(page)
    page.locator(".st-key-new-save button").click()
    row = page.locator(f".st-key-row-model-{b'typed'.hex()}")
    expect(row.locator("input")).to_have_attribute("placeholder", KEPT)
    expect(key_of_form(page)).to_have_value("")
    row.get_by_role("button", name="Check").click()
    wait_for(wire, f"{KEY}-saved")
    assert keys_sent(wire) == [*keys, f"{KEY}-saved"]


@pytest.mark.verify
def test_a_pasted_key_and_one_typed_after_it_are_used_and_nothing_else_learns_of_them(
    visit: Visit, wire: Wire, workbench: Workbench
) -> None:
    visitor = visit()
    requests: list[str] = []
    visitor.context.on("request", lambda request: requests.append(request.url))
    page = visitor.open("/models")
    wait_until_drawn(page)
    fill_form(page, wire, press_tab)
    page.locator(".st-key-new-save button").click()
    row = page.locator(f".st-key-row-model-{b'typed'.hex()}")
    field, check = row.locator("input"), row.get_by_role("button", name="Check")
    expect(field).to_have_attribute("placeholder", "API key")
    for way in ("paste", "Tab", "eye"):
        key = f"{KEY}-{way}"
        if way == "paste":
            field.fill(key)
        else:
            type_into(field, key)
            if way == "Tab":
                press_tab(page)
            else:
                row.get_by_role("button", name="password").click()
                expect(field).to_have_attribute("type", "text")
        check.click()
        wait_for(wire, key)
        expect(page.get_by_role("alert")).to_contain_text("The key was refused")
        expect(field).to_have_attribute("placeholder", KEPT)
        assert KEY not in page.get_by_role("alert").inner_text()
    assert keys_sent(wire) == [f"{KEY}-{way}" for way in ("paste", "Tab", "eye")]
    # What was taken back is used no more.
    field.fill("")
    expect(field).to_have_attribute("placeholder", "API key")

    assert KEY not in " ".join([page.url, *requests])
    assert KEY not in str(visitor.context.storage_state())
    assert KEY not in visit().open("/models").content()
    stored = b"".join(path.read_bytes() for path in workbench.data.rglob("*") if path.is_file())
    # The server's log is among these files.
    assert b"typed" in stored
    assert KEY.encode() not in stored


@pytest.mark.verify
def test_the_key_of_a_search_is_kept_when_its_field_is_left_with_tab(visit: Visit) -> None:
    page = visit().open()
    open_setup(page)
    choose(page, "Evidence", "Web: Serper (Google)")
    field = page.locator(".st-key-search-key-serper input")
    expect(field).not_to_have_attribute("placeholder", KEPT)
    type_into(field, KEY)
    press_tab(page)
    expect(field).to_have_attribute("placeholder", KEPT)
    assert KEY not in page.url

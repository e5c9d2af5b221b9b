"""A walkthrough played in a browser, and what the methods' pages make of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Page, expect

from components.base.words import Catalogue
from pipelines.base import Language
from pipelines.samples.walkthroughs import walkthrough
from tests.app.conftest import Visit
from tests.app.playing import EVEREST, HELD
from tests.app.serving import (
    DESKTOP,
    Finished,
    Visitor,
    Workbench,
    events_stored,
    expect_to_fit_everywhere,
    fits,
    go_to,
    run_of,
    stop_button,
    visiting,
)

PAGES = ("ask", "rowen", "drad", "ever", "grounding", "compare", "runs", "models")
SHOW_NO_RUN = ("runs", "models")
GROUNDS = {"light": "rgb(246, 247, 248)", "dark": "rgb(15, 20, 25)"}
"""The colours that themes of ours give the page."""

PLACES = """(elements) => {
    const scrolled = document.querySelector("[data-testid='stMain']").scrollTop;
    const shown = elements.filter((element) => element.getClientRects().length);
    return Object.fromEntries(shown.map((element) =>
        [element.dataset.key, Math.round(element.getBoundingClientRect().top + scrolled)]));
}"""

# A field's height need not be a whole number of pixels, and the grey box that keeps its place until
# the browser has fetched its code is two or three pixels higher.
TOLERANCE = 4


@pytest.fixture
def watch(browser: Browser, workbench: Workbench) -> Iterator[Visit]:
    """Opens browsers of their own; errors in their pages and consoles fail the test."""
    with ExitStack() as stack:

        def new(**options: Any) -> Visitor:
            visitor = stack.enter_context(visiting(browser, workbench, **options))
            visitor.context.on("console", lambda message: note(visitor, message))
            return visitor

        yield new


def note(visitor: Visitor, message: ConsoleMessage) -> None:
    # Streamlit looks for itself below the page's own path first.
    if message.type == "error" and "/_stcore/" not in message.location["url"]:
        visitor.faults.append(message.text)


@pytest.fixture(scope="module")
def played(browser: Browser, workbench: Workbench) -> Finished:
    """A walkthrough, played to its end from the Ask page."""
    with visiting(browser, workbench) as visitor:
        page = visitor.open()
        run = play(page)
        expect(stop_button(page)).to_have_count(0)
        return Finished(run, visitor.context.storage_state())


def play(page: Page) -> str:
    """Plays the walkthrough from its card; the run's id."""
    page.locator(f".st-key-sample-empty-{EVEREST} button").click()
    expect(page.get_by_role("heading", level=2, name=walkthrough(EVEREST).question)).to_be_visible()
    return run_of(page)


@contextmanager
def held(workbench: Workbench) -> Iterator[None]:
    """Walkthroughs stand still until the end of the block."""
    file = workbench.data / HELD
    file.touch()
    try:
        yield
    finally:
        file.unlink()


def places_while_it_goes_on(page: Page, *keys: str) -> dict[str, set[int]]:
    """Where these parts of the page stood, from the first look at all to after the run's end."""
    parts = page.locator(", ".join(f"[data-key='{key}']" for key in keys))
    found: dict[str, set[int]] = {key: set() for key in keys}

    def look() -> None:
        places: dict[str, int] = parts.evaluate_all(PLACES)
        if len(places) == len(keys):
            for key, top in places.items():
                found[key].add(top)

    while stop_button(page).count():
        look()
    # On a busy machine this may be the first look at all of them.
    expect(parts).to_have_count(len(keys))
    look()
    return found


@pytest.mark.verify
@pytest.mark.parametrize(
    ("name", "keys"),
    [
        ("ask", ("counters", "illustration")),
        ("rowen", ("section-decision", "scores", "section-pairs", "pairs")),
        ("ever", ("section-original", "section-sentences", "sentence-0")),
    ],
)
def test_what_is_read_first_stays_where_it_is_while_the_run_fills_in(
    watch: Visit, workbench: Workbench, name: str, keys: tuple[str, ...]
) -> None:
    page = watch().open()
    with held(workbench):
        play(page)
        go_to(page, Catalogue("en")(f"nav.{name}"))
        expect(stop_button(page)).to_be_visible()
        expect(page.locator("[data-testid='stSkeleton']:visible")).to_have_count(0)
        # Scrolled to the card that was pressed, a browser goes on to follow what it shows there.
        page.get_by_test_id("stMain").evaluate("(main) => main.scrollTo(0, 0)")
    places = places_while_it_goes_on(page, *keys)
    assert all(max(tops) - min(tops) <= TOLERANCE for tops in places.values()), places


@pytest.mark.verify
def test_the_current_step_of_a_method_is_lit_until_the_run_is_over(
    watch: Visit, workbench: Workbench
) -> None:
    page = watch().open()
    lit = page.locator(".vs-flow [aria-current='step']")
    with held(workbench):
        play(page)
        go_to(page, Catalogue("en")("nav.rowen"))
        expect(lit).to_have_count(1)
    expect(stop_button(page)).to_have_count(0)
    expect(page.locator(".vs-flow .vs-flow-step").first).to_be_visible()
    expect(lit).to_have_count(0)


@pytest.mark.verify
@pytest.mark.parametrize(("scheme", "language"), [("light", "zh"), ("dark", "en")])
def test_every_page_can_be_read_everywhere(
    watch: Visit, played: Finished, scheme: str, language: Language
) -> None:
    t = Catalogue(language)
    page = watch(known=played.browser, scheme=scheme).open(f"/?run={played.run}&lang={language}")
    ground = "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
    assert page.evaluate(ground) == GROUNDS[scheme]
    for name in PAGES:
        page.set_viewport_size(DESKTOP)
        go_to(page, t(f"nav.{name}"))
        expect(page.get_by_role("heading", level=1, name=t(f"{name}.title"))).to_be_visible()
        if name not in SHOW_NO_RUN:
            expect(page.get_by_text(t("illustration.note")).first).to_be_visible()
            expect(page.get_by_text(walkthrough(EVEREST).question).first).to_be_visible()
            assert run_of(page) == played.run
        expect_to_fit_everywhere(page)


@pytest.mark.verify
def test_what_is_behind_a_number_and_another_weight_with_the_keyboard(
    watch: Visit, played: Finished, workbench: Workbench
) -> None:
    page = watch(known=played.browser).open(f"/rowen?run={played.run}")
    score = page.locator("[data-key='rowen_cl']")
    score.get_by_text("How it is computed").click()
    expect(score.get_by_text("Z_CL = (C₁ + … + Cₙ) / n")).to_be_visible()
    calls = score.locator("details.vs-call")
    score.get_by_text("The 3 calls behind this").click()
    expect(calls).to_have_count(3)
    calls.first.locator("summary").click()
    expect(calls.first).to_contain_text("Illustration")
    expect(calls.first).to_contain_text("Choice")
    assert fits(page)

    decision = page.locator("[data-key='section-decision'] [data-key='sentence']")
    expect(decision).to_contain_text("evidence is looked up")
    stored = events_stored(workbench.data)
    alpha = page.get_by_role("slider", name="Weight of the verifier")
    page.get_by_role("heading", level=1).click()
    for _ in range(60):
        if alpha.evaluate("(slider) => slider.getRootNode().activeElement === slider"):
            break
        page.keyboard.press("Tab")
    expect(alpha).to_be_focused()
    # Z = 0/3 + 4 · 1/3 = 1.33 for the largest weight.
    page.keyboard.press("End")
    expect(decision).to_contain_text("1.33 is not below 0.50: the original answer stays.")
    assert run_of(page) == played.run
    assert events_stored(workbench.data) == stored

"""Every order of what a visitor can click: the last of it wins, and the buttons say what is true.

Clicks follow each other without waiting. The model is held, so that a run goes on until it is
ended. First on pages where the walkthrough plays, then on one that has seen all that came before.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations

import pytest
from playwright.sync_api import Browser, Page, expect

from app.public.walkthrough import ExampleQuestion, examples_for
from components.base.words import lang
from pipelines.base import Language
from pipelines.samples.walkthroughs import walkthroughs
from tests.app.public.conftest import Served
from tests.app.public.test_api import another
from tests.browser import PATIENCE

ACTIONS = ("recorded", "plain", "run", "stop", "language", "tab")
PLAYED = {one.language: one.question for one in reversed(walkthroughs())}
WORDS: dict[Language, str] = {"en": "Examples", "zh": "示例"}

_TYPE = """(box, text) => {
  box.focus();
  box.select();
  document.execCommand("insertText", false, text);
}"""


@dataclass
class Expected:
    """What is to be seen: which question, in which language, and whether a run goes on.

    `before` is what was seen until the run was asked for, and still is where that was ended before
    it began. `played` says that the walkthrough may still play, `own` that another run is shown in
    its place.
    """

    question: str
    before: str = ""
    language: Language = "en"
    page: str = "ask"
    running: bool = False
    played: bool = True
    own: bool = False


class Visitor:
    """A page, what was done on it, and what has to be seen."""

    def __init__(self, page: Page, served: Served) -> None:
        self.page = page
        self.served = served
        self.order: tuple[str, ...] = ()
        self.open()

    def open(self) -> None:
        """Come anew; the walkthrough plays."""
        self.page.goto(self.served.url)
        self.expected = Expected(PLAYED["en"])
        expect(self.page.locator("#view-ask .vs-question")).to_have_text(PLAYED["en"])

    def does(self, action: str) -> None:
        """Click, without waiting for what comes of it."""
        getattr(self, f"_{action}")()

    def sees_what_is_true(self) -> None:
        """Fails where the page does not come to show what it has to."""
        seen, wanted = self.page, self.expected
        run, stop = seen.locator("#go button").all()
        share, report = seen.locator("#actions button").all()[:2]
        if wanted.running:
            self.served.until(lambda: self.served.model.busy > 0)
            expect(run).to_be_disabled()
            expect(stop).to_be_enabled()
            expect(share).to_be_disabled()
            expect(report).to_be_disabled()
        else:
            self.served.until(lambda: self.served.model.busy == 0)
            expect(run).to_be_enabled()
            expect(share).to_be_enabled()
            expect(report).to_be_enabled()
            if not wanted.played:
                expect(stop).to_be_disabled()
        question = seen.locator(f"#view-{wanted.page} .vs-question").first
        if wanted.running or not wanted.before:
            expect(question).to_have_text(wanted.question)
        else:
            either = f"{re.escape(wanted.question)}|{re.escape(wanted.before)}"
            expect(question).to_have_text(re.compile(f"^({either})$"))
        root = seen.locator(f"#view-{wanted.page} .vs-root")
        expect(root).to_have_attribute("lang", lang(wanted.language))

    def gives_up(self) -> None:
        """End what goes on."""
        if self.expected.running:
            self.does("stop")
        self.sees_what_is_true()
        seen = self.page.locator(f"#view-{self.expected.page} .vs-question").first.inner_text()
        self.expected.question, self.expected.before = seen, ""

    def _recorded(self) -> None:
        # The last of those that are shown at once: the first may be what plays already.
        self._take([one for one in self._samples() if one.run][-1])

    def _plain(self) -> None:
        # Where the bundled model speaks another language, all examples are shown at once.
        asked = next((one for one in self._samples() if not one.run), None)
        self._take(asked or [one for one in self._samples() if one.run][-2])

    def _take(self, example: ExampleQuestion) -> None:
        items = self.page.locator("#examples .gallery-item")
        items.filter(has_text=example.question).first.click()
        self.expected.running = self.expected.played = False
        if example.run:
            self.expected.question, self.expected.own = example.question, True
            self.expected.before = ""

    def _run(self) -> None:
        question = another()
        box = self.page.locator("#asking textarea")
        # In one step: `fill` selects and types in two, and an example may be put in between them.
        box.evaluate(_TYPE, question)
        if self.expected.running:
            # It goes on: the button cannot be used, and the key does nothing.
            box.press("Enter")
            return
        self.page.locator("#go button").first.click()
        self.expected.running, self.expected.played = True, False
        self.expected.before = self.expected.question
        self.expected.question, self.expected.own = question, True

    def _stop(self) -> None:
        stop = self.page.locator("#go button").nth(1)
        if self.expected.running:
            # It can be used as soon as the run is known of.
            stop.click()
            self.expected.running = False
        elif self.expected.played and stop.is_enabled():
            stop.click()

    def _language(self) -> None:
        wanted: Language = "zh" if self.expected.language == "en" else "en"
        self.page.get_by_text({"en": "EN", "zh": "中文"}[wanted], exact=True).click()
        # An example is of the language that is spoken by then.
        expect(self.page.locator("#examples .label")).to_contain_text(WORDS[wanted])
        self.expected.language = wanted
        if not self.expected.own:
            self.expected.question = PLAYED[wanted]
        if self.expected.before in PLAYED.values():
            self.expected.before = PLAYED[wanted]

    def _tab(self) -> None:
        wanted = "drad" if self.expected.page == "ask" else "ask"
        at = {"ask": 0, "drad": 2}[wanted]
        self.page.locator("#pages [role=tab]").nth(at).click()
        self.expected.page = wanted

    def _samples(self) -> list[ExampleQuestion]:
        return examples_for(self.expected.language)


@pytest.fixture
def visitor(browser: Browser, held: Served) -> Iterator[Visitor]:
    """Somebody whose page makes no error."""
    faults: list[str] = []
    context = browser.new_context()
    page = context.new_page()
    page.set_default_timeout(PATIENCE)
    page.on("pageerror", lambda error: faults.append(str(error)))
    yield Visitor(page, held)
    context.close()
    assert not faults


@pytest.mark.verify
@pytest.mark.parametrize("first", ACTIONS)
def test_two_clicks_while_the_walkthrough_plays(visitor: Visitor, first: str):
    for second in ACTIONS:
        visitor.open()
        visitor.order = (first, second)
        visitor.does(first)
        visitor.does(second)
        visitor.sees_what_is_true()
        visitor.gives_up()


@pytest.mark.verify
@pytest.mark.parametrize("first", ACTIONS)
def test_three_clicks_one_after_another(visitor: Visitor, first: str):
    for second, third in permutations([one for one in ACTIONS if one != first], 2):
        visitor.order = (first, second, third)
        for action in visitor.order:
            visitor.does(action)
        visitor.sees_what_is_true()
        visitor.gives_up()

"""An annotator in a browser: every task by keys, spans in every script, and a server that ends."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from components.base.words import LANGUAGES, Catalogue
from pipelines.annotation.labelling import Worker, comments, skips
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import (
    Hidden,
    ItemBody,
    ModelVerdict,
    SessionItem,
    SpanLabel,
    verdict_of,
)
from pipelines.base import Language
from pipelines.store import RunStore
from tests.app.conftest import Visit
from tests.app.serving import (
    PHONE,
    ROOT,
    SCRIPTED,
    Workbench,
    expect_to_fit_everywhere,
    fits,
    serve_workbench,
    visiting,
    wait_until_drawn,
)
from tests.pipelines.annotation.bench import VALUES, item, join, lead_session


class Script(NamedTuple):
    """A text, the piece of it that is wrong, and how many graphemes are before and in it."""

    language: str
    text: str
    piece: str
    before: int
    inside: int
    leftwards: bool = False

    @property
    def span(self) -> tuple[int, int]:
        start = self.text.index(self.piece)
        return start, start + len(self.piece)


REQUESTS = ROOT / "assets" / "labelling" / "requests.js"

SCRIPTS = {
    "english": Script("en", "Ada was born in Delft in 1904.", "Delft", 16, 5),
    "chinese": Script("zh", "艾达于1904年出生于荷兰代尔夫特。", "荷兰", 11, 2),
    "emoji": Script(
        "en",
        "Ada \U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466\U0001f1f3\U0001f1f1 moved.",
        "\U0001f468\u200d\U0001f469\u200d\U0001f467\u200d\U0001f466\U0001f1f3\U0001f1f1",
        4,
        2,
    ),
    "combining": Script("fr", "Cafe\u0301 Zoe\u0308 opened.", "Zoe\u0308", 5, 3),
    "hebrew": Script("he", "נולדה עדה בשנת 1904 בהולנד.", "עדה", 6, 3, leftwards=True),
}

RANGE = """([start, end]) => {
    const units = (points, text) => Array.from(text).slice(0, points).join('').length;
    const body = document.querySelector('.vs-lab-text');
    const text = body.textContent;
    const range = document.createRange();
    const place = (at, set) => {
        const walker = document.createTreeWalker(body, NodeFilter.SHOW_TEXT);
        for (let node; (node = walker.nextNode()); at -= node.length) {
            if (at <= node.length) return set.call(range, node, at);
        }
    };
    place(units(start, text), range.setStart);
    place(units(end, text), range.setEnd);
"""
"""A piece of the text, in code points, as a range of the page."""

EDGES = (
    RANGE
    + """
    const boxes = [...range.getClientRects()].filter((box) => box.width);
    const y = boxes[0].top + boxes[0].height / 2;
    return [Math.min(...boxes.map((b) => b.left)), Math.max(...boxes.map((b) => b.right)), y];
}"""
)
"""The left and right edge, and the middle, of a piece of the text on the screen."""


@contextmanager
def at_work(workbench: Workbench) -> Iterator[RunStore]:
    store = RunStore(f"sqlite:///{workbench.data / 'veriscope.db'}")
    try:
        yield store
    finally:
        store.close()


@pytest.fixture
def store(workbench: Workbench) -> Iterator[RunStore]:
    with at_work(workbench) as opened:
        yield opened


def link(lead: Lead, worker: Worker, language: str = "en") -> str:
    token = lead.invite("annotator", annotator=worker.annotator)
    return f"/annotate?lang={language}&link={token}"


def begin(page: Page, t: Catalogue | None = None) -> None:
    """Leave the guidelines behind."""
    t = t or Catalogue("en")
    wait_until_drawn(page)
    page.get_by_role("button", name=t("annotate.task.begin")).click()
    expect(page.locator(".vs-lab-ask")).to_be_visible()


def heading(page: Page, task: str) -> Locator:
    return page.locator(".vs-lab-ask", has_text=Catalogue("en")(f"annotate.ask.{task}"))


def saved(page: Page, at: str) -> None:
    """Wait until the label is saved and the page is at another item."""
    expect(page.locator(".vs-lab-at")).to_have_text(at)
    expect(page.locator(".vs-lab")).not_to_have_attribute("data-busy", "")


def task_of(page: Page) -> str:
    said = page.locator(".vs-lab-ask").inner_text()
    t = Catalogue("en")
    return next(task for task in VALUES if t(f"annotate.ask.{task}") == said)


def verdicts(worker: Worker) -> dict[str, str]:
    """What was said, by task."""
    return {one.label.task: verdict_of(one.label) for one in worker.labels()}


def spans(worker: Worker) -> dict[int, list[tuple[int, int, str]]]:
    found = [one for one in worker.labels() if isinstance(one.label, SpanLabel)]
    return {
        one.item: [(span.start, span.end, span.kind) for span in one.label.spans]
        for one in found
        if isinstance(one.label, SpanLabel)
    }


def test_every_task_takes_one_key(visit: Visit, store: RunStore):
    lead = lead_session(store, overlap=1)
    (ann,) = join(lead, "Ann")
    page = visit().open(link(lead, ann))
    expect(page.get_by_text("Read the evidence.")).to_be_visible()
    # Who came by a link sees nothing but the session.
    expect(page.get_by_role("link", name="Runs")).to_have_count(0)
    begin(page)
    keys = {"concept": "2", "span": "0", "sentence": "3", "comparison": "3", "answer": "4"}
    expected = {
        "concept": "false",
        "span": "no_spans",
        "sentence": "major",
        "comparison": "same",
        "answer": "abstained",
    }
    done: list[str] = []
    for number in range(1, 6):
        saved(page, f"{number} of 5")
        done.append(task_of(page))
        if number == 3:
            expect_to_fit_everywhere(page)
            _comment_and_take_back(page, lead, ann)
        page.keyboard.press(keys[done[-1]])
    expect(page.get_by_text("There is no item left for you.")).to_be_visible()
    assert verdicts(ann) == expected
    assert all(one.seconds is not None and one.seconds < 60 for one in ann.labels())
    assert [one.text for one in comments(lead.events())] == ["Odd. 2s u"]
    page.get_by_role("button", name="Undo the last label").click()
    saved(page, "5 of 5")
    # Keys that Streamlit has for itself, and keys with others, are none of ours.
    page.keyboard.press("Control+1")
    page.keyboard.press("c")
    page.keyboard.press("Escape")
    expect(heading(page, done[-1])).to_be_visible()
    page.keyboard.press("Shift+U")
    expect(page.get_by_text("There is no item left for you.")).to_be_visible()
    assert verdicts(ann) == expected


def _comment_and_take_back(page: Page, lead: Lead, ann: Worker) -> None:
    """On the third item: a comment, and the second label taken back and restored."""
    page.keyboard.press("m")
    field = page.get_by_role("textbox", name="Comment")
    # Keys that are typed into a field label nothing.
    field.press_sequentially("Odd. 2s u")
    field.press("Control+Enter")
    expect(page.locator(".vs-lab [aria-live]").last).to_contain_text("The comment is saved.")
    assert len(comments(lead.events())) == 1
    assert len(ann.labels()) == 2
    page.keyboard.press("u")
    saved(page, "2 of 5")
    assert len(ann.labels()) == 1
    page.keyboard.press("Shift+U")
    saved(page, "3 of 5")
    assert len(ann.labels()) == 2


@pytest.mark.verify
def test_skipping_revealing_and_changing_ones_mind(visit: Visit, store: RunStore):
    lead = lead_session(store, [item("answer", number) for number in range(3)], overlap=1)
    (ann,) = join(lead, "Ann")
    page = visit().open(link(lead, ann))
    begin(page)
    page.keyboard.press("s")
    page.get_by_role("textbox", name="Reason").fill("I do not know Ada.")
    page.locator(".vs-lab-panel").get_by_role("button", name="Skip").click()
    saved(page, "2 of 3")
    assert [one.reason for one in skips(lead.events())] == ["I do not know Ada."]
    expect(page.get_by_text("Doubtful")).to_have_count(0)
    page.keyboard.press("1")
    saved(page, "3 of 3")
    # The detectors speak of what is labelled, and a change after that is one of its own.
    page.keyboard.press("v")
    expect(page.locator(".vs-lab-revealed")).to_contain_text("Doubtful")
    page.keyboard.press("3")
    expect(page.locator(".vs-lab-last .vs-badge")).to_contain_text("Wrong")
    (label,) = ann.labels()
    assert (verdict_of(label.label), label.changes, label.revealed) == ("wrong", 1, True)
    page.keyboard.press("n")
    saved(page, "3 of 3")
    expect(page.locator(".vs-lab-revealed")).to_have_count(0)
    # The guidelines again, over the item; keys belong to them while they are open.
    page.keyboard.press("g")
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("Read the evidence.")
    page.keyboard.press("2")
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert len(ann.labels()) == 1


def scripts_session(store: RunStore) -> tuple[Lead, Worker]:
    items = [
        SessionItem(
            key=name,
            body=ItemBody(task="span", text=one.text, language=one.language, question=name),
        )
        for name, one in SCRIPTS.items()
    ]
    lead = lead_session(store, items, overlap=1)
    return lead, join(lead, "Ann")[0]


def by_mouse(page: Page, script: Script) -> None:
    left, right, y = page.evaluate(EDGES, script.span)
    ends = [left + 1, right - 1] if not script.leftwards else [right - 1, left + 1]
    page.mouse.move(ends[0], y)
    page.mouse.down()
    page.mouse.move(ends[1], y, steps=4)
    page.mouse.up()
    expect(page.locator(".vs-lab-hint")).to_contain_text(script.piece)
    page.keyboard.press("3")


def by_keyboard(page: Page, script: Script) -> None:
    forward = "ArrowLeft" if script.leftwards else "ArrowRight"
    page.locator(".vs-lab-text").focus()
    page.keyboard.press("Home")
    for _ in range(script.before):
        page.keyboard.press(forward)
    for _ in range(script.inside):
        page.keyboard.press(f"Shift+{forward}")
    expect(page.locator(".vs-lab-hint")).to_contain_text(script.piece)
    page.keyboard.press("3")


def by_words(page: Page, script: Script) -> None:
    """By the keys that move by a word; there is none in a picture."""
    forward = "ArrowLeft" if script.leftwards else "ArrowRight"
    page.locator(".vs-lab-text").focus()
    page.keyboard.press("Home")
    for _ in range(script.before):
        page.keyboard.press(forward)
    page.keyboard.press(f"Control+Shift+{forward}")
    expect(page.locator(".vs-lab-hint")).to_contain_text(script.piece)
    page.keyboard.press("3")


def by_handles(page: Page, script: Script) -> None:
    """As when fingers drag the handles of a selection, which the browser itself draws."""
    page.locator(".vs-lab-text").tap()
    page.evaluate(
        RANGE + "getSelection().removeAllRanges(); getSelection().addRange(range); }",
        script.span,
    )
    expect(page.locator(".vs-lab-hint")).to_contain_text(script.piece)
    # The tap on the button takes the browser's selection away, but not ours.
    page.get_by_role("button", name="Name").tap()


def by_touch(page: Page, script: Script) -> None:
    left, right, y = page.evaluate(EDGES, script.span)
    # A tap takes a word; pictures are no words, and the second tap takes what lies between.
    pictures = any(ord(character) > 0x1F000 for character in script.piece)
    for x in (left + 4, right - 4) if pictures else ((left + right) / 2,):
        page.touchscreen.tap(x, y)
        expect(page.locator(".vs-lab-ready")).to_have_count(1)
    expect(page.locator(".vs-lab-hint")).to_contain_text(script.piece)
    page.get_by_role("button", name="Name").tap()


WAYS: dict[str, Any] = {
    "mouse": by_mouse,
    "keyboard": by_keyboard,
    "touch": by_touch,
    "handles": by_handles,
}
FIRST = {
    "english": "mouse",
    "chinese": "touch",
    "emoji": "keyboard",
    "combining": "mouse",
    "hebrew": "keyboard",
}


def mark_all(page: Page, ways: dict[str, str]) -> None:
    """Mark what is wrong in each text, in the way that is named for it."""
    for number in range(1, len(SCRIPTS) + 1):
        saved(page, f"{number} of {len(SCRIPTS)}")
        name = page.locator(".vs-lab-main .vs-answer").first.inner_text()
        WAYS[ways[name]](page, SCRIPTS[name])
        expect(page.locator(".vs-lab-span")).to_have_count(1)
        expect(page.locator(".vs-lab-span q")).to_have_text(SCRIPTS[name].piece)
        page.keyboard.press("d")


def expect_marked(lead: Lead, worker: Worker) -> None:
    keys = {one.number: one.key for one in lead.items()}
    found = {keys[number]: marked for number, marked in spans(worker).items()}
    assert found == {name: [(*one.span, "entity")] for name, one in SCRIPTS.items()}


@pytest.mark.verify
def test_pieces_are_marked_exactly_in_every_script(visit: Visit, store: RunStore):
    lead, ann = scripts_session(store)
    page = visit(touch=True).open(link(lead, ann))
    begin(page)
    mark_all(page, FIRST)
    expect(page.get_by_text("There is no item left for you.")).to_be_visible()
    expect_marked(lead, ann)


@pytest.mark.verify
@pytest.mark.parametrize("way", list(WAYS))
def test_pieces_are_marked_exactly_in_every_way(visit: Visit, store: RunStore, way: str):
    lead, ann = scripts_session(store)
    page = visit(touch=True, viewport=PHONE).open(link(lead, ann))
    begin(page)
    mark_all(page, dict.fromkeys(SCRIPTS, way))
    expect(page.get_by_text("There is no item left for you.")).to_be_visible()
    expect_marked(lead, ann)


@pytest.mark.verify
def test_words_are_found_by_keyboard_in_chinese_too(visit: Visit, store: RunStore):
    lead, ann = scripts_session(store)
    page = visit().open(link(lead, ann))
    begin(page)
    for number in range(1, len(SCRIPTS) + 1):
        saved(page, f"{number} of {len(SCRIPTS)}")
        name = page.locator(".vs-lab-main .vs-answer").first.inner_text()
        (by_keyboard if name == "emoji" else by_words)(page, SCRIPTS[name])
        page.keyboard.press("d")
    expect(page.get_by_text("There is no item left for you.")).to_be_visible()
    expect_marked(lead, ann)


@pytest.mark.verify
def test_spans_overlap_are_edited_and_survive_a_reload(visit: Visit, store: RunStore):
    text = "Ada was born in Delft in 1904."
    offered = (
        ModelVerdict(method="drad", verdict="doubtful", doubt=0.9, at=(0, 3)),
        ModelVerdict(method="drad", verdict="doubtful", doubt=0.8, at=(25, 29)),
    )
    body = ItemBody(task="span", text=text, language="en")
    one = SessionItem(key="one", body=body, hidden=Hidden(spans=offered))
    lead = lead_session(store, [one], overlap=1, offer_spans=True)
    (ann,) = join(lead, "Ann")
    page = visit().open(link(lead, ann))
    begin(page)
    rows, offers = page.locator(".vs-lab-span"), page.locator(".vs-lab-offer")
    expect(offers).to_have_count(2)
    by_mouse(page, Script("en", text, "born in Delft", 8, 13))
    by_mouse(page, Script("en", text, "Delft in", 16, 8))
    expect(rows).to_have_count(2)
    # Trimmed by one character, given another kind, and an offer taken and another dropped.
    page.get_by_role("button", name="End of span 2 one character earlier").click()
    expect(rows.nth(1).locator("q")).to_have_text("Delft i")
    page.get_by_role("combobox", name="Kind of error of span 2").select_option("number")
    offers.filter(has_text="1904").get_by_role("button", name="Take").click()
    offers.filter(has_text="Ada").get_by_role("button", name="Drop").click()
    expect(offers).to_have_count(0)
    expect(rows).to_have_count(3)
    expect_to_fit_everywhere(page)
    page.reload()
    expect(rows).to_have_count(3)
    page.locator(".vs-lab-text").focus()
    page.keyboard.press("0")
    assert ann.labels() == []
    page.get_by_role("button", name="Delete span 1").click()
    expect(rows).to_have_count(2)
    # What was done in the text is taken back first, and then the label before it.
    page.locator(".vs-lab-text").focus()
    page.keyboard.press("u")
    expect(rows).to_have_count(3)
    page.keyboard.press("Shift+U")
    expect(rows).to_have_count(2)
    page.keyboard.press("u")
    page.keyboard.press("d")
    expect(page.get_by_text("There is no item left for you.")).to_be_visible()
    assert spans(ann) == {0: [(8, 21, "entity"), (16, 23, "number"), (25, 29, "other")]}


@pytest.mark.verify
@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("language", LANGUAGES)
def test_a_phone_in_both_languages(visit: Visit, store: RunStore, language: Language, scheme: str):
    t = Catalogue(language)
    lead = lead_session(store, overlap=1, offer_spans=True, show="before")
    name = "Ann" if language == "en" else "安"
    page = visit(viewport=PHONE, touch=True, scheme=scheme).open(
        f"/annotate?lang={language}&link={lead.invite('join')}"
    )
    wait_until_drawn(page)
    page.get_by_role("textbox", name=t("annotate.join.name")).fill(name)
    page.get_by_role("button", name=t("annotate.join.go")).click()
    expect(page.locator("[data-testid='stCode']")).to_contain_text("link=")
    assert fits(page)
    begin(page, t)
    for number in range(1, 6):
        at = t("annotate.label.progress", at=number, total=5)
        saved(page, at)
        assert fits(page)
        small = page.evaluate(
            "() => [...document.querySelectorAll('.vs-lab button, .vs-lab select')]"
            ".filter((one) => one.getBoundingClientRect().height < 44).map((one) => one.outerHTML)"
        )
        assert small == []
        page.locator(".vs-lab-verdict").first.tap()
    expect(page.get_by_text(t("annotate.task.done.note"))).to_be_visible()
    assert [one.name for one in lead.annotators()] == [name]
    assert [one.labels for one in lead.items()] == [1] * 5


@pytest.mark.verify
def test_a_server_that_ends_loses_no_label_and_doubles_none(browser: Browser, tmp_path: Path):
    with serve_workbench(tmp_path, SCRIPTED) as served, at_work(served) as store:
        lead = lead_session(store, [item("answer", number) for number in range(4)], overlap=1)
        (ann,) = join(lead, "Ann")
        address, port = link(lead, ann), urlsplit(served.url).port
    with visiting(browser, served) as visitor:
        page = _open_when_served(visitor, tmp_path, port, address)
        # Pressed while nobody is there, and the tab was even loaded anew meanwhile.
        assert port is not None
        page.keyboard.press("3")
        expect(page.locator(".vs-lab-status")).to_contain_text("Not saved yet")
        with serve_workbench(tmp_path, SCRIPTED, port=port) as served, at_work(served) as store:
            saved(page, "2 of 4")
            again = Worker(store, ann_session(lead), ann.annotator)
            assert [verdict_of(one.label) for one in again.labels()] == ["wrong"]
            page.keyboard.press("2")
            saved(page, "3 of 4")
            page.reload()
            saved(page, "3 of 4")
            events = store.annotations.events(ann_session(lead))
            assert [one.kind for one in events] == ["given", "given"]
            assert len({one.client for one in events}) == 2
            page.close()


def ann_session(lead: Lead) -> str:
    return lead.session_id


def _open_when_served(visitor: Any, folder: Path, port: int | None, address: str) -> Page:
    """The page of a server that has ended by the time it is returned."""
    with serve_workbench(folder, SCRIPTED, port=port):
        page = visitor.open(address)
        begin(page)
        saved(page, "1 of 4")
    return page


@pytest.mark.verify
def test_time_counts_while_the_tab_is_seen_and_something_was_done(browser: Browser):
    page = browser.new_page()
    page.clock.install(time=datetime(2026, 1, 1, tzinfo=UTC))
    # From here on time passes only as the test says.
    page.clock.pause_at(datetime(2026, 1, 2, tzinfo=UTC))
    page.set_content("<p>An item</p>")
    script = re.sub(r"^(import .*|export )", "", REQUESTS.read_text("utf-8"), flags=re.MULTILINE)
    page.add_script_tag(content=f"{script}; globalThis.time = new ActiveTime();")

    def after(seconds: int) -> float:
        page.clock.run_for(1000 * seconds)
        return page.evaluate("time.seconds")

    def seen(state: str) -> None:
        page.evaluate(
            """(state) => {
                const told = { value: state, configurable: true };
                Object.defineProperty(document, 'visibilityState', told);
                document.dispatchEvent(new Event('visibilitychange'));
            }""",
            state,
        )

    assert after(10) == pytest.approx(10)
    # A minute after the last input nobody is at it any more.
    assert after(300) == pytest.approx(60)
    assert page.evaluate("time.active") is False
    page.keyboard.press("ArrowDown")
    assert page.evaluate("time.active") is True
    assert after(5) == pytest.approx(65)
    seen("hidden")
    assert after(30) == pytest.approx(65)
    seen("visible")
    assert after(5) == pytest.approx(70)
    page.evaluate("time.reset(12)")
    assert after(3) == pytest.approx(15)
    page.close()


@pytest.mark.verify
def test_what_is_shown_is_text_and_never_markup(visit: Visit, store: RunStore):
    evil = "<img src=x onerror=alert(1)> \u202e"
    body = ItemBody(
        task="sentence",
        question=evil,
        text=f"{evil}Ada.",
        start=0,
        end=len(evil),
        evidence=({"title": evil, "text": evil, "url": "javascript:alert(1)"},),  # type: ignore[arg-type]
    )
    lead = lead_session(store, [SessionItem(key="evil", body=body)], overlap=1)
    (ann,) = join(lead, evil[:20])
    page = visit().open(link(lead, ann))
    begin(page)
    expect(page.locator(".vs-lab-piece").first).to_contain_text("<img src=x")
    expect(page.locator(".vs-lab .vs-control")).to_have_text("U+202E")
    assert page.locator(".vs-lab img, .vs-lab a").count() == 0
    assert re.search("onerror", page.locator(".vs-lab").inner_text())

"""Annotation from end to end: one person leads, three label in browsers of their own.

The models are those that ship. What the labels say of a detector becomes a threshold, and the next
run uses it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from components.base.words import Catalogue
from pipelines.annotation.formats import export_session
from pipelines.annotation.labelling import AssignedItem, decisions, standing_labels
from pipelines.annotation.sessions import Invitation, Lead, enter
from pipelines.annotation.types import TASKS
from pipelines.store import RunStore
from tests.app.conftest import Visit
from tests.app.serving import (
    ROOT,
    Workbench,
    choose,
    question_field,
    serve_workbench,
    unfold,
    visiting,
    wait_for_end,
    wait_until_drawn,
)
from tests.app.test_browser_annotate_lead import choose_radio, link_of, tick
from tests.app.test_browser_evaluate import fill_number, press

pytestmark = [pytest.mark.verify, pytest.mark.alone]

T = Catalogue("en")
STATEMENTS = ROOT / "sample_data" / "statements.csv"
PEOPLE = ("Ann", "Bob", "Chen")
KEYS = {
    "Ann": {"concept": "1", "sentence": "1", "comparison": "1", "answer": "1", "span": "0"},
    "Bob": {"concept": "2", "sentence": "3", "comparison": "3", "answer": "3", "span": "0"},
    "Chen": {"concept": "1", "sentence": "1", "comparison": "2", "answer": "1", "span": "0"},
}
"""What each person presses at an item of a task, where they mark no piece of its text."""


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workbench]:
    """A workbench of its own, on the models that ship."""
    with serve_workbench(tmp_path_factory.mktemp("annotation")) as workbench:
        yield workbench


@pytest.fixture
def visit(browser: Browser, served: Workbench) -> Iterator[Visit]:
    with ExitStack() as stack:
        yield lambda **look: stack.enter_context(visiting(browser, served, **look))


@pytest.fixture
def store(served: Workbench) -> Iterator[RunStore]:
    opened = RunStore(f"sqlite:///{served.data / 'veriscope.db'}")
    yield opened
    opened.close()


def session_of(page: Page) -> str:
    """The session that the lead looks at."""
    page.wait_for_url(re.compile(r"[?&]session="))
    return page.url.partition("session=")[2].partition("&")[0]


def task_of(page: Page) -> str:
    said = page.locator(".vs-lab-ask").inner_text()
    return next(task for task in TASKS if T(f"annotate.ask.{task}") == said)


def join(page: Page, name: str) -> None:
    """Join under a name, and read the guidelines."""
    wait_until_drawn(page)
    page.get_by_role("textbox", name=T("annotate.join.name")).fill(name)
    press(page, T("annotate.join.go"))
    expect(page.locator("[data-testid='stCode']").first).to_contain_text("link=")
    press(page, T("annotate.task.begin"))
    expect(page.locator(".vs-lab-ask")).to_be_visible()


def label_one(page: Page, name: str) -> str:
    """Label the item in hand by keys; its task."""
    expect(page.locator(".vs-lab")).not_to_have_attribute("data-busy", "")
    before, task = page.locator(".vs-lab-at").inner_text(), task_of(page)
    if task == "span" and name != "Ann":
        # Bob marks the first word, Chen the first two.
        page.locator(".vs-lab-text").focus()
        page.keyboard.press("Home")
        for _ in range(PEOPLE.index(name)):
            page.keyboard.press("Control+Shift+ArrowRight")
        page.keyboard.press("3")
        expect(page.locator(".vs-lab-span")).to_have_count(1)
        page.keyboard.press("d")
    else:
        page.keyboard.press(KEYS[name][task])
    page.wait_for_function(
        """(before) => {
            const at = document.querySelector('.vs-lab-at');
            return !at || at.innerText !== before;
        }""",
        arg=before,
    )
    return task


def test_four_browsers_from_the_first_item_to_a_run_with_a_fitted_threshold(
    visit: Visit, store: RunStore, tmp_path: Path
) -> None:
    lead = visit().open("/annotate")

    # The lead makes a session of the recorded samples, with every task.
    unfold(lead, "annotate-new")
    choose_radio(lead, T("annotate.source.runs"))
    tick(lead, "annotate-make-all")
    for task in TASKS:
        pill = lead.get_by_role("button", name=T(f"annotate.task.{task}"), exact=True)
        if pill.get_attribute("aria-pressed") != "true":
            pill.click()
            wait_until_drawn(lead)
    tick(lead, "annotate-make-without_gold")
    press(lead, T("annotate.make.go"))
    session = session_of(lead)
    press(lead, T("annotate.link.make"))
    address = "/annotate" + link_of(lead).partition("/annotate")[2]

    # Three people join and label at the same time, until none of them has an item left.
    pages = {name: visit().open(address) for name in PEOPLE}
    for name, page in pages.items():
        join(page, name)
    done: dict[str, set[str]] = {name: set() for name in PEOPLE}
    labelling = dict(pages)
    while labelling:
        for name, page in list(labelling.items()):
            if page.locator(".vs-lab-ask").count():
                done[name].add(label_one(page, name))
            else:
                del labelling[name]
    leading = Lead(store, session)
    items, events = leading.items(), leading.events()
    assert [one.labels for one in items] == [2] * len(items)
    assert {one.task for one in items} == set(TASKS)
    assert set.union(*done.values()) == set(TASKS)
    labels = standing_labels(events)
    assert len(labels) == len({(one.item, one.annotator) for one in labels}) == 2 * len(items)

    # The lead decides the first items on which they disagree, and takes the session with them.
    choose_radio(lead, T("annotate.part.decide"))
    wait_until_drawn(lead)
    field = lead.get_by_role("textbox", name=T("annotate.decide.name"))
    field.fill("Dana")
    field.press("Enter")
    expect(lead.locator(".st-key-decide-name")).to_have_count(0)
    for count in (1, 2, 3):
        wait_until_drawn(lead)
        lead.get_by_role("button", name=f"{T('annotate.label.merge_person')}: ").first.click()
        lead.get_by_role("button", name=T("annotate.label.decide")).click()
        expect(lead.get_by_text(f"{count} decided")).to_be_visible()
        assert len(decisions(leading.events())) == count
    choose_radio(lead, T("annotate.part.settings"))
    with lead.expect_download() as download:
        lead.get_by_role("button", name=T("annotate.export.jsonl")).click()
    saved = tmp_path / "session.jsonl"
    download.value.save_as(saved)
    assert saved.read_text(encoding="utf-8") == "".join(export_session(leading))
    choose_radio(lead, T("annotate.part.results"))
    agreed = lead.get_by_role("table", name=T("annotate.results.agreement"), exact=True)
    expect(agreed).to_contain_text("Krippendorff’s alpha")

    # A detector on labelled statements: its threshold, as a profile.
    _evaluate_statements(lead)
    _label_the_statements(lead, store)
    choose_radio(lead, T("annotate.part.results"))
    unfold(lead, "annotate-results-fold-fits")
    name = lead.get_by_role("textbox", name=T("profile.name"))
    name.fill("From labels")
    name.press("Enter")
    press(lead, T("profile.save"))
    expect(lead.get_by_text(T("profile.saved", name="From labels"))).to_be_visible()
    (kept,) = store.profiles.list(leading.session.owner)
    threshold = kept.settings["slm"]["threshold"]

    # The next run uses it.
    lead.get_by_role("link", name=T("nav.ask"), exact=True).click()
    wait_until_drawn(lead)
    lead.locator(".st-key-settings summary").click()
    choose(lead, T("profile.choose"), "From labels")
    question_field(lead).fill("How high is the Eiffel Tower?")
    question_field(lead).press("Enter")
    run = wait_for_end(lead)
    spec = store.load(run, leading.session.owner).header.spec
    assert spec.profile == "From labels"
    (asked,) = [one for one in spec.methods if one.name == "slm"]
    assert asked.settings["threshold"] == pytest.approx(threshold)


def _evaluate_statements(page: Page) -> None:
    """The SLM check on bundled statements, half of which are wrong."""
    page.get_by_role("link", name=T("nav.evaluate"), exact=True).click()
    choose(page, T("evaluate.data.which"), T("evaluate.bundled.statements"))
    with STATEMENTS.open(encoding="utf-8", newline="") as file:
        total = len(list(csv.DictReader(file)))
    # Until it is drawn, the field of another data set stands in its place.
    fill_number(page, T("evaluate.limit", total=total), f"{total}")
    press(page, T("evaluate.run"))
    expect(page.locator(".vs-evaluation-progress")).to_contain_text(
        T("status.done"), timeout=600_000
    )


def _label_the_statements(page: Page, store: RunStore) -> None:
    """A session of that evaluation, which somebody labels beside the browser, by what is true."""
    page.get_by_role("link", name=T("nav.annotate"), exact=True).click()
    press(page, T("annotate.all"))
    unfold(page, "annotate-new")
    choose_radio(page, T("annotate.source.evaluation"))
    fill_number(page, T("annotate.overlap"), "1")
    press(page, T("annotate.make.go"))
    lead = Lead(store, session_of(page))
    press(page, T("annotate.link.make"))
    invitation = enter(store, link_of(page).partition("link=")[2], "local")
    assert isinstance(invitation, Invitation)
    worker, _ = invitation.join("Eve")
    with STATEMENTS.open(encoding="utf-8", newline="") as file:
        supported = {row["statement"]: row["label"] == "supported" for row in csv.DictReader(file)}
    verdicts = {"sentence": ("accurate", "major"), "answer": ("correct", "wrong")}
    while isinstance(found := worker.next(), AssignedItem):
        task = found.body.task
        said = verdicts[task][not supported[found.body.text]]
        worker.label(found.item, {"task": task, "verdict": said}, client=f"eve-{found.item}")
    assert len(worker.labels()) == len(lead.items())

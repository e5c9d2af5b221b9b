"""Items are decided and results read in a browser: verdicts, merged spans, a saved profile."""

from __future__ import annotations

import re
from collections.abc import Iterator

import pytest
from playwright.sync_api import Page, expect

from components.base.words import LANGUAGES, Catalogue
from pipelines.annotation.labelling import decisions
from pipelines.annotation.sessions import Lead
from pipelines.annotation.types import Hidden, Label, ModelVerdict, SessionItem
from pipelines.base import Language
from pipelines.store import RunStore, new_owner
from tests.app.conftest import Visit
from tests.app.screens.annotate.test_results import label, labels
from tests.app.serving import (
    Workbench,
    browser_of,
    expect_to_fit_everywhere,
    unfold,
    wait_until_drawn,
)
from tests.app.test_browser_evaluate import press
from tests.pipelines.annotation.bench import item
from tests.pipelines.annotation.evaluated import session_of

MARK, LONGER = [{"start": 0, "end": 3}], [{"start": 0, "end": 7, "kind": "entity"}]


@pytest.fixture
def beside(workbench: Workbench) -> Iterator[RunStore]:
    """The database of the workbench."""
    store = RunStore(f"sqlite:///{workbench.data / 'veriscope.db'}")
    yield store
    store.close()


def disputed(store: RunStore, owner: str) -> Lead:
    """Two people disagree on a sentence and on a text's spans, and agree on sixty answers."""
    items: list[SessionItem] = [item("sentence"), item("span")]
    agreed: dict[str, Label] = {}
    for number in range(60):
        value = number / 60
        verdict = ModelVerdict(
            method="slm", verdict="supported", score="entailment", value=value, doubt=1 - value
        )
        items.append(item("answer", number, hidden=Hidden(verdicts=(verdict,))))
        told = "wrong" if number < 24 or number % 13 == 0 else "correct"
        agreed[f"answer-{number}"] = label("answer", told)
    first = labels("sentence", "minor") | labels("span", MARK) | agreed
    second = labels("sentence", "accurate") | labels("span", LONGER) | agreed
    return session_of(store, items, first, second, owner=owner)


def choose(page: Page, name: str) -> None:
    wait_until_drawn(page)
    page.get_by_role("radio", name=name, exact=True).click()
    wait_until_drawn(page)


def button(page: Page, words: str) -> None:
    """Press a button of the component, which names its key as well."""
    page.locator(".vs-lab").get_by_role("button", name=re.compile(re.escape(words))).first.click()


@pytest.mark.verify
@pytest.mark.parametrize("language", LANGUAGES)
def test_verdicts_and_spans_are_decided_and_a_threshold_is_saved(
    visit: Visit, workbench: Workbench, beside: RunStore, language: Language
) -> None:
    t, owner = Catalogue(language), new_owner()
    lead = disputed(beside, owner)
    visitor = visit(known=browser_of(workbench, owner))
    page = visitor.open(f"/annotate?session={lead.session_id}&lang={language}")
    choose(page, t("annotate.part.decide"))
    bar = page.locator(".vs-evaluation-progress")
    expect(bar).to_contain_text(t("annotate.decide.left", count=2))
    expect(page.get_by_text(t("annotate.decide.name.first"))).to_be_visible()
    name = page.get_by_role("textbox", name=t("annotate.decide.name"), exact=True)
    name.fill("Dana")
    name.press("Enter")
    expect(page.get_by_text(t("annotate.decide.name.first"))).to_have_count(0)

    # The sentence, on which nobody agrees, comes first; names can be hidden.
    lab = page.locator(".vs-lab")
    expect(lab).to_contain_text(t("annotate.ask.sentence"))
    expect(lab).to_contain_text("Person 0")
    wait_until_drawn(page)
    page.get_by_text(t("annotate.decide.hide"), exact=True).click()
    expect(lab).to_contain_text(t("annotate.decide.person", number=1))
    expect(lab).not_to_contain_text("Person 0")
    expect_to_fit_everywhere(page)
    # Its keys work at once, wherever the focus is.
    wait_until_drawn(page)
    page.keyboard.press("3")
    lab.get_by_role("textbox").last.fill("Read the second passage.")
    button(page, t("annotate.label.decide"))

    # The spans follow by themselves; what anybody marked is taken.
    expect(lab).to_contain_text(t("annotate.ask.span"))
    expect(bar).to_contain_text(t("annotate.decide.saved", number=1))
    expect_to_fit_everywhere(page)
    # Both pressed at once: nothing is decided before the merged spans are on the screen.
    lab.evaluate(
        """(lab, names) => names.forEach((name) =>
            [...lab.querySelectorAll("button")]
                .find((one) => one.textContent.includes(name)).click()
        )""",
        [t("annotate.label.merge_union"), t("annotate.label.decide")],
    )
    expect(lab.locator(".vs-lab-spans li:not(.vs-lab-none)")).to_have_count(1)
    assert [*decisions(lead.events())] == [0]
    button(page, t("annotate.label.decide"))
    expect(page.get_by_text(t("annotate.decide.done"))).to_be_visible()
    found = decisions(lead.events())
    assert found[0].label == label("sentence", "major")
    assert found[0].note == "Read the second passage."
    assert found[1].merged == "union"
    assert found[1].label == label("span", LONGER)

    # What was decided can be looked at again.
    choose(page, t("annotate.decide.list.decided"))
    expect(lab).to_contain_text(t("annotate.ask.span"))

    # Results: a threshold is fitted and saved, for the next run.
    choose(page, t("annotate.part.results"))
    choose(page, t("annotate.results.task.answer"))
    expect(page.locator(".vs-coefficients")).to_contain_text(t("annotate.results.alpha"))
    for part in ("pairs", "labels", "scores", "fits"):
        unfold(page, f"annotate-results-fold-{part}")
    expect(page.locator(".js-plotly-plot")).to_be_visible()
    expect_to_fit_everywhere(page)
    wait_until_drawn(page)
    field = page.get_by_role("textbox", name=t("profile.name"))
    field.fill("Fitted")
    field.press("Enter")
    press(page, t("profile.save"))
    expect(page.get_by_text(t("profile.saved", name="Fitted"))).to_be_visible()
    (profile,) = beside.profiles.list(owner)
    assert 0.3 < profile.settings["slm"]["threshold"] < 0.5

"""The Rowen page as HTML: filling cell by cell, decided again, in every state and language."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from components.base.words import LANGUAGES, Catalogue
from components.methods.rowen import rowen_view
from pipelines.errors import AuthenticationError, UnreachableError
from pipelines.run.events import Event, RunCancelled, Trace
from pipelines.run.view import fold
from tests.components.html_tree import Node, read
from tests.components.test_hostile import HOSTILE
from tests.pipelines.methods.rowen.test_judges import WEAK, judged, reader
from tests.scripted.bench import Outcome, Shelf
from tests.scripted.rowen import (
    CHINESE,
    ENGLISH,
    NOTHING,
    QUESTION,
    Cosines,
    Speaker,
    reevaluated,
    rowen,
)

ALL = range(6)


def other() -> Speaker:
    return Speaker(prefix="w")


def page(outcome: Outcome, t: Catalogue, **changes: Any) -> Node:
    """The page after the run, re-evaluated with `changes` where there are any."""
    if not changes:
        return page_of(outcome.trace, t)
    (spec,) = outcome.trace.header.spec.methods
    again = reevaluated(outcome, **{**spec.settings, **changes})
    return read(rowen_view(again.view, t, diverges_at=again.diverges_at))


def page_of(trace: Trace, t: Catalogue) -> Node:
    return read(rowen_view(fold(trace.events), t))


def during(trace: Trace, events: int, t: Catalogue) -> Node:
    """The page after the first `events` of the run, while it goes on."""
    return read(rowen_view(fold(trace.events[:events]), t))


def place(trace: Trace, kind: str, nth: int = 0, **fields: Any) -> int:
    """How many events there are up to the `nth` one of `kind` with these fields, included."""
    found = [
        number
        for number, event in enumerate(trace.events, start=1)
        if event.kind == kind and all(getattr(event, k) == v for k, v in fields.items())
    ]
    return found[nth]


def stopped(trace: Trace, events: int) -> Trace:
    """The run as if it had been stopped there."""
    kept: tuple[Event, ...] = trace.events[:events]
    last = kept[-1]
    ended = RunCancelled(
        run=last.run, span="run", parent=None, seq=last.seq + 1, time=last.time, reason="stopped"
    )
    return Trace(events=(*kept, ended))


def say(root: Node) -> str:
    return next(n for n in root.walk() if n.attributes.get("data-key") == "sentence").text()


def cells(root: Node, row: int) -> dict[str, str]:
    """What a row of the table says, by its columns' names, without what is behind disclosures."""
    (found,) = [n for n in root.all("tr") if n.attributes.get("data-key") == f"pair-{row}"]
    return {
        cell.attributes["data-label"]: cell.text("vs-details", "vs-sign").strip()
        for cell in found.all("td")
        # The calls behind a number have a table of their own.
        if "data-label" in cell.attributes
    }


async def test_the_decision_is_told_in_one_sentence(t: Catalogue):
    outcome = await rowen(Speaker(cl=(0,), cm=(1, 2)), verifier=other())
    root = page(outcome, t)
    assert say(root) == (
        "1 of 6 pairs of answers agree across languages, 2 of 6 with the verifier. "
        "Z = 0.50 is not below 0.50: the original answer stays."
    )
    assert len(root.all(".vs-gauge")) >= 4
    assert "Compared languages: English and Chinese." in root.text()
    assert root.all(".vs-flag") == []
    assert "Nothing is looked up" in root.one(".vs-section-evidence").text()
    assert "The original answer stays." in root.one(".vs-section-change").text()


async def test_every_comparison_is_in_the_table(t: Catalogue):
    outcome = await rowen(Speaker(cl=(0,), cm=(1,)), verifier=other())
    root = page(outcome, t)
    assert cells(root, 0) == {
        "#": "1",
        "Paraphrase": "Which Clinton town q0?",
        "Answer": "a0",
        "In Chinese": "译文q0？",
        "Answer in Chinese": "答0",
        "Across languages": "Agree",
        "Verifier": "w0",
        "With the verifier": "Disagree",
    }
    languages = [node.attributes.get("lang") for node in root.all(".vs-rowen-text")]
    assert languages[:5] == ["en", "en", "zh-CN", "zh-CN", "en"]
    # Reasoning and the calls behind a verdict can be opened.
    assert "Thinking about Which Clinton town q0?" in root.all("tr")[1].text()
    assert "Below is a question with two answers" in root.all("tr")[1].text()


async def test_evidence_and_repair_are_shown(t: Catalogue):
    root = page(await rowen(Speaker(), verifier=other()), t)
    assert "Z = 0.00 is below 0.50: evidence is looked up" in say(root)
    queries = root.one(".vs-rowen-queries")
    assert [n.text() for n in queries.all(".vs-query")] == [QUESTION, *(f"query {n}" for n in ALL)]
    assert "the question itself" in queries.text()
    assert "2 passages" in queries.text()
    assert len(root.all(".vs-passage-card")) == 2
    change = root.one(".vs-section-change")
    assert (change.one("del").text("vs-sr"), change.one("ins").text("vs-sr")) == ("York", "Hope")
    assert f"Thinking about {QUESTION}" in change.text()


async def test_a_moved_threshold_keeps_or_asks_for_a_new_run(t: Catalogue):
    repaired = await rowen(Speaker(cl=(0,), cm=(1,)), verifier=other())
    root = page(repaired, t, threshold=0.2)
    assert "0.33 is not below 0.20: the original answer stays" in say(root)
    assert root.one(".vs-section-change").all("ins") == []

    kept = await rowen(Speaker(cl=ALL, cm=ALL), verifier=other())
    root = page(kept, t, threshold=3.0)
    assert "2.00 is below 3.00" in say(root)
    assert "leaves the recorded one at draft 2" in root.text()
    assert "The recorded run looked nothing up." in root.text()


async def test_counting_by_probability_shows_it(t: Catalogue):
    soft = {("cl", 0): 0.84, ("cl", 1): 0.4}
    outcome = await rowen(Speaker(soft=soft), variant="cl", k=2)
    assert cells(page(outcome, t), 0)["Across languages"] == "Agree"
    root = page(outcome, t, soft=True)
    assert [cells(root, n)["Across languages"] for n in (0, 1)] == ["Agree 0.84", "Disagree 0.40"]
    # (0.84 + 0.40) / 2; by 0 and 1 it would be 0.50.
    assert "0.62 is not below 0.60" in say(root)
    assert "Each pair counts with the probability" in root.text()


async def test_columns_of_a_side_not_used_are_left_out(t: Catalogue):
    outcome = await rowen(Speaker(cl=ALL, cm=ALL), verifier=other())
    languages = page(outcome, t, variant="cl")
    assert "Verifier" not in cells(languages, 0)
    assert say(languages).startswith("6 of 6 pairs of answers agree across languages. Z = 1.00 is")
    models = page(outcome, t, variant="cm")
    assert "In Chinese" not in cells(models, 0)
    assert "Compared languages" not in models.text()


async def test_a_side_that_was_not_compared_needs_a_new_run(t: Catalogue):
    outcome = await rowen(Speaker(cm=ALL), verifier=other(), variant="cm")
    root = page(outcome, t, variant="cl")
    assert "leaves the recorded one" in root.text()
    assert say(root) == "Nothing was compared."
    # What is known without it is shown.
    assert cells(root, 0)["Answer"] == "a0"
    assert "York" in root.one(".vs-section-change").text()


async def test_a_hybrid_decided_by_one_side_says_so(t: Catalogue):
    model = Speaker(cl=(0, 1, 2), undecided=[("cm", n) for n in ALL])
    root = page(await rowen(model, verifier=other()), t)
    assert say(root).startswith("3 of 6 pairs of answers agree across languages. Z = 0.50 is below")
    assert "comparison across languages decided alone" in root.one(".vs-flags").text()
    # Both comparisons were made, and both are shown.
    assert cells(root, 0)["With the verifier"] == "Undecided"


async def test_discarded_paraphrases_are_shown_with_their_reason(t: Catalogue):
    listed = "1. Which Clinton town q0?\n2. Clinton was born in York.\n3. Which Clinton town q1?"
    model = Speaker(cl=ALL, replies={"paraphrase": listed})
    outcome = await rowen(model, variant="cl", k=3, similarity=Cosines({1: 0.31}))
    root = page(outcome, t)
    found = next(n for n in root.walk() if n.attributes.get("data-key") == "discarded")
    # The second list repeats the first one.
    assert found.text().startswith("5 texts discarded: they are no paraphrases of the question")
    assert "Clinton was born in York. asks nothing, or contains an answer" in found.text()
    assert "too far from the question (similarity to the question 0.31)" in found.text()
    assert cells(root, 0)["Paraphrase"].endswith("similarity to the question 0.90")


async def test_a_model_that_cannot_paraphrase_is_given_no_number(t: Catalogue):
    model = Speaker(replies={"paraphrase": "1. Clinton was born in York.\n2. He is a president."})
    root = page(await rowen(model, verifier=other()), t)
    assert say(root).startswith("This model could not paraphrase the question")
    assert root.all(".vs-gauge") == []
    assert "0.00" not in root.one(".vs-section-decision").text()
    assert "asks nothing" in root.one(".vs-section-pairs").text()


async def test_a_repair_that_changes_nothing_confirms_the_answer(t: Catalogue):
    root = page(await rowen(Speaker(replies={"repair": "In York."}), verifier=other()), t)
    change = root.one(".vs-section-change")
    assert "The repair confirmed the original answer." in change.text()
    assert change.all("ins") == []


async def test_undecided_and_lost_pairs_are_shown_with_their_reason(t: Catalogue):
    def short(text: str) -> str:
        return {"q2": "", "q3": "I don't know."}.get(text[-3:-1], "In Hope.")

    def translate(text: str) -> str:
        return "No" if "q1" in text else f"译文{text.rstrip('?')[-2:]}？"

    model = Speaker(cl=ALL, undecided=[("cl", 0)], replies={"short": short, "translate": translate})
    root = page(await rowen(model, variant="cl", k=4), t)
    verdicts = [cells(root, row)["Across languages"] for row in range(4)]
    assert verdicts == ["Undecided", "Undecided", "Undecided", "No answer"]
    assert cells(root, 1)["Answer in Chinese"] == "–"
    assert cells(root, 2)["Answer"] == "(nothing)"
    for reason in ("named neither", "could not be translated", "is empty", "gives no answer"):
        assert reason in root.text()
    assert "3 pairs could not be decided" in root.text()


async def test_nothing_decided_says_so(t: Catalogue):
    outcome = await rowen(Speaker(undecided=[("cl", n) for n in ALL]), variant="cl")
    root = page(outcome, t)
    assert say(root) == "No pair of answers could be decided, so evidence is looked up."
    assert "Not checked" in root.one(".vs-flags").text()


@pytest.mark.parametrize(
    ("shelf", "words"),
    [
        (NOTHING, "The search found nothing"),
        (Shelf(UnreachableError("Gone.", remedy="Wait.")), "The search failed"),
    ],
)
async def test_a_search_without_result_is_told(shelf, words, t: Catalogue):
    root = page(await rowen(Speaker(), verifier=other(), shelf=shelf), t)
    assert words in root.one(".vs-flags").text()
    assert "Not verified" in root.one(".vs-flags").text()


async def test_a_stand_in_and_its_column_are_named_as_such(t: Catalogue):
    outcome = await rowen(Speaker(cl=ALL, cm=ALL))
    root = page(outcome, t)
    assert "No verifier was chosen" in root.one(".vs-flags").text()
    assert cells(root, 0)["Second sample"] == "v0"
    start = during(outcome.trace, place(outcome.trace, "judged", what="pair"), t)
    assert "No verifier was chosen" in start.one(".vs-flags").text()


async def test_a_failed_cell_says_what_failed(t: Catalogue):
    refused = AuthenticationError("No.", remedy="Check the key.")
    broken = Speaker(prefix="w", replies={"reason": refused})
    root = page(await rowen(Speaker(cl=ALL), verifier=broken), t)
    assert "The key was refused" in cells(root, 0)["Verifier"]
    assert cells(root, 0)["With the verifier"] == "Undecided"
    assert "Some comparisons failed" in root.one(".vs-flags").text()


async def test_a_failed_run_shows_its_error_and_what_it_had(t: Catalogue):
    gone = UnreachableError("Nobody there.", remedy="Wait.")
    outcome = await rowen(Speaker(replies={"short": gone}), k=2)
    root = page(outcome, t)
    assert "The provider cannot be reached" in root.one(".vs-error").text()
    assert root.one(".vs-error").all("button")
    assert "No answer was written." in root.one(".vs-section-change").text()


async def test_an_early_stop_shows_what_was_left_out(t: Catalogue):
    never = asyncio.Event()

    async def before(kind: str, index: int | None) -> None:
        if kind == "cl" and index in (4, 5):
            await never.wait()

    outcome = await rowen(Speaker(cl=ALL, before=before), variant="cl", early_stop=True)
    root = page(outcome, t)
    assert say(root).startswith("4 of 4 pairs of answers agree across languages. Z = 1.00 is")
    assert "2 pairs were not compared." in root.text()
    assert cells(root, 5)["Across languages"] == "Not compared"


async def test_another_language_of_the_model_gets_no_number(t: Catalogue):
    root = page(await rowen(Speaker(capabilities=ENGLISH), question=CHINESE), t)
    assert root.all(".vs-gauge") == []
    assert root.all("table") == []
    assert "does not speak the language" in root.one(".vs-notices").text()
    assert "York" in root.one(".vs-section-change").text()


async def test_cells_fill_in_place(t: Catalogue):
    trace = (await rowen(Speaker(), verifier=other())).trace
    start = during(trace, place(trace, "span_started", name="paraphrase"), t)
    assert len(start.all("tr")) == 7
    assert say(start) == "Not decided yet."
    first = start.all(".vs-rowen-paraphrase")[0]
    assert first.one(".vs-reserved").attributes["aria-busy"] == "true"
    # What cannot have begun keeps its space and does not pulse.
    assert "aria-busy" not in start.all(".vs-rowen-source")[0].one(".vs-reserved").attributes

    answered = during(trace, place(trace, "span_started", 4, name="answer"), t)
    keys = [n.attributes.get("data-key") for n in answered.all("tr")]
    assert keys == [None, *(f"pair-{n}" for n in ALL)]
    busy = [n for n in answered.all(".vs-reserved") if n.attributes.get("aria-busy") == "true"]
    assert busy

    some = during(trace, place(trace, "judged", 2, what="pair"), t)
    assert say(some).startswith("So far, ")
    assert some.all(".vs-gauge-flagged") == []
    searching = during(trace, place(trace, "span_started", 1, name="search"), t)
    assert searching.one(".vs-rowen-queries").all(".vs-reserved")


@pytest.mark.parametrize("language", LANGUAGES)
@pytest.mark.parametrize("question", [QUESTION, CHINESE])
async def test_every_moment_of_a_run_can_be_shown(language, question):
    t = Catalogue(language, strict=True)
    trace = (await rowen(Speaker(cl=(0,)), question=question, k=2, soft=True)).trace
    for events in range(len(trace.events)):
        during(trace, events, t)
        if events > 1:
            halted = page_of(stopped(trace, events), t)
            assert not [n for n in halted.all(".vs-reserved") if n.attributes.get("aria-busy")]


async def test_a_stopped_run_decides_nothing(t: Catalogue):
    trace = (await rowen(Speaker(), verifier=other())).trace
    halted = page_of(stopped(trace, place(trace, "judged", 3, what="pair")), t)
    assert say(halted).startswith("So far, ")
    assert "The run was stopped" in halted.one(".vs-notices").text()
    early = page_of(stopped(trace, place(trace, "span_started", name="paraphrase")), t)
    assert say(early) == "Nothing was compared."


@pytest.mark.parametrize("text", HOSTILE)
async def test_foreign_text_stays_text(text: str, t: Catalogue):
    told = {"short": text, "reason": text, "query": text, "repair": text}
    found = Shelf(lambda _: [text])
    outcome = await rowen(Speaker(replies=told), shelf=found, question=f"{QUESTION} {text}", k=2)
    root = page(outcome, t)
    names = {node.name for node in root.walk()}
    assert names & {"script", "img", "svg", "style", "iframe", "object", "link", "b"} == set()
    for node in root.walk():
        assert not [name for name in node.attributes if name.startswith("on")]


async def test_the_page_says_who_compared_the_answers(t: Catalogue):
    shown = page(await rowen(other(), variant="cm", k=1), t)
    assert "Answers compared by the main model, speaker w." in shown.text()
    by_judge = page(await judged(WEAK, reader()), t)
    assert "Answers compared by reader." in by_judge.text()
    assert "The judge compared the two answers as answers to the question" in by_judge.text()


async def test_a_translation_that_is_not_used_is_shown_with_its_reason(t: Catalogue):
    tries = ["因为他在那里出生。", "他在那里出生。"] * 2
    written = iter(tries)
    model = Speaker(cl=ALL, replies={"translate": lambda _: next(written)})
    root = page(await rowen(model, variant="cl", k=1, similarity=Cosines()), t)
    shown = cells(root, 0)["In Chinese"]
    assert all(one in shown for one in tries)
    assert shown.count("Not used: it asks nothing") == 2
    assert cells(root, 0)["Answer in Chinese"] == "–"


async def test_a_line_says_which_parts_of_the_paper_run(t: Catalogue):
    def parts(root: Node) -> str:
        return next(n for n in root.walk() if n.attributes.get("data-key") == "parts").text()

    both = parts(page(await rowen(Speaker(cl=ALL, cm=ALL), verifier=other()), t))
    assert "answers in English and Chinese" in both
    assert "is the verifier" in both
    assert "does not run" not in both
    alone = page(await rowen(Speaker(cl=ALL), variant="auto"), t)
    assert "no second model speaks English" in parts(alone)
    # Where there is no verifier, nothing claims to agree with one.
    assert "ith the verifier" not in alone.text()
    one = page(await rowen(Speaker(cm=ALL, capabilities=ENGLISH)), t)
    assert "does not run: speaker a is asked in English only" in parts(one)
    assert "agreement with the verifier" not in one.text()
    assert "Agreement with a second answer" in one.text() or "second answer" in one.text()

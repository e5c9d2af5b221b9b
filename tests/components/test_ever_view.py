"""The EVER page as HTML: sentences, concepts, corrections, what is settled and what it cost."""

from __future__ import annotations

from typing import Any

import pytest

from components.ever_view import ever_view
from components.messages import Catalogue
from pipelines.errors import UnreachableError
from pipelines.methods.ever import Ever
from pipelines.methods.ever.settings import EverSettings
from tests.components.html_tree import Node, read
from tests.components.runs import view_of
from tests.pipelines.methods.bench import Outcome, Shelf
from tests.pipelines.methods.ever.bench import (
    FIRST,
    SECOND,
    WHOLE,
    Archive,
    Part,
    decided,
    ever_run,
)
from tests.pipelines.methods.test_checkers import WEAK, ever, reads

MENDED = "Ada Brandt was a botanist born in 1931."
CORRECTED = Part(
    texts={"": WHOLE, MENDED: f" {SECOND}"},
    concepts={FIRST: ["chemist", "1931"], MENDED: ["botanist", "1931"], SECOND: ["Bergen"]},
    verdicts={"chemist": "False", "Bergen": "NEI"},
    rectified={FIRST: MENDED, SECOND: SECOND},
)


def page_of(outcome: Outcome, t: Catalogue, **changes: Any) -> Node:
    decision = decided(outcome, **changes)
    return read(ever_view(view_of(outcome.trace), decision, settings_of(outcome, **changes), t))


def settings_of(outcome: Outcome, **changes: Any) -> EverSettings:
    (spec,) = outcome.trace.header.spec.methods
    return Ever().settings({**spec.settings, **changes})


def cards_of(page: Node) -> list[Node]:
    return page.all(".vs-ever-card")


async def test_sentences_stand_in_order_with_their_concepts_and_how_they_were_settled(t: Catalogue):
    page = page_of(await ever_run(CORRECTED), t)
    first, second = cards_of(page)
    assert first.one(".vs-ever-title").text() == "Sentence 1"
    assert (
        first.one(".vs-ever-head").text("vs-sign", "vs-ever-title") == "Borne out after correction"
    )
    draft, corrected = first.all(".vs-ever-look")
    assert draft.one(".vs-ever-text").text("vs-sign") == FIRST
    names = [node.text("vs-sign") for node in draft.all(".vs-ever-concept")]
    assert names == ["chemist", "1931"]
    signs = [node.one(".vs-sign").text() for node in draft.all(".vs-ever-concept")]
    assert signs == ["✗", "✓"]
    assert corrected.all(".vs-label")[0].text() == "Correction 1"
    assert corrected.one("del").text("vs-sr").strip() == "chemist"
    assert corrected.one("ins").text("vs-sr").strip() == "botanist"
    assert "settles this neither way" in second.one(".vs-notice").text()


async def test_a_concept_opens_to_its_question_evidence_and_reasoning(t: Catalogue):
    page = page_of(await ever_run(CORRECTED), t)
    chip = cards_of(page)[0].all(".vs-ever-chip")[0]
    assert "vs-verdict-contradicted" in chip.classes
    assert chip.all("summary")[0].text("vs-sign") == "chemistContradicted"
    words = chip.text("vs-sr")
    assert "Does chemist fit Ada Brandt?" in words
    assert "About chemist, as told." in words
    (passage,) = chip.all(".vs-passage-card")
    assert passage.one("mark").text("vs-sr") == "Ada Brandt was a botanist born in 1931."
    # The question's call and the verdict's, and one search.
    assert len(chip.all(".vs-call")) == 3


async def test_the_share_opens_to_its_formula_and_calls(t: Catalogue):
    share = page_of(await ever_run(CORRECTED), t).one(".vs-section-share")
    # Of chemist, 1931 and Bergen as first written, one is supported: 1 / 3.
    assert "1 of 3 decided facts are borne out." in share.text()
    assert "0.33 < 1.00" in share.text("vs-sign")
    assert "supported facts / decided facts" in share.text()
    assert share.all(".vs-call")


async def test_the_settled_text_keeps_its_flags(t: Catalogue):
    final = page_of(await ever_run(CORRECTED), t).one(".vs-section-final")
    (kept,) = final.all(".vs-ever-kept")
    assert kept.text("vs-sign") == SECOND
    assert "vs-verdict-not-enough" in kept.classes
    assert final.one(".vs-ever-final").text("vs-sign") == f"{MENDED} {SECOND}"
    assert "Not sure" in final.one(".vs-flags").text()
    assert len(final.all(".vs-diff-side")) == 2


@pytest.mark.parametrize(
    ("part", "shelf", "words"),
    [
        (Part(texts={"": FIRST}), None, "states no fact that could be looked up"),
        (Part(texts={"": FIRST}, concepts={FIRST: "{}["}), None, "could not be read"),
        (
            Part(texts={"": FIRST}, concepts={FIRST: ["chemist"]}, verdicts={"chemist": "Hm."}),
            None,
            "It counts neither way.",
        ),
        (
            Part(texts={"": FIRST}, concepts={FIRST: ["chemist"]}),
            Archive(lambda _: []),
            "nothing settles this. The model was not asked.",
        ),
        (
            Part(texts={"": FIRST}, concepts={FIRST: ["chemist"]}),
            Archive(UnreachableError("Gone.", remedy="Wait.")),
            "this was not checked. The model was not asked.",
        ),
        (
            Part(
                texts={"": FIRST}, concepts={FIRST: ["chemist"]}, questions={"chemist": "Was she?"}
            ),
            None,
            "Made from the sentence",
        ),
        (
            Part(
                texts={"": FIRST},
                concepts={FIRST: ["chemist"]},
                verdicts={"chemist": "False"},
                rectified={FIRST: FIRST},
            ),
            None,
            "The correction changed nothing.",
        ),
        (Part(texts={"": ""}), None, "There is no sentence to check."),
    ],
)
async def test_every_outcome_has_its_words(part: Part, shelf: Shelf | None, words: str):
    found = shelf or Archive(lambda _: ["Ada Brandt was born in 1931."])
    outcome = await ever_run(part, shelf=found)
    assert words in page_of(outcome, Catalogue("en")).text()
    assert page_of(outcome, Catalogue("zh")).text()


async def test_concepts_beyond_the_bound_are_counted(t: Catalogue):
    part = Part(texts={"": FIRST}, concepts={FIRST: ["chemist", "1931"]})
    page = page_of(await ever_run(part, max_concepts=1), t)
    assert "1 further fact was not checked" in page.text()


async def test_memory_as_evidence_is_called_so(t: Catalogue):
    page = page_of(await ever_run(CORRECTED, variant="nrg_sq", shelf=None), t)
    assert "Recalled by the model" in page.text()
    assert page.all(".vs-passage-card") == []


async def test_several_draws_show_their_share(t: Catalogue):
    part = Part(
        texts={"": FIRST},
        concepts={FIRST: ["chemist"]},
        verdicts={"chemist": ["True", "False", "True"]},
    )
    chip = page_of(await ever_run(part, samples=3), t).one(".vs-ever-chip")
    # Two of three draws.
    assert "Share of draws with this verdict" in chip.text()
    assert "0.67" in chip.text()


async def test_writing_ahead_shows_what_it_cost(t: Catalogue):
    outcome = await ever_run(CORRECTED, speculative=True)
    ahead = page_of(outcome, t, speculative=True).one(".vs-section-ahead")
    assert "Sentence 2thrown away" in ahead.text()
    assert "Written in vain" in ahead.text()
    kept = Part(texts={"": WHOLE, FIRST: f" {SECOND}"})
    ahead = page_of(await ever_run(kept, speculative=True), t).one(".vs-section-ahead")
    assert "Sentence 2kept" in ahead.text()
    nothing = page_of(await ever_run(Part(texts={"": FIRST}), speculative=True), t)
    assert "Nothing was written ahead." in nothing.text()
    assert page_of(await ever_run(CORRECTED), t).all(".vs-section-ahead") == []


async def test_another_number_of_rounds_is_shown_or_needs_a_new_run(t: Catalogue):
    said = [f"Ada Brandt was a chemist called {name}." for name in "ABC"]
    part = Part(
        texts={"": said[0]},
        concepts={text: ["chemist"] for text in said},
        verdicts={"chemist": "False"},
        rectified={said[0]: said[1], said[1]: said[2]},
    )
    outcome = await ever_run(part)
    assert len(page_of(outcome, t).all(".vs-ever-look")) == 3
    fewer = page_of(outcome, t, max_rounds=1)
    assert len(fewer.all(".vs-ever-look")) == 2
    assert fewer.one(".vs-ever-final").text("vs-sign") == said[1]
    assert "Still contradicted" in fewer.text()
    more = page_of(outcome, t, max_rounds=4)
    assert "With more corrections" in more.one(".vs-notices").text()
    assert "For these settings the text is not known." in more.text()


async def test_short_answers_are_told_with_their_statements_and_abstentions(t: Catalogue):
    listed = "- chemist\n- potter"
    part = Part(texts={"": listed}, verdicts={"chemist": "NEI"}, candidates="- baker")
    part.verdicts = {"chemist": "NEI", "baker": "True"}
    page = page_of(await ever_run(part, task="short"), t)
    first, second = cards_of(page)
    assert first.one(".vs-ever-title").text() == "Answer 1"
    assert "Borne out, another answer" in first.text()
    assert "Another answer, 1" in first.text()
    assert second.one(".vs-ever-text").text("vs-sign") == "Ada Brandt was potter by trade."
    part = Part(texts={"": "chemist"}, verdicts={"chemist": "NEI"})
    page = page_of(await ever_run(part, task="short"), t)
    assert "Nothing bears this answer out" in page.one(".vs-ever-card").text()
    assert t("ask.abstained") in page.one(".vs-section-final").text()


async def test_a_chain_shows_the_answer_that_follows(t: Catalogue):
    page = page_of(await ever_run(CORRECTED, task="chain"), t)
    assert "Answer that follows a chemist" in page.one(".vs-section-final").text()


async def test_chinese_throughout():
    first = "鲁明是化学家，生于1931年。"
    part = Part(
        texts={"": first},
        concepts={first: ["化学家", "1931年"]},
        verdicts={"化学家": "推理：资料没有提到。\n判断：NEI"},
        questions={c: f"鲁明与{c}相符吗？" for c in ("化学家", "1931年")},
        rectified={first: "鲁明生于1931年。"},
    )
    outcome = await ever_run(
        part, question="鲁明是谁？", shelf=Archive(lambda _: ["鲁明生于1931年。"])
    )
    page = page_of(outcome, Catalogue("zh"))
    assert page.one(".vs-ever-title").text() == "第 1 句"
    assert page.all(".vs-diff")[0].attributes["lang"] == "zh-CN"


async def test_the_page_says_whose_verdicts_they_are(t: Catalogue):
    assert (
        "Verdicts by the main model, SmolLM2-135M-Instruct."
        in page_of(await ever_run(CORRECTED), t).one(".vs-section-sentences").text()
    )
    outcome = await ever(WEAK, reads())
    page = read(ever_view(view_of(outcome.trace), decided(outcome), settings_of(outcome), t))
    by = page.one(".vs-section-sentences").text()
    assert "Verdicts by reader: it reads question and passages" in by
    assert "Verdicts by the main model" not in by

"""The EVER page as HTML: sentences, concepts, corrections, the text at the end, what it cost."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from components.ever_view import ever_view
from components.messages import Catalogue
from pipelines.errors import UnreachableError
from pipelines.methods.ever import Ever
from pipelines.models.judges.base import ClaimVerdict
from pipelines.run.spec import EvidenceSpec
from pipelines.store.recordings import load_recording, recordings
from pipelines.types import Language
from tests.components.html_tree import Node, read
from tests.components.runs import view_of
from tests.pipelines.methods.bench import FULL, Outcome, Shelf, WordReader, run_method
from tests.pipelines.methods.ever.bench import (
    FIRST,
    SECOND,
    WHOLE,
    Archive,
    EverModel,
    Part,
    ever_run,
    reevaluated,
)
from tests.pipelines.methods.test_checkers import WEAK, ever, reads
from tests.pipelines.methods.test_nearest import answered, judge

RECTIFIED = "Ada Brandt was a botanist born in 1931."
OPINION = "Ada Brandt was truly admirable."
APART = "Ada Brandt, a chemist, was born in 1931."
CORRECTED = Part(
    texts={"": WHOLE, RECTIFIED: f" {SECOND}"},
    concepts={FIRST: ["chemist", "1931"], RECTIFIED: ["botanist", "1931"], SECOND: ["Bergen"]},
    verdicts={"chemist": "False", "Bergen": "NEI"},
    rectified={FIRST: RECTIFIED, SECOND: SECOND},
)


def page_of(outcome: Outcome, t: Catalogue, **changes: Any) -> Node:
    """The page of a run, or of what other settings would have made of it."""
    if not changes:
        return read(ever_view(view_of(outcome.trace), t))
    again = reevaluated(outcome, **changes)
    return read(ever_view(again.view, t, diverges_at=again.diverges_at))


def cards_of(page: Node) -> list[Node]:
    return page.all(".vs-ever-card")


async def test_sentences_stand_in_order_with_their_concepts_and_how_they_ended(t: Catalogue):
    page = page_of(await ever_run(CORRECTED), t)
    first, second = cards_of(page)
    assert first.one(".vs-ever-title").text() == "Sentence 1"
    status = first.one(".vs-ever-head").text("vs-sign", "vs-ever-title")
    assert status == "Supported after correction"
    draft, corrected = first.all(".vs-ever-look")
    assert draft.one(".vs-ever-text").text("vs-sign") == FIRST
    names = [node.text("vs-sign") for node in draft.all(".vs-ever-concept")]
    assert names == ["chemist", "1931"]
    signs = [node.one(".vs-sign").text() for node in draft.all(".vs-ever-concept")]
    assert signs == ["✗", "✓"]
    assert corrected.all(".vs-label")[0].text() == "Correction 1"
    assert corrected.one("del").text("vs-sr").strip() == "chemist"
    assert corrected.one("ins").text("vs-sr").strip() == "botanist"
    assert "Correcting changed nothing" in second.one(".vs-notice").text()


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_sentence_that_gave_way_to_the_evidence_says_so(language: Language):
    t = Catalogue(language)
    draft, short = "It was invented in Florida.", "The Carr lamp was invented in 1904."
    outcome = await answered(Ever(), draft=draft, short=short, reader=judge(**{"1904": 0.7}))
    page = page_of(outcome, t)
    (card,) = cards_of(page)
    status = card.one(".vs-ever-head").text("vs-sign", "vs-ever-title")
    assert status == t("ever.status.corrected")
    # What was checked, and behind it how the evidence's sentence changed it.
    assert len(card.all(".vs-ever-look")) == 1
    assert "Florida" in "".join(node.text() for node in card.all("del"))
    assert "1904" in "".join(node.text() for node in card.all("ins"))
    assert card.all(".vs-notice") == []
    assert t("ever.end.corrected") in card.text()
    assert page.one(".vs-section-nearest").one(".vs-strong").text() == t("nearest.taken")
    assert page.one(".vs-ever-final").text("vs-sign") == short


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
    assert "1 of 3 facts are supported." in share.text()
    assert "0.33 < 1.00" in share.text("vs-sign")
    assert "supported facts / all facts" in share.text()
    assert share.all(".vs-call")


async def test_the_final_text_keeps_its_flags(t: Catalogue):
    final = page_of(await ever_run(CORRECTED), t).one(".vs-section-final")
    (kept,) = final.all(".vs-ever-kept")
    assert kept.text("vs-sign") == SECOND
    assert "vs-verdict-not-enough" in kept.classes
    assert final.one(".vs-ever-final").text("vs-sign") == f"{RECTIFIED} {SECOND}"
    assert "Not sure" in final.one(".vs-flags").text()
    assert len(final.all(".vs-diff-side")) == 2


@pytest.mark.parametrize(
    ("part", "shelf", "words"),
    [
        (Part(texts={"": OPINION}), None, "states no fact that could be looked up"),
        (Part(texts={"": OPINION}, concepts={OPINION: "{}["}), None, "listed no usable fact"),
        (
            Part(texts={"": FIRST}, concepts={FIRST: ["chemist"]}, verdicts={"chemist": "Hm."}),
            None,
            "counts neither for nor against the sentence.",
        ),
        (
            Part(texts={"": FIRST}, concepts={FIRST: ["chemist"]}),
            Archive(lambda _: []),
            "no evidence for or against this fact. The model was not asked.",
        ),
        (
            Part(texts={"": FIRST}, concepts={FIRST: ["chemist"]}),
            Archive(UnreachableError("Gone.", remedy="Wait.")),
            "this fact was not checked. The model was not asked.",
        ),
        (
            Part(
                texts={"": FIRST}, concepts={FIRST: ["chemist"]}, questions={"chemist": "Was she?"}
            ),
            None,
            "made from the sentence instead",
        ),
        (
            Part(
                texts={"": FIRST},
                concepts={FIRST: ["chemist"]},
                verdicts={"chemist": "False"},
                rectified={FIRST: FIRST},
            ),
            None,
            "Correcting changed nothing",
        ),
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
    # Not plain support, neither of the sentence nor of the answer.
    head = page.one(".vs-ever-head")
    assert head.text("vs-sign", "vs-ever-title") == "Checked in part"
    assert "not every fact was checked" in page.one(".vs-ever-card").one(".vs-notice").text()
    assert page.one(".vs-section-share").one(".vs-badge").text("vs-sign") == "Not checked"
    final = page.one(".vs-section-final")
    assert final.one(".vs-ever-kept").text("vs-sign") == FIRST
    assert "Not every fact was checked" in final.one(".vs-flags").text()


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
    third, fixed = "She sold it.", f"{RECTIFIED} She led the works."
    written = {RECTIFIED: f" {SECOND} {third}", f"{RECTIFIED} {SECOND}": f" {third}"}
    part = replace(CORRECTED, texts={**CORRECTED.texts, **written, fixed: f" {third}"})
    kept = page_of(await ever_run(part, speculative=True), t).one(".vs-section-ahead")
    assert "Sentence 3kept" in kept.text()
    changed = {**CORRECTED.rectified, SECOND: "She led the works."}
    thrown = await ever_run(replace(part, rectified=changed), speculative=True)
    ahead = page_of(thrown, t).one(".vs-section-ahead")
    assert "Sentence 3discarded" in ahead.text()
    assert "Discarded speculative tokens" in ahead.text()
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
    assert "leaves the recorded one at draft 4" in more.one(".vs-notice").text()
    # What is known until there stays, and so do its verdicts.
    assert len(more.all(".vs-ever-look")) == 3
    assert "the final text is not known without a new run" in more.text()


async def test_short_answers_are_shown_with_their_statements_and_abstentions(t: Catalogue):
    listed = "- chemist\n- potter"
    part = Part(texts={"": listed}, verdicts={"chemist": "NEI"}, candidates="- baker")
    part.verdicts = {"chemist": "NEI", "baker": "True"}
    page = page_of(await ever_run(part, task="short"), t)
    first, second = cards_of(page)
    assert first.one(".vs-ever-title").text() == "Answer 1"
    assert "Supported: another answer" in first.text()
    assert "Another answer, 1" in first.text()
    assert second.one(".vs-ever-text").text("vs-sign") == "Ada Brandt was potter by trade."
    part = Part(texts={"": "chemist"}, verdicts={"chemist": "NEI"})
    page = page_of(await ever_run(part, task="short"), t)
    assert "The evidence supports neither this answer" in page.one(".vs-ever-card").text()
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
        "Verdicts by the main model, pieces."
        in page_of(await ever_run(CORRECTED), t).one(".vs-section-sentences").text()
    )
    outcome = await ever(WEAK, reads())
    page = read(ever_view(view_of(outcome.trace), t))
    by = page.one(".vs-section-sentences").text()
    assert "Verdicts by reader: it reads the statement behind each question" in by
    assert "Verdicts by the main model" not in by


async def test_a_correction_that_could_not_be_used_is_said_and_shown(t: Catalogue):
    comment = "The evidence does not support the claim that she was a chemist."
    for verdict, words in (("False", "flagged as contradicted"), ("NEI", "flagged “not sure”")):
        part = Part(
            texts={"": FIRST},
            concepts={FIRST: ["chemist"]},
            verdicts={"chemist": verdict},
            rectified={FIRST: comment},
        )
        page = page_of(await ever_run(part), t)
        card = page.one(".vs-ever-card")
        assert len(card.all(".vs-ever-look")) == 1
        notice = card.one(".vs-notice").text()
        assert "The model wrote no usable correction" in notice
        assert words in notice
        # What it wrote is to be seen.
        assert comment in card.text()
        assert "A correction could not be used" in page.one(".vs-flags").text()


async def test_the_statement_that_is_checked_stands_beside_its_question(t: Catalogue):
    part = Part(
        texts={"": APART},
        concepts={APART: ["chemist", "1931"]},
        questions={"chemist": "Was Ada Brandt a chemist?", "1931": "(1813)"},
    )
    first, second = page_of(await ever_run(part), t).all(".vs-ever-chip")
    assert f"Statement that is checked{APART}" in first.text()
    assert "made from the sentence instead" not in first.text()
    assert "Statement that is checkedAda Brandt was born in 1931." in second.text()
    assert "made from the sentence instead" in second.text()


@pytest.mark.parametrize("task", ["short", "long", "chain"])
async def test_an_abstention_says_that_nothing_was_checked(task: str, t: Catalogue):
    page = page_of(await ever_run(Part(texts={"": "I don't know."}), task=task), t)
    assert "The model gave no answer" in page.one(".vs-section-sentences").text()
    assert t("ask.abstained") in page.one(".vs-section-final").text()


async def test_what_two_searches_found_is_shown_together(t: Catalogue):
    found = Archive(lambda query: ["With it.", "Both."] if FIRST in query else ["Alone.", "Both."])
    part = Part(texts={"": FIRST}, concepts={FIRST: ["chemist"]})
    outcome = await ever_run(part, shelf=found, evidence=EvidenceSpec(source="wikipedia"))
    chip = page_of(outcome, t).one(".vs-ever-chip")
    assert len(chip.all(".vs-passage-card")) == 3
    # The question's call, the verdict's, and two searches.
    assert len(chip.all(".vs-call")) == 4


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("run", [one.id for one in recordings() if one.language == "en"])
def test_shipped_runs_are_shown(run: str, language: Language):
    view = view_of(load_recording(run))
    page = read(ever_view(view, Catalogue(language)))
    assert page.all(".vs-ever-chip")
    assert page.one(".vs-ever-final").text()
    assert all(card.all(".vs-badge") for card in cards_of(page))


async def test_words_of_the_statement_that_the_judge_doubts_are_underlined(t: Catalogue):
    part = Part(
        texts={"": APART},
        concepts={APART: ["chemist", "1931"]},
        questions={"chemist": "Was Ada Brandt a chemist?", "1931": "(1813)"},
    )
    supported, against = ClaimVerdict(0.8, 0.1, 0.1), ClaimVerdict(0.1, 0.8, 0.1)
    reader = WordReader(
        lambda claim: against if "chemist" in claim.statement else supported, "chemist", "1931"
    )
    outcome = await run_method(
        Ever(),
        "Who was Ada Brandt?",
        EverModel(part, FULL.model_copy(update={"judges": False})),
        shelf=Shelf(lambda _: ["Ada Brandt was a botanist born in 1931."]),
        models={"judge_1": reader},
    )
    chemist, year = page_of(outcome, t).all(".vs-ever-chip")
    doubted = [word.text("vs-sr") for word in chemist.all(".vs-unsupported")]
    assert doubted == ["chemist", "1931"]
    assert "with a doubt above 0.50" in chemist.text()
    assert year.all(".vs-unsupported") == []

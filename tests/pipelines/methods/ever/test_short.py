"""EVER on short answers: statements, other answers, lists, abstention."""

from __future__ import annotations

import asyncio

import pytest

from pipelines.errors import UnreachableError
from pipelines.models.base import GenerationRequest
from tests.scripted.ever import (
    TITLE,
    Archive,
    EverModel,
    Part,
    asked_of,
    detail_of,
    draft_texts_hold,
    ever_run,
    judged_of,
    kind_of,
    kinds,
    reasons,
    verdicts_of,
)

CHEMIST = "Ada Brandt was chemist by trade."
BOTANIST = "Ada Brandt was botanist by trade."


async def test_an_answer_is_checked_as_the_statement_it_makes_with_the_question():
    outcome = await ever_run(Part(texts={"": "chemist"}), task="short")
    assert outcome.answer.text == outcome.answer.short == "chemist"
    assert not outcome.answer.abstained
    # Written, stated, asked, judged: the answer is the only concept, no list is needed.
    assert kinds(outcome) == ["write", "statement", "validate", "verify"]
    (concept,) = judged_of(outcome, "concept")
    assert (concept.text, concept.start, concept.end) == ("chemist", 0, 7)
    # In the statement it stands behind "Ada Brandt was ".
    assert detail_of(concept).at == (15, 22)
    assert detail_of(judged_of(outcome, "concepts")[0]).text == CHEMIST


async def test_a_statement_without_the_answer_is_made_by_rule():
    part = Part(texts={"": "chemist"}, statements={"chemist": "Ada Brandt had a trade."})
    outcome = await ever_run(part, task="short")
    (look,) = judged_of(outcome, "concepts")
    assert detail_of(look).text == ("The answer to the question “Who was Ada Brandt?” is: chemist")


async def test_a_contradicted_answer_is_replaced_by_what_the_evidence_says():
    part = Part(
        texts={"": "chemist"}, verdicts={"chemist": "False"}, rectified={CHEMIST: "botanist"}
    )
    outcome = await ever_run(part, task="short")
    assert outcome.answer.text == outcome.answer.short == "botanist"
    assert outcome.answer.original == "chemist"
    assert outcome.answer.flags == ()
    assert reasons(outcome) == ["original", "revise"]
    assert draft_texts_hold(outcome)


@pytest.mark.parametrize("rectified", ["potter", "chemist", ""])
@pytest.mark.parametrize(("candidates", "given"), [("None", ""), ("- botanist", "botanist")])
async def test_what_stays_contradicted_is_not_given(rectified: str, candidates: str, given: str):
    part = Part(
        texts={"": "chemist"},
        verdicts={"chemist": "False", "potter": "False", "botanist": "True"},
        rectified={CHEMIST: rectified},
        candidates=candidates,
    )
    outcome = await ever_run(part, task="short", max_rounds=1)
    assert outcome.answer.text == given
    assert outcome.answer.abstained is not bool(given)
    assert judged_of(outcome, "answer")[0].verdict == "contradicted"


async def test_another_verified_answer_replaces_an_undecided_one():
    part = Part(
        texts={"": "chemist"},
        verdicts={"chemist": "NEI", "potter": "NEI", "baker": "False", "botanist": "True"},
        rectified={CHEMIST: "potter"},
        candidates="1. Potter\n2. baker\n3. botanist",
    )
    outcome = await ever_run(part, task="short", candidates=3)
    # "Potter" was tried already, "baker" is contradicted, "botanist" is supported.
    assert outcome.answer.text == outcome.answer.short == "botanist"
    assert outcome.drafts == ["chemist", "potter", "baker", "botanist"]
    assert reasons(outcome) == ["original", "rewrite", "candidate", "candidate"]
    asked = asked_of(outcome, "candidates")[0]
    assert "Tried so far: chemist; potter" in asked.messages[-1].content
    assert outcome.answer.flags == ()


@pytest.mark.parametrize(
    ("candidates", "settings"),
    [("None", {}), ("1. baker", {}), ("1. botanist", {"candidates": 0})],
)
async def test_with_no_verified_answer_it_abstains(candidates, settings):
    part = Part(
        texts={"": "chemist"},
        verdicts={"chemist": "NEI", "baker": "NEI"},
        candidates=candidates,
    )
    outcome = await ever_run(part, task="short", **settings)
    assert outcome.answer.abstained
    assert (outcome.answer.text, outcome.answer.short) == ("", None)
    assert outcome.answer.original == "chemist"
    assert reasons(outcome)[-1] == "abstained"
    assert outcome.drafts[-1] == ""
    assert judged_of(outcome, "answer")[0].verdict == "not_enough"


async def test_declining_to_answer_is_abstaining():
    outcome = await ever_run(Part(texts={"": "I'm sorry, I cannot answer that."}), task="short")
    assert outcome.answer.abstained
    assert kinds(outcome) == ["write"]


async def test_an_unreadable_verdict_or_a_failed_search_is_no_reason_to_abstain():
    part = Part(texts={"": "chemist"}, verdicts={"chemist": "Well."})
    outcome = await ever_run(part, task="short")
    assert (outcome.answer.text, outcome.answer.flags) == ("chemist", ("concept_unchecked",))
    broken = Archive(UnreachableError("Gone.", remedy="Wait."))
    outcome = await ever_run(Part(texts={"": "chemist"}), task="short", shelf=broken)
    assert outcome.answer.text == "chemist"
    assert outcome.answer.flags == ("concept_unchecked", "lookup_failed")


LISTED = "- chemist\n- potter\n- baker"


async def test_every_answer_of_a_list_is_checked_on_its_own():
    outcome = await ever_run(Part(texts={"": LISTED}), task="short")
    assert outcome.answer.text == LISTED
    assert outcome.answer.short == "chemist\npotter\nbaker"
    assert [verdicts_of(outcome, item) for item in range(3)] == [
        [("chemist", "supported")],
        [("potter", "supported")],
        [("baker", "supported")],
    ]
    places = {e.text: LISTED[e.start : e.end] for e in judged_of(outcome, "concept")}
    assert all(text == found for text, found in places.items())


async def test_the_answers_of_a_list_are_checked_at_once():
    part = Part(texts={"": LISTED})
    together = asyncio.Barrier(3)

    async def hold(request: GenerationRequest) -> None:
        if kind_of(request) == "statement":
            # Nobody gets past unless all three calls are under way at the same time.
            async with asyncio.timeout(60):
                await together.wait()

    outcome = await ever_run(part, model=EverModel(part, hold=hold), task="short")
    assert outcome.answer.text == LISTED


async def test_of_a_list_what_is_wrong_is_replaced_and_what_is_undecided_is_left_out():
    part = Part(
        texts={"": LISTED},
        verdicts={"chemist": "False", "potter": "NEI"},
        rectified={CHEMIST: "botanist"},
    )
    outcome = await ever_run(part, task="short")
    assert outcome.answer.text == "- botanist\n- baker"
    assert outcome.answer.short == "botanist\nbaker"
    assert outcome.answer.flags == ("item_dropped",)
    assert sorted(reasons(outcome)) == ["dropped", "original", "revise"]
    assert outcome.drafts[-1] == outcome.answer.text
    # One of three supported as first written.
    assert judged_of(outcome, "answer")[0].scores[0].inputs == (1.0, 3.0)


async def test_the_first_of_a_list_can_be_left_out():
    part = Part(texts={"": LISTED}, verdicts={"chemist": "NEI"})
    outcome = await ever_run(part, task="short", candidates=0)
    assert outcome.answer.text == "- potter\n- baker"


async def test_a_list_of_which_nothing_is_left_is_an_abstention():
    part = Part(texts={"": LISTED}, verdicts=dict.fromkeys(("chemist", "potter", "baker"), "NEI"))
    outcome = await ever_run(part, task="short")
    assert outcome.answer.abstained
    assert outcome.answer.flags == ("item_dropped",)


async def test_an_answer_that_the_list_has_already_is_no_other_answer():
    part = Part(texts={"": LISTED}, verdicts={"chemist": "NEI"}, candidates="- Potter\n- baker")
    outcome = await ever_run(part, task="short", candidates=3)
    assert outcome.answer.text == "- potter\n- baker"


async def test_short_answers_from_memory_and_from_passages():
    outcome = await ever_run(
        Part(texts={"": "chemist"}), task="short", variant="nrg_sq", shelf=None
    )
    assert kinds(outcome)[-1] == "recall"
    outcome = await ever_run(Part(texts={"": "chemist"}), task="short", variant="rag_er")
    assert TITLE in asked_of(outcome)[0].messages[-1].content


async def test_a_chinese_answer():
    part = Part(
        texts={"": "化学家"},
        statements={"化学家": "鲁明是化学家。", "植物学家": "鲁明是植物学家。"},
        questions={c: f"鲁明是{c}吗？" for c in ("化学家", "植物学家")},
        verdicts={"植物学家": "True", "化学家": "推理：不是。\n判断：False"},
        rectified={"鲁明是化学家。": "植物学家"},
    )
    outcome = await ever_run(part, question="鲁明是谁？", task="short")
    assert outcome.answer.text == "植物学家"
    assert verdicts_of(outcome, 0, 1) == [("植物学家", "supported")]
    assert BOTANIST not in outcome.answer.text


async def test_an_item_corrected_to_another_of_the_list_is_left_out():
    part = Part(
        texts={"": "1. chemist\n2. botanist"},
        verdicts={"chemist": "False"},
        rectified={CHEMIST: "Botanist."},
    )
    outcome = await ever_run(part, task="short")
    assert outcome.answer.short == "botanist"
    assert outcome.answer.flags == ("item_dropped",)
    assert reasons(outcome) == ["original", "dropped"]
    assert draft_texts_hold(outcome)


@pytest.mark.parametrize(
    "text", ["Paris; London; Rome", "Paris;London; Rome.", "Paris、London、Rome"]
)
async def test_answers_on_one_line_are_checked_one_by_one(text):
    outcome = await ever_run(Part(texts={"": text}), task="short", question="Which cities?")
    assert outcome.answer.short == "Paris\nLondon\nRome"
    assert [e.text for e in judged_of(outcome, "concept")] == ["Paris", "London", "Rome"]
    assert outcome.answer.text == text
    assert draft_texts_hold(outcome)


async def test_of_answers_on_one_line_one_can_be_left_out():
    part = Part(texts={"": "Paris; London; Rome"}, verdicts={"London": "NEI"})
    outcome = await ever_run(part, task="short", question="Which cities?", candidates=0)
    assert (outcome.answer.text, outcome.answer.short) == ("Paris; Rome", "Paris\nRome")


@pytest.mark.parametrize("text", ["Portland, Oregon", "It is Paris.", "Paris"])
async def test_one_answer_is_one_answer(text):
    outcome = await ever_run(Part(texts={"": text}), task="short")
    assert outcome.answer.short == text


DECLINED = ["Sorry, I don't know.", "I don't know", "I do not know who she was.", "我不知道。"]


@pytest.mark.parametrize("task", ["short", "long", "chain"])
@pytest.mark.parametrize("text", DECLINED)
async def test_an_answer_that_gives_none_is_an_abstention(task, text):
    outcome = await ever_run(Part(texts={"": text}), task=task)
    assert outcome.answer.abstained
    assert (outcome.answer.text, outcome.answer.original) == ("", text)
    assert kinds(outcome) == ["write"]
    assert reasons(outcome) == ["original", "abstained"]
    assert judged_of(outcome, "answer")[0].verdict == "unchecked"


async def test_no_other_answer_that_gives_none_is_checked():
    part = Part(
        texts={"": "chemist"},
        verdicts={"chemist": "NEI"},
        rectified={CHEMIST: "I don't know."},
        candidates="- I don't know\n- 不知道",
    )
    outcome = await ever_run(part, task="short")
    assert outcome.answer.abstained
    assert len(judged_of(outcome, "concept")) == 1


async def test_a_comment_instead_of_an_answer_is_no_answer():
    part = Part(
        texts={"": "chemist"},
        verdicts={"chemist": "False"},
        rectified={CHEMIST: "The evidence does not support this answer."},
    )
    outcome = await ever_run(part, task="short")
    # Nor is the contradicted one given.
    assert outcome.answer.abstained
    assert outcome.answer.text == ""


async def test_items_of_a_list_are_changed_in_their_order():
    part = Part(
        texts={"": LISTED},
        verdicts=dict.fromkeys(("chemist", "potter", "baker"), "NEI"),
        candidates="- smith\n- baker\n- miller",
    )
    part.verdicts = {**part.verdicts, "smith": "True", "miller": "True"}

    async def hold(request: GenerationRequest) -> None:
        # The first item takes longest at everything.
        if "chemist" in request.messages[-1].content:
            for _ in range(20):
                await asyncio.sleep(0)

    outcome = await ever_run(part, model=EverModel(part, hold=hold), task="short", candidates=3)
    # Each takes the first candidate that no other has taken; for the third there is none left.
    assert outcome.answer.short == "smith\nmiller"
    assert outcome.answer.flags == ("item_dropped",)


async def test_for_an_undecided_item_another_answer_is_tried_before_it_is_left_out():
    part = Part(
        texts={"": "1. chemist\n2. botanist"},
        verdicts={"chemist": "NEI", "potter": "NEI"},
        rectified={CHEMIST: "Botanist."},
        candidates="- potter",
    )
    outcome = await ever_run(part, task="short")
    # What the rewriting gives is in the list already; no evidence decides the other answer either.
    assert reasons(outcome) == ["original", "candidate", "dropped"]
    assert outcome.answer.short == "botanist"
    assert outcome.answer.flags == ("item_dropped",)

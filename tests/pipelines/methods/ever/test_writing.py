"""How EVER's text grows: the next sentence, the end of the answer, writing ahead, Chinese."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from pipelines.base import Generation
from pipelines.errors import CapabilityError
from pipelines.methods.base import Question
from pipelines.methods.direct import DirectSettings, direct_messages
from pipelines.methods.ever import Ever
from pipelines.models.base import GenerationRequest
from pipelines.run.events import Judged, Revised, SpanEnded
from tests.scripted.bench import FULL, Reply, run_method
from tests.scripted.ever import (
    FIRST,
    FOUND,
    QUESTION,
    SECOND,
    UNHANDED,
    WHOLE,
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
    steps,
    verdicts_of,
)

THIRD = "Dr. Brandt paid 3.14 crowns in the U.S. for it."
RECTIFIED = "Ada Brandt was a botanist."


NEW = f"{RECTIFIED} {SECOND}"


def rewritten(texts: Mapping[str, Reply], draft: str = WHOLE) -> Part:
    """A first sentence that is rectified, so that what follows it is written anew, by `texts`."""
    return Part(
        texts={"": draft, **texts},
        concepts={FIRST: ["chemist"], RECTIFIED: ["botanist"]},
        verdicts={"chemist": "False"},
        rectified={FIRST: RECTIFIED},
    )


async def test_sentences_that_nobody_changed_are_those_of_the_draft():
    concepts = {FIRST: ["chemist"], SECOND: ["Bergen"]}
    part = Part(texts={"": WHOLE, FIRST: " Something else."}, concepts=concepts)
    for verdicts in ({}, {"chemist": "Hm."}, {"chemist": "NEI"}):
        part.verdicts = verdicts
        outcome = await ever_run(part)
        assert outcome.answer.text == WHOLE
        assert outcome.drafts == [WHOLE]
        assert kinds(outcome).count("write") == 1
        assert [e.text for e in judged_of(outcome, "sentence")] == [FIRST, SECOND]


async def test_a_model_that_cannot_go_on_is_asked_for_the_next_sentence():
    part = rewritten({RECTIFIED: SECOND, NEW: "DONE"})
    outcome = await ever_run(part, capabilities=UNHANDED)
    assert outcome.answer.text == NEW
    assert outcome.drafts == [WHOLE, RECTIFIED, NEW]
    # Writing stops after a sentence whether or not more is to come: only DONE ends the text.
    assert [kind for kind in kinds(outcome) if kind in ("write", "continue")] == [
        "write",
        *2 * ["continue"],
    ]
    assert RECTIFIED in asked_of(outcome, "continue")[0].messages[-1].content


async def test_a_repeated_beginning_is_left_out_and_nothing_but_repetition_ends_the_text():
    part = rewritten({RECTIFIED: f"{RECTIFIED} {SECOND}", NEW: f"{SECOND} {RECTIFIED}"})
    outcome = await ever_run(part, capabilities=UNHANDED)
    assert outcome.answer.text == NEW


async def test_a_model_going_in_circles_has_ended():
    part = rewritten({RECTIFIED: f" {RECTIFIED} {RECTIFIED}"})
    outcome = await ever_run(part, max_sentences=12)
    assert outcome.answer.text == RECTIFIED
    # The original said more: what the verified text does not continue with is removed.
    assert reasons(outcome) == ["original", "revise"]


async def test_stops_inside_names_and_numbers_end_no_sentence():
    part = Part(texts={"": f"{THIRD} {SECOND}", THIRD: f" {SECOND} {FIRST}"})
    outcome = await ever_run(part, max_sentences=2)
    assert [e.text for e in judged_of(outcome, "sentence")] == [THIRD, SECOND]
    assert outcome.answer.text == f"{THIRD} {SECOND}"


async def test_the_limit_on_sentences_holds_for_the_original_too():
    texts = {"": f"{WHOLE} {THIRD} More of it."}
    outcome = await ever_run(Part(texts=texts), max_sentences=2)
    assert outcome.answer.text == outcome.answer.original == WHOLE
    assert outcome.answer.flags == ()
    # No third sentence was written, so none was discarded.
    assert kinds(outcome).count("write") == 1


async def test_the_token_limit_ends_the_text_and_is_said():
    outcome = await ever_run(Part(texts={"": WHOLE, FIRST: f" {SECOND}"}), max_tokens=16)
    # Eight words, then six: under the limit of 16. A third sentence has two tokens left.
    assert outcome.answer.flags == ()
    long = f"{FIRST[:-1]} {' '.join(['in Bergen'] * 6)}."
    outcome = await ever_run(Part(texts={"": f"{long} {SECOND}"}), max_tokens=16)
    assert outcome.answer.text == long
    assert outcome.answer.flags == ("truncated",)


async def test_verified_text_never_changes():
    texts = {"": WHOLE, RECTIFIED: f" {SECOND}"}
    part = Part(
        texts=texts,
        concepts={FIRST: ["chemist"], RECTIFIED: ["botanist"], SECOND: ["Bergen"]},
        verdicts={"chemist": "False", "Bergen": "NEI"},
        rectified={FIRST: RECTIFIED, SECOND: "She led the Salt Works."},
    )
    outcome = await ever_run(part)
    final = outcome.answer.text
    for place, event in enumerate(outcome.events):
        if isinstance(event, Judged) and event.what == "sentence":
            later = [e for e in outcome.events[place:] if isinstance(e, Revised)]
            assert final[event.start : event.end] == event.text
            assert all(e.after[event.start : event.end] == event.text for e in later)
            assert all(e.start >= event.end for e in later)
    for event in outcome.events:
        if isinstance(event, Revised):
            assert event.before[: event.start] == event.after[: event.start]
    assert draft_texts_hold(outcome)


async def test_thoughts_are_no_part_of_the_text():
    outcome = await ever_run(Part(texts={"": f"<think>One. Two. Three.</think>{FIRST}"}))
    assert outcome.answer.text == outcome.answer.original == FIRST


async def test_the_chain_is_verified_and_then_answered_from():
    part = Part(
        texts={"": WHOLE, RECTIFIED: f" {SECOND}"},
        concepts={FIRST: ["chemist"], RECTIFIED: ["botanist"]},
        verdicts={"chemist": "False"},
        rectified={FIRST: RECTIFIED},
        short="The answer is: botanist",
    )
    outcome = await ever_run(part, task="chain")
    assert outcome.answer.text == f"{RECTIFIED} {SECOND}"
    assert outcome.answer.short == "botanist"
    asked = asked_of(outcome)[-1]
    assert kind_of(asked) == "conclude"
    assert f"{RECTIFIED} {SECOND}" in asked.messages[-1].content
    assert "one step at a time" in asked_of(outcome)[0].messages[0].content


async def test_chinese_is_written_checked_and_corrected_in_chinese():
    first, second = "鲁明是一位化学家，生于1931年6月5日。", "他领导了盐业公司！"
    rectified = "鲁明是一位植物学家，生于1931年6月5日。"
    part = Part(
        texts={"": first + second, rectified: second},
        concepts={first: ["化学家", "1931年6月5日", "1931年"], rectified: ["植物学家"]},
        verdicts={"化学家": "推理：资料说他是植物学家。\n判断：False"},
        questions={c: f"鲁明与{c}相符吗？" for c in ("化学家", "1931年6月5日", "植物学家")},
        rectified={first: rectified},
    )
    shelf = Archive(lambda _: ["鲁明是植物学家。"])
    outcome = await ever_run(part, question="鲁明是谁？", shelf=shelf)
    assert outcome.answer.text == rectified + second
    assert verdicts_of(outcome, 0) == [("化学家", "contradicted"), ("1931年6月5日", "supported")]
    assert "鲁明与化学家相符吗？" in outcome.queries
    assert draft_texts_hold(outcome)
    assert all("Reply in this form" not in one.messages[-1].content for one in asked_of(outcome))


async def test_chinese_is_continued_without_prefill_too():
    first, second = "鲁明是化学家。", "生于1931年。"
    part = Part(texts={"": first + second, first: second})
    outcome = await ever_run(part, question="鲁明是谁？", capabilities=UNHANDED, max_sentences=2)
    assert outcome.answer.text == first + second


async def test_the_next_sentence_written_ahead_is_kept_while_nothing_changes():
    part = rewritten({RECTIFIED: f" {SECOND} {THIRD}", NEW: f" {THIRD}"})
    outcome = await ever_run(part, speculative=True)
    assert outcome.answer.text == f"{NEW} {THIRD}"
    # Ahead of the first sentence nothing has to be written: the draft goes on.
    assert len(steps(outcome, "speculate")) == 1
    assert len(steps(outcome, "next_sentence")) == 1
    kept = [detail_of(event).speculation for event in judged_of(outcome, "sentence")]
    # The last sentence ended the text when it was written: nothing is written ahead of it.
    assert kept == ["", "kept", ""]
    assert kinds(outcome).count("write") == 3


async def test_the_next_sentence_written_ahead_is_thrown_away_when_this_one_changes():
    second, fixed = "She led the Oil Works.", "She led the Salt Works."
    part = rewritten(
        {
            RECTIFIED: f" {second} More.",
            f"{RECTIFIED} {second}": " She sold oil.",
            f"{RECTIFIED} {fixed}": " She liked salt.",
        }
    )
    part.concepts = {**part.concepts, second: ["Oil Works"], fixed: ["Salt Works"]}
    part.verdicts = {**part.verdicts, "Oil Works": "False"}
    part.rectified = {**part.rectified, second: fixed}
    outcome = await ever_run(part, speculative=True)
    assert outcome.answer.text == f"{RECTIFIED} {fixed} She liked salt."
    thrown = [detail_of(event).speculation for event in judged_of(outcome, "sentence")]
    assert thrown == ["", "discarded", ""]
    # Its cost is on record: the original, the second sentence, the discarded and the kept third.
    assert kinds(outcome).count("write") == 4


async def test_writing_ahead_changes_no_word():
    texts = {RECTIFIED: f" {SECOND} {THIRD}", NEW: f" {THIRD}"}
    plain = await ever_run(rewritten(texts))
    ahead = await ever_run(rewritten(texts), speculative=True)
    assert plain.answer == ahead.answer
    assert plain.drafts == ahead.drafts


async def test_a_discarded_sentence_written_ahead_is_stopped_before_it_ends():
    part = rewritten({RECTIFIED: f" {SECOND} More."})
    part.concepts = {**part.concepts, SECOND: ["Bergen"]}
    part.verdicts = {**part.verdicts, "Bergen": "False"}
    part.rectified = {**part.rectified, SECOND: "She led the Salt Works."}
    never = asyncio.Event()

    async def hold(request: GenerationRequest) -> None:
        last = request.messages[-1]
        if last.role == "assistant" and last.content == NEW:
            await never.wait()

    outcome = await ever_run(part, model=EverModel(part, hold=hold), speculative=True)
    assert outcome.answer.text == f"{RECTIFIED} She led the Salt Works."
    (ahead,) = steps(outcome, "speculate")
    (end,) = [e for e in outcome.events if isinstance(e, SpanEnded) and e.span == ahead.span]
    assert end.outcome == "cancelled"


@pytest.mark.parametrize("kind", ["validate", "verify"])
async def test_the_concepts_of_a_sentence_are_checked_at_once(kind):
    part = Part(texts={"": FIRST}, concepts={FIRST: ["chemist", "1931"]})
    together = asyncio.Barrier(2)

    async def hold(request: GenerationRequest) -> None:
        if kind_of(request) == kind:
            # Nobody gets past unless both calls are under way at the same time.
            async with asyncio.timeout(60):
                await together.wait()

    outcome = await ever_run(part, model=EverModel(part, hold=hold))
    assert verdicts_of(outcome, 0) == [("chemist", "supported"), ("1931", "supported")]
    waited = [c for c in outcome.calls if c.request in asked_of(outcome, kind)]
    assert max(call.in_flight for call in waited) == 2


async def test_a_failing_call_stops_what_runs_beside_it():
    part = Part(texts={"": FIRST}, concepts={FIRST: ["chemist", "1931"]})
    never = asyncio.Event()
    waiting = asyncio.Event()

    async def hold(request: GenerationRequest) -> None:
        if kind_of(request) != "verify":
            return
        async with asyncio.timeout(60):
            if "Does 1931 fit" in request.messages[-1].content:
                waiting.set()
                await never.wait()
            await waiting.wait()
        raise CapabilityError("The model is gone.", remedy="Choose another.")

    model = EverModel(part, hold=hold)
    outcome = await run_method(Ever(), QUESTION, model, shelf=FOUND)
    assert outcome.answer.flags == ("broken_off",)
    errors = [call.error.code for call in outcome.calls if call.error]
    assert sorted(errors) == ["cancelled", "capability"]
    # What there was stays; nothing is concluded from it.
    assert judged_of(outcome, "answer") == []


@pytest.mark.parametrize(
    ("weak", "settings", "direct"),
    [
        (True, {}, True),
        (False, {}, False),
        (False, {"wording": "sentence"}, True),
        (True, {"wording": "model"}, False),
        (True, {"task": "chain"}, False),
        (True, {"variant": "rag_er"}, False),
    ],
)
async def test_where_a_sentence_words_corrections_a_long_answer_begins_as_direct_does(
    weak: bool, settings: dict[str, Any], direct: bool
):
    part = Part(texts={"": WHOLE, FIRST: f" {SECOND}"}, concepts={FIRST: ["1931"]})
    capabilities = FULL.model_copy(update={"weak": weak})
    outcome = await ever_run(part, capabilities=capabilities, **settings)
    (draft, *_) = [one for one in asked_of(outcome) if kind_of(one) == "write"]
    shared = direct_messages(Question(text=QUESTION, language="en"))
    assert (draft.messages == shared) == direct
    assert draft.max_tokens == (DirectSettings().max_tokens if direct else 192)


@pytest.mark.parametrize(
    "reply",
    ["I'm sorry, but I can't help with that.", "很抱歉，我无法回答这个问题。", "", "她住在那里。"],
)
async def test_a_sentence_that_is_refused_ends_the_text_with_a_remark(reply: str):
    outcome = await ever_run(rewritten({RECTIFIED: reply}), capabilities=UNHANDED)
    assert outcome.answer.text == RECTIFIED
    assert outcome.answer.flags == ("continuation_unusable",)


@pytest.mark.parametrize("question", ["艾达·布兰特是谁？", "Who was 艾达 (Ada Brandt)?"])
async def test_a_chinese_question_may_be_answered_on_in_chinese(question: str):
    part = rewritten({RECTIFIED: "她住在那里。"})
    outcome = await ever_run(part, question=question, capabilities=UNHANDED)
    assert outcome.answer.text == f"{RECTIFIED}她住在那里。"
    assert outcome.answer.flags == ()


async def test_a_model_that_is_handed_its_text_ends_it_by_silence():
    outcome = await ever_run(rewritten({RECTIFIED: ""}))
    assert outcome.answer.text == RECTIFIED
    assert outcome.answer.flags == ()


@pytest.mark.parametrize("speculative", [False, True])
async def test_a_sentence_that_was_filtered_is_none(speculative: bool):
    filtered = Generation(text="She was", finish_reason="filter")
    part = rewritten({RECTIFIED: filtered})
    outcome = await ever_run(part, capabilities=UNHANDED, speculative=speculative)
    assert outcome.answer.text == RECTIFIED
    assert outcome.answer.flags == ("continuation_unusable",)

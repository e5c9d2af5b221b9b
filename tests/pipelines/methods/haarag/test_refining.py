"""HAARAG worked through by hand: alignment, refinement, what is flagged, the judges."""

import asyncio
from typing import Any

import pytest

from pipelines.errors import UnreachableError
from pipelines.methods.haarag import Haarag
from pipelines.models.base import Capabilities, ChoiceRequest
from pipelines.models.judges.base import Reading
from pipelines.models.scripted import ScriptedModel
from pipelines.retrieval.lexical import LexicalEmbedder
from pipelines.retrieval.similarity import EmbedderSimilarity
from pipelines.run.events import Revised, SpanStarted
from pipelines.types import Choice
from tests.pipelines.methods.bench import ClaimReader, Shelf, run_method
from tests.pipelines.methods.haarag.bench import (
    QUESTION,
    WRITES,
    Chunks,
    agrees,
    haarag,
    judged,
    score,
)

LAW = "B: Clinton studied law."
HOPE = "A: Clinton was born in Hope."
YORK = "Clinton was born in York."
STUDIED = "He studied law."
DRAFT = f"{YORK} {STUDIED}"
ANSWER = "He was born in Hope."
SETTINGS: dict[str, Any] = {"tau_r": 0.5, "tau_a": 0.6, "rephrase": "off"}

# The first context is LAW alone: C_a = 0.5 / sqrt(1). Looking for YORK finds HOPE too; then
# C_a = mean(0.9, 0.5) / sqrt((1 + 0.2 + 0.2 + 1) / 4) = 0.7 / sqrt(0.6) = 0.904.
FOUND = {QUESTION: [LAW], YORK: [HOPE]}
TABLE = {
    (QUESTION, LAW): 0.6,
    (QUESTION, HOPE): 0.4,
    (DRAFT, LAW): 0.5,
    (YORK, LAW): 0.3,
    (STUDIED, LAW): 0.8,
    (YORK, HOPE): 0.7,
    (HOPE, LAW): 0.2,
    (ANSWER, HOPE): 0.9,
    (ANSWER, LAW): 0.5,
}


async def test_an_answer_that_does_not_align_is_refined_by_its_unsupported_sentence():
    outcome = await haarag([DRAFT, ANSWER], FOUND, TABLE, **SETTINGS)
    assert outcome.steps == ["method", "retrieve", "draft", "align", "refine", "draft", "align"]
    # The sentence on law is supported and not searched for.
    assert outcome.queries == [QUESTION, YORK]
    assert (outcome.answer.text, outcome.answer.original) == (ANSWER, DRAFT)
    assert outcome.answer.flags == ()

    first, second = judged(outcome, "alignment")
    assert score(first, "evidence_alignment").value == pytest.approx(0.5)
    assert score(second, "evidence_alignment").value == pytest.approx(0.7 / 0.6**0.5)
    assert [first.verdict, second.verdict] == ["doubtful", "supported"]
    (answer,) = judged(outcome, "answer")
    assert (answer.text, answer.verdict) == (DRAFT, "doubtful")

    refined = judged(outcome, "retrieval")[1]
    # HOPE is as near as its nearest query, the sentence: 0.7. No threshold for such a mixture.
    assert [(c["id"], c["similarity"]) for c in refined.detail["chunks"]] == [
        ("A", 0.7),
        ("B", 0.6),
    ]
    assert score(refined, "retrieval_confidence").threshold is None
    last = [event for event in outcome.events if isinstance(event, Revised)][-1]
    assert (last.draft, last.before, last.after) == (1, DRAFT, ANSWER)
    assert agrees(outcome, **SETTINGS).stopped == "holds"


async def test_every_sentence_has_its_nearest_chunk_and_evidence_sentence():
    chunk = "B: Clinton studied law. Later he taught it."
    parts = ("B: Clinton studied law.", "Later he taught it.")
    table = {
        (QUESTION, chunk): 0.6,
        (DRAFT, chunk): 0.7,
        (YORK, chunk): 0.3,
        (STUDIED, chunk): 0.6,
        (STUDIED, parts[0]): 0.8,
        (YORK, parts[1]): 0.4,
    }
    outcome = await haarag([DRAFT], {QUESTION: [chunk]}, table, **SETTINGS)
    york, studied = judged(outcome, "sentence")
    assert [york.verdict, studied.verdict] == ["doubtful", "supported"]
    assert (DRAFT[york.start : york.end], york.sentence) == (YORK, 0)
    assert (DRAFT[studied.start : studied.end], studied.sentence) == (STUDIED, 1)
    # 0.6 is on the threshold.
    assert score(studied, "sentence_alignment").value == 0.6
    assert not score(studied, "sentence_alignment").flagged
    assert score(studied, "sentence_evidence").value == 0.8
    assert studied.detail["evidence"] == parts[0]
    assert york.detail["evidence"] == parts[1]
    assert chunk[york.detail["start"] : york.detail["end"]] == parts[1]
    agrees(outcome, **SETTINGS)


async def test_when_the_iterations_are_used_up_the_last_answer_is_returned_as_unreliable():
    table = TABLE | {(ANSWER, HOPE): 0.3, (ANSWER, LAW): 0.3}
    outcome = await haarag([DRAFT, ANSWER], FOUND, table, max_iterations=2, **SETTINGS)
    assert outcome.answer.text == ANSWER
    assert outcome.answer.flags == ("unreliable",)
    assert agrees(outcome, max_iterations=2, **SETTINGS).stopped == "iterations"


async def test_one_iteration_only_checks():
    outcome = await haarag([DRAFT], FOUND, TABLE, max_iterations=1, **SETTINGS)
    assert outcome.drafts == [DRAFT]
    assert outcome.answer.flags == ("unreliable",)
    agrees(outcome, max_iterations=1, **SETTINGS)


async def test_a_third_iteration_looks_for_what_the_second_answer_lacks():
    town = "D: Hope is a town in Arkansas."
    found = FOUND | {ANSWER: [town]}
    # The whole second answer is one sentence, below tau_a with both chunks.
    table = TABLE | {(ANSWER, HOPE): 0.4, (ANSWER, LAW): 0.3, (ANSWER, town): 0.8}
    table |= {("In Hope.", town): 0.9, ("In Hope.", HOPE): 0.9}
    outcome = await haarag([DRAFT, ANSWER, "In Hope."], found, table, **SETTINGS)
    assert outcome.queries == [QUESTION, YORK, ANSWER]
    assert outcome.drafts == [DRAFT, ANSWER, "In Hope."]
    agrees(outcome, **SETTINGS)


async def test_a_context_that_stays_the_same_is_not_written_from_again():
    outcome = await haarag([DRAFT], FOUND | {YORK: [LAW]}, TABLE, **SETTINGS)
    assert outcome.drafts == [DRAFT]
    assert outcome.answer.flags == ("unreliable",)
    assert agrees(outcome, **SETTINGS).stopped == "unchanged"


async def test_a_failed_refinement_keeps_the_answer_and_says_so():
    broken = UnreachableError("The index is gone.", remedy="Build it.")
    outcome = await haarag([DRAFT], {QUESTION: [LAW], YORK: broken}, TABLE, **SETTINGS)
    assert outcome.answer.text == DRAFT
    assert outcome.answer.flags == ("search_incomplete", "unreliable")
    agrees(outcome, **SETTINGS)


async def test_what_was_searched_for_already_is_not_searched_for_again():
    settings: dict[str, Any] = SETTINGS | {"tau_a": 0.7}
    outcome = await haarag([QUESTION], FOUND, TABLE, **settings)
    assert outcome.queries == [QUESTION]
    assert outcome.answer.flags == ("unreliable",)
    assert agrees(outcome, **settings).stopped == "exhausted"


@pytest.mark.parametrize(
    "text",
    [
        "The context does not answer this question.",
        '"The context does not answer this question!" It only mentions law.',
        "The provided passages do not mention where Clinton was born.",
        "There is not enough information in the context.",
        "资料没有回答这个问题。",
        "所给资料中并未提到他的出生地。",
    ],
)
async def test_an_answer_that_claims_nothing_is_an_abstention(text: str):
    outcome = await haarag([text], FOUND, TABLE, **SETTINGS)
    assert outcome.answer.abstained
    assert outcome.answer.flags == ("insufficient_context",)
    assert judged(outcome, "sentence") == []
    (answer,) = judged(outcome, "answer")
    assert answer.verdict == "unchecked"
    # Far from the passages as such a text is, it is held against no threshold.
    assert (answer.scores[0].threshold, answer.scores[0].flagged) == (None, False)
    assert agrees(outcome, **SETTINGS).stopped == "exhausted"


@pytest.mark.parametrize(
    "text",
    [
        "The context does not mention York, but says that he studied law.",
        "Information theory does not concern him.",
        "He did not say where he was born.",
    ],
)
async def test_an_answer_that_claims_something_is_none(text: str):
    outcome = await haarag([text], FOUND, TABLE, max_iterations=1, **SETTINGS)
    assert not outcome.answer.abstained


async def test_where_the_context_does_not_suffice_the_question_is_put_in_other_words():
    settings: dict[str, Any] = SETTINGS | {"rephrase": "widen"}
    found = {QUESTION: [LAW], "His birthplace?": [HOPE]}
    table = TABLE | {("His birthplace?", HOPE): 0.9}
    nothing = "The context does not answer this question."
    outcome = await haarag([nothing, "1. His birthplace?", ANSWER], found, table, **settings)
    assert outcome.queries == [QUESTION, "His birthplace?"]
    assert outcome.answer.text == ANSWER
    assert (outcome.answer.original, outcome.answer.abstained) == (nothing, False)
    agrees(outcome, **settings)


async def test_an_empty_answer_is_unchecked_and_tried_once_more():
    settings: dict[str, Any] = SETTINGS | {"rephrase": "widen"}
    found = {QUESTION: [LAW], "His birthplace?": [HOPE]}
    replies = ["<think>Hm.</think>", "His birthplace?", " "]
    outcome = await haarag(replies, found, TABLE, **settings)
    assert outcome.drafts == ["", ""]
    assert judged(outcome, "answer")[0].verdict == "unchecked"
    assert "empty" in outcome.answer.flags
    agrees(outcome, **settings)


async def test_thinking_is_no_part_of_the_answer():
    outcome = await haarag(["<think>Law?</think>\nHe studied law."], FOUND, TABLE, **SETTINGS)
    assert outcome.answer.text == STUDIED


async def test_a_chinese_question_is_compared_by_its_words():
    """Hashed characters and pairs: no model reads the text, the language's rules hold."""
    question, draft = "克林顿出生在哪里？", "克林顿出生在希望镇。"
    chunk = "克林顿出生在阿肯色州的希望镇。他学过法律。"
    outcome = await run_method(
        Haarag(),
        question,
        ScriptedModel.from_replies([draft], capabilities=WRITES),
        shelf=Shelf(lambda _: [chunk, "西班牙下雨。"]),
        similarity=EmbedderSimilarity(LexicalEmbedder()),
    )
    assert outcome.answer.text == draft
    (sentence,) = judged(outcome, "sentence")
    assert sentence.detail["evidence"] == "克林顿出生在阿肯色州的希望镇。"
    chunks = judged(outcome, "retrieval")[0].detail["chunks"]
    assert [each["outcome"] for each in chunks] == ["kept", "low"]
    decision = agrees(outcome)
    assert decision.embedder == "words"
    assert decision.thresholds.tau_a is not None


class Judge(ScriptedModel):
    """Says YES with a probability for each statement, once all its questions are asked."""

    def __init__(self, yes: dict[str, float], parties: int, name: str = "judge", **can: Any):
        super().__init__((), name=name, capabilities=Capabilities(logprobs=True, **can))
        self.yes = yes
        self.barrier = asyncio.Barrier(parties)

    async def choose(self, request: ChoiceRequest) -> Choice:
        async with asyncio.timeout(5):
            await self.barrier.wait()
        asked = request.messages[-1].content
        share = next(value for text, value in self.yes.items() if text in asked)
        if share < 0:
            raise UnreachableError("Nobody there.", remedy="Wait.")
        return Choice(
            probabilities={"yes": share, "no": 1 - share}, other_mass=0, source="logprobs"
        )


async def test_judges_see_a_wrong_detail_that_the_cosine_does_not():
    table = TABLE | {(DRAFT, LAW): 0.9, (YORK, LAW): 0.8}
    judges = {
        "judge_1": Judge({YORK: 0.2, STUDIED: 0.9}, 2, "one"),
        "judge_3": Judge({YORK: 0.4, STUDIED: 0.7}, 2, "three", judges=False),
    }
    settings: dict[str, Any] = SETTINGS | {"entailment": "judges", "max_iterations": 1}
    outcome = await haarag([DRAFT], FOUND, table, models=judges, **settings)
    york, studied = judged(outcome, "sentence")
    # (0.2 + 0.4) / 2 and (0.9 + 0.7) / 2.
    assert score(york, "entailment").value == pytest.approx(0.3)
    assert score(studied, "entailment").value == pytest.approx(0.8)
    assert [york.verdict, studied.verdict] == ["doubtful", "supported"]
    (answer,) = judged(outcome, "answer")
    assert answer.verdict == "doubtful"
    assert (answer.scores[0].name, answer.scores[0].value) == ("entailment", york.scores[2].value)
    assert outcome.answer.flags == ("unreliable", "weak_judge")
    agrees(outcome, **settings)


async def test_one_model_judges_once_and_the_main_model_where_there_is_no_judge():
    judge = Judge({YORK: 0.9, STUDIED: 0.9}, 2)
    settings: dict[str, Any] = SETTINGS | {"entailment": "judges", "max_iterations": 1}
    models = {"judge_1": judge, "judge_2": judge}
    outcome = await haarag([DRAFT], FOUND, TABLE, models=models, **settings)
    asked = [call.role for call in outcome.calls if call.choice is not None]
    assert asked == ["judge_1", "judge_1"]
    replies = [DRAFT, {"choice": {"yes": 0.6, "no": 0.4}, "times": 2}]
    outcome = await haarag(replies, FOUND, TABLE, **settings)
    entailed = [score(event, "entailment").value for event in judged(outcome, "sentence")]
    assert entailed == [0.6, 0.6]
    agrees(outcome, **settings)


def reads() -> ClaimReader:
    """Bears out what is about York, and nothing else."""
    borne_out, lacking = Reading(0.9, 0.05, 0.05), Reading(0.2, 0.1, 0.7)
    return ClaimReader(lambda claim: borne_out if claim.statement == YORK else lacking)


async def test_by_default_a_judge_made_for_it_is_asked_about_every_sentence():
    models = {"judge_1": Judge({}, 1, "writes"), "judge_2": reads()}
    settings: dict[str, Any] = SETTINGS | {"max_iterations": 1}
    outcome = await haarag([DRAFT], FOUND, TABLE, models=models, **settings)
    york, studied = judged(outcome, "sentence")
    assert score(york, "entailment").value == 0.9
    # What the evidence lacks is not borne out either.
    assert score(studied, "entailment").value == 0.2
    assert {call.role for call in outcome.calls if call.choice is not None} == {"judge_2"}
    assert "weak_judge" not in outcome.answer.flags
    agrees(outcome, **settings)


async def test_the_main_model_can_be_asked_about_every_sentence():
    settings: dict[str, Any] = SETTINGS | {"max_iterations": 1, "entailment": "main"}
    replies = [DRAFT, {"choice": {"yes": 0.6, "no": 0.4}, "times": 2}]
    outcome = await haarag(replies, FOUND, TABLE, models={"judge_2": reads()}, **settings)
    assert {call.role for call in outcome.calls if call.choice is not None} == {"main"}
    agrees(outcome, **settings)


async def test_a_judge_that_fails_leaves_the_others_their_say():
    judges = {
        "judge_1": Judge({YORK: -1, STUDIED: -1}, 1, "broken"),
        "judge_2": Judge({YORK: 0.8, STUDIED: 0.9}, 2, "well"),
    }
    settings: dict[str, Any] = SETTINGS | {"entailment": "judges", "max_iterations": 1}
    outcome = await haarag([DRAFT], FOUND, TABLE, models=judges, **settings)
    entailed = [score(event, "entailment").value for event in judged(outcome, "sentence")]
    assert entailed == [0.8, 0.9]
    steps = [e for e in outcome.events if isinstance(e, SpanStarted) and e.step == "entail"]
    assert [step.detail["sentence"] for step in steps] == [0, 1]
    agrees(outcome, **settings)


async def test_no_judge_is_asked_about_an_answer_that_claims_nothing():
    nothing = "The context does not answer this question."
    shelf = Chunks(FOUND)
    settings: dict[str, Any] = SETTINGS | {"entailment": "judges"}
    outcome = await haarag([nothing], shelf, TABLE, **settings)
    assert [call for call in outcome.calls if call.choice is not None] == []
    agrees(outcome, **settings)

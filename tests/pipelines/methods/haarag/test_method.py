"""HAARAG worked through by hand: retrieval confidence, widening, filter, what is written."""

import asyncio
import json
from typing import Any

import pytest

from pipelines.base import Generation, Passage
from pipelines.errors import RefusedRequestError, UnreachableError
from pipelines.methods.haarag import Haarag
from pipelines.models.base import GenerationRequest, Watcher
from pipelines.models.scripted import ScriptedModel
from pipelines.run.events import ModelCalled, RunFailed, SpanStarted
from tests.scripted.haarag import (
    QUESTION,
    WRITES,
    Chunks,
    chunks_of,
    haarag,
    judged,
    queries_of,
    replays,
    score,
    stopped,
)

HOPE = "A: Clinton was born in Hope."
LAW = "B: Clinton studied law."
RAIN = "C: It rains in Spain."
ANSWER = "He was born in Hope."
GONE = UnreachableError("The index is gone.", remedy="Build it.")

# C_r = (0.8 + 0.6 + 0.3) / 3 = 0.567. RAIN, below half of the best similarity, is no context.
# mean_i(r . c_i) = (0.9 + 0.5) / 2 = 0.7, mean_ij(c_i . c_j) = (1 + 0.2 + 0.2 + 1) / 4 = 0.6.
GOOD = {
    (QUESTION, HOPE): 0.8,
    (QUESTION, LAW): 0.6,
    (QUESTION, RAIN): 0.3,
    (HOPE, LAW): 0.2,
    (ANSWER, HOPE): 0.9,
    (ANSWER, LAW): 0.5,
}
FOUND = {QUESTION: [HOPE, LAW, RAIN]}
TAUS: dict[str, Any] = {"tau_r": 0.5, "tau_a": 0.6}


async def test_good_retrieval_and_an_aligned_answer_end_the_run():
    outcome = await haarag([ANSWER], FOUND, GOOD, **TAUS)
    assert outcome.steps == ["method", "retrieve", "draft", "align", "conclude"]
    assert outcome.answer.text == outcome.answer.original == ANSWER
    assert (outcome.answer.flags, outcome.answer.abstained) == ((), False)

    (retrieval,) = judged(outcome, "retrieval")
    assert retrieval.verdict == "supported"
    assert score(retrieval, "retrieval_confidence").value == pytest.approx(1.7 / 3)
    assert score(retrieval, "retrieval_confidence").inputs == (0.8, 0.6, 0.3)
    # Deviations of 0.7 / 3, 0.1 / 3 and -0.8 / 3 from the mean; 1 - (0.2 + 0.1 + 0.1) / 3.
    spread = ((0.49 + 0.01 + 0.64) / 9 / 3) ** 0.5
    assert score(retrieval, "similarity_spread").value == pytest.approx(spread)
    assert score(retrieval, "chunk_diversity").value == pytest.approx(1 - 0.4 / 3)
    assert [(chunk.id, chunk.outcome) for chunk in chunks_of(retrieval)] == [
        ("A", "kept"),
        ("B", "kept"),
        ("C", "low"),
    ]

    (alignment,) = judged(outcome, "alignment")
    c_a = score(alignment, "evidence_alignment")
    assert c_a.value == pytest.approx(0.7 / 0.6**0.5)
    assert c_a.inputs == pytest.approx((0.7, 0.6))
    (answer,) = judged(outcome, "answer")
    assert (answer.verdict, answer.draft, answer.scores[0]) == ("aligned", 0, c_a)
    replays(outcome, **TAUS)
    assert stopped(outcome) == ("aligned", 0)


async def test_an_answer_that_is_given_is_aligned_and_not_written():
    given: dict[str, Any] = {"subject": "given", "answer": f" {ANSWER} ", "max_iterations": 1}
    outcome = await haarag([], FOUND, GOOD, **TAUS, **given)
    assert outcome.answer.text == outcome.answer.original == ANSWER
    assert not [call for call in outcome.calls if call.role == "main"]
    (alignment,) = judged(outcome, "alignment")
    assert score(alignment, "evidence_alignment").value == pytest.approx(0.7 / 0.6**0.5)
    replays(outcome, **TAUS, **given)
    assert stopped(outcome) == ("aligned", 0)


async def test_where_no_answer_is_given_nothing_is_aligned():
    outcome = await haarag([], FOUND, GOOD, subject="given", answer=" ")
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert "no answer to align" in outcome.trace.terminal.error.message
    assert not outcome.calls


async def test_the_model_is_given_the_context_alone_and_told_to_say_when_it_does_not_suffice():
    outcome = await haarag([ANSWER], FOUND, GOOD, **TAUS)
    written = next(call.request for call in outcome.calls if call.role == "main")
    assert isinstance(written, GenerationRequest)
    system, user = (message.content for message in written.messages)
    assert "The context does not answer this question." in system
    assert "[1] : A: Clinton was born in Hope." in user
    assert "[2] : B: Clinton studied law." in user
    assert "Spain" not in user
    assert QUESTION in user


async def test_widening_doubles_k_and_a_rewording_brings_what_is_near_to_the_question():
    hope_reworded, birth = "In which town was Clinton born?", "Clinton's place of birth?"
    town = "D: Hope is a town in Arkansas."
    table = GOOD | {(QUESTION, HOPE): 0.5, (QUESTION, LAW): 0.4}
    # That it is near to a rewording counts for nothing.
    table |= {(hope_reworded, HOPE): 0.9, (birth, town): 0.7, (ANSWER, town): 0.8}
    table |= {(QUESTION, town): 0.45}
    found = {QUESTION: [HOPE, LAW, RAIN], hope_reworded: [HOPE], birth: [town]}
    shelf = Chunks(found)
    replies = [f'{{"questions": ["{hope_reworded}", "{birth}"]}}', ANSWER]
    settings: dict[str, Any] = {"tau_r": 0.47, "tau_a": 0.6, "k": 2}
    outcome = await haarag(replies, shelf, table, **settings)
    assert outcome.steps[:5] == ["method", "retrieve", "retrieve", "rephrase", "draft"]
    assert shelf.asked == [(QUESTION, 2), (QUESTION, 4), (hope_reworded, 4), (birth, 4)]
    narrow, wide = judged(outcome, "retrieval")
    # (0.5 + 0.4) / 2, then the best two of HOPE 0.5, the town 0.45, LAW 0.4 and RAIN 0.3.
    assert score(narrow, "retrieval_confidence").value == pytest.approx(0.45)
    assert (narrow.verdict, wide.verdict) == ("doubtful", "supported")
    assert score(wide, "retrieval_confidence").value == pytest.approx(0.475)
    # Twice as deep, there is room for half as many more.
    assert [(c.id, c.query, c.outcome) for c in chunks_of(wide)] == [
        ("A", 0, "kept"),
        ("D", 0, "kept"),
        ("B", 0, "kept"),
        ("C", 0, "surplus"),
    ]
    replays(outcome, **settings)


async def test_rewordings_that_cannot_be_had_leave_the_question_as_it_is():
    class Mute(ScriptedModel):
        async def generate(
            self, request: GenerationRequest, watch: Watcher | None = None
        ) -> tuple[Generation, ...]:
            if "searches a library" in request.messages[-1].content:
                raise RefusedRequestError("The account is empty.", remedy="Pay.")
            return await super().generate(request, watch)

    settings: dict[str, Any] = TAUS | {"rephrase": "always"}
    outcome = await haarag(
        Mute.from_replies([ANSWER], capabilities=WRITES), FOUND, GOOD, **settings
    )
    assert outcome.answer.text == ANSWER
    assert outcome.answer.flags == ("not_reworded",)
    assert queries_of(judged(outcome, "retrieval")[0]) == (QUESTION,)
    replays(outcome, **settings)


async def test_a_confidence_on_the_threshold_is_not_widened():
    table = GOOD | {(QUESTION, HOPE): 0.75, (QUESTION, LAW): 0.5, (QUESTION, RAIN): 0.25}
    settings: dict[str, Any] = {"tau_r": 0.5, "tau_a": 0.6}
    outcome = await haarag([ANSWER], FOUND, table, **settings)
    (retrieval,) = judged(outcome, "retrieval")
    assert score(retrieval, "retrieval_confidence").value == 0.5
    assert retrieval.verdict == "supported"
    replays(outcome, **settings)


async def test_k_doubles_up_to_its_limit_and_no_further():
    shelf = Chunks(FOUND)
    settings: dict[str, Any] = {"tau_r": 1.0, "tau_a": 0.6, "k": 3, "k_limit": 10}
    outcome = await haarag([ANSWER], shelf, GOOD, rephrase="off", **settings)
    assert shelf.asked == [(QUESTION, 3), (QUESTION, 6), (QUESTION, 10)]
    # Still low, but an answer is written and checked all the same.
    assert outcome.answer.text == ANSWER
    replays(outcome, rephrase="off", **settings)


async def test_where_k_cannot_grow_the_question_is_still_reworded_once():
    shelf = Chunks(FOUND | {"Clinton's home?": [HOPE]})
    settings: dict[str, Any] = {"tau_r": 1.0, "tau_a": 0.6, "k": 4, "k_limit": 1}
    outcome = await haarag(["1. Clinton's home?", ANSWER], shelf, GOOD, **settings)
    assert shelf.asked == [(QUESTION, 4), ("Clinton's home?", 4)]
    replays(outcome, **settings)


async def test_rewordings_and_key_terms_can_be_searched_for_from_the_start():
    shelf = Chunks(FOUND | {"clinton born": [LAW], "Where is his birthplace?": [HOPE]})
    settings: dict[str, Any] = {**TAUS, "rephrase": "always", "key_terms": True, "forms": 1}
    outcome = await haarag(
        [f"Where is his birthplace?\n{QUESTION}", ANSWER], shelf, GOOD, **settings
    )
    assert sorted(shelf.asked) == [
        ("Where is his birthplace?", 4),
        (QUESTION, 4),
        ("clinton born", 4),
    ]
    assert queries_of(judged(outcome, "retrieval")[0]) == (
        QUESTION,
        "clinton born",
        "Where is his birthplace?",
    )
    replays(outcome, **settings)


async def test_a_useless_rewording_leaves_the_question_alone():
    shelf = Chunks(FOUND)
    settings: dict[str, Any] = {"tau_r": 0.9, "tau_a": 0.6}
    outcome = await haarag(["I cannot help with that.", ANSWER], shelf, GOOD, **settings)
    assert {query for query, _ in shelf.asked} == {QUESTION}
    replays(outcome, **settings)


@pytest.mark.parametrize(
    "written",
    [
        # What a bundled model wrote.
        "jon",
        "Clinton was born in Rome.",
        "When was Clinton born?",
        "Wo wurde Clinton geboren?",
        "Where was Clinton born? In Rome.",
    ],
)
async def test_a_rewording_has_to_ask_what_the_question_asks(written: str):
    usable = "In which town was Clinton born?"
    shelf = Chunks(FOUND | {written: [RAIN], usable: [HOPE]})
    settings: dict[str, Any] = TAUS | {"rephrase": "always"}
    replies = [json.dumps({"questions": [written, usable]}), ANSWER]
    outcome = await haarag(replies, shelf, GOOD, **settings)
    assert queries_of(judged(outcome, "retrieval")[0]) == (QUESTION, usable)
    assert {query for query, _ in shelf.asked} == {QUESTION, usable}
    replays(outcome, **settings)


async def test_near_duplicates_and_what_is_over_k_are_dropped_complements_kept():
    again, later = "D: Clinton was born in Hope, he says.", "E: His mother lived in Hope."
    table = GOOD | {(QUESTION, again): 0.79, (QUESTION, later): 0.5}
    table |= {(HOPE, again): 0.96, (HOPE, later): 0.94}
    found = {QUESTION: [LAW, again, HOPE, later]}
    settings: dict[str, Any] = {**TAUS, "k": 2, "k_limit": 4, "tau_r": 0.75}
    outcome = await haarag(["None", ANSWER], found, table, **settings)
    retrieval = judged(outcome, "retrieval")[-1]
    # C_r = (0.8 + 0.79) / 2: it counts before repeated chunks are dropped.
    assert score(retrieval, "retrieval_confidence").value == pytest.approx(0.795)
    assert [(c.id, c.outcome, c.like) for c in chunks_of(retrieval)] == [
        ("A", "kept", ""),
        ("D", "duplicate", "A"),
        ("B", "kept", ""),
        ("E", "kept", ""),
    ]
    replays(outcome, **settings)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_nothing_found_is_said_and_nothing_written_from_memory(language: str):
    question = QUESTION if language == "en" else "克林顿出生在哪里？"
    settings: dict[str, Any] = {**TAUS, "rephrase": "off"}
    outcome = await haarag([], {}, {}, question=question, **settings)
    assert [call for call in outcome.calls if call.role == "main"] == []
    assert outcome.answer.abstained
    assert outcome.answer.flags == ("nothing_found",)
    assert outcome.answer.text.startswith("Nothing was found" if language == "en" else "没有找到")
    (answer,) = judged(outcome, "answer")
    assert (answer.verdict, answer.scores[0].value) == ("unchecked", None)
    # Four, eight, sixteen: all that could be asked for.
    assert outcome.steps.count("retrieve") == 3
    replays(outcome, **settings)
    assert stopped(outcome) == ("nothing_found", 0)


async def test_a_failed_search_is_said_and_not_repeated():
    shelf = Chunks({QUESTION: GONE})
    outcome = await haarag([], shelf, {}, **TAUS)
    assert len(shelf.asked) == 1
    assert outcome.answer.flags == ("nothing_found", "search_incomplete")
    replays(outcome, **TAUS)


async def test_one_failed_search_of_several_leaves_the_others_result():
    shelf = Chunks(FOUND | {"clinton born": GONE})
    settings: dict[str, Any] = {**TAUS, "key_terms": True}
    outcome = await haarag([ANSWER], shelf, GOOD, **settings)
    assert outcome.answer.text == ANSWER
    assert outcome.answer.flags == ("search_incomplete",)
    replays(outcome, **settings)


async def test_without_a_calibrated_threshold_nothing_is_decided_and_that_is_said():
    outcome = await haarag([ANSWER], FOUND, GOOD, embedder="nobody measured this one")
    assert outcome.steps == ["method", "retrieve", "draft", "align", "conclude"]
    assert outcome.answer.flags == ("not_checked",)
    verdicts = {event.what: event.verdict for event in outcome.events if event.kind == "judged"}
    assert set(verdicts) == {"retrieval", "alignment", "sentence", "answer"}
    assert set(verdicts.values()) == {"unchecked"}
    assert judged(outcome, "retrieval")[0].scores[0].threshold is None
    replays(outcome)
    assert stopped(outcome) == ("unchecked", 0)


async def test_the_threshold_of_the_embedder_in_use_is_the_default():
    outcome = await haarag([ANSWER] * 3, FOUND, GOOD, embedder="words", rephrase="off")
    english = judged(outcome, "retrieval")[0].scores[0].threshold
    assert english == Haarag().settings().threshold("tau_r", "words", "en")
    question = "克林顿出生在哪里？"
    table = {(question, HOPE): 0.8, (ANSWER, HOPE): 0.9}
    outcome = await haarag([ANSWER], {question: [HOPE]}, table, question=question, embedder="words")
    replays(outcome)
    chinese = judged(outcome, "retrieval")[0].scores[0].threshold
    assert chinese == Haarag().settings().threshold("tau_r", "words", "zh")
    # Chinese characters and English words repeat themselves differently.
    assert chinese != english


class Meeting(Chunks):
    """Answers a search only once `parties` searches are waiting."""

    def __init__(self, found: Any, parties: int) -> None:
        super().__init__(found)
        self.barrier = asyncio.Barrier(parties)

    async def search(self, query: str, k: int) -> list[Passage]:
        async with asyncio.timeout(60):
            await self.barrier.wait()
        return await super().search(query, k)


async def test_all_forms_are_searched_for_at_the_same_time():
    shelf = Meeting(FOUND | {"clinton born": [LAW]}, parties=2)
    outcome = await haarag([ANSWER], shelf, GOOD, key_terms=True, **TAUS)
    assert outcome.answer.flags == ()


async def test_the_question_is_reworded_while_the_wider_search_is_under_way():
    reworded = asyncio.Event()

    class Waiting(Chunks):
        async def search(self, query: str, k: int) -> list[Passage]:
            if k > 4:
                async with asyncio.timeout(60):
                    await reworded.wait()
            return await super().search(query, k)

    class Telling(ScriptedModel):
        async def generate(
            self, request: GenerationRequest, watch: Watcher | None = None
        ) -> tuple[Generation, ...]:
            reworded.set()
            return await super().generate(request, watch)

    model = Telling.from_replies(["Where is his birthplace?", ANSWER], capabilities=WRITES)
    outcome = await haarag(model, Waiting(FOUND), GOOD, tau_r=0.9, tau_a=0.6)
    assert outcome.answer.flags == ("low_retrieval",)
    rounds = [e for e in outcome.events if isinstance(e, SpanStarted) and e.name == "retrieve"]
    compared = [e for e in outcome.events if isinstance(e, ModelCalled) and e.role == "embedder"]
    # One comparison a round and one for the draft: vectors are never recorded.
    assert len(compared) == len(rounds) + 1


async def test_the_confidence_is_the_mean_over_k_chunks_of_which_none_is_dropped_before():
    moon, sea, tide = "D: The moon.", "E: The sea.", "F: The tide."
    table = {(QUESTION, HOPE): 0.75}
    outcome = await haarag([ANSWER], {QUESTION: [HOPE, moon, sea, tide]}, table, rephrase="off")
    retrieval = judged(outcome, "retrieval")[0]
    # One good chunk of four: 0.75, and 0.1 for each that the filter leaves out of the context.
    assert score(retrieval, "retrieval_confidence").inputs == (0.75, 0.1, 0.1, 0.1)
    assert score(retrieval, "retrieval_confidence").value == pytest.approx(0.2625)
    assert [one.outcome for one in chunks_of(retrieval)] == ["kept", "low", "low", "low"]


async def test_an_answer_from_passages_far_from_the_question_is_never_plainly_supported():
    settings: dict[str, Any] = {"tau_r": 0.6, "tau_a": 0.6, "rephrase": "off"}
    outcome = await haarag([ANSWER], FOUND, GOOD, **settings)
    (answer,) = judged(outcome, "answer")
    # C_a = 0.904, but C_r = 0.567 after all that could be searched for.
    assert judged(outcome, "alignment")[0].scores[0].value == pytest.approx(0.7 / 0.6**0.5)
    assert answer.verdict == "not_enough"
    assert (answer.scores[0].name, answer.scores[0].flagged) == ("retrieval_confidence", True)
    last = [e for e in outcome.events if isinstance(e, SpanStarted) and e.name == "retrieve"][-1]
    assert answer.scores[0].behind == (last.span,)
    assert outcome.answer.flags == ("low_retrieval",)
    assert (outcome.answer.text, outcome.answer.abstained) == (ANSWER, False)
    replays(outcome, **settings)

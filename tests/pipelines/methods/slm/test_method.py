"""The SLM check worked through by hand: who is asked what, when, and what is made of it."""

import asyncio
from itertools import combinations
from math import sqrt

import pytest

from pipelines.errors import UnreachableError
from pipelines.methods.registry import METHODS
from pipelines.methods.slm import Slm
from pipelines.methods.slm.scores import normal_cdf
from pipelines.models.base import Capabilities, ChoiceRequest, GenerationRequest
from pipelines.run.events import Judged, ModelCalled, RunFailed, SpanEnded, SpanStarted
from pipelines.run.findings import CellJudged
from tests.scripted.bench import FULL, Outcome, PieceModel, Shelf, run_method
from tests.scripted.slm import (
    BORN,
    DRAFT,
    QUESTION,
    WON,
    JudgeModel,
    again,
    check,
    decided,
    says,
)

NEUTRAL = sqrt(12)
"""z is (P(yes) - 1/2) times this for a judge of whom nothing is known."""


def verdicts(outcome: Outcome, what: str) -> list[Judged]:
    return [e for e in outcome.events if isinstance(e, Judged) and e.what == what]


def answer_of(outcome: Outcome) -> Judged:
    (event,) = verdicts(outcome, "answer")
    return event


def said_of(event: Judged) -> CellJudged:
    assert isinstance(event.detail, CellJudged)
    return event.detail


async def test_a_response_scored_by_two_judges():
    one, other = JudgeModel("one", says(0.9, 0.4, 0.7)), JudgeModel("other", says(0.7, 0.2, 0.5))
    outcome = await check(one, other, threshold=0.5)
    assert outcome.answer.text == outcome.answer.original == DRAFT
    # Averages of P(yes): 0.8 and 0.3; z = 0.3 and -0.2 times sqrt 12 = 1.0392 and -0.6928;
    # Phi = 0.85065 and 0.24421; harmonic mean 2 / (1 / 0.85065 + 1 / 0.24421) = 0.37948.
    born, won = verdicts(outcome, "sentence")
    assert (born.text, born.start, born.end, born.sentence) == (BORN, 0, 25, 0)
    assert born.scores[0].value == pytest.approx(0.85065, abs=1e-5)
    assert won.scores[0].value == pytest.approx(0.24421, abs=1e-5)
    assert (born.verdict, won.verdict) == ("supported", "doubtful")
    headline, *others, whole = answer_of(outcome).scores
    assert (headline.name, headline.threshold, headline.flagged) == ("slm_harmonic", 0.5, True)
    assert headline.value == pytest.approx(0.37948, abs=1e-5)
    assert headline.inputs == pytest.approx((0.3 * NEUTRAL, -0.2 * NEUTRAL))
    assert [score.name for score in others] == [
        "slm_arithmetic",
        "slm_geometric",
        "slm_min",
        "slm_max",
    ]
    assert [score.threshold for score in others] == [None] * 4
    assert (whole.name, whole.value) == ("slm_whole", pytest.approx(0.6))
    assert answer_of(outcome).verdict == "doubtful"
    assert outcome.answer.flags == ()


async def test_every_word_of_a_judge_is_recorded_with_what_it_left_over():
    judge = JudgeModel("tiny", says((0.6, 0.1), None, (0.5, 0.5)))
    outcome = await check(judge)
    born, won = verdicts(outcome, "cell")
    assert (born.label, born.sentence, born.text) == ("tiny", 0, BORN)
    assert born.scores[0].value == 0.6
    said, silent = said_of(born), said_of(won)
    assert (said.role, said.source) == ("judge_1", "logprobs")
    assert said.other_mass == pytest.approx(0.3)
    # Neither yes nor no: unscored, shown, and left out of the response.
    assert won.scores[0].value is None
    assert silent.other_mass == 1.0
    assert [s.scores[0].value is None for s in verdicts(outcome, "sentence")] == [False, True]
    assert verdicts(outcome, "sentence")[1].verdict == "unchecked"
    assert answer_of(outcome).scores[0].inputs == pytest.approx((0.1 * NEUTRAL,))
    (whole,) = verdicts(outcome, "whole")
    assert (whole.sentence, whole.start, whole.end) == (None, 0, len(DRAFT))


async def test_one_judge_of_two_without_a_word_leaves_the_other_ones():
    outcome = await check(JudgeModel("a", says(None, 0.5)), JudgeModel("b", says(0.8, 0.5)))
    decision = decided(outcome)
    assert decision.matrix[0] == (None, 0.8)
    assert decision.averages[0] == pytest.approx(0.3 * NEUTRAL)


async def test_when_nobody_says_anything_nothing_is_checked():
    outcome = await check(JudgeModel("a", says(None, None, None)))
    assert answer_of(outcome).verdict == "unchecked"
    assert answer_of(outcome).scores[0].value is None
    assert outcome.answer.flags == ("not_checked",)
    assert decided(outcome).verdict == "unchecked"


async def test_all_judges_are_asked_about_all_sentences_at_the_same_time():
    # Nobody is answered before all nine requests, of three judges on three statements, are made.
    together = asyncio.Barrier(9)
    judges = [JudgeModel(name, says(0.5, 0.5), together=together) for name in ("a", "b", "c")]
    async with asyncio.timeout(60):
        outcome = await check(*judges)
    asked = [call for call in outcome.calls if call.role.startswith("judge")]
    last_start, first_end = max(c.started for c in asked), min(c.time for c in asked)
    assert len(asked) == 9
    assert last_start <= first_end


async def test_the_draft_and_the_search_run_side_by_side_and_before_the_judges():
    outcome = await check(JudgeModel("a", says(0.5, 0.5)))
    assert outcome.steps == [
        "method",
        "draft",
        "retrieve",
        "ask_judges",
        "judge_sentence",
        "judge_sentence",
        "judge_response",
    ]
    started = {e.name: e.seq for e in outcome.events if isinstance(e, SpanStarted)}
    written = next(e for e in outcome.events if isinstance(e, ModelCalled))
    assert started["retrieve"] < written.seq


async def test_requests_to_a_judge_differ_in_their_last_words_alone():
    judge = JudgeModel("a", says(0.5, 0.5))
    await check(judge)
    statements = (BORN, WON, DRAFT)
    assert len(judge.asked) == 3
    for one, other in combinations(judge.asked, 2):
        assert one.messages[:-1] == other.messages[:-1]
        assert one.options == other.options
    prefixes = set()
    for request, statement in zip(judge.asked, statements, strict=True):
        content = request.messages[-1].content
        assert content.endswith(statement)
        prefixes.add(content.removesuffix(statement))
    (prefix,) = prefixes
    assert "[1] A title: He was born in Hope." in prefix
    assert "[2] A title: He won in 1992." in prefix
    assert f"Question: {QUESTION}" in prefix


async def test_the_draft_is_the_very_request_of_direct():
    main = PieceModel(lambda _: DRAFT)
    await run_method(METHODS["direct"], QUESTION, main)
    await check(JudgeModel("a", says(0.5, 0.5)), main=main)
    assert main.asked[0] == main.asked[1]


async def test_without_a_judge_the_main_model_judges_its_own_answer():
    class Both(JudgeModel):
        async def generate(self, request: GenerationRequest, watch=None):
            return await PieceModel(lambda _: DRAFT).generate(request, watch)

    main = Both("main", says(0.9, 0.8))
    outcome = await check(main=main)
    assert outcome.answer.flags == ("judge_is_main",)
    assert {call.role for call in outcome.calls} == {"main"}
    assert len(main.asked) == 3


async def test_the_same_judge_twice_counts_once_and_is_pointed_out():
    judge, other = JudgeModel("a", says(0.9, 0.9)), JudgeModel("b", says(0.5, 0.5))
    outcome = await check(judge, judge, other)
    assert outcome.answer.flags == ("same_judge_twice",)
    decision = decided(outcome)
    assert [one.name for one in decision.panel.judges] == ["a", "b"]
    # (0.9 + 0.5) / 2 = 0.7 and not (0.9 + 0.9 + 0.5) / 3.
    assert decision.averages[0] == pytest.approx(0.2 * NEUTRAL)
    assert len(judge.asked) == 3


async def test_a_judge_without_probabilities_is_read_by_its_text():
    outcome = await check(JudgeModel("a", says("yes", "maybe", "no")), threshold=0.5)
    assert outcome.answer.flags == ("judge_by_text", "checks_incomplete")
    assert [c.scores[0].value for c in verdicts(outcome, "cell")] == [1.0, None]
    assert verdicts(outcome, "cell")[0].scores[0].formula == "slm.text"
    # z = 0.5 * sqrt 12 = sqrt 3, Phi = 0.95837
    assert answer_of(outcome).scores[0].value == pytest.approx(normal_cdf(sqrt(3)))
    # The other sentence was not judged.
    assert answer_of(outcome).verdict == "unchecked"


async def test_a_judge_that_does_not_speak_the_language_is_left_out():
    english = Capabilities(languages=frozenset({"en"}), logprobs=True)
    deaf, judge = JudgeModel("deaf", says(0.1, 0.1), english), JudgeModel("b", lambda _: 0.9)
    outcome = await check(
        deaf, judge, main=PieceModel(lambda _: "他出生在霍普。"), question="克林顿出生在哪里？"
    )
    assert deaf.asked == []
    assert outcome.answer.flags == ("judge_language",)
    assert [one.name for one in decided(outcome).panel.judges] == ["b"]


async def test_a_judge_measured_to_be_no_better_than_chance_is_named_so():
    weak = FULL.model_copy(update={"judges": False})
    outcome = await check(JudgeModel("a", says(0.5, 0.5), weak))
    assert outcome.answer.flags == ("weak_judge",)


async def test_a_chinese_question_by_hand():
    judge = JudgeModel("a", lambda _: 0.75)
    outcome = await check(
        judge,
        main=PieceModel(lambda _: "他出生在霍普。他于1992年当选。"),
        question="克林顿出生在哪里？",
        shelf=Shelf(lambda _: ["克林顿出生在霍普。"]),
        threshold=0.5,
    )
    assert [s.text for s in verdicts(outcome, "sentence")] == ["他出生在霍普。", "他于1992年当选。"]
    system, user = judge.asked[0].messages
    assert "只回答一个字" in system.content
    assert "[1] A title：克林顿出生在霍普。" in user.content
    assert user.content.endswith("是还是否？他出生在霍普。")
    assert "是" in judge.asked[0].options[0].spellings
    # z = 0.25 * sqrt 12 = 0.8660, Phi = 0.80676 for both sentences and so for the response.
    assert answer_of(outcome).scores[0].value == pytest.approx(0.80676, abs=1e-5)
    assert answer_of(outcome).verdict == "supported"


@pytest.mark.parametrize(
    ("shelf", "flag"),
    [
        (Shelf(lambda _: []), "judges_no_evidence"),
        (Shelf(UnreachableError("The index is gone.", remedy="Build it.")), "judges_search_failed"),
    ],
)
async def test_without_passages_judges_are_asked_without_and_it_is_said(shelf: Shelf, flag: str):
    judge = JudgeModel("a", says(0.5, 0.5))
    outcome = await check(judge, shelf=shelf)
    assert outcome.answer.flags == (flag,)
    assert outcome.answer.text == DRAFT
    system, user = judge.asked[0].messages
    assert "passages" not in system.content
    assert user.content.startswith("Question: ")


async def test_an_answer_and_a_context_can_be_given():
    judge, main = JudgeModel("a", lambda _: 0.5), PieceModel(lambda _: DRAFT)
    outcome = await check(
        judge,
        main=main,
        shelf=None,
        subject="given",
        answer="  Hope. In 1946. ",
        context="given",
        passage="Born in Hope in 1946.",
    )
    assert outcome.answer.text == outcome.answer.original == "Hope. In 1946."
    assert [s.text for s in verdicts(outcome, "sentence")] == ["Hope.", "In 1946."]
    assert main.asked == []
    assert outcome.queries == []
    assert outcome.steps[:3] == ["method", "take_answer", "ask_judges"]
    assert "[1] Born in Hope in 1946.\n" in judge.asked[0].messages[1].content


async def test_without_context_nothing_is_searched_and_no_evidence_needed():
    outcome = await check(JudgeModel("a", says(0.5, 0.5)), shelf=None, context="none")
    assert outcome.queries == []
    assert outcome.answer.flags == ()
    assert [need.reason for need in Slm().needs(Slm().settings({"context": "none"}))] == ["model"]
    assert [need.reason for need in Slm().needs(Slm().settings())] == ["model", "evidence"]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"subject": "given", "answer": " "}, "no answer to judge"),
        ({"context": "given"}, "no text for the judges"),
    ],
)
async def test_what_was_to_be_given_and_is_not_is_asked_for(settings: dict, problem: str):
    judge = JudgeModel("a", says(0.5, 0.5))
    outcome = await check(judge, **settings)
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert outcome.trace.terminal.error.code == "invalid_input"
    assert problem in outcome.trace.terminal.error.message
    assert judge.asked == []


async def test_an_answer_that_stays_empty_is_an_error():
    judge = JudgeModel("a", says(0.5, 0.5))
    outcome = await check(judge, main=PieceModel(lambda _: []))
    assert judge.asked == []
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert outcome.trace.terminal.error.code == "invalid_reply"


async def test_a_thought_is_no_part_of_the_answer():
    outcome = await check(
        JudgeModel("a", lambda _: 0.5), main=PieceModel(lambda _: "<think>Hm. Hope?</think> Hope.")
    )
    assert outcome.answer.text == "Hope."
    assert outcome.drafts == ["Hope."]
    assert [s.text for s in verdicts(outcome, "sentence")] == ["Hope."]


async def test_a_failed_call_leaves_its_cell_empty_and_says_why():
    gone = UnreachableError("The judge is gone.", remedy="Start it.")
    outcome = await check(JudgeModel("a", says(0.8, gone)), JudgeModel("b", says(0.6, 0.7)))
    failed = next(c for c in verdicts(outcome, "cell") if said_of(c).error)
    assert (failed.label, failed.text) == ("a", WON)
    error = said_of(failed).error
    assert error is not None
    assert error.message == "The judge is gone."
    assert outcome.answer.flags == ("judge_failed",)
    assert decided(outcome).matrix == ((0.8, 0.6), (None, 0.7))


async def test_when_every_call_fails_the_answer_stays_unchecked():
    gone = UnreachableError("The judge is gone.", remedy="Start it.")
    outcome = await check(JudgeModel("a", lambda _: gone))
    assert outcome.answer.flags == ("broken_off",)
    ended = next(event for event in reversed(outcome.events) if isinstance(event, SpanEnded))
    assert ended.error is not None
    assert ended.error.code == "unreachable"
    assert again(outcome).answer == outcome.answer


async def test_the_whole_response_is_asked_about_only_when_wanted():
    judge = JudgeModel("a", says(0.5, 0.5))
    outcome = await check(judge, whole_response=False)
    assert len(judge.asked) == 2
    assert [s.name for s in answer_of(outcome).scores][-1] == "slm_max"


async def test_the_calls_behind_a_number_are_named():
    outcome = await check(JudgeModel("a", says(0.5, 0.6)), JudgeModel("b", says(0.7, 0.8)))
    spans = {(c.label, c.text): c.span for c in (*verdicts(outcome, "cell"),)}
    born, _ = verdicts(outcome, "sentence")
    assert born.scores[0].behind == (spans["a", BORN], spans["b", BORN])
    assert set(answer_of(outcome).scores[0].behind) == set(spans.values())
    asked = {call.span: call.request for call in outcome.calls}
    request = asked[spans["b", WON]]
    assert isinstance(request, ChoiceRequest)
    assert request.messages[-1].content.endswith(WON)

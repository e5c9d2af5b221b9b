"""DRAD worked through by hand: what is found, searched, kept and rewritten."""

from __future__ import annotations

import pytest

from pipelines.base import Generation
from pipelines.errors import UnreachableError
from pipelines.models.base import GenerationRequest
from pipelines.run.events import Judged, RunFailed, SpanStarted
from tests.scripted.bench import PieceModel, Reply, Shelf, pieces, tokens_of
from tests.scripted.drad import (
    DRAFT,
    NAMES,
    NOTHING,
    QUESTION,
    THOUGHT,
    Failing,
    again,
    by_prefix,
    decisive,
    entities,
    run,
    two_corrections,
    verdict,
)


async def test_nothing_doubtful_leaves_the_draft_and_searches_nothing():
    outcome = await run(by_prefix(DRAFT))
    assert outcome.answer.text == outcome.answer.original == DRAFT
    assert outcome.answer.flags == ()
    assert outcome.queries == []
    assert outcome.steps == ["method", "draft", "detect"]
    assert entities(outcome, 0) == [(n, "confident") for n in ("York", "Florida", "1993")]


async def test_the_first_doubtful_entity_is_rewritten_and_what_follows_is_checked_again():
    model = by_prefix(
        pieces(DRAFT, York=0.3, Florida=0.2),
        # After "in": first where York stood, then where 1999 stood.
        **{"in": [(" Hope", 0.9), (".", 0.9), (" He", 0.9), (" won", 0.9), (" soon", 0.9)]},
    )
    outcome = await run(model, m=3)
    # t_4 is " York" (k = 4, i = 0): three tokens before it, t_5..t_7 after it.
    assert outcome.queries == ["was born in and raised in"]
    assert outcome.drafts == [DRAFT, "Clinton was born in Hope. He won soon"]
    assert outcome.answer.text == "Clinton was born in Hope. He won soon"
    assert outcome.answer.original == DRAFT
    assert entities(outcome, 0) == [
        ("York", "doubtful"),
        ("Florida", "doubtful"),
        ("1993", "confident"),
    ]
    assert entities(outcome, 1) == [("Hope", "confident")]
    assert outcome.steps == ["method", "draft", "detect", "correct", "detect"]

    correction = outcome.calls[-1].request
    assert isinstance(correction, GenerationRequest)
    _, user, prefix = correction.messages
    assert prefix.content == "Clinton was born in"
    assert "[1] A title: He was born in Hope." in user.content
    assert QUESTION in user.content
    assert correction.max_tokens == 128 - 4


@pytest.mark.parametrize(
    "unusable",
    [
        "",
        " ",
        " I'm sorry, but I cannot continue this text.",
        Generation(text=" Hope, in the state of", finish_reason="length"),
        Generation(text=" Hope.", finish_reason="filter"),
        "他出生于霍普。",
    ],
)
async def test_what_is_no_continuation_leaves_the_sentence(unusable: Reply):
    outcome = await run(by_prefix(pieces(DRAFT, York=0.3), **{"in": unusable}))
    assert outcome.drafts == [DRAFT]
    assert outcome.answer.text == DRAFT
    assert outcome.answer.flags == ("continuation_unusable",)
    assert again(outcome).diverges_at is None


@pytest.mark.parametrize("question", ["克林顿出生在哪里？", "Where was 克林顿 born?"])
async def test_a_chinese_question_may_be_answered_on_in_chinese(question: str):
    model = by_prefix(pieces(DRAFT, York=0.3), **{"in": "霍普，他在那里长大。"})
    outcome = await run(model, question=question)
    assert outcome.answer.text == "Clinton was born in霍普，他在那里长大。"


async def test_a_continuation_that_is_cut_in_a_later_sentence_is_taken():
    text = " Hope. He won in"
    cut = Generation(text=text, tokens=tokens_of(pieces(text)), finish_reason="length")
    outcome = await run(by_prefix(pieces(DRAFT, York=0.3), **{"in": cut}))
    assert outcome.answer.text == "Clinton was born in Hope. He won in"
    assert outcome.answer.flags == ("truncated",)


async def test_a_service_that_always_writes_too_much_is_not_asked_for_ever():
    model = PieceModel(lambda _: pieces(f" {DRAFT}" * 8, York=0.1))
    outcome = await run(model)
    assert "truncated" in outcome.answer.flags
    assert len(outcome.calls) < 10


async def test_a_late_failure_keeps_the_draft():
    model = by_prefix(pieces(DRAFT, York=0.3))
    # Asked to go on, it fails.
    outcome = await run(Failing(model, fails_at=2))
    assert outcome.answer.text == outcome.answer.original == DRAFT
    assert outcome.answer.flags == ("broken_off",)
    assert entities(outcome, 0)[0] == ("York", "doubtful")


async def test_an_empty_draft_is_asked_for_once_more():
    replies = iter(["", DRAFT])
    outcome = await run(PieceModel(lambda _: next(replies)))
    assert outcome.answer.text == DRAFT
    assert outcome.drafts == [DRAFT]


async def test_each_sentence_is_revised_once_and_later_ones_in_turn():
    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        if last.role != "assistant":
            return pieces(DRAFT, York=0.3)
        if last.content == "Clinton was born in":
            # Texas is doubtful too, but its sentence has been revised already.
            return pieces(" Hope near Texas. He won in 1999.", **{"Texas": 0.1, "1999": 0.2})
        assert last.content == "Clinton was born in Hope near Texas. He won in"
        return " 1992."

    outcome = await run(PieceModel(answer))
    assert outcome.drafts == [
        DRAFT,
        "Clinton was born in Hope near Texas. He won in 1999.",
        "Clinton was born in Hope near Texas. He won in 1992.",
    ]
    assert entities(outcome, 1) == [
        ("Hope", "confident"),
        ("Texas", "doubtful"),
        ("1999", "doubtful"),
    ]
    assert len(outcome.queries) == 2


async def test_without_evidence_the_text_stays_is_flagged_and_later_sentences_are_tried():
    found = Shelf(lambda query: [] if "born" in query else ["He won in 1992."])
    model = by_prefix(pieces(DRAFT, **{"York": 0.3, "1993": 0.2}), **{"in": " 1992."})
    outcome = await run(model, shelf=found, m=2)
    assert outcome.queries == ["born in and raised", "won in"]
    assert outcome.answer.text == "Clinton was born in York and raised in Florida. He won in 1992."
    assert outcome.answer.flags == ("no_evidence",)
    # The draft was judged once, not once more for the second try.
    assert entities(outcome, 0)[0] == ("York", "doubtful")
    assert len(entities(outcome, 0)) == 3


async def test_a_failed_search_keeps_the_answer_and_says_so():
    broken = Shelf(UnreachableError("The index is gone.", remedy="Build it."))
    outcome = await run(by_prefix(pieces(DRAFT, York=0.3)), shelf=broken)
    assert outcome.answer.text == DRAFT
    assert outcome.answer.flags == ("search_failed",)


async def test_an_entity_at_the_very_start_is_written_anew_from_the_passages():
    def answer(request: GenerationRequest) -> Reply:
        grounded = "passages" in request.messages[0].content
        return "Hope is where." if grounded else pieces("York is where.", York=0.1)

    outcome = await run(PieceModel(answer))
    assert outcome.answer.text == "Hope is where."
    last = outcome.calls[-1].request
    assert isinstance(last, GenerationRequest)
    assert last.messages[-1].role == "user"


async def test_a_text_that_is_only_an_entity_is_searched_for_by_the_question():
    def answer(request: GenerationRequest) -> Reply:
        return "Hope" if "passages" in request.messages[0].content else [("York", 0.1)]

    outcome = await run(PieceModel(answer))
    assert outcome.queries == [QUESTION]
    assert outcome.answer.text == "Hope"


async def test_the_same_entity_twice_is_judged_by_its_own_tokens():
    draft = [("York", 0.9), (" is", 0.9), (" York", 0.1), (".", 0.9)]
    model = by_prefix(draft, **{"is": " Hope."})
    outcome = await run(model)
    assert entities(outcome, 0) == [("York", "confident"), ("York", "doubtful")]
    assert outcome.answer.text == "York is Hope."


async def test_entities_that_repeat_the_question_can_be_left_alone():
    question = "Is York big?"
    draft = pieces("York is in Texas.", York=0.1, Texas=0.2)

    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        if last.role == "assistant":
            return " Hope."
        return "It is." if "passages" in request.messages[0].content else draft

    plain = await run(PieceModel(answer), question=question)
    assert plain.answer.text == "It is."
    spared = await run(PieceModel(answer), question=question, skip_repeats=True)
    assert spared.answer.text == "York is in Hope."


async def test_a_chinese_question_by_hand():
    draft = [("克林顿", 0.9), ("出生", 0.9), ("在", 0.9), ("纽", 0.2), ("约", 0.8), ("。", 0.9)]

    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        if last.role != "assistant":
            assert "一两句" in request.messages[0].content
            return draft
        assert last.content == "克林顿出生在"
        assert "问题：克林顿出生在哪里？" in request.messages[1].content
        return [("霍普", 0.9), ("。", 0.9)]

    outcome = await run(
        PieceModel(answer), question="克林顿出生在哪里？", names=("纽约", "霍普"),
        shelf=Shelf(lambda _: ["他出生在霍普。"]), m=2,
    )  # fmt: skip
    # k = 3, i = 1, m = 2: t_1 t_2 before, t_5 after. P = (0.2 + 0.8) / 2 = 0.5 < 0.6.
    assert outcome.queries == ["出生在。"]
    assert outcome.answer.text == "克林顿出生在霍普。"
    assert (verdict(outcome).verdict, decisive(outcome).value) == ("doubtful", pytest.approx(0.5))


async def test_a_draft_that_stays_empty_is_an_error():
    model = by_prefix([])
    outcome = await run(model)
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert outcome.trace.terminal.error.code == "invalid_reply"
    assert len(model.asked) == 2


async def test_what_an_answer_says_beyond_its_question_is_read_where_it_names_nothing():
    outcome = await run(by_prefix("It was a small harbour town."))
    (said,) = [one for one in outcome.events if isinstance(one, Judged) and one.what == "entity"]
    assert (said.text, said.label) == ("small harbour town", "ANSWER")
    assert verdict(outcome).verdict == "confident"


async def test_an_answer_without_entities_is_not_checked():
    outcome = await run(by_prefix("Nobody knows."), answer_part=False)
    assert (verdict(outcome).verdict, verdict(outcome).scores) == ("unchecked", ())
    assert verdict(outcome).text == "Nobody knows."


async def test_numbers_name_the_spans_that_wrote_and_measured_them():
    outcome = await two_corrections()
    spans = {span.span: span.name for span in outcome.events if isinstance(span, SpanStarted)}
    behind = {
        (event.text, event.draft): [spans[span] for span in event.scores[0].behind]
        for event in outcome.events
        if isinstance(event, Judged) and event.what == "entity"
    }
    assert behind["York", 0] == ["draft", "detect"]
    assert behind["1999", 1] == ["correct", "detect"]
    # Hope was written by the first correction and kept by the second.
    first = next(e for e in outcome.events if isinstance(e, SpanStarted) and e.name == "correct")
    kept = next(
        e for e in outcome.events if isinstance(e, Judged) and (e.text, e.draft) == ("Hope", 2)
    )
    assert kept.scores[0].behind[0] == first.span


# --- What remains doubtful ------------------------------------------------------------------------


async def test_an_entity_that_is_doubtful_after_its_correction_is_flagged():
    model = by_prefix(pieces(DRAFT, York=0.3), **{"in": pieces(" Hope.", Hope=0.2)})
    outcome = await run(model)
    assert outcome.answer.text == "Clinton was born in Hope."
    assert outcome.answer.flags == ("still_doubtful",)
    assert again(outcome, theta_1=0.2).answer.flags == ()  # pyright: ignore[reportOptionalMemberAccess]


async def test_an_entity_is_flagged_that_a_revised_sentence_leaves_uncorrected():
    reply = pieces(" Hope near Texas.", Texas=0.1)
    outcome = await run(by_prefix(pieces(DRAFT, York=0.3), **{"in": reply}))
    assert len(outcome.queries) == 1
    assert outcome.answer.flags == ("still_doubtful",)


async def test_what_could_not_be_corrected_has_a_flag_of_its_own():
    outcome = await run(by_prefix(pieces(DRAFT, York=0.3)), shelf=NOTHING)
    assert outcome.answer.flags == ("no_evidence",)


async def test_a_repetition_that_is_left_alone_is_not_flagged():
    model = by_prefix(
        pieces("Born in York.", York=0.3), **{"in": pieces(" Hope, Clinton.", Clinton=0.1)}
    )
    names = (*NAMES, "Clinton")
    assert (await run(model, names=names)).answer.flags == ("still_doubtful",)
    assert (await run(model, names=names, skip_repeats=True)).answer.flags == ()


# --- Replies as models write them -----------------------------------------------------------------


async def test_inline_thinking_is_neither_shown_nor_judged():
    draft = [*THOUGHT, *pieces(DRAFT, York=0.3)]
    model = by_prefix(draft, **{"in": [*THOUGHT, ("Hope", 0.8), (".", 0.9)]})
    outcome = await run(model)
    assert outcome.drafts == [DRAFT, "Clinton was born in Hope."]
    assert entities(outcome, 0)[0] == ("York", "doubtful")
    assert decisive(outcome).inputs == (pytest.approx(0.3),)
    assert entities(outcome, 1) == [("Hope", "confident")]

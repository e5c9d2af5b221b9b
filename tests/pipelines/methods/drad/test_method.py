"""DRAD worked through by hand: what is found, searched, kept, rewritten and decided again."""

from typing import Any

import pytest

from pipelines.errors import UnreachableError
from pipelines.methods.drad import Drad
from pipelines.methods.drad.path import DradDecision
from pipelines.models.base import Capabilities, GenerationRequest
from pipelines.run.events import RunFailed
from tests.pipelines.methods.bench import (
    FULL,
    FixedRecognizer,
    Outcome,
    PieceModel,
    Reply,
    Shelf,
    pieces,
    run_method,
)

QUESTION = "Where was Bill Clinton born?"
DRAFT = "Clinton was born in York and raised in Florida. He won in 1993."
NAMES = ("York", "Florida", "Hope", "Texas", "1993", "1999", "1992")
EVIDENCE = Shelf(lambda _: ["He was born in Hope.", "He won in 1992."])
NOTHING = Shelf(lambda _: [])


def drad(*names: str) -> Drad:
    return Drad(FixedRecognizer(*(names or NAMES)))  # pyright: ignore[reportArgumentType]


def by_prefix(draft: Reply, **continuations: Reply) -> PieceModel:
    """Writes `draft`, and after a given beginning what is named by the beginning's last word."""

    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        if last.role != "assistant":
            return draft
        return continuations[last.content.split()[-1].strip(".").lower()]

    return PieceModel(answer)


async def decided_again(outcome: Outcome, **settings: Any) -> DradDecision:
    decision = outcome.method.decide(outcome.trace, outcome.method.settings(settings))
    assert isinstance(decision, DradDecision)
    return decision


async def test_nothing_doubtful_leaves_the_draft_and_searches_nothing():
    outcome = await run_method(drad(), QUESTION, by_prefix(DRAFT), shelf=EVIDENCE)
    assert outcome.answer.text == outcome.answer.original == DRAFT
    assert outcome.answer.flags == ()
    assert outcome.queries == []
    assert outcome.steps == ["method", "draft", "detect"]
    assert outcome.judged(0) == [(n, "confident") for n in ("York", "Florida", "1993")]


async def test_the_first_doubtful_entity_is_rewritten_and_what_follows_is_checked_again():
    model = by_prefix(
        pieces(DRAFT, York=0.3, Florida=0.2),
        # After "in": first where York stood, then where 1999 stood.
        **{"in": [(" Hope", 0.9), (".", 0.9), (" He", 0.9), (" won", 0.9), (" soon", 0.9)]},
    )
    outcome = await run_method(drad(), QUESTION, model, shelf=EVIDENCE, m=3)
    # t_4 is " York" (k = 4, i = 0): three tokens before it, t_5..t_7 after it.
    assert outcome.queries == ["was born in and raised in"]
    assert outcome.drafts == [DRAFT, "Clinton was born in Hope. He won soon"]
    assert outcome.answer.text == "Clinton was born in Hope. He won soon"
    assert outcome.answer.original == DRAFT
    assert outcome.judged(0) == [
        ("York", "doubtful"),
        ("Florida", "doubtful"),
        ("1993", "confident"),
    ]
    assert outcome.judged(1) == [("Hope", "confident")]
    assert outcome.steps == ["method", "draft", "detect", "correct", "detect"]

    correction = outcome.calls[-1].request
    assert isinstance(correction, GenerationRequest)
    _, user, prefix = correction.messages
    assert prefix.content == "Clinton was born in"
    assert "[1] A title: He was born in Hope." in user.content
    assert QUESTION in user.content
    assert correction.max_tokens == 128 - 4


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

    outcome = await run_method(drad(), QUESTION, PieceModel(answer), shelf=EVIDENCE)
    assert outcome.drafts == [
        DRAFT,
        "Clinton was born in Hope near Texas. He won in 1999.",
        "Clinton was born in Hope near Texas. He won in 1992.",
    ]
    assert outcome.judged(1) == [
        ("Hope", "confident"),
        ("Texas", "doubtful"),
        ("1999", "doubtful"),
    ]
    assert len(outcome.queries) == 2


@pytest.mark.parametrize(("york", "doubtful"), [(0.60, "confident"), (0.599, "doubtful")])
async def test_a_probability_on_the_threshold_is_no_hallucination(york, doubtful):
    model = by_prefix(pieces(DRAFT, York=york), **{"in": " Hope."})
    outcome = await run_method(drad(), QUESTION, model, shelf=EVIDENCE, theta_2=None)
    assert outcome.judged(0)[0] == ("York", doubtful)


async def test_entropy_alone_can_make_an_entity_doubtful():
    draft = [("Born", 0.9, 0.1), (" in", 0.9, 0.1), (" York", 0.7, 2.1), (".", 0.9, 0.1)]
    model = by_prefix(draft, **{"in": " Hope."})
    kept = await run_method(drad(), QUESTION, model, shelf=EVIDENCE, theta_2=2.1)
    assert kept.answer.text == "Born in York."
    changed = await run_method(drad(), QUESTION, model, shelf=EVIDENCE, theta_2=2.0)
    assert changed.answer.text == "Born in Hope."
    decision = await decided_again(changed, theta_2=2.0)
    assert decision.score is not None
    assert (decision.score.name, decision.score.value) == ("entity_entropy", 2.1)


async def test_without_evidence_the_text_stays_is_flagged_and_later_sentences_are_tried():
    found = Shelf(lambda query: [] if "born" in query else ["He won in 1992."])
    model = by_prefix(pieces(DRAFT, **{"York": 0.3, "1993": 0.2}), **{"in": " 1992."})
    outcome = await run_method(drad(), QUESTION, model, shelf=found, m=2)
    assert outcome.queries == ["born in and raised", "won in"]
    assert outcome.answer.text == "Clinton was born in York and raised in Florida. He won in 1992."
    assert outcome.answer.flags == ("no_evidence",)
    # The draft was judged once, not once more for the second try.
    assert outcome.judged(0)[0] == ("York", "doubtful")
    assert len(outcome.judged(0)) == 3


async def test_a_failed_search_keeps_the_answer_and_says_so():
    broken = Shelf(UnreachableError("The index is gone.", remedy="Build it."))
    outcome = await run_method(drad(), QUESTION, by_prefix(pieces(DRAFT, York=0.3)), shelf=broken)
    assert outcome.answer.text == DRAFT
    assert outcome.answer.flags == ("search_failed",)


async def test_an_entity_at_the_very_start_is_written_anew_from_the_passages():
    def answer(request: GenerationRequest) -> Reply:
        grounded = "passages" in request.messages[0].content
        return "Hope is where." if grounded else pieces("York is where.", York=0.1)

    outcome = await run_method(drad(), QUESTION, PieceModel(answer), shelf=EVIDENCE)
    assert outcome.answer.text == "Hope is where."
    last = outcome.calls[-1].request
    assert isinstance(last, GenerationRequest)
    assert last.messages[-1].role == "user"


async def test_a_text_that_is_only_an_entity_is_searched_for_by_the_question():
    def answer(request: GenerationRequest) -> Reply:
        return "Hope" if "passages" in request.messages[0].content else [("York", 0.1)]

    outcome = await run_method(drad(), QUESTION, PieceModel(answer), shelf=EVIDENCE)
    assert outcome.queries == [QUESTION]
    assert outcome.answer.text == "Hope"


async def test_the_same_entity_twice_is_judged_by_its_own_tokens():
    draft = [("York", 0.9), (" is", 0.9), (" York", 0.1), (".", 0.9)]
    model = by_prefix(draft, **{"is": " Hope."})
    outcome = await run_method(drad(), QUESTION, model, shelf=EVIDENCE)
    assert outcome.judged(0) == [("York", "confident"), ("York", "doubtful")]
    assert outcome.answer.text == "York is Hope."


async def test_entities_that_repeat_the_question_can_be_left_alone():
    question = "Is York big?"
    draft = pieces("York is in Texas.", York=0.1, Texas=0.2)

    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        if last.role == "assistant":
            return " Hope."
        return "It is." if "passages" in request.messages[0].content else draft

    plain = await run_method(drad(), question, PieceModel(answer), shelf=EVIDENCE)
    assert plain.answer.text == "It is."
    spared = await run_method(
        drad(), question, PieceModel(answer), shelf=EVIDENCE, skip_repeats=True
    )
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

    outcome = await run_method(
        drad("纽约", "霍普"), "克林顿出生在哪里？", PieceModel(answer),
        shelf=Shelf(lambda _: ["他出生在霍普。"]), m=2,
    )  # fmt: skip
    # k = 3, i = 1, m = 2: t_1 t_2 before, t_5 after. P = (0.2 + 0.8) / 2 = 0.5 < 0.6.
    assert outcome.queries == ["出生在。"]
    assert outcome.answer.text == "克林顿出生在霍普。"
    decision = await decided_again(outcome, m=2)
    assert decision.score is not None
    assert decision.score.value == pytest.approx(0.5)


async def test_early_stop_ends_the_writing_after_the_lookahead():
    draft = pieces(DRAFT, York=0.3)
    model = by_prefix(draft, **{"in": " Hope."})
    outcome = await run_method(drad(), QUESTION, model, shelf=EVIDENCE, early_stop=True, m=2)
    # k = 4: writing ends once t_6 is there.
    assert outcome.answer.original == "Clinton was born in York and raised"
    assert outcome.queries == ["born in and raised"]
    assert outcome.answer.text == "Clinton was born in Hope."


async def test_early_stop_without_evidence_writes_the_rest():
    draft = pieces(DRAFT, York=0.3)
    model = by_prefix(draft, **{"raised": " in Florida."})
    outcome = await run_method(drad(), QUESTION, model, shelf=NOTHING, early_stop=True, m=2)
    assert outcome.drafts == [
        "Clinton was born in York and raised",
        "Clinton was born in York and raised in Florida.",
    ]
    assert outcome.answer.flags == ("no_evidence",)
    again = await decided_again(outcome, early_stop=True, m=2)
    assert again.answer == outcome.answer


NO_LOGPROBS = Capabilities(languages=frozenset({"en"}), prefill=False)


async def test_samples_stand_in_for_probabilities():
    def answer(request: GenerationRequest) -> Reply:
        return "Hope." if "Beginning" in request.messages[-1].content else "Born in York."

    model = PieceModel(answer, NO_LOGPROBS)
    model.draws = ["Born in Hope.", "In York.", "Texas!", "In Hope"]
    outcome = await run_method(drad(), QUESTION, model, shelf=EVIDENCE, samples=4)
    # York is in one of four samples: 0.25 < 0.60; Hope is in two of four: 0.50 < 0.60, but its
    # sentence has been revised.
    assert outcome.judged(0) == [("York", "doubtful")]
    assert outcome.judged(1) == [("Hope", "doubtful")]
    assert outcome.answer.text == "Born in Hope."
    assert "confidence_samples" in outcome.answer.flags
    draws = [request for request in model.asked if request.n > 1]
    assert [(r.n, r.temperature, r.sample) for r in draws] == [(4, 1.0, 0)] * 2
    decision = await decided_again(outcome, samples=4)
    assert decision.readings[0][0].probabilities == (0.25,)
    assert decision.readings[0][0].entropies == ()


async def test_a_proxy_stands_in_for_probabilities():
    def answer(request: GenerationRequest) -> Reply:
        return "Hope." if "Beginning" in request.messages[-1].content else "Raised in Florida."

    proxy = PieceModel(lambda _: "", FULL)
    outcome = await run_method(
        drad(), QUESTION, PieceModel(answer, NO_LOGPROBS), shelf=EVIDENCE, proxy=proxy
    )
    assert [request.text for request in proxy.scored] == ["Raised in Florida.", "Raised in Hope."]
    # The proxy gives Florida 0.1 and everything else 0.8.
    assert outcome.judged(0) == [("Florida", "doubtful")]
    assert outcome.judged(1) == [("Hope", "confident")]
    assert "confidence_proxy" in outcome.answer.flags


async def test_asking_for_probabilities_a_model_does_not_give_says_what_to_do():
    outcome = await run_method(
        drad(), QUESTION, PieceModel(lambda _: "x", NO_LOGPROBS), shelf=EVIDENCE,
        confidence="logprobs",
    )  # fmt: skip
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert outcome.trace.terminal.error.code == "capability"
    assert "stand-in" in outcome.trace.terminal.error.remedy


async def test_an_empty_draft_is_an_answer_that_says_so():
    outcome = await run_method(drad(), QUESTION, by_prefix([]), shelf=EVIDENCE)
    assert outcome.answer.text == ""
    assert outcome.answer.flags == ("empty",)


async def two_corrections() -> Outcome:
    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        if last.role != "assistant":
            return pieces(DRAFT, York=0.3, Florida=0.7)
        if last.content == "Clinton was born in":
            return pieces(" Hope. He won in 1999.", **{"1999": 0.5})
        return " 1992."

    return await run_method(drad(), QUESTION, PieceModel(answer), shelf=EVIDENCE, theta_2=None)


@pytest.mark.parametrize(
    ("settings", "text", "diverges_at", "path"),
    [
        # The live settings: York 0.3, then 1999 0.5.
        ({}, "Clinton was born in Hope. He won in 1992.", None, (0, 1, 2)),
        # 1999 passes: the first correction is the last one.
        ({"theta_1": 0.5}, "Clinton was born in Hope. He won in 1999.", None, (0, 1)),
        # Nothing is doubtful.
        ({"theta_1": 0.29}, DRAFT, None, (0,)),
        # Florida (0.7) becomes doubtful too, but York still comes first.
        ({"theta_1": 0.8}, "Clinton was born in Hope. He won in 1992.", None, (0, 1, 2)),
        # Then Hope (0.9) as well, though its sentence has been revised.
        ({"theta_1": 0.95}, "Clinton was born in Hope. He won in 1992.", None, (0, 1, 2)),
        # Entropies are 0.5 everywhere: everything is doubtful, the path is the same.
        ({"theta_2": 0.4}, "Clinton was born in Hope. He won in 1992.", None, (0, 1, 2)),
        # Other searches and corrections were not recorded.
        ({"m": 3}, None, 0, (0,)),
        ({"passages": 5}, None, 0, (0,)),
        ({"m": 3, "theta_1": 0.29}, DRAFT, None, (0,)),
        ({"early_stop": True}, None, 0, (0,)),
        ({"max_tokens": 64}, None, 0, (0,)),
    ],
)
async def test_moving_a_threshold_decides_again_from_what_was_recorded(
    settings, text, diverges_at, path
):
    outcome = await two_corrections()
    decision = await decided_again(outcome, **({"theta_2": None} | settings))
    assert (decision.answer and decision.answer.text) == text
    assert decision.diverges_at == diverges_at
    assert decision.path == path


async def test_another_first_entity_needs_a_new_run():
    draft = pieces("York and Texas met. Florida too.", York=0.5, Texas=0.3, Florida=0.9)

    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        return " Hope." if last.role == "assistant" else draft

    outcome = await run_method(
        drad(), QUESTION, PieceModel(answer), shelf=EVIDENCE, theta_1=0.4, theta_2=None
    )
    assert outcome.answer.text == "York and Hope."
    decision = await decided_again(outcome, theta_1=0.6, theta_2=None)
    assert (decision.diverges_at, decision.answer) == (0, None)
    assert [target.text for target in decision.targets] == []


async def test_the_live_decision_is_reproduced_exactly():
    outcome = await two_corrections()
    decision = await decided_again(outcome, theta_2=None)
    assert decision.answer == outcome.answer
    for draft, (readings, verdicts) in enumerate(
        zip(decision.readings, decision.verdicts, strict=True)
    ):
        assert outcome.judged(draft) == [
            (reading.text, "doubtful" if verdict.doubtful else "confident")
            for reading, verdict in zip(readings, verdicts, strict=True)
        ]

"""DRAD worked through by hand: what is found, searched, kept, rewritten and re-evaluated."""

from typing import Any

import pytest

from pipelines.engine.reevaluate import Reevaluation, reevaluate
from pipelines.errors import RefusedRequestError, UnreachableError
from pipelines.methods.drad import Drad, settings
from pipelines.models.base import Capabilities, Delta, GenerationRequest, Watcher
from pipelines.run.events import EntitiesFound, Judged, RunFailed, Score, SpanEnded, SpanStarted
from pipelines.run.findings import DetectorThresholds
from pipelines.text import Entity
from pipelines.types import Generation
from tests.pipelines.methods.bench import (
    FULL,
    FixedRecognizer,
    Outcome,
    PieceModel,
    Reply,
    Shelf,
    pieces,
    run_method,
    tokens_of,
)

QUESTION = "Where was Bill Clinton born?"
DRAFT = "Clinton was born in York and raised in Florida. He won in 1993."
NAMES = ("York", "Florida", "Hope", "Texas", "1993", "1999", "1992")
EVIDENCE = Shelf(lambda _: ["He was born in Hope.", "He won in 1992."])
NOTHING = Shelf(lambda _: [])


async def run(
    model: PieceModel, *, question: str = QUESTION, names: tuple[str, ...] = NAMES, **options: Any
) -> Outcome:
    """DRAD, which finds `names` and nothing else."""
    given: dict[str, Any] = {"shelf": EVIDENCE} | options
    return await run_method(Drad(), question, model, recognizer=FixedRecognizer(*names), **given)


def by_prefix(draft: Reply, **continuations: Reply) -> PieceModel:
    """Writes `draft`, and after a given beginning what is named by the beginning's last word."""

    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        if last.role != "assistant":
            return draft
        return continuations[last.content.split()[-1].strip(".").lower()]

    return PieceModel(answer)


class Failing(PieceModel):
    """Answers as `model` does; the call `fails_at`, counted from 1, and later ones fail."""

    def __init__(self, model: PieceModel, fails_at: int) -> None:
        super().__init__(model._answer)
        self._fails_at = fails_at

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        if len(self.asked) + 1 >= self._fails_at:
            raise RefusedRequestError("The account is empty.", remedy="Pay.")
        return await super().generate(request, watch)


def again(outcome: Outcome, **settings: Any) -> Reevaluation:
    return reevaluate(outcome.trace, outcome.method, outcome.method.settings(settings))


def entities(outcome: Outcome, draft: int) -> list[tuple[str, str]]:
    """The entities of a draft, each with its verdict."""
    return [
        (event.text, event.verdict)
        for event in outcome.events
        if isinstance(event, Judged) and event.what == "entity" and event.draft == draft
    ]


def verdict(outcome: Outcome) -> Judged:
    """The verdict on the original."""
    (judged,) = (e for e in outcome.events if isinstance(e, Judged) and e.what == "answer")
    return judged


def decisive(outcome: Outcome) -> Score:
    return verdict(outcome).scores[0]


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


def measured_by(outcome: Outcome) -> list[str | None]:
    """The stand-in by which each draft was checked, None for log-probabilities."""
    found = (event.detail for event in outcome.events if isinstance(event, SpanStarted))
    return [one.confidence for one in found if isinstance(one, DetectorThresholds)]


async def test_a_service_that_always_writes_too_much_is_not_asked_for_ever():
    model = PieceModel(lambda _: pieces(f" {DRAFT}" * 8, York=0.1))
    outcome = await run(model)
    assert "truncated" in outcome.answer.flags
    assert len(outcome.calls) < 10


async def test_a_draft_that_comes_without_log_probabilities_is_measured_by_samples():
    model = PieceModel(lambda _: Generation(text=DRAFT))
    model.draws = ["Born in York, raised in Florida.", "In York.", "In Florida."]
    outcome = await run(model, samples=3, passages=1)
    assert "confidence_samples" in outcome.answer.flags
    assert [getattr(call.request, "n", 0) for call in outcome.calls][:2] == [1, 3]
    found = [e for e in outcome.events if isinstance(e, Judged) and e.what == "entity"]
    assert [e.scores[0].value for e in found if e.draft == 0] == [2 / 3, 2 / 3, 0.0]
    assert set(measured_by(outcome)) == {"samples"}
    assert again(outcome, samples=3, passages=1).diverges_at is None


async def test_a_draft_that_comes_without_log_probabilities_is_measured_by_a_proxy():
    model = PieceModel(lambda _: Generation(text="Clinton was raised in York."))
    outcome = await run(model, proxy=PieceModel(lambda _: ""), theta_1=0.1)
    assert outcome.answer.flags == ("confidence_proxy",)
    assert entities(outcome, 0) == [("York", "confident")]
    assert measured_by(outcome) == ["proxy"]
    assert again(outcome, theta_1=0.1).diverges_at is None


async def test_log_probabilities_that_stay_away_midway_leave_the_rest_to_samples():
    def answer(request: GenerationRequest) -> Reply:
        goes_on = request.messages[-1].role == "assistant"
        return Generation(text=" Hope.") if goes_on else pieces(DRAFT, York=0.3)

    model = PieceModel(answer)
    model.draws = [" Hope.", " Hope."]
    # A proxy's numbers would stand beside the model's own.
    outcome = await run(model, proxy=PieceModel(lambda _: ""), samples=2)
    assert outcome.answer.text == "Clinton was born in Hope."
    assert outcome.answer.flags == ("confidence_samples",)
    assert entities(outcome, 1) == [("Hope", "confident")]
    assert measured_by(outcome) == [None, "samples"]
    assert again(outcome, samples=2).diverges_at is None


async def test_where_no_stand_in_is_wanted_the_draft_stays_unchecked():
    outcome = await run(PieceModel(lambda _: Generation(text=DRAFT)), confidence="logprobs")
    assert outcome.answer.text == DRAFT
    assert outcome.answer.flags == ("broken_off",)
    assert measured_by(outcome) == []
    ended = [e for e in outcome.events if isinstance(e, SpanEnded) and e.answer is not None]
    assert [e.error and e.error.code for e in ended] == ["capability"]


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


@pytest.mark.parametrize(("york", "doubtful"), [(0.60, "confident"), (0.599, "doubtful")])
async def test_a_probability_on_the_threshold_is_no_hallucination(york, doubtful):
    model = by_prefix(pieces(DRAFT, York=york), **{"in": " Hope."})
    outcome = await run(model, theta_2=None)
    assert entities(outcome, 0)[0] == ("York", doubtful)


async def test_entropy_alone_can_make_an_entity_doubtful():
    draft = [("Born", 0.9, 0.1), (" in", 0.9, 0.1), (" York", 0.7, 2.1), (".", 0.9, 0.1)]
    model = by_prefix(draft, **{"in": " Hope."})
    kept = await run(model, theta_2=2.1)
    assert kept.answer.text == "Born in York."
    changed = await run(model, theta_2=2.0)
    assert changed.answer.text == "Born in Hope."
    assert (decisive(changed).name, decisive(changed).value) == ("entity_entropy", 2.1)
    assert (verdict(kept).verdict, verdict(changed).verdict) == ("confident", "doubtful")


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


async def test_early_stop_ends_the_writing_after_the_lookahead():
    draft = pieces(DRAFT, York=0.3)
    model = by_prefix(draft, **{"in": " Hope."})
    outcome = await run(model, early_stop=True, m=2)
    # k = 4: writing ends once t_6 is there.
    assert outcome.answer.original == "Clinton was born in York and raised"
    assert outcome.queries == ["born in and raised"]
    assert outcome.answer.text == "Clinton was born in Hope."


async def test_early_stop_without_evidence_writes_the_rest():
    draft = pieces(DRAFT, York=0.3)
    model = by_prefix(draft, **{"raised": " in Florida."})
    outcome = await run(model, shelf=NOTHING, early_stop=True, m=2)
    assert outcome.drafts == [
        "Clinton was born in York and raised",
        "Clinton was born in York and raised in Florida.",
    ]
    assert outcome.answer.flags == ("early_stop", "no_evidence")
    assert again(outcome, early_stop=True, m=2).answer == outcome.answer


NO_LOGPROBS = Capabilities(languages=frozenset({"en"}), prefill=False)


async def test_samples_stand_in_for_probabilities():
    def answer(request: GenerationRequest) -> Reply:
        return "Hope." if "Beginning" in request.messages[-1].content else "Born in York."

    model = PieceModel(answer, NO_LOGPROBS)
    model.draws = ["Born in Hope.", "In York.", "Texas!", "In Hope"]
    outcome = await run(model, samples=4)
    # York is in one of four samples: 0.25 < 0.60; Hope is in two of four: 0.50 < 0.60, but its
    # sentence has been revised.
    assert entities(outcome, 0) == [("York", "doubtful")]
    assert entities(outcome, 1) == [("Hope", "doubtful")]
    assert outcome.answer.text == "Born in Hope."
    assert "confidence_samples" in outcome.answer.flags
    draws = [request for request in model.asked if request.n > 1]
    assert [(r.n, r.temperature, r.sample) for r in draws] == [(4, 1.0, 0)] * 2
    assert (decisive(outcome).inputs, len(verdict(outcome).scores)) == ((0.25,), 2)
    assert verdict(outcome).scores[1].value is None


async def test_a_proxy_measures_each_part_under_the_prompt_it_was_written_with():
    def answer(request: GenerationRequest) -> Reply:
        return "Hope." if "Beginning" in request.messages[-1].content else "Raised in Florida."

    proxy = PieceModel(lambda _: "", FULL)
    model = PieceModel(answer, NO_LOGPROBS)
    outcome = await run(model, proxy=proxy)
    assert [request.text for request in proxy.scored] == ["Raised in Florida.", " Hope."]
    assert [r.messages for r in proxy.scored] == [r.messages for r in model.asked]
    assert "[1] A title: He was born in Hope." in proxy.scored[1].messages[-1].content
    # The proxy gives Florida 0.1 and everything else 0.8.
    assert entities(outcome, 0) == [("Florida", "doubtful")]
    assert entities(outcome, 1) == [("Hope", "confident")]
    assert "confidence_proxy" in outcome.answer.flags
    assert outcome.answer.text == "Raised in Hope."


async def test_a_proxy_goes_on_after_the_kept_beginning_where_the_model_did():
    can = NO_LOGPROBS.model_copy(update={"prefill": True})
    reply = by_prefix("Raised in Florida.", **{"in": " Hope."})
    model = PieceModel(lambda request: reply._answer(request), can)
    proxy = PieceModel(lambda _: "", FULL)
    await run(model, proxy=proxy)
    last = proxy.scored[-1]
    assert (last.messages[-1].content, last.text) == ("Raised in", " Hope.")


async def test_asking_for_probabilities_a_model_does_not_give_says_what_to_do():
    outcome = await run(PieceModel(lambda _: "x", NO_LOGPROBS),
        confidence="logprobs",
    )  # fmt: skip
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert outcome.trace.terminal.error.code == "capability"
    assert "stand-in" in outcome.trace.terminal.error.remedy


async def test_a_draft_that_stays_empty_is_an_error():
    model = by_prefix([])
    outcome = await run(model)
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert outcome.trace.terminal.error.code == "invalid_reply"
    assert len(model.asked) == 2


async def two_corrections(**settings: Any) -> Outcome:
    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        if last.role != "assistant":
            return pieces(DRAFT, York=0.3, Florida=0.7)
        if last.content == "Clinton was born in":
            return pieces(" Hope. He won in 1999.", **{"1999": 0.5})
        return " 1992."

    return await run(PieceModel(answer), **settings)


@pytest.mark.parametrize(
    ("settings", "text", "diverges_at", "drafts"),
    [
        # The live settings: York 0.3, then 1999 0.5.
        ({}, "Clinton was born in Hope. He won in 1992.", None, 3),
        # 1999 passes: the first correction is the last one.
        ({"theta_1": 0.5}, "Clinton was born in Hope. He won in 1999.", None, 2),
        # Nothing is doubtful.
        ({"theta_1": 0.29}, DRAFT, None, 1),
        # Florida (0.7) becomes doubtful too, but York still comes first.
        ({"theta_1": 0.8}, "Clinton was born in Hope. He won in 1992.", None, 3),
        # Then Hope (0.9) as well, though its sentence has been revised.
        ({"theta_1": 0.95}, "Clinton was born in Hope. He won in 1992.", None, 3),
        # Entropies are 0.5 everywhere: everything is doubtful, the path is the same.
        ({"theta_2": 0.4}, "Clinton was born in Hope. He won in 1992.", None, 3),
        ({"theta_2": 0.4, "use_entropy": False, "theta_1": 0.29}, DRAFT, None, 1),
        # Other searches and corrections were not recorded.
        ({"m": 3}, None, 1, 1),
        ({"passages": 5}, None, 1, 1),
        ({"m": 3, "theta_1": 0.29}, DRAFT, None, 1),
        # The draft is too short to be stopped before its end, unless m is small.
        ({"early_stop": True}, "Clinton was born in Hope. He won in 1992.", None, 3),
        ({"early_stop": True, "m": 2}, None, 0, 0),
        ({"max_tokens": 64}, None, 0, 0),
    ],
)
async def test_moving_a_threshold_is_re_evaluated_from_what_was_recorded(
    settings: dict[str, Any], text: str | None, diverges_at: int | None, drafts: int
):
    found = again(await two_corrections(), **settings)
    assert (found.answer and found.answer.text) == text
    assert found.diverges_at == diverges_at
    assert len(found.method.drafts) == drafts


async def test_another_first_entity_needs_a_new_run():
    draft = pieces("York and Texas met. Florida too.", York=0.5, Texas=0.3, Florida=0.9)

    def answer(request: GenerationRequest) -> Reply:
        last = request.messages[-1]
        return " Hope." if last.role == "assistant" else draft

    outcome = await run(PieceModel(answer), theta_1=0.4)
    assert outcome.answer.text == "York and Hope."
    found = again(outcome, theta_1=0.6)
    assert (found.diverges_at, found.answer) == (1, None)
    assert [step.name for step in found.method.steps][-1] == "correct"


async def test_an_answer_without_entities_is_not_checked():
    outcome = await run(by_prefix("Nobody knows."))
    assert (verdict(outcome).verdict, verdict(outcome).scores) == ("unchecked", ())
    assert verdict(outcome).text == "Nobody knows."


async def test_the_least_probable_entity_decides_where_none_is_doubtful():
    outcome = await run(by_prefix(pieces(DRAFT, York=0.8, Florida=0.7)))
    assert verdict(outcome).verdict == "confident"
    assert (decisive(outcome).name, decisive(outcome).value) == (
        "entity_probability",
        pytest.approx(0.7),
    )


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


# --- Early stop -----------------------------------------------------------------------------------

CITY = "He was born in New York City and raised in Florida. He won in 1993."
CITY_NAMES = ("New York City", "New York", *NAMES)


class Cities(FixedRecognizer):
    """Finds "New York" while nothing follows it, as a recognizer does that sees no more."""

    def recognize(self, text: str, language: str | None = None) -> list[Entity]:
        found = super().recognize(text, language)
        whole = [e for e in found if e.text == "New York City"]
        inside = [e for e in found if any(w.start <= e.start and e.end <= w.end for w in whole)]
        return [e for e in found if e in whole or e not in inside]


async def test_early_stop_never_judges_part_of_an_entity():
    # P(New York) = (0.3 + 0.3) / 2, but P(New York City) = (0.3 + 0.3 + 1.0 ...) / 3 is enough.
    model = by_prefix(pieces(CITY, New=0.45, York=0.45, City=0.99))
    outcome = await run_method(
        Drad(), QUESTION, model, shelf=EVIDENCE, recognizer=Cities(*CITY_NAMES),
        early_stop=True, m=1,
    )  # fmt: skip
    # (0.45 + 0.45 + 0.99) / 3 = 0.63
    assert outcome.answer.original == CITY
    assert outcome.answer.flags == ()
    assert ("New York", "doubtful") not in entities(outcome, 0)


async def test_an_entity_at_the_end_of_a_text_that_was_cut_is_not_judged():
    text = "Born in York and New York City."
    model = by_prefix(pieces(text, York=0.3, New=0.1), **{"york": " City."})
    outcome = await run_method(
        Drad(), QUESTION, model, shelf=NOTHING, recognizer=Cities(*CITY_NAMES),
        early_stop=True, m=3,
    )  # fmt: skip
    # York and the three tokens after it are there, New York City is not yet.
    assert outcome.drafts == ["Born in York and New York", text]
    assert entities(outcome, 0) == [("York", "doubtful")]
    assert [name for name, _ in entities(outcome, 1)] == ["York", "New York City"]


async def test_an_early_stop_is_told():
    model = by_prefix(pieces(DRAFT, York=0.3), **{"in": " Hope."})
    outcome = await run(model, early_stop=True, m=2)
    assert outcome.answer.flags == ("early_stop",)


class Chunked(PieceModel):
    """Hands its tokens on several at a time, and goes on when it is told to stop."""

    async def generate(
        self, request: GenerationRequest, watch: Watcher | None = None
    ) -> tuple[Generation, ...]:
        (whole,) = await super().generate(request)
        tokens = list(whole.tokens or ())
        for at in range(0, len(tokens), 4):
            part = tokens[at : at + 4]
            if watch:
                text = whole.text[part[0].start : part[-1].end]
                watch(Delta(text=text, tokens=tuple(part)))
        return (whole,)


async def test_where_a_text_stops_does_not_depend_on_how_it_arrives():
    model = by_prefix(pieces(DRAFT, York=0.3), **{"in": " Hope."})
    outcome = await run(Chunked(model._answer), early_stop=True, m=2)
    assert outcome.answer.original == "Clinton was born in York and raised"
    found = again(outcome, early_stop=True, m=2)
    assert (found.diverges_at, found.answer) == (None, outcome.answer)


async def test_what_the_early_stop_looked_at_is_recorded():
    outcome = await run(by_prefix(DRAFT), early_stop=True, m=4)
    texts = [event.text for event in outcome.events if isinstance(event, EntitiesFound)]
    assert texts == [
        "Clinton was born in York",
        "Clinton was born in York and raised in Florida.",
        DRAFT,
    ]


# --- The threshold of entropies -------------------------------------------------------------------

UNSURE = [("Born", 0.9, 0.1), (" in", 0.9, 0.1), (" York", 0.7, 1.6), (".", 0.9, 0.1)]


def thresholds(outcome: Outcome) -> DetectorThresholds:
    details = [e.detail for e in outcome.events if isinstance(e, SpanStarted)]
    return next(one for one in details if isinstance(one, DetectorThresholds))


def named(model: PieceModel, name: str) -> PieceModel:
    model.name = name
    return model


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    """theta_2 = 1.5 for the model "pieces" and entropies over its 5 most probable tokens."""
    entry = {"theta_2": {"value": 1.5}}
    known = {"pieces": {"5": entry}}
    monkeypatch.setattr(settings, "calibration", lambda method: known)


async def test_theta_2_is_the_one_calibrated_for_the_model(table: None):
    model = by_prefix(UNSURE, **{"in": " Hope."})
    outcome = await run(model)
    assert outcome.answer.text == "Born in Hope."
    found = thresholds(outcome)
    assert (found.theta_2, found.theta_2_source) == (1.5, "calibrated")
    assert (found.model, found.entropies) == ("pieces", "5")
    assert again(outcome).answer == outcome.answer


async def test_without_a_calibration_for_the_model_entropy_decides_nothing(table: None):
    outcome = await run(named(by_prefix(UNSURE), "another"))
    assert outcome.answer.text == "Born in York."
    found = thresholds(outcome)
    assert (found.theta_2, found.theta_2_source) == (None, "missing")


async def test_entropies_over_more_tokens_are_another_matter(table: None):
    class Wide(PieceModel):
        async def generate(
            self, request: GenerationRequest, watch: Watcher | None = None
        ) -> tuple[Generation, ...]:
            (reply,) = await super().generate(request, watch)
            tokens = tuple(t.model_copy(update={"top_k": 20}) for t in reply.tokens or ())
            return (reply.model_copy(update={"tokens": tokens}),)

    outcome = await run(Wide(lambda _: UNSURE))
    assert thresholds(outcome).theta_2_source == "missing"
    assert thresholds(outcome).entropies == "20"


async def test_theta_2_can_be_set_and_switched_off(table: None):
    model = by_prefix(UNSURE, **{"in": " Hope."})
    kept = await run(model, theta_2=1.7)
    assert (kept.answer.text, thresholds(kept).theta_2_source) == ("Born in York.", "set")
    off = await run(model, use_entropy=False)
    assert (off.answer.text, thresholds(off).theta_2_source) == ("Born in York.", "off")
    assert again(off, use_entropy=True).diverges_at == 1


# --- Replies as models write them -----------------------------------------------------------------

THOUGHT = [("<think>", 0.9), (" York?", 0.1), ("</think>", 0.9), ("\n\n", 0.9)]


async def test_inline_thinking_is_neither_shown_nor_judged():
    draft = [*THOUGHT, *pieces(DRAFT, York=0.3)]
    model = by_prefix(draft, **{"in": [*THOUGHT, ("Hope", 0.8), (".", 0.9)]})
    outcome = await run(model)
    assert outcome.drafts == [DRAFT, "Clinton was born in Hope."]
    assert entities(outcome, 0)[0] == ("York", "doubtful")
    assert decisive(outcome).inputs == (pytest.approx(0.3),)
    assert entities(outcome, 1) == [("Hope", "confident")]


async def test_early_stop_waits_until_the_thinking_is_over():
    draft = [*THOUGHT, *pieces(DRAFT, York=0.3)]
    outcome = await run(by_prefix(draft, **{"in": " Hope."}), early_stop=True, m=2)
    assert outcome.answer.original == "Clinton was born in York and raised"
    assert again(outcome, early_stop=True, m=2).answer == outcome.answer

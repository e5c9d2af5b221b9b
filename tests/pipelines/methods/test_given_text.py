"""Texts that are there already: methods check them as they are, and write nothing of their own."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.engine.reevaluate import reevaluate
from pipelines.methods.base import Need, Question
from pipelines.methods.baselines.p_yes import PYes
from pipelines.methods.drad import Drad
from pipelines.methods.ever import Ever
from pipelines.methods.haarag import Haarag
from pipelines.methods.registry import METHODS
from pipelines.methods.slm import Slm
from pipelines.models.base import Capabilities, ChoiceRequest, GenerationRequest, ScoreRequest
from pipelines.models.judges.base import ClaimVerdict
from pipelines.run.events import GivenAnswer, Judged, RunFailed
from pipelines.run.findings import ConceptVerified
from tests.scripted.bench import (
    FULL,
    ClaimReader,
    FixedRecognizer,
    Outcome,
    PieceModel,
    Shelf,
    run_method,
)
from tests.scripted.ever import FIRST, SECOND, WHOLE, EverModel, Part
from tests.scripted.haarag import Chunks, TableSimilarity
from tests.scripted.slm import JudgeModel

NO_SCORES = FULL.model_copy(update={"scores": False})
BORN, DIED = "Curie was born in Warsaw.", "She died in Florida."
TEXT = f"{BORN} {DIED}"
STANDS = "What can be said about this?"


def unasked(text: str = TEXT) -> GivenAnswer:
    return GivenAnswer(text=text, asked=False)


def judged(outcome: Outcome, what: str) -> list[Judged]:
    return [e for e in outcome.events if isinstance(e, Judged) and e.what == what]


def silent(request: GenerationRequest) -> str:
    raise AssertionError("Nothing is to be written.")


# --- Questions and needs --------------------------------------------------------------------------


def test_a_text_without_its_question_is_searched_for_itself():
    assert Question(text="Who?", language="en").query == "Who?"
    long = "word " * 400
    assert Question(text=STANDS, language="en", about=long).query == long[:600]


def test_scores_may_come_from_several_roles():
    need = Need(reason="scores", others=("proxy",))
    reads = Capabilities(scores=True)
    assert need.unmet({"main": Capabilities()}, has_evidence=True)
    assert not need.unmet({"main": Capabilities(), "proxy": reads}, has_evidence=True)
    assert not need.unmet({"main": reads}, has_evidence=True)
    # The need of one role is not served by another.
    assert Need(reason="scores").unmet({"main": Capabilities(), "proxy": reads}, has_evidence=True)


def test_a_question_is_needed_where_none_was_asked():
    need = Need(reason="question")
    assert need.unmet({}, has_evidence=True, asked=False)
    assert not need.unmet({}, has_evidence=True)
    assert Need(reason="writes").unmet({}, has_evidence=True)


def test_somebody_has_to_speak_the_language():
    need = Need(reason="speaks", others=("judge_1",), languages=frozenset({"zh"}))
    english, chinese = Capabilities(), Capabilities(languages=frozenset({"zh"}))
    assert need.unmet({"main": english}, has_evidence=True)
    assert not need.unmet({"main": english, "judge_1": chinese}, has_evidence=True)


@pytest.mark.parametrize(
    ("name", "kind"),
    [("direct", ""), ("flare", ""), ("selfcheck", "answer"), ("ever", "text"), ("slm", "text")],
)
def test_every_method_says_what_it_can_check(name: str, kind: str):
    assert METHODS[name].checks == kind


# --- EVER -----------------------------------------------------------------------------------------

EVER_SHELF = Shelf(lambda _: ["Ada Brandt was a botanist. She led the Salt Works in Bergen."])


async def ever(part: Part, given: GivenAnswer, **options: Any) -> Outcome:
    return await run_method(
        Ever(), "Who was Ada Brandt?", EverModel(part), shelf=EVER_SHELF, given=given, **options
    )


async def test_ever_verifies_every_sentence_of_a_text_that_is_right():
    both = {FIRST: ["chemist", "1931"], SECOND: ["Salt Works"]}
    outcome = await ever(Part(concepts=both), GivenAnswer(text=WHOLE))
    assert outcome.answer.text == outcome.answer.original == WHOLE
    assert [(e.text, e.verdict) for e in judged(outcome, "sentence")] == [
        (FIRST, "supported"),
        (SECOND, "supported"),
    ]
    # Nothing was written, and the text never changed.
    assert outcome.drafts == [WHOLE]


async def test_ever_rectifies_a_sentence_in_its_place_and_keeps_the_rest():
    botanist = "Ada Brandt was a botanist born in 1931."
    part = Part(
        concepts={FIRST: ["chemist"], botanist: ["botanist"], SECOND: ["Bergen"]},
        verdicts={"chemist": "False"},
        rectified={FIRST: botanist},
    )
    outcome = await ever(part, GivenAnswer(text=f"{WHOLE}\n"))
    assert outcome.answer.text == f"{botanist} {SECOND}\n"
    assert outcome.drafts == [f"{WHOLE}\n", f"{botanist} {SECOND}\n"]
    (answer,) = judged(outcome, "answer")
    assert answer.verdict == "contradicted"
    second = [e for e in judged(outcome, "sentence") if e.sentence == 1]
    assert [(e.text, e.start) for e in second] == [(SECOND, len(botanist) + 1)]


async def test_ever_takes_no_heed_of_the_length_of_an_answer():
    text = " ".join(f"Ada Brandt wrote book {number}." for number in range(1, 6))
    outcome = await ever(Part(), GivenAnswer(text=text), max_sentences=1, speculative=True)
    assert len(judged(outcome, "sentence")) == 5
    assert outcome.answer.text == text
    assert not {"speculate", "next_sentence"} & set(outcome.steps)


async def test_ever_looks_up_and_judges_a_claim_under_the_name_that_its_pronoun_means():
    judge = ClaimReader(lambda _: ClaimVerdict(0.9, 0.05, 0.05))
    unusable: dict[str, str] = {"Bergen": "Is she?", "1931": "Is she?"}
    weak = EverModel(
        Part(questions=unusable), FULL.model_copy(update={"weak": True, "judges": False})
    )
    told = "Ada Brandt, born in 1931, studied chemistry in Bergen."
    shelf = Shelf(lambda _: [told, "She is an old novel."])
    outcome = await run_method(
        Ever(),
        STANDS,
        weak,
        shelf=shelf,
        given=unasked("Ada Brandt was born in 1931. She studied chemistry in Bergen."),
        recognizer=FixedRecognizer("Bergen", "1931"),
        models={"judge_1": judge},
    )
    (second,) = [e for e in judged(outcome, "concept") if e.sentence == 1]
    assert isinstance(second.detail, ConceptVerified)
    assert second.detail.claim == "Ada Brandt studied chemistry in Bergen."
    # The words that stand for a question are not searched for.
    assert {*outcome.queries} == {"Ada Brandt was born in 1931.", second.detail.claim}
    # The passage with the word "She" is not about her.
    assert judge.seen[-1].evidence == (f"A title: {told}",)
    # A re-evaluation does not take them for a question either: it finds the same searches.
    again = reevaluate(outcome.trace, outcome.method, outcome.method.settings(None))
    assert (again.diverges_at, again.answer) == (None, outcome.answer)


# --- DRAD -----------------------------------------------------------------------------------------


NOWHERE = Shelf(lambda _: [])
FRANCE = Shelf(lambda _: ["Curie died in France in 1934. She lived in Paris."])


async def drad(
    model: PieceModel, given: GivenAnswer, shelf: Shelf = NOWHERE, **options: Any
) -> Outcome:
    return await run_method(
        Drad(),
        STANDS if not given.asked else "Who was Curie?",
        model,
        shelf=shelf,
        recognizer=FixedRecognizer("Warsaw", "Florida", "Poland"),
        given=given,
        **options,
    )


async def test_drad_marks_the_entities_of_a_text_by_the_main_model_that_reads_it():
    model = PieceModel(silent)
    outcome = await drad(model, unasked())
    # 0.8 for every piece, 0.1 for Florida (see the bench); θ₁ = 0.6.
    assert outcome.judged(0)[:2] == [("Warsaw", "confident"), ("Florida", "doubtful")]
    (request,) = model.scored
    assert isinstance(request, ScoreRequest)
    assert request.text == TEXT
    assert outcome.answer.text == outcome.answer.original == TEXT
    # Nothing was found to correct it with, and nothing was searched for what is confident.
    assert outcome.answer.flags == ("tokens_read", "no_evidence")
    assert outcome.queries == ["Curie was born in Warsaw. She died in"]


async def test_drad_has_the_text_read_by_the_proxy_where_there_is_one():
    main, proxy = PieceModel(silent), PieceModel(silent)
    outcome = await drad(main, unasked(), proxy=proxy)
    assert (len(main.scored), len(proxy.scored)) == (0, 1)
    assert outcome.answer.flags[0] == "tokens_proxy"
    outcome = await drad(main, unasked(), proxy=proxy, confidence="logprobs")
    assert (len(main.scored), len(proxy.scored)) == (1, 1)


async def test_without_scores_samples_stand_in_where_the_question_is_known():
    model = PieceModel(silent, NO_SCORES)
    model.draws = ["In Warsaw.", "Curie came from Warsaw."]
    outcome = await drad(model, GivenAnswer(text=TEXT), samples=2)
    assert outcome.judged(0)[:2] == [("Warsaw", "confident"), ("Florida", "doubtful")]
    assert outcome.answer.flags[0] == "confidence_samples"


async def test_drad_says_that_it_needs_scores_where_there_is_no_question():
    outcome = await drad(PieceModel(silent, NO_SCORES), unasked())
    failed = outcome.trace.terminal
    assert isinstance(failed, RunFailed)
    assert "log-probabilities of a given text" in failed.error.message


async def test_drad_rewrites_the_doubtful_sentence_in_its_place_and_keeps_the_rest():
    after = " She was proud of Poland."
    model = PieceModel(lambda _: " France in 1934. Here it goes on.")
    outcome = await drad(model, unasked(f"{TEXT}{after}"), FRANCE)
    corrected = f"{BORN} She died in France in 1934.{after}"
    assert outcome.answer.text == corrected
    assert outcome.drafts == [f"{TEXT}{after}", corrected]
    # It goes on from the text before the entity, with the passage in view.
    (asked,) = model.asked
    assert asked.messages[-1].content == f"{BORN} She died in"
    assert "Curie died in France in 1934." in asked.messages[-2].content
    # The new text is read anew: nothing in it is doubtful any more.
    assert [request.text for request in model.scored] == [f"{TEXT}{after}", corrected]
    assert outcome.judged(1) == [("Warsaw", "confident"), ("Poland", "confident")]
    assert outcome.answer.flags == ("tokens_read",)
    # The verdict on the text is that on the text as it was given.
    (answer,) = judged(outcome, "answer")
    assert (answer.verdict, answer.draft) == ("doubtful", 0)


async def test_a_sentence_is_corrected_once_and_what_is_still_doubtful_is_said():
    model = PieceModel(lambda _: " Florida, as they say.")
    outcome = await drad(model, unasked(), FRANCE)
    assert outcome.answer.text == f"{BORN} She died in Florida, as they say."
    assert outcome.answer.flags == ("tokens_read", "still_doubtful")
    assert len(model.asked) == 1


async def test_every_doubtful_sentence_is_corrected_in_view_of_those_before_it():
    text = "She died in Florida. She lies in Florida."
    told = iter([" France.", " Paris."])
    model = PieceModel(lambda _: next(told))
    outcome = await drad(model, unasked(text), FRANCE)
    assert outcome.answer.text == "She died in France. She lies in Paris."
    assert model.asked[1].messages[-1].content == "She died in France. She lies in"


@pytest.mark.parametrize("reply", ["", "I do not know."])
async def test_what_cannot_continue_the_text_leaves_it_as_it_was(reply: str):
    outcome = await drad(PieceModel(lambda _: reply), unasked(), FRANCE)
    assert outcome.answer.text == TEXT
    assert "continuation_unusable" in outcome.answer.flags


@pytest.mark.parametrize(("supported", "changes"), [(0.9, False), (0.2, True)])
async def test_for_a_weak_model_the_evidence_takes_the_place_of_what_a_judge_finds_unsupported(
    supported: float, changes: bool
):
    judge = ClaimReader(lambda _: ClaimVerdict(supported, 1 - supported, 0.0))
    weak = PieceModel(silent, FULL.model_copy(update={"weak": True}))
    near = TableSimilarity({(DIED, "A title: Curie died in France in 1934."): 0.9})
    models = {"judge_1": judge}
    outcome = await drad(weak, unasked(), FRANCE, models=models, similarity=near)
    quoted = f"{BORN} “Curie died in France in 1934.” (A title)"
    assert (outcome.answer.text, judge.seen != []) == (quoted if changes else TEXT, True)
    # Without a judge nobody could tell.
    outcome = await drad(weak, unasked(), FRANCE)
    assert outcome.answer.text == TEXT
    assert outcome.answer.flags == ("tokens_read", "text_marked_only")


# --- HAARAG ---------------------------------------------------------------------------------------


async def test_haarag_aligns_a_text_sentence_by_sentence_and_writes_nothing():
    chunk, other = "Marie Curie was born in Warsaw.", "Marie Curie died in France."
    shelf = Chunks({BORN: [chunk], DIED: [other]})
    table = TableSimilarity(
        {(TEXT, chunk): 0.8, (TEXT, other): 0.8, (BORN, chunk): 0.9, (DIED, other): 0.3}
    )
    outcome = await run_method(
        Haarag(),
        STANDS,
        PieceModel(silent),
        shelf=shelf,
        similarity=table,
        given=unasked(),
        tau_a=0.5,
        tau_r=0.1,
        rephrase="off",
        entailment="off",
    )
    assert {BORN, DIED, TEXT} <= set(outcome.queries)
    sentences = judged(outcome, "sentence")
    assert [(e.text, e.draft) for e in sentences] == [(BORN, 0), (DIED, 0)]
    # mean(0.9, 0.1) and mean(0.1, 0.3), over sqrt(mean(1, 1, 0.1, 0.1)) = 0.74162.
    assert [e.scores[0].value for e in sentences] == pytest.approx([0.67420, 0.26968], abs=1e-5)
    assert outcome.drafts == [TEXT]
    assert outcome.answer.text == outcome.answer.original == TEXT


async def test_a_given_text_stays_where_nothing_is_found():
    outcome = await run_method(
        Haarag(),
        STANDS,
        PieceModel(silent),
        shelf=Shelf(lambda _: []),
        similarity=TableSimilarity({}),
        given=unasked(),
        rephrase="off",
    )
    assert outcome.answer.text == TEXT
    assert not outcome.answer.abstained
    assert "nothing_found" in outcome.answer.flags


# --- SLM check ------------------------------------------------------------------------------------


async def test_judges_read_about_each_sentence_what_was_found_for_it():
    shelf = Shelf(lambda query: ["On death."] if DIED in query else ["On birth."])
    judge = JudgeModel("one", lambda _: 0.6)
    outcome = await run_method(
        Slm(), STANDS, PieceModel(silent), shelf=shelf, models={"judge_1": judge}, given=unasked()
    )
    # The first sentence stands before the others: "She" alone names nobody.
    assert set(outcome.queries) == {TEXT, BORN, f"{BORN} {DIED}"}
    # A judge reads no question that nobody asked.
    assert {request.claim.question for request in judge.asked if request.claim} == {""}
    by_statement = {_statement(one): _evidence(one) for one in judge.asked}
    assert "On birth." in by_statement[BORN]
    assert "On death." in by_statement[DIED]
    assert outcome.answer.text == TEXT


def _statement(request: ChoiceRequest) -> str:
    return request.claim.statement if request.claim else ""


def _evidence(request: ChoiceRequest) -> str:
    return " ".join(request.claim.evidence) if request.claim else ""


async def test_one_judge_reads_every_sentence_of_a_given_text_too():
    judge = JudgeModel("one", lambda text: {BORN: 0.9, DIED: 0.2}.get(text, 0.4))
    shelf = Shelf(lambda _: ["On birth."])
    outcome = await run_method(
        PYes(),
        STANDS,
        PieceModel(silent),
        shelf=shelf,
        models={"main": judge},
        given=unasked(),
        sentences=True,
    )
    sentences = judged(outcome, "sentence")
    assert [(e.text, e.verdict, e.scores[0].value) for e in sentences] == [
        (BORN, "confident", 0.9),
        (DIED, "doubtful", 0.2),
    ]
    (answer,) = judged(outcome, "answer")
    assert (answer.verdict, answer.scores[0].value) == ("doubtful", 0.4)

"""Rowen worked through by hand: what is compared, what is decided, what is repaired."""

from __future__ import annotations

import pytest

from pipelines.base import Generation
from pipelines.errors import AuthenticationError, UnreachableError
from pipelines.models.base import GenerationRequest
from pipelines.run.events import Retrieved, Revised, RunFailed, SpanEnded, SpanStarted
from pipelines.run.findings import PairCompared, RowenPlan
from tests.scripted.bench import Shelf
from tests.scripted.rowen import (
    CHINESE,
    ENGLISH,
    NOTHING,
    QUESTION,
    Speaker,
    answer_verdict,
    judged_in,
    pairs,
    rowen,
)

ALL = range(6)


def verifier(**options):
    return Speaker(prefix="w", **options)


async def test_full_agreement_keeps_the_answer_and_searches_nothing():
    model = Speaker(cl=ALL, cm=ALL)
    outcome = await rowen(model, verifier=verifier())
    assert outcome.answer.text == outcome.answer.original == outcome.answer.short == "In York."
    assert outcome.answer.flags == ()
    assert outcome.queries == []
    verdict = answer_verdict(outcome)
    assert (verdict.verdict, verdict.text) == ("confident", "In York.")
    # 6/6 + 1.0 * 6/6, and halved.
    assert [(s.name, s.value) for s in verdict.scores] == [
        ("rowen_hybrid", 2.0),
        ("rowen_cl", 1.0),
        ("rowen_cm", 1.0),
        ("rowen_normalised", 1.0),
    ]
    assert (verdict.scores[0].threshold, verdict.scores[0].high) == (0.5, 2.0)


async def test_no_agreement_is_repaired_from_evidence():
    model = Speaker()
    outcome = await rowen(model, verifier=verifier())
    assert answer_verdict(outcome).verdict == "doubtful"
    assert outcome.queries == [QUESTION, *(f"query {n}" for n in ALL)]
    assert outcome.drafts == ["In York.", "In Hope."]
    assert (outcome.answer.text, outcome.answer.original) == ("In Hope.", "In York.")
    assert outcome.answer.short == "In Hope."
    (asked,) = model.asked["repair"]
    words = asked.messages[1].content
    # M(x0, t0, r0, E): each part is there.
    for part in (QUESTION, f"Thinking about {QUESTION}", "In York.", "He was born in Hope."):
        assert part in words
    revised = [event for event in outcome.events if isinstance(event, Revised)][1]
    assert (revised.draft, revised.reason, revised.before) == (1, "repaired", "In York.")


async def test_a_tie_with_the_threshold_is_not_below_it():
    # 1/6 across languages + 2/6 with the verifier = 0.50, not below 0.50.
    outcome = await rowen(Speaker(cl=(0,), cm=(1, 2)), verifier=verifier())
    verdict = answer_verdict(outcome)
    assert (verdict.scores[0].value, verdict.scores[0].flagged) == (0.5, False)
    assert verdict.verdict == "confident"
    assert outcome.answer.text == "In York."


async def test_one_agreement_less_is_below_it():
    outcome = await rowen(Speaker(cl=(0,), cm=(1,)), verifier=verifier())
    # 1/6 + 1/6
    assert answer_verdict(outcome).scores[0].value == pytest.approx(1 / 3)
    assert outcome.answer.text == "In Hope."


async def test_languages_alone_need_no_verifier_and_ask_none():
    other = verifier()
    outcome = await rowen(Speaker(cl=(0, 1, 2, 3)), verifier=other, variant="cl")
    assert other.asked == {}
    assert {side for side, _ in pairs(outcome)} == {"cl"}
    # 4/6 is not below 0.6.
    (score,) = answer_verdict(outcome).scores
    assert (score.name, score.threshold, score.flagged) == ("rowen_cl", 0.6, False)
    assert score.value == pytest.approx(4 / 6)
    assert score.inputs == (1.0, 1.0, 1.0, 1.0, 0.0, 0.0)
    assert outcome.answer.flags == ()


async def test_models_alone_translate_nothing():
    model = Speaker(cm=(0, 1, 2, 3))
    outcome = await rowen(model, verifier=verifier(), variant="cm")
    assert "translate" not in outcome.steps
    assert "translate" not in model.asked
    # 4/6 is below 0.8.
    (score,) = answer_verdict(outcome).scores
    assert (score.name, score.threshold, score.flagged) == ("rowen_cm", 0.8, True)
    assert outcome.answer.text == "In Hope."


async def test_the_verifier_answers_greedily_and_the_stand_in_at_random():
    model, other = Speaker(cl=ALL, cm=ALL), verifier()
    await rowen(model, verifier=other)
    asked = [r for r in other.asked["short"] if isinstance(r, GenerationRequest)]
    assert {(r.temperature, r.sample) for r in asked} == {(0.0, None)}
    assert len(asked) == 6

    model = Speaker(cl=ALL, cm=ALL)
    outcome = await rowen(model)
    drawn = [r for r in model.asked["short"] if isinstance(r, GenerationRequest) and r.temperature]
    assert sorted((r.temperature, r.sample) for r in drawn) == [(1.0, n) for n in ALL]
    assert outcome.answer.flags == ("verifier_stand_in",)
    assert {c.role for c in outcome.calls} == {"main"}


async def test_a_verifier_that_is_the_main_model_is_a_stand_in_too():
    model = Speaker(cl=ALL, cm=ALL)
    outcome = await rowen(model, verifier=model, variant="hybrid")
    assert outcome.answer.flags == ("verifier_same_model",)
    drawn = [r for r in model.asked["reason"] if isinstance(r, GenerationRequest) and r.temperature]
    assert len(drawn) == 6


async def test_a_verifier_without_the_language_is_not_asked():
    other = verifier(capabilities=ENGLISH)
    model = Speaker(cl=ALL, cm=ALL)
    outcome = await rowen(model, question=CHINESE, verifier=other)
    # By default nothing stands in for it: the languages alone are compared.
    assert {side for side, _ in pairs(outcome)} == {"cl"}
    assert outcome.answer.flags == ()
    outcome = await rowen(model, question=CHINESE, verifier=other, variant="hybrid")
    assert other.asked == {}
    assert outcome.answer.flags == ("verifier_language",)


async def test_without_a_verifier_the_languages_alone_are_compared():
    outcome = await rowen(Speaker(cl=ALL, cm=ALL), variant="auto")
    assert {side for side, _ in pairs(outcome)} == {"cl"}
    assert [s.name for s in answer_verdict(outcome).scores] == ["rowen_cl"]


async def test_a_model_without_the_other_language_compares_models_only():
    outcome = await rowen(Speaker(cm=ALL, capabilities=ENGLISH))
    assert [s.name for s in answer_verdict(outcome).scores] == ["rowen_again"]
    assert outcome.answer.flags == ("verifier_stand_in",)


async def test_a_model_that_does_not_speak_the_language_is_given_no_number():
    model = Speaker(capabilities=ENGLISH)
    outcome = await rowen(model, question=CHINESE)
    verdict = answer_verdict(outcome)
    assert (verdict.verdict, verdict.scores) == ("unchecked", ())
    assert outcome.steps == ["method", "reason", "draft", "decide"]
    assert outcome.answer.text == outcome.answer.original
    assert outcome.answer.flags == ("language_unsupported",)


@pytest.mark.parametrize("variant", ["cl", "hybrid"])
async def test_asking_for_languages_the_model_lacks_is_refused(variant):
    outcome = await rowen(Speaker(capabilities=ENGLISH), variant=variant)
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert "speaks English, Chinese" in outcome.trace.terminal.error.message


async def test_a_chinese_question_is_compared_with_english():
    model = Speaker(cl=ALL, cm=(), replies={"translate": lambda _: "What of q0?"})
    outcome = await rowen(model, question=CHINESE, verifier=verifier())
    (check,) = [e for e in outcome.events if isinstance(e, SpanStarted) and e.name == "check"]
    assert isinstance(check.detail, RowenPlan)
    assert (check.detail.source, check.detail.target) == ("zh", "en")
    assert "翻译成英语" in model.asked["translate"][0].messages[0].content
    # The judge is asked in the question's own language.
    assert model.asked["cl"][0].messages[0].content.startswith("下面是一个问题和两个回答")
    assert answer_verdict(outcome).verdict == "confident"


async def test_a_chinese_question_is_repaired_in_chinese():
    model = Speaker(replies={"translate": "What of q0?", "repair": "在霍普。"})
    outcome = await rowen(model, question=CHINESE, verifier=verifier())
    assert outcome.answer.text == "在霍普。"
    assert "请对照资料" in model.asked["repair"][0].messages[0].content
    assert "搜索引擎" in model.asked["query"][0].messages[0].content


async def test_any_other_language_is_asked_for_in_words():
    model = Speaker(cl=ALL, replies={"translate": lambda text: "Was ist " + text[-12:]})
    outcome = await rowen(model, variant="cl", target="de")
    assert "into German" in model.asked["translate"][0].messages[0].content
    systems = [request.messages[0].content for request in model.asked["reason"]]
    assert sum("Write in German only." in one for one in systems) == 6
    assert outcome.answer.text == "In York."


async def test_the_question_s_own_language_as_target_counts_as_automatic():
    outcome = await rowen(Speaker(cl=ALL), variant="cl", target="en")
    (check,) = [e for e in outcome.events if isinstance(e, SpanStarted) and e.name == "check"]
    assert isinstance(check.detail, RowenPlan)
    assert check.detail.target == "zh"


async def test_reasoned_answers_take_two_calls_and_single_ones_one():
    reasoned = Speaker(cl=ALL, cm=ALL)
    await rowen(reasoned)
    # Per paraphrase: source, target, stand-in; and the first answer.
    assert (len(reasoned.asked["reason"]), len(reasoned.asked["short"])) == (19, 19)
    assert "single" not in reasoned.asked

    single = Speaker(cl=ALL, cm=ALL)
    await rowen(single, answers="single")
    assert len(single.asked["single"]) == 18
    assert (len(single.asked["reason"]), len(single.asked["short"])) == (1, 1)


async def test_paraphrases_can_be_searched_as_they_are():
    model = Speaker()
    outcome = await rowen(model, queries="paraphrases", k=3)
    assert outcome.queries == [QUESTION, *(f"Which Clinton town q{n}?" for n in range(3))]
    assert "query" not in model.asked


async def test_the_same_query_is_searched_once_and_none_is_replaced_by_the_paraphrase():
    def query(text: str) -> str:
        return "" if "q1" in text else "Bill Clinton" if "q0" in text else "bill clinton"

    outcome = await rowen(Speaker(replies={"query": query}), k=3)
    assert outcome.queries == [QUESTION, "Bill Clinton", "Which Clinton town q1?"]


async def test_a_query_that_could_not_be_written_is_replaced_by_the_paraphrase():
    gone = AuthenticationError("No.", remedy="Check.")
    outcome = await rowen(Speaker(replies={"query": gone}), k=2)
    assert outcome.queries == [QUESTION, "Which Clinton town q0?", "Which Clinton town q1?"]
    assert outcome.answer.text == "In Hope."


async def test_a_check_that_fails_leaves_the_first_answer_unverified():
    gone = AuthenticationError("No.", remedy="Check.")
    outcome = await rowen(Speaker(replies={"paraphrase": gone}))
    assert outcome.answer.text == outcome.answer.original == "In York."
    assert outcome.answer.flags == ("broken_off",)
    assert judged_in(outcome, "answer") == []
    (ended,) = [e for e in outcome.events if isinstance(e, SpanEnded) and e.answer is not None]
    assert ended.error == gone.info()


async def test_passages_of_all_searches_are_fused_and_cut():
    model = Speaker()
    found = Shelf(lambda query: ["Everywhere.", f"Only {query}."])
    outcome = await rowen(model, shelf=found, k=2, passages=1)
    assert [e.k for e in outcome.events if isinstance(e, Retrieved)] == [1, 1, 1]
    words = model.asked["repair"][0].messages[1].content
    assert "Everywhere." in words
    assert "Only" not in words


async def test_without_evidence_the_answer_stays_and_says_so():
    outcome = await rowen(Speaker(), verifier=verifier(), shelf=NOTHING)
    assert outcome.answer.text == "In York."
    assert outcome.answer.flags == ("no_evidence", "unverified")
    assert answer_verdict(outcome).verdict == "doubtful"


async def test_a_failed_search_keeps_the_answer_and_says_so():
    broken = Shelf(UnreachableError("The index is gone.", remedy="Build it."))
    outcome = await rowen(Speaker(), verifier=verifier(), shelf=broken)
    assert outcome.answer.text == "In York."
    assert outcome.answer.flags == ("search_failed", "unverified")


async def test_a_search_that_failed_beside_others_is_mentioned():
    class Moody(Shelf):
        async def search(self, query, k):
            if query == "query 0":
                raise UnreachableError("Gone.", remedy="Wait.")
            return await super().search(query, k)

    outcome = await rowen(Speaker(), verifier=verifier(), shelf=Moody(lambda _: ["Hope."]))
    assert outcome.answer.text == "In Hope."
    assert outcome.answer.flags == ("search_incomplete",)


@pytest.mark.parametrize(
    "unusable",
    [
        " ",
        "I'm sorry, I cannot help with that.",
        "I don't know.",
        Generation(text="The town in which Bill", finish_reason="length"),
        Generation(text="In Hope.", finish_reason="filter"),
        "这是一段完全无关的文字。",
    ],
)
async def test_a_repair_that_is_none_keeps_the_answer(unusable: str | Generation):
    outcome = await rowen(Speaker(replies={"repair": unusable}), verifier=verifier())
    assert outcome.answer.text == "In York."
    assert outcome.answer.flags == ("repair_unusable",)
    assert outcome.drafts == ["In York."]


async def test_weak_verdicts_are_marked():
    weak = Speaker(cl=ALL).capabilities.model_copy(update={"judges": False})
    outcome = await rowen(Speaker(cl=ALL, capabilities=weak), variant="cl")
    assert outcome.answer.flags == ("weak_judge",)


async def test_a_first_answer_that_thinks_aloud_is_shown_without_it():
    model = Speaker(
        cl=ALL, replies={"reason": "<think>hm</think>So.", "short": "<think>…</think>X"}
    )
    outcome = await rowen(model, variant="cl")
    assert outcome.answer.text == "X"
    assert model.asked["short"][0].messages[2].content == "So."


async def test_without_reasoning_the_answer_is_asked_for_at_once():
    model = Speaker(cl=ALL, replies={"reason": ""})
    outcome = await rowen(model, variant="cl")
    assert len(model.asked["single"]) == 13
    assert outcome.answer.text == "In York."


async def test_a_verifier_of_both_languages_is_asked_in_both_for_a_model_of_one():
    model = Speaker(cl=ALL, cm=ALL, capabilities=ENGLISH)
    other = verifier()
    outcome = await rowen(model, verifier=other)
    (check,) = [e for e in outcome.events if isinstance(e, SpanStarted) and e.name == "check"]
    assert isinstance(check.detail, RowenPlan)
    assert (check.detail.variant, check.detail.speaker) == ("hybrid", "verifier")
    # It translates, and answers each paraphrase and each translation once; both pairs have its
    # answer in English.
    assert (len(other.asked["translate"]), len(other.asked["short"])) == (6, 12)
    assert "translate" not in model.asked
    assert len(model.asked["short"]) == 7
    pairs = [(one.detail, one.text) for one in judged_in(outcome, "pair")]
    texts = {
        (pair.side, text)
        for pair, text in pairs
        if isinstance(pair, PairCompared) and pair.index == 0
    }
    assert texts == {("cl", "w0 | 答0"), ("cm", "a0 | w0")}

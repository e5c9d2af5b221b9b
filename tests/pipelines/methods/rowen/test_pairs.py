"""What becomes of a pair of answers: same, different, undecided, and why."""

from __future__ import annotations

import json

import pytest

from pipelines.errors import AuthenticationError, UnreachableError
from pipelines.methods.base import Question
from pipelines.methods.rowen.reading import (
    asks_yes_or_no,
    declines,
    is_translation,
    paraphrases_in,
    says_yes,
)
from pipelines.run.events import Judged, RunFailed, SpanEnded
from pipelines.text import detect_language
from tests.pipelines.methods.bench import FULL
from tests.pipelines.methods.rowen.bench import Speaker, answer_verdict, decided, pairs, rowen

ALL = range(6)
GONE = UnreachableError("Nobody there.", remedy="Wait.")
REFUSED = AuthenticationError("No.", remedy="Check the key.")


async def test_an_undecided_pair_is_asked_once_more_and_left_out_of_the_mean():
    model = Speaker(cl=(0, 1, 2), undecided=[("cl", 4), ("cl", 5)])
    outcome = await rowen(model, variant="cl")
    assert len(model.asked["reminder"]) == 2
    assert pairs(outcome)["cl", 4] == (None, "model")
    # 3 of the 4 decided ones.
    (score,) = answer_verdict(outcome).scores
    assert (score.value, score.inputs) == (0.75, (1.0, 1.0, 1.0, 0.0))
    decision = decided(outcome, variant="cl")
    assert (decision.agree, decision.decided, decision.undecided) == (
        {"cl": 3},
        {"cl": 4},
        {"cl": 2},
    )
    verdicts = [e.verdict for e in outcome.events if isinstance(e, Judged) and e.what == "pair"]
    assert sorted(verdicts) == ["contradicted", *["supported"] * 3, *["unchecked"] * 2]


@pytest.mark.parametrize(
    ("reply", "hard"),
    [("True", 1.0), ("**False**", 0.0), ("untrue", None), ("It is not true", None), ("", None)],
)
async def test_verdicts_in_words_are_read_whole(reply, hard):
    model = Speaker(chooses=False, replies={"cl": reply, "reminder": reply})
    outcome = await rowen(model, variant="cl", k=1)
    assert pairs(outcome)["cl", 0] == (hard, "model")


async def test_without_any_decided_pair_evidence_is_looked_up_and_the_answer_marked():
    outcome = await rowen(Speaker(undecided=[("cl", n) for n in ALL]), variant="cl")
    verdict = answer_verdict(outcome)
    assert (verdict.verdict, verdict.scores[0].value) == ("unchecked", None)
    assert outcome.answer.text == "In Hope."
    assert outcome.answer.flags == ("not_checked",)
    assert not decided(outcome, variant="cl").flagged


async def test_a_comparison_that_decided_nothing_adds_nothing_to_the_hybrid():
    model = Speaker(cl=(0, 1, 2), undecided=[("cm", n) for n in ALL])
    outcome = await rowen(model, verifier=Speaker(prefix="w"))
    # 3/6 + nothing
    assert answer_verdict(outcome).scores[0].value == 0.5
    assert answer_verdict(outcome).scores[0].inputs == (0.5, 1.0)
    assert answer_verdict(outcome).verdict == "confident"


@pytest.mark.parametrize("refusal", ["I don't know.", "I'm sorry, but I cannot answer that."])
async def test_two_refusals_do_not_agree(refusal):
    model = Speaker(cl=ALL, replies={"short": refusal})
    outcome = await rowen(model, variant="cl")
    assert set(pairs(outcome).values()) == {(0.0, "refusal")}
    assert "cl" not in model.asked
    assert outcome.answer.text == "In Hope."


async def test_a_refusal_does_not_agree_with_an_answer():
    def short(text: str) -> str:
        return "我不知道" if "译文q2" in text else "In Hope."

    outcome = await rowen(Speaker(cl=ALL, replies={"short": short}), variant="cl")
    assert pairs(outcome)["cl", 2] == (0.0, "refusal")
    assert answer_verdict(outcome).scores[0].value == pytest.approx(5 / 6)


async def test_an_empty_answer_leaves_its_pair_undecided():
    def short(text: str) -> str:
        return " " if "q2" in text else "In Hope."

    outcome = await rowen(Speaker(cl=ALL, replies={"short": short}), variant="cl")
    assert pairs(outcome)["cl", 2] == (None, "empty")
    assert answer_verdict(outcome).scores[0].value == 1.0


async def test_what_is_no_translation_is_not_answered():
    model = Speaker(cl=ALL, replies={"translate": lambda text: text.splitlines()[-1]})
    outcome = await rowen(model, variant="cl")
    assert set(pairs(outcome).values()) == {(None, "untranslated")}
    assert outcome.answer.flags == ("not_checked",)


YES_NO = "Was Bill Clinton born in Hope?"


async def test_yes_and_no_are_compared_without_the_model():
    def short(text: str) -> str:
        if "译文q1" in text:
            return "不是。"
        return "是的，他出生在霍普。" if "译" in text else "Yes."

    model = Speaker(replies={"short": short})
    outcome = await rowen(model, question=YES_NO, variant="cl", k=2)
    assert pairs(outcome) == {("cl", 0): (1.0, "yes_no"), ("cl", 1): (0.0, "yes_no")}
    assert "cl" not in model.asked


async def test_where_yes_or_no_is_not_said_the_model_compares():
    def short(text: str) -> str:
        return "他出生在霍普。" if "译" in text else "Yes."

    model = Speaker(cl=(0,), replies={"short": short})
    outcome = await rowen(model, question=YES_NO, variant="cl", k=2)
    assert pairs(outcome) == {("cl", 0): (1.0, "model"), ("cl", 1): (0.0, "model")}


async def test_the_soft_operator_takes_the_probability_of_true():
    soft = {("cl", 0): 0.8, ("cl", 1): 0.5001, ("cm", 0): 0.3, ("cm", 1): 0.0}
    model = Speaker(soft=soft)
    outcome = await rowen(model, verifier=Speaker(prefix="w"), k=2, soft=True)
    scores = {score.name: score for score in answer_verdict(outcome).scores}
    assert scores["rowen_cl"].value == pytest.approx((0.8 + 0.5001) / 2)
    assert scores["rowen_cm"].value == pytest.approx(0.15)
    # 0.65005 + 0.15
    assert scores["rowen_hybrid"].value == pytest.approx(0.80005)
    # The hard operator on the same run: 2/2 + 0/2.
    assert decided(outcome, k=2).z == 1.0
    first = next(e for e in outcome.events if isinstance(e, Judged) and e.what == "pair")
    assert first.scores[0].inputs[0] + first.scores[0].inputs[1] == pytest.approx(1)


async def test_probabilities_are_read_from_first_tokens_where_there_are_any():
    model = Speaker(cl=ALL, capabilities=FULL, chooses=False, replies={"cl": "True"})
    outcome = await rowen(model, variant="cl", k=1)
    assert pairs(outcome)["cl", 0] == (1.0, "model")


async def test_fewer_paraphrases_are_asked_for_once_more():
    def few(text: str) -> str:
        return (
            "1. Which town q1?\n2. Which town q2?"
            if "Do not repeat" in text
            else "1. Which town q0?"
        )

    model = Speaker(cl=ALL, replies={"paraphrase": few})
    outcome = await rowen(model, variant="cl")
    first, second = model.asked["paraphrase"]
    assert "in 6 other ways" in first.messages[0].content
    assert "in 5 other ways" in second.messages[0].content
    assert "- Which town q0?" in second.messages[0].content
    assert [r.temperature for r in (first, second)] == [1.0, 1.0]  # pyright: ignore[reportAttributeAccessIssue]
    assert sorted(pairs(outcome)) == [("cl", 0), ("cl", 1), ("cl", 2)]
    assert outcome.answer.flags == ("fewer_paraphrases",)


async def test_without_a_paraphrase_the_question_itself_is_looked_up():
    outcome = await rowen(Speaker(replies={"paraphrase": "None", "query": "Clinton"}))
    assert pairs(outcome) == {}
    assert outcome.queries == ["Clinton"]
    assert outcome.answer.text == "In Hope."
    assert outcome.answer.flags == ("verifier_stand_in", "no_paraphrases", "not_checked")


async def test_structured_output_is_asked_for_where_the_model_keeps_to_it():
    can = Speaker().capabilities.model_copy(update={"structured_output": True})
    listed = '{"questions": ["Which town q0?", "Which town q1?"]}'
    model = Speaker(cl=ALL, capabilities=can, replies={"paraphrase": listed})
    outcome = await rowen(model, variant="cl", k=2)
    (asked,) = model.asked["paraphrase"]
    assert asked.json_schema["properties"]["questions"]["maxItems"] == 2  # pyright: ignore[reportAttributeAccessIssue, reportOptionalSubscript]
    assert sorted(pairs(outcome)) == [("cl", 0), ("cl", 1)]


async def test_a_verifier_that_fails_leaves_its_pairs_undecided():
    broken = Speaker(prefix="w", replies={"reason": REFUSED})
    outcome = await rowen(Speaker(cl=(0, 1, 2)), verifier=broken)
    assert {pairs(outcome)["cm", n] for n in ALL} == {(None, "failed")}
    assert answer_verdict(outcome).scores[0].value == 0.5
    assert outcome.answer.flags == ("pairs_failed",)


async def test_a_verdict_that_fails_leaves_its_pair_undecided():
    outcome = await rowen(Speaker(chooses=False, replies={"cl": REFUSED}), variant="cl", k=2)
    assert set(pairs(outcome).values()) == {(None, "failed")}
    assert outcome.answer.flags == ("pairs_failed", "not_checked")


async def test_without_a_first_answer_the_method_fails_and_ends_all_spans():
    outcome = await rowen(Speaker(replies={"short": GONE}), k=2)
    assert isinstance(outcome.trace.terminal, RunFailed)
    assert outcome.trace.terminal.error.code == "unreachable"
    started = {e.span for e in outcome.events if e.kind == "span_started"}
    assert started == {e.span for e in outcome.events if isinstance(e, SpanEnded)}


@pytest.mark.parametrize(
    "answer",
    ["I don't know.", "I do not know who did.", "I have no comment.", "I'm not sure.", "不知道。",
     "我不清楚", "对不起，我不知道", "Ich weiß es nicht.", "Je ne sais pas.", "No sé.",
     "わかりません。", "Sorry, I don't know."],
)  # fmt: skip
def test_no_answer_is_recognised(answer):
    assert declines(answer)


@pytest.mark.parametrize(
    "answer",
    ["Nobody knows.", "None", "No", "It is unknown.", "不知火", "是", "Nobel", "I think Hope.",
     "No one won.", "我认为是霍普"],
)  # fmt: skip
def test_an_answer_is_an_answer(answer):
    assert not declines(answer)


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("Is it true?", True),
        ("In 1995, did he win?", True),
        ("Couldn't Aristotle swim?", True),
        ("Where is it?", False),
        ("Who has won?", False),
        ("他出生在霍普吗？", True),
        ("他是不是总统？", True),
        ("鲸鱼会不会飞？", True),
        ("谁出生在霍普？", False),
    ],
)
def test_questions_of_yes_or_no(question, expected):
    asked = Question(text=question, language=detect_language(question))
    assert asks_yes_or_no(asked) is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [("Yes, it is.", True), ("no", False), ("不是。", False), ("是的。", True), ("没有。", False),
     ("Ja, sicher.", True), ("Nein.", False), ("Non.", False), ("Sí.", True), ("はい", True),
     ("No one did.", None), ("Hope", None), ("Yes or no", None)],
)  # fmt: skip
def test_yes_and_no_in_several_languages(answer, expected):
    assert says_yes(answer) is expected


def test_paraphrases_are_cleaned():
    reply = "1. Where was he born?\n2. where was HE born\n\n3) His place of birth?\n4. Where?"
    found = paraphrases_in(reply, "Where?", [], 6)
    assert found == ["Where was he born?", "His place of birth?"]
    more = "1. His place of birth!\n2. In which town?\n3. Hope"
    assert paraphrases_in(more, "Where?", found, 3) == [*found, "In which town?"]
    assert paraphrases_in("1. Is it A?\n2. Is it B?", "Where?", [], 1) == ["Is it A?"]
    assert paraphrases_in("1. 他生于哪里？\n2. 哪里", "他在哪里出生？", [], 6) == ["他生于哪里？"]
    assert paraphrases_in("I'm sorry, I can't help with that.", "Where?", [], 6) == []
    assert paraphrases_in("1. " + "long " * 200, "Where?", [], 6) == []


@pytest.mark.parametrize(
    "noise",
    [
        "2020-06-05T00:00",
        "1999-2019, 1999-2020, 2020-2030",
        "5 June 1995",
        "on the 5th of May 1995",
        "Sept 3, 44 BC or 45 BC",
        "1906年4月19日",
        "3.14 / 2.72 / 1.41",
        "___ 1906 ___",
    ],
)
def test_a_date_is_no_paraphrase(noise):
    reply = json.dumps({"questions": [noise, "In May 1906, who died?"]})
    assert paraphrases_in(reply, "Where?", [], 6) == ["In May 1906, who died?"]


def test_a_number_inside_json_makes_no_question_another_one():
    listed = ["1. Where was he born?", "(2) Where was he born?", "3、他生于哪里？", "4 towns or 5?"]
    found = paraphrases_in(json.dumps({"questions": listed}), "Where was he born?", [], 6)
    assert found == ["他生于哪里？", "4 towns or 5?"]


@pytest.mark.parametrize(
    ("text", "code", "expected"),
    [
        ("他在哪里出生？", "zh", True),
        ("Where was he born", "zh", False),
        ("Wo wurde er geboren?", "de", True),
        ("Where was he born?", "de", False),
        ("他在哪里出生？", "en", False),
        ("", "fr", False),
        ("I'm sorry, I can't translate that.", "fr", False),
    ],
)
def test_translations_are_told_from_none(text, code, expected):
    assert is_translation(text, "Where was he born?", code) is expected

"""What becomes of a pair of answers: same, different, undecided, and why."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.errors import AuthenticationError, UnreachableError
from pipelines.methods.rowen.reading import question_pattern
from pipelines.models.base import GenerationRequest
from pipelines.run.events import Judged, RunFailed, SpanEnded, SpanStarted
from pipelines.run.findings import ParaphraseDiscarded, ParaphraseTaken, RowenVerdict
from tests.scripted.bench import FULL, Outcome
from tests.scripted.rowen import (
    QUESTION,
    Cosines,
    Speaker,
    answer_verdict,
    judged_in,
    numbers,
    pairs,
    reevaluated,
    rowen,
    z_of,
)

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
    assert not verdict.scores[0].flagged


@pytest.mark.parametrize(
    ("cl", "undecided", "name", "z", "threshold", "verdict"),
    [
        # 3/6 across languages is below 0.6; as half of a hybrid it would not have been below 0.5.
        ((0, 1, 2), "cm", "rowen_cl", 0.5, 0.6, "doubtful"),
        ((0, 1, 2, 3), "cm", "rowen_cl", 0.666666667, 0.6, "confident"),
        # With the verifier 0 of 6 agree.
        ((), "cl", "rowen_cm", 0.0, 0.8, "doubtful"),
    ],
)
async def test_a_hybrid_with_one_side_undecided_is_the_variant_that_is_left(
    cl, undecided, name, z, threshold, verdict
):
    model = Speaker(cl=cl, undecided=[(undecided, n) for n in ALL])
    outcome = await rowen(model, verifier=Speaker(prefix="w"))
    assert numbers(outcome)[0] == (name, pytest.approx(z), threshold)
    found = answer_verdict(outcome)
    variant = name.removeprefix("rowen_")
    assert found.verdict == verdict
    assert found.detail == RowenVerdict(variant=variant, retrieve=verdict == "doubtful")
    assert f"rowen_only_{variant}" in outcome.answer.flags


async def test_a_threshold_that_is_set_holds_for_the_variant_that_is_left():
    model = Speaker(cl=(0, 1, 2), undecided=[("cm", n) for n in ALL])
    outcome = await rowen(model, verifier=Speaker(prefix="w"), threshold=0.4)
    assert numbers(outcome)[0] == ("rowen_cl", 0.5, 0.4)


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
    assert z_of(reevaluated(outcome, k=2)) == 1.0
    first = next(e for e in outcome.events if isinstance(e, Judged) and e.what == "pair")
    assert first.scores[0].inputs[0] + first.scores[0].inputs[1] == pytest.approx(1)


async def test_probabilities_are_read_from_first_tokens_where_there_are_any():
    model = Speaker(cl=ALL, capabilities=FULL, chooses=False, replies={"cl": "True"})
    outcome = await rowen(model, variant="cl", k=1)
    assert pairs(outcome)["cl", 0] == (1.0, "model")


async def test_fewer_paraphrases_are_asked_for_once_more():
    def few(text: str) -> str:
        return (
            "1. Which Clinton town q1?\n2. Which Clinton town q2?"
            if "Do not repeat" in text
            else "1. Which Clinton town q0?"
        )

    model = Speaker(cl=ALL, replies={"paraphrase": few})
    outcome = await rowen(model, variant="cl")
    first, second = model.asked["paraphrase"]
    assert "in 6 other ways" in first.messages[0].content
    assert "in 5 other ways" in second.messages[0].content
    assert "- Which Clinton town q0?" in second.messages[0].content
    assert [r.temperature for r in (first, second)] == [1.0, 1.0]  # pyright: ignore[reportAttributeAccessIssue]
    assert sorted(pairs(outcome)) == [("cl", 0), ("cl", 1), ("cl", 2)]
    assert outcome.answer.flags == ("fewer_paraphrases",)


async def test_without_a_paraphrase_the_question_itself_is_looked_up():
    outcome = await rowen(Speaker(replies={"paraphrase": "None", "query": "Clinton"}))
    assert pairs(outcome) == {}
    assert outcome.queries == [QUESTION]
    assert answer_verdict(outcome).scores == ()
    assert outcome.answer.text == "In Hope."
    assert outcome.answer.flags == ("no_paraphrases", "not_checked")


class WordCounts(Cosines):
    """What stands in for an embedder where none reads the language: it compares wordings."""

    name = "words"


@pytest.mark.parametrize("similarity", [None, WordCounts({0: 0.1, 1: 0.1})])
async def test_without_an_embedder_paraphrases_share_a_word_with_the_question(similarity):
    listed = "1. Which Clinton town q0?\n2. Which other town q1?"
    model = Speaker(cl=ALL, replies={"paraphrase": listed})
    outcome = await rowen(model, variant="cl", k=2, similarity=similarity)
    assert sorted(pairs(outcome)) == [("cl", 0)]
    assert similarity is None or similarity.asked == []
    # Asked again, the model wrote both again.
    assert discarded(outcome) == [
        ("Which other town q1?", "meaning", None),
        ("Which Clinton town q0?", "repeated", None),
        ("Which other town q1?", "meaning", None),
    ]


async def test_paraphrases_far_from_the_question_are_discarded():
    cosines = Cosines({0: 0.53, 1: 0.52, 2: 0.92})
    outcome = await rowen(Speaker(cl=ALL), variant="cl", k=3, similarity=cosines)
    # The second time one more is asked for, and it is the first one again.
    assert sorted(pairs(outcome)) == [("cl", 0), ("cl", 1)]
    taken = [
        (event.detail.text, event.detail.similarity)
        for event in outcome.events
        if isinstance(event, SpanStarted) and isinstance(event.detail, ParaphraseTaken)
    ]
    assert taken == [("Which Clinton town q0?", 0.53), ("Which Clinton town q2?", 0.92)]
    assert discarded(outcome) == [
        ("Which Clinton town q1?", "meaning", 0.52),
        ("Which Clinton town q0?", "repeated", None),
    ]
    assert outcome.answer.flags == ("fewer_paraphrases",)
    # A lower minimum takes them all; other paraphrases would have been asked about less.
    again = reevaluated(outcome, variant="cl", k=3, min_similarity=0.3)
    assert (again.answer, again.diverges_at) == (None, 1)


async def test_an_embedder_that_fails_leaves_the_words():
    class Broken(Cosines):
        async def compare(self, left, right, *, asked=0):
            raise GONE

    outcome = await rowen(Speaker(cl=ALL), variant="cl", k=2, similarity=Broken())
    assert sorted(pairs(outcome)) == [("cl", 0), ("cl", 1)]


async def test_without_a_minimum_nothing_is_compared_with_the_question():
    cosines = Cosines()
    listed = "1. Which other town q0?\n2. Which other town q1?"
    model = Speaker(cl=ALL, replies={"paraphrase": listed})
    outcome = await rowen(model, variant="cl", k=2, similarity=cosines, min_similarity=0)
    assert (sorted(pairs(outcome)), cosines.asked) == ([("cl", 0), ("cl", 1)], [])


def discarded(outcome: Outcome) -> list[tuple[str, str, float | None]]:
    return [
        (event.text, event.detail.reason, event.detail.similarity)
        for event in judged_in(outcome, "paraphrase")
        if isinstance(event.detail, ParaphraseDiscarded)
    ]


@pytest.mark.parametrize("weak", [False, True])
async def test_structured_output_is_asked_for_where_the_model_keeps_to_it(weak: bool):
    can = Speaker().capabilities.model_copy(update={"structured_output": True, "weak": weak})
    listed = '{"questions": ["Which Clinton town q0?", "Which Clinton town q1?"]}'
    model = Speaker(cl=ALL, capabilities=can, replies={"paraphrase": listed})
    outcome = await rowen(model, variant="cl", k=2)
    (asked,) = model.asked["paraphrase"]
    assert isinstance(asked, GenerationRequest)
    schema: Any = asked.json_schema
    listed_questions = schema["properties"]["questions"]
    assert listed_questions["maxItems"] == 2
    # Only a weak model is bound to a form.
    form = {"pattern": question_pattern(QUESTION)} if weak else {}
    assert listed_questions["items"] == {"type": "string", **form}
    assert sorted(pairs(outcome)) == [("cl", 0), ("cl", 1)]


async def test_a_verifier_that_fails_leaves_its_pairs_undecided():
    broken = Speaker(prefix="w", replies={"reason": REFUSED})
    outcome = await rowen(Speaker(cl=(0, 1, 2)), verifier=broken)
    assert {pairs(outcome)["cm", n] for n in ALL} == {(None, "failed")}
    # 3/6 across languages alone.
    assert numbers(outcome)[0] == ("rowen_cl", 0.5, 0.6)
    assert outcome.answer.flags == ("pairs_failed", "rowen_only_cl")


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

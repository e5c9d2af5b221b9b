"""Rowen's answers compared by a judge: who is asked, what, and how often the judge is right."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.base import Language
from pipelines.methods.replies.verdicts import claim_of_answers
from pipelines.methods.rowen import Rowen
from pipelines.models.base import Capabilities, Model
from pipelines.models.judges.base import ClaimVerdict
from pipelines.models.judges.trained import TrainedJudge
from pipelines.retrieval.indexes import default_embedder
from pipelines.run.events import SpanStarted
from pipelines.run.findings import RowenPlan
from tests.scripted.bench import ClaimReader, Outcome, run_method
from tests.scripted.rowen import (
    ENGLISH,
    EVIDENCE,
    QUESTION,
    Speaker,
    judged_in,
    pairs,
)

WEAK = ENGLISH.model_copy(update={"judges": False})


def reader(*languages: Language) -> ClaimReader:
    """A judge that finds that all answers agree; reads English unless told otherwise."""
    return ClaimReader(lambda _: ClaimVerdict(0.7, 0.2, 0.1), languages or ("en",))


async def judged(main: Capabilities, judge: Model, **settings: Any) -> Outcome:
    return await run_method(
        Rowen(),
        QUESTION,
        Speaker(capabilities=main),
        shelf=EVIDENCE,
        models={"judge_1": judge},
        k=2,
        **settings,
    )


def plan_of(outcome: Outcome) -> RowenPlan:
    (step,) = [e for e in outcome.events if isinstance(e, SpanStarted) and e.name == "check"]
    assert isinstance(step.detail, RowenPlan)
    return step.detail


async def test_answers_are_compared_by_the_judge_of_a_main_model_that_judges_by_chance():
    judge = reader()
    outcome = await judged(WEAK, judge)
    plan = plan_of(outcome)
    assert (plan.by, plan.judge, plan.weak) == ("judge_1", "reader", False)
    assert set(pairs(outcome).values()) == {(1.0, "judge")}
    assert {event.verdict for event in judged_in(outcome, "pair")} == {"supported"}
    # Each pair in both directions.
    said = sorted((claim.statement, *claim.evidence) for claim in judge.seen)
    assert said == sorted(
        pair for n in range(2) for pair in ((f"a{n}", f"v{n}"), (f"v{n}", f"a{n}"))
    )
    assert {(claim.relation, claim.question[:12]) for claim in judge.seen} == {
        ("same", "Which Clinto")
    }
    assert "weak_judge" not in outcome.answer.flags


async def test_a_judge_of_one_language_does_not_compare_across_two():
    both = Capabilities(languages=frozenset({"en", "zh"}), judges=False)
    outcome = await judged(both, reader(), checked_by="judge")
    assert plan_of(outcome).by == "main"
    assert {"weak_judge", "no_judge"} <= set(outcome.answer.flags)
    across = await judged(both, reader("en", "zh"))
    assert plan_of(across).judge == "reader"


async def test_a_good_main_model_compares_itself():
    outcome = await judged(ENGLISH, reader())
    assert (plan_of(outcome).by, plan_of(outcome).judge) == ("main", "")


def test_two_answers_are_a_claim_that_they_say_the_same():
    claim = claim_of_answers("When did he die?", "2013", "Nelson Mandela died on 5 December 2013.")
    assert (claim.statement, claim.evidence) == (
        "2013",
        ("Nelson Mandela died on 5 December 2013.",),
    )
    assert (claim.question, claim.relation) == ("When did he die?", "same")


ALIKE = [
    ("When did Nelson Mandela die?", "2013", "Nelson Mandela died on 5 December 2013."),
    (
        "Where was Bill Clinton born?",
        "Hope, Arkansas",
        "He was born in Hope, a small town in Arkansas.",
    ),
    (
        "Who wrote Pride and Prejudice?",
        "Jane Austen",
        "It was written by Jane Austen and published in 1813.",
    ),
    (
        "What is the capital of Australia?",
        "Canberra.",
        "The capital of Australia is Canberra, not Sydney.",
    ),
    ("How many moons does Mars have?", "Two", "Mars has two moons, Phobos and Deimos."),
    ("Who painted the Mona Lisa?", "Leonardo da Vinci painted it.", "Leonardo da Vinci"),
    ("What is the chemical symbol of gold?", "Au", "Its symbol is Au, from the Latin aurum."),
    (
        "When did the Berlin Wall fall?",
        "On 9 November 1989.",
        "The Berlin Wall fell in November 1989.",
    ),
    (
        "Which planet is the largest in the Solar System?",
        "Jupiter is the largest planet.",
        "It is Jupiter.",
    ),
    (
        "How did Pierre Curie die?",
        "He was run over by a horse-drawn cart.",
        "He was killed in a street accident in Paris, under the wheels of a horse-drawn cart.",
    ),
]
DIFFERENT = [
    ("When did Nelson Mandela die?", "2013", "Nelson Mandela died on 5 December 2010."),
    ("Where was Bill Clinton born?", "Hope, Arkansas", "He was born in Chicago, Illinois."),
    (
        "Who wrote Pride and Prejudice?",
        "Jane Austen",
        "It was written by Charlotte Brontë in 1847.",
    ),
    ("What is the capital of Australia?", "Sydney", "The capital of Australia is Canberra."),
    ("How many moons does Mars have?", "Two", "Mars has no moons."),
    ("Who painted the Mona Lisa?", "Michelangelo painted it.", "Leonardo da Vinci"),
    ("When did the Berlin Wall fall?", "On 9 November 1989.", "The Berlin Wall fell in 1991."),
    (
        "How did Pierre Curie die?",
        "He died of leukaemia.",
        "He was killed in a street accident in Paris.",
    ),
]


def test_the_trained_judge_as_equivalence_operator(trained_judge: TrainedJudge):
    """9 of 10 pairs that agree pass, and none of 8 that differ."""
    counts = [
        sum(
            reading.supported >= 0.5
            for reading in trained_judge.verdicts([claim_of_answers(*c) for c in cases])
        )
        for cases in (ALIKE, DIFFERENT)
    ]
    assert counts == [9, 0]


NEAR = {
    "Where was Bill Clinton born?": [
        "In which town was Bill Clinton born?",
        "What is Bill Clinton's birthplace?",
        "Where did Bill Clinton come into the world?",
    ],
    "How many moons does Mars have?": [
        "What is the number of moons of Mars?",
        "How many natural satellites orbit the red planet?",
    ],
    "Do bats see in the dark?": ["Can bats see at night?", "Are bats able to see when it is dark?"],
    "Who wrote Pride and Prejudice?": ["Which author wrote Pride and Prejudice?"],
    "What happens if you swallow gum?": ["If a person swallows gum, what occurs?"],
}
FAR = {
    "Where was Bill Clinton born?": "What is the capital of Arkansas?",
    "Who wrote Pride and Prejudice?": "Who painted the Mona Lisa?",
    "How many moons does Mars have?": "Who wrote Pride and Prejudice?",
}


@pytest.mark.parametrize("question", NEAR)
def test_paraphrases_reach_the_minimum_similarity_and_other_questions_do_not(question: str):
    minimum = Rowen().settings().min_similarity
    texts = [question, *NEAR[question], *([FAR[question]] if question in FAR else [])]
    embedder = default_embedder()
    assert embedder is not None
    vectors = embedder.embed(texts)
    near = [float(vectors[0] @ one) >= minimum for one in vectors[1:]]
    assert near == [True] * len(NEAR[question]) + [False] * (question in FAR)

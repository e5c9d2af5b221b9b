"""EVER's support check: the words a verdict is asked for in, and none that is asked for twice."""

from __future__ import annotations

import pytest

from pipelines.base import Language
from pipelines.methods.ever.calls import PROMPTS
from pipelines.methods.replies.verdicts import TRUE_FALSE_NEI
from pipelines.models.base import GenerationRequest, option_of_token, parse_choice
from pipelines.run.events import Judged
from tests.scripted.bench import FULL, Outcome
from tests.scripted.ever import (
    FIRST,
    FOUND,
    Archive,
    Part,
    asked_of,
    detail_of,
    ever_run,
    judged_of,
)

RECTIFIED = "Ada Brandt was a botanist born in 1931."
PART = Part(
    texts={"": FIRST},
    concepts={FIRST: ["chemist", "1931"], RECTIFIED: ["botanist", "1931"]},
    verdicts={"chemist": "False"},
    rectified={FIRST: RECTIFIED},
)
SAID = [f"Ada Brandt was a chemist called {name}." for name in "ABC"]
STUBBORN = Part(
    texts={"": SAID[0]},
    concepts={text: ["chemist"] for text in SAID},
    verdicts={"chemist": "False"},
    rectified={SAID[0]: SAID[1], SAID[1]: SAID[2]},
)


def concept_of(outcome: Outcome, text: str) -> list[Judged]:
    """What was found about a concept, look by look."""
    return [event for event in judged_of(outcome, "concept") if event.text == text]


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("key", ["verify", "recall", "verdict_again"])
def test_the_prompt_names_the_very_words_of_the_schema(language: Language, key: str):
    options = TRUE_FALSE_NEI[language]
    words = [option.spellings[0] for option in options]
    assert words == (["True", "False", "NEI"] if language == "en" else ["正确", "错误", "无法判断"])
    values = {"verify": ("passages", "question"), "recall": ("question",)}.get(key, ())
    prompt = PROMPTS.fill(language, key, **dict.fromkeys(values, ""))
    for option, word in zip(options, words, strict=True):
        assert word in prompt
        assert parse_choice(word, options) == option_of_token(word, options) == option.label
    assert language == "en" or not any(word in prompt for word in ("True", "False", "NEI"))


async def test_chinese_asks_for_chinese_words_and_accepts_only_these():
    chinese = "艾达是化学家。"
    part = Part(
        texts={"": chinese},
        concepts={chinese: ["化学家"]},
        questions={"化学家": "艾达是化学家吗？"},
        verdicts={"化学家": "推理：资料这样说。\n判断：正确"},
    )
    full = FULL.model_copy(update={"structured_output": True})
    outcome = await ever_run(part, question="艾达是谁？", capabilities=full)
    (asked,) = asked_of(outcome, "verify")
    assert isinstance(asked, GenerationRequest)
    assert asked.json_schema is not None
    assert asked.json_schema["properties"]["verdict"]["enum"] == ["正确", "错误", "无法判断"]
    assert "True" not in asked.messages[-1].content
    assert [event.verdict for event in concept_of(outcome, "化学家")] == ["supported"]


@pytest.mark.parametrize(("variant", "kind"), [("nrg_er", "verify"), ("nrg_sq", "recall")])
@pytest.mark.parametrize("samples", [1, 3])
async def test_what_was_answered_is_not_asked_again(variant: str, kind: str, samples: int):
    outcome = await ever_run(PART, variant=variant, samples=samples)
    assert outcome.answer.text == RECTIFIED
    # chemist, 1931 and botanist; 1931 stands in both sentences.
    assert len(asked_of(outcome, kind)) == 3 * samples
    first, again = concept_of(outcome, "1931")
    assert (detail_of(first).reused, detail_of(again).reused) == ("", first.span)
    assert again.verdict == first.verdict == "supported"
    assert detail_of(again).question == detail_of(first).question
    assert detail_of(again).reasoning == detail_of(first).reasoning != ""
    assert detail_of(again).evidence == detail_of(first).evidence
    assert all(score.behind == (first.span,) for score in again.scores)
    assert [s.value for s in again.scores] == [s.value for s in first.scores]
    if variant == "nrg_er":
        assert sorted(set(outcome.queries)) == sorted(outcome.queries)


async def test_of_concepts_that_ask_the_same_at_once_one_is_searched_for():
    # However soon replies come: they may be known already.
    question = "Was Ada Brandt a chemist born in 1931?"
    part = Part(
        texts={"": FIRST},
        concepts={FIRST: ["chemist", "1931"]},
        questions={"chemist": question, "1931": question},
    )
    outcome = await ever_run(part, shelf=FOUND)
    assert len(outcome.queries) == len(asked_of(outcome, "verify")) == 1
    (first,), (again,) = concept_of(outcome, "chemist"), concept_of(outcome, "1931")
    assert (detail_of(first).reused, detail_of(again).reused) == ("", first.span)


async def test_a_reused_contradiction_is_corrected_from_the_same_evidence():
    outcome = await ever_run(STUBBORN, shelf=FOUND, max_rounds=2)
    assert len(asked_of(outcome, "verify")) == len(outcome.queries) == 1
    found = concept_of(outcome, "chemist")
    assert [event.verdict for event in found] == ["contradicted"] * 3
    # However often it is taken over, it is the first verdict.
    assert [detail_of(event).reused for event in found] == ["", found[0].span, found[0].span]
    prompts = [one.messages[-1].content for one in asked_of(outcome, "revise")]
    assert len(prompts) == 2
    assert all("a botanist born in 1931." in prompt for prompt in prompts)
    assert all("About chemist, as told." in prompt for prompt in prompts)


async def test_what_found_no_evidence_is_not_searched_for_again():
    part = Part(texts={"": SAID[0]}, concepts=STUBBORN.concepts, rectified={SAID[0]: SAID[1]})
    outcome = await ever_run(part, shelf=Archive(lambda _: []))
    assert len(outcome.queries) == 1
    reasons = [detail_of(event).reason for event in concept_of(outcome, "chemist")]
    assert reasons == ["no_evidence"] * 2


async def test_what_was_left_unchecked_is_tried_again():
    part = Part(
        texts={"": FIRST},
        concepts=PART.concepts,
        verdicts={"chemist": "False", "1931": ["Hm.", "True"]},
        rectified=PART.rectified,
    )
    # The two requests are alike: without memory of its own, the model is asked twice.
    outcome = await ever_run(part, samples=2)
    first, again = concept_of(outcome, "1931")
    assert (first.verdict, detail_of(again).reused) == ("unchecked", "")

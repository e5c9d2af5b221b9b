"""Pairs of the bilingual adapter are prompts of the app with the reply that is wanted."""

from __future__ import annotations

from random import Random

from pipelines.base import Language, Passage
from pipelines.methods.slm.method import judge_request
from pipelines.prompts import load_prompts
from research.adapter.bilingual import judge_pair, translation_pair
from research.samples.pairs import TrainingPair

TRUE = TrainingPair(
    evidence="The old bridge: It was built in 1432.",
    statement="The bridge dates from 1432.",
    label="supported",
    make="far",
    group="bridge",
)
FALSE = TRUE.model_copy(update={"statement": "It was built in 1532.", "label": "contradicted"})


def test_a_verdict_is_the_first_spelling_of_its_option() -> None:
    replies: dict[Language, tuple[str, str]] = {"en": ("YES", "NO"), "zh": ("是", "否")}
    for language, (yes, no) in replies.items():
        assert judge_pair(TRUE, [TRUE], language, Random(1)).reply == yes
        assert judge_pair(FALSE, [TRUE], language, Random(1)).reply == no


def test_a_verdict_is_asked_for_in_the_prompt_of_the_app() -> None:
    """Without a question, it is the one that a text without one is checked under."""
    prompts = {judge_pair(TRUE, [TRUE], "en", Random(seed)).messages for seed in range(8)}
    passage = Passage(
        id="0", title="The old bridge", text="It was built in 1432.", source="given", rank=1
    )
    question = load_prompts("check").fill("en", "question")
    plain = judge_request(question, [passage], TRUE.statement, "en").messages
    assert plain in prompts
    # Others have a second passage.
    assert len(prompts) > 1


def test_a_translation_is_asked_for_by_the_name_of_its_language() -> None:
    pair = translation_pair("Who built the bridge?", "这座桥是谁建的？", "en")
    assert "Who built the bridge?" in pair.messages[-1].content
    assert "Chinese" in pair.messages[-1].content
    assert pair.reply == "这座桥是谁建的？"

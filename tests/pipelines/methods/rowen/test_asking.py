"""Rowen's prompts: in both languages, with everything in its place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipelines.methods.base import Question
from pipelines.methods.rowen import asking as asking
from pipelines.types import Language, Message, Passage
from tests.pipelines.methods.rowen.bench import CHINESE, QUESTION, kind_of

LANGUAGES: tuple[tuple[Language, str], ...] = (("en", QUESTION), ("zh", CHINESE))
PASSAGES = [Passage(id="1", title="T", text="Costs $question.", source="s", rank=1)]


def said(messages: Sequence[Message]) -> str:
    return "\n".join(message.content for message in messages)


@pytest.mark.parametrize(("language", "text"), LANGUAGES)
def test_every_prompt_holds_what_it_is_about(language: Language, text: str):
    question = Question(text=text, language=language)
    reason = asking.reason_messages(text, language)
    prompts = {
        "reason": (reason, [text]),
        "short": (asking.short_messages(reason, "Because.", language), [text, "Because."]),
        "single": (asking.short_messages(reason, "", language), [text]),
        "paraphrase": (asking.paraphrase_messages(question, 3), [text, "3"]),
        "translate": (asking.translate_messages(text, language, "de"), [text]),
        "cl": (asking.same_messages("cl", language, text, "one", "two"), [text, "one", "two"]),
        "cm": (asking.same_messages("cm", language, text, "one", "two"), [text, "one", "two"]),
        "query": (asking.query_messages(text, language), [text]),
        "repair": (
            asking.repair_messages(question, "Because.", "York", PASSAGES),
            [text, "Because.", "York", "[1] T", "Costs $question."],
        ),
    }
    for kind, (messages, parts) in prompts.items():
        assert kind_of(tuple(messages)) == kind
        assert all(part in said(messages) for part in parts)
        assert said(messages).count("$") == ("$question" in said(parts_of(parts)))
    again = asking.paraphrase_messages(question, 2, ["one?", "two?"])
    assert "- one?\n- two?" in said(again)
    assert asking.PROMPTS.fill(language, "reminder")


def parts_of(parts: Sequence[str]) -> list[Message]:
    return [Message(role="user", content=part) for part in parts]


def test_both_languages_have_the_same_prompts():
    assert asking.PROMPTS.keys("en") == asking.PROMPTS.keys("zh")


@pytest.mark.parametrize(
    ("code", "name"), [("de", "German"), ("fr", "French"), ("es", "Spanish"), ("ja", "Japanese")]
)
def test_answers_in_other_languages_are_asked_for_in_english(code, name):
    system, user = asking.reason_messages("Wo?", code)
    assert system.content.endswith(f"Write in {name} only.")
    assert user.content == "Wo?"
    assert name in said(asking.translate_messages(QUESTION, "en", code))


def test_a_question_in_one_of_the_prompts_languages_is_answered_in_it():
    assert "only." not in said(asking.reason_messages(QUESTION, "en")).splitlines()[-1]
    assert "书写" not in said(asking.reason_messages(CHINESE, "zh"))


def test_the_schema_wants_exactly_so_many():
    schema = asking.paraphrase_schema(4)
    listed = schema["properties"]["questions"]
    assert (listed["minItems"], listed["maxItems"]) == (4, 4)

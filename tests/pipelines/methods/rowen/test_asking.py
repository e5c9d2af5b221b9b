"""Rowen's prompts: in both languages, with everything in its place."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from pipelines.base import Language, Message, Passage
from pipelines.methods.rowen.reading import PROMPTS, question_messages, short_messages
from tests.scripted.rowen import CHINESE, QUESTION, kind_of

LANGUAGES: tuple[tuple[Language, str], ...] = (("en", QUESTION), ("zh", CHINESE))
PASSAGES = [Passage(id="1", title="T", text="Costs $question.", source="s", rank=1)]


def said(messages: Sequence[Message]) -> str:
    return "\n".join(message.content for message in messages)


@pytest.mark.parametrize(("language", "text"), LANGUAGES)
def test_every_prompt_holds_what_it_is_about(language: Language, text: str):
    values = {
        "question": text,
        "count": "3",
        "had": "- one?",
        "name": "German",
        "first": "one",
        "second": "two",
        "reasoning": "Because.",
        "answer": "York",
        "passages": PROMPTS.listed(language, PASSAGES),
    }

    def turns(*keys: str) -> tuple[Message, ...]:
        return PROMPTS.turns(language, *keys, **values)

    reason = question_messages("reason", text, language)
    prompts = [
        ("reason", reason, [text]),
        ("short", short_messages(reason, "Because.", language), [text, "Because."]),
        ("single", short_messages(reason, "", language), [text]),
        ("paraphrase", turns("paraphrase"), [text, "3"]),
        ("paraphrase", turns("paraphrase_more"), [text, "3", "- one?"]),
        ("translate", turns("translate"), [text, "German"]),
        ("cl", turns("same_cl"), [text, "one", "two"]),
        ("cm", turns("same_cm"), [text, "one", "two"]),
        ("query", turns("query"), [text]),
        (
            "repair",
            turns("repair", "repair_question"),
            [text, "Because.", "York", "[1] T", "Costs $question."],
        ),
    ]
    for kind, messages, parts in prompts:
        assert kind_of(tuple(messages)) == kind
        assert all(part in said(messages) for part in parts)
        assert said(messages).count("$") == ("Costs $question." in parts)
    assert PROMPTS.fill(language, "reminder")


@pytest.mark.parametrize(
    ("code", "name"), [("de", "German"), ("fr", "French"), ("es", "Spanish"), ("ja", "Japanese")]
)
def test_answers_in_other_languages_are_asked_for_in_english(code, name):
    system, user = question_messages("reason", "Wo?", code)
    assert system.content.endswith(f"Write in {name} only.")
    assert user.content == "Wo?"
    assert PROMPTS.fill("en", f"language_{code}") == name


def test_a_question_in_one_of_the_prompts_languages_is_answered_in_it():
    assert "only." not in said(question_messages("reason", QUESTION, "en")).splitlines()[-1]
    assert "书写" not in said(question_messages("reason", CHINESE, "zh"))

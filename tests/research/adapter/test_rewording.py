"""Questions in other words."""

from __future__ import annotations

import pytest

from research.adapter.rewording import rewordings


@pytest.mark.parametrize(
    ("question", "among"),
    [
        (
            "When was the Brandt tunnel opened?",
            {
                "In which year was the Brandt tunnel opened?",
                "What was the year in which the Brandt tunnel was opened?",
                "When was it that the Brandt tunnel was opened?",
            },
        ),
        (
            "In what century did Ada Brandt leave Arlen?",
            {
                "When did Ada Brandt leave Arlen?",
                "What was the century in which Ada Brandt left Arlen?",
            },
        ),
        (
            "Where did Ada Brandt die?",
            {"In which place did Ada Brandt die?", "Where was it that Ada Brandt died?"},
        ),
        (
            "Who wrote the Carr atlas?",
            {
                "Which person wrote the Carr atlas?",
                "What is the name of the person who wrote the Carr atlas?",
            },
        ),
        ("Who painted Arlen?", {"By whom was Arlen painted?"}),
        (
            "Who was the founder of Arlen?",
            {
                "What was the name of the founder of Arlen?",
                "Which person was the founder of Arlen?",
            },
        ),
        (
            "How many bridges were built in Arlen?",
            {
                "What number of bridges were built in Arlen?",
                "What is the number of bridges that were built in Arlen?",
            },
        ),
        ("Which river runs through Arlen?", set()),
        (
            "Which prize was awarded to Ada Brandt?",
            {"What is the prize that was awarded to Ada Brandt?"},
        ),
        (
            "What is the name of the bridge of Arlen?",
            {"What is the bridge of Arlen called?", "By what name is the bridge of Arlen known?"},
        ),
        ("Was Ada Brandt born in Arlen?", {"Is it true that Ada Brandt was born in Arlen?"}),
        (
            "Did Ada Brandt write the Carr atlas?",
            {"Is it correct that Ada Brandt wrote the Carr atlas?"},
        ),
    ],
)
def test_a_question_is_asked_in_other_words(question: str, among: set[str]) -> None:
    found = rewordings(question)
    assert among <= set(found)
    assert question not in found
    assert len(found) == len(set(found))
    assert all(text.endswith("?") and "  " not in text for text in found)


@pytest.mark.parametrize(
    "question",
    [
        "Why is the sky blue?",
        "Tell me about Arlen.",
        "Are Ada and Emil Carr both painters?",
        # An unknown verb cannot be put into the past.
        "Did Ada Brandt frobnicate Arlen?",
        "Who wrote " + "a very long title " * 8 + "?",
    ],
)
def test_a_question_of_another_shape_is_left_alone(question: str) -> None:
    assert rewordings(question) == []

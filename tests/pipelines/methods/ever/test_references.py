"""Whom a pronoun means: the name that the nearest sentence before it begins with."""

from __future__ import annotations

import pytest

from pipelines.methods.ever.questions import Checked, validation_for
from pipelines.methods.ever.references import named
from pipelines.text import Span

CURIE = "Marie Curie was born in Warsaw in 1867."


@pytest.mark.parametrize(
    ("claim", "context", "said"),
    [
        ("She studied physics.", CURIE, "Marie Curie studied physics."),
        ("In 1903 she won a prize.", CURIE, "In 1903 Marie Curie won a prize."),
        ("Her husband was Pierre.", CURIE, "Marie Curie's husband was Pierre."),
        ("It is closed.", "The Harbour Museum opens at ten.", "The Harbour Museum is closed."),
        # The nearest one that begins with a name, not one that begins with a pronoun or a date.
        ("She died.", f"{CURIE} She moved. In 1903 she won.", "Marie Curie died."),
        ("He died.", f"{CURIE} Pierre taught there.", "Pierre died."),
    ],
)
def test_a_name_takes_the_place_of_the_pronoun(claim: str, context: str, said: str):
    assert named(claim, context) == said


@pytest.mark.parametrize(
    ("claim", "context"),
    [
        ("She studied physics.", ""),
        ("She studied physics.", "In 1903 a prize was given."),
        ("It is said that she died.", CURIE),
        ("Pierre met her.", CURIE),
        ("Pierre gave his work up.", CURIE),
        ("The prize was for physics.", CURIE),
        # Whose husband that was says not who he was.
        ("He died in 1906.", "Marie Curie's husband was Pierre."),
    ],
)
def test_what_names_nobody_or_somebody_else_stays(claim: str, context: str):
    assert named(claim, context) == claim


def test_a_claim_of_a_given_text_is_whole_and_names_whom_it_is_about():
    sentence = "Its Nepali name is Sagarmatha."
    concept = Span.of(sentence, 4, 10)
    other = Span.of(sentence, sentence.index("Sagarmatha"), len(sentence) - 1)
    context = "Mount Everest stands in the Himalayas."
    about = Checked(
        question="", sentence=sentence, concept=concept, others=(other,), context=context
    )
    validation = validation_for("", about, "en")
    assert validation.claim == validation.query == "Mount Everest's Nepali name is Sagarmatha."


def test_the_first_sentence_of_an_answer_names_what_its_question_is_about():
    assert named("It was opened in 1889.", "", "Eiffel Tower") == "Eiffel Tower was opened in 1889."
    assert named("他生于701年。", "", "李白") == "李白生于701年。"
    assert named("他生于701年。", "李白是唐代诗人。他好酒。") == "李白生于701年。"
    assert named("It was opened in 1889.", "", "speed of light") == "It was opened in 1889."

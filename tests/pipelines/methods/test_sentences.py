"""How near a sentence is to a text, by meaning and by words."""

from __future__ import annotations

import pytest

from pipelines.base import Passage
from pipelines.methods.replies.lists import words_shared
from pipelines.methods.sentences import NearSentence, sentences_of
from pipelines.text import Span

LAMP = Passage(
    id="p1", title="Lamps", text="Carr kept bees. The lamp burned oil.", source="library", rank=1
)


def near(cosine: float, words: float) -> NearSentence:
    (_, span) = sentences_of([LAMP])[1]
    return NearSentence(LAMP, span, cosine, words)


def test_nearness_is_the_mean_of_meaning_and_words():
    assert near(0.5, 1.0).nearness == 0.75
    # As many digits as cosines are recorded with.
    assert near(0.1, 1 / 3).nearness == 0.216667
    assert near(-0.2, 0.0).nearness == -0.1


def test_a_sentence_alone_keeps_its_passage():
    alone = near(0.5, 1.0).alone
    assert (alone.id, alone.title, alone.text) == ("p1", "Lamps", "The lamp burned oil.")


def test_sentences_stand_at_their_places():
    found = [span for _, span in sentences_of([LAMP])]
    assert found == [
        Span(text="Carr kept bees.", start=0, end=15),
        Span(text="The lamp burned oil.", start=16, end=36),
    ]


@pytest.mark.parametrize(
    ("text", "question", "share"),
    [
        ("The lamp was invented in 1904.", "When was the Carr lamp invented?", 2 / 3),
        # Forms of one word count as the same.
        ("He died at home.", "Where did he die?", 1.0),
        ("He paints lamps.", "Who painted the lamp?", 1.0),
        ("She discovered it.", "Who discovers lamps?", 1 / 2),
        # These are other words.
        ("The warm house", "Was there a war?", 0.0),
        ("Baghdad is the capital of Iraq.", "What is the capital of Iran?", 1 / 2),
        ("He studies law.", "What did he study?", 1.0),
        ("It happened in 1904.", "What happened in 1905?", 1 / 2),
        # What is asked for need not be said.
        ("It opened in 1904.", "In which year did it open?", 1.0),
        ("The lamp", "What was the name of the lamp?", 1.0),
        ("A lamp", "What is it?", 1.0),
        ("鲁迅生于绍兴。", "鲁迅生于哪里？", 1.0),
        ("李白生于碎叶。", "鲁迅生于哪里？", 1 / 2),
    ],
)
def test_the_share_of_words(text: str, question: str, share: float):
    assert words_shared(text, question) == pytest.approx(share)

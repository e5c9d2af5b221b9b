"""The stand-ins for models without token probabilities, and going on from a beginning."""

import pytest

from pipelines.methods.drad.confidence import agreement
from pipelines.methods.writing import joined_to
from pipelines.types import Generation, Token


@pytest.mark.parametrize(
    ("entity", "texts", "share"),
    [
        ("Hope", ["Born in Hope.", "hope, Arkansas", "Hopeful people", "Little Rock"], 0.5),
        ("New  York", ["new york", "New York City", "York"], 2 / 3),
        ("1946", ["in 1946", "in 19461", "in 1946."], 2 / 3),
        ("霍普", ["他出生在霍普。", "出生在纽约"], 0.5),
        ("\uff11\uff19\uff14\uff16", ["in 1946"], 1.0),  # full-width digits
        ("a.b", ["a.b", "axb"], 0.5),
    ],
)
def test_agreement_is_the_share_of_samples_with_the_whole_entity(entity, texts, share):
    assert agreement(entity, texts) == pytest.approx(share)


@pytest.mark.parametrize(
    ("prefix", "written", "joined"),
    [
        ("Born in", "Hope.", " Hope."),
        ("Born in", " Hope.", " Hope."),
        ("Born in", "Born in Hope.", " Hope."),
        ("Born in", ", they say", ", they say"),
        ("出生在", "霍普。", "霍普。"),
        ("Born in", "", ""),
    ],
)
def test_a_continuation_neither_repeats_the_beginning_nor_glues_words(prefix, written, joined):
    assert joined_to(prefix, Generation(text=written)).text == joined


def test_tokens_move_with_the_text_they_belong_to():
    tokens = tuple(
        Token(text=text, start=start, end=start + len(text))
        for text, start in (("Born", 0), (" in", 4), (" Hope", 7), (".", 12))
    )
    result = joined_to("Born in", Generation(text="Born in Hope.", tokens=tokens))
    assert result.tokens is not None
    assert [(t.text, t.start, t.end) for t in result.tokens] == [(" Hope", 0, 5), (".", 5, 6)]

    bare = tuple(Token(text=text, start=start, end=start + 4) for text, start in (("Hope", 0),))
    result = joined_to("Born in", Generation(text="Hope", tokens=bare))
    assert result.tokens is not None
    assert result.text[result.tokens[0].start : result.tokens[0].end] == "Hope"

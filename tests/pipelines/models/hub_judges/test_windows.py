"""Evidence in windows: whole sentences, nothing lost, nothing longer than there is room for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from transformers import PreTrainedTokenizerFast

from pipelines.models.base import Claim
from pipelines.models.judges.hub_reader import (
    last_tokens,
    offsets_of,
    texts_of,
    windows_of,
    without_marks,
)
from tests.pipelines.models.hub_judges.made import encoder_tokenizer, t5_tokenizer

TOKENIZERS = {"bytes": encoder_tokenizer("roberta"), "spaces": t5_tokenizer()}


class Words:
    """A tokenizer whose tokens are the words between spaces, so that they can be counted by eye."""

    def __call__(self, text: str, **_options: object) -> dict[str, list[tuple[int, int]]]:
        offsets, at = [], 0
        for word in text.split(" "):
            if word.strip():
                offsets.append((at, at + len(word)))
            at += len(word) + 1
        return {"offset_mapping": offsets}


def cut(document: str, room: int) -> list[str]:
    return windows_of(Words(), document, room)  # pyright: ignore[reportArgumentType]


THREE = "One two three. Four five. Six seven eight nine."


@pytest.mark.parametrize(
    ("room", "windows"),
    [
        # All nine words fit.
        (9, [THREE]),
        # Three and two words fit into six, four more do not.
        (6, ["One two three. Four five.", "Six seven eight nine."]),
        # Two and four fit as well, but windows are filled from the beginning.
        (5, ["One two three. Four five.", "Six seven eight nine."]),
        (4, ["One two three.", "Four five.", "Six seven eight nine."]),
        # The last sentence has four words, which is more than fit.
        (3, ["One two three.", "Four five.", "Six seven eight", "nine."]),
        (1, ["One", "two", "three.", "Four", "five.", "Six", "seven", "eight", "nine."]),
    ],
)
def test_windows_hold_as_many_whole_sentences_as_fit(room: int, windows: list[str]):
    assert cut(THREE, room) == windows


def test_without_a_text_there_is_no_window():
    assert cut("", 5) == []
    assert cut("   ", 5) == []


@settings(max_examples=60)
@given(
    st.lists(
        st.sampled_from(
            ["One two three.", "Hope!", "Is it far away?", "月球绕地球运行。", "x" * 40]
        ),
        min_size=1,
        max_size=12,
    ),
    st.integers(6, 40),
    st.sampled_from(sorted(TOKENIZERS)),
)
def test_windows_hold_all_of_a_document_and_no_more_than_fits(
    sentences: list[str], room: int, which: str
):
    tokenizer: PreTrainedTokenizerFast = TOKENIZERS[which]
    document = " ".join(sentences)
    windows = windows_of(tokenizer, document, room)
    assert "".join("".join(windows).split()) == "".join(document.split())
    # By itself a window may begin with one piece more, which marks the beginning of a word.
    assert all(len(offsets_of(tokenizer, one)) <= room + 2 for one in windows)


def test_all_evidence_is_one_document_and_special_tokens_are_no_text():
    claim = Claim(statement=" It </s> rains. ", evidence=("A <s>b", " ", "c"), question="What</s>?")
    texts = texts_of(claim, ("</s>", "<s>"))
    assert texts == ("A    b\nc", "It      rains.", "What    ?", 2)
    numbered = texts_of(claim, ("</s>", "<s>"), numbered=True)
    assert numbered.document == "passage 1: A    b\npassage 2: c"
    assert texts.asked == "What    ? It      rains."
    assert without_marks("a[SEP]b", ("[SEP]",)) == "a     b"


def test_two_answers_are_compared_behind_their_question():
    claim = Claim(statement="Hope", evidence=("Paris",), question="Where?", relation="same")
    assert texts_of(claim) == ("Where? Paris", "Hope", "Where?", 1)


def test_of_a_long_text_the_end_is_kept():
    assert last_tokens(Words(), "one two three", 2) == "two three"  # pyright: ignore[reportArgumentType]
    assert last_tokens(Words(), "one two three", 3) == "one two three"  # pyright: ignore[reportArgumentType]

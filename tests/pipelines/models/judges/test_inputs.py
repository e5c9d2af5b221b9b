"""Statement and evidence as word pieces: windows, what stands in both, lengths."""

from __future__ import annotations

import pytest

from pipelines.models.base import Claim
from pipelines.models.judges import inputs
from pipelines.models.judges.inputs import (
    MAX_PIECES,
    EvidenceReading,
    WordPieces,
    _parts,
    asked_pieces,
    load_tokenizer,
    pair_of,
    pairs_for,
    pieces_of,
    room_for,
    statement_offsets,
    windows_of,
)
from pipelines.models.judges.trained import encoder_folder
from pipelines.text import split_sentences

RARE = 20000
"""The place of a rare word; places of frequent ones are near 2000."""


@pytest.fixture(scope="module")
def tokenizer():
    return load_tokenizer(encoder_folder())


def pieces(*ids: int) -> WordPieces:
    return WordPieces(ids, (True,) * len(ids))


def about(statement: str, *evidence: str, **more: str) -> Claim:
    return Claim.model_validate({"statement": statement, "evidence": evidence, **more})


def test_what_fits_is_one_window():
    sentences = [pieces(1, 2), pieces(3)]
    assert windows_of(pieces(9), sentences, 8, 2) == [pieces(1, 2, 3)]


def test_a_window_holds_the_sentences_that_have_most_of_the_statement():
    one, two, three = RARE, RARE + 1, RARE + 2
    sentences = [pieces(5, 5, 5), pieces(one, 5, 5), pieces(6, 6, 6), pieces(two, three, 5)]
    windows = windows_of(pieces(one, two, three), sentences, 6, 2)
    # The last has two of three, the second the one that is still missing; in order of place.
    assert windows[0] == pieces(one, 5, 5, two, three, 5)
    assert windows[1] == pieces(5, 5, 5, 6, 6, 6)


def test_a_new_piece_is_worth_more_than_one_that_is_there_already():
    one, two = RARE, RARE + 1
    sentences = [pieces(one, 5), pieces(one, 6), pieces(two, 7), pieces(8, 8)]
    assert windows_of(pieces(one, two), sentences, 4, 1) == [pieces(one, 5, two, 7)]


def test_a_rare_word_counts_more_than_frequent_ones():
    frequent = (1997, 1998, 1999)
    sentences = [pieces(*frequent), pieces(RARE, 5, 5)]
    assert windows_of(pieces(*frequent, RARE), sentences, 3, 1) == [pieces(RARE, 5, 5)]


def test_no_more_windows_are_read_than_wanted():
    sentences = [pieces(RARE + number, 5) for number in range(20)]
    windows = windows_of(pieces(RARE + 3), sentences, 4, 3)
    assert len(windows) == 3
    assert RARE + 3 in windows[0].ids


def test_a_sentence_that_leans_on_the_one_before_is_read_with_it():
    one, two = RARE, RARE + 1
    sentences = [pieces(5, 5), pieces(6, 6), pieces(one, two), pieces(one, 7)]
    leaning = [False, True, True, False]
    windows = windows_of(pieces(one, two), sentences, 4, 1, leaning=leaning)
    assert windows == [pieces(6, 6, one, two)]
    # Without it, the next best is read.
    assert windows_of(pieces(one, two), sentences, 4, 1) == [pieces(one, two, one, 7)]
    # The two do not fit: the better one is read alone.
    assert windows_of(pieces(one, two), sentences, 3, 1, leaning=leaning) == [pieces(one, two)]


def test_nearness_in_meaning_counts_beside_common_words():
    sentences = [pieces(RARE, 5), pieces(6, 6), pieces(7, 7)]
    asked = pieces(RARE, RARE + 1)
    assert windows_of(asked, sentences, 2, 1) == [pieces(RARE, 5)]
    # Half of the words against a cosine that is worth three quarters of all of them.
    near = [0.0, 0.75, 0.1]
    assert windows_of(asked, sentences, 2, 1, near=near) == [pieces(6, 6)]


def test_a_claim_is_read_as_the_reading_says(tokenizer):
    far = "Nothing of interest is said here about anything at all. " * 40
    text = f"{far}Oslo has a harbour. It is deep. {far}"
    asked = about("The port of the city is deep.", text)
    (plain,) = pairs_for(tokenizer, asked, 1)
    assert len(plain.ids) <= MAX_PIECES
    (wide,) = pairs_for(tokenizer, asked, 1, EvidenceReading(pieces=384))
    assert MAX_PIECES < len(wide.ids) <= 384

    def near(statement: str, sentences) -> list[float]:
        assert statement == asked.statement
        return [1.0 if "harbour" in sentence else 0.0 for sentence in sentences]

    narrow = EvidenceReading(pieces=24, nearness=1.0)
    (chosen,) = pairs_for(tokenizer, asked, 1, narrow, near)
    assert "harbour" in tokenizer.decode(chosen.ids)
    # "It is deep" has the statement's words; what "it" is stands before it.
    (leaning,) = pairs_for(tokenizer, asked, 1, EvidenceReading(pieces=22, neighbours=True))
    assert "oslo has a harbor" in tokenizer.decode(leaning.ids).replace("harbour", "harbor")


def test_nothing_is_embedded_of_evidence_that_fits(tokenizer):
    def near(statement: str, sentences) -> list[float]:
        raise AssertionError("nothing had to be embedded")

    asked = about("Oslo lies in Norway.", "Oslo lies in Norway. It has a harbour.")
    assert pairs_for(tokenizer, asked, 1, EvidenceReading(nearness=1.0), near) == pairs_for(
        tokenizer, asked, 1
    )


def test_evidence_is_split_once_for_all_claims_about_it(tokenizer, monkeypatch):
    split = []
    monkeypatch.setattr(
        inputs, "split_sentences", lambda text: split.append(text) or split_sentences(text)
    )
    text = "A text that no other test reads. It has two sentences."
    for statement in ("It has two sentences.", "It has three sentences."):
        pairs_for(tokenizer, about(statement, text), 1)
    assert split == [text]


def test_a_long_sentence_is_read_in_parts(tokenizer):
    text = "One two three four five six seven eight nine ten. It ends."
    parts = [part.pieces for part in _parts(tokenizer, (text,), 4)]
    assert max(len(part.ids) for part in parts) == 4
    joined = [piece for part in parts for piece in part.ids]
    assert joined == list(pieces_of(tokenizer, text).ids)


def test_evidence_of_several_passages_is_read_together(tokenizer):
    far = "Nothing of interest is said here about anything at all. " * 20
    evidence = [f"{far}Oslo lies in Norway. {far}", f"{far}Oslo has a harbour. {far}"]
    (pair,) = pairs_for(tokenizer, about("Oslo in Norway has a harbour.", *evidence), 1)
    assert len(pair.ids) <= MAX_PIECES
    assert pair.matches[1:8] == [1, 1, 1, 1, 1, 1, 0]


def test_no_evidence_is_nothing_to_read(tokenizer):
    assert pairs_for(tokenizer, about("Oslo"), 2) == []
    assert pairs_for(tokenizer, about("Oslo", "  "), 2) == []


def test_another_answer_is_read_behind_the_question(tokenizer):
    alone = about("Oslo", "Where? Bergen", question="Where?")
    same = about("Oslo", "Bergen", question="Where?", relation="same")
    assert pairs_for(tokenizer, same, 1) == pairs_for(tokenizer, alone, 1)


def test_what_stands_elsewhere_in_the_evidence_is_told_from_what_stands_nowhere(tokenizer):
    asked = asked_pieces(tokenizer, "", "Born in Hope")
    window = pieces_of(tokenizer, "He lived in it")
    elsewhere = frozenset(pieces_of(tokenizer, "Hope is a town").ids)
    assert pair_of(tokenizer, asked, window, elsewhere).matches[1:4] == [2, 1, 3]


def test_a_pair_says_what_stands_in_both(tokenizer):
    asked = asked_pieces(tokenizer, "", "Born in Hope.")
    pair = pair_of(tokenizer, asked, pieces_of(tokenizer, "He lived in Hope"))
    words = [tokenizer.id_to_token(piece) for piece in pair.ids]
    assert words == [
        "[CLS]",
        *["born", "in", "hope", "."],
        "[SEP]",
        *["he", "lived", "in", "hope"],
        "[SEP]",
    ]
    assert pair.types == [0] * 6 + [1] * 5
    assert pair.matches == [0, 2, 1, 1, 0, 0, 2, 2, 1, 1, 0]


def test_of_a_long_question_and_statement_the_end_is_read(tokenizer):
    asked = asked_pieces(tokenizer, "why " * 200, "because of rain")
    assert len(asked.ids) == 80
    assert tokenizer.decode(list(asked.ids[-3:])) == "because of rain"
    assert room_for(asked) == MAX_PIECES - 83


def test_offsets_are_those_of_the_pieces_that_are_read(tokenizer):
    question, statement = "Where is Oslo?", "Oslo lies in Norway."
    asked = asked_pieces(tokenizer, question, statement)
    offsets = statement_offsets(tokenizer, question, statement)
    assert len(offsets) == len(asked.ids)
    inside = [statement[start:end] for start, end in offsets if start >= 0]
    assert inside == ["Oslo", "lies", "in", "Norway", "."]
    assert all(end <= 0 for start, end in offsets if start < 0)


def test_space_around_a_statement_is_counted(tokenizer):
    first, *_ = statement_offsets(tokenizer, "", "  Oslo is here. ")
    assert first == (2, 6)


def test_of_a_long_statement_the_last_pieces_are_told(tokenizer):
    statement = "Oslo lies there. " * 40
    offsets = statement_offsets(tokenizer, "", statement)
    assert offsets == sorted(offsets)
    assert statement[slice(*offsets[-2])] == "there"

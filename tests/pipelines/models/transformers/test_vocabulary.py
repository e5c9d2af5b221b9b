import pytest
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from transformers import PreTrainedTokenizerFast

from pipelines.models.transformers.prompting import read_vocabulary
from tests.pipelines.models.transformers import tiny

TEXT = "The capital of 北京 is 🙂,\n naïve? Yes"


@pytest.mark.parametrize("kind", ["byte_level", "metaspace"])
def test_bytes_of_the_tokens_join_to_the_text(kind: str, request: pytest.FixtureRequest) -> None:
    tokenizer: PreTrainedTokenizerFast = request.getfixturevalue(kind)
    pieces = read_vocabulary(tokenizer).pieces
    assert len(pieces) == len(tokenizer)
    ids = tokenizer.encode(TEXT, add_special_tokens=False)
    written = b"".join(pieces[token] or b"" for token in ids)
    # The metaspace tokenizer puts a space before every text.
    assert written.decode() == (" " if kind == "metaspace" else "") + TEXT


def test_byte_level_pieces_are_single_bytes_of_a_character(
    byte_level: PreTrainedTokenizerFast,
) -> None:
    pieces = read_vocabulary(byte_level).pieces
    ids = byte_level.encode("北", add_special_tokens=False)
    assert [pieces[token] for token in ids] == [b"\xe5", b"\x8c", b"\x97"]
    (space,) = byte_level.encode(" ", add_special_tokens=False)
    assert pieces[space] == b" "


def test_metaspace_pieces_are_words_with_spaces_and_bytes(
    metaspace: PreTrainedTokenizerFast,
) -> None:
    pieces = read_vocabulary(metaspace).pieces
    assert pieces[tiny.token_id(metaspace, "▁capital")] == b" capital"
    assert pieces[tiny.token_id(metaspace, "<0xE4>")] == b"\xe4"


@pytest.mark.parametrize("kind", ["byte_level", "metaspace"])
def test_special_tokens_add_nothing_and_keep_their_names(
    kind: str, request: pytest.FixtureRequest
) -> None:
    tokenizer: PreTrainedTokenizerFast = request.getfixturevalue(kind)
    vocabulary = read_vocabulary(tokenizer)
    for name in ("<|endoftext|>", "<|im_start|>", "<|im_end|>"):
        token = tiny.token_id(tokenizer, name)
        assert vocabulary.piece(token) is None
        assert vocabulary.text(token) == name
    assert vocabulary.piece(len(tokenizer) + 3) is None
    assert vocabulary.text(len(tokenizer) + 3) == ""
    assert vocabulary.prepends_space is (kind == "metaspace")


def test_added_words_that_are_not_special_are_text(byte_level: PreTrainedTokenizerFast) -> None:
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=byte_level.backend_tokenizer)
    tokenizer.add_tokens(["<think>", "答え"])
    vocabulary = read_vocabulary(tokenizer)
    for word in ("<think>", "答え"):
        token = tiny.token_id(tokenizer, word)
        assert vocabulary.piece(token) == word.encode()


def test_other_tokenizers_are_read_by_decoding() -> None:
    words = {"[UNK]": 0, "a": 1, "river": 2, "flows": 3}
    backend = Tokenizer(WordLevel(words, unk_token="[UNK]"))
    backend.pre_tokenizer = Whitespace()
    tokenizer = PreTrainedTokenizerFast(tokenizer_object=backend, unk_token="[UNK]")
    pieces = read_vocabulary(tokenizer).pieces
    assert pieces[2] == b" river"
    assert pieces[3] == b" flows"

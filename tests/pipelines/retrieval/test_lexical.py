"""Vectors from words: what they count, and what they cannot see."""

import subprocess
import sys

import numpy as np
import pytest

from pipelines.retrieval.lexical import LexicalEmbedder


def cosine(one: str, two: str) -> float:
    first, second = LexicalEmbedder().embed([one, two])
    return float(first @ second)


def test_vectors_are_of_unit_length_and_single_precision():
    vectors = LexicalEmbedder().embed(["Paris is large.", "巴黎很大。"])
    assert (vectors.shape, vectors.dtype) == ((2, 4096), np.float32)
    assert np.linalg.norm(vectors, axis=1) == pytest.approx([1, 1])


def test_shared_words_make_the_cosine():
    # Two of three words each: 2 / (sqrt(3) * sqrt(3)).
    assert cosine("red green blue", "red green black") == pytest.approx(2 / 3)
    assert cosine("Red, GREEN!", "green red") == pytest.approx(1)
    assert cosine("red", "green") == pytest.approx(0)


def test_a_repeated_word_counts_by_its_square_root():
    # (sqrt(4), 1) . (1, 0) over the length sqrt(4 + 1).
    assert cosine("red red red red blue", "red") == pytest.approx(2 / 5**0.5)


def test_chinese_is_counted_by_characters_and_their_pairs():
    # 北 京 北京 against 北 平 北平: one of three features each.
    assert cosine("北京", "北平") == pytest.approx(1 / 3)
    # The same characters in another order share no pair: 北 and 京 of 北 京 北京 and 京 北 京北.
    assert cosine("北京", "京北") == pytest.approx(2 / 3)
    # A pair does not reach over punctuation: 北 京 against 北 京 北京.
    assert cosine("北，京", "北京") == pytest.approx(2 / (2 * 3) ** 0.5)


def test_mixed_text_has_the_features_of_both_scripts():
    # GPT 模 型 模型 against gpt: one of four.
    assert cosine("GPT模型", "gpt") == pytest.approx(0.5)


def test_it_sees_wording_not_meaning():
    assert cosine("The physician was born abroad", "A doctor's foreign birth") == pytest.approx(0)


def test_a_text_without_a_word_has_no_direction():
    assert not LexicalEmbedder().embed(["", "?! …"]).any()
    assert LexicalEmbedder().embed([]).shape == (0, 4096)


def test_the_vectors_are_the_same_in_every_process():
    text = "Paris 巴黎 1900"
    code = (
        "from pipelines.retrieval.lexical import LexicalEmbedder\n"
        f"print(LexicalEmbedder().embed([{text!r}])[0].nonzero()[0].tolist())"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout
    assert printed.strip() == str(LexicalEmbedder().embed([text])[0].nonzero()[0].tolist())


def test_it_reads_both_languages():
    assert LexicalEmbedder().languages == {"en", "zh"}
    assert LexicalEmbedder().name == "words"

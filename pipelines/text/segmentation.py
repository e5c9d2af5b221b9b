"""Chinese words, by jieba, with exact offsets.

The dictionary is private to this module and is built in memory: jieba's own cache is a marshalled
file of fixed name in the shared temporary folder, which anyone could have put there.
"""

from __future__ import annotations

import logging
import threading
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from jieba import Tokenizer
    from jieba.posseg import POSTokenizer

_LOADING = threading.Lock()


class TaggedWord(NamedTuple):
    """A word at `[start, end)` and its part of speech in jieba's (ICTCLAS) tag set."""

    text: str
    start: int
    end: int
    tag: str


@cache
def _load_tokenizer() -> Tokenizer:
    import jieba

    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


@cache
def _load_tagger() -> POSTokenizer:
    from jieba import posseg

    tagger = posseg.POSTokenizer(_load_tokenizer())
    tagger.initialize()
    return tagger


def chinese_tokenizer() -> Tokenizer:
    """Return jieba's tokenizer, one for the process. The first call loads the dictionary
    (about 1 s).
    """
    with _LOADING:
        return _load_tokenizer()


def tagged_words(text: str) -> list[TaggedWord]:
    """Return the words of `text` with their parts of speech; white space and punctuation included.

    Loads the dictionary on the first call (about a second). Safe to call from several threads.
    """
    with _LOADING:
        tagger = _load_tagger()
    words: list[TaggedWord] = []
    position = 0
    for pair in tagger.cut(text):
        start = text.index(pair.word, position)
        position = start + len(pair.word)
        words.append(TaggedWord(pair.word, start, position, pair.flag))
    return words


def word_boundaries(text: str, *, fine: bool = False) -> set[int]:
    """Return offsets at which a word of `text` begins or ends, the two ends of the text among them.

    With `fine`, words inside compounds count too: "地球表面" also ends at "地球".
    """
    edges = {0, len(text)}
    for word in tagged_words(text):
        edges |= {word.start, word.end}
    if fine:
        for _, start, end in chinese_tokenizer().tokenize(text, mode="search"):
            edges |= {start, end}
    return edges


def in_dictionary(word: str) -> bool:
    """Return whether the dictionary lists `word`, rather than the tagger having put it together."""
    return bool(chinese_tokenizer().FREQ.get(word))

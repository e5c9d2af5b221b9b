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
    from jieba.posseg import POSTokenizer

__all__ = ["TaggedWord", "tagged_words", "word_boundaries"]

_LOADING = threading.Lock()


class TaggedWord(NamedTuple):
    """A word at `[start, end)` and its part of speech in jieba's (ICTCLAS) tag set."""

    text: str
    start: int
    end: int
    tag: str


@cache
def _load() -> POSTokenizer:
    import jieba
    from jieba import posseg

    jieba.setLogLevel(logging.WARNING)
    words = jieba.Tokenizer()
    words.FREQ, words.total = words.gen_pfdict(words.get_dict_file())
    words.initialized = True
    tagger = posseg.POSTokenizer(words)
    tagger.initialize()
    return tagger


def tagged_words(text: str) -> list[TaggedWord]:
    """The words of `text` with their parts of speech; white space and punctuation included.

    Loads the dictionary on the first call (about a second). Safe to call from several threads.
    """
    with _LOADING:
        tagger = _load()
    words: list[TaggedWord] = []
    position = 0
    for pair in tagger.cut(text):
        start = text.index(pair.word, position)
        position = start + len(pair.word)
        words.append(TaggedWord(pair.word, start, position, pair.flag))
    return words


def word_boundaries(text: str) -> set[int]:
    """Offsets at which a word of `text` begins or ends, the two ends of the text among them."""
    edges = {0, len(text)}
    for word in tagged_words(text):
        edges |= {word.start, word.end}
    return edges

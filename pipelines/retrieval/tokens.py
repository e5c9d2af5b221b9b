"""Words and search terms of English, Chinese and mixed text.

A run of Chinese characters is cut by jieba, everything else at white space and punctuation. Terms,
what BM25 counts, are normalised words: compatibility forms unified, accents and case dropped,
English plurals made singular. Chinese words are taken in jieba's search mode, which adds the
shorter words inside long ones.
"""

from __future__ import annotations

import logging
import re
import threading
import unicodedata
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from bm25s.stopwords import STOPWORDS_EN

from pipelines.text.languages import HAN

if TYPE_CHECKING:
    from jieba import Tokenizer

__all__ = ["TERM_RULES", "content_terms", "query_terms", "terms", "word_spans"]

TERM_RULES = 1
"""Version of what `terms` returns. A stored index with another number is built anew."""

# A date's unit is a word of its own: left in the run, jieba reads 19日出生 as 日出 and 生.
_WORD = re.compile(rf"(?P<unit>(?<=\d)[年月日号])|(?P<han>[{HAN}]+)|(?P<word>[^\W_{HAN}]+)")
_POSSESSIVE = re.compile(r"(?<=\w)['’]s\b")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_ACCENTS = re.compile("[\u0300-\u036f]")

_QUESTION_WORDS = """
am been being did do does from had has have he her him his how i its me my our she s t than them us
we were what when where which who whom whose why would you your
的 了 是 在 和 与 及 或 也 都 就 而 被 把 对 为 以 于 由 之 其 这 那 着 过 吗 呢 吧 啊 有 个
我 你 他 她 它 我们 你们 他们 她们 它们 哪 谁 几 何 什么 哪个 哪些 哪里 哪儿 哪位 哪一 哪年 哪一年
怎么 怎样 如何 为什么 为何 多少 几个 何时 时候 什么时候 是否 请问
"""
_STOP_WORDS = frozenset(STOPWORDS_EN) | frozenset(_QUESTION_WORDS.split())

_LOADING = threading.Lock()


@cache
def _dictionary() -> Tokenizer:
    import jieba

    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    # Built in memory: jieba's cache is a marshalled file of fixed name in the shared temporary
    # folder, which anyone could have put there.
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


def _chinese() -> Tokenizer:
    with _LOADING:
        return _dictionary()


def word_spans(text: str) -> list[tuple[int, int]]:
    """Where the words of `text` stand, as half-open offsets, in order; punctuation left out."""
    spans: list[tuple[int, int]] = []
    for found in _WORD.finditer(text):
        if found.lastgroup == "han":
            cut = _chinese().tokenize(found.group())
            spans += [(found.start() + start, found.start() + end) for _, start, end in cut]
        else:
            spans.append(found.span())
    return spans


def terms(text: str) -> list[str]:
    """The terms of `text` in order, repeated ones repeated; empty for mere punctuation."""
    return list(_terms(_normalised(text)))


def query_terms(text: str) -> list[str]:
    """The terms to search for: without stop words, unless nothing else would be left.

    Documents keep their stop words, so that "The Who" can still be found.
    """
    every = terms(text)
    return [term for term in every if term not in _STOP_WORDS] or every


def content_terms(text: str) -> list[str]:
    """The terms of `text` that are no stop words."""
    return [term for term in terms(text) if term not in _STOP_WORDS]


def _normalised(text: str) -> str:
    bare = _ACCENTS.sub("", unicodedata.normalize("NFKD", text))
    folded = unicodedata.normalize("NFC", bare).casefold()
    return _THOUSANDS.sub("", _POSSESSIVE.sub("", folded))


def _terms(text: str) -> Iterator[str]:
    for found in _WORD.finditer(text):
        if found.lastgroup == "han":
            yield from _chinese().cut_for_search(found.group())
        elif found.lastgroup == "word":
            word = found.group()
            yield word if word in _STOP_WORDS else _singular(word)
        else:
            yield found.group()


def _singular(word: str) -> str:
    """Harman's S-stemmer ("How effective is suffixing?", 1991), which mends plurals only."""
    if len(word) <= 3 or not word.endswith("s"):
        return word
    if word.endswith("ies") and not word.endswith(("eies", "aies")):
        return f"{word[:-3]}y"
    if word.endswith("es") and not word.endswith(("aes", "ees", "oes")):
        return word[:-1]
    return word if word.endswith(("us", "ss")) else word[:-1]

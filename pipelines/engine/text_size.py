"""How much of a given text there is to check: what an estimate is worked out from.

Detectors that go through a text take so many calls for every sentence, and those that look up its
facts so many for every fact. What counts as a fact is known only when a model has listed them, so
names and numbers stand for them here. They are counted without a recogniser of entities, which
takes seconds to load: an estimate is shown before anything is loaded.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from pipelines.text import split_sentences

_NUMBER = re.compile(r"\d+(?:[.,:]\d+)*")
_NAME = re.compile(r"\b[A-Z][\w'’-]*(?:\s+[A-Z][\w'’-]*)*")


class TextSize(NamedTuple):
    """The sentences of a text, at least 1, and its facts, at least one for each sentence."""

    sentences: int
    facts: int


def size_of(text: str) -> TextSize:
    """Return the size of `text`.

    The name that an English sentence begins with is what it speaks about, and no fact. In Chinese
    names cannot be seen without a recogniser: there numbers alone are counted.
    """
    sentences = [span.text for span in split_sentences(text)]
    return TextSize(max(1, len(sentences)), sum(map(_facts, sentences)) or 1)


def _facts(sentence: str) -> int:
    names = [found for found in _NAME.finditer(sentence) if found.start() > 0]
    return max(1, len(names) + len(_NUMBER.findall(sentence)))

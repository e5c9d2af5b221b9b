"""The sentence of a passage that a reader should look at first."""

from __future__ import annotations

from collections import Counter
from math import log

from pipelines.retrieval.tokens import content_terms
from pipelines.text.sentences import split_sentences
from pipelines.text.spans import Span

__all__ = ["best_sentence"]


def best_sentence(passage_text: str, target_text: str) -> Span | None:
    """The sentence of `passage_text` nearest in words to `target_text`, a claim or an answer.

    A sentence scores the weights of the different content terms it shares with the target. A term
    that `df` of the passage's `n` sentences hold weighs `ln(1 + n / df)`, so that what the whole
    passage is about tells sentences apart less than what only one of them says. Of equal sentences
    the shorter wins, then the earlier. None when no sentence shares a content term.

    Offsets are those in `passage_text`. English, Chinese and mixed texts.
    """
    wanted = set(content_terms(target_text))
    sentences = split_sentences(passage_text)
    shared = [wanted.intersection(content_terms(sentence.text)) for sentence in sentences]
    counts = Counter(term for found in shared for term in found)
    weights = {term: log(1 + len(sentences) / count) for term, count in counts.items()}
    best, score = None, 0.0
    for sentence, found in zip(sentences, shared, strict=True):
        total = sum(weights[term] for term in sorted(found))
        shorter = best is not None and len(sentence.text) < len(best.text)
        if total > score or (total == score and total > 0 and shorter):
            best, score = sentence, total
    return best

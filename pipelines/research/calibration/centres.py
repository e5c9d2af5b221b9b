"""The centres of an embedder's vectors: where its questions, and its other texts, lie on average.

Vectors of one language lie close together, wherever their texts are about. Without their centre,
texts that have nothing in common have a cosine near 0, and a text of the other language can be
nearer than an unrelated one of its own (Libovický, Rosa and Fraser, "On the Language Neutrality of
Pre-trained Multilingual Representations", Findings of EMNLP 2020, section 3).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from pipelines.engine.libraries import SAMPLE_LIBRARY
from pipelines.evaluation.datasets.questions import Article
from pipelines.retrieval.dense import BilingualEmbedder
from pipelines.retrieval.documents import load_library
from pipelines.text import split_sentences
from pipelines.types import Language

_DIGITS = 4
"""Coordinates are below 0.3 and differ by more than this from text to text."""


def derive(
    embedder: BilingualEmbedder,
    articles: Sequence[Article],
    translated: Sequence[str],
    language: Language,
    date: str,
) -> dict[str, Any]:
    """Return both centres of `embedder` in `language`, each with its data.

    `translated` are sentences of many kinds; of `articles`, even-numbered questions are taken.
    """
    documents = load_library(SAMPLE_LIBRARY)
    library = [
        span.text
        for document in documents
        if document.language == language
        for span in split_sentences(document.text)
    ]
    questions = [
        qa.question
        for article in articles
        for paragraph in article.paragraphs
        for qa in paragraph.qas
    ][::2]
    sentences = [*library, *translated]
    return {
        "query": _centre(embedder.plain(questions, asked=True)),
        "passage": _centre(embedder.plain(sentences, asked=False)),
        "data": f"{len(questions)} even-numbered questions of XQuAD; {len(library)} sentences of"
        f" the sample library and {len(translated)} even-numbered ones of Tatoeba",
        "date": date,
    }


def _centre(vectors: NDArray[np.float32]) -> list[float]:
    return [round(float(one), _DIGITS) for one in vectors.mean(axis=0)]

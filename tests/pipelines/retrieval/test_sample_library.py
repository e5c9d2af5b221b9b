"""The sample questions find the articles they are about."""

from __future__ import annotations

import csv

import pytest

from pipelines.retrieval.documents import cut_document, load_library
from pipelines.retrieval.library import LibraryIndex
from pipelines.retrieval.retriever import LibraryRetriever, RetrievalMode
from tests.pipelines.retrieval.conftest import SAMPLE_LIBRARY


def questions(language: str) -> list[tuple[str, str]]:
    """Every question in `language` with its article."""
    with (SAMPLE_LIBRARY.parent / "questions.csv").open(encoding="utf-8", newline="") as file:
        rows = [row for row in csv.DictReader(file) if row["language"] == language]
    return [(row["question"], row["article"]) for row in rows]


@pytest.mark.parametrize(
    ("mode", "language"),
    [("bm25", "en"), ("bm25", "zh"), ("dense", "en"), ("hybrid", "en"), ("hybrid", "zh")],
)
async def test_questions_find_their_article(
    sample_library: LibraryIndex, mode: RetrievalMode, language: str
):
    retriever = LibraryRetriever(sample_library, mode)
    asked = questions(language)
    missed = []
    for question, article in asked:
        found = await retriever.search(question, 3)
        if article not in {passage.id.partition("#")[0] for passage in found}:
            missed.append(question)
    assert len(asked) >= 16
    assert len(missed) <= 0.05 * len(asked), missed


def test_every_passage_is_a_stretch_of_its_article(sample_library: LibraryIndex):
    documents = load_library(SAMPLE_LIBRARY)
    texts = {document.id: document.text for document in documents}
    assert len(sample_library.passages) == sum(len(cut_document(item)) for item in documents)
    for position in range(len(sample_library.passages)):
        passage = sample_library.passages[position]
        text = texts[passage.id.partition("#")[0]]
        assert text[passage.start : passage.end] == passage.text

"""When a sentence is near, for an embedder whose vectors are worked out by hand."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from pipelines.base import Language
from pipelines.evaluation.datasets.published import Article
from pipelines.methods.sentences import least_nearness, scaled
from research.calibrate.cosines import nearest


class Crowded:
    """Two texts of one first letter have cosine 1, all others 0.6."""

    name = "crowded"
    languages: frozenset[Language] = frozenset({"en"})

    def embed(self, texts: Sequence[str]) -> Any:
        # A part that all texts share, and one for each letter.
        rows = np.zeros((len(texts), 27), np.float32)
        for row, text in zip(rows, texts, strict=True):
            row[26] = 0.6**0.5
            row[ord(text.strip()[0].lower()) - ord("a")] = 0.4**0.5
        return rows


def article(title: str, first: str, second: str) -> Article:
    def paragraph(word: str) -> dict[str, Any]:
        asked = {"question": f"{title} {word}?", "answers": [{"text": word}]}
        return {"context": f"It has a {word}.", "qas": [asked]}

    found = {"title": title, "paragraphs": [paragraph(first), paragraph(second)]}
    return Article.model_validate(found)


def test_floor_and_threshold_come_from_the_even_questions():
    articles = [article(letter * 3, f"{letter}moon", f"{letter}lamp") for letter in "bcdefghj"]
    found = nearest(Crowded(), articles, "en", "2026-01-01")
    assert found["floor"]["value"] == pytest.approx(0.6)
    # Its own sentence has cosine 1 and both words, the other one the title's alone: 1 and 0.75.
    assert 0.75 < found["near"]["value"] <= 1.0
    assert found["near"]["report"] == {"found_and_near": 1.0, "left_unanswered": 1.0}


def test_cosines_are_counted_from_the_floor():
    assert scaled(0.8, 0.0) == 0.8
    assert scaled(0.8, 0.6) == 0.5
    assert scaled(0.5, 0.6) == -0.25


def test_each_embedder_has_its_own_threshold():
    assert least_nearness("all-MiniLM-L6-v2", "en") == 0.55
    assert least_nearness("words", "zh") == 0.45
    assert least_nearness("multilingual-e5-small", "en") == 0.5
    # One that nobody measured is read as the English one.
    assert least_nearness("unknown", "en") == 0.55

"""When a sentence is near a question, for one embedder: `floor` and `near` of `sentences.py`.

Cosines of embedders are not comparable: of some, two texts that have nothing in common already have
0.7. `floor` is the median cosine of a question with the sentences of other articles, from which
cosines are counted anew; one near 0 is left at 0. `near` is the minimum nearness. Even-numbered
questions (0, 2, 4, ...) fit, the others report.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from pipelines.evaluation.datasets.questions import Article
from pipelines.methods.replies.questions import words_shared
from pipelines.methods.sentences import nearness_of, scaled
from pipelines.retrieval.base import Embedder
from pipelines.retrieval.dense import embedded_queries
from pipelines.text import split_sentences
from pipelines.types import Language

CRITERION = (
    "multiple of 0.05 with the highest sum of two shares: questions whose nearest sentence holds"
    " the answer and is near, and questions without their paragraph whose nearest sentence is not"
    " near"
)

_SMALL = 0.2
"""A floor below this is none: the embedder's cosines of unrelated texts are near 0."""

_APART = 7
"""How many articles on the article is whose sentences have nothing in common with a question."""


class _Asked(NamedTuple):
    """Nearness of the nearest sentence, whether it holds the answer, and the nearness of the
    nearest sentence outside the question's own paragraph."""

    nearness: float
    holds: bool
    elsewhere: float


def derive(
    embedder: Embedder, articles: Sequence[Article], language: Language, date: str
) -> dict[str, Any]:
    """Return both values of `embedder` for texts in `language`, with how good they are."""
    floor = _floor(embedder, articles, language)
    asked = _asked(embedder, articles, language, floor)
    near = max((step / 20 for step in range(4, 19)), key=lambda one: sum(_shares(asked[::2], one)))
    common = {
        "data": f"{len(asked)} questions of XQuAD ({language}) and all sentences of their articles",
        "fitted_on": "even-numbered questions (0, 2, 4, ...); the odd-numbered ones report",
        "date": date,
    }
    answered, left = _shares(asked[1::2], near)
    return {
        "floor": {"value": floor, **common},
        "near": {
            "value": near,
            "criterion": CRITERION,
            **common,
            "report": {"found_and_near": round(answered, 4), "left_unanswered": round(left, 4)},
        },
    }


def _floor(embedder: Embedder, articles: Sequence[Article], language: Language) -> float:
    cosines: list[float] = []
    for at, article in enumerate(articles):
        other = _sentences(articles[(at + _APART) % len(articles)], language)
        questions = [qa.question for paragraph in article.paragraphs for qa in paragraph.qas][::2]
        if questions and other:
            table = (
                embedded_queries(embedder, questions)
                @ embedder.embed([text for _, text in other]).T
            )
            cosines += [float(one) for one in table.ravel()]
    median = float(np.median(cosines))
    return round(median, 2) if median >= _SMALL else 0.0


def _asked(
    embedder: Embedder, articles: Sequence[Article], language: Language, floor: float
) -> list[_Asked]:
    found: list[_Asked] = []
    for article in articles:
        sentences = _sentences(article, language)
        vectors = embedder.embed([text for _, text in sentences])
        asked = [(number, qa) for number, one in enumerate(article.paragraphs) for qa in one.qas]
        questions = embedded_queries(embedder, [qa.question for _, qa in asked])
        for (number, qa), cosines in zip(asked, questions @ vectors.T, strict=True):
            rated = [
                (
                    nearness_of(scaled(float(cosine), floor), words_shared(text, qa.question)),
                    owner,
                    text,
                )
                for cosine, (owner, text) in zip(cosines, sentences, strict=True)
            ]
            best, owner, text = max(rated)
            elsewhere = max((one for one, at, _ in rated if at != number), default=0.0)
            holds = owner == number and qa.answers[0].text in text
            found.append(_Asked(best, holds, elsewhere))
    return found


def _sentences(article: Article, language: Language) -> list[tuple[int, str]]:
    """Return the sentences, each with its title as it is compared, and the number of its
    paragraph.
    """
    # The Chinese file has English titles, which do not help a Chinese question.
    title = f"{article.title.replace('_', ' ')}: " if language == "en" else ""
    return [
        (number, f"{title}{span.text}")
        for number, paragraph in enumerate(article.paragraphs)
        for span in split_sentences(paragraph.context)
    ]


def _shares(asked: Sequence[_Asked], near: float) -> tuple[float, float]:
    answered = sum(one.holds and one.nearness >= near for one in asked)
    left = sum(one.elsewhere < near for one in asked)
    return answered / len(asked), left / len(asked)

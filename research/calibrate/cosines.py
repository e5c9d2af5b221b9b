"""Cosines of embedders: their centres, and from where on texts are near each other.

Cosines of embedders are not comparable: of some, two texts that have nothing in common already have
0.7. Vectors of one language lie close together, wherever their texts are about. Without their
centre, texts that have nothing in common have a cosine near 0, and a text of the other language can
be nearer than an unrelated one of its own (Libovický, Rosa and Fraser, "On the Language Neutrality
of Pre-trained Multilingual Representations", Findings of EMNLP 2020, section 3).
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from pipelines.base import Language
from pipelines.engine.library import SAMPLE_LIBRARY
from pipelines.errors import failure
from pipelines.evaluation.datasets.published import Article
from pipelines.methods.replies.lists import words_shared
from pipelines.methods.sentences import nearness_of, scaled
from pipelines.retrieval.base import Embedder
from pipelines.retrieval.documents import load_library
from pipelines.retrieval.indexes import (
    BilingualEmbedder,
    LexicalEmbedder,
    default_embedder,
    embedded_queries,
)
from pipelines.text import split_sentences, text_key
from research.calibrate.writing import FITTED_ON, articles_of, command, table_of
from research.samples.files import read_translations

_DIGITS = 4
"""Coordinates are below 0.3 and differ by more than this from text to text."""


def centres(
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


NEAR = (
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


def nearest(
    embedder: Embedder, articles: Sequence[Article], language: Language, date: str
) -> dict[str, Any]:
    """Return both values of `embedder` for texts in `language`, with how good they are."""
    floor = _floor(embedder, articles, language)
    asked = _asked_of(embedder, articles, language, floor)
    near = max((step / 20 for step in range(4, 19)), key=lambda one: sum(_shares(asked[::2], one)))
    common = {
        "data": f"{len(asked)} questions of XQuAD ({language}) and all sentences of their articles",
        "fitted_on": FITTED_ON,
        "date": date,
    }
    answered, left = _shares(asked[1::2], near)
    return {
        "floor": {"value": floor, **common},
        "near": {
            "value": near,
            "criterion": NEAR,
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


def _asked_of(
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
    paragraph."""
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


KEPT = 0.95
"""Share of people's own translations, and paraphrases, that are to be accepted."""

LEAST = (
    f"the largest multiple of 0.01 at which {KEPT:.0%} of what people wrote is accepted, in the"
    " worse of the two sets; other: the same texts, each beside another one's"
)
Pair = tuple[str, str]


def minimum_cosines(
    embedder: Embedder, sets: dict[str, dict[str, Sequence[Pair]]], most: int, date: str
) -> dict[str, Any]:
    """Return the minimum cosine of each kind in `sets`: kind to data set to pairs in file order.

    Even-numbered pairs fit and odd ones report, at most `most` each, spread over the file.
    """
    return {kind: _minimum(embedder, by_set, most, date) for kind, by_set in sets.items()}


def _minimum(
    embedder: Embedder, by_set: dict[str, Sequence[Pair]], most: int, date: str
) -> dict[str, Any]:
    fitted = {name: _cosines(embedder, _spread(pairs[::2], most)) for name, pairs in by_set.items()}
    value = min(_cut(np.diag(cosines)) for cosines in fitted.values())
    report = {}
    for name, pairs in by_set.items():
        cosines = _cosines(embedder, _spread(pairs[1::2], most))
        own, other = np.diag(cosines), cosines[~np.eye(len(cosines), dtype=bool)]
        report[name] = {
            "pairs": len(cosines),
            "accepted": round(float(np.mean(own >= value)), 3),
            "other_accepted": round(float(np.mean(other >= value)), 4),
            "quartiles": [round(float(one), 2) for one in np.quantile(own, (0.25, 0.5, 0.75))],
        }
    return {
        "value": value,
        "data": ", ".join(f"{len(cosines)} of {name}" for name, cosines in fitted.items()),
        "fitted_on": "even-numbered pairs (0, 2, 4, ...); the odd-numbered ones report",
        "criterion": LEAST,
        "date": date,
        "report": report,
    }


def same_meaning(pairs: Sequence[Pair]) -> list[Pair]:
    """Return pairs of first texts that have the same second text, and say it in other words."""
    found: dict[str, list[str]] = defaultdict(list)
    for first, second in pairs:
        if all(text_key(first) != text_key(known) for known in found[second]):
            found[second].append(first)
    return [(known[0], known[1]) for known in found.values() if len(known) > 1]


def _cut(own: NDArray[np.float64]) -> float:
    """Return the multiple of 0.01 that leaves `KEPT` of `own` at or above it."""
    return float(np.floor(np.quantile(own, 1 - KEPT) * 100) / 100)


def _spread(pairs: Sequence[Pair], most: int) -> Sequence[Pair]:
    return pairs[:: max(1, len(pairs) // most)][:most]


def _cosines(embedder: Embedder, pairs: Sequence[Pair]) -> NDArray[np.float64]:
    """Return the cosine of every first text with every second one."""
    first, second = (embedder.embed([pair[at] for pair in pairs]) for at in (0, 1))
    return np.asarray(first @ second.T, np.float64)


# --- The commands ---------------------------------------------------------------------------------

_SPARSE = 30
"""Of the even-numbered translations every so many-th is taken: some 500 sentences are enough."""

_WORDS, _MOST_PAIRS = 4, 150
"""Least words of a question of Tatoeba that Rowen's cosines are fitted on, and most pairs a set."""


def _bilingual() -> BilingualEmbedder:
    embedder = default_embedder()
    if not isinstance(embedder, BilingualEmbedder):
        raise failure("loading.no_embedder", BilingualEmbedder.name)
    return embedder


async def _derive_centres(options: argparse.Namespace) -> dict[str, Any]:
    pairs = read_translations(options.tatoeba)[:: 2 * _SPARSE]
    table, embedder, day = table_of(options.out), _bilingual(), options.date.isoformat()
    found = table.setdefault(embedder.name, {})
    for at, (language, known) in enumerate(articles_of(options).items()):
        found[language] = centres(embedder, known, [pair[at] for pair in pairs], language, day)
    return table


async def _derive_nearest(options: argparse.Namespace) -> dict[str, Any]:
    articles, table = articles_of(options), table_of(options.out)
    for embedder in filter(None, (default_embedder(), LexicalEmbedder())):
        for language in sorted(embedder.languages):
            entry = nearest(embedder, articles[language], language, options.date.isoformat())
            table.setdefault(embedder.name, {})[language] = entry
    return table


async def _derive_rowen(options: argparse.Namespace) -> dict[str, Any]:
    embedder = _bilingual()
    asked = [
        (english, chinese)
        for english, chinese in read_translations(options.tatoeba)
        if english.endswith("?") and len(english.split()) >= _WORDS
    ]
    parallel = [
        [qa.question for article in articles for part in article.paragraphs for qa in part.qas]
        for articles in articles_of(options).values()
    ]
    sets = {
        "translation": {
            "Tatoeba's questions with their translations": asked,
            "XQuAD's questions with their translations": list(zip(*parallel, strict=True)),
        },
        "paraphrase": {
            "English questions of Tatoeba with one translation": same_meaning(asked),
            "Chinese questions of Tatoeba with one translation": same_meaning(
                [(chinese, english) for english, chinese in asked]
            ),
        },
    }
    found = minimum_cosines(embedder, sets, _MOST_PAIRS, options.date.isoformat())
    return {**table_of(options.out), embedder.name: found}


_BOTH = ("--xquad", "--xquad-zh")
CENTRES = command(
    "centres",
    "The centres of the bilingual embedder's vectors: where its questions, and its other texts,"
    " lie on average.",
    _derive_centres,
    *(*_BOTH, "--tatoeba"),
)
NEAREST = command(
    "nearest",
    "When a sentence is near a question, for each embedder.\n\nThe floor is the median cosine of a"
    " question with sentences of other articles, from\nwhich cosines are counted anew; one near 0"
    " is left at 0.",
    _derive_nearest,
    *_BOTH,
)
ROWEN = command(
    "rowen",
    "How near paraphrases and translations have to be, for Rowen.\n\nWhat people wrote sets it:"
    " Tatoeba's and XQuAD's questions with their translations, and\nTatoeba's sentences of one"
    " language that translate one and the same sentence of the other.",
    _derive_rowen,
    *(*_BOTH, "--tatoeba"),
)

"""How long a judge takes: a few claims on short passages, many on long articles."""

from __future__ import annotations

import time

from pipelines.models.base import Claim
from pipelines.models.judges.trained import TrainedJudge
from pipelines.research.training.examples import library

_ROUNDS = 5
_CLAIMS, _PASSAGES, _WORDS = 10, 10, 100
_MANY, _CHARACTERS = 200, 2700


def times_of(judge: TrainedJudge) -> dict[str, float]:
    """Return seconds by what took them, each the least of five rounds, of the second
    kind of two.
    """
    short, long = few_claims(), many_claims()
    judge.read(short)
    return {
        f"{_CLAIMS} claims on {_PASSAGES} passages of {_WORDS} words": _least(
            judge, short, _ROUNDS
        ),
        f"{_MANY} claims on articles of {_CHARACTERS:,} characters": _least(judge, long, 2),
    }


def few_claims() -> list[Claim]:
    """Return ten claims, each with the same ten passages of a hundred words."""
    words = " ".join(article.text for article in library("en")).split()
    passages = [words[at * _WORDS : (at + 1) * _WORDS] for at in range(_PASSAGES)]
    evidence = tuple(" ".join(passage) for passage in passages)
    return [Claim(statement=_statement(number), evidence=evidence) for number in range(_CLAIMS)]


def many_claims() -> list[Claim]:
    """Return two hundred claims on twenty articles, each as long as several of the library."""
    text = "\n\n".join(article.text for article in library("en"))
    articles = [text[at : at + _CHARACTERS] for at in range(0, 20 * _CHARACTERS, _CHARACTERS)]
    articles = [article for article in articles if article]
    return [
        Claim(statement=_statement(number), evidence=(articles[number % len(articles)],))
        for number in range(_MANY)
    ]


def _statement(number: int) -> str:
    documents = library("en")
    title = documents[number % len(documents)].title
    return f"{title} was described for the first time in {1500 + number}."


def _least(judge: TrainedJudge, claims: list[Claim], rounds: int) -> float:
    found: list[float] = []
    for _ in range(rounds):
        started = time.perf_counter()
        judge.read(claims)
        found.append(time.perf_counter() - started)
    return min(found)

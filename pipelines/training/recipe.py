"""Which pairs the judge is trained on: how many of each make, from which files, by which seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple
from zlib import crc32

from pipelines.training.balance import balanced
from pipelines.training.examples import Example
from pipelines.training.generated import examples_of
from pipelines.training.public import (
    biographies,
    biography_pairs,
    biography_texts,
    facts,
    facts_pairs,
    facts_texts,
    retold_texts,
    stance_pairs,
    stances,
)
from pipelines.training.public_answers import (
    article_pairs,
    article_questions,
    article_texts,
    other_answer_pairs,
    qa_pairs,
    qa_records,
    qa_texts,
    same_pairs,
    truthful_pairs,
)
from pipelines.training.swaps import Names
from pipelines.training.texts import LIBRARY, Text, library_texts, statements
from pipelines.training.told import told_pairs

__all__ = ["RECIPES", "Files", "Recipe", "build", "held_out"]


class Files(NamedTuple):
    """Public data by path; what is not given is left out."""

    qa: Path | None = None
    biographies: Path | None = None
    stances: Path | None = None
    articles: Path | None = None
    facts: Path | None = None
    truthful: Path | None = None


class Recipe(NamedTuple):
    """Rounds of generating over all texts, how often labelled public pairs are repeated, texts of

    every biography that are retold in a round, and a seed.
    """

    rounds: int = 4
    repeats: int = 2
    retold: int = 2
    seed: int = 7
    without: tuple[str, ...] = ()
    """Makes of public pairs that are left out, to see what they are worth."""


RECIPES = (Recipe(rounds=3, repeats=5), Recipe(rounds=4, repeats=2))
"""What the judges are fitted on of which ours is the mean: many times what people labelled, and
more of what was generated. The first errs less on people's sentences, the second on swapped facts.
"""


def build(files: Files, recipe: Recipe) -> list[Example]:
    """All training pairs in a random order that `recipe.seed` settles."""
    random = Random(recipe.seed)
    texts = list(_texts(files))
    names = Names()
    names.learn(texts)
    generated: list[Example] = []
    retold = biographies(files.biographies, 0) if files.biographies else []
    for _ in range(recipe.rounds):
        more = list(retold_texts(retold, random, recipe.retold))
        names.learn(more)
        for text in (*texts, *more):
            generated += examples_of(text, texts, names, random)
    found = balanced(generated, random)
    for _ in range(recipe.repeats):
        found += [e for e in _labelled(files, names, random) if e.make not in recipe.without]
    random.shuffle(found)
    return found


def held_out(example: Example) -> bool:
    """Whether a pair is kept for choosing the calibration: every twelfth group, by its name.

    Of statements that people judged there are few, so it is every sixth group of those.
    """
    share = 6 if example.group.startswith(("wikibio-", "stance-")) else 12
    return crc32(example.group.encode()) % share == 0


def _texts(files: Files) -> Iterator[Text]:
    measured_on = {row["article"] for row in statements("en")}
    for text in library_texts(LIBRARY / "en"):
        if text.name not in measured_on:
            yield text
    if files.articles:
        yield from _usable(list(article_texts(files.articles))[::2])
    if files.biographies:
        yield from _usable(list(biography_texts(biographies(files.biographies, 0))))
    if files.qa:
        yield from _usable(list(qa_texts(qa_records(files.qa, 0))))
    if files.facts:
        yield from _usable(list(facts_texts(facts(files.facts, 0))))


def _usable(texts: Sequence[Text]) -> list[Text]:
    return [text for text in texts if len(text.sentences) > 1]


def _labelled(files: Files, names: Names, random: Random) -> Iterator[Example]:
    answered = list(_answered(files, names, random))
    yield from answered
    yield from told_pairs(answered)
    if files.qa:
        asked = ((r.question, r.right_answer, r.knowledge) for r in qa_records(files.qa, 0))
        yield from same_pairs(list(asked), names, random)
    if files.biographies:
        yield from biography_pairs(biographies(files.biographies, 0))
    if files.stances:
        yield from stance_pairs(stances(files.stances, 0))
    if files.facts:
        yield from facts_pairs(facts(files.facts, 0), random)
    if files.articles:
        yield from same_pairs(list(article_questions(files.articles, 0)), names, random)
    if files.truthful:
        yield from truthful_pairs(files.truthful, 0, random)


def _answered(files: Files, names: Names, random: Random) -> Iterator[Example]:
    """Answers to questions, right and wrong, with what settles them."""
    if files.qa:
        yield from qa_pairs(qa_records(files.qa, 0), names, random)
    if files.articles:
        yield from article_pairs(files.articles, 0, names, random)
        yield from other_answer_pairs(files.articles, 0)

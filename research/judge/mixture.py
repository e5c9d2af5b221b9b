"""All pairs of a training: made by rule, of files that people labelled, and of two answers.

The same files and the same seed give the same pairs in the same order, in any process. They are
written once, beside the checkpoints, so that an interrupted training goes on with the same ones.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from hashlib import sha256
from pathlib import Path
from random import Random
from typing import Any, NamedTuple
from zlib import crc32

from pipelines.aio import write_whole
from pipelines.errors import failure
from pipelines.evaluation.datasets.opening import sample_rows
from research.judge import labelled
from research.judge.made import Names, contrasts_of, examples_of
from research.judge.model_answers import MAKE as MODEL_ANSWERS
from research.judge.model_answers import model_answer_pairs
from research.judge.shortcuts import balanced, shortcut_areas, statement_alone
from research.samples.chinese import chinese_pairs, chinese_questions
from research.samples.files import Sources, read_biographies, read_qa
from research.samples.pairs import (
    Text,
    TrainingPair,
    library,
    read_examples,
    text_of,
    write_examples,
)

_JUDGED_BY_PEOPLE = ("wikibio", "stance", "hard", "symmetric", "cited")
"""The makes whose statements and evidence people judged as they stand: there are few of them."""

_RARE = (*_JUDGED_BY_PEOPLE, MODEL_ANSWERS)
"""The makes that are never thinned by their number."""

_PEOPLE = tuple(f"{make}-" for make in _JUDGED_BY_PEOPLE)
"""How the groups of these begin."""

_TRAINING, _KEPT = "pairs.jsonl", "kept.jsonl"
CARD = "mixture.json"
"""The record of the pairs of a training, in its folder (`described`)."""


class Mixture(NamedTuple):
    """How much of what.

    `rounds` of pairs made by rule over all texts, each with `retold` of GPT-3's other samples of
    every biography; `contrasts` rounds of fours; `repeats` of the public files with answers, facts
    and biographies; `people` rounds of the claims that people judged; `answers` rounds of pairs of
    two answers; `chinese` rounds of Chinese questions about a passage. Of all these, equal pairs
    are kept at most `again` times, and of a make of pairs at most `most` are kept, unless people
    judged them or a model wrote both answers; 0 keeps all.
    """

    rounds: int = 2
    retold: int = 2
    contrasts: int = 2
    repeats: int = 3
    people: int = 5
    answers: int = 2
    chinese: int = 0
    again: int = 0
    most: int = 0
    seed: int = 7


class Pairs(NamedTuple):
    """Pairs to train on and pairs held out; no group is in both."""

    training: list[TrainingPair]
    kept: list[TrainingPair]


def held_out(group: str) -> bool:
    """Return whether a group is in no training pair: every twelfth, of what people judged every
    sixth."""
    return crc32(group.encode()) % (6 if group.startswith(_PEOPLE) else 12) == 0


def mixed(sources: Sources, mixture: Mixture) -> Pairs:
    """Return the pairs of a mixture, in a random order given by its seed."""
    found = Pairs([], [])
    for pair in _built(sources, mixture):
        found[held_out(pair.group)].append(pair)
    return found._replace(training=thinned(found.training, mixture))


def thinned(pairs: Sequence[TrainingPair], mixture: Mixture) -> list[TrainingPair]:
    """Return the first pairs that `again` and `most` of the mixture keep, in their order."""
    equal: Counter[TrainingPair] = Counter()
    of_make: Counter[str] = Counter()
    found: list[TrainingPair] = []
    for pair in pairs:
        rare = pair.make in _RARE
        if mixture.again and equal[pair] == mixture.again:
            continue
        if mixture.most and not rare and of_make[pair.make] == mixture.most:
            continue
        equal[pair] += 1
        of_make[pair.make] += not rare
        found.append(pair)
    return found


def training_texts(files: Sources) -> Iterator[Text]:
    """Yield the texts that pairs are made from: of the library those that no statement is about."""
    measured_on = {row["article"] for row in sample_rows("statements.csv", "en")}
    for article in library("en"):
        if article.id not in measured_on:
            yield text_of(article.id, article.title, article.text)
    texts = (
        *list(labelled.article_texts(files.articles))[::2],
        *labelled.biography_texts(read_biographies(files.biographies, 0)),
        *labelled.qa_texts(read_qa(files.qa)[::2]),
        *labelled.facts_texts(files.facts, 0),
    )
    yield from (text for text in texts if len(text.sentences) > 1)


def _built(sources: Sources, mixture: Mixture) -> list[TrainingPair]:
    random = Random(mixture.seed)
    texts = list(training_texts(sources))
    names = Names()
    names.learn(texts)
    biographies = read_biographies(sources.biographies, 0)
    made: list[TrainingPair] = []
    for _ in range(mixture.rounds):
        more = list(labelled.resampled_texts(biographies, random, mixture.retold))
        names.learn(more)
        for text in (*texts, *more):
            made += examples_of(text, texts, names, random)
    found = balanced(made, random) if made else []
    for _ in range(mixture.contrasts):
        for text in texts:
            found += contrasts_of(text, texts, names, random)
    for _ in range(mixture.repeats):
        found += labelled.labelled_pairs(sources, names, random)
    for _ in range(mixture.people):
        found += labelled.people_pairs(sources, random)
    for _ in range(mixture.answers):
        found += labelled.answer_pairs(sources, names, random)
    found += model_answer_pairs(sources.model_answers, names)
    asked = chinese_questions(sources.chinese_questions, sources.chinese_articles, 0)
    for _ in range(mixture.chinese):
        found += chinese_pairs(asked, random)
    random.shuffle(found)
    return found


def described(pairs: Pairs, mixture: Mixture) -> dict[str, Any]:
    """Return how many pairs of which labels and makes, and how far shortcuts would get on held-out
    ones.

    "words of the statement alone" is what the claim alone tells, 0.5 being nothing: of all pairs,
    and of each family of makes that has 50 held-out pairs of both kinds.
    """
    areas: dict[str, Any] = {}
    if both_kinds(pairs.kept) and both_kinds(pairs.training):
        areas = dict(shortcut_areas(pairs.kept))
        for side in ("statement", "evidence"):
            areas[f"words of the {side} alone"] = statement_alone(pairs.training, pairs.kept, side)
        areas["words of the statement alone, by make"] = {
            make: statement_alone(trained, kept)
            for make in sorted({_family(pair) for pair in pairs.kept})
            if len(kept := [p for p in pairs.kept if _family(p) == make]) >= 50
            and both_kinds(kept)
            and both_kinds(trained := [p for p in pairs.training if _family(p) == make])
        }
    return {
        "mixture": mixture._asdict(),
        "digest": digest(pairs),
        "trained on": len(pairs.training),
        "kept back": len(pairs.kept),
        "labels": dict(Counter(pair.label for pair in pairs.training).most_common()),
        "makes": dict(Counter(pair.make for pair in pairs.training).most_common()),
        "areas under the curve of shortcuts": areas,
    }


def _family(pair: TrainingPair) -> str:
    return pair.make.split("-")[0]


def both_kinds(pairs: Sequence[TrainingPair]) -> bool:
    """Return whether some of `pairs` are supported, and some are not."""
    return len({pair.supported for pair in pairs}) == 2


def digest(pairs: Pairs) -> str:
    """Return a checksum of all pairs in their order."""
    found = sha256()
    for pair in (*pairs.training, *pairs.kept):
        found.update(pair.model_dump_json().encode())
    return found.hexdigest()[:16]


def written(folder: Path, sources: Sources, mixture: Mixture) -> Pairs:
    """Return the pairs of `folder`; made and written there by the first call.

    Raises InvalidInputError when the folder holds the pairs of another mixture.
    """
    card = folder / CARD
    if card.is_file():
        known = json.loads(card.read_text(encoding="utf-8"))
        if known["mixture"] != mixture._asdict():
            raise failure("research.other_mixture", folder=folder)
        return Pairs(read_examples(folder / _TRAINING), read_examples(folder / _KEPT))
    folder.mkdir(parents=True, exist_ok=True)
    pairs = mixed(sources, mixture)
    write_examples(folder / _TRAINING, pairs.training)
    write_examples(folder / _KEPT, pairs.kept)
    # Last: without it, an interruption makes the pairs anew.
    write_whole(card, json.dumps(described(pairs, mixture), indent=2) + "\n")
    return pairs

"""What a judge is measured on: odd-numbered records of public files, and texts with made errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from random import Random
from typing import Any, NamedTuple

from pipelines.calibrate.curves import auroc
from pipelines.training.examples import Example
from pipelines.training.public import (
    Half,
    biographies,
    biography_pairs,
    stance_pairs,
    stances,
)
from pipelines.training.public_answers import (
    article_pairs,
    article_texts,
    qa_pairs,
    qa_records,
    qa_texts,
)
from pipelines.training.recipe import Files
from pipelines.training.report import Probabilities, Scorer, binary, three_way
from pipelines.training.swaps import Names

__all__ = ["Suite", "equal_length_auroc", "measure", "suites"]


class Suite(NamedTuple):
    """Pairs of one make. `three_way` says that contradiction and gap are told apart in them."""

    name: str
    examples: list[Example]
    three_way: bool = False


def suites(files: Files, half: Half) -> Iterator[Suite]:
    """Every suite for which there is a file; half 1 is the one to report on."""
    if files.biographies:
        pairs = biography_pairs(biographies(files.biographies, half))
        yield Suite("biographies", list(pairs))
    if files.qa:
        records = qa_records(files.qa, half)
        names = Names()
        names.learn(qa_texts(records))
        pairs = list(qa_pairs(records, names, Random(11)))
        yield Suite("answers", [one for one in pairs if one.make == "qa"])
        alike = {one.group for one in pairs if one.make == "qa-span"}
        right_or_other = [
            one
            for one in pairs
            if one.group in alike
            and (one.make == "qa-span" or (one.make == "qa" and one.label == "supported"))
        ]
        yield Suite("answers of the same kind", right_or_other)
    if files.stances:
        yield Suite("stances", list(stance_pairs(stances(files.stances, half))), three_way=True)
    if files.articles:
        names = Names()
        names.learn(article_texts(files.articles))
        pairs = article_pairs(files.articles, half, names, Random(11))
        yield Suite("questions on articles", list(pairs), three_way=True)


def measure(suite: Suite, scorer: Scorer) -> dict[str, Any]:
    """What `scorer` reaches on a suite."""
    said = scorer(suite.examples)
    found = binary(suite.examples, said)
    if suite.name == "answers":
        found["auroc_equal_length"] = equal_length_auroc(suite.examples, said)
    if suite.three_way:
        found |= three_way(suite.examples, said)
        found["auroc_supported_or_contradicted"] = _supported_or_contradicted(suite, said)
    return found


def equal_length_auroc(examples: Sequence[Example], said: Probabilities) -> float:
    """How often a right answer is above a wrong one of the same number of words.

    Over all such pairs, whichever questions they answer; ties count half.
    """
    by_length: dict[int, tuple[list[float], list[float]]] = defaultdict(lambda: ([], []))
    for example, row in zip(examples, said, strict=True):
        side = 0 if example.label == "supported" else 1
        by_length[len(example.statement.split())][side].append(float(row[0]))
    above = total = 0.0
    for right, wrong in by_length.values():
        for one in right:
            above += sum(1.0 if one > other else 0.5 * (one == other) for other in wrong)
        total += len(right) * len(wrong)
    return round(above / total, 4) if total else 0.0


def _supported_or_contradicted(suite: Suite, said: Probabilities) -> float:
    decided = [
        (float(row[0] - row[1]), example.label == "supported")
        for example, row in zip(suite.examples, said, strict=True)
        if example.label in ("supported", "contradicted")
    ]
    scores, right = zip(*decided, strict=True)
    return round(auroc(list(scores), list(right)), 4)

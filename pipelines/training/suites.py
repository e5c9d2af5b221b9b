"""What a judge is measured on: odd-numbered public records, and our own hand-made errors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple, cast

from pipelines.calibrate.curves import auroc
from pipelines.models.base import Claim
from pipelines.training.examples import Example, Label
from pipelines.training.public import (
    Half,
    biographies,
    biography_pairs,
    facts,
    facts_pairs,
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
)
from pipelines.training.recipe import Files
from pipelines.training.report import Probabilities, binary, reliability, three_way
from pipelines.training.rewrites import asked_about
from pipelines.training.swaps import Names
from pipelines.training.texts import LIBRARY, article_body, statements
from pipelines.types import Language

__all__ = [
    "Suite",
    "equal_length_auroc",
    "measure",
    "statement_pairs",
    "suites",
]


class Suite(NamedTuple):
    """Pairs of one make. `three_way` says that contradiction and gap are told apart in them."""

    name: str
    examples: list[Example]
    three_way: bool = False

    def claims(self) -> list[Claim]:
        """What a judge is asked."""
        return [example.claim for example in self.examples]


def suites(files: Files, half: Half, chinese: Path | None = None) -> Iterator[Suite]:
    """Every suite for which there is a file; half 1 is the one to report on.

    `chinese` is the Chinese version of the articles. Our own statements belong to half 1, and so
    does what can be asked of them and of the biographies to be answered yes or no, as EVER asks.
    """
    lives: list[Example] = []
    if files.biographies:
        lives += biography_pairs(biographies(files.biographies, half))
        yield Suite("biographies", lives)
    if files.qa:
        yield from _answers(files.qa, half)
    if files.stances:
        yield Suite("stances", list(stance_pairs(stances(files.stances, half))), three_way=True)
    if files.facts:
        pairs = list(facts_pairs(facts(files.facts, half), Random(11)))
        yield Suite("facts", [one for one in pairs if one.label != "not_enough"])
    if files.articles:
        yield from _articles(files.articles, half)
    if chinese:
        pairs = list(other_answer_pairs(chinese, half))
        yield Suite("other_answers_zh", pairs)
    if half == 1:
        ours = list(statement_pairs("en"))
        yield Suite("library", ours, three_way=True)
        yield Suite("library_zh", list(statement_pairs("zh")), three_way=True)
        yield Suite("yes_or_no", list(_asked([*ours, *lives])))


def _answers(path: Path, half: Half) -> Iterator[Suite]:
    records = qa_records(path, half)
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
    yield Suite("answers_same_kind", right_or_other)


def _articles(path: Path, half: Half) -> Iterator[Suite]:
    names = Names()
    names.learn(article_texts(path))
    pairs = list(article_pairs(path, half, names, Random(11)))
    yield Suite("articles", pairs, three_way=True)
    same = list(same_pairs(list(article_questions(path, half)), names, Random(11)))
    yield Suite("two_answers", same)
    yield Suite("other_answers", list(other_answer_pairs(path, half)))


def _asked(examples: Iterable[Example]) -> Iterator[Example]:
    """Those whose statements can be put as questions, so put."""
    for example in examples:
        if asked := asked_about(example.statement):
            yield example.model_copy(update={"statement": asked})


def statement_pairs(language: Language) -> Iterator[Example]:
    """Our own statements, each against its article."""
    for row in statements(language):
        yield Example(
            evidence=article_body(LIBRARY / language / f"{row['article']}.md"),
            statement=row["statement"],
            label=cast("Label", row["label"]),
            make=row["kind"],
            group=row["article"],
        )


def measure(suite: Suite, said: Probabilities) -> dict[str, Any]:
    """What `said`, shape [examples, 3], is worth on a suite."""
    found = binary(suite.examples, said)
    right = [example.label == "supported" for example in suite.examples]
    found["reliability"] = [
        [round(p, 4), round(share, 4), count] for p, share, count in reliability(said[:, 0], right)
    ]
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

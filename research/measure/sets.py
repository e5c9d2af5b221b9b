"""The suites of half of all records, ours and the public ones, as pairs with their labels."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple, cast

from pipelines.base import SAMPLE_DATA, Language
from pipelines.evaluation.datasets.opening import sample_rows
from pipelines.models.base import Claim
from research.judge import labelled
from research.judge.made import Names, contrasts_of
from research.judge.mixture import held_out
from research.judge.rewriting import as_question
from research.samples.claims import (
    cited_claims,
    climate_claims,
    hard_claims,
    refuted_claims,
    symmetric_claims,
)
from research.samples.files import Half, Sources, read_biographies, read_qa
from research.samples.pairs import Label, TrainingPair, library, paired

_NOTHING_SAID = "Nothing else is known about it."
_SPAN_TEXTS = 60
_SEED = 11

WORDS = ("spans", "refuted words")
"""The suites whose wrong words are labelled."""

_SHARING = {"hard", "symmetric", "cited", "stances"}


class Suite(NamedTuple):
    """Pairs of one kind.

    With `three_way` their labels tell contradiction from silence. `people` wrote the statements.
    """

    name: str
    examples: Sequence[TrainingPair]
    three_way: bool = False
    people: bool = False

    @property
    def claims(self) -> list[Claim]:
        """What a judge is asked."""
        return [example.claim for example in self.examples]

    @property
    def alone(self) -> list[Claim]:
        """The same with evidence that says nothing: what the claim alone tells."""
        return [
            claim.model_copy(update={"evidence": (_NOTHING_SAID,)})
            for claim in self.claims
            if claim.relation == "support"
        ]


def suites(files: Sources, half: Half, chinese: Path | None = None) -> list[Suite]:
    """Return the suites that the models' pages show; half 1 is the one to report on.

    `chinese` is the Chinese version of the articles. Our own statements belong to half 1, and so do
    the yes-or-no questions, as EVER asks them, made from these statements and the biographies.
    """
    lives = list(labelled.biography_pairs(read_biographies(files.biographies, half)))
    facts = labelled.facts_pairs(files.facts, half, Random(_SEED))
    names = Names()
    names.learn(labelled.article_texts(files.articles))
    articles = labelled.article_pairs(files.articles, half, names, Random(_SEED))
    asked = labelled.article_questions(files.articles, half)
    stances = list(labelled.stance_pairs(files.stances, half))
    found = [
        Suite("biographies", lives, people=True),
        *_answers(files.qa, half),
        Suite("stances", stances, three_way=True, people=True),
        Suite("facts", [one for one in facts if one.label != "not_enough"]),
        Suite("articles", list(articles), three_way=True),
        Suite("two_answers", list(labelled.same_pairs(asked, names, Random(_SEED)))),
        Suite("other_answers", list(labelled.other_answer_pairs(files.articles, half))),
        Suite("other_answers_zh", list(labelled.other_answer_pairs(chinese, half))),
    ]
    if half == 1:
        ours = list(library_pairs("en"))
        questions = [
            example.model_copy(update={"statement": question})
            for example in (*ours, *lives)
            if (question := as_question(example.statement))
        ]
        found += [
            Suite("library", ours, three_way=True, people=True),
            Suite("library_zh", list(library_pairs("zh")), three_way=True),
            Suite("yes_or_no", questions),
        ]
    return [suite for suite in found if suite.examples]


def _answers(path: Path | None, half: Half) -> Iterator[Suite]:
    records = read_qa(path)[half::2]
    names = Names()
    names.learn(labelled.qa_texts(records))
    pairs = list(labelled.qa_pairs(records, names, Random(_SEED)))
    published = [one for one in pairs if one.make == "qa"]
    yield Suite("answers", published)
    spans = {one.group: one for one in pairs if one.make == "qa-span"}
    right = [one for one in published if one.supported and one.group in spans]
    same_kind = [one for pair in right for one in (pair, spans[pair.group])]
    yield Suite("answers_same_kind", same_kind)


def library_pairs(language: Language) -> Iterator[TrainingPair]:
    """Yield the hand-made statements about the sample library, each with its article."""
    articles = {article.id: article.text for article in library(language)}
    for row in sample_rows("statements.csv", language):
        label, name = cast("Label", row["label"]), row["article"]
        yield paired(articles[name], row["statement"], label, row["kind"], name)


def odd_suites(sources: Sources) -> list[Suite]:
    """Return every suite for which there is a file."""
    claims = {
        "hard": hard_claims(sources.hard, 1),
        "symmetric": symmetric_claims(sources.symmetric, 1),
        "cited": cited_claims(sources.cited, 1),
        "climate": climate_claims(sources.climate, 1),
    }
    people = [
        Suite(
            name,
            [paired(" ".join(c.evidence), c.claim, c.label, name, c.group) for c in of],
            people=True,
        )
        for name, of in claims.items()
    ]
    found = [
        *suites(sources, 1),
        *people,
        Suite("answers by hand", answers_by_hand(), people=True),
        Suite("spans", span_examples(sources)),
        Suite("refuted words", list(_refuted(sources)), people=True),
    ]
    return [suite for suite in found if suite.examples]


def never_seen(suite: Suite) -> list[bool]:
    """Return, of every pair, whether the training has no pair that shares a text with it.

    Odd records share claims and pages with even ones. Those of groups that are held out do not.
    Nothing is said of suites whose groups are not those of training: an empty list.
    """
    return [held_out(one.group) for one in suite.examples] if suite.name in _SHARING else []


def answers_by_hand() -> list[TrainingPair]:
    """Return the hundred pairs of answers of the sample data, each in one direction."""
    pairs = json.loads((SAMPLE_DATA / "answer_pairs.json").read_text(encoding="utf-8"))
    return [
        paired(
            one["second"],
            one["first"],
            "supported" if one["same"] else "contradicted",
            "by hand",
            f"by hand-{number}",
            question=one["question"],
            relation="same",
        )
        for number, one in enumerate(pairs)
    ]


def span_examples(files: Sources) -> list[TrainingPair]:
    """Return statements with one change, whose place is known, against odd paragraphs."""
    texts = list(labelled.article_texts(files.articles))[1::2][:_SPAN_TEXTS]
    names, random = Names(), Random(_SEED)
    names.learn(texts)
    made = (pair for text in texts for pair in contrasts_of(text, texts, names, random))
    return [pair for pair in made if pair.wrong is not None]


def _refuted(files: Sources) -> Iterator[TrainingPair]:
    """Yield claims with the words that their evidence refutes, and their twins without any."""
    for one in refuted_claims(files.symmetric, 1):
        twins: tuple[tuple[str, Label, object], ...] = (
            (one.claim, "contradicted", one.wrong),
            (one.twin, "supported", ()),
        )
        for statement, label, wrong in twins:
            yield paired(one.evidence, statement, label, "symmetric", one.group, wrong=wrong)

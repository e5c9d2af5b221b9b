"""The suites of odd-numbered records, ours and the public ones, as examples with their labels."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from pipelines.models.base import Claim
from pipelines.paths import SAMPLE_DATA
from pipelines.research.claims import (
    LabelledClaim,
    RefutedClaim,
    cited_claims,
    climate_claims,
    hard_claims,
    refuted_claims,
    stance_groups,
    symmetric_claims,
)
from pipelines.research.judges.scoring import open_halves
from pipelines.research.long_training.answers import hand_written
from pipelines.research.long_training.contrasts import contrasts_of
from pipelines.research.long_training.mixture import held_out
from pipelines.research.sources import Sources
from pipelines.research.training import public
from pipelines.research.training.examples import Label, Span, TrainingPair
from pipelines.research.training.generated import Names
from pipelines.research.training.report import suites as earlier_suites
from pipelines.text import split_sentences

_NOTHING_SAID = "Nothing else is known about it."
_SPAN_TEXTS = 60

WORDS = ("spans", "refuted words")
"""The suites whose wrong words are labelled."""


class Suite(NamedTuple):
    """Pairs of one kind.

    With `three_way` their labels tell contradiction from silence. Of a suite `by_group`, an answer
    is a group, which is as supported as its weakest sentence. `even` are such pairs of the even
    half, on which a threshold for F1 is chosen. `people` wrote the statements.
    """

    name: str
    examples: tuple[TrainingPair, ...]
    three_way: bool = False
    by_group: bool = False
    even: tuple[TrainingPair, ...] = ()
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


_PEOPLE = {"biographies", "stances", "library"}
_SHARING = {"hard", "symmetric", "cited", "stances"}


def odd_suites(sources: Sources, more: Sequence[Path] = ()) -> list[Suite]:
    """Return every suite for which there is a file, and one for each file of `more`.

    Those are data sets as the evaluation reads them, with labelled texts and evidence, such as
    RAGTruth's; of their items the odd ones are measured, and thresholds come from the even ones.
    """
    found = [
        Suite(
            one.name,
            tuple(_grouped(one.examples, sources) if one.name == "stances" else one.examples),
            one.three_way,
            people=one.name in _PEOPLE,
        )
        for one in earlier_suites(sources, 1)
    ]
    people: dict[str, list[LabelledClaim]] = {
        "hard": hard_claims(sources.hard, 1),
        "symmetric": symmetric_claims(sources.symmetric, 1),
        "cited": cited_claims(sources.cited, 1),
        "climate": climate_claims(sources.climate, 1),
    }
    found += [
        Suite(name, tuple(_examples(name, claims)), people=True) for name, claims in people.items()
    ]
    found += [
        Suite("answers by hand", tuple(answers_by_hand()), people=True),
        Suite("spans", tuple(span_examples(sources))),
        Suite("refuted words", tuple(_refuted(sources)), people=True),
        *(_of_file(path) for path in more),
    ]
    return [suite for suite in found if suite.examples]


def never_seen(suite: Suite) -> list[bool]:
    """Return, of every pair, whether the long training has no pair that shares a text with it.

    Odd records share claims and pages with even ones. Those of groups that are held out do not.
    Nothing is said of suites whose groups are not those of training: an empty list.
    """
    if suite.name not in _SHARING:
        return []
    return [held_out(one.group) for one in suite.examples]


def answers_by_hand() -> list[TrainingPair]:
    """Return the hundred pairs of answers of the sample data."""
    path = SAMPLE_DATA / "answer_pairs.json"
    return list(hand_written(json.loads(path.read_text(encoding="utf-8"))))


def span_examples(files: Sources) -> list[TrainingPair]:
    """Return statements with one change, whose place is known, against odd paragraphs of
    articles.
    """
    texts = list(public.article_texts(files.articles))[1::2][:_SPAN_TEXTS]
    if not texts:
        return []
    names = Names()
    names.learn(texts)
    random = Random(11)
    made = [pair for text in texts for pair in contrasts_of(text, texts, names, random)]
    return [pair for pair in made if pair.wrong is not None]


def _refuted(files: Sources) -> list[TrainingPair]:
    """Return claims with the words that their evidence refutes, and their twins without any
    such word.
    """
    said: list[tuple[RefutedClaim, str, Label, tuple[Span, ...]]] = []
    for one in refuted_claims(files.symmetric, 1):
        said += [(one, one.claim, "contradicted", one.wrong), (one, one.twin, "supported", ())]
    return [
        TrainingPair(
            evidence=one.evidence,
            statement=statement,
            label=label,
            make="symmetric",
            group=one.group,
            wrong=wrong,
        )
        for one, statement, label, wrong in said
    ]


def _examples(make: str, claims: Sequence[LabelledClaim]) -> list[TrainingPair]:
    return [
        TrainingPair(
            evidence=" ".join(one.evidence),
            statement=one.claim,
            label=one.label,
            make=make,
            group=one.group,
        )
        for one in claims
    ]


def _grouped(examples: Sequence[TrainingPair], sources: Sources) -> list[TrainingPair]:
    groups = stance_groups(sources.stances)
    return [
        one.model_copy(update={"group": groups[one.group.removeprefix("stance-")]})
        for one in examples
    ]


def _of_file(path: Path) -> Suite:
    """Return a data set of labelled texts: each sentence of a text is a pair, and the text
    their group.
    """
    halves = open_halves(path)
    even, odd = (
        tuple(
            TrainingPair(
                evidence="\n\n".join(passage.text for passage in item.passages),
                statement=sentence.text,
                label="unsupported" if item.hallucinated else "supported",
                make=path.stem,
                group=f"{path.stem}-{half}-{number}",
            )
            for number, item in enumerate(items)
            for sentence in split_sentences(item.text)
        )
        for half, items in enumerate((halves.even, halves.odd))
    )
    return Suite(path.stem, odd, by_group=True, even=even, people=True)

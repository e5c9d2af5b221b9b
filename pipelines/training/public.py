"""Public data files as texts and pairs. Even-numbered records to fit on, odd ones to report on.

Records are counted from 0 in file order. Nothing of these files is part of this project; they are
read where they are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Literal

from pydantic import BaseModel, ConfigDict

from pipelines.calibrate.records import read_records
from pipelines.errors import InvalidInputError
from pipelines.training.examples import Example, Label
from pipelines.training.texts import Text, text_of

__all__ = [
    "Biography",
    "Half",
    "StanceRecord",
    "biographies",
    "biography_pairs",
    "biography_texts",
    "facts",
    "facts_pairs",
    "facts_texts",
    "retold_texts",
    "stance_pairs",
    "stances",
    "unusable",
]

Half = Literal[0, 1]
"""Which records: 0 the even-numbered ones, 1 the odd-numbered ones."""

_STANCES: dict[str, Label] = {
    "completely-support": "supported",
    "partially-support": "supported",
    "refute": "contradicted",
    "irrelevant": "not_enough",
}


class _Record(BaseModel):
    model_config = ConfigDict(frozen=True, extra="ignore")


class Biography(_Record):
    """What GPT-3 wrote about somebody, sentence by sentence annotated, and the article on them."""

    concept: str
    gpt3_sentences: tuple[str, ...]
    annotation: tuple[str, ...]
    wiki_bio_text: str
    gpt3_text_samples: tuple[str, ...] = ()


class StanceRecord(_Record):
    """A claim, a piece of a web page, and what the one says about the other."""

    claim: str
    evidence: str
    stance: str


class Facts(_Record):
    """A question to be answered yes (True) or no, and what settles it."""

    question: str
    answer: bool
    facts: tuple[str, ...]


def biographies(path: Path, half: Half) -> list[Biography]:
    """Half of a file in the form of SelfCheckGPT's WikiBio."""
    return read_records(path, Biography, unusable)[half::2]


def biography_texts(records: Sequence[Biography]) -> Iterator[Text]:
    """Their articles."""
    for record in records:
        yield text_of(f"wikibio-{record.concept}", _name(record), record.wiki_bio_text)


def retold_texts(records: Sequence[Biography], random: Random, each: int) -> Iterator[Text]:
    """What GPT-3 wrote when asked again, `each` of a record: texts in the style to be judged."""
    for record in records:
        samples = random.sample(record.gpt3_text_samples, min(each, len(record.gpt3_text_samples)))
        for number, sample in enumerate(samples):
            name = f"wikibio-{record.concept}"
            yield text_of(f"{name}-{number}", _name(record), sample, name)


def _name(record: Biography) -> str:
    """The name without what tells it from others of that name, which stands in "-lrb-"."""
    return record.concept.partition(" -lrb-")[0].title()


def biography_pairs(records: Sequence[Biography]) -> Iterator[Example]:
    """Every annotated sentence against its article; an inaccurate one is "unsupported"."""
    for record in records:
        for sentence, said in zip(record.gpt3_sentences, record.annotation, strict=False):
            yield Example(
                evidence=record.wiki_bio_text,
                statement=" ".join(sentence.split()),
                label="supported" if said == "accurate" else "unsupported",
                make="wikibio",
                group=f"wikibio-{record.concept}",
                wrong=() if said == "accurate" else None,
            )


def stances(path: Path, half: Half) -> list[StanceRecord]:
    """Half of a file of claims and evidence with stances."""
    return read_records(path, StanceRecord, unusable)[half::2]


def stance_pairs(records: Sequence[StanceRecord]) -> Iterator[Example]:
    """Claims against evidence; full and partial support are both support."""
    for record in records:
        yield Example(
            evidence=" ".join(record.evidence.split()),
            statement=record.claim.strip(),
            label=_STANCES[record.stance],
            make="stance",
            group=f"stance-{record.claim}",
        )


def facts(path: Path, half: Half) -> list[Facts]:
    """Half of a file in the form of StrategyQA: questions with facts."""
    return [one for one in read_records(path, Facts, unusable)[half::2] if one.facts]


def facts_texts(records: Sequence[Facts]) -> Iterator[Text]:
    """The facts of a question, taken for a text."""
    for number, record in enumerate(records):
        yield text_of(f"facts-{number}", "", _joined(record.facts))


def facts_pairs(records: Sequence[Facts], random: Random) -> Iterator[Example]:
    """Every question against its facts, which say yes or no, and against those of another."""
    for number, record in enumerate(records):
        foreign = random.choice(records)
        labelled: list[tuple[Label, Facts]] = [
            ("supported" if record.answer else "contradicted", record)
        ]
        if foreign is not record and random.random() < 0.5:
            labelled.append(("not_enough", foreign))
        for label, told in labelled:
            yield Example(
                evidence=_joined(told.facts),
                statement=record.question,
                label=label,
                make="facts",
                group=f"facts-{number}",
            )


def _joined(told: Sequence[str]) -> str:
    return " ".join(_closed(fact) for fact in told if fact.strip())


def _closed(fact: str) -> str:
    fact = " ".join(fact.split())
    return fact if fact[-1:] in ".!?" else f"{fact}."


def unusable(reason: str) -> InvalidInputError:
    """The error for a file that is not of the form it should have."""
    return InvalidInputError(
        f"A data file cannot be used: {reason}.",
        remedy="Look up which fields the file must have: python -m pipelines.training --help.",
    )

"""Two answers to one question: a name, a sentence, a sentence with more; the same or another one.

Two answers are the same when they answer the question alike. Which of the two says more does not
matter, so every pair is there in both directions.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from random import Random
from typing import NamedTuple

from pipelines.evaluation.datasets.files import read_text
from pipelines.evaluation.datasets.questions import Facts
from pipelines.evaluation.datasets.records import read_records
from pipelines.evaluation.datasets.texts import ConsistencyRecord
from pipelines.research.claims import Aliases
from pipelines.research.data import Half, read_qa
from pipelines.research.long_training.far import far_from
from pipelines.research.long_training.numerals import dates_changed, numbers_changed
from pipelines.research.sources import Sources
from pipelines.research.training.examples import TrainingPair, text_of
from pipelines.research.training.generated import Names
from pipelines.research.training.public import article_questions, wrong_answer
from pipelines.research.training.rewriting import as_statement

_MAX_WORDS = 12
"""Words of an answer that counts as short."""

_FORMS = (
    *("{0}", "{0}", "{0}.", "It is {0}.", "It was {0}.", "The answer is {0}.", "That is {0}."),
    *("{0}, as far as I know.", "I think it is {0}.", "Most likely {0}.", "{0} is the answer."),
)
_REASONS = (
    *(" This is well documented.", " That is what the sources say.", " Many people ask about it."),
    *(" It is often mentioned in books.", " There is little doubt about it.", ""),
)


class AnsweredQuestion(NamedTuple):
    """A question, its right answer, a text with the answer, and the name of what belongs to it."""

    question: str
    answer: str
    text: str
    group: str


def answer_pairs(sources: Sources, names: Names, random: Random) -> Iterator[TrainingPair]:
    """Yield pairs of the even half of all files with questions and answers."""
    for one in asked_of(sources):
        yield from short_and_long(one, names, random)
    yield from _generated_answers(sources.consistency, 0)
    yield from _aliases(sources.trivia, 0, random)
    yield from _yes_or_no(sources.facts, 0, random)


def asked_of(sources: Sources) -> list[AnsweredQuestion]:
    """Return the questions of the even half of HaluEval and of the articles."""
    asked = [
        AnsweredQuestion(one.question, one.right_answer, one.knowledge, f"qa-{number}")
        for number, one in enumerate(read_qa(sources.qa)[::2])
    ]
    return asked + [
        AnsweredQuestion(question, answer, text, f"same-article-{number}")
        for number, (question, answer, text) in enumerate(article_questions(sources.articles, 0))
    ]


def short_and_long(asked: AnsweredQuestion, names: Names, random: Random) -> Iterator[TrainingPair]:
    """Yield the right answer and a wrong one of its kind, each short, as a sentence, and
    with more.
    """
    if len(asked.answer.split()) > _MAX_WORDS:
        return
    wrong = wrong_answer(asked.answer, asked.text, names, random)
    if wrong is None or _alike(wrong, asked.answer):
        return
    right_forms = _said(asked, asked.answer, random)
    wrong_forms = _said(asked, wrong, random)
    for _ in range(2):
        first, second = random.sample(right_forms, 2)
        yield from both_ways(asked.question, first, second, same=True, group=asked.group)
        first, second = random.choice(right_forms), random.choice(wrong_forms)
        yield from both_ways(asked.question, first, second, same=False, group=asked.group)


def _said(asked: AnsweredQuestion, answer: str, random: Random) -> list[str]:
    """Return ways to give `answer`, from the bare name to a sentence with details; two at least."""
    bare = answer.strip().rstrip(".")
    found = [bare, random.choice(_FORMS[2:]).format(bare)]
    for change in (numbers_changed, dates_changed):
        if (other := change(bare, random)) is not None:
            found.append(other)
    told = as_statement(asked.question, bare)
    if told is not None:
        found += [told, far_from(told, random), told + random.choice(_REASONS)]
    holding = [s for s in text_of("", "", asked.text).sentences if asked.answer in s]
    if holding:
        sentence = random.choice(holding).replace(asked.answer, bare)
        found += [sentence, f"{bare}. {sentence}"]
    return list(dict.fromkeys(found))


def both_ways(
    question: str, first: str, second: str, *, same: bool, group: str, make: str = "answers"
) -> Iterator[TrainingPair]:
    """Yield the two answers as a pair in either direction."""
    for statement, other in ((first, second), (second, first)):
        yield TrainingPair(
            evidence=other,
            statement=statement,
            label="supported" if same else "contradicted",
            make=make,
            group=group,
            question=question,
            relation="same",
        )


def _generated_answers(path: Path | None, half: Half) -> Iterator[TrainingPair]:
    """Yield from SAC3 the sentence that a model wrote against the right and a
    hallucinated answer.
    """
    for number, record in enumerate(_consistency(path)):
        if number % 2 != half:
            continue
        group, question = f"consistency-{number}", record.question
        right = str(record.label).strip().lower() == "true"
        said, reference = record.generated_answer.strip(), record.right_answer.strip()
        yield from both_ways(question, said, reference, same=right, group=group)
        wrong = record.hallucinated_answer.strip()
        if wrong and right:
            yield from both_ways(question, said, wrong, same=False, group=group)


def _consistency(path: Path | None) -> list[ConsistencyRecord]:
    if path is None:
        return []
    import json

    return [ConsistencyRecord.model_validate(row) for row in json.loads(read_text(path))]


def aliased(path: Path | None, half: Half) -> list[tuple[str, list[str], str]]:
    """Return questions of TriviaQA, the names of their one answer, the name of what
    belongs to it.
    """
    return [
        (record.question, list(dict.fromkeys(record.answers)), f"trivia-{number}")
        for number, record in enumerate(read_records(path, Aliases)[half::2])
    ]


def _aliases(path: Path | None, half: Half, random: Random) -> Iterator[TrainingPair]:
    """Yield two names of the one answer, and the name of another question's answer."""
    records = aliased(path, half)
    for question, known, group in records:
        if len(known) > 1:
            one, other = random.sample(known, 2)
            yield from both_ways(question, one, other, same=True, group=group)
        _, foreign, whose = random.choice(records)
        if whose != group and not set(foreign) & set(known):
            one, other = random.choice(known), random.choice(foreign)
            yield from both_ways(question, one, other, same=False, group=group)


def _yes_or_no(path: Path | None, half: Half, random: Random) -> Iterator[TrainingPair]:
    """Yield from StrategyQA yes and no, alone and with the facts, which are a reason for one
    of them.
    """
    for number, record in enumerate(read_records(path, Facts)[half::2]):
        if not record.facts or random.random() < 0.5:
            continue
        group = f"facts-{number}"
        right, wrong = ("Yes", "No") if record.answer else ("No", "Yes")
        facts = " ".join(f.strip().rstrip(".") + "." for f in record.facts if f.strip())
        long = f"{right}. {facts}" if random.random() < 0.5 else f"{right}, because {_low(facts)}"
        yield from both_ways(record.question, f"{right}.", long, same=True, group=group)
        yield from both_ways(record.question, f"{wrong}.", long, same=False, group=group)


def _low(text: str) -> str:
    # A name keeps its capital: only a small first word loses it.
    return text[0].lower() + text[1:] if re.match(r"(?:The|An?|In|It) ", text) else text


def _alike(one: str, other: str) -> bool:
    one, other = (re.sub(r"\W", "", text).casefold() for text in (one, other))
    return one in other or other in one


def hand_written(pairs: Sequence[dict[str, object]]) -> Iterator[TrainingPair]:
    """Yield pairs as the sample data hold them, to measure on; each in one direction."""
    for number, pair in enumerate(pairs):
        yield TrainingPair(
            evidence=str(pair["second"]),
            statement=str(pair["first"]),
            label="supported" if pair["same"] else "contradicted",
            make="by hand",
            group=f"by hand-{number}",
            question=str(pair["question"]),
            relation="same",
        )

"""Ask the bundled model one question several times, and make pairs of what it answers.

Rowen compares such answers, and they are unlike answers that people or rules write: long, often
wrong, with the words of the question in them. The command asks the questions of the even-numbered
records and adds the answers to a file; `model_answer_pairs` makes pairs of them. The model is
seldom right by itself. So it is asked with the sentence that holds the answer, too.

Which of two answers are the same is known without a judge where one of them or both name the right
answer. Of two wrong ones it is known where they name the same, or nothing in common.
"""

from __future__ import annotations

import argparse
import asyncio
import re
from collections.abc import Iterator, Sequence
from itertools import combinations
from pathlib import Path
from random import Random

from pydantic import Field

from pipelines.aio import together
from pipelines.base import Message, Passage
from pipelines.evaluation.datasets.records import Record, read_records
from pipelines.evaluation.metrics.reference import Reference, is_right, words_of
from pipelines.methods.base import Question
from pipelines.methods.replies.lists import says_yes
from pipelines.methods.rowen.reading import SHORT_TOKENS, question_messages
from pipelines.methods.writing import grounded_messages
from pipelines.models.base import GenerationRequest, Model
from pipelines.models.llamacpp import EmbeddedModel
from pipelines.prompts import load_prompts
from research.commands import Command
from research.judge.labelled import aliased, asked_of, both_ways
from research.judge.made import Names
from research.samples.files import Sources, sources_in
from research.samples.pairs import TrainingPair, text_of

MAKE = "model answers"
"""The make of these pairs."""

_TEMPERATURES = (0.0, 0.3, 1.0)
"""Rowen compares a greedy answer with one drawn at 0.3; warmer ones differ more often."""

_TOLD_TEMPERATURES = (0.0, 0.7)
"""Those of the answers from a sentence."""

_MAX_DIFFERENT = 3
"""Pairs of different answers to one question, at most."""

_COPIED = re.compile(r"^.*?\[\d+\] Text: ", re.DOTALL)
_AT_ONCE = 8


class ModelAnswers(Record):
    """A question with the names of its right answer, and what the model answered.

    `group` is the name of what belongs to the question, in all makes of pairs; `text` holds the
    right answer.
    """

    question: str
    answers: tuple[str, ...] = Field(min_length=1)
    group: str
    text: str = ""
    said: tuple[str, ...] = ()

    def is_right(self, text: str) -> bool:
        """Return whether `text` names the right answer."""
        right, *aliases = self.answers
        return is_right(
            text, Reference(question=self.question, answer=right, aliases=tuple(aliases))
        )


def model_answer_pairs(path: Path | None, names: Names) -> Iterator[TrainingPair]:
    """Yield pairs of what the model answered to one question, and of that and the right answer.

    Different answers are frequent. Of each question only the most alike of them are taken.
    """
    for record in read_records(path, ModelAnswers):
        said = list(filter(None, dict.fromkeys(_answer(text) for text in record.said)))
        found = [
            (one, two, are_same(record, one, two, names)) for one, two in combinations(said, 2)
        ]
        found += [(text, record.answers[0], record.is_right(text)) for text in said]
        same = [pair for pair in found if pair[2]]
        other = [pair for pair in found if pair[2] is False]
        other.sort(key=lambda pair: -_words_shared(*pair[:2]))
        for one, two, alike in (*same, *other[:_MAX_DIFFERENT]):
            yield from both_ways(
                record.question, one, two, same=bool(alike), group=record.group, make=MAKE
            )


def _words_shared(one: str, other: str) -> float:
    first, second = set(words_of(one)), set(words_of(other))
    return len(first & second) / max(1, len(first | second))


def _answer(reply: str) -> str:
    """Return a reply without the copied number of its passage, and without questions added to
    it."""
    return _COPIED.sub("", reply).split("\n\n")[0].strip()


def are_same(record: ModelAnswers, first: str, second: str, names: Names) -> bool | None:
    """Return whether two answers to the question are the same; None where it is not known."""
    right = record.is_right(first), record.is_right(second)
    if any(right):
        return all(right)
    new = [_named(record.question, text, names) for text in (first, second)]
    if all(new):
        return True if new[0] == new[1] else None if new[0] & new[1] else False
    # One of them names something and the other nothing at all.
    return False if any(new) else None


def _named(question: str, text: str, names: Names) -> frozenset[str]:
    """Return words of the names and numbers of an answer that the question does not hold."""
    asked = set(words_of(question))
    found = [word for name in names.of(text) for word in words_of(name.text)]
    found += [word for word in words_of(text) if word[0].isdigit()]
    return frozenset(word for word in found if word not in asked)


async def ask_all(
    model: Model, asked: Sequence[ModelAnswers], to: Path, known: frozenset[str]
) -> None:
    """Ask every question that is not `known`, and add what was said to `to`."""
    turn = asyncio.Semaphore(_AT_ONCE)

    async def said(messages: Sequence[Message], number: int, temperature: float) -> str:
        request = GenerationRequest(
            messages=tuple(messages),
            max_tokens=SHORT_TOKENS,
            temperature=temperature,
            sample=number if temperature else None,
        )
        async with turn:
            (reply,) = await model.generate(request)
        return reply.text

    async def written(one: ModelAnswers) -> None:
        calls = [
            said(messages, number, temperature)
            for messages, temperatures in _prompts(one)
            for number, temperature in enumerate(temperatures)
        ]
        line = one.model_copy(update={"said": tuple(await together(*calls))})
        with to.open("a", encoding="utf-8") as file:
            file.write(f"{line.model_dump_json()}\n")

    await together(*(written(one) for one in asked if one.question not in known))


def _prompts(one: ModelAnswers) -> Iterator[tuple[tuple[Message, ...], tuple[float, ...]]]:
    """Yield the question by itself, and with the sentence that holds the answer."""
    yield question_messages("single", one.question, "en"), _TEMPERATURES
    sentences = text_of("", "", one.text).sentences if one.text else ()
    holding = next((each for each in sentences if one.answers[0] in each), None)
    if holding is not None:
        passage = Passage(id="", title="Text", text=holding, source="")
        asked = Question(text=one.question, language="en")
        yield grounded_messages(load_prompts("rag"), asked, [passage]), _TOLD_TEMPERATURES


def questions_of(sources: Sources) -> list[ModelAnswers]:
    """Return the questions of the even half of all files whose answer is named, each once, in a
    random order: of a file that is not complete, each source is a part."""
    found = [
        ModelAnswers(question=one.question, answers=(one.answer,), group=one.group, text=one.text)
        for one in asked_of(sources)
    ]
    found += [
        ModelAnswers(question=question, answers=tuple(answers), group=group)
        for question, answers, group in aliased(sources.trivia, 0)
    ]
    found = [one for one in found if says_yes(one.answers[0]) is None]
    found = list({one.question: one for one in found}.values())
    Random(7).shuffle(found)
    return found


def _options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--data", type=Path, required=True, help="folder of the public data files")
    parser.add_argument("--to", type=Path, required=True, help="file of answers, which is added to")


def _run(options: argparse.Namespace) -> None:
    had = read_records(options.to, ModelAnswers) if options.to.is_file() else []
    known = frozenset(one.question for one in had)
    asked = questions_of(sources_in(options.data))
    asyncio.run(ask_all(EmbeddedModel(), asked, options.to, known))


COMMAND = Command(__doc__, _options, _run)

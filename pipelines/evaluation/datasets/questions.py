"""Records of questions with their right answers, in the forms in which they were published."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import AliasChoices, Field, field_validator, model_validator

from pipelines.evaluation.datasets.records import (
    ItemRecord,
    Record,
    distinct,
    make_item,
    make_passages,
)
from pipelines.evaluation.items import Item


class Truthful(ItemRecord):
    """TruthfulQA: a question with its best answer; other answers are separated by semicolons.

    Also in the hub's form, whose columns are in small letters and hold lists.
    """

    question: str = Field(alias="Question")
    best: str = Field(alias="Best Answer")
    right: str = Field(alias="Correct Answers")
    wrong: str = Field(alias="Incorrect Answers")
    kind: str = Field(alias="Type", default="")
    category: str = Field(alias="Category", default="")

    @model_validator(mode="before")
    @classmethod
    def _from_hub(cls, row: Any) -> Any:
        if not isinstance(row, Mapping) or "correct_answers" not in row:
            return row
        named = {name.replace("_", " ").title(): cell for name, cell in row.items()}
        return {
            name: "; ".join(cell) if isinstance(cell, list) else cell
            for name, cell in named.items()
        }

    def items(self) -> Iterator[Item]:
        """Yield the question; its classes are the type (adversarial or not) and the category."""
        yield make_item(
            question=self.question.strip(),
            answers=distinct([self.best, *self.right.split(";")]),
            wrong_answers=distinct(self.wrong.split(";")),
            tags=tuple(filter(None, (self.kind, self.category))),
        )


class Facts(ItemRecord):
    """StrategyQA: a question, its answer (True is yes), and the facts that lead to the answer."""

    question: str
    answer: bool
    facts: tuple[str, ...]
    qid: str = ""

    def items(self) -> Iterator[Item]:
        """Yield the question, with the facts as its passages."""
        yield make_item(
            self.qid,
            question=self.question.strip(),
            answers=("yes" if self.answer else "no",),
            passages=make_passages(self.facts, "StrategyQA"),
        )


class OpenQuestion(ItemRecord):
    """NQ-open, and TriviaQA as lines: a question and its accepted answers."""

    question: str
    answers: tuple[str, ...] = Field(
        validation_alias=AliasChoices("answer", "answers"), alias="answer", min_length=1
    )
    id: str | int = Field(validation_alias=AliasChoices("id", "question_id", "qid"), default="")

    def items(self) -> Iterator[Item]:
        """Yield the question."""
        answers = distinct(self.answers)
        yield make_item(self.id, question=self.question.strip(), answers=answers)


class _Aliases(Record):
    value: str = Field(validation_alias=AliasChoices("Value", "value"), default="")
    aliases: tuple[str, ...] = Field(
        validation_alias=AliasChoices("Aliases", "aliases"), default=()
    )
    normalized: tuple[str, ...] = Field(
        validation_alias=AliasChoices("NormalizedAliases", "normalized_aliases")
    )
    people: tuple[str, ...] = Field(
        validation_alias=AliasChoices("HumanAnswers", "human_answers"), default=()
    )


class Trivia(ItemRecord):
    """TriviaQA as published (web or unfiltered): one of `Data`, or a row of the hub."""

    question: str = Field(validation_alias=AliasChoices("Question", "question"), alias="Question")
    id: str = Field(validation_alias=AliasChoices("QuestionId", "question_id"), default="")
    answer: _Aliases = Field(validation_alias=AliasChoices("Answer", "answer"), alias="Answer")

    def items(self) -> Iterator[Item]:
        """Yield the question; its search results are left out."""
        given = self.answer
        yield make_item(
            self.id,
            question=self.question.strip(),
            answers=distinct([given.value, *given.aliases, *given.people, *given.normalized]),
        )


class MultiHop(ItemRecord):
    """HotpotQA and 2WikiMultihopQA: a question over several paragraphs, most of which distract.

    `context` has titles with their sentences, `supporting_facts` titles with numbers of sentences.
    """

    id: str = Field(validation_alias=AliasChoices("_id", "id"), default="")
    question: str
    answer: str
    context: tuple[tuple[str, tuple[str, ...]], ...]
    supporting_facts: tuple[tuple[str, int], ...] = ()
    kind: str = Field(alias="type", default="")
    level: str = ""
    evidences: tuple[Any, ...] | None = None

    @field_validator("context", "supporting_facts", mode="before")
    @classmethod
    def _from_hub(cls, value: Any) -> Any:
        """Turn columns into pairs: the hub holds the columns of the pairs in place of the pairs."""
        if isinstance(value, Mapping):
            second = "sentences" if "sentences" in value else "sent_id"
            if {"title", second} <= value.keys():
                return list(zip(value["title"], value[second], strict=True))
        return value

    def items(self) -> Iterator[Item]:
        """Yield the question with all its paragraphs; those with supporting facts have such
        a score.
        """
        source = "HotpotQA" if self.evidences is None else "2WikiMultihopQA"
        yield make_item(
            self.id,
            question=self.question.strip(),
            answers=(self.answer.strip(),),
            passages=make_passages(
                ["".join(_spaced(sentences)) for _, sentences in self.context],
                source,
                [title for title, _ in self.context],
                [title for title, _ in self.supporting_facts],
            ),
            tags=tuple(filter(None, (self.kind, self.level))),
        )


def _spaced(sentences: tuple[str, ...]) -> Iterator[str]:
    """Yield the sentences with a space between them where they bring none."""
    for number, sentence in enumerate(sentences):
        yield sentence if not number or sentence[:1].isspace() else f" {sentence}"


class _Entity(Record):
    answer_text: str
    aliases: tuple[str, ...] = ()


class ListQuestion(ItemRecord):
    """Qampari: a question that many entities answer, each with its aliases."""

    qid: str = ""
    question_text: str
    answer_list: tuple[_Entity, ...] = Field(min_length=1)

    def items(self) -> Iterator[Item]:
        """Yield the question with its list; the part of the id after "__" is the data set's
        own class.
        """
        yield make_item(
            self.qid,
            question=self.question_text.strip(),
            lists=tuple(distinct([one.answer_text, *one.aliases]) for one in self.answer_list),
            tags=tuple(filter(None, self.qid.split("__")[1:2])),
        )


class AliasLists(ItemRecord):
    """QAMPARI as ALCE publishes it: a list of aliases for each entity."""

    question: str
    answers: tuple[tuple[str, ...], ...]
    id: str | int = Field(validation_alias=AliasChoices("id", "qid"), default="")

    def items(self) -> Iterator[Item]:
        """Yield the question with its list."""
        lists = tuple(filter(None, map(distinct, self.answers)))
        yield make_item(self.id, question=self.question.strip(), lists=lists)


class ChineseTruthful(ItemRecord):
    """HalluQA: a Chinese question with right and wrong answers in numbered columns."""

    question: str = Field(alias="Question")
    right: tuple[str, ...] = Field(alias="Best Answer1", min_length=1)
    wrong: tuple[str, ...] = Field(alias="Wrong_Answer1", default=())
    id: int | str = Field(alias="question_id", default="")
    category: str = Field(alias="Category", default="")

    @model_validator(mode="before")
    @classmethod
    def _columns(cls, row: Any) -> Any:
        if not isinstance(row, Mapping):
            return row
        joined = dict(row)
        for name, pattern in (("Best Answer1", _BEST), ("Wrong_Answer1", _WRONG)):
            cells = [cell for key, cell in row.items() if pattern.fullmatch(key)]
            joined[name] = [cell for cell in cells if isinstance(cell, str) and cell.strip()]
        return joined

    def items(self) -> Iterator[Item]:
        """Yield the question; its class is misleading or knowledge."""
        yield make_item(
            self.id,
            question=self.question.strip(),
            language="zh",
            answers=distinct(self.right),
            wrong_answers=distinct(self.wrong),
            tags=tuple(filter(None, (self.category,))),
        )


_BEST = re.compile(r"Best[ _]Answer[ _]?\d*")
_WRONG = re.compile(r"Wrong[ _]Answer[ _]?\d*")


class _Answer(Record):
    text: str


class SpanQuestion(Record):
    """A question and its right answers, which are spans of the paragraph."""

    question: str
    answers: tuple[_Answer, ...]
    id: str = ""


class Paragraph(Record):
    """A piece of an article and the questions about it."""

    context: str
    qas: tuple[SpanQuestion, ...]


class Article(ItemRecord):
    """An article of a file in SQuAD's form, such as XQuAD's."""

    title: str = ""
    paragraphs: tuple[Paragraph, ...]

    def items(self) -> Iterator[Item]:
        """Yield every question that has an answer, with its paragraph; the article is the group."""
        group = self.title or (self.paragraphs[0].context[:60] if self.paragraphs else "")
        for paragraph in self.paragraphs:
            passages = make_passages([paragraph.context], "SQuAD", [self.title])
            for question in paragraph.qas:
                if question.answers:
                    yield make_item(
                        question.id,
                        question=question.question.strip(),
                        answers=distinct(answer.text for answer in question.answers),
                        passages=passages,
                        group=group,
                    )


class SquadRow(ItemRecord):
    """A question of SQuAD as a row of the hub: its answers are columns of texts and places."""

    id: str = ""
    title: str = ""
    context: str
    question: str
    answers: dict[str, Any]

    def items(self) -> Iterator[Item]:
        """Yield the question, where it has an answer."""
        paragraph = Paragraph(
            context=self.context,
            qas=(
                SpanQuestion(
                    id=self.id,
                    question=self.question,
                    answers=tuple(_Answer(text=text) for text in self.answers.get("text", ())),
                ),
            ),
        )
        yield from Article(title=self.title, paragraphs=(paragraph,)).items()

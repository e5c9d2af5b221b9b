"""Public data files as records. None of them is part of this project; they are read where they are.

Of a file that is not given, with None for its path, there are no records. Records are counted from
0 in file order. Even-numbered ones fit, odd-numbered ones report.
"""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Literal, TypeVar

from pydantic import ConfigDict, Field, ValidationError

from pipelines.errors import InvalidInputError
from pipelines.paths import SAMPLE_DATA
from pipelines.text import Span
from pipelines.types import Frozen, Language

Half = Literal[0, 1]
"""Which records: 0 the even-numbered ones, 1 the odd-numbered ones."""


class Record(Frozen):
    """A record of a data file; fields that are not named here are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class QaRecord(Record):
    """HaluEval's question answering: a question, the text with its answer, and two answers."""

    knowledge: str
    question: str
    right_answer: str
    hallucinated_answer: str


class Biography(Record):
    """SelfCheckGPT's WikiBio: a life written by GPT-3, its sentences annotated one by one."""

    concept: str
    gpt3_text: str
    gpt3_sentences: tuple[str, ...]
    annotation: tuple[str, ...]
    wiki_bio_text: str
    gpt3_text_samples: tuple[str, ...] = ()

    def sentences(self) -> list[Span]:
        """Where each sentence is in GPT-3's text; raises InvalidInputError when one is missing."""
        spans, position = [], 0
        for sentence in self.gpt3_sentences:
            start = self.gpt3_text.find(sentence, position)
            if start < 0:
                raise InvalidInputError(
                    f"GPT-3's text about {self.concept!r} lacks one of its sentences.",
                    remedy="Give SelfCheckGPT's WikiBio file as it was published.",
                )
            position = start + len(sentence)
            spans.append(Span.of(self.gpt3_text, start, position))
        return spans


class Stance(Record):
    """Factcheck-GPT: a claim, a piece of a web page, and what the page says about the claim."""

    claim: str
    evidence: str
    stance: Literal["completely-support", "partially-support", "refute", "irrelevant"]


class Facts(Record):
    """StrategyQA: a question, its answer (True is yes), and the facts that lead to the answer."""

    question: str
    answer: bool
    facts: tuple[str, ...]


class Truthful(Record):
    """TruthfulQA: a question with its best answer; other answers are separated by semicolons."""

    question: str = Field(alias="Question")
    best: str = Field(alias="Best Answer")
    right: str = Field(alias="Correct Answers")
    wrong: str = Field(alias="Incorrect Answers")


class _Answer(Record):
    text: str


class Question(Record):
    """A question and its right answers, which are spans of the paragraph."""

    question: str
    answers: tuple[_Answer, ...]


class Paragraph(Record):
    """A piece of an article and the questions about it."""

    context: str
    qas: tuple[Question, ...]


class Article(Record):
    """An article of a file in SQuAD's form, such as XQuAD's."""

    title: str = ""
    paragraphs: tuple[Paragraph, ...]


class _Squad(Record):
    data: tuple[Article, ...]


R = TypeVar("R", bound=Record)


def read_records(path: Path | None, record: type[R]) -> list[R]:
    """Every line of `path`, a file of JSON lines, as a `record`.

    Empty lines are skipped. Only "\\n" ends a line: texts contain other line separators. Raises
    InvalidInputError, which names the line, for a file that cannot be read or holds something else.
    """
    records: list[R] = []
    if path is None:
        return records
    for number, line in enumerate(_text(path).split("\n"), start=1):
        if line.strip():
            try:
                records.append(record.model_validate_json(line))
            except ValidationError as error:
                what = error.errors()[0]["msg"]
                reason = f"a line is not a record (line {number}: {what})"
                raise _unusable(path, reason, _fields(record)) from None
    return records


def read_qa(path: Path | None) -> list[QaRecord]:
    """The records of HaluEval's question answering; InvalidInputError when fewer than four."""
    records = read_records(path, QaRecord)
    if path and len(records) < 4:
        raise _unusable(path, "there are fewer than four records", _fields(QaRecord))
    return records


def read_biographies(path: Path | None, half: Half) -> list[Biography]:
    """Half of SelfCheckGPT's WikiBio; InvalidInputError where annotations are missing."""
    records = read_records(path, Biography)
    if path and any(len(record.annotation) != len(record.gpt3_sentences) for record in records):
        reason = "a record has not one annotation for each sentence"
        raise _unusable(path, reason, _fields(Biography))
    return records[half::2]


def read_articles(path: Path | None) -> list[Article]:
    """The articles of a file in SQuAD's form, two at least, with an answer to every question.

    Raises InvalidInputError for anything else.
    """
    if path is None:
        return []
    try:
        articles = list(_Squad.model_validate_json(_text(path, _SQUAD)).data)
    except ValidationError:
        raise _unusable(path, "it is not in the form of SQuAD", _SQUAD) from None
    paragraphs = (paragraph for article in articles for paragraph in article.paragraphs)
    if len(articles) < 2 or any(not one.answers for each in paragraphs for one in each.qas):
        reason = "it needs two articles at least and an answer to every question"
        raise _unusable(path, reason, _SQUAD)
    return articles


def sample_rows(name: str, language: Language) -> list[dict[str, str]]:
    """The rows in `language` of a table of the sample data, such as "questions.csv"."""
    with (SAMPLE_DATA / name).open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["language"] == language]


_SQUAD = "a file in the form of SQuAD, such as XQuAD's"


def _fields(record: type[Record]) -> str:
    fields = record.model_fields.items()
    names = [field.alias or name for name, field in fields if field.is_required()]
    return f"JSON lines with {', '.join(names[:-1])} and {names[-1]}"


def _text(path: Path, wanted: str = "a file in UTF-8") -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, f"it cannot be read ({type(error).__name__})", wanted) from None


def _unusable(path: Path, reason: str, wanted: str) -> InvalidInputError:
    # The file's name alone: where it lies is nobody else's business.
    return InvalidInputError(f"{path.name} cannot be used: {reason}.", remedy=f"Give {wanted}.")

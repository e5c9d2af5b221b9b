"""The data sets that the project brings: questions and statements on the sample library."""

from __future__ import annotations

import csv
from collections.abc import Callable
from functools import cache
from pathlib import Path

from pipelines.evaluation.datasets.records import make_item
from pipelines.evaluation.items import Item
from pipelines.paths import SAMPLE_DATA
from pipelines.retrieval.documents import Document, load_library
from pipelines.types import Language, Passage


def sample_rows(name: str, language: Language) -> list[dict[str, str]]:
    """Return the rows in `language` of a table of the sample data, such as "questions.csv"."""
    with (SAMPLE_DATA / name).open(encoding="utf-8", newline="") as file:
        return [row for row in csv.DictReader(file) if row["language"] == language]


def sample_questions(language: Language) -> list[Item]:
    """Return the sample questions, each with the article that answers it; the article is the group.

    The tag is the question's kind: fact, yes_no, misconception or list. The answer of a list is
    there twice: as one text, with "; " between its entities, and as `lists`.
    """
    return [_question(row, language) for row in sample_rows("questions.csv", language)]


def sample_statements(language: Language) -> list[Item]:
    """Return the statements about articles, to be checked.

    One that its article contradicts or does not decide is labelled as hallucinated. The tags are
    the label (supported, contradicted or not_enough) and how the statement was made.
    """
    return [
        make_item(
            text=row["statement"],
            language=language,
            hallucinated=row["label"] != "supported",
            passages=_article(f"{language}/{row['article']}"),
            group=f"{language}/{row['article']}",
            tags=(row["label"], row["kind"]),
        )
        for row in sample_rows("statements.csv", language)
    ]


BUNDLED: dict[str, Callable[[Language], list[Item]]] = {
    "sample": sample_questions,
    "statements": sample_statements,
}
"""Name of each bundled data set to what reads its part in one language."""


def _question(row: dict[str, str], language: Language) -> Item:
    is_list = row["kind"] == "list"
    return make_item(
        row["id"],
        question=row["question"],
        language=language,
        answers=(row["answer"], *filter(None, row["aliases"].split("|"))),
        lists=tuple((one.strip(),) for one in row["answer"].split(";")) if is_list else (),
        passages=_article(row["article"]),
        group=row["article"],
        tags=(row["kind"],),
    )


def _article(name: str) -> tuple[Passage, ...]:
    article = _library()[name]
    return (
        Passage(
            id=article.id,
            title=article.title,
            text=article.text,
            source=article.source,
            end=len(article.text),
            rank=1,
        ),
    )


@cache
def _library(folder: Path = SAMPLE_DATA / "library") -> dict[str, Document]:
    return {document.id: document for document in load_library(folder)}

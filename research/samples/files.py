"""Public data files, read where they are: none of them is part of this project.

A folder of them holds files by the names that it gives them; what is missing is left out, so that a
part of the data is enough. All are public but `model_answers`, which
`research.judge answers` writes. Of a file that is not given there are no records. They
are counted from 0 in file order: even-numbered ones fit, odd-numbered ones report.
"""

from __future__ import annotations

import csv
from io import StringIO
from pathlib import Path
from typing import Literal, NamedTuple

import pandas as pd
from pydantic import ValidationError

from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.evaluation.datasets.files import read_text, unusable
from pipelines.evaluation.datasets.published import Article, Biography, QaRecord
from pipelines.evaluation.datasets.records import Record, read_records, required_fields


class Sources(NamedTuple):
    """Data by path; None where the folder does not hold it."""

    qa: Path | None = None
    biographies: Path | None = None
    stances: Path | None = None
    articles: Path | None = None
    facts: Path | None = None
    truthful: Path | None = None
    hard: Path | None = None
    symmetric: Path | None = None
    cited: Path | None = None
    climate: Path | None = None
    consistency: Path | None = None
    trivia: Path | None = None
    model_answers: Path | None = None
    chinese_articles: Path | None = None
    chinese_questions: Path | None = None


_NAMES = dict(
    zip(
        Sources._fields,
        (
            *("halueval_qa.jsonl", "wikibio_gpt3.jsonl", "claim_evidence_stance.jsonl"),
            *("xquad.en.json", "strategyqa_facts.jsonl", "truthfulqa.jsonl"),
            *("fool_me_twice.jsonl", "fever_symmetric.jsonl", "wice_claims.jsonl"),
            *("climate_fever.jsonl", "sac3_hotpotqa.json", "triviaqa.jsonl"),
            *("model_answers.jsonl", "xquad.zh.json", "cmrc2018_dev.jsonl"),
        ),
        strict=True,
    )
)
"""The data to the name of its file."""


def sources_in(folder: Path) -> Sources:
    """Return the files of `folder`; InvalidInputError when it holds none of them."""
    found = {name: folder / file for name, file in _NAMES.items() if (folder / file).is_file()}
    if not found:
        raise failure("research.no_data", folder=folder, known=sorted(_NAMES.values()))
    return Sources(**found)


Half = Literal[0, 1]
"""Which records: 0 the even-numbered ones, 1 the odd-numbered ones."""


class _Squad(Record):
    data: tuple[Article, ...]


def read_qa(path: Path | None) -> list[QaRecord]:
    """Return the records of HaluEval's question answering; InvalidInputError when fewer than
    four."""
    records = read_records(path, QaRecord)
    if path and len(records) < 4:
        raise unusable(path, phrase("file_problem.few_records"), required_fields(QaRecord))
    return records


def read_biographies(path: Path | None, half: Half) -> list[Biography]:
    """Return half of SelfCheckGPT's WikiBio; InvalidInputError where annotations are missing."""
    records = read_records(path, Biography)
    if path and any(len(record.annotation) != len(record.gpt3_sentences) for record in records):
        reason = phrase("file_problem.wikibio")
        raise unusable(path, reason, required_fields(Biography))
    return records[half::2]


def read_articles(path: Path | None) -> list[Article]:
    """Return the articles of a file in SQuAD's form, two at least, with an answer to every
    question.

    Raises InvalidInputError for anything else.
    """
    if path is None:
        return []
    try:
        articles = list(_Squad.model_validate_json(read_text(path)).data)
    except ValidationError:
        raise unusable(path, phrase("file_problem.no_squad"), _SQUAD) from None
    paragraphs = (paragraph for article in articles for paragraph in article.paragraphs)
    if len(articles) < 2 or any(not one.answers for each in paragraphs for one in each.qas):
        reason = phrase("file_problem.few_articles")
        raise unusable(path, reason, _SQUAD)
    return articles


_SQUAD = phrase("wanted.squad")


def read_translations(path: Path) -> list[tuple[str, str]]:
    """Return English sentences with their Chinese translations from a table of Tatoeba.

    Raises InvalidInputError where the columns `english` and `chinese` are missing.
    """
    table = pd.read_csv(StringIO(read_text(path)), sep="\t", quoting=csv.QUOTE_NONE, dtype=str)
    if not {"english", "chinese"} <= set(table.columns):
        raise unusable(path, phrase("file_problem.other_columns"), phrase("wanted.pairs"))
    return list(zip(table["english"], table["chinese"], strict=True))

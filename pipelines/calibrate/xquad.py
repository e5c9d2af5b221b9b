"""Articles with questions in SQuAD's form, such as XQuAD's, for HAARAG's calibration."""

from __future__ import annotations

from pathlib import Path

from pydantic import ConfigDict, ValidationError

from pipelines.errors import InvalidInputError
from pipelines.types import Frozen

__all__ = ["Article", "Paragraph", "Question", "load_articles"]


class _Extra(Frozen):
    model_config = ConfigDict(frozen=True, extra="ignore")


class _Answer(_Extra):
    text: str


class Question(_Extra):
    """A question and its right answers, as spans of the paragraph."""

    question: str
    answers: tuple[_Answer, ...]


class Paragraph(_Extra):
    """A piece of an article and the questions about it."""

    context: str
    qas: tuple[Question, ...]


class Article(_Extra):
    """An article of SQuAD's form: paragraphs with questions about each."""

    title: str = ""
    paragraphs: tuple[Paragraph, ...]


class _File(_Extra):
    data: tuple[Article, ...]


def load_articles(path: Path) -> list[Article]:
    """The articles of a file in SQuAD's form; raises InvalidInputError for anything else."""
    try:
        articles = list(_File.model_validate_json(path.read_text(encoding="utf-8")).data)
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, f"it cannot be read ({type(error).__name__})") from None
    except ValidationError:
        raise _unusable(path, "it has not the form of SQuAD") from None
    if len(articles) < 2 or any(
        not q.answers for a in articles for p in a.paragraphs for q in p.qas
    ):
        raise _unusable(path, "it needs two articles at least and an answer to every question")
    return articles


def _unusable(path: Path, reason: str) -> InvalidInputError:
    return InvalidInputError(
        f"{path.name} cannot be used: {reason}.",
        remedy="Give a file in the form of SQuAD, such as XQuAD's.",
    )

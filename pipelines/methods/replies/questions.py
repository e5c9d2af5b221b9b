"""How questions and answers of yes or no are recognised, and whether a text is about a question."""

from __future__ import annotations

from pipelines.methods.base import Question
from pipelines.methods.wording import load_wording
from pipelines.models.base import Option
from pipelines.models.choice import parse_choice
from pipelines.retrieval.bm25 import content_terms

_WORDING = load_wording("replies")
_YES_NO_QUESTION = {code: _WORDING.pattern(f"yes_no_question_{code}") for code in ("en", "zh")}
_YES_NO = [
    Option(label=label, spellings=words) for label, words in _WORDING.entries["says"].items()
]


def asks_yes_or_no(question: Question) -> bool:
    """Whether a question is answered by yes or no, as far as its wording tells."""
    return _YES_NO_QUESTION[question.language].search(question.text) is not None


def says_yes(answer: str) -> bool | None:
    """Yes or no as an answer says it in any of the languages; None where it says neither."""
    label = parse_choice(answer, _YES_NO)
    return None if label is None else label == "yes"


def shares_words(text: str, question: str) -> bool:
    """Whether a content word of the question stands in `text`; true where it has none."""
    wanted = set(content_terms(question))
    return not wanted or bool(wanted & set(content_terms(text)))

"""How questions and answers of yes or no are recognised, and whether a text is about a question."""

from __future__ import annotations

import re
from itertools import takewhile
from operator import eq

from pipelines.methods.base import Question
from pipelines.methods.wording import load_wording
from pipelines.models.base import Option
from pipelines.models.choice import parse_choice
from pipelines.retrieval.bm25 import content_terms
from pipelines.text import text_key
from pipelines.text.languages import HAN

_WORDING = load_wording("replies")
_YES_NO_QUESTION = {code: _WORDING.pattern(f"yes_no_question_{code}") for code in ("en", "zh")}
_ASKED_FOR = _WORDING.pattern("asked_for")
_EVENT_WORDS = load_wording("events")
_EVENTS_BY_NAME = {
    name: re.compile(
        rf"(?<![^\W\d_{HAN}])(?:{_EVENT_WORDS.pattern(name).pattern})(?![^\W\d_{HAN}])", re.I
    )
    for name in _EVENT_WORDS.entries
}
_EVENTS = [*_EVENTS_BY_NAME.values()]
_YES_NO = [
    Option(label=label, spellings=words) for label, words in _WORDING.entries["says"].items()
]


def asks_yes_or_no(question: Question) -> bool:
    """Return whether a question is answered by yes or no, as far as its wording tells."""
    return _YES_NO_QUESTION[question.language].search(question.text) is not None


def says_yes(answer: str) -> bool | None:
    """Return yes or no as an answer says it in any of the languages; None where it says neither."""
    label = parse_choice(answer, _YES_NO)
    return None if label is None else label == "yes"


def echoes(answer: str, question: Question) -> bool:
    """Return whether an answer only says the question again, so that it is none."""
    return text_key(answer) == text_key(question.text)


def shares_words(text: str, question: str) -> bool:
    """Return whether a content word of the question stands in `text`; true where it has none."""
    return words_shared(text, question) > 0


def words_shared(text: str, question: str) -> float:
    """Return how many of the question's content words stand in `text`, in [0, 1]; 1 where it
    has none.

    "Discovered" stands in "discover", and "vanished" says the same as "disappear". What the
    question asks for by its name, as the year in "In which year", counts for nothing.
    """
    question = _ASKED_FOR.sub(" ", question)
    phrases = 0
    given = 0
    for event in _EVENTS:
        if (asked := event.search(question)) is not None and " " in asked[0]:
            # "Take place" is one thing that is asked about.
            question = f"{question[: asked.start()]} {question[asked.end() :]}"
            phrases += 1
            given += event.search(text) is not None
    wanted = set(content_terms(question))
    said = set(content_terms(text))
    given += sum(
        any(is_form(word, other) for other in said) or _says_event(word, text) for word in wanted
    )
    count = len(wanted) + phrases
    return given / count if count else 1.0


def events_in(text: str) -> frozenset[str]:
    """Return the events and properties of `assets/wording/events.toml` that `text` says,
    by name.
    """
    bare = _ASKED_FOR.sub(" ", text)
    return frozenset(name for name, words in _EVENTS_BY_NAME.items() if words.search(bare))


def expresses(text: str, question: str) -> bool:
    """Return whether `text` says the event or the property that the question asks with, in whatever
    words; true where it asks with none that is known.
    """
    asked = [event for event in _EVENTS if event.search(_ASKED_FOR.sub(" ", question))]
    return not asked or any(event.search(text) for event in asked)


def _says_event(word: str, text: str) -> bool:
    """Return whether `text` says in other words the event or the property that `word` names."""
    return any(event.fullmatch(word) and event.search(text) for event in _EVENTS)


def is_form(word: str, other: str) -> bool:
    """Return whether two terms are the same or look like forms of one English word."""
    if word == other:
        return True
    if not (word.isascii() and other.isascii() and word.isalpha() and other.isalpha()):
        return False
    shorter, longer = sorted((word, other), key=len)
    alike = sum(takewhile(bool, map(eq, word, other)))
    if len(shorter) < _STEM:
        return shorter.endswith("e") and longer == f"{shorter}d"
    # "Discover" and "discovered", "study" and "studies"; not "Iran" and "Iraq".
    stays = len(shorter) - (shorter[-1] in "ey" and len(longer) > len(shorter))
    return alike >= stays and len(longer) - alike <= _ENDING


_STEM, _ENDING = 4, 3
"""Letters: a word of fewer than the first takes only a d ("die", "died"), others an ending of at
most the second."""

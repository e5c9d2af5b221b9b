"""Whether a text states anything that could be checked, as the answer to its question or alone.

"N/A", "Never. True? No way.", "100" to "Who ...?" and the text of an error state nothing: whatever
a detector would measure on them says nothing of a fact (ours).
"""

from __future__ import annotations

import re

from pipelines.methods.base import Question, load_wording
from pipelines.methods.replies.lists import asks_yes_or_no, echoes, is_form, says_yes
from pipelines.methods.replies.parsing import asked_kind, declines, is_named
from pipelines.methods.subjects import SMALL_WORDS
from pipelines.models.error_texts import is_error_text
from pipelines.retrieval.indexes import content_terms, terms
from pipelines.text import has_han, split_sentences

_WORDING = load_wording("replies")
_STANCE, _POLAR = _WORDING.words("stance"), _WORDING.words("polar")
_NONE = _WORDING.words("names_none")
_CHOICE = re.compile(
    r"\b(?:or|and|between|both)\b|还是|或|更|(?:和|与|、).*(?:哪|谁)", re.IGNORECASE
)
"""What a question has that may be answered by one of the things that it names itself."""

_LONG_NAME = re.compile(r"[^\W\d_a-z][\w'’-]*(?:\s+[^\W\d_a-z][\w'’-]*)+|\w+(?:·\w+)+")
"""Capitalised words in a row, or a foreign name in Chinese: a part of one is another name."""

_LETTER = re.compile(r"(?<![A-Za-z])(?!A\b|I\b)[A-Z](?![A-Za-z])")
"""A letter as a name: vitamin C, the base T."""

_FEW = 2
"""Content terms of the shortest text that can state something without a question."""


def no_answer(text: str, question: Question) -> str:
    """Return the remark on a text that is no answer to be checked; "" for one that is."""
    if echoes(text, question):
        return "question_repeated"
    return "states_nothing" if states_nothing(text, question) else ""


def states_nothing(text: str, question: Question) -> bool:
    """Return whether no sentence of `text` states anything, and the text as a whole does not.

    A stance alone ("Never.") answers a question of yes or no, and states nothing elsewhere, as does
    what only has words of the question, unless that names things to choose from. Without
    a question a name or a number states nothing either.
    """
    asked = "" if question.about else question.text
    if declines(text) or is_error_text(text, asked):
        return True
    yes_or_no = bool(asked) and asks_yes_or_no(question)
    if yes_or_no and says_yes(text) is not None:
        return False
    sentences = [span.text for span in split_sentences(text)]
    return all(_is_empty(one, question, alone=not asked, stance=yes_or_no) for one in sentences)


def _is_empty(sentence: str, question: Question, *, alone: bool, stance: bool) -> bool:
    # A question, or the announcement of an answer that does not come.
    if sentence.rstrip("\"'”’）) ").endswith(("?", "？", ":", "：")):
        return True
    said = content_terms(sentence)
    if all(term in _STANCE for term in said):
        if stance:
            return not any(term in _POLAR for term in terms(sentence))
        # A name may look like small words, and is written as one: "The Who".
        return not _is_name(sentence)
    repeats = len(said) > _FEW and _repeats(sentence, question.text)
    if repeats and not (alone or stance or _CHOICE.search(question.text)):
        return True
    numbers = all(term.replace(".", "").isdigit() for term in said)
    if alone:
        return len(said) < _FEW or numbers or _is_name(sentence)
    kind = asked_kind(question)
    named = kind is not None and is_named(kind)
    return (numbers and (stance or named)) or (named and all(term in _NONE for term in said))


def _repeats(sentence: str, question: str) -> bool:
    """Return whether a sentence has no word that is not the question's, in whatever form.

    "The Eiffel Tower was designed." repeats; Florence Nightingale was born in Florence does not.
    """
    for name in _LONG_NAME.findall(question):
        known = name.removeprefix(f"{name.split()[0]} ") if _opens(name, question) else name
        question, sentence = question.replace(known, " "), sentence.replace(known, " ")
    if set(_LETTER.findall(sentence)) - set(_LETTER.findall(question)):
        return False
    asked = content_terms(question)
    names = {term for word in sentence.split() if word[:1].isupper() for term in terms(word)}
    return all(
        term in asked or (term not in names and any(is_form(term, one) for one in asked))
        for term in content_terms(sentence)
    )


def _opens(name: str, question: str) -> bool:
    """Return whether a name begins with the question's first word, which may be "Was" or "Did"."""
    return question.startswith(name) and name.split()[0].casefold() in SMALL_WORDS


def _is_name(sentence: str) -> bool:
    """Return whether a sentence is nothing but capitalised words."""
    words = [word for word in sentence.split() if any(map(str.isalpha, word))]
    few = len(words) > 1 and not has_han(sentence) and len(words) == len(terms(sentence))
    return few and all(word.strip("\"'“‘(")[:1].isupper() for word in words)

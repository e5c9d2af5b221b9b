"""EVER's factual concepts: where a sentence holds them, and which of those listed are checked."""

from __future__ import annotations

from collections.abc import Sequence

from pipelines.base import Frozen
from pipelines.methods.base import load_wording
from pipelines.methods.replies.lists import parse_list
from pipelines.methods.replies.parsing import is_nothing, parse_json, visible
from pipelines.methods.subjects import (
    AROUND,
    DETERMINERS,
    SMALL_WORDS,
    announces,
    chinese_head,
    chinese_names,
    leading_name,
    main_subject,
    occurrences,
    words_of,
)
from pipelines.retrieval.indexes import content_terms
from pipelines.text import Span
from pipelines.text.languages import has_han

_COMPARED = load_wording("ever").pattern("compared")


class Concepts(Frozen):
    """The concepts of a sentence that are checked, in order of place.

    `left_out` are those beyond the limit, and `dropped` counts what was listed and is no part of
    the sentence: neither is checked.
    """

    spans: tuple[Span, ...]
    left_out: tuple[Span, ...] = ()
    dropped: int = 0


def read_concepts(reply: str) -> list[str] | None:
    """Return the concepts a reply lists; an unreadable reply is None.

    Only the word that was asked for, or an empty list of that name, says that there are none.
    `null`, `{}` and "N/A" are what a failing server says as well.
    """
    text = visible(reply)
    value = parse_json(text)
    if isinstance(value, dict):
        value = value.get("concepts")
        if value == []:
            return []
    if isinstance(value, list):
        if not value or not all(isinstance(concept, str) for concept in value):
            return None
        return [one for one in value if one.strip() and not is_nothing(one)] or None
    if is_nothing(text):
        return [] if text.strip(" .。-\n").casefold() in _NONE else None
    return parse_list(text) or None


_NONE = frozenset({"none", "无"})
"""What the prompt asks for where there is no concept."""


def concepts_in(sentence: str, listed: Sequence[str], limit: int, question: str = "") -> Concepts:
    """Return those of `listed` that `sentence` literally contains, each once, at most `limit`.

    A concept that stands only inside a longer one is part of it: of "1995" and "5 June 1995" the
    date is checked. The sentence as a whole is no detail of itself. What `question` is about is
    given and no concept; without a question nothing is. Whom or what the sentence begins with is
    one, listed or not, and so is a comparison.
    """
    whole = sentence.strip(AROUND)
    about = main_subject(question)
    compared = [match[0] for match in _COMPARED.finditer(sentence)]
    stated = [*listed, *compared]
    subject = opening_name(sentence)
    stated += [subject] if subject else []
    places: list[list[tuple[int, int]]] = []
    dropped = 0
    for concept in dict.fromkeys(stated):
        found = list(occurrences(sentence, concept))
        places.append([at for at in found if sentence[at[0] : at[1]].strip(AROUND) != whole])
        dropped += not (found or _is_said(concept, f"{sentence} {question}"))
    taken: list[tuple[int, int]] = []
    for spans in sorted(places, key=_longest, reverse=True):
        free = (
            (start, end)
            for start, end in spans
            if not any(first <= start and end <= last for first, last in taken)
        )
        taken += [*free][:1]
    spans = [Span.of(sentence, start, end) for start, end in sorted(taken)]
    kept = [
        one
        for one in spans
        if one.text in compared
        or not (_part_of(one.text, about) or announces(one.text) or _is_small(one.text))
    ]
    said = any(_is_said(one, subject) for one in listed)
    if [one.text for one in kept] == [subject] and not said:
        # A subject of which nothing is listed is no detail by itself.
        kept = []
    return Concepts(spans=tuple(kept[:limit]), left_out=tuple(kept[limit:]), dropped=dropped)


def opening_name(sentence: str) -> str:
    """Return the name that a sentence begins with, without its determiner; "" where it is none."""
    if has_han(sentence):
        head = chinese_head(sentence)
        return head if any(head in name for name in chinese_names(sentence)) else ""
    words = words_of(sentence)
    words = words[1:] if words and words[0].casefold() in DETERMINERS else words
    name = leading_name(words)
    known = bool(name) and name[0].casefold() not in SMALL_WORDS
    text = " ".join(name)
    return text if known and next(iter(occurrences(sentence, text)), None) else ""


def _is_small(concept: str) -> bool:
    """Return whether an English concept has nothing but words that name nothing, such as
    "where".
    """
    words = words_of(concept)
    return bool(words) and all(word.casefold() in SMALL_WORDS for word in words)


def _is_said(concept: str, text: str) -> bool:
    """Return whether every content word of a concept stands in a text, in whatever order."""
    return set(content_terms(concept)) <= set(content_terms(text))


def _part_of(concept: str, subject: str) -> bool:
    """Return whether a concept names nothing that `subject` does not name."""
    if has_han(concept):
        return bool(subject) and concept.strip(AROUND) in subject
    words = {word.casefold() for word in words_of(concept)} - DETERMINERS
    return bool(words) and words <= {word.casefold() for word in words_of(subject)}


def _longest(spans: Sequence[tuple[int, int]]) -> int:
    return max((end - start for start, end in spans), default=0)

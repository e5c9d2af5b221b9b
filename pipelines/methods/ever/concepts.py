"""EVER's factual concepts: where a sentence holds them, and which of those listed are checked."""

from __future__ import annotations

import re
from collections.abc import Sequence

from pipelines.methods.replies.parsing import is_nothing, parse_json, parse_list, visible
from pipelines.text import Span
from pipelines.text.languages import has_han
from pipelines.types import Frozen

__all__ = ["Concepts", "asks_about", "concepts_in", "find_concept", "read_concepts"]

# One character for one, so that offsets stay what they are.
_ALIKE = str.maketrans(
    {"’": "'", "‘": "'", "“": '"', "”": '"', "–": "-", "—": "-", "‑": "-", "\u00a0": " "}
)
_AROUND = " \t\n.,;:!?\"'`*_()[]。，；：！？、“”‘’《》「」（）"
_PRONOUN = re.compile(
    r"\b(?:he|him|his|she|her|hers|they|them|their|theirs|its|this|these|those)\b"
    # 他 also stands inside words that are no pronouns.
    r"|(?<![其吉维])他(?![人乡国日])|她|它",
    re.IGNORECASE,
)


class Concepts(Frozen):
    """The concepts of a sentence that are checked, in order of place.

    `dropped` counts listed ones that the sentence does not contain or that are part of a longer
    one, `left_out` those beyond the limit.
    """

    spans: tuple[Span, ...]
    dropped: int = 0
    left_out: int = 0


def read_concepts(reply: str) -> list[str] | None:
    """The concepts a reply lists; none listed is an empty list, an unreadable reply is None."""
    text = visible(reply)
    value = parse_json(text)
    if isinstance(value, dict):
        value = value.get("concepts")
    if isinstance(value, list):
        if not all(isinstance(one, str) for one in value):
            return None
        return [one for one in value if one.strip() and not is_nothing(one)]
    if is_nothing(text):
        return []
    return parse_list(text) or None


def concepts_in(sentence: str, listed: Sequence[str], limit: int) -> Concepts:
    """Those of `listed` that `sentence` literally contains, each once, at most `limit`.

    A concept that stands only inside a longer one is part of it: of "1995" and "5 June 1995" the
    date is checked. The sentence as a whole is no detail of itself.
    """
    whole = sentence.strip(_AROUND)
    places = {
        concept: [
            (start, end)
            for start, end in _occurrences(sentence, concept)
            if sentence[start:end].strip(_AROUND) != whole
        ]
        for concept in dict.fromkeys(listed)
    }
    taken: list[tuple[int, int]] = []
    for spans in sorted(places.values(), key=_longest, reverse=True):
        free = next((span for span in spans if not _inside(span, taken)), None)
        if free is not None:
            taken.append(free)
    taken.sort()
    return Concepts(
        spans=tuple(Span.of(sentence, start, end) for start, end in taken[:limit]),
        dropped=len(places) - len(taken),
        left_out=max(0, len(taken) - limit),
    )


def find_concept(text: str, concept: str) -> tuple[int, int] | None:
    """Where `text` first holds `concept` as whole words; case and kinds of quotes do not matter."""
    return next(iter(_occurrences(text, concept)), None)


def asks_about(question: str, concept: str) -> bool:
    """Whether a validation question can be used: it holds the concept and no pronoun beside it."""
    found = find_concept(question, concept)
    if found is None:
        return False
    start, end = found
    return not _PRONOUN.search(f"{question[:start]} {question[end:]}")


def _occurrences(text: str, concept: str) -> list[tuple[int, int]]:
    for wanted in (concept.strip(), concept.strip(_AROUND)):
        words = wanted.translate(_ALIKE).split()
        if not words:
            continue
        pattern = re.compile(r"\s+".join(map(re.escape, words)), re.IGNORECASE)
        plain = text.translate(_ALIKE)
        found = [match.span() for match in pattern.finditer(plain) if _whole(plain, *match.span())]
        if found:
            return found
    return []


def _whole(text: str, start: int, end: int) -> bool:
    """Whether [start, end) begins and ends where words and numbers do."""
    before, after = text[max(0, start - 2) : start], text[end : end + 2]
    if before and _joins(before[-1], text[start]):
        return False
    if after and _joins(text[end - 1], after[0]):
        return False
    # "3" and "14" are no parts of "3.14", nor "000" of "12,000".
    within = before[:1].isdigit() and before[1:] in (".", ",") and text[start].isdigit()
    return not (
        within or (text[end - 1].isdigit() and after[:1] in (".", ",") and after[1:].isdigit())
    )


def _joins(left: str, right: str) -> bool:
    return left.isalnum() and right.isalnum() and not (has_han(left) or has_han(right))


def _longest(spans: Sequence[tuple[int, int]]) -> int:
    return max((end - start for start, end in spans), default=0)


def _inside(span: tuple[int, int], taken: Sequence[tuple[int, int]]) -> bool:
    return any(start <= span[0] and span[1] <= end for start, end in taken)

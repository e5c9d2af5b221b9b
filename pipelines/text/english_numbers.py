"""Dates, times, amounts and numbers of English text."""

from __future__ import annotations

import re
from collections.abc import Iterator

from pipelines.text.english_number_patterns import NUMBER_PATTERNS, NUMBER_WORD
from pipelines.text.entity_types import Candidate, Label

__all__ = ["number_candidates"]

_OPENS_SENTENCE = re.compile(r"(?:^|[.!?:;\n\"“”(\[*•–—-])[\s\"“(\[*]*$")
_ENUMERATOR = re.compile(r"(?:^|\n)[ \t]*$")
_ONE_AFTER = re.compile(
    r"\b(?:no|any|every|some|this|that|the|which|each|another|only|good|great|last|next|first|"
    r"new|old|big|small|loved|someone|not|is|was|as|or) $",
    re.IGNORECASE,
)
_ONE_BEFORE = re.compile(
    r" (?!of the\b)(?:of|can|could|may|might|must|should|would|will|is|was|has|had|another|by|"
    r"who|that|which|and|or|in|on|at|to|for|does|day|thing|way|needs?|side|hand)\b|[.,;:?!)\"'’]|$"
)
_PEOPLE_OR_THINGS = re.compile(r" (?:people|men|women|children|feet|species|[a-z]+[^s\W]s)\b")
_DATED_THINGS = re.compile(r" (?:elections?|games|olympics|games|was|is|has|this|sales|results)\b")
_MONEY_CUE = re.compile(
    r"[£]|\b(?:cost|price|paid|pay|worth|sold|bought|spen[dt]|sterling|million|billion|salary|fee|"
    r"fined?|debt|income|budget|revenue|prize|rent)",
    re.IGNORECASE,
)
_CUE_WINDOW = 60


def number_candidates(text: str) -> Iterator[Candidate]:
    """Numeric and temporal expressions of `text`, overlapping, the surer kind first."""
    for label, pattern in NUMBER_PATTERNS:
        for found in pattern.finditer(text):
            groups = found.groupdict()
            name = next((key for key in ("it", "it2") if groups.get(key)), 0)
            start, end = found.span(name)
            if _counts(text, start, end, label):
                yield Candidate(start, end, _relabelled(text, start, end, label))


def _counts(text: str, start: int, end: int, label: Label) -> bool:
    """Whether the match is meant as a number or a date here."""
    matched = text[start:end]
    before, after = text[max(0, start - _CUE_WINDOW) : start], text[end : end + _CUE_WINDOW]
    inside = matched[0].isupper() and not _OPENS_SENTENCE.search(before)
    if inside and (label == "ORDINAL" or NUMBER_WORD.match(matched)):
        # "One Hundred Years of Solitude" and "the First Amendment" are names.
        return False
    if label == "CARDINAL":
        if matched.lower() == "one":
            return not (_ONE_AFTER.search(before) or _ONE_BEFORE.match(after))
        listed = matched.isdigit() and re.match(r"[.)]\s", after)
        return not (listed and _ENUMERATOR.search(before))
    if label == "ORDINAL" and matched.lower() == "second":
        return re.search(r"\b(?:per|every|split)[ -]$", before) is None
    if label == "TIME" and matched.lower() == "a second":
        return re.match(r" [a-z]", after) is None
    return True


def _relabelled(text: str, start: int, end: int, label: Label) -> Label:
    matched, after = text[start:end], text[end : end + _CUE_WINDOW]
    if label == "DATE" and re.search(r"(?:^| )\d{4}$", matched) and not matched[0].isupper():
        counted = _PEOPLE_OR_THINGS.match(after) and not _DATED_THINGS.match(after)
        return "CARDINAL" if counted else label
    if "pound" in matched and not re.search("[£$]|sterling", matched):
        before = text[max(0, start - _CUE_WINDOW) : start]
        weighed = re.search(r"\bweigh\w*[^,.;]*$", before)
        return "MONEY" if not weighed and _MONEY_CUE.search(before + after) else "QUANTITY"
    return label

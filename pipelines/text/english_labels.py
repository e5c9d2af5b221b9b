"""What kind of thing an English name names."""

from __future__ import annotations

from pipelines.text.entity_types import Label
from pipelines.text.lexicon import words

__all__ = ["CUE_WORDS", "GAZETTEER", "SUFFIXES", "TITLES", "cue_label", "looks_like_person"]

_PLACES: tuple[tuple[str, Label], ...] = (
    ("countries", "GPE"),
    ("states", "GPE"),
    ("cities", "GPE"),
    ("regions", "LOC"),
    ("peoples", "NORP"),
    ("languages", "LANGUAGE"),
)
_NAMES: tuple[tuple[str, Label], ...] = (
    ("events", "EVENT"),
    ("works", "WORK_OF_ART"),
    ("laws", "LAW"),
    ("organisations", "ORG"),
    ("facilities", "FAC"),
    ("products", "PRODUCT"),
)
# Every name the lists know, and what it is when nothing around it says otherwise.
# A name on two lists is what the earlier list says, and a place before it is a thing.
GAZETTEER: dict[str, Label] = {
    name: label
    for file, lists in (("en_names", _NAMES), ("en_places", _PLACES))
    for list_name, label in reversed(lists)
    for name in words(file, list_name)
}

TITLES = words("en_names", "titles")
_GIVEN_NAMES = words("en_names", "given_names")

_LAST_WORD: tuple[tuple[frozenset[str], Label], ...] = (
    (words("en_names", "law_words"), "LAW"),
    (words("en_names", "work_words"), "WORK_OF_ART"),
    (words("en_names", "event_words"), "EVENT"),
    (words("en_names", "facility_words"), "FAC"),
    (words("en_names", "location_words"), "LOC"),
    (words("en_names", "organisation_words"), "ORG"),
    (words("en_names", "political_words"), "GPE"),
)
_FIRST_WORD: tuple[tuple[frozenset[str], Label], ...] = (
    (words("en_names", "event_prefixes"), "EVENT"),
    (words("en_names", "location_prefixes"), "LOC"),
)
# Alone they only point back: "the University", "the Act", "the Company".
CUE_WORDS = frozenset(
    word for table, label in _LAST_WORD if label not in {"WORK_OF_ART", "EVENT"} for word in table
)
_PARTICLES = words("en_names", "particles")
_LINKS = frozenset({"of", "for", "in", "and"})
SUFFIXES = frozenset({"Jr.", "Jr", "Sr.", "Sr", "II", "III", "IV", "VI", "VII", "VIII"})


def cue_label(name: list[str]) -> Label | None:
    """The kind that a word of the name gives away: "Lake ...", "... University", "Battle of ...".

    `name` is the name's words without a leading article. None when no word tells.
    """
    if len(name) < 2:
        return None
    if name[-1].isdigit() and name[0] in {"Section", "Article", "Title", "Amendment"}:
        return "LAW"
    if "&" in name:
        return "ORG"
    cut = next((i for i, word in enumerate(name) if i and word in _LINKS), len(name))
    for table, label in _FIRST_WORD:
        if name[0] in table:
            return label
    return next((label for table, label in _LAST_WORD if name[cut - 1] in table), None)


def looks_like_person(name: list[str]) -> bool:
    """Whether the name is built like a person's: a given name, initials, a particle, "Jr."."""
    first = name[0]
    initial = len(first) <= 4 and first.endswith(".") and first[0].isupper()
    return (
        first in _GIVEN_NAMES
        or (initial and len(name) > 1 and first not in {"St.", "Mt."})
        or name[-1] in SUFFIXES
        or (len(name) > 2 and any(word in _PARTICLES for word in name[1:-1]))
    )

"""Entities of English text by rules: numbers, dates, quoted titles and capitalised names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from pipelines.text.english_names import (
    GAZETTEER,
    TITLES,
    NameSpan,
    cue_label,
    is_common,
    looks_like_person,
    may_modify,
    names,
    opens_sentence,
)
from pipelines.text.entity_rules import Candidate, Label
from pipelines.text.languages import HAN
from pipelines.text.lexicon import Expressions, words

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

# Chinese characters and punctuation become vertical tabs: offsets stay, and names end there.
_NOT_LATIN = re.compile(f"[{HAN}\u3000-\u303f\uff00-\uffef]")
_QUOTED = re.compile(
    r"[\"“«](?P<quoted>[^\"“”«»\n\v]{2,80}?)[,.]?[\"”»]|"
    r"(?<![*\w])[*_](?P<italic>[^*_\n\v]{2,80})[*_](?![*\w])"
)
_CONTEXTS = Expressions("en_names")
_TITLE_LINKS = words("en_names", "title_links")
_WITH_THE = words("en_names", "with_the")
_POLITICAL = words("en_names", "political_words")
_WORK_BEFORE = words("en_names", "work_contexts")
_PLACE_BEFORE = words("en_names", "place_contexts")
_OF_PLACES = TITLES | {"capital", "city", "town", "village", "state", "king", "queen", "duke"}
_SPEAKS = _CONTEXTS["speaks"]
_PERSON_AFTER = _CONTEXTS["person_after"]
_ORGANISATION_BEFORE = _CONTEXTS["organisation_before"]
_DATED_AFTER = re.compile(r" \((?:1[89]|20)\d\d\)")
_LISTED = re.compile(r"(?:,|,? and|,? or) (?:the )?")
_KIN_BEFORE = words("en_names", "person_contexts")
_NAMED_TWICE = frozenset({"LANGUAGE", "NORP"})


@cache
def _tokenizer() -> Language:
    import spacy

    return spacy.blank("en")


def english_candidates(text: str, *, numbers: bool = True) -> list[Candidate]:
    """Return candidates for entities in the Latin-script parts of `text`, which may overlap.

    `numbers` is off for text in another language, whose own rules read the figures.
    """
    masked = _NOT_LATIN.sub("\v", text)
    figures = list(number_candidates(masked)) if numbers else []
    titles = list(_quoted_titles(masked))
    spelled = [c for c in figures if any(ch.isupper() for ch in masked[c.start : c.end])]
    busy = {i for c in [*spelled, *titles] for i in range(c.start, c.end)}
    doc = _tokenizer()(masked)
    found = [_candidate(masked, doc, name) for name in names(doc, busy)]
    found = [c for c in found if c.label != "MISC" or not is_common(masked[c.start : c.end])]
    return [*titles, *_resolved(masked, found), *figures]


def _quoted_titles(text: str) -> Iterator[Candidate]:
    """Yield titles of works between quotation marks or in Markdown italics."""
    for found in _QUOTED.finditer(text):
        start, end = found.span(found.lastgroup or 0)
        title = text[start:end].split()
        if not title or text[start].isspace():
            continue
        first, rest = title[0], title[1:]
        capitals = [word for word in title if word[0].isupper() or word[0].isdigit()]
        named = all(word in capitals or word in _TITLE_LINKS for word in rest)
        if not named or not first[0].isupper() or (len(title) == 1 and is_common(first)):
            continue
        if text[end - 1] in "!?" and len(title) < 3:
            continue
        label = GAZETTEER.get(text[start:end], "WORK_OF_ART")
        yield Candidate(start, end, label)


def _candidate(text: str, doc: Doc, name: NameSpan) -> Candidate:
    label = _label(text, doc, name)
    first = name.start - 1 if _takes_article(doc, name, label) else name.start
    return Candidate(doc[first].idx, doc[name.end - 1].idx + len(doc[name.end - 1]), label)


def _resolved(text: str, found: list[Candidate]) -> Iterator[Candidate]:
    """Yield the candidates; an unknown kind is taken from a fuller name before it or from
    its list.
    """
    surnames: set[str] = set()
    previous: Candidate | None = None
    for candidate in found:
        name = text[candidate.start : candidate.end]
        if candidate.label == "MISC":
            listed = previous and _LISTED.fullmatch(text, previous.end, candidate.start)
            if name in surnames:
                candidate = candidate._replace(label="PERSON")
            elif previous and listed:
                candidate = candidate._replace(label=previous.label)
        if candidate.label == "PERSON":
            surnames.add(name.split()[-1])
        yield candidate
        previous = candidate


def _label(text: str, doc: Doc, name: NameSpan) -> Label:
    phrase = doc[name.start : name.end].text
    run = [token.text for token in doc[name.start : name.end]]
    before, after = _context(text, doc, name)
    if name.titled:
        return "PERSON"
    known = GAZETTEER.get(phrase)
    if known in _NAMED_TWICE:
        return _people_or_language(phrase, before, after)
    if _last(before) in _WORK_BEFORE:
        return "WORK_OF_ART"
    if known is not None:
        return known
    cue = cue_label(run)
    if cue is not None:
        return cue
    if looks_like_person(run) or _PERSON_AFTER.match(after) or _last(before) in _KIN_BEFORE:
        return "PERSON"
    if len(run) == 1 and phrase.isupper() and phrase.isalpha():
        return "ORG"
    if _ORGANISATION_BEFORE.search(before):
        return "ORG"
    if _DATED_AFTER.match(after) or re.search(r"[^.!?\s\"“(]\s+(?:The|An?) $", before):
        return "WORK_OF_ART"
    if _last(before) in _PLACE_BEFORE or _beside_place(doc, name):
        return "GPE"
    if _rules(before):
        return "GPE"
    if re.search(r"\b(?:his|her|its|their|'s) $", before) and len(run) == 1:
        return "WORK_OF_ART"
    if 2 <= len(run) <= 4 and all(word[0].isupper() for word in run):
        return "PERSON"
    return "MISC"


def _context(text: str, doc: Doc, name: NameSpan) -> tuple[str, str]:
    # `text` is that of the document, which would be put together from its tokens every time.
    start, end = doc[name.start].idx, doc[name.end - 1].idx + len(doc[name.end - 1])
    return text[max(0, start - 80) : start], text[end : end + 40]


def _last(before: str) -> str:
    """Return the last word before the name, an article skipped."""
    spoken = [word for word in before.split() if word.lower() not in {"the", "a", "an"}]
    return spoken[-1].strip("\"'“(").lower() if spoken and before[-1:].isspace() else ""


def _rules(before: str) -> bool:
    """Return whether "the city of" or "Duke of" stands before the name."""
    spoken = before.split()[-2:]
    return len(spoken) == 2 and spoken[1] == "of" and spoken[0] in _OF_PLACES


def _people_or_language(phrase: str, before: str, after: str) -> Label:
    languages = words("en_places", "languages")
    if phrase not in languages:
        return "NORP"
    if phrase not in words("en_places", "peoples") or re.match(r" language\b", after):
        return "LANGUAGE"
    if _SPEAKS.search(before) is None:
        return "NORP"
    following = re.match(r" ([a-z]+)", after)
    return "NORP" if following and may_modify(following.group(1)) else "LANGUAGE"


def _beside_place(doc: Doc, name: NameSpan) -> bool:
    """Return whether ", Arkansas" or the like follows."""
    if name.end + 1 < len(doc) and doc[name.end].text == ",":
        following = doc[name.end + 1 : name.end + 3].text, doc[name.end + 1].text
        return any(GAZETTEER.get(place) == "GPE" for place in following)
    return False


def _takes_article(doc: Doc, name: NameSpan, label: Label) -> bool:
    """Return whether a "the" in front belongs to the entity, as in "the Nile" and not
    "the Prius".
    """
    article = doc[name.start - 1] if name.start else None
    if article is None or article.lower_ not in {"the", "a", "an"}:
        return False
    run = doc[name.start : name.end]
    if article.text[0].isupper() and not opens_sentence(doc, name.start - 1):
        return True
    if article.lower_ != "the":
        return False
    following = doc[name.end].text if name.end < len(doc) else ""
    if len(run) == 1 and may_modify(following):
        return False
    if label == "GPE":
        return any(token.text in _POLITICAL | _WITH_THE for token in run) or "of" in run.text
    if label == "WORK_OF_ART":
        return len(run) > 1
    return label in {"ORG", "FAC", "LOC", "EVENT", "LAW", "MISC"}


# Numbers

_NUMBERS = Expressions("en_numbers")
_OPENS_SENTENCE = _NUMBERS["opens_sentence"]
_ENUMERATOR = re.compile(r"(?:^|\n)[ \t]*$")
_ONE_AFTER = _NUMBERS["one_after"]
_ONE_BEFORE = _NUMBERS["one_before"]
_PEOPLE_OR_THINGS = _NUMBERS["people_or_things"]
_DATED_THINGS = _NUMBERS["dated_things"]
_MONEY_CUE = _NUMBERS["money_cue"]
_SPELLED_FIRST = _NUMBERS["spelled_first"]
_CUE_WINDOW = 60


def number_candidates(text: str) -> Iterator[Candidate]:
    """Yield numeric and temporal expressions of `text`, overlapping, the more certain
    kind first.
    """
    for label, pattern in _NUMBERS.patterns:
        for found in pattern.finditer(text):
            groups = found.groupdict()
            name = next((key for key in ("it", "it2") if groups.get(key)), 0)
            start, end = found.span(name)
            if _counts(text, start, end, label):
                yield Candidate(start, end, _relabelled(text, start, end, label))


def _counts(text: str, start: int, end: int, label: Label) -> bool:
    """Return whether the match is meant as a number or a date here."""
    matched = text[start:end]
    before, after = text[max(0, start - _CUE_WINDOW) : start], text[end : end + _CUE_WINDOW]
    inside = matched[0].isupper() and not _OPENS_SENTENCE.search(before)
    if inside and (label == "ORDINAL" or _SPELLED_FIRST.match(matched)):
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

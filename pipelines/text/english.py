"""Entities of English text by rules: numbers, dates, quoted titles and capitalised names."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

from pipelines.text.chinese import Expressions, labelled, table, words
from pipelines.text.entity_rules import Candidate, Label
from pipelines.text.languages import HAN

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc, Token


# Names in English text: which capitalised words are one name, and what kind of thing it names.

# Ordinary words

ACRONYMS = words("en_common", "acronyms")
_FUNCTION_WORDS = words("en_common", "function_words")
_NOUNS = words("en_common", "nouns")
_COMMON = _FUNCTION_WORDS | words("en_common", "nouns", "others", "past_verbs")
_PAST_VERBS = words("en_common", "past_verbs")
_ABSTRACT_ENDING = Expressions("en_common")["abstract_ending"]
_SHORTEST_ABSTRACT = 7
_VERB_ENDING = re.compile(r"(?:ed|s|ly)$")
_ENDINGS: dict[str, list[str]] = table("en_common", "base_endings")


def is_function_word(word: str) -> bool:
    """Return whether `word`, in any case, is a pronoun, preposition, conjunction or adverb."""
    return word.lower() in _FUNCTION_WORDS


def is_common(word: str) -> bool:
    """Return whether `word` or its base form is ordinary, or built like an abstract noun."""
    lowered = word.lower()
    if any(form in _COMMON for form in base_forms(lowered)):
        return True
    return len(lowered) >= _SHORTEST_ABSTRACT and _ABSTRACT_ENDING.search(lowered) is not None


def may_modify(following: str) -> bool:
    """Return whether `following`, the lower-case word after a name, can be a noun the name
    qualifies.

    "Tesla cars" and "the Danube delta" against "Tesla sold", "Mozart died" and "the Danube is".
    """
    if not following[:1].islower() or following in _FUNCTION_WORDS or following in _PAST_VERBS:
        return False
    if _VERB_ENDING.search(following) is None or following.endswith(("ics", "ss", "us")):
        return True
    return following.removesuffix("s") in _NOUNS


def base_forms(word: str) -> Iterator[str]:
    """Yield `word` and the words that it can be a form of."""
    yield word
    for ending, endings in _ENDINGS.items():
        if word.endswith(ending):
            stem = word[: -len(ending)]
            yield from (stem + other for other in endings)
            if len(stem) > 2 and stem[-1] == stem[-2]:
                yield stem[:-1]


# Kinds of names

# Every name the lists know, and what it is when nothing around it says otherwise.
# Where several lists have a name, the earliest decides, and those of places before all others.
GAZETTEER: dict[str, Label] = {
    name: label
    for file in ("en_names", "en_places")
    for entries, label in reversed(labelled(file, "kinds"))
    for name in entries
}

TITLES = words("en_names", "titles")
_GIVEN_NAMES = words("en_names", "given_names")

_LAST_WORD = labelled("en_names", "last_words")
_FIRST_WORD = labelled("en_names", "first_words")
# Alone they only point back: "the University", "the Act", "the Company".
CUE_WORDS = frozenset(
    word for group, label in _LAST_WORD if label not in {"WORK_OF_ART", "EVENT"} for word in group
)
_PARTICLES = words("en_names", "particles")
SUFFIXES = frozenset({"Jr.", "Jr", "Sr.", "Sr", "II", "III", "IV", "VI", "VII", "VIII"})


def cue_label(name: list[str]) -> Label | None:
    """Return the kind that a word of the name shows: "Lake ...", "... University", "Battle of ...".

    `name` is the name's words without a leading article. None when no word shows it.
    """
    if len(name) < 2:
        return None
    if name[-1].isdigit() and name[0] in {"Section", "Article", "Title", "Amendment"}:
        return "LAW"
    if "&" in name:
        return "ORG"
    cut = next((i for i, word in enumerate(name) if i and word in _LINKS), len(name))
    for entries, label in _FIRST_WORD:
        if name[0] in entries:
            return label
    return next((label for entries, label in _LAST_WORD if name[cut - 1] in entries), None)


def looks_like_person(name: list[str]) -> bool:
    """Return whether it is built like a person's name: given name, initials, particle, "Jr."."""
    first = name[0]
    initial = len(first) <= 4 and first.endswith(".") and first[0].isupper()
    return (
        first in _GIVEN_NAMES
        or (initial and len(name) > 1 and first not in {"St.", "Mt."})
        or name[-1] in SUFFIXES
        or (len(name) > 2 and any(word in _PARTICLES for word in name[1:-1]))
    )


# Extents of names

_INNER_PARTICLES = _PARTICLES | {"sur", "en", "upon", "on", "au"}
_LINKS = {
    "of": words("en_names", "of_heads"),
    "for": words("en_names", "for_heads"),
    "and": words("en_names", "and_heads"),
    "in": frozenset({"Prize", "Award", "Medal"}),
}
_NUMBERED = words("en_names", "numbered_words")
_OWNED = words("en_names", "owned_words")
_AFTER_COMMA = frozenset(["Inc.", "Inc", "Ltd.", "Ltd", "LLC", "Jr.", "Jr", "Sr.", "Sr"])
_MOST_TOKENS = 16
_YEAR = re.compile(r"1\d{3}|20\d{2}")
_STOPS = frozenset([*".!?:;…•*-–—#>|", "...", "?!", "!!"])
_NEVER_INSIDE = words("en_names", "never_inside")
_OPENING_MARKS = frozenset(['"', "“", "‘", "(", "[", "{", "'", "«"])


class NameSpan(NamedTuple):
    """A name at tokens `[start, end)`; `titled` when a person's title stands before it."""

    start: int
    end: int
    titled: bool = False


def names(doc: Doc, busy: Collection[int]) -> Iterator[NameSpan]:
    """Yield the names of `doc` in order, articles left out.

    `busy` holds the character offsets that dates and other expressions already cover; no name
    begins on one or runs over one.
    """
    position = 0
    while position < len(doc):
        if doc[position].idx in busy or not _can_be_name(doc[position]):
            position += 1
            continue
        end = _extent(doc, position, busy)
        yield from _pieces(doc, *_without_opening(doc, position, end))
        position = end


def opens_sentence(doc: Doc, position: int) -> bool:
    """Return whether its position may capitalise the token: after a stop, line break, quote."""
    if position == 0:
        return True
    before = doc[position - 1]
    if before.is_space:
        # Chinese text is masked by vertical tabs; what follows it does not open a sentence.
        return "\n" in before.text
    if before.text in _OPENING_MARKS:
        # A bracket in mid-sentence opens none; a quotation does.
        return before.text != "(" or position == 1 or doc[position - 2].text in _STOPS
    return before.text in _STOPS and (before.text != "-" or bool(before.whitespace_))


def _can_be_name(token: Token) -> bool:
    text = token.text
    if "_" in text or not any(character.isalpha() for character in text):
        return False
    if _plain(text) in ACRONYMS:
        return False
    capital = text[0].isupper() or (text[0].islower() and any(c.isupper() for c in text[1:3]))
    return (capital and text != "I") or text in GAZETTEER


def _plain(text: str) -> str:
    """Return an acronym without the -s of its plural."""
    return text[:-1] if text.endswith("s") and text[:-1].isupper() else text


def _extent(doc: Doc, start: int, busy: Collection[int]) -> int:
    """Return the end of the longest run of tokens from `start` that can be one name."""
    end = start + 1
    while end < min(len(doc), start + _MOST_TOKENS):
        step = _step(doc, start, end)
        if not step or any(doc[i].idx in busy for i in range(end, end + step)):
            break
        end += step
    return end


def _step(doc: Doc, start: int, end: int) -> int:
    """Return how many more tokens belong to the name `[start, end)`; 0 when it ends here."""
    last, token = doc[end - 1], doc[end]
    following = [other.text for other in doc[end : end + 3]]
    if not last.whitespace_:
        return _step_joined(doc, start, end, following)
    if token.is_space or (last.text in {"Jr.", "Inc.", "Ltd."} and token.text != "Co."):
        return 0
    if _can_be_name(token) and not _never_inside(doc, end):
        return 1
    if token.text == "&" and token.whitespace_ and _name_at(doc, end + 1):
        return 2
    if token.text == "I" and looks_like_person([last.text]):
        return 1
    if re.fullmatch(r"\d{1,4}(?:\.\d)?", token.text) and not _YEAR.fullmatch(token.text):
        return int(doc[start : end + 1].text in GAZETTEER or last.text in _NUMBERED)
    return _step_linked(doc, start, end)


def _step_joined(doc: Doc, start: int, end: int, following: list[str]) -> int:
    """Return the same when no white space comes first: hyphens, possessives, commas."""
    if following[0] in {"-", "–", "'", "’", "/"} and not doc[end].whitespace_:
        if _name_at(doc, end + 1):
            return 2
        particle = following[1:2] and following[1] in _INNER_PARTICLES
        return 4 if particle and following[2:3] == ["-"] and _name_at(doc, end + 3) else 0
    if following[0] in {"'s", "’s"} and _name_at(doc, end + 1):
        owned = doc[_extent(doc, end + 1, ()) - 1].text if end + 1 < len(doc) else ""
        return 2 if owned in _OWNED else 0
    if following[0] == "," and following[1:2] and following[1] in _AFTER_COMMA:
        return 2
    return 0


def _step_linked(doc: Doc, start: int, end: int) -> int:
    """Return the same for small words inside a name: "of the", "van der", "for", "and"."""
    particles = end
    while particles < len(doc) and doc[particles].text in _PARTICLES:
        particles += 1
    if particles > end and particles - end <= 2 and _name_at(doc, particles):
        return particles - end + 1
    link = doc[end].text
    heads = _LINKS.get(link)
    if heads is None:
        return 0
    article = 1 if end + 1 < len(doc) and doc[end + 1].text == "the" and link == "of" else 0
    if not _name_at(doc, end + 1 + article):
        return 0
    run = [token.text for token in doc[start:end]]
    if link in {"and", "in"}:
        # "Department of Health and Human Services", but "University of Oxford and Cambridge".
        linked = any(word in heads for word in run) and (link == "in" or "of" in run)
    elif link == "of" and len(run) == 1 and looks_like_person(run):
        linked = not article and (start == 0 or doc[start - 1].lower_ != "the")
    else:
        linked = run[-1] in heads
    return 2 + article if linked else 0


def _never_inside(doc: Doc, position: int) -> bool:
    """Return whether a capitalised token inside a sentence still is no part of a name."""
    token = doc[position]
    return token.text in _NEVER_INSIDE or (
        opens_sentence(doc, position) and is_function_word(token.text)
    )


def _name_at(doc: Doc, position: int) -> bool:
    return position < len(doc) and _can_be_name(doc[position])


def _without_opening(doc: Doc, start: int, end: int) -> tuple[int, int]:
    """Return the run without a first word that is capitalised only for opening a sentence."""
    while start < end and opens_sentence(doc, start):
        if _stays(doc, start, end):
            break
        start += 1
        while start < end and not _can_be_name(doc[start]):
            start += 1
        if start < end and not is_function_word(doc[start].text):
            break
    return start, end


def _stays(doc: Doc, start: int, end: int) -> bool:
    """Return whether the first word of the run, which opens a sentence too, is part of a name."""
    word = doc[start].text
    run = [token.text for token in doc[start:end]]
    if any(doc[start : start + width].text in GAZETTEER for width in range(len(run), 1, -1)):
        return True
    if is_function_word(word):
        return False
    if len(run) > 1:
        return (
            looks_like_person(run)
            or word in TITLES
            or cue_label(run) is not None
            or not is_common(word)
        )
    if is_common(word):
        return False
    following = doc[end].text if end < len(doc) else ""
    if word in GAZETTEER or looks_like_person(run) or word.isupper() or not word.isascii():
        return True
    return not may_modify(following) and not _is_plural(word, following)


def _is_plural(word: str, following: str) -> bool:
    """Return whether "Bats sleep" rather than "Mars turns": a plural takes a verb without -s."""
    if following in {"are", "were", "have", "do"}:
        return True
    if not word.endswith("s") or word.endswith(("ss", "us", "is")):
        return False
    return following in {"can", "may", "must", "often", "usually"} or (
        following[:1].islower()
        and not following.endswith(("s", "ed"))
        and not is_function_word(following)
    )


def _pieces(doc: Doc, start: int, end: int) -> Iterator[NameSpan]:
    """Yield the run cut into names: without titles, a people or country before it apart."""
    run = [token.text for token in doc[start:end]]
    alone = run[0] if len(run) == 1 else ""
    if not run or len(alone) == 1 or (alone in CUE_WORDS and alone not in GAZETTEER):
        return
    if doc[start:end].text in GAZETTEER or cue_label(run) is not None:
        yield NameSpan(start, end)
        return
    for i in range(len(run) - 1, -1, -1):
        if run[i] in TITLES and not _is_surname(run, i) and run[i + 1 : i + 2] != ["-"]:
            first = i
            while first > 0 and run[first - 1] in TITLES:
                first -= 1
            yield from _pieces(doc, start, start + first)
            if run[i + 1 : i + 2] == ["of"]:
                yield from _pieces(doc, start + i + 2, end)
            elif i + 1 < len(run):
                yield NameSpan(start + i + 1, end, titled=True)
            return
    for width in (2, 1):
        head = doc[start : start + width].text
        if width < len(run) and GAZETTEER.get(head) in {"NORP", "GPE"} and run[width] != "-":
            rest = run[width:]
            if looks_like_person(run) or not (len(rest) == 1 or looks_like_person(rest)):
                break
            yield NameSpan(start, start + width)
            yield from _pieces(doc, start + width, end)
            return
    yield NameSpan(start, end)


def _is_surname(run: list[str], position: int) -> bool:
    """Return whether a word that can be a title ends a person's name: "Stephen King"."""
    rest = run[position + 1 :]
    return position > 0 and looks_like_person(run[:position]) and (not rest or rest[0] in SUFFIXES)


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
    """Yield the candidates; an unknown kind is taken from a fuller name before or its list."""
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
    """Return whether a "the" in front is part of it: "the Nile", but not "the Prius"."""
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
    """Yield numeric and temporal expressions of `text`, overlapping, the more certain first."""
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

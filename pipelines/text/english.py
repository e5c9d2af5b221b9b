"""Entities of English text by rules: numbers, dates, quoted titles and capitalised names."""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import TYPE_CHECKING

from pipelines.text.english_names import (
    GAZETTEER,
    TITLES,
    Name,
    cue_label,
    is_common,
    looks_like_person,
    may_modify,
    names,
    opens_sentence,
)
from pipelines.text.entity_rules import Candidate, Label, words
from pipelines.text.languages import HAN

if TYPE_CHECKING:
    from spacy.language import Language
    from spacy.tokens import Doc

__all__ = ["english_candidates"]

# Chinese characters and punctuation become vertical tabs: offsets stay, and names end there.
_NOT_LATIN = re.compile(f"[{HAN}\u3000-\u303f\uff00-\uffef]")
_QUOTED = re.compile(
    r"[\"“«](?P<quoted>[^\"“”«»\n\v]{2,80}?)[,.]?[\"”»]|"
    r"(?<![*\w])[*_](?P<italic>[^*_\n\v]{2,80})[*_](?![*\w])"
)
_TITLE_LINKS = words("en_names", "title_links")
_WITH_THE = words("en_names", "with_the")
_POLITICAL = words("en_names", "political_words")
_WORK_BEFORE = words("en_names", "work_contexts")
_PLACE_BEFORE = words("en_names", "place_contexts")
_OF_PLACES = TITLES | {"capital", "city", "town", "village", "state", "king", "queen", "duke"}
_SPEAKS = re.compile(
    r"\b(?:speaks?|spoke|spoken|speaking|languages?|translated|translation|fluent|learn\w*|"
    r"written in|wrote in|dialects?|means? in|in)\b[^.!?]*$"
)
_PERSON_AFTER = re.compile(
    r",? (?:who|was born|died|wrote|painted|composed|married|said|says|invented|discovered|"
    r"was (?:educated|raised|appointed|elected|buried|knighted)|studied|attended|graduated|"
    r"became|retired|served|began his|began her)\b|"
    r",? (?:the|an?) (?:son|daughter|author|painter|physicist|writer|scientist|poet)\b"
)
_ORGANISATION_BEFORE = re.compile(
    r"\b(?:joined|(?:play\w*|debut|goals|work\w*|caps) for|sign\w+ (?:for|with|by)|work\w* at"
    r"|acquired by|(?:co-)?founded|employed by|(?:graduated|degree) from"
    r"|(?:CEO|director|manager|chairman|member|president) of"
    r"|(?:studied|educated|taught|professor) at) (?:the )?$"
)
_DATED_AFTER = re.compile(r" \((?:1[89]|20)\d\d\)")
_LISTED = re.compile(r"(?:,|,? and|,? or) (?:the )?")
_KIN_BEFORE = words("en_names", "person_contexts")
_NAMED_TWICE = frozenset({"LANGUAGE", "NORP"})


@cache
def _tokenizer() -> Language:
    import spacy

    return spacy.blank("en")


def english_candidates(text: str, *, numbers: bool = True) -> list[Candidate]:
    """Candidates for entities in the Latin-script parts of `text`, which may overlap.

    `numbers` is off for text in another language, whose own rules read the figures.
    """
    masked = _NOT_LATIN.sub("\v", text)
    figures = list(number_candidates(masked)) if numbers else []
    titles = list(_quoted_titles(masked))
    spelled = [c for c in figures if any(ch.isupper() for ch in masked[c.start : c.end])]
    busy = {i for c in [*spelled, *titles] for i in range(c.start, c.end)}
    doc = _tokenizer()(masked)
    found = [_candidate(doc, name) for name in names(doc, busy)]
    found = [c for c in found if c.label != "MISC" or not is_common(masked[c.start : c.end])]
    return [*titles, *_resolved(masked, found), *figures]


def _quoted_titles(text: str) -> Iterator[Candidate]:
    """Titles of works between quotation marks or in Markdown italics."""
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


def _candidate(doc: Doc, name: Name) -> Candidate:
    label = _label(doc, name)
    first = name.start - 1 if _takes_article(doc, name, label) else name.start
    return Candidate(doc[first].idx, doc[name.end - 1].idx + len(doc[name.end - 1]), label)


def _resolved(text: str, found: list[Candidate]) -> Iterator[Candidate]:
    """The candidates; an unknown kind is taken from a fuller name before it or from its list."""
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


def _label(doc: Doc, name: Name) -> Label:
    phrase = doc[name.start : name.end].text
    run = [token.text for token in doc[name.start : name.end]]
    before, after = _context(doc, name)
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


def _context(doc: Doc, name: Name) -> tuple[str, str]:
    start, end = doc[name.start].idx, doc[name.end - 1].idx + len(doc[name.end - 1])
    return doc.text[max(0, start - 80) : start], doc.text[end : end + 40]


def _last(before: str) -> str:
    """The last word before the name, an article skipped."""
    spoken = [word for word in before.split() if word.lower() not in {"the", "a", "an"}]
    return spoken[-1].strip("\"'“(").lower() if spoken and before[-1:].isspace() else ""


def _rules(before: str) -> bool:
    """Whether "the city of" or "Duke of" stands before the name."""
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


def _beside_place(doc: Doc, name: Name) -> bool:
    """Whether ", Arkansas" or the like follows."""
    if name.end + 1 < len(doc) and doc[name.end].text == ",":
        following = doc[name.end + 1 : name.end + 3].text, doc[name.end + 1].text
        return any(GAZETTEER.get(place) == "GPE" for place in following)
    return False


def _takes_article(doc: Doc, name: Name, label: Label) -> bool:
    """Whether a "the" in front belongs to the entity, as in "the Nile" and not "the Prius"."""
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


# What numbers look like


def _either(spaced: str) -> str:
    """A non-capturing group of the words of `spaced`, the longest first."""
    return "(?:" + "|".join(sorted(spaced.split(), key=len, reverse=True)) + ")"


_UNIT_WORD = "one two three four five six seven eight nine"
_SMALL = _either(
    f"{_UNIT_WORD} ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen"
)
_TENS = _either("twenty thirty forty fifty sixty seventy eighty ninety")
_MAGNITUDE = "(?:hundred|thousand|million|billion|trillion|dozen)"
_SPELLED_PART = rf"(?:{_TENS}(?:[- ]{_either(_UNIT_WORD)})?|{_SMALL}|{_MAGNITUDE})"
_SPELLED = (
    rf"(?i:(?:(?:a |half a )(?={_MAGNITUDE}\b))?"
    rf"{_SPELLED_PART}(?:[ -](?:and )?{_SPELLED_PART}){{0,9}}\b)"
)
_DIGITS = rf"(?:(?:\d{{1,3}}(?:,\d{{3}})+|\d+)(?:\.\d+|[½¼¾⅓⅔])?(?:[ -]{_MAGNITUDE}\b)?)"
_NUMBER = rf"(?:{_DIGITS}|{_SPELLED})"
_APPROXIMATELY = (
    r"(?:(?i:(?:just |well |slightly )?(?:over|under)|about|around|approximately|roughly|nearly|"
    r"almost|some|more than|less than|fewer than|no (?:more|less|fewer) than|at (?:least|most)|"
    r"up to|close to|as (?:many|much|few|little) as|an estimated) )?"
)
_RANGE = rf"{_APPROXIMATELY}(?:{_NUMBER}(?:\s?[–—-]\s?| to | or )(?={_NUMBER}))?{_NUMBER}"
_BETWEEN = rf"(?i:between ){_NUMBER} and {_NUMBER}"
_AMOUNT = rf"(?:{_BETWEEN}|{_RANGE})"
_VAGUE = r"(?i:a few|several|many|a couple of|an?|half an?|a single|the (?:next|last|past|first))"

_MONTH_NAME = _either(
    "January February March April May June July August September October November December"
)
_MONTH = rf"(?:{_MONTH_NAME}|(?:Jan|Feb|Mar|Apr|Jun|Jul|Aug|Sept?|Oct|Nov|Dec)\b\.?)"
_SURE_MONTH = _MONTH_NAME.replace("|May", "").replace("|March", "")
_WEEKDAY = _either("Monday Tuesday Wednesday Thursday Friday Saturday Sunday")
_SEASON = "(?:spring|summer|autumn|fall|winter)"
_DAY = r"(?:0?[1-9]|[12]\d|3[01])(?:st|nd|rd|th)?"
_YEAR = r"(?:1\d{3}|20\d{2})"
_ERA = r"(?: ?(?:BCE|BC|CE|AD)\b| ?(?:B\.C\.(?:E\.)?|A\.D\.|C\.E\.))"
_STAGE = r"(?i:(?:very )?(?:early|mid|late|the end of|the beginning of)[ -]?)"
_CIRCA = r"(?i:(?:about|around|circa|c\.|ca\.) )?"
_SPAN = (
    "(?:days?|weeks?|weekends?|fortnights?|months?|quarters?|years?|decades?|centur(?:y|ies)|"
    "millenni(?:a|um))"
)
_CLOCK_SPAN = "(?:milliseconds?|seconds?|minutes?|hours?)"
_AFTERWARDS = r"(?: (?:ago|later|earlier|old|in a row))?"
_PART_OF_DAY = "(?:morning|afternoon|evening|night)"

_ORDINAL_TENS = _either(
    "twentieth thirtieth fortieth fiftieth sixtieth seventieth eightieth ninetieth"
)
_ORDINAL_UNIT = _either("first second third fourth fifth sixth seventh eighth ninth")
_ORDINAL_WORD = (
    rf"(?i:{_TENS}-{_ORDINAL_UNIT}|{_ORDINAL_UNIT}|{_ORDINAL_TENS}|tenth|eleventh|twelfth|"
    r"thirteenth|fourteenth|fifteenth|sixteenth|seventeenth|eighteenth|nineteenth|hundredth)"
)
_ORDINAL = rf"(?:{_ORDINAL_WORD}|\d+(?:st|nd|rd|th))\b"

_UNIT = (
    r"(?:(?:square|cubic|nautical|metric|light)[- ])?(?:"
    + "|".join(
        (
            r"(?:kilo|centi|milli|micro|nano|mega|giga|tera|deci)?"
            r"(?:met(?:re|er)s?|grams?|grammes?|lit(?:re|er)s?|watts?|bytes?|hertz|joules?|volts?|"
            r"calories|pascals?|tons?|tonnes?|newtons?)(?:[- ]hours?)?",
            r"miles?|yards?|feet|foot|inch(?:es)?|acres?|hectares?|light[- ]years?|parsecs?|"
            r"fathoms?|knots?",
            r"pounds?|ounces?|carats?|gallons?|pints?|quarts?|barrels?|bushels?|"
            r"teaspoons?|tablespoons?|cups?|horsepower|amperes?|ohms?|decibels?|pixels?|bits?",
            r"degrees?(?: (?:Celsius|Fahrenheit|Kelvin|[CF]\b|north|south|east|west))?|kelvins?",
            r"(?:km|cm|mm|nm|µm|kg|mg|g|lbs?|oz|ft|mi|m|ha|l|L|ml|mL|kW|MW|GW|W|kWh|TWh|MB|GB|TB|"
            r"KB|GHz|MHz|kHz|Hz|mph|kph|km/h|m/s|hp|psi|dB|V|K)(?:[²³]|\b)|°\s?[CF]?|[′″]",
        )
    )
    + r")(?: per (?:hour|second|minute|day|capita|litre|liter)| squared)?"
)
_CURRENCY_SIGN = r"(?:US|HK|NZ|[ACSR])?[$£€¥₹₩₽]|(?:USD|EUR|GBP|JPY|CNY|RMB) "
_CURRENCY = (
    r"(?:(?:U\.?S\.?|American|Canadian|Australian|Hong Kong|Swiss|Japanese|Chinese) )?"
    r"(?:dollars?|euros?|pounds?(?: sterling)?|yen|yuan|renminbi|(?:South )?Korean won|rupees?|"
    r"francs?|pesos?|r(?:o)?ubles?|lira|shillings?|cents?|pence|kron(?:or|er|a|e)|guilders?|rand|dirhams?|"
    r"riyals?|Deutsche [Mm]arks?|florins?|ducats?|talents)\b"
)
_MONEY_DIGITS = rf"\s?{_DIGITS}(?:\s?(?:bn|m|k|M|B|K)\b)?"
_HOLIDAY = "|".join(
    re.escape(name) for name in sorted(words("en_names", "holidays"), key=len, reverse=True)
)
NUMBER_WORD = re.compile(rf"{_APPROXIMATELY}(?i:{_SPELLED_PART})\b")
_NOT_INSIDE = r"(?<![\w.,$£€¥-])"

# A group named "it" or "it2" marks the entity where the rule needs words around it.
_PATTERNS: tuple[tuple[Label, str], ...] = (
    (
        "DATE",
        rf"(?:(?:{_WEEKDAY}),? )?(?:the )?{_DAY}(?: of)? {_MONTH}"
        rf"(?:,? (?:\d{{1,4}}{_ERA}|{_YEAR}\b))?",
    ),
    ("DATE", rf"(?:{_WEEKDAY},? )?{_MONTH} {_DAY}(?: ?[–-] ?{_DAY})?\b(?:,? {_YEAR}\b)?(?!,\d)"),
    ("DATE", rf"{_STAGE}?{_MONTH},? (?:of )?{_YEAR}\b"),
    ("DATE", rf"{_STAGE}?{_SURE_MONTH}\b"),
    (
        "DATE",
        r"\b(?i:in|of|since|until|till|by|last|next|this|from|through|to|during|before|after|"
        rf"each|every) (?P<it>{_STAGE}?(?:May|March))\b(?! [A-Z])",
    ),
    ("DATE", rf"(?:(?i:last|next|this|every|each|that) )?\b{_WEEKDAY}s?\b"),
    (
        "DATE",
        rf"(?:(?i:the) )?(?:{_STAGE})?(?i:{_SEASON}) (?:of )?{_YEAR}\b|"
        rf"(?i:(?:last|next|this|every|each|that|the (?:following|previous|same)) "
        rf"(?:{_SEASON}|{_SPAN}))\b",
    ),
    (
        "DATE",
        rf"(?i:the (?:last|next|past|first|previous|following) )?{_NUMBER} "
        rf"(?:consecutive )?{_SPAN}\b{_AFTERWARDS}",
    ),
    ("DATE", rf"{_AMOUNT}(?: consecutive| full| long)? {_SPAN}\b{_AFTERWARDS}"),
    ("DATE", rf"\b{_VAGUE} {_SPAN}\b{_AFTERWARDS}|(?i:every|each) {_NUMBER} {_SPAN}\b"),
    ("DATE", rf"{_NUMBER}-(?:day|week|month|year)s?(?:-old)?\b"),
    ("DATE", rf"(?i:\bage of|\baged|\bat age|\bturned) (?P<it>{_NUMBER})\b(?! {_UNIT}\b)"),
    ("DATE", r"\b(?i:at) (?P<it>\d{2})(?=[,.;]|$)|(?<=[a-z]), (?P<it2>\d{2})(?=, )"),
    ("DATE", rf"{_CIRCA}(?:AD |A\.D\. )?\d{{1,4}}(?:[–-]\d{{1,4}})?{_ERA}"),
    ("DATE", rf"{_CIRCA}(?:AD|A\.D\.) \d{{1,4}}\b"),
    ("DATE", rf"\b(?i:between ){_YEAR} and {_YEAR}\b|{_YEAR}(?:\s?[–—-]\s?| to ){_YEAR}\b"),
    (
        "DATE",
        rf"{_YEAR}[–-]\d{{2}}\b(?!-)|\d{{4}}-\d{{2}}-\d{{2}}\b|\d{{1,2}}/\d{{1,2}}/\d{{2,4}}\b",
    ),
    ("DATE", rf"{_CIRCA}(?i:(?:the )?year )?\b{_YEAR}\b(?!,\d|\.\d|%)"),
    (
        "DATE",
        r"\b(?i:in|since|until|by|around|before|after) (?P<it>[1-9]\d{2})\b"
        r"(?=[,.;:)]|$| (?:and|by|when|at|after|with|as|to|for|under|the|on|he|she|it|but)\b)",
    ),
    ("DATE", rf"(?i:the )?{_STAGE}?\b(?:1\d|20)\d0['’]?s\b|(?i:the )?{_STAGE}?['’]\d0s\b"),
    (
        "DATE",
        rf"(?i:the )?{_STAGE}?(?:{_ORDINAL}(?:[ –-](?:to |and |or )?(?=\w))?)+[ -]"
        rf"(?:centur(?:y|ies)|millennium)\b{_ERA}?",
    ),
    ("DATE", r"(?:(?i:the) )?(?:[A-Z][\w'’-]+ ){1,2}(?:[Dd]ynasty|[Ee]ra|Period|Age)\b"),
    ("DATE", rf"(?:\b(?i:the) )?\b(?:{_HOLIDAY})\b|\b(?i:today|yesterday|tomorrow)\b"),
    (
        "TIME",
        r"\b\d{1,2}(?::\d{2}){0,2}(?:\s?[–-]\s?\d{1,2}(?::\d{2})?)?\s?"
        r"(?:[ap]\.m\.|[ap]m\b|[AP]\.M\.|[AP]M\b)",
    ),
    ("TIME", r"\b(?:[01]?\d|2[0-4]):[0-5]\d(?::[0-5]\d)?\b|\b(?i:noon|midnight)\b"),
    ("TIME", rf"{_NUMBER} o['’]clock\b(?: in the {_PART_OF_DAY})?"),
    (
        "TIME",
        rf"\b(?:(?i:this|that|last|every|each|the next|the following|the same|yesterday|tomorrow)|"
        rf"{_WEEKDAY}) {_PART_OF_DAY}\b|\b(?i:tonight)\b",
    ),
    ("TIME", rf"{_AMOUNT}[ -]{_CLOCK_SPAN}\b{_AFTERWARDS}|\b{_VAGUE} {_CLOCK_SPAN}\b{_AFTERWARDS}"),
    ("PERCENT", rf"{_AMOUNT}\s?(?:%|(?:percent|per cent|pct|percentage points?|percentiles?)\b)"),
    (
        "MONEY",
        rf"{_APPROXIMATELY}(?:{_CURRENCY_SIGN}){_MONEY_DIGITS}(?: (?:or|to|and) "
        rf"(?:{_CURRENCY_SIGN}){_MONEY_DIGITS}|\s?[–-]\s?(?:{_CURRENCY_SIGN})?{_MONEY_DIGITS})?"
        rf"(?: {_CURRENCY})?",
    ),
    ("MONEY", rf"{_AMOUNT} {_CURRENCY}"),
    ("QUANTITY", rf"{_NUMBER} (?:feet|foot),? (?:and )?{_NUMBER} inch(?:es)?\b"),
    ("QUANTITY", rf"[-−]?{_AMOUNT}[- ]?{_UNIT}(?![\w/])|(?i:half an?) (?:mile|acre|inch|pound)\b"),
    ("ORDINAL", rf"(?<!at )\b{_ORDINAL}(?!-| names?\b| lad(?:y|ies)\b| of all\b)"),
    (
        "CARDINAL",
        rf"(?i:{_SPELLED_PART})[- ](?:thirds|quarters|fifths|sixths|eighths|tenths)\b|"
        r"(?i:one|a)[- ](?:third|quarter|fifth|tenth)\b|"
        r"\b(?i:half)(?= (?:of|the|its|their|his|her)\b)",
    ),
    ("CARDINAL", r"\d{1,3}[–/-]\d{1,3}\b(?:[–-]\d{1,3}\b)?"),
    ("CARDINAL", rf"{_AMOUNT}(?![\w%]|\.\d|,\d)"),
    ("CARDINAL", r"\b(?i:(?:tens|hundreds|thousands|millions|billions|dozens))\b(?= of)"),
)
NUMBER_PATTERNS: tuple[tuple[Label, re.Pattern[str]], ...] = tuple(
    (label, re.compile(f"{_NOT_INSIDE}(?:{pattern})")) for label, pattern in _PATTERNS
)


# Numbers

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
    """Numeric and temporal expressions of `text`, overlapping, the more certain kind first."""
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

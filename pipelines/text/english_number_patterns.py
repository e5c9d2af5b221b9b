"""What dates, times, amounts and numbers look like in English."""

from __future__ import annotations

import re

from pipelines.text.entity_types import Label
from pipelines.text.lexicon import words

__all__ = ["NUMBER_PATTERNS", "NUMBER_WORD"]


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

"""Numbers as words, and dates in other forms: the same said in other signs."""

from __future__ import annotations

import re
from random import Random

_ONES = (
    *("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen"),
    *("eighteen", "nineteen"),
)
_TENS = ("", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety")
_SCALES = ((10**9, "billion"), (10**6, "million"), (1000, "thousand"), (100, "hundred"))
_ORDINALS = {
    **{"one": "first", "two": "second", "three": "third", "five": "fifth", "eight": "eighth"},
    **{"nine": "ninth", "twelve": "twelfth"},
}
MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)
_ANY_MONTH = "|".join(MONTHS)
_SHORT_MONTH = "|".join(month[:3] for month in MONTHS)
_DAY_FIRST = re.compile(rf"\b(\d{{1,2}}) ({_ANY_MONTH}),? (\d{{4}})\b")
_MONTH_FIRST = re.compile(rf"\b({_ANY_MONTH}) (\d{{1,2}}), (\d{{4}})\b")
_ISO = re.compile(r"\b(\d{4})-(\d{2})-(\d{2})\b")
_IN_YEAR = re.compile(r"\b([Ii])n (1[0-9]\d\d|20[0-2]\d)\b(?! ?[-–]|,? (?:and|or) \d)")
_WHOLE = re.compile(r"(?<![\w.,$£€/:-])(\d{1,3}(?:,\d{3})+|\d+)(?![\w/:%-]|[.,]\d| ?%| per ?cent)")
_ORDINAL_DIGITS = re.compile(r"\b(\d{1,2})(?:st|nd|rd|th)\b(?! (?:of )?(?:" + _SHORT_MONTH + "))")
_PERCENT = re.compile(r"(?<![\w.,])(\d+(?:\.\d+)?) ?(?:%|per ?cent\b)")
_SHARES = {"25": "a quarter", "50": "half", "75": "three quarters", "20": "a fifth"}


def number_words(number: int) -> str:
    """Return `number`, from 0 below 10^12, in words of British English."""
    if number < 20:
        return _ONES[number]
    if number < 100:
        tens, ones = divmod(number, 10)
        return _TENS[tens] + (f"-{_ONES[ones]}" if ones else "")
    size, name = next(scale for scale in _SCALES if number >= scale[0])
    many, rest = divmod(number, size)
    head = f"{number_words(many)} {name}"
    if not rest:
        return head
    return f"{head}{' and ' if rest < 100 else ' '}{number_words(rest)}"


def ordinal_words(number: int) -> str:
    """Return the ordinal of `number`, from 1 below 10^12, in words."""
    words = number_words(number)
    cut = max(words.rfind("-"), words.rfind(" ")) + 1
    head, last = words[:cut], words[cut:]
    ordinal = _ORDINALS.get(last) or (f"{last[:-1]}ieth" if last.endswith("y") else f"{last}th")
    return head + ordinal


def _put(sentence: str, found: re.Match[str], said: str) -> str:
    """Return `sentence` with `said` for what was found in it."""
    return sentence[: found.start()] + said + sentence[found.end() :]


def dates_changed(sentence: str, random: Random) -> str | None:
    """Return `sentence` with its first date written in another way; None where there is none."""
    for pattern, order in ((_DAY_FIRST, "dmy"), (_MONTH_FIRST, "mdy"), (_ISO, "ymd")):
        if (found := pattern.search(sentence)) is None:
            continue
        parts = dict(zip(order, found.groups(), strict=True))
        month = int(parts["m"]) if parts["m"].isdigit() else MONTHS.index(parts["m"]) + 1
        day = int(parts["d"])
        if 1 <= month <= 12 and 1 <= day <= 31:
            forms = [one for one in _date_forms(day, month, parts["y"]) if one != found[0]]
            return _put(sentence, found, random.choice(forms))
    return None


def _date_forms(day: int, month: int, year: str) -> list[str]:
    name = MONTHS[month - 1]
    return [
        f"{day} {name} {year}",
        f"{name} {day}, {year}",
        f"the {_with_ending(day)} of {name} {year}",
        f"{year}-{month:02}-{day:02}",
        f"{day} {name[:3]} {year}" if len(name) > 4 else f"{name} {_with_ending(day)}, {year}",
        f"the {ordinal_words(day)} of {name}, {year}",
    ]


def _with_ending(day: int) -> str:
    endings = {1: "st", 2: "nd", 3: "rd"}
    return f"{day}{'th' if 10 < day < 20 else endings.get(day % 10, 'th')}"


def year_widened(sentence: str, random: Random) -> str | None:
    """Return `sentence` with its first "in 1946" less exact: the decade or the century.

    It is still true where the year is; another year of the same decade would make it true as well.
    """
    found = _IN_YEAR.search(sentence)
    if found is None:
        return None
    year = int(found[2])
    part = ("early", "mid", "late")[min(2, max(0, (year % 10 - 1) // 3))]
    century = ordinal_words((year - 1) // 100 + 1)
    forms = (f"in the {year // 10}0s", f"in the {part}-{year // 10}0s", f"in the {century} century")
    said = random.choice(forms).replace("early-", "early ").replace("late-", "late ")
    return _put(sentence, found, found[1] + said[1:])


def numbers_changed(sentence: str, random: Random) -> str | None:
    """Return `sentence` with a number written in another way; None where it has none that can
    be."""
    changes: list[str] = []
    for pattern, say in ((_PERCENT, _percentage), (_ORDINAL_DIGITS, _ordinal), (_WHOLE, _whole)):
        said = ((found, say(found)) for found in pattern.finditer(sentence))
        changes += [_put(sentence, *one) for one in said if one[1]][:1]
    return random.choice(changes) if changes else None


def _ordinal(found: re.Match[str]) -> str:
    return ordinal_words(int(found[1])) if int(found[1]) else ""


def _percentage(found: re.Match[str]) -> str:
    words = f"{number_words(int(found[1]))} percent" if found[1].isdigit() else ""
    return _SHARES.get(found[1], words)


def _whole(found: re.Match[str]) -> str:
    number = int(found[1].replace(",", ""))
    # Four digits without a comma are mostly years, and so is what stands beside a month.
    is_year = 1000 <= number < 2100 and "," not in found[1]
    beside = found.string[max(0, found.start() - 10) : found.end() + 10]
    if is_year or number >= 10**12 or re.search(_SHORT_MONTH, beside):
        return ""
    if number >= 10**6 and number % 10**5 == 0:
        size, name = (10**9, "billion") if number >= 10**9 else (10**6, "million")
        return f"{number / size:g} {name}"
    return number_words(number)

"""Whether an answer names the reference answer, in English and Chinese.

Texts are compared as words, Chinese ones as simplified characters: NFKC, without case, punctuation
and articles. English numbers in words count as figures, separators of thousands go, and "December
10, 1815" is "10 December 1815". A name must stand there in full, as whole words. What else the
answer says does not count, so an answer that names the reference beside something wrong is right.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Literal

from pipelines.base import Frozen
from pipelines.methods.haarag.alignment import says_nothing
from pipelines.methods.replies.abstaining import gives_no_answer
from pipelines.retrieval.indexes import content_terms
from pipelines.text import split_sentences, text_key
from pipelines.text.languages import HAN, has_han, simplified

Outcome = Literal["right", "wrong", "abstained", "failed"]
"""How an answer is scored; "failed" where a method gave none."""


YesNo = Literal["yes", "no"]

# How a question of yes or no is answered. StrategyQA and claims say true and false.
_YES_NO: dict[YesNo, tuple[str, ...]] = {
    "yes": ("yes", "true", "correct", "是", "是的", "对", "对的", "正确", "没错", "不错", "真"),
    "no": ("no", "false", "incorrect", "否", "不", "不是", "不对", "不正确", "错", "错误", "假"),
}
_ALONE: dict[str, YesNo] = {word: label for label, words in _YES_NO.items() for word in words}

# What an answer begins with that says yes or no: a word, of a Chinese one characters.
_FIRST: dict[str, YesNo] = {
    **{word: label for word, label in _ALONE.items() if word not in ("真", "假")},
    "没": "no",
}
_LONGEST_FIRST = sorted(_FIRST, key=len, reverse=True)
_ELSE = re.compile("对(?:不起|于|此)|是否|不(?:过|仅|但|知|确定|清楚|一定)")
"""Characters that begin so and say neither: "sorry", "whether", "but", "not sure"."""


def yes_or_no(answer: str) -> YesNo | None:
    """Return yes or no where the whole of `answer` is a word for it in one of the languages, as
    accepted answers are: "True", "yes", 是 and 对 are the same; None for any other text.
    """
    return _ALONE.get(text_key(answer))


class Reference(Frozen):
    """A question with its right answer, as `sample_data/README.md` describes them."""

    question: str
    answer: str
    aliases: tuple[str, ...] = ()
    kind: str = "fact"

    @classmethod
    def of(cls, row: Mapping[str, str]) -> Reference:
        """Return the reference in a row of `questions.csv` or `held_out_questions.csv`."""
        return cls(
            question=row["question"],
            answer=row["answer"],
            aliases=tuple(filter(None, row["aliases"].split("|"))),
            kind=row["kind"],
        )

    @property
    def yes_no(self) -> YesNo | None:
        """Yes or no where that is the right answer, else None."""
        if self.kind not in ("yes_no", "misconception"):
            return None
        return yes_or_no(self.answer)


def score(answer: str, reference: Reference, *, abstained: bool = False) -> Outcome:
    """Return how `answer` is scored; one that says nothing, or only declines, abstains."""
    if abstained or not answer.strip():
        return "abstained"
    if is_right(answer, reference):
        return "right"
    none = gives_no_answer(answer, reference.question) or says_nothing(answer)
    return "abstained" if none else "wrong"


def is_right(answer: str, reference: Reference) -> bool:
    """Return whether `answer` says the right one of yes and no, or names what it has to name."""
    if reference.yes_no is not None:
        return says(answer, reference.question) == reference.yes_no
    said = words_of(answer)
    asked = words_of(reference.question)
    wanted = [reference.answer, *reference.aliases]
    if reference.kind == "list":
        return any(
            all(_named(words_of(item), said, asked) for item in one.split(";")) for one in wanted
        )
    return any(_named(words_of(one), said, asked) or _chooses(answer, one) for one in wanted)


def _chooses(answer: str, option: str) -> bool:
    """Return whether the answer begins or ends with an option whose name is no word elsewhere: "A".

    It is written as the option is, or in capitals; an "A" before a noun does not count.
    """
    if words_of(option) or not option.strip():
        return False
    spellings = dict.fromkeys((option.strip(), option.strip().upper()))
    name = f"(?:{'|'.join(map(re.escape, spellings))})"
    return bool(re.search(rf"^\W*{name}(?:\W*$|[).:、．])|(?<![^\W_]){name}\W*$", answer.strip()))


_NUMBER = re.compile(r"\s*(?:\[\d+\]|\d+[.)]|[-*•])\s+")
_LABEL = re.compile(r"\s*[^.,:!?，。：！？\n]{1,60}(?::(?=\s)|：)")
_ANSWER_IS = re.compile(
    r"\W*(?:(?:the )?(?:\w+ )?answer(?: to [^.:!?\n]{1,100}[?\"”']*)? is\b|(?:正确)?答案是)",
    re.IGNORECASE,
)


def _unannounced(answer: str) -> str:
    """Return the answer without what announces it: "1. No", "The answer is: No", "答案：否"."""
    for lead in (_NUMBER, _LABEL, _ANSWER_IS):
        match = lead.match(answer)
        answer = answer[match.end() :] if match else answer
    return answer


def says(answer: str, question: str) -> YesNo | None:
    """Return yes or no as an answer says it; None where it says neither.

    The first word tells, behind "The answer is:" or another label. Where it is neither, a first
    sentence with nearly all content words of the question says no if it holds a negation, else yes.
    """
    plain = _unannounced(simplified(answer))
    if (first := _first(words_of(plain))) is not None:
        return first
    spans = split_sentences(plain.strip())
    sentence = spans[0].text if spans else ""
    said = {_stem(term) for term in content_terms(sentence)}
    asked = {_stem(term) for term in content_terms(question)}
    if len(asked & said) <= _NEARLY_ALL * len(asked):
        return None
    return "no" if _NEGATION.search(sentence) else "yes"


def _first(words: Sequence[str]) -> YesNo | None:
    """Return yes or no as the first word says it; Chinese words are single characters."""
    if not words or not has_han(words[0]):
        return _FIRST.get(words[0]) if words else None
    text = "".join(words)
    if _ELSE.match(text):
        return None
    return next((_FIRST[word] for word in _LONGEST_FIRST if text.startswith(word)), None)


_NEARLY_ALL = 0.75
_NEGATION = re.compile(
    r"\b(?:not|never|no|cannot|neither|nor|false|myth)\b|n['’]t\b|"
    # "不仅" (not only), "不过" (but) and the like deny nothing; nor does "未来" (future).
    r"不(?![仅但只过久断同])|没|并非|未(?!来)|无法",
    re.IGNORECASE,
)


def _stem(term: str) -> str:
    """Return enough of the word for "receive" and "received" to be the same."""
    return term[:5]


def words_of(text: str) -> list[str]:
    """Return the words, Chinese characters and numbers of a text as they are compared."""
    text = unicodedata.normalize("NFKC", simplified(text)).casefold()
    text = re.sub(r"(?<=\w)['’]s\b", "", text)
    text = _THOUSANDS.sub(lambda match: re.sub(r"\D", "", match[0]), text)
    text = _UNIT.sub(" ", text)
    words = [
        _SPELLINGS.get(word[0], word[0])
        for word in _WORD.finditer(text)
        if not _ARTICLE.match(text, word.start())
    ]
    return _dates(list(_numbers(words)))


# The A of "A-0" and of "维生素A" is no article.
_ARTICLE = re.compile(r"(?<![^\W_])(?:an?|the)(?![^\W_]|-)")
_WORD = re.compile(rf"\d+\.\d+|[{HAN}]|[^\W_{HAN}]+")
_THOUSANDS = re.compile(r"(?<![\d.,])\d{1,3}(?:(?:,\d{3})+|(?: \d{3}){2,})(?!\d|,\d)")
_UNIT = re.compile(r"(?<=\d)(?=(?:[ck]?m|kg|(?:centi|kilo)?met(?:er|re)s?)(?![a-z0-9]))")
_SPELLINGS = {
    f"{prefix}meter{plural}": f"{prefix}metre{plural}"
    for prefix in ("", "centi", "kilo")
    for plural in ("", "s")
}

_ONES = """
zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen
sixteen seventeen eighteen nineteen
"""
_SMALL = {word: number for number, word in enumerate(_ONES.split())}
_DECADES = "twenty thirty forty fifty sixty seventy eighty ninety"
_TENS = {word: number * 10 for number, word in enumerate(_DECADES.split(), start=2)}
_MAGNITUDES = {
    "hundred": 100,
    "thousand": 1000,
    "million": 1_000_000,
    "billion": 1_000_000_000,
    "trillion": 1_000_000_000_000,
}


def _numbers(words: Sequence[str]) -> Iterator[str]:
    """Yield the words with numbers in figures: "eighty-six billion" is one number."""
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        value: Decimal | None = None
        if word in _TENS:
            value = Decimal(_TENS[word])
            ones = _SMALL.get(words[place], 0) if place < len(words) else 0
            if 0 < ones < 10:
                value, place = value + ones, place + 1
        elif word in _SMALL:
            value = Decimal(_SMALL[word])
        elif word in _MAGNITUDES:
            value = Decimal(_MAGNITUDES[word])
        elif re.fullmatch(r"\d+(?:\.\d+)?", word):
            if place == len(words) or words[place] not in _MAGNITUDES:
                yield word
                continue
            value = Decimal(word)
        if value is None:
            yield word
            continue
        magnitude = _MAGNITUDES.get(word, 1)
        # A smaller magnitude begins a number of its own.
        while place < len(words) and (next_one := _MAGNITUDES.get(words[place], 0)) > magnitude:
            value, magnitude, place = value * next_one, next_one, place + 1
        yield f"{value.normalize():f}"


_CALENDAR = """
january february march april may june july august september october november december
"""
_MONTHS = frozenset(_CALENDAR.split())
_DAY = re.compile(r"([1-9]|[12]\d|3[01])(?:st|nd|rd|th)?")


def _dates(words: list[str]) -> list[str]:
    """Return the words with dates as day, month, year."""
    place = 0
    while place < len(words) - 1:
        first, second = words[place], words[place + 1]
        if first in _MONTHS and (day := _DAY.fullmatch(second)):
            words[place : place + 2] = [day[1], first]
        elif day := _DAY.fullmatch(first):
            gap = 2 if second == "of" else 1
            if words[place + gap : place + gap + 1] and words[place + gap] in _MONTHS:
                words[place : place + gap] = [day[1]]
                place += 1
        place += 1
    return words


def _named(item: Sequence[str], said: Sequence[str], asked: Sequence[str]) -> bool:
    """Return whether `item` stands in `said`, and not only as part of something that was
    asked about.

    In an answer about Florence Nightingale her name does not name the city.
    """
    size = len(item)
    return bool(item) and any(
        said[at : at + size] == item
        and not _stands(said[max(at - 1, 0) : at + size], asked, size)
        and not _stands(said[at : at + size + 1], asked, size)
        for at in range(len(said) - size + 1)
    )


def _stands(phrase: Sequence[str], asked: Sequence[str], size: int) -> bool:
    """Return whether a phrase of more than `size` words stands in `asked`."""
    length = len(phrase)
    return length > size and any(
        asked[at : at + length] == phrase for at in range(len(asked) - length + 1)
    )

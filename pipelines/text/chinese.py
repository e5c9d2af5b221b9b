"""Entities of Chinese text by patterns, word lists and jieba's parts of speech."""

from __future__ import annotations

import logging
import re
import threading
import tomllib
from collections.abc import Iterable, Iterator, Sequence
from functools import cache, cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from pipelines.text.entity_rules import Candidate, Label
from pipelines.text.languages import HAN, has_han, simplified

if TYPE_CHECKING:
    from jieba import Tokenizer
    from jieba.posseg import POSTokenizer


# Word lists and regular expressions of the rules of this room, kept in `lexicons/*.toml`.

_FOLDER = Path(__file__).parent / "lexicons"
_PLACEHOLDER = re.compile(r"\{([a-z_]+)\}")


@cache
def _load(file: str) -> dict[str, Any]:
    return tomllib.loads((_FOLDER / f"{file}.toml").read_text(encoding="utf-8"))


def _entries(text: str) -> Iterable[str]:
    return filter(None, (" ".join(entry.split()) for entry in text.split(",")))


@cache
def words(file: str, *lists: str) -> frozenset[str]:
    """Return the entries of lists of `lexicons/<file>.toml`; a missing one is a KeyError."""
    return frozenset(entry for name in lists for entry in _entries(_load(file)[name]))


def table(file: str, name: str) -> dict[str, Any]:
    """Return a table of `lexicons/<file>.toml`, in its order."""
    return _load(file)[name]


def labelled(file: str, name: str) -> list[tuple[frozenset[str], Any]]:
    """Return lists of `lexicons/<file>.toml` with the label that the table `name` gives them."""
    return [(words(file, entries), label) for entries, label in table(file, name).items()]


class Expressions:
    """Regular expressions of `lexicons/<file>.toml`, put together from named parts.

    `{name}` in an expression stands for an earlier part, for a group of the alternatives of a list
    under `[words]`, or for the Chinese characters inside a class (`{han}`). Line breaks and the
    white space beside them count for nothing. `patterns` are those of `[patterns]` with their
    labels, each kept from matching where the text before it says so (`not_inside`).
    """

    def __init__(self, file: str) -> None:
        source = _load(file)
        self._parts = {"han": HAN}
        for name, entries in source.get("words", {}).items():
            longest_first = sorted(_entries(entries), key=len, reverse=True)
            self._parts[name] = f"(?:{'|'.join(map(re.escape, longest_first))})"
        for name, expression in source["parts"].items():
            self._parts[name] = self._filled(expression)
        self._found = source.get("patterns", {"not_inside": "", "in_order": ()})

    @cached_property
    def patterns(self) -> list[tuple[Any, re.Pattern[str]]]:
        """The patterns with their labels; compiled where they are used: that takes a quarter of a
        second.
        """
        kept_from = self._found["not_inside"]
        return [
            (label, re.compile(self._filled(f"{kept_from}(?:{expression})")))
            for label, expression in self._found["in_order"]
        ]

    def __getitem__(self, name: str) -> re.Pattern[str]:
        """Return the part of that name, compiled."""
        return re.compile(self._parts[name])

    def _filled(self, expression: str) -> str:
        on_one_line = re.sub(r"\s*\n\s*", "", expression)
        return _PLACEHOLDER.sub(lambda found: self._parts[found[1]], on_one_line)


# Chinese words, by jieba, with exact offsets.
#
# The dictionary is private to this module and is built in memory: jieba's own cache is a marshalled
# file of fixed name in the shared temporary folder, which anyone could have put there.

_LOADING = threading.Lock()


class TaggedWord(NamedTuple):
    """A word at `[start, end)` and its part of speech in jieba's (ICTCLAS) tag set."""

    text: str
    start: int
    end: int
    tag: str


@cache
def _load_tokenizer() -> Tokenizer:
    import jieba

    jieba.setLogLevel(logging.WARNING)
    tokenizer = jieba.Tokenizer()
    tokenizer.FREQ, tokenizer.total = tokenizer.gen_pfdict(tokenizer.get_dict_file())
    tokenizer.initialized = True
    return tokenizer


@cache
def _load_tagger() -> POSTokenizer:
    from jieba import posseg

    tagger = posseg.POSTokenizer(_load_tokenizer())
    tagger.initialize()
    return tagger


def chinese_tokenizer() -> Tokenizer:
    """Return jieba's tokenizer, one a process; the first call loads the dictionary (1 s)."""
    with _LOADING:
        return _load_tokenizer()


def tagged_words(text: str) -> list[TaggedWord]:
    """Return the words of `text` with their parts of speech; white space and punctuation included.

    Loads the dictionary on the first call (about a second). Safe to call from several threads.
    """
    with _LOADING:
        tagger = _load_tagger()
    words: list[TaggedWord] = []
    position = 0
    for pair in tagger.cut(text):
        start = text.index(pair.word, position)
        position = start + len(pair.word)
        words.append(TaggedWord(pair.word, start, position, pair.flag))
    return words


def word_boundaries(text: str, *, fine: bool = False) -> set[int]:
    """Return offsets at which a word of `text` begins or ends, the two ends of the text among them.

    With `fine`, words inside compounds count too: "地球表面" also ends at "地球".
    """
    text = simplified(text)
    edges = {0, len(text)}
    for word in tagged_words(text):
        edges |= {word.start, word.end}
    if fine:
        for _, start, end in chinese_tokenizer().tokenize(text, mode="search"):
            edges |= {start, end}
    return edges


def in_dictionary(word: str) -> bool:
    """Return whether the dictionary lists `word`, rather than the tagger having put it together."""
    return bool(chinese_tokenizer().FREQ.get(word))


def chinese_candidates(text: str) -> list[Candidate]:
    """Return candidates for entities in the Chinese parts of `text`, which may overlap.

    Traditional characters are read as the simplified ones of the rules and the dictionary.
    """
    text = simplified(text)
    tagged = tagged_words(text)
    return [*chinese_number_candidates(text, tagged), *chinese_name_candidates(text, tagged)]


# Dates, times, amounts and numbers

_NUMBERS = Expressions("zh_numbers")
_STARTS_AS_NUMERAL = _NUMBERS["starts_as_numeral"]
_NUMERALS = _NUMBERS["numerals"]


def chinese_number_candidates(text: str, tagged: Sequence[TaggedWord]) -> Iterator[Candidate]:
    """Yield numeric and temporal expressions of `text`, overlapping, the more certain kind first.

    `tagged` are the words of `text`: numerals inside other words ("四川", "一直") are no numbers.
    """
    starts = {word.start: word for word in tagged}
    for label, pattern in _NUMBERS.patterns:
        for found in pattern.finditer(text):
            if _counts(found, starts):
                yield Candidate(found.start(), found.end(), label)


def _counts(found: re.Match[str], starts: dict[int, TaggedWord]) -> bool:
    matched = found.group()
    if not _STARTS_AS_NUMERAL.match(matched) or "世纪" in matched or "年" in matched[2:]:
        return True
    if matched in {"一", "十分", "一天", "一年", "万"}:
        return False
    word = starts.get(found.start())
    return word is not None and (word.tag[0] in "mqt" or _NUMERALS.fullmatch(word.text) is not None)


# Names

_GAZETTEER: dict[str, Label] = {
    name: label for entries, label in labelled("zh", "kinds") for name in entries
}
_LONGEST_NAME = max(map(len, _GAZETTEER))
_ENDING_LABEL: dict[str, Label] = {
    ending: label for entries, label in reversed(labelled("zh", "endings")) for ending in entries
}
_LOCATION_ENDINGS = tuple(words("zh", "location_endings"))
_POLITICAL_ENDINGS = tuple(words("zh", "political_endings"))
_SURNAMES = words("zh", "surnames")
_DOUBTFUL_SURNAMES = words("zh", "doubtful_surnames")
_TRANSLITERATION = words("zh", "transliteration")
_NOT_NAMES = words("zh", "not_names")
_NOT_PLACES = words("zh", "not_places")
_NOT_ORGANISATIONS = words("zh", "not_organisations")
_AFTER_ORGANISATION = tuple(words("zh", "after_organisation"))
_BRANDS = words("zh", "brands")
_PERSON_TAGS = frozenset({"nr", "nrt", "nrfg"})
_INNER_TAGS = _PERSON_TAGS | {"ns", "nz", "nt", "eng", "j", "n", "vn", "b", "an"}
# Bodies of a state: the country before them belongs to the name.
_STATE_BODY = re.compile(
    r"国家|外交|国防|财政|教育|商务|司法|中央|最高|人民|科学|社会|政府|国会|议会|政|军|海军|空军|陆军"
)
_MOST_WORDS = 5

_TITLE = re.compile(r"《\s*([^《》\n]{0,58}[^《》\s])\s*》")
_DOTS = frozenset("·•・‧")
_WINDOW = 40
_PLACE_BEFORE = re.compile(
    r"(?:位于|来自|前往|到达|抵达|首都是|省会是|出生于|出生在|访问|移居|迁往|[国州省市]的|在)$"
)
_FUNCTION_CHARACTERS = frozenset("的了在是和与及或于被将就都也而把从向对这那由为给让以等")


def chinese_name_candidates(text: str, tagged: Sequence[TaggedWord]) -> Iterator[Candidate]:
    """Yield names in `text`, overlapping, the more certain kind first; `tagged` are its words."""
    for title in _TITLE.finditer(text):
        label: Label = _GAZETTEER.get(title.group(1), "WORK_OF_ART")
        yield Candidate(*title.span(1), label)
    yield from _dotted_names(text, tagged)
    yield from _listed_names(text, tagged)
    yield from _foreign_runs(tagged)
    for index, word in enumerate(tagged):
        yield from _by_ending(tagged, index)
        yield from _by_tag(text, tagged, index)
        if word.tag in _PERSON_TAGS and len(word.text) == 1 and index + 1 < len(tagged):
            given = tagged[index + 1]
            if word.text in _SURNAMES and given.tag in _PERSON_TAGS and len(given.text) <= 2:
                yield Candidate(word.start, given.end, "PERSON")


def _listed_names(text: str, tagged: Sequence[TaggedWord]) -> Iterator[Candidate]:
    edges = word_boundaries(text, fine=True)
    # A dictionary without "福州人" reads it as a person.
    edges |= {word.end - 1 for word in tagged if word.text[-1] in "人籍裔式版产"}
    for start in range(len(text)):
        for end in range(min(len(text), start + _LONGEST_NAME), start + 1, -1):
            label = _GAZETTEER.get(text[start:end])
            sure = end - start > 2 or (start in edges and end in edges)
            if label is not None and sure:
                yield Candidate(start, end, label)
                break


def _dotted_names(text: str, tagged: Sequence[TaggedWord]) -> Iterator[Candidate]:
    """Yield foreign names whose parts are set apart by a dot: "比尔·克林顿"."""
    start = end = -1
    for index, word in enumerate(tagged):
        if word.text not in _DOTS or not 0 < index < len(tagged) - 1:
            continue
        first, last = _part_before(tagged, index), _part_after(tagged, index)
        if first < 0 or last < 0:
            continue
        if end != word.start:
            if end >= 0:
                yield Candidate(start, end, "PERSON")
            start = first
        end = last
    if end >= 0:
        yield Candidate(start, end, "PERSON")


def _part_before(tagged: Sequence[TaggedWord], dot: int) -> int:
    """Return where the part of a name that ends at a dot begins; -1 when there is none."""
    if not has_han(tagged[dot - 1].text):
        return -1
    index = dot - 1
    while index > 0 and _continues_name(tagged[index - 1]):
        index -= 1
    word = tagged[index]
    # The tagger may glue a preposition to a name it does not know.
    glued = len(word.text) > 2 and word.text[0] in _FUNCTION_CHARACTERS
    return word.start + 1 if glued else word.start


def _part_after(tagged: Sequence[TaggedWord], dot: int) -> int:
    if not has_han(tagged[dot + 1].text):
        return -1
    index = dot + 1
    while index + 1 < len(tagged) and _continues_name(tagged[index + 1]):
        index += 1
    return tagged[index].end


def _foreign_runs(tagged: Sequence[TaggedWord]) -> Iterator[Candidate]:
    """Yield foreign names that the tagger cut into several: "卡罗/莱纳"."""
    run: list[TaggedWord] = []
    for word in [*tagged, None]:
        if word is not None and word.tag in _PERSON_TAGS and _foreign(word.text):
            run.append(word)
            continue
        if len(run) > 1 and len({w.text for w in run} & _NOT_NAMES) == 0:
            yield Candidate(run[0].start, run[-1].end, "PERSON")
        run = []


def _continues_name(word: TaggedWord) -> bool:
    single = len(word.text) == 1 and word.text not in _FUNCTION_CHARACTERS
    return _foreign(word.text) and (word.tag in _PERSON_TAGS | {"ns", "nz"} or single)


def _by_tag(text: str, tagged: Sequence[TaggedWord], index: int) -> Iterator[Candidate]:
    word = tagged[index]
    if word.tag in _PERSON_TAGS and _is_person(word):
        label: Label = "PERSON"
        before = text[max(0, word.start - _WINDOW) : word.start]
        if _foreign(word.text) and _PLACE_BEFORE.search(before):
            label = "GPE"
        end = word.end + 2 if label == "PERSON" and text.startswith("夫人", word.end) else word.end
        yield Candidate(word.start, end, label)
    elif word.tag == "ns" and _is_place(word.text):
        yield Candidate(word.start, word.end, _place_label(word.text))
    elif word.tag == "nt" and word.text not in _NOT_ORGANISATIONS and len(word.text) > 2:
        ending = next((e for e in _AFTER_ORGANISATION if word.text.endswith(e)), "")
        yield Candidate(word.start, word.end - len(ending), "ORG")


def _foreign(name: str) -> bool:
    """Return whether every character is one that foreign names are written with."""
    return all(character in _TRANSLITERATION for character in name)


def _is_person(word: TaggedWord) -> bool:
    name = word.text
    if name in _NOT_NAMES or not 2 <= len(name) <= 8:
        return False
    if any(character in _FUNCTION_CHARACTERS - {"于", "和"} for character in name):
        return False
    surname = name[:2] if name[:2] in _SURNAMES and len(name) > 2 else name[:1]
    if surname in _SURNAMES and len(name) - len(surname) <= 2:
        return surname not in _DOUBTFUL_SURNAMES or word.tag == "nrfg" or len(name) > 3
    return _foreign(name) and name[-1] != "于" and (word.tag == "nrt" or len(name) > 2)


def _is_place(name: str) -> bool:
    if len(name) < 2 or name in _NOT_PLACES or name in _NOT_NAMES:
        return False
    ends = name.endswith(_POLITICAL_ENDINGS) or name.endswith(_LOCATION_ENDINGS)
    known = in_dictionary(name) or name in _GAZETTEER
    return (len(name) < 4 and known) or (len(name) > 2 and (ends or _foreign(name)))


def _known_ending(word: str) -> str:
    """Return the longest ending that shows what a name names; empty for a word without one."""
    return max((e for e in _ENDING_LABEL if word.endswith(e)), key=len, default="")


def _place_label(name: str) -> Label:
    ending = _known_ending(name)
    if ending and len(name) > 2:
        return _ENDING_LABEL[ending]
    return "LOC" if len(name) > 1 and name.endswith(_LOCATION_ENDINGS) else "GPE"


def _by_ending(tagged: Sequence[TaggedWord], index: int) -> Iterator[Candidate]:
    """Yield names recognised by their last word: "腾讯公司", "雅典奥运会", "诺贝尔文学奖"."""
    word = tagged[index]
    ending = _known_ending(word.text)
    if not ending or word.tag not in _INNER_TAGS or word.text in _NOT_NAMES:
        return
    own = word.text.removesuffix(ending)
    named = word.tag == "nz" and own and len(ending) > 1
    if named or own in _GAZETTEER or own in _BRANDS:
        yield Candidate(word.start, word.end, _ENDING_LABEL[ending])
        return
    if len(ending) == 1 and own and word.tag == "n" and ending not in {"队", "党"}:
        return
    first = index
    if word.tag != "nt" or _STATE_BODY.match(word.text) or word.text in _NOT_ORGANISATIONS:
        first = _first_word(tagged, index)
    if first < index:
        yield Candidate(tagged[first].start, word.end, _ENDING_LABEL[ending])


def _first_word(tagged: Sequence[TaggedWord], index: int) -> int:
    """Index of the proper name that the name ending at `index` begins with; `index` if none."""
    best = index
    for position in range(index - 1, max(-1, index - _MOST_WORDS), -1):
        word = tagged[position]
        if word.tag not in _INNER_TAGS and word.text not in _GAZETTEER:
            break
        if _is_proper(word):
            best = position
    return best


def _is_proper(word: TaggedWord) -> bool:
    if word.text in _GAZETTEER or word.text in _BRANDS or word.tag == "eng":
        return True
    if word.tag in _PERSON_TAGS:
        return _is_person(word) or _foreign(word.text) or word.text.endswith("人")
    return (word.tag == "ns" and _is_place(word.text)) or word.tag in {"nz", "nt"}

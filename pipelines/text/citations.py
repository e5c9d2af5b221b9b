"""Which sources a text cites, where, and which of the given sources each citation means.

Read are numbers ([1], [2, 4-6], 【1†source】, [^1], ¹, ①, <sup>1</sup>, [doc2], [来源3]), author
and year ("(Lee et al., 2020)", "Lee and Kim (2020)") and links ([words](https://...), a
bare address). A list of references at the end of the text says what a number stands for and cites
nothing itself.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal
from urllib.parse import unquote, urlsplit

from pydantic import Field

from pipelines.base import Frozen, Offset
from pipelines.text.alignment import Span
from pipelines.text.languages import HAN, has_han, unaccented
from pipelines.text.sentences import split_sentences

CitationKind = Literal["number", "author_year", "link"]

MAX_CITATIONS = 200
"""Citations of one text that are read; a longer range of numbers, such as [1-900], is none."""


class Citation(Frozen):
    """A citation: the mark at [start, end) of the text, in the sentence `sentence`.

    `source` counts the sources from 1; 0 says that none of them is meant. A mark that names several
    sources, [1, 2], is as many citations at the same place.
    """

    start: Offset
    end: Offset
    mark: str
    kind: CitationKind
    sentence: int
    source: int = Field(0, ge=0)


# --- Marks ----------------------------------------------------------------------------------------

_WORDS = (
    r"(?:ref(?:erence)?|source|src|doc(?:ument)?|passage|context|cit(?:e|ation)|(?:foot)?note|web"
    r"|search(?:[ _-]?result)?|result|quelle|fuente|fonte|bron"
    r"|[来來]源|[资資]料|文[献獻]|文[档檔]|[参參]考|引文|引用|[脚腳]?[注註])"
)
_WORD = rf"{_WORDS}[sn]?\.?\s*(?:[:：#_-]|n[°ºr]\.?|no\.)?\s*"
_PLACE = (
    r"(?:p{1,2}\.|§|sec(?:t(?:ion)?)?\b|ch(?:ap(?:ter)?)?\b|tab(?:le)?\b|fig(?:ure)?\b|eq\b|lines?\b"
    r"|para(?:graph)?\b|第|页|表|图)"
)
_BETWEEN = r"(?:[,，、;；&]\s*(?:and\b)?|and\b|und\b|和|与|及|[-–—~～至])"
_NUMBERS = rf"\d{{1,3}}(?:\s*{_BETWEEN}\s*(?:{_WORD})?\d{{1,3}})*"
_BRACKETS = re.compile(
    rf"[\[［【〔]\s*[\^#]?\s*(?:see\s+|cf\.\s*)?(?:{_WORD}|(?-i:[SDPCRW]))?(?P<numbers>{_NUMBERS})"
    rf"\s*\^?(?:†[^\]］】]*|[:：,，]\s*{_PLACE}[^\]］】]*|[:：]\s*\d+(?:\s*[-–]\s*\d+)?)?[\]］】〕](?!\()",
    re.IGNORECASE,
)
_FROM_TO = re.compile(
    r"[\[［【](?P<first>\d{1,3})[\]］】]\s*[-–—~～至]\s*[\[［【](?P<last>\d{1,3})[\]］】]"
)
# Of assistants that search files: the number of the search, and of what it found from 0 on.
_FOUND = re.compile(r"【\d+:(?P<place>\d{1,2})†[^】]*】")
# Of assistants that search the web: the number of the turn, and of what it found from 0 on.
_TURNS = re.compile(
    r"\ue200cite(?P<marks>(?:\ue202turn\d+[a-z]+\d{1,2})+)\ue201|\[(?P<mark>turn\d+[a-z]+\d{1,2})\]"
)
_NAMED_BRACKETS = re.compile(
    rf"[(（]\s*(?:{_WORD}){{1,2}}(?P<numbers>{_NUMBERS})\s*[)）]", re.IGNORECASE
)
# In words: only where there is a source of that number.
_IN_WORDS = re.compile(
    r"(?:\b(?:according to|as per|as|in|from|see|per|laut|nach|selon|según|secondo)\s+"
    r"(?:the\s+|la\s+)?"
    r"|(?:根据|根據|依据|依據|据|據|见|見|参见|參見|如))"
    rf"(?:{_WORD}){{1,2}}(?P<numbers>\d{{1,2}}(?:\s*(?:,|，|、|and|&|和|与)\s*{_WORD}\d{{1,2}})*)(?!\w|\.\d)"
    r"(?:\s*(?:says?|states?|notes?|shows?|所述|所示|所说))?",
    re.IGNORECASE,
)
_TELLS = re.compile(
    rf"(?:(?:^|(?<=[.!?]\s))(?:the\s+)?|(?<=[。！？；])){_WORD}(?P<numbers>\d{{1,2}})\s*"
    r"(?:(?:says?|states?|notes?|shows?|reports?|mentions?|claims?|explains?|confirms?)\b"
    r"(?:\s+that\b)?|显示|顯示|指出|表明|认为|認為|提到|称|稱|说|說|记载|記載|写道)",
    re.IGNORECASE | re.MULTILINE,
)
_MARKED_UP = re.compile(
    rf"<(?P<tag>sup|cite|ref)\b[^>]*>\s*[\[(]?(?P<numbers>{_NUMBERS})[\])]?\s*</(?P=tag)>"
    rf"|\\[a-z]*cite[a-z]*\{{(?P<named>{_NUMBERS})\}}"
    rf"|<(?:source|cite|citation|ref|doc(?:ument)?)\s+\w+=[\"']?(?P<given>{_NUMBERS})[\"']?\s*/?>",
    re.IGNORECASE,
)
_CIRCLED = re.compile(
    rf"(?<=[{HAN}a-z.,;。，；”\"’)）])(?P<numbers>[①-⑳]+)(?=[。，；,.;!！?？\s]|\Z)"
)
_RAISED_DIGITS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹", "0123456789")
# After a letter or a stop: 10² is a power, and so is m².
_BEFORE = rf"(?:(?<=[a-z{HAN}][a-z{HAN}][a-z{HAN}])|(?<=[.,;。，；”\"’)]))"
_CARET = re.compile(
    rf"(?:{_BEFORE}|(?<=\s))\^\[?(?P<numbers>\d{{1,3}}(?:,\s?\d{{1,3}})*)\]?\^?(?![\w^])"
)
_RAISED = re.compile(
    rf"(?:{_BEFORE}|(?<=[⁰¹²³⁴⁵⁶⁷⁸⁹]\s))(?P<numbers>[⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,3}}(?:[⁻,˒][⁰¹²³⁴⁵⁶⁷⁸⁹]{{1,3}})*)"
)
_RANGE = re.compile(r"(\d+)\s*[-–—~～至]\s*(\d+)|(\d+)")

_LINK = re.compile(
    r"(?<!!)\[(?P<words>(?:[^\[\]\n]|\[\d{1,3}\]){1,300})\]\((?P<address><?https?://[^\s()]+(?:\([^\s()]*\))?[^\s()]*)\)"
)
_ADDRESS = re.compile(
    r"[(（<]?(?P<address>(?:https?://|\bwww\.)[^\s<>\"'，。；、）】」》\]]+)[>)）]?", re.IGNORECASE
)

# Markdown's links and footnotes whose address stands in a line of its own.
_DEFINED = re.compile(r"^[ \t]*\[\^?(?P<label>[^\]\n]{1,60})\]:[ \t]*(?P<text>\S.*)$", re.MULTILINE)
_BY_LABEL = re.compile(
    r"(?<!!)\[(?P<words>[^\[\]\n]{1,300})\]\[(?P<label>[^\[\]\n]{0,60})\]|\[\^(?P<note>[^\]\n]{1,60})\]"
)
# Names of works that say where they are.
_IDENTIFIER = re.compile(
    r"[(（\[]?\b(?:doi:?\s*(?P<doi>10\.\d{4,9}/[^\s\])）\"'，。；]+)"
    r"|arxiv:?\s*(?P<arxiv>\d{4}\.\d{4,5})(?:v\d+)?)[)）\]]?",
    re.IGNORECASE,
)

_NAME = r"(?:(?:van|von|de|der|den|di|da|del|la|le)\s+)*[^\W\d_a-z][^\W\d_]*(?:[-’'][^\W\d_]+)*"
_YEAR = r"(?:1[5-9]|20)\d\d[a-z]?"
_ONE = rf"(?:[A-Z]\.[ -]?){{0,4}}{_NAME}(?:,\s*(?:[A-Z]\.[ -]?){{1,4}})?"
_AUTHORS = (
    rf"(?:[A-Z]\.[ -]?){{0,4}}(?P<author>{_NAME})(?:,\s*(?:[A-Z]\.[ -]?){{1,4}})?"
    rf"(?P<more>(?:\s*[,、]\s*{_ONE})*(?:\s*,?\s*(?:&|and|und|和|与)\s*{_ONE})?"
    rf"(?:\s*,?\s*(?:et\s+al\.?|and\s+(?:others|colleagues)|等人?))?)"
)
_PART = re.compile(
    rf"\s*(?:see(?:\s+also)?|e\.g\.,?|cf\.|参见|见)?\s*{_AUTHORS}\s*[,，]?\s*(?P<year>{_YEAR})"
    rf"(?P<page>\s*[,，:：]\s*(?:pp?\.?\s*|第)?\d+(?:\s*[-–]\s*\d+)?\s*页?)?\s*"
)
_GROUP = re.compile(r"[(（\[](?P<inside>[^()（）\[\]]{4,300})[)）\]]")
_TOLD = re.compile(
    rf"{_AUTHORS}(?:[’']s)?\s*[(（\[](?P<year>{_YEAR})(?P<page>\s*[,:]\s*pp?\.[^()]*)?[)）\]]"
)
_NO_AUTHOR = re.compile(
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|spring|summer|autumn|fall|winter|since|until|before|after|in|from|circa|version)\Z",
    re.IGNORECASE,
)

_HAN_BETWEEN = re.compile(r"等人?$|(?<=..)[和与及]")

_HEADING = re.compile(
    r"^[ \t#*_]*(?:references|sources|bibliography|works cited|citations|footnotes|参考文献"
    r"|参考资料|引用|来源|资料来源|注释)[ \t*_]*[:：]?[ \t*_]*$",
    re.IGNORECASE | re.MULTILINE,
)
_ENTRY = re.compile(
    rf"^[ \t]*(?:[-*•][ \t]+)?(?:[\[［【(]\^?(?:{_WORDS}\s*)?(?P<number>\d{{1,3}})[\]］】)][:：.]?"
    rf"|(?P<bare>\d{{1,3}})[.)、．:：])[ \t]*(?P<text>\S.*)$",
    re.IGNORECASE | re.MULTILINE,
)
_HEAD = 400
"""Characters of a source in which its number, its address, its authors and its year stand."""


@dataclass(frozen=True)
class _Mark:
    """One thing that is named at [start, end): a number, an address, or an author and a year.

    `sure` is False for words that are a citation only where a given source has this author and
    year, such as "(Paris, 1867)".
    """

    start: int
    end: int
    kind: CitationKind
    number: int = 0
    address: str = ""
    author: str = ""
    year: str = ""
    sure: bool = True


def citations_in(text: str, sources: Sequence[str] = ()) -> tuple[Citation, ...]:
    """Return the citations of `text` in their order, each with the one of `sources` that it means.

    A number means the source that begins with it ("[3] ..."), else the one that the list of
    references names for it, else the one at its place. An address means the source that begins with
    it, an author and a year the one that begins with both. At most `MAX_CITATIONS`.
    """
    body = _body_end(text)
    known = _Known.of(sources, text[body:])
    spans = split_sentences(text)
    found: list[Citation] = []
    marks = _marks(text[:body], _labels(text[body:]))
    # No source is called 0: "[0, 1]" is an interval.
    values = {(one.start, one.end) for one in marks if one.kind == "number" and not one.number}
    for mark in marks:
        alone = text[mark.start + 1 : mark.end - 1].isdigit()
        if (mark.start, mark.end) in values and not alone and 0 not in known.numbered:
            continue
        source = known.source_of(mark)
        if not mark.sure and not source and not known.may_miss(mark):
            continue
        number = _sentence_of(mark, spans, text)
        if number is None:
            continue
        found.append(
            Citation(
                start=mark.start,
                end=mark.end,
                mark=text[mark.start : mark.end],
                kind=mark.kind,
                sentence=number,
                source=source,
            )
        )
    return tuple(dict.fromkeys(found))[:MAX_CITATIONS]


def claim_in(span: Span, citations: Sequence[Citation]) -> str:
    """Return a sentence without marks; links keep their words, "Lee (2020)" keeps the name."""
    text, at = "", span.start
    inside = {(one.start, one.end): one for one in citations}
    for (start, end), one in sorted(inside.items()):
        if start < at or end > span.end:
            continue
        text += span.text[at - span.start : start - span.start] + _words_left(one)
        at = end
    text += span.text[at - span.start :]
    text = re.sub(r"[(（\[]\s*(?:[,，;；]\s*)*[)）\]]|\A\s*[,，:：]", "", text)
    text = re.sub(r"\s+([.,;:!?。，；：！？])", r"\1", re.sub(r"[ \t]{2,}", " ", text))
    return text.strip()


# Of a link: a number, or where it leads.
_NO_WORDS = re.compile(r"\W*\d{1,3}\W*|(?:https?://)?[\w-]+(?:\.[\w-]+)+(?:/\S*)?|\W+")


def _words_left(one: Citation) -> str:
    if one.kind == "link" and (link := _LINK.fullmatch(one.mark)):
        return "" if _NO_WORDS.fullmatch(link["words"]) else link["words"]
    if one.kind == "link" and (link := _BY_LABEL.fullmatch(one.mark)) and link["words"]:
        return "" if _NO_WORDS.fullmatch(link["words"]) else link["words"]
    if one.kind == "author_year" and (told := _TOLD.fullmatch(one.mark)):
        return f"{told['author']}{told['more']}"
    return ""


def claims_in(spans: Sequence[Span], citations: Sequence[Citation]) -> list[Span]:
    """Return sentences without their marks, at their places; as they are where nothing is cited.

    The number of a mark is no number that the sentence states.
    """
    if not citations:
        return list(spans)
    return [
        span.model_copy(update={"text": claim_in(span, citations) or span.text}) for span in spans
    ]


def references_in(text: str) -> dict[int, str]:
    """Return the list of references at the end of a text: what stands behind each number."""
    return _entries(text[_body_end(text) :])


def _entries(part: str) -> dict[int, str]:
    found: dict[int, str] = {}
    for entry in _ENTRY.finditer(part):
        found.setdefault(int(entry["number"] or entry["bare"]), entry["text"].strip())
    return found


def _body_end(text: str) -> int:
    """Return where the list of references begins; the length of the text where there is none."""
    for heading in reversed(list(_HEADING.finditer(text))):
        if _ENTRY.search(text, heading.end()) or _ADDRESS.search(text, heading.end()):
            return heading.start()
    # Without a heading: lines at the end that begin with a number in brackets, or with "[^1]:".
    lines = text.splitlines(keepends=True)
    end = len(text)
    for line in reversed(lines):
        if line.strip():
            bare = line.rstrip("\r\n")
            entry = _ENTRY.match(bare)
            if _DEFINED.match(bare) is None and (entry is None or entry["number"] is None):
                break
        end -= len(line)
    listed = _ENTRY.search(text, end) or _DEFINED.search(text, end)
    return end if 0 < end < len(text) and listed else len(text)


# --- Reading marks --------------------------------------------------------------------------------


def _labels(references: str) -> dict[str, str]:
    """Return the address, or else the words, that each label of a line of its own stands for."""
    found: dict[str, str] = {}
    for one in _DEFINED.finditer(references):
        address = _ADDRESS.search(one["text"]) or _IDENTIFIER.search(one["text"])
        if address is not None:
            found.setdefault(one["label"].casefold(), address[0].strip("<>()"))
    return found


def _marks(text: str, labels: Mapping[str, str]) -> list[_Mark]:
    """Return the marks in `text` in order; what lies within another one is that one's."""
    taken: list[tuple[int, int]] = []
    found: list[_Mark] = []
    readers = (
        _links,
        partial(_labelled, labels=labels),
        _named_works,
        _numbered,
        _grouped,
        _told,
        _addresses,
    )
    for reader in readers:
        for start, end, marks in reader(text):
            if any(start < other_end and other < end for other, other_end in taken):
                continue
            taken.append((start, end))
            found += marks
    return sorted(found, key=lambda one: one.start)


_Read = Iterator[tuple[int, int, list[_Mark]]]


def _links(text: str) -> _Read:
    for link in _LINK.finditer(text):
        start, end = link.span()
        address = link["address"].strip("<>")
        yield start, end, [_Mark(start, end, "link", address=address)]


def _labelled(text: str, labels: Mapping[str, str]) -> _Read:
    for found in _BY_LABEL.finditer(text):
        label = (found["note"] or found["label"] or found["words"]).casefold()
        if label in labels and not (found["note"] and label.isdigit()):
            start, end = found.span()
            yield start, end, [_Mark(start, end, "link", address=labels[label])]


def _named_works(text: str) -> _Read:
    for found in _IDENTIFIER.finditer(text):
        if text[max(0, found.start() - 1) : found.start()] == "/":
            # A part of an address.
            continue
        start, kept = found.start(), found[0].rstrip(".,;")
        yield start, start + len(kept), [_Mark(start, start + len(kept), "link", address=kept)]


def _addresses(text: str) -> _Read:
    for found in _ADDRESS.finditer(text):
        start, end = found.span()
        address = found["address"]
        kept = address.rstrip(".,;:!?)")
        if kept.count("(") > kept.count(")"):
            kept = address[: len(kept) + 1]
        first, end = found.start("address"), found.start("address") + len(kept)
        closes = {"(": ")", "（": "）", "<": ">"}.get(text[start])
        if closes is not None and text.startswith(closes, end):
            end += 1
        else:
            start = first
        yield start, end, [_Mark(start, end, "link", address=kept)]


def _numbered(text: str) -> _Read:
    for found in _FOUND.finditer(text):
        start, end = found.span()
        yield start, end, [_Mark(start, end, "number", number=int(found["place"]) + 1)]
    for found in _TURNS.finditer(text):
        start, end = found.span()
        places = re.findall(r"turn\d+[a-z]+(\d+)", found[0])
        yield start, end, [_Mark(start, end, "number", number=int(one) + 1) for one in places]
    for found in _FROM_TO.finditer(text):
        start, end = found.span()
        numbers = _listed(f"{found['first']}-{found['last']}")
        yield start, end, [_Mark(start, end, "number", number=one) for one in numbers]
    for pattern in _NUMBERED:
        for found in pattern.finditer(text):
            start, end = found.span()
            named = found.groupdict()
            said = found["numbers"] or named.get("named") or named.get("given") or ""
            numbers = _listed(_plain_numbers(said))
            sure = pattern not in (_IN_WORDS, _TELLS)
            if numbers and not (pattern is _BRACKETS and _is_no_mark(text, start, end)):
                marks = [_Mark(start, end, "number", number=one, sure=sure) for one in numbers]
                yield start, end, marks


_NUMBERED = (
    _MARKED_UP, _BRACKETS, _NAMED_BRACKETS, _RAISED, _CARET, _CIRCLED, _IN_WORDS, _TELLS,
)  # fmt: skip


def _plain_numbers(said: str) -> str:
    """Return "1,3-5" for numbers that are raised or circled."""
    said = said.translate(_RAISED_DIGITS).replace("⁻", "-").replace("˒", ",")
    return re.sub("[①-⑳]", lambda one: f"{ord(one[0]) - ord('①') + 1},", said)


def _listed(said: str) -> list[int]:
    """Return the numbers of "1, 3-5"; [] where a range is none."""
    found: list[int] = []
    for one in _RANGE.finditer(said):
        if one[3]:
            found.append(int(one[3]))
            continue
        first, last = int(one[1]), int(one[2])
        if not first <= last < first + 30:
            return []
        found += range(first, last + 1)
    return list(dict.fromkeys(found))


# Before a bracket that holds a number of its own, or values: "equation [3]", "x = [1, 2]".
_NUMBERED_SO = re.compile(r"(?:=|\b(?:equations?|eqs?\.|formula)|公式|方程式?)\s*\Z", re.IGNORECASE)
_HOLDS_VALUES = re.compile(
    r"(?:\b(?:interval|range|vector|matrix|array|list|tuple|set|point|coordinates?)"
    r"|区间|區間|向量|矩阵|数组|列表|集合|坐标)\s*\Z",
    re.IGNORECASE,
)

_CODE = re.compile(
    r"[a-z]|\w*_\w*|(?:[a-z]\w*\.)+[a-z]\w*|arr|args|argv|kwargs|lst|nums|idx|buf|tmp|df|mat|vec"
)
"""Names before an index of code: "a[1]", "foo_bar[1]", "self.items[1]", "arr[1]"."""


def _is_no_mark(text: str, start: int, end: int) -> bool:
    """Return whether a bracket is an index of code (`rows[0]`, `self.rows[1]`, `a[1]`), a value
    ("[0, 1]"), or a part of a chemical name ("pyrido[1,2-a]", "cyclopropa[1,2]benzene").
    """
    if text[start] != "[":
        return False
    before = re.search(r"[\w.]+$", text[max(0, start - 40) : start])
    ahead = text[max(0, start - 20) : start]
    if _NUMBERED_SO.search(ahead) or (
        not text[start + 1 : end - 1].isdigit() and _HOLDS_VALUES.search(ahead)
    ):
        return True
    if before is None:
        # `names['a'][0]`
        return text[max(0, start - 2) : start] in ("']", '"]')
    word = before[0]
    if word[-1].isascii() and word[-1].isalpha() and re.match("[a-z]", text[end : end + 1]):
        return True
    line_start = text.rfind("\n", 0, start) + 1
    code = _CODE.fullmatch(word) or text[start:end] == "[0]" or re.match(r" *[-+*/]?=", text[end:])
    return bool(code) or text.count("`", line_start, start) % 2 == 1


def _grouped(text: str) -> _Read:
    for group in _GROUP.finditer(text):
        inside = group["inside"]
        marks: list[_Mark] = []
        for piece in re.finditer(r"[^;；]+", inside):
            part = _PART.fullmatch(piece[0])
            if part is None or _NO_AUTHOR.match(part["author"]):
                marks = []
                break
            several = inside.count(";") + inside.count("；") > 0
            marks.append(_author_mark(group.start(), group.end(), part, sure=several))
        if marks:
            yield group.start(), group.end(), marks


def _told(text: str) -> _Read:
    for found in _TOLD.finditer(text):
        start, end = found.span()
        if _NO_AUTHOR.match(found["author"]):
            continue
        yield start, end, [_author_mark(start, end, found)]


def _author_mark(start: int, end: int, found: re.Match[str], *, sure: bool = False) -> _Mark:
    # Nothing separates Chinese names from the words between them.
    first, *others = (
        _HAN_BETWEEN.split(found["author"]) if has_han(found["author"]) else [found["author"]]
    )
    several = bool(others) or bool(found["more"].strip())
    certain = sure or several or bool(found["page"]) or found["year"][-1:].isalpha()
    return _Mark(start, end, "author_year", author=first, year=found["year"], sure=certain)


def _sentence_of(mark: _Mark, spans: Sequence[Span], text: str) -> int | None:
    """Return the number of the sentence that a mark stands behind or in.

    "It opened in 1889. [1] It is tall." cites the first sentence, though the mark begins the
    second one.
    """
    inside = [n for n, span in enumerate(spans) if span.start <= mark.start < span.end]
    if not inside:
        before = [n for n, span in enumerate(spans) if span.end <= mark.start]
        return before[-1] if before else None
    number = inside[0]
    lead = text[spans[number].start : mark.start]
    # "According to source 2, ..." begins the sentence that it cites.
    leads = mark.kind == "number" and mark.sure and not _without_marks(lead).strip()
    line = text.rfind("\n", 0, mark.start) + 1
    if leads and number and text[line : mark.start].strip():
        return number - 1
    return number


def _without_marks(text: str) -> str:
    for pattern in _NUMBERED:
        text = pattern.sub("", text)
    return text


# --- What a mark means ----------------------------------------------------------------------------


@dataclass(frozen=True)
class _Known:
    """What is known of the sources, by their places from 1, and of the list of references."""

    count: int
    heads: tuple[str, ...]
    whole: str
    numbered: Mapping[int, int]
    addresses: Mapping[str, int]
    entries: Mapping[int, str]

    @classmethod
    def of(cls, sources: Sequence[str], references: str) -> _Known:
        heads = tuple(_folded(source.strip()[:_HEAD]) for source in sources)
        numbered: dict[int, int] = {}
        addresses: dict[str, int] = {}
        for place, source in enumerate(sources, start=1):
            head = source.strip()[:_HEAD]
            entry = _ENTRY.match(head.partition("\n")[0])
            if entry is not None and entry["number"]:
                numbered.setdefault(int(entry["number"]), place)
            for found in (*_ADDRESS.finditer(head), *_IDENTIFIER.finditer(head)):
                addresses.setdefault(_address_key(found[0]), place)
        # Numbers at the beginning are names only where every source has one of its own.
        if len(numbered) < len(sources):
            numbered = {}
        whole = _folded("\n".join(sources))
        return cls(len(sources), heads, whole, numbered, addresses, _entries(references))

    def source_of(self, mark: _Mark) -> int:
        """Return the source that a mark means, counted from 1; 0 where it is none of them."""
        if mark.kind == "link":
            return self._addressed(mark.address)
        if mark.kind == "author_year":
            return self._written_by(mark)
        if self.numbered:
            return self.numbered.get(mark.number, 0)
        if (entry := self.entries.get(mark.number)) is not None and (named := self._entry(entry)):
            return named
        return mark.number if 1 <= mark.number <= self.count else 0

    def may_miss(self, mark: _Mark) -> bool:
        """Return whether a "(Name, year)" that nothing answers to is a citation all the same:
        where there are sources, and none speaks of the name, as it would of a place or a person.
        """
        return bool(self.count) and _folded(mark.author) not in self.whole

    def _addressed(self, address: str) -> int:
        return self.addresses.get(_address_key(address), 0)

    def _written_by(self, mark: _Mark) -> int:
        name, year = _folded(mark.author), _folded(mark.year)
        # "(Paris, 1867)" does not mean a source that says "the fair of Paris in 1867".
        before = r"(?<!\w)" if mark.sure else r"^\W*"
        for wanted in (year, year[:4]):
            line = re.compile(rf"{before}{re.escape(name)}.*{wanted}", re.MULTILINE)
            for place, head in enumerate(self.heads, start=1):
                if line.search(head):
                    return place
        # "(Lee, 2020)" may be resolved by the list of references, which names the number.
        for number, entry in self.entries.items():
            said = _folded(entry)
            if name in said and year[:4] in said:
                found = self._entry(entry) or (number if number <= self.count else 0)
                if found:
                    return found
        return 0

    def _entry(self, entry: str) -> int:
        """Return the source that an entry of the references means: by its address, or by words
        of its own that one source alone begins with.
        """
        for found in (*_ADDRESS.finditer(entry), *_IDENTIFIER.finditer(entry)):
            if place := self._addressed(found[0]):
                return place
        title = _folded(_ADDRESS.sub("", entry)).strip(" .。,，\"'“”《》*_()")
        if len(title) < 4:
            return 0
        places = [n for n, head in enumerate(self.heads, start=1) if title in head]
        first = [n for n, head in enumerate(self.heads, start=1) if _first_line(head) in title]
        return places[0] if len(places) == 1 else first[0] if len(first) == 1 else 0


def _first_line(head: str) -> str:
    line = head.partition("\n")[0].strip(" .。#*_")
    # A short one stands in anything; a long one is no title.
    return line if 4 <= len(line) <= 160 else "\n"


def _folded(text: str) -> str:
    return unaccented(unicodedata.normalize("NFKC", text)).casefold()


_LINKED_BY = re.compile(r"utm_\w+=|gclid=|fbclid=|ref_src=", re.IGNORECASE)


_WORK = re.compile(
    r"(?:doi:?\s*|(?:https?://)?(?:dx\.)?doi\.org/)(?P<doi>10\.\d{4,9}/\S+)"
    r"|(?:arxiv:?\s*|(?:https?://)?(?:www\.)?arxiv\.org/(?:abs|pdf|html)/)(?P<arxiv>\d{4}\.\d{4,5})\S*",
    re.IGNORECASE,
)


def _work_key(address: str) -> str | None:
    """Return the name of a work that a DOI or a number of arXiv is, in whatever spelling; or None.
    Versions of a work are one.
    """
    found = _WORK.fullmatch(address)
    if found is None:
        return None
    return f"doi:{found['doi'].casefold()}" if found["doi"] else f"arxiv:{found['arxiv']}"


def _address_key(address: str) -> str:
    """Return what two spellings of one address share: no scheme, "www.", fragment or last slash,
    and nothing that only says who linked to it.
    """
    address = address.strip().strip("()（）<>[]").rstrip(".,;")
    if (work := _work_key(address)) is not None:
        return work
    address = address if "://" in address else f"https://{address}"
    try:
        parts = urlsplit(address)
        host = (parts.hostname or "").removeprefix("www.")
    except ValueError:
        # A bracket that nothing closes: no address, though it looks like one.
        return address.casefold()
    told = [one for one in parts.query.split("&") if one and not _LINKED_BY.match(one)]
    query = f"?{'&'.join(told)}" if told else ""
    return f"{host}{unquote(parts.path).rstrip('/')}{query}".casefold()

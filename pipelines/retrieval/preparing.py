"""A file made ready to be searched: its text in sections to look at, and cut into passages.

Of each document the folder holds:

    sections.jsonl    what is looked at: a page of a PDF file, a row of a table, a stretch of a text
    passages.jsonl    what is searched, in the order of the text
    languages.npy     the language of each passage: 0 English, 1 Chinese

Each with its offsets beside it, so that any line can be read without the others.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import Field

from pipelines.base import Frozen, Language, Passage
from pipelines.retrieval.base import PassageStore
from pipelines.retrieval.documents import CUTTING_RULES, Document, cut_document, indexed_text
from pipelines.retrieval.indexes import terms
from pipelines.retrieval.lines import LineStore
from pipelines.retrieval.reading.files import read_file
from pipelines.retrieval.reading.parsed import MAX_TEXT, DocumentPart, ParsedFile, RefusedError
from pipelines.retrieval.reading.quality import FEW_LETTERS, SAMPLE, SOME_UNREADABLE, check_text
from pipelines.text.languages import detect_language

PREPARED_BY = f"2.{CUTTING_RULES}"
"""Version of what is written here. Documents prepared by another are prepared again."""

LANGUAGES: tuple[Language, ...] = ("en", "zh")

_SECTION = 3000
"""Characters from which a text without pages begins a new section at the next paragraph."""

_BEGINNING = 300
"""Characters of a document that are shown beside its name."""

_SECTIONS = "sections"
_LANGUAGES = "languages.npy"
_BREAK = re.compile(r"\n+")


class Section(Frozen):
    """A piece of a document's text as it is looked at.

    `label` is the number of its page or row, "" for a text without either. `start` is its offset in
    the text of its part; passages from `first` up to `last` (exclusive) lie in it, wholly or in
    part.
    """

    label: str
    title: str
    text: str
    start: int
    first: int
    last: int


class PreparedSummary(Frozen):
    """What there is to say of a prepared document. `pages` counts its sections.

    `facts` hold the values of `remarks`, and of every document "language", its code; "letters", the
    percentage of letters among visible characters; and "beginning", how its text begins.
    """

    kind: str
    title: str
    language: Language
    pages: int
    characters: int
    passages: int
    remarks: tuple[str, ...] = ()
    facts: dict[str, str | int] = Field(default_factory=dict)


def prepare(path: Path, name: str, folder: Path, document: str, url: str | None) -> PreparedSummary:
    """Read the file at `path`, called `name`, and write what `folder` holds of it.

    `document` is its id; `url` where it was fetched, if it was. Raises RefusedError.
    """
    reading = read_file(path, name)
    writer = _PassageCutter(reading, name, document, url)
    # A table is read row by row: sections and passages are written while it is read, the
    # sections of all rows are kept until then.
    PassageStore.write(folder, writer.passages())
    if not writer.languages or not writer.has_words:
        raise RefusedError("no_text", pages=1)
    lines = (section.model_dump_json() for section in writer.sections)
    count = LineStore.write(folder, _SECTIONS, lines)
    np.save(folder / _LANGUAGES, np.array(writer.languages, dtype=np.uint8))
    chinese = sum(writer.languages) * 2 > len(writer.languages)
    remarks, facts = _checked(reading, writer.beginning)
    return PreparedSummary(
        kind=reading.kind,
        title=reading.title,
        language="zh" if chinese else "en",
        pages=count,
        characters=writer.characters,
        passages=len(writer.languages),
        remarks=remarks,
        facts=facts,
    )


def _checked(reading: ParsedFile, text: str) -> tuple[tuple[str, ...], dict[str, str | int]]:
    """Return remarks and facts of a document, with those of a look at its `text`."""
    check = check_text(text)
    facts = dict(reading.facts)
    unreadable = max(int(facts.get("unreadable", 0)), round(100 * check.unreadable))
    marks = {
        "unreadable": unreadable >= 100 * SOME_UNREADABLE,
        "few_letters": check.letters < FEW_LETTERS,
        "other_language": check.language not in LANGUAGES,
    }
    facts |= {
        "language": check.language,
        "letters": round(100 * check.letters),
        "beginning": " ".join(text[:_BEGINNING].split()),
    }
    if marks["unreadable"]:
        facts["unreadable"] = unreadable
    return (*reading.remarks, *(name for name, wrong in marks.items() if wrong)), facts


class PreparedDocument:
    """What `prepare` has written into `folder`. OSError or ValueError where it is damaged."""

    def __init__(self, folder: Path) -> None:
        self.passages = PassageStore.open(folder)
        self.languages: NDArray[np.uint8] = np.load(folder / _LANGUAGES)
        self._sections = LineStore.open(folder, _SECTIONS)
        if len(self.languages) != len(self.passages):
            raise ValueError("The passages and their languages do not belong together.")

    @property
    def sections(self) -> int:
        """How many there are."""
        return len(self._sections)

    def section(self, number: int) -> Section:
        """Return one section, counted from 0."""
        return Section.model_validate_json(self._sections[number])

    def section_of(self, passage: int) -> int:
        """Return the section a passage begins in: the last that does not begin later."""
        low, high = 0, self.sections - 1
        while low < high:
            middle = (low + high + 1) // 2
            if self.section(middle).first <= passage:
                low = middle
            else:
                high = middle - 1
        while low > 0 and not self._begins_in(low, passage):
            low -= 1
        return low

    def _begins_in(self, number: int, passage: int) -> bool:
        section = self.section(number)
        return section.first <= passage < section.last and (
            self.passages[passage].start >= section.start
        )


class _PassageCutter:
    """Cuts the parts of a document one after the other, and remembers what it has cut."""

    def __init__(self, reading: ParsedFile, name: str, document: str, url: str | None) -> None:
        self.sections: list[Section] = []
        self.languages = bytearray()
        self.characters = 0
        self.beginning = ""
        self.has_words = False
        self._reading = reading
        self._name = name
        self._document = document
        self._url = url

    def passages(self) -> Iterator[Passage]:
        """Yield every passage of the document, numbered from 0."""
        for part in self._reading.parts:
            self.characters += len(part.text)
            if len(self.beginning) < SAMPLE:
                self.beginning += f"{part.text[:SAMPLE]}\n"
            if self.characters > MAX_TEXT:
                raise RefusedError("too_long", most=f"{MAX_TEXT:,}")
            first = len(self.languages)
            cut = self._cut(part)
            for passage in cut:
                language = detect_language(passage.text)
                self.languages.append(LANGUAGES.index(language))
                self.has_words = self.has_words or bool(terms(indexed_text(passage)))
                yield passage
            self.sections += _sections(part, cut, first)

    def _cut(self, part: DocumentPart) -> list[Passage]:
        whole = Document(
            id=self._document,
            title=part.title,
            language=detect_language(part.text[:5000]),
            text=part.text,
            source=self._name,
            url=self._url or part.url,
        )
        number = len(self.languages)
        return [
            passage.model_copy(
                update={
                    "id": f"{self._document}#{number + at}",
                    "source": self._source(part, passage),
                }
            )
            for at, passage in enumerate(cut_document(whole))
        ]

    def _source(self, part: DocumentPart, passage: Passage) -> str:
        """Return the file, with the page or row on which the passage begins."""
        if part.breaks:
            return f"{self._name}, p. {bisect_right(part.breaks, passage.start)}"
        return f"{self._name}, row {part.label}" if part.label else self._name


def _sections(part: DocumentPart, passages: list[Passage], first: int) -> Iterator[Section]:
    """Yield the sections of a part whose passages count from `first`."""
    edges = [*part.breaks] or [0] if part.label else [*part.breaks] or _edges(part.text)
    starts = [passage.start for passage in passages]
    ends = [passage.end for passage in passages]
    for number, start in enumerate(edges):
        end = edges[number + 1] if number + 1 < len(edges) else len(part.text)
        # Ends ascend as starts do, so both can be looked up.
        low = bisect_right(ends, start)
        high = max(low, bisect_right(starts, end - 1))
        yield Section(
            label=part.label or (str(number + 1) if part.breaks else ""),
            title=part.title,
            text=part.text[start:end],
            start=start,
            first=first + low,
            last=first + high,
        )


def _edges(text: str) -> list[int]:
    """Return where the sections of a text without pages begin."""
    edges = [0]
    for found in _BREAK.finditer(text):
        if found.end() - edges[-1] >= _SECTION and found.end() < len(text):
            edges.append(found.end())
    return edges

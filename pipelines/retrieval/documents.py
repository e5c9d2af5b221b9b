"""Documents of a library: a folder of Markdown, text and CSV files read into plain text."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from math import log
from pathlib import Path
from typing import NamedTuple

from pipelines.base import Frozen, Language, Passage
from pipelines.error_words import phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.retrieval.base import Retriever, ranked
from pipelines.retrieval.indexes import BM25Index, content_terms, terms, word_spans
from pipelines.retrieval.markup import plain_markdown
from pipelines.text import Span, split_sentences, text_key
from pipelines.text.languages import detect_language
from pipelines.text.sentences import csv_source


class Document(Frozen):
    """A text that can be searched.

    `id` is unique in its library; `source` says where the text comes from, in words or as the
    file's path relative to the library's folder.
    """

    id: str
    title: str
    language: Language
    text: str
    source: str
    url: str | None = None


def load_library(folder: Path) -> list[Document]:
    """Return every document below `folder`, sorted by id.

    A file's id is its path without suffix relative to `folder` ("en/marie-curie"); a CSV file
    holds one document a row, numbered from 1 ("people:1"). Files with a suffix that is not in
    `READERS`, and hidden ones, are passed over. Files must be UTF-8.

    Raises `NotFoundError` when there is no such folder, `InvalidInputError`, naming the file, when
    one cannot be read or holds no text, and when the folder holds no document at all.
    """
    if not folder.is_dir():
        raise failure("library.no_folder", folder=folder.name)
    documents: dict[str, Document] = {}
    for path in sorted(folder.rglob("*")):
        relative = path.relative_to(folder)
        reader = READERS.get(path.suffix.lower())
        hidden = any(part.startswith(".") for part in relative.parts)
        if reader is None or hidden or not path.is_file():
            continue
        for document in reader(path, relative):
            if document.id in documents:
                other = documents[document.id].source
                raise failure("library.same_name", file=document.source, other=other)
            documents[document.id] = document
    if not documents:
        raise failure("library.empty", folder=folder.name, kinds=sorted(READERS))
    return [documents[key] for key in sorted(documents)]


def _read_markdown(path: Path, relative: Path) -> Iterator[Document]:
    fields, body = _front_matter(_decoded(path, relative), relative)
    heading = re.search(r"(?m)^#[ \t]+(.+?)[ \t#]*$", body)
    title = fields.get("title") or (heading.group(1) if heading else path.stem)
    yield _document(relative, fields | {"title": title, "text": plain_markdown(body)})


def _read_text(path: Path, relative: Path) -> Iterator[Document]:
    yield _document(relative, {"title": path.stem, "text": _decoded(path, relative)})


def _read_csv(path: Path, relative: Path) -> Iterator[Document]:
    rows = csv.DictReader(csv_source(_decoded(path, relative)), strict=True)
    try:
        columns = {name.strip().lower() for name in rows.fieldnames or ()}
        if not {"title", "text"} <= columns:
            raise _failure("no_columns", relative)
        for number, row in enumerate(rows, start=1):
            cells = {(name or "").strip().lower(): cell for name, cell in row.items() if name}
            if None in row or None in cells.values():
                raise _failure("wrong_row", relative, row=number)
            yield _document(relative, cells, row=number)
    except csv.Error as error:
        raise _failure("no_csv", relative, said=error) from error


READERS = {".md": _read_markdown, ".txt": _read_text, ".csv": _read_csv}
"""What reads a file of each kind, given its path, and the same relative to the library's folder."""


def _document(relative: Path, fields: Mapping[str, str], row: int = 0) -> Document:
    """Return a document from its fields: title and text, and maybe language, source and url."""
    where = phrase("place.in_row", row=row) if row else ""
    text, title = fields["text"].strip(), " ".join(fields["title"].split())
    if not text:
        raise _failure("no_text", relative, where=where)
    if not title:
        raise _failure("no_title", relative, where=where)
    code = fields.get("language", "").strip().lower().partition("-")[0]
    if code not in ("", "en", "zh"):
        raise _failure("no_language", relative, code=code, where=where)
    name = relative.with_suffix("").as_posix()
    return Document(
        id=f"{name}:{row}" if row else name,
        title=title,
        language=detect_language(text) if code == "" else "zh" if code == "zh" else "en",
        text=text,
        source=fields.get("source", "").strip() or relative.as_posix(),
        url=fields.get("url", "").strip() or None,
    )


def _decoded(path: Path, relative: Path) -> str:
    try:
        text = path.read_bytes().decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _failure("no_utf8", relative) from error
    except OSError as error:
        raise _failure("unreadable", relative) from error
    return text.replace("\r\n", "\n").replace("\r", "\n")


_FIELD = re.compile(r"([A-Za-z_-]+)[ \t]*:[ \t]*(.*)")


def _front_matter(text: str, relative: Path) -> tuple[dict[str, str], str]:
    """Return the `key: value` lines between two lines of `---` at the top, and the text below them.

    Other lines there (lists, indented values) are ignored.
    """
    if not text.startswith("---\n"):
        return {}, text
    head, fence, body = f"{text[3:]}\n".partition("\n---\n")
    if not fence:
        raise _failure("no_end", relative)
    found = filter(None, map(_FIELD.fullmatch, head.splitlines()))
    return {field.group(1).lower(): _unquoted(field.group(2).strip()) for field in found}, body


def _unquoted(value: str) -> str:
    quoted = len(value) > 1 and value[0] == value[-1] and value[0] in "\"'"
    return value[1:-1] if quoted else value


def _failure(kind: str, file: Path, **facts: object) -> VeriscopeError:
    return failure(f"library.{kind}", file=file.as_posix(), **facts)


# Documents cut into passages of about a hundred words.
#
# Passages of 100 tokens are what the retrieval of DRAD and FLARE works with; here they begin and
# end with a sentence, and each repeats the last sentence of the one before, so that a pronoun
# keeps its antecedent and a fact stated in two sentences stays in one passage.

CUTTING_RULES = 1
"""Version of the rules below. A stored index with another number is rebuilt."""

PASSAGE_WORDS = 100
"""A passage takes in sentences as long as it holds no more words than this."""

_OVERLAP_WORDS = PASSAGE_WORDS // 2
"""A last sentence longer than this is not repeated: little room would be left for new text."""


_EMPTY_LINES = re.compile(r"\n\s*\n")


class _Piece(NamedTuple):
    """A sentence, or a part of an overlong one, at `[start, end)` of the document."""

    start: int
    end: int
    words: int


def cut_document(document: Document) -> list[Passage]:
    """Return the passages of `document` in order: `document.text[p.start:p.end] == p.text`
    for each.

    Ids are the document's with the passage's number, from 0, after a "#". The longest possible
    passage has 150 words: an overlap of 50 and a sentence of 100.
    """
    return [
        Passage(
            id=f"{document.id}#{number}",
            title=document.title,
            text=document.text[start:end],
            source=document.source,
            url=document.url,
            start=start,
            end=end,
        )
        for number, (start, end) in enumerate(_stretches(_pieces(document.text)))
    ]


def indexed_text(passage: Passage) -> str:
    """Return what is indexed: the title first, because a passage seldom names its subject."""
    return f"{passage.title}\n{passage.text}"


def passage_key(passage: Passage) -> str:
    """Return what passages share exactly if they say the same words; the id without words."""
    return text_key(passage.text) or passage.id


def _stretches(pieces: Iterable[_Piece]) -> Iterator[tuple[int, int]]:
    group: list[_Piece] = []
    fresh = 0
    for piece in pieces:
        if fresh and sum(member.words for member in group) + piece.words > PASSAGE_WORDS:
            yield group[0].start, group[-1].end
            group = [group[-1]] if group[-1].words <= _OVERLAP_WORDS else []
            fresh = 0
        group.append(piece)
        fresh += 1
    if group:
        yield group[0].start, group[-1].end


def _pieces(text: str) -> Iterator[_Piece]:
    for sentence in split_sentences(text):
        words = word_spans(sentence.text)
        starts = [start for start, _ in words[PASSAGE_WORDS::PASSAGE_WORDS]]
        edges = [0, *starts, len(sentence.text)]
        for number, (start, end) in enumerate(pairwise(edges)):
            piece = sentence.text[start:end].rstrip()
            size = min(PASSAGE_WORDS, len(words) - number * PASSAGE_WORDS)
            yield _Piece(sentence.start + start, sentence.start + start + len(piece), size)


_GIVEN = re.compile(r"given(?:-(\d+))?#\d+")


def source_number(passage: Passage | str) -> int:
    """Return the source, from 1, that a passage, or one with this id, is from; 0 for none."""
    found = _GIVEN.fullmatch(passage if isinstance(passage, str) else passage.id)
    return int(found[1] or 1) if found else 0


class TextRetriever(Retriever):
    """The passages of a text, those that share most with the query (BM25) first.

    Empty lines separate its sources, which are counted from 1 in the ids of passages. Those without
    a common word come last, because the whole text was given as evidence. Raises
    InvalidInputError for a text without a word.
    """

    name = "given"

    def __init__(self, text: str) -> None:
        text = text.strip()
        if not terms(text):
            raise failure("search.no_text")
        blocks = [block.strip() for block in _EMPTY_LINES.split(text)]
        self._passages = [
            passage
            for number, block in enumerate(blocks, start=1)
            for passage in cut_document(
                Document(
                    # A passage holds nothing of two sources.
                    id="given" if len(blocks) == 1 else f"given-{number}",
                    title="",
                    language=detect_language(block),
                    text=block,
                    source="given",
                )
            )
        ]
        self._index = BM25Index.build(passage.text for passage in self._passages)

    async def search(self, query: str, k: int) -> list[Passage]:
        """Return at most `k` passages."""
        scores = self._index.scores(query).tolist()
        order = sorted(range(len(scores)), key=lambda at: (-scores[at], at))[: max(k, 0)]
        return ranked(self._passages, ((at, scores[at], {"bm25": scores[at]}) for at in order))


def best_sentence(passage_text: str, target_text: str) -> Span | None:
    """Return the sentence of `passage_text` nearest in words to `target_text`, a claim or
    an answer.

    The score of a sentence is the sum of the weights of the different content terms it shares with
    the target. A term that occurs in `df` of the passage's `n` sentences has the weight
    `ln(1 + n / df)`, so that the subject of the whole passage counts less than what only one
    sentence says. Of equal sentences the shorter wins, then the earlier. None when no sentence
    shares a content term.

    Offsets are those in `passage_text`. English, Chinese and mixed texts.
    """
    wanted = set(content_terms(target_text))
    sentences = split_sentences(passage_text)
    shared = [wanted.intersection(content_terms(sentence.text)) for sentence in sentences]
    counts = Counter(term for found in shared for term in found)
    weights = {term: log(1 + len(sentences) / count) for term, count in counts.items()}
    scores = [sum(weights[term] for term in sorted(found)) for found in shared]
    sharing = [pair for pair in zip(scores, sentences, strict=True) if pair[0] > 0]
    best = max(sharing, key=lambda pair: (pair[0], -len(pair[1].text)), default=None)
    return best and best[1]

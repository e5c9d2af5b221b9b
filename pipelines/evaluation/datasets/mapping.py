"""Tables of any columns: which column holds which part of an item, and what its labels mean."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan
from typing import Annotated, Any, Literal, cast

from pydantic import BeforeValidator

from pipelines.base import Frozen, Language
from pipelines.engine.attached import attached_texts
from pipelines.engine.messages import Utterance
from pipelines.engine.transcripts import transcript
from pipelines.engine.turns import turns_of
from pipelines.error_words import Fact, Phrase, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.evaluation.datasets.columns import (
    LabelIs,
    is_any_answer,
    is_reference,
    is_usual,
    may_judge,
    part_of,
    said_by,
)
from pipelines.evaluation.datasets.exchanges import read_given, read_said
from pipelines.evaluation.datasets.files import DataTable
from pipelines.evaluation.datasets.grids import Row, value_in
from pipelines.evaluation.datasets.labels import (
    label_in,
    labels_by_words,
    says_label,
    says_yes_or_no,
    told_together,
)
from pipelines.evaluation.datasets.records import distinct, locate, make_item, make_passages
from pipelines.evaluation.plan import Item, Label, LabelledSpan
from pipelines.text import has_han


def listed(names: Sequence[str]) -> Fact:
    """Return the first names, for a message."""
    shown = tuple(map(repr, names[:12]))
    more = len(names) - 12
    return phrase("detail.and_more", names=shown, count=more) if more > 0 else shown


Separator = Literal["", ";", "|", ",", "\n"]
"""What separates the values in a cell of text; "" where a cell holds one value."""


def _several(value: Any) -> Any:
    return (value,) if isinstance(value, str) else value


Columns = Annotated[tuple[str, ...], BeforeValidator(_several)]
"""Names of columns, whose values are joined to one list; a single name may be given as such."""


class ColumnMapping(Frozen):
    """The columns that hold the parts of an item; a part without one stays empty.

    Cells of lists hold JSON lists, or values that `separator` separates. `lists` holds a list for
    each entity, or entities whose aliases "|" separates. `passages` holds texts, or objects with
    "title" and "text". `sentences` and `spans` hold objects with a "label" and with "start" and
    "end", or with the "text" that they label; or the pairs [start, end]. `hallucinated` holds
    words such as hallucinated, supported, PASS and FAIL, or yes, true and 1, of which `label_is`
    says what they mean where the name of the column does not; with `hallucinated_values`, these
    values alone mean hallucinated, and any other means supported.
    """

    id: str = ""
    question: str = ""
    language: str = ""
    answers: Columns = ()
    wrong_answers: Columns = ()
    lists: str = ""
    passages: Columns = ()
    text: str = ""
    hallucinated: str = ""
    sentences: str = ""
    spans: str = ""
    samples: Columns = ()
    group: str = ""
    tags: Columns = ()
    separator: Separator = ""
    hallucinated_values: tuple[str, ...] = ()
    label_is: LabelIs = ""

    def columns(self) -> dict[str, tuple[str, ...]]:
        """Return a map from part of an item to the columns that hold it, without the parts that
        have none.
        """
        named = {part: _several(getattr(self, part)) for part in PARTS}
        kept = {part: tuple(filter(None, columns)) for part, columns in named.items()}
        return {part: columns for part, columns in kept.items() if columns}


PARTS: tuple[str, ...] = tuple(
    name
    for name in ColumnMapping.model_fields
    if name not in ("separator", "hallucinated_values", "label_is")
)
"""The parts of an item that a column can hold."""

_SEVERAL = {"answers", "wrong_answers", "passages", "samples", "tags"}


def suggested_mapping(
    columns: Sequence[str], first: Mapping[str, Any] | None = None, *, labelled: bool = False
) -> ColumnMapping:
    """Return a mapping guessed from usual names of columns, as `part_of` knows them.

    Of several columns for a part that has one, the first of a usual name is taken. An "answer"
    beside answers that are known to be right, or beside labels (`labelled` where they are
    elsewhere), is what a model said, and no accepted answer. `first` is a row, which tells labels
    of pieces from labels of the text.
    """
    found: dict[str, list[str]] = {}
    for column in columns:
        part = part_of(column)
        value = (first or {}).get(column)
        if part == "hallucinated" and isinstance(value, list):
            part = "spans"
        if part == "passages" and column.casefold() in ("source", "sources") and _names(value):
            # Where a row comes from: "wikipedia".
            part = ""
        if column.casefold() == "support" and isinstance(value, str) and len(value.split()) > 2:
            # SciQ calls the paragraph of an answer its support.
            part = "passages"
        if not part and _OUTPUT.fullmatch(column) and any(map(is_reference, columns)):
            # Beside a right answer it is what a model said.
            part = "text"
        if column.casefold() in _SENT_AND_SAID and isinstance(value, str):
            part = _SENT_AND_SAID[column.casefold()]
        if column.casefold() == "result" and isinstance(value, str) and _may_be_said(value):
            # Not what was measured, but what came out.
            part = "text"
        if part == "answers" and isinstance(value, list) and _texts_in_objects(value):
            # References to documents are no right answers.
            part = "passages"
        if not part and may_judge(column) and isinstance(value, str) and says_label(value):
            part = "hallucinated"
        if part:
            found.setdefault(part, []).append(column)
    answers = found.get("answers", [])
    # A model says one text: a list holds what is accepted.
    lists = [name for name in answers if isinstance((first or {}).get(name), list)]
    undecided = [name for name in answers if is_any_answer(name) and name not in lists]
    labelled = labelled or bool({"hallucinated", "spans", "sentences"} & found.keys())
    if undecided and (any(map(is_reference, answers)) or (labelled and "text" not in found)):
        found["answers"] = [name for name in answers if name not in undecided]
        found.setdefault("text", undecided)
    if "text" in found and "passages" not in found:
        # An article beside a text about it is its source, unless it is a name alone.
        groups = found.get("group", [])
        articles = [name for name in groups if len(str((first or {}).get(name) or "")) > _LONG]
        if articles:
            found["passages"] = articles
            found["group"] = [name for name in groups if name not in articles]
    fields: dict[str, Any] = {
        part: tuple(names) if part in _SEVERAL else next(filter(is_usual, names), names[0])
        for part, names in found.items()
        if names
    }
    return ColumnMapping(**fields)


def mapping_for(table: DataTable) -> ColumnMapping:
    """Return the suggested mapping of a table's columns. Labels under a name of their own are taken
    where all of their values are words that say what they mean.
    """
    columns, first = table.columns, table.rows[0]
    suggested = suggested_mapping(columns, first)
    if (column := suggested.hallucinated) and not said_by(column):
        suggested = suggested.model_copy(update=told_together(table.rows, column)._asdict())
    told = suggested.hallucinated or suggested.sentences or suggested.spans
    if told or not (suggested.text or suggested.answers):
        return suggested
    free = [name for name in columns if not part_of(name)]
    found = labels_by_words(table.rows, free)
    if found is None:
        return suggested
    labelled = suggested_mapping(columns, first, labelled=True)
    return labelled.model_copy(update=found._asdict()) if labelled.text else suggested


_SENT_AND_SAID = {"inputs": "question", "outputs": "text"}
"""What columns of texts hold; objects under these names may hold right answers."""


_OUTPUT = re.compile(r"outputs?[./](?:answer|output|text)", re.IGNORECASE)


def _may_be_said(value: str) -> bool:
    return not says_label(value) and (len(value.split()) > 2 or has_han(value))


def _texts_in_objects(value: list[Any]) -> bool:
    paths = all(isinstance(one, Mapping) and not _PATHS.isdisjoint(one) for one in value)
    return bool(value) and paths and bool(attached_texts({"documents": value}))


_PATHS = frozenset({"url", "link", "file_path", "path", "source", "document_id", "score"})
_NAME = re.compile(r"[A-Za-z0-9_.-]{1,40}")


def _names(value: Any) -> bool:
    return isinstance(value, str) and _NAME.fullmatch(value) is not None


def open_labels(table: DataTable, mapping: ColumnMapping) -> tuple[str, ...]:
    """Return values of the labels, three at most, where it has to be asked what yes means.

    Empty where the mapping says it, the name of the column does, or the values are words for
    themselves.
    """
    column = mapping.hallucinated
    if not column or mapping.label_is or mapping.hallucinated_values or said_by(column):
        return ()
    words = Counter(written(row[column]) for row in table.rows if _is_label(row.get(column)))
    asked = [word for word in words if says_yes_or_no(word)]
    return tuple(asked[:3])


class MappedTable:
    """A table that is read by a mapping, a row at a time.

    Raises InvalidInputError for a column that is not there, and for labels of which nobody has
    said what yes means.
    """

    def __init__(self, table: DataTable, mapping: ColumnMapping) -> None:
        named = mapping.columns()
        absent = sorted({name for names in named.values() for name in names} - set(table.columns))
        if absent:
            facts = {"names": listed(absent), "columns": listed(table.columns)}
            raise failure("data.no_column", file=table.name, **facts)
        if not {"question", "text"} & named.keys():
            raise failure("data.nothing_mapped", file=table.name, columns=listed(table.columns))
        if values := open_labels(table, mapping):
            column = mapping.hallucinated
            raise failure("data.which_way", file=table.name, column=column, values=values)
        self._table, self._mapping = table, mapping

    def item(self, number: int) -> Item:
        """Return the item of row `number`, from 0.

        Raises InvalidInputError for a cell that does not hold what it should; it names the row and
        the column.
        """
        place = phrase("place.in_file", file=self._table.name, place=self._table.place(number))
        return _MappedRow(self._table.rows[number], self._mapping, place).item()


class _MappedRow:
    """A row that is read by a mapping."""

    def __init__(self, row: Row, mapping: ColumnMapping, place: Phrase) -> None:
        self._row, self._mapping, self._place = row, mapping, place

    def item(self) -> Item:
        mapping = self._mapping
        question, text = self._asked(mapping.question), self._said(mapping.text)
        if not question.strip() and not text.strip():
            column = mapping.question or mapping.text
            raise self._error(column, phrase("cell.empty"))
        spans = self._spans(mapping.spans, text)
        hallucinated = self._hallucinated()
        if hallucinated is None and not mapping.hallucinated:
            hallucinated = self._marked(spans)
        return make_item(
            self._string(mapping.id),
            question=question.strip(),
            language=self._language(),
            answers=distinct(self._strings(mapping.answers)),
            wrong_answers=distinct(self._strings(mapping.wrong_answers)),
            lists=self._lists(),
            passages=self._passages(),
            text=text,
            hallucinated=hallucinated,
            sentences=self._spans(mapping.sentences, text),
            spans=spans,
            samples=tuple(self._strings(mapping.samples)),
            group=_short(self._string(mapping.group).strip()),
            tags=distinct(self._strings(mapping.tags)),
        )

    def _error(self, column: str, problem: Fact) -> VeriscopeError:
        return failure("data.bad_cell", place=self._place, column=column, problem=problem)

    def _cell(self, column: str) -> Any:
        """Return what a cell holds; None where there is none, or only that there is no number."""
        value = self._row.get(column) if column else None
        return None if is_missing(value) else value

    def _asked(self, column: str) -> str:
        """Return the question of a cell, of messages the one that is answered."""
        value = self._cell(column)
        listed = value if isinstance(value, list) else [value]
        told = isinstance(value, str) and transcript(value)
        if not told and not any(isinstance(one, Mapping) for one in listed):
            return self._string(column)
        turns = turns_of([*read_given(value), Utterance(speaker="assistant", text="?")])
        return turns[-1].given.question or self._string(column)

    def _said(self, column: str) -> str:
        """Return the text of a cell, of messages or pieces what a model said."""
        value = self._cell(column)
        said = read_said(value) if isinstance(value, list | Mapping) else []
        return said[0].text if len(said) == 1 else self._string(column)

    def _string(self, column: str) -> str:
        value = self._cell(column)
        if value is None:
            return ""
        value = _text_inside(value)
        if isinstance(value, str | int | float):
            return written(value)
        raise self._error(column, phrase("cell.no_text"))

    def _language(self) -> Language | None:
        """Return the language that is named; None for another one, which the texts tell."""
        code = self._string(self._mapping.language).strip().lower()
        if not code:
            return None
        for word in re.split(r"[-_\s(（]", code):
            if word in _LANGUAGES:
                return _LANGUAGES[word]
        if not _NAMES_A_LANGUAGE.fullmatch(code):
            raise self._error(self._mapping.language, phrase("cell.language", code=code))
        return None

    def _values(self, column: str) -> list[Any]:
        """Return the values in a cell: of a list, of a JSON list, or of a text that is
        separated.
        """
        value = self._cell(column)
        if value is None:
            return []
        if isinstance(value, list):
            return value
        if isinstance(value, str):
            # A text may begin with a bracket, such as "[1] Paris".
            read = value_in(value)
            if isinstance(read, list):
                return read
            separator = self._mapping.separator
            parts = value.split(separator) if separator else [value]
            return [part.strip() for part in parts if part.strip()]
        return [value]

    def _strings(self, columns: Sequence[str]) -> list[str]:
        return [
            self._shown(column, value)
            for column in columns
            for value in _alone(self._values(column))
            if not is_missing(value)
        ]

    def _told(self, column: str, value: Any) -> str:
        """Return the text of a passage; its paragraphs are put together."""
        if isinstance(value, list) and all(isinstance(one, str) for one in value):
            return "\n".join(value)
        return self._shown(column, value)

    def _shown(self, column: str, value: Any) -> str:
        if isinstance(value, bool):
            # The answers of a question of truth.
            return "yes" if value else "no"
        value = _text_inside(value)
        if isinstance(value, str | int | float):
            return written(value)
        raise self._error(column, phrase("cell.no_texts"))

    def _lists(self) -> tuple[tuple[str, ...], ...]:
        column = self._mapping.lists
        entities = []
        for value in self._values(column):
            aliases = value if isinstance(value, list) else self._shown(column, value).split("|")
            entities.append(distinct(self._shown(column, alias) for alias in aliases))
        return tuple(filter(None, entities))

    def _passages(self) -> Any:
        found: dict[tuple[str, str], None] = {}
        for column in self._mapping.passages:
            for value in _rows_in(self._values(column)):
                title, text = "", value
                if isinstance(value, Mapping):
                    title, text = str(value.get("title") or ""), _text_of(value)
                elif isinstance(value, list) and len(value) == 2 and isinstance(value[1], list):
                    # HotpotQA's paragraphs: a title, and sentences.
                    title, text = str(value[0]), " ".join(map(str, value[1]))
                if not is_missing(text) and not _ADDRESS.fullmatch(
                    shown := self._told(column, text)
                ):
                    found.setdefault((title, shown))
        return make_passages([text for _, text in found], "data set", [title for title, _ in found])

    def _hallucinated(self) -> bool | None:
        column = self._mapping.hallucinated
        value = self._cell(column)
        if not _is_label(value):
            return None
        if self._mapping.hallucinated_values:
            named = {one.strip().casefold() for one in self._mapping.hallucinated_values}
            # A whole number may be named 1 or 1.0.
            return written(value).strip().casefold() in named or str(value) in named
        said = self._mapping.label_is or said_by(column)
        try:
            found = label_in(written(value), said)
        except KeyError:
            facts = {"column": column, "value": repr(value)}
            raise failure("data.yes_or_no", place=self._place, **facts) from None
        # As in `ClaimItem`: what the evidence does not decide is not supported by it.
        return (True if self._passages() else None) if found is None else found

    def _marked(self, spans: Sequence[LabelledSpan]) -> bool | None:
        """Return whether one of the pieces of a text is wrong that somebody marked; None where
        nobody did.
        """
        if self._cell(self._mapping.spans) is None:
            return None
        return any(one.label != "accurate" for one in spans)

    def _spans(self, column: str, text: str) -> tuple[LabelledSpan, ...]:
        spans = []
        position = 0
        for value in self._values(column):
            span = self._span(column, value, text, position)
            if not span.start < span.end <= len(text):
                raise self._error(
                    column, phrase("cell.span_outside", start=span.start, end=span.end)
                )
            position = span.end
            spans.append(span)
        return tuple(spans)

    def _span(self, column: str, value: Any, text: str, position: int) -> LabelledSpan:
        fields: Mapping[str, Any] = value if isinstance(value, Mapping) else {}
        if isinstance(value, str):
            fields = {"text": value}
        elif isinstance(value, list) and len(value) == 2:
            fields = {"start": value[0], "end": value[1]}
        start, end = fields.get("start"), fields.get("end")
        if start is None and isinstance(fields.get("text"), str):
            # The pieces mostly stand in the order of the text.
            place = locate(text, fields["text"], position) or locate(text, fields["text"])
            if place is None:
                raise self._error(column, phrase("cell.no_such_text", text=fields["text"]))
            start, end = place
        if not _is_offset(start) or not _is_offset(end):
            raise self._error(column, phrase("cell.no_offsets"))
        word = str(fields.get("label", "major")).strip().casefold()
        label = SPAN_LABELS.get(word)
        if label is None and says_label(word):
            label = "major" if label_in(word) else "accurate"
        if label is None:
            raise self._error(column, phrase("cell.no_label", word=word, known=[*SPAN_LABELS]))
        return LabelledSpan(
            start=cast(int, start),
            end=cast(int, end),
            label=label,
            kind=str(fields.get("kind") or fields.get("label_type") or ""),
        )


_HOLDS_TEXT = ("text", "content", "full_text", "answer", "mention")


def _text_inside(value: Any) -> Any:
    """Return the text that an object holds beside what is told of it; anything else as it is."""
    if not isinstance(value, Mapping):
        return value
    held = [value[name] for name in _HOLDS_TEXT if isinstance(value.get(name), str)]
    return held[0] if len(held) == 1 else value


def _alone(values: list[Any]) -> list[Any]:
    """Return values, also those of the only list among them, and the texts in objects."""
    if len(values) == 1 and isinstance(values[0], list):
        values = values[0]
    told = list[Any]()
    for one in values:
        inner = one.get("text", one.get("spans")) if isinstance(one, Mapping) else None
        told += inner if isinstance(inner, list) else [one if inner is None else inner]
    return told


def is_missing(value: Any) -> bool:
    """Return whether a cell holds nothing, or only that there is no number."""
    return value is None or (isinstance(value, float) and isnan(value))


def written(value: Any) -> str:
    """Return a value as text. Tables keep whole numbers as 1843.0 in a column that lacks some."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return str(int(value)) if whole else str(value)


_EXACT = 2.0**53
"""Up to here a float holds every whole number."""


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_NAMES_A_LANGUAGE = re.compile(r"[^\W\d_]{2,20}(?:[-_\s(（]+[^\W_]{1,20}[)）]?){0,2}")
"""A code or a name of a language: "fr", "pt-BR", "Español", "Serbian (Latin)"."""

_NAMED: dict[Language, str] = {
    "en": "en eng english 英文 英语 英語 anglais englisch",
    "zh": """zh zho chi cmn cn chs cht chinese mandarin chinois chinesisch 中文 汉语 漢語 华语 華語
        国语 國語 普通话 普通話 简体中文 簡體中文 繁体中文 繁體中文 简体 繁體""",
}
_LANGUAGES: dict[str, Language] = {
    name: code for code, names in _NAMED.items() for name in names.split()
}


def _is_label(value: Any) -> bool:
    # SNLI writes "-" where its annotators did not agree.
    return not is_missing(value) and not (isinstance(value, str) and value.strip() in ("", "-"))


def _text_of(passage: Mapping[str, Any]) -> Any:
    """Return the text of a passage, under the names that retrievers give it, also in an object
    inside it ("node", "payload"), else its longest.
    """
    inner = [one for one in passage.values() if isinstance(one, Mapping)]
    named = (
        held[name]
        for held in (passage, *inner)
        for name in _TEXTS
        if not is_missing(held.get(name)) and not isinstance(held[name], Mapping)
    )
    texts = [
        one for one in passage.values() if isinstance(one, str) and not _ADDRESS.fullmatch(one)
    ]
    return next(named, max(texts, key=len, default=None))


def _rows_in(values: Sequence[Any]) -> list[Any]:
    """Return passages one by one: of an object whose columns are lists, each of its rows."""
    made: list[Any] = []
    for value in values:
        if isinstance(value, Mapping) and all(isinstance(one, Mapping) for one in value.values()):
            # Passages by their names.
            made += value.values()
            continue
        lists = (
            {name: one for name, one in value.items() if isinstance(one, list)}
            if isinstance(value, Mapping) and _text_of(value) is None
            else {}
        )
        told = [name for name in _TEXTS if name in lists and name != "paragraphs"]
        if not told:
            made.append(value)
            continue
        longest = max(map(len, lists.values()))
        made += [
            {name: one[at] for name, one in lists.items() if at < len(one)} for at in range(longest)
        ]
    return made


_TEXTS = (
    "text", "contents", "content", "page_content", "passage", "passage_text", "paragraph_text",
    "document", "page_snippet", "snippet", "paragraphs", "sentences", "body", "evidence",
    "contexts",
)  # fmt: skip
_ADDRESS = re.compile(r"(?:https?://|www\.)\S+")
_LONG = 80


def _short(group: str) -> str:
    """Return a group by its name; a whole document by its hash."""
    return group if len(group) <= _LONG else hashlib.sha256(group.encode()).hexdigest()[:12]


SPAN_LABELS: dict[str, Label] = {
    "accurate": "accurate",
    "supported": "accurate",
    "minor": "minor",
    "minor_inaccurate": "minor",
    "major": "major",
    "major_inaccurate": "major",
    "hallucinated": "major",
    "unsupported": "major",
}

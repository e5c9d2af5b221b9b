"""Texts that people labelled: data sets of labelled pieces, and the exports of annotation tools."""

from __future__ import annotations

from abc import abstractmethod
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from pydantic import AliasChoices, Field, model_validator

from pipelines.error_words import PhraseError
from pipelines.evaluation.datasets.grids import value_in
from pipelines.evaluation.datasets.labels import label_in
from pipelines.evaluation.datasets.mapping import SPAN_LABELS, suggested_mapping
from pipelines.evaluation.datasets.records import (
    ItemRecord,
    Record,
    distinct,
    locate,
    make_item,
    make_passages,
)
from pipelines.evaluation.plan import Item, LabelledSpan

# Data sets whose texts have labelled pieces.


class Felm(ItemRecord):
    """FELM: a response cut into segments, each labelled as factual (true) or not."""

    index: int | str = ""
    prompt: str = ""
    response: str
    segmented_response: tuple[str, ...]
    labels: tuple[bool, ...]
    ref: tuple[str, ...] | str | None = ()
    domain: str | None = ""
    source: str | None = ""

    def items(self) -> Iterator[Item]:
        """Yield the response with its labelled segments; addresses among the references are no
        evidence.
        """
        if len(self.segmented_response) != len(self.labels):
            raise PhraseError("labelled.segments")
        pieces = list[LabelledSpan]()
        position = 0
        for segment, factual in zip(self.segmented_response, self.labels, strict=True):
            place = locate(self.response, segment, position)
            if place is None:
                raise PhraseError("labelled.segments")
            position = place[1]
            label: Literal["accurate", "major"] = "accurate" if factual else "major"
            pieces.append(LabelledSpan(start=place[0], end=place[1], label=label))
        told = (self.ref,) if isinstance(self.ref, str) else self.ref or ()
        texts = [one for one in told if not one.startswith(("http://", "https://"))]
        yield make_item(
            f"{self.source}-{self.index}" if self.source and self.index != "" else self.index,
            question=self.prompt.strip(),
            text=self.response,
            sentences=tuple(pieces),
            hallucinated=not all(self.labels),
            passages=make_passages(texts, "FELM"),
            tags=tuple(filter(None, (self.domain, self.source))),
        )


class _Piece(Record):
    start: int = Field(ge=0)
    end: int = Field(ge=0)
    label: str = Field(validation_alias=AliasChoices("label", "label_type"), default="")


def _spans(text: str, pieces: Iterable[tuple[int, int, str]]) -> tuple[LabelledSpan, ...]:
    """Return labelled pieces of a text; raises PhraseError for one that lies outside of it.

    What is labelled with a word for "supported" is accurate; "subtle" errors are minor.
    """
    found = list[LabelledSpan]()
    for start, end, word in pieces:
        if not 0 <= start < end <= len(text):
            raise PhraseError("cell.span_outside", start=start, end=end)
        label = SPAN_LABELS.get(word.strip().casefold(), "major")
        if "subtle" in word.casefold():
            label = "minor"
        elif _hallucinated([word]) is False:
            label = "accurate"
        found.append(LabelledSpan(start=start, end=end, label=label, kind=word))
    return tuple(found)


def _pieces(text: str, pieces: Iterable[_Piece], **fields: Any) -> Item:
    """Return the item of a text of which all errors are labelled."""
    spans = _spans(text, ((one.start, one.end, one.label) for one in pieces))
    wrong = any(span.label != "accurate" for span in spans)
    return make_item(fields.pop("id", ""), text=text, spans=spans, hallucinated=wrong, **fields)


class LettuceSample(ItemRecord):
    """LettuceDetect: a prompt with its passages, an answer, and its hallucinated pieces."""

    prompt: str
    answer: str
    labels: tuple[_Piece, ...]
    split: str = ""
    task_type: str = ""
    dataset: str = ""

    def items(self) -> Iterator[Item]:
        """Yield the answer; the prompt is its evidence, and the question stands in it."""
        yield _pieces(
            self.answer,
            self.labels,
            passages=make_passages([self.prompt], self.dataset or "LettuceDetect"),
            tags=tuple(filter(None, (self.dataset, self.task_type, self.split))),
        )


class RagTruthResponse(ItemRecord):
    """RAGTruth's response.jsonl without its source_info.jsonl: a response and its labels."""

    id: str | int = ""
    source_id: str | int
    model: str = ""
    labels: tuple[_Piece, ...]
    response: str
    split: str = ""
    quality: str = ""

    def items(self) -> Iterator[Item]:
        """Yield the response, which has no evidence here."""
        tags = tuple(filter(None, (self.model, self.split, self.quality)))
        yield _pieces(self.response, self.labels, id=self.id, group=str(self.source_id), tags=tags)


class RagTruthOutput(ItemRecord):
    """RAGTruth as one table: a query, its context, the output of a model and its labels."""

    id: str | int = ""
    query: str
    context: str
    output: str
    labels: tuple[_Piece, ...] = Field(alias="hallucination_labels")
    task_type: str = ""
    model: str = ""
    quality: str = ""

    @model_validator(mode="before")
    @classmethod
    def _listed(cls, row: Any) -> Any:
        told = row.get("hallucination_labels") if isinstance(row, Mapping) else None
        if not isinstance(told, str):
            return row
        return {**row, "hallucination_labels": value_in(told) if told.strip() else []}

    def items(self) -> Iterator[Item]:
        """Yield the output with its context as evidence."""
        yield _pieces(
            self.output,
            self.labels,
            id=self.id,
            question=self.query.strip(),
            passages=make_passages([self.context], "RAGTruth"),
            tags=tuple(filter(None, (self.task_type, self.model, self.quality))),
        )


class Begin(ItemRecord):
    """BEGIN: a response to a message, with the knowledge it was to rest on and people's word."""

    knowledge: str
    message: str | None = ""
    response: str
    model: str | None = ""
    begin_label: str

    def items(self) -> Iterator[Item]:
        """Yield the response; one that is generic or off the topic says nothing to be judged."""
        said = self.begin_label.strip().casefold()
        if said not in _BEGIN:
            raise PhraseError("labelled.unknown", word=self.begin_label)
        yield make_item(
            question=(self.message or "").strip(),
            text=self.response,
            hallucinated=_BEGIN[said],
            passages=make_passages([self.knowledge], "BEGIN"),
            tags=tuple(filter(None, (self.model, self.begin_label.strip()))),
        )


_BEGIN: dict[str, bool | None] = {
    "fully attributable": False,
    "entailment": False,
    "not fully attributable": True,
    "hallucination": True,
    "partial hallucination": True,
    "generic": None,
    "off-topic": None,
    "off topic": None,
}


class _Scores(Record):
    consistency: float = Field(ge=1, le=5)


_CONSISTENT = 5
"""The score that every expert gives a summary without an error, as TRUE and SummaC take it."""


class SummEvalRow(ItemRecord):
    """SummEval: a summary, and what experts gave it from 1 to 5. The crowd's scores are not used,
    as by those who published them.
    """

    id: str | int = ""
    summary: str = Field(validation_alias=AliasChoices("decoded", "system_output"))
    source: str = Field(validation_alias=AliasChoices("text", "source", "article"), default="")
    experts: tuple[_Scores, ...] = Field(alias="expert_annotations", min_length=1)
    model: str = Field(validation_alias=AliasChoices("model_id", "system_id"), default="")

    @model_validator(mode="before")
    @classmethod
    def _means(cls, row: Any) -> Any:
        """Take the means of the experts, which G-Eval and UniEval publish, for one expert's."""
        if isinstance(row, Mapping) and "expert_annotations" not in row:
            return {**row, "expert_annotations": [row.get("scores")], "id": row.get("doc_id", "")}
        return row

    def items(self) -> Iterator[Item]:
        """Yield the summary: hallucinated unless every expert finds it consistent."""
        yield make_item(
            f"{self.id}-{self.model}" if self.id != "" and self.model else self.id,
            text=self.summary,
            hallucinated=any(one.consistency < _CONSISTENT for one in self.experts),
            passages=make_passages([self.source], "SummEval") if self.source else (),
            group=str(self.id),
            tags=(self.model,) if self.model else (),
        )


class SummEvalArticle(ItemRecord):
    """SummEval on the hub: an article, summaries of many models, and the means of the experts."""

    id: str | int = ""
    text: str
    machine_summaries: tuple[str, ...]
    consistency: tuple[float, ...]

    def items(self) -> Iterator[Item]:
        """Yield every summary: hallucinated unless every expert finds it consistent."""
        if len(self.machine_summaries) != len(self.consistency):
            raise PhraseError("labelled.segments")
        passages = make_passages([self.text], "SummEval")
        for number, (summary, score) in enumerate(
            zip(self.machine_summaries, self.consistency, strict=True), start=1
        ):
            yield make_item(
                f"{self.id}-{number}" if self.id != "" else "",
                text=summary,
                hallucinated=score < _CONSISTENT,
                passages=passages,
                group=str(self.id),
            )


class _Response(Record):
    response: Literal["yes", "no"]


class _JudgedSentence(Record):
    sentence: str
    responses: tuple[_Response, ...]


class Qags(ItemRecord):
    """QAGS: a summary by its sentences, each of which several people found supported or not."""

    article: str
    summary_sentences: tuple[_JudgedSentence, ...]

    def items(self) -> Iterator[Item]:
        """Yield the summary; a sentence is labelled as most people say."""
        text = " ".join(one.sentence.strip() for one in self.summary_sentences)
        pieces = list[LabelledSpan]()
        at = 0
        for one in self.summary_sentences:
            end = at + len(one.sentence.strip())
            yes = sum(said.response == "yes" for said in one.responses)
            label: Literal["accurate", "major"] = (
                "accurate" if yes * 2 > len(one.responses) else "major"
            )
            pieces.append(LabelledSpan(start=at, end=end, label=label))
            at = end + 1
        yield make_item(
            text=text,
            sentences=tuple(pieces),
            hallucinated=any(one.label != "accurate" for one in pieces),
            passages=make_passages([self.article], "QAGS"),
        )


# Exports of annotation tools: texts under any names, and what each person said of them.


class PersonLabels(NamedTuple):
    """What one person said of a text: words that were chosen, and pieces (start, end, word).

    Offsets are code points. `at` and `seconds` are as the tool writes them.
    """

    person: str
    choices: tuple[str, ...] = ()
    spans: tuple[tuple[int, int, str], ...] = ()
    at: Any = None
    seconds: Any = None


class ToolRecord(ItemRecord):
    """A record of an annotation tool: fields under the project's own names, and labels."""

    @property
    @abstractmethod
    def name(self) -> str:
        """Its id in the tool, "" for none."""

    @property
    @abstractmethod
    def fields(self) -> Mapping[str, Any]:
        """What was shown to people, by the names that the project gave it."""

    @property
    @abstractmethod
    def people(self) -> Sequence[PersonLabels]:
        """What each person said."""

    @property
    def key(self) -> str:
        """What a program outside of the tool calls it, in a field "key"; "" for none."""
        return str(self.fields.get("key") or "")

    def parts(self) -> dict[str, Any]:
        """Return question, text, passages and the names of classes, from fields of usual names.

        Without such a name the labelled text is the longest one.
        """
        texts = {name: cell for name, cell in self.fields.items() if isinstance(cell, str)}
        mapping = suggested_mapping(list(self.fields), labelled=True)
        name = mapping.text if mapping.text in texts else ""
        if not name:
            taken = {mapping.question, *mapping.passages, mapping.id, *mapping.tags}
            free = [one for one in texts if one not in taken] or list(texts)
            name = max(free, key=lambda one: len(texts[one]), default="")
        passages = [
            one
            for column in mapping.passages
            if column != name
            for one in _listed(self.fields[column])
        ]
        question = self.fields.get(mapping.question) if mapping.question != name else ""
        return {
            "question": question.strip() if isinstance(question, str) else "",
            "text": texts.get(name, ""),
            "passages": make_passages(passages, "data set"),
        }

    def items(self) -> Iterator[Item]:
        """Yield the text. It is hallucinated as most people say by a word for it, and the pieces
        are those of the first person who marked some; other words become classes.
        """
        parts = self.parts()
        said = [one for one in self.people if one.choices]
        votes = [found for one in said if (found := _hallucinated(one.choices)) is not None]
        marked = next((one.spans for one in self.people if one.spans), ())
        spans = _spans(parts["text"], marked)
        hallucinated = sum(votes) * 2 > len(votes) if votes else None
        if hallucinated is None and spans:
            hallucinated = any(span.label != "accurate" for span in spans)
        words = Counter(word for one in said for word in one.choices)
        yield make_item(
            self.name, **parts, spans=spans, hallucinated=hallucinated, tags=distinct(words)
        )


def _listed(cell: Any) -> list[str]:
    values = cell if isinstance(cell, list) else [cell]
    return [one for one in values if isinstance(one, str)]


def _hallucinated(words: Iterable[str]) -> bool | None:
    """Return what most of the words say that say something; None where as many say the other.

    Tools that do not tell people apart have the words of all in one list.
    """
    said = list[bool]()
    for word in words:
        try:
            found = label_in(word)
        except KeyError:
            continue
        said += [] if found is None else [found]
    return None if sum(said) * 2 == len(said) else sum(said) * 2 > len(said)


def code_point_offset(text: str, units: int) -> int:
    """Return the place in code points of a place in UTF-16 units; inside a pair, its beginning."""
    seen = 0
    for at, character in enumerate(text):
        width = 1 + (character > "\uffff")
        if seen + width > units:
            return at
        seen += width
    return len(text)


class _Whole(ToolRecord):
    """A record whose fields stand beside its labels; it is kept whole."""

    row: dict[str, Any]

    @model_validator(mode="before")
    @classmethod
    def _kept(cls, row: Any) -> Any:
        return {"row": row} if isinstance(row, Mapping) and "row" not in row else row

    @property
    def name(self) -> str:
        """The record's own id."""
        told = self.row.get("id")
        return "" if told is None else str(told)

    @property
    def key(self) -> str:
        """What a program outside of the tool calls it, among its metadata too."""
        for told in (self.fields, self.row.get("metadata"), self.row.get("meta")):
            if isinstance(told, Mapping) and told.get("key"):
                return str(told["key"])
        return ""

    def _others(self, *taken: str) -> dict[str, Any]:
        return {name: cell for name, cell in self.row.items() if name not in {*taken, "id"}}


class DoccanoRecord(_Whole):
    """doccano: a text with words, or with pieces as [start, end, word] or as entities."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """All but what doccano adds."""
        own = ("label", "labels", "entities", "relations", "Comments", "comments", "annotator")
        return self._others(*own)

    @property
    def people(self) -> Sequence[PersonLabels]:
        """One person: doccano writes a file for each."""
        told = [one for name in ("label", "labels", "entities") for one in self.row.get(name) or ()]
        spans = list[tuple[int, int, str]]()
        for one in told:
            if isinstance(one, Mapping):
                spans.append((one["start_offset"], one["end_offset"], str(one.get("label", ""))))
            elif isinstance(one, list):
                spans.append((one[0], one[1], str(one[2])))
        words = tuple(one for one in told if isinstance(one, str))
        return [PersonLabels(str(self.row.get("annotator") or "doccano"), words, tuple(spans))]


class ArgillaRecord(_Whole):
    """Argilla: records of its client, of its first version, or the columns of its data sets."""

    @property
    def fields(self) -> Mapping[str, Any]:
        """What was shown."""
        if isinstance(self.row.get("fields"), Mapping):
            return self.row["fields"]
        return {
            name: cell
            for name, cell in self._others("status", "_server_id", "inserted_at").items()
            if "." not in name
        }

    @property
    def people(self) -> Sequence[PersonLabels]:
        """Everybody's answers to all questions; drafts and discarded ones are left out."""
        found: dict[str, list[Any]] = {}
        for person, status, value in self._said():
            if status in (None, "submitted"):
                found.setdefault(person, []).append(value)
        return [_of_values(person, values) for person, values in found.items()]

    def _said(self) -> Iterator[tuple[str, Any, Any]]:
        told = self.row.get("responses")
        if isinstance(told, Mapping):
            for answers in told.values():
                for one in answers or ():
                    yield str(one.get("user_id") or "Argilla"), one.get("status"), one.get("value")
        elif isinstance(told, list):
            for one in told:
                for value in (one.get("values") or {}).values():
                    person = str(one.get("user_id") or "Argilla")
                    yield person, one.get("status"), value.get("value")
        for name, answers in self.row.items():
            if name.endswith(".responses") and isinstance(answers, list):
                users = self.row.get(f"{name}.users") or []
                states = self.row.get(f"{name}.status") or []
                for at, value in enumerate(answers):
                    person = str(users[at]) if at < len(users) else "Argilla"
                    yield person, states[at] if at < len(states) else None, value


def _of_values(person: str, values: Iterable[Any], **more: Any) -> PersonLabels:
    """Return what a person said, from words, lists of words, and lists of pieces."""
    words, spans = list[str](), list[tuple[int, int, str]]()
    for value in values:
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, Mapping) and "start" in one and "end" in one:
                word = one.get("label") or one.get("annotation") or one.get("name") or ""
                listed = one.get("labels")
                if isinstance(listed, list) and listed:
                    word = listed[0]
                spans.append((int(one["start"]), int(one["end"]), str(word)))
            elif isinstance(one, Mapping) and isinstance(one.get("choices"), list):
                words.extend(map(str, one["choices"]))
            elif isinstance(one, str | int | float) and not isinstance(one, bool):
                words.append(str(one))
    return PersonLabels(person, tuple(words), tuple(spans), **more)


class PotatoInstance(_Whole):
    """Potato: an instance with the labels of one person, nested or in columns "SCHEMA:::LABEL"."""

    @property
    def name(self) -> str:
        """The instance's id."""
        return str(self.row.get("instance_id") or "")

    @property
    def fields(self) -> Mapping[str, Any]:
        """The text that was shown, and fields of the same record."""
        own = ("user", "user_id", "instance_id", "label_annotations", "span_annotations")
        shown = self._others(*own, "behavioral_data")
        shown = {name: cell for name, cell in shown.items() if ":::" not in name}
        return {"text" if name == "displayed_text" else name: cell for name, cell in shown.items()}

    @property
    def people(self) -> Sequence[PersonLabels]:
        """The person whose labels the record has."""
        person = str(self.row.get("user_id") or self.row.get("user") or "Potato")
        chosen = [
            label
            for schema in _objects(self.row.get("label_annotations")).values()
            for label, value in _objects(schema).items()
            if _is_chosen(value)
        ]
        chosen += [
            name.rpartition(":::")[2]
            for name, value in self.row.items()
            if ":::" in name and _is_chosen(value)
        ]
        told = self.row.get("span_annotations")
        groups = list(told.values()) if isinstance(told, Mapping) else [told]
        return [_of_values(person, [*chosen, *(one for one in groups if isinstance(one, list))])]


def _objects(value: Any) -> Mapping[str, Any]:
    found = value_in(value) if isinstance(value, str) else value
    return found if isinstance(found, Mapping) else {}


def _is_chosen(value: Any) -> bool:
    return str(value).strip().casefold() not in ("", "false", "none", "nan", "0", "0.0")


class _Result(Record):
    type: str = ""
    value: dict[str, Any] = Field(default_factory=dict)


class _Annotation(Record):
    completed_by: Any = None
    created_at: Any = None
    lead_time: Any = None
    was_cancelled: bool = False
    result: tuple[_Result, ...] = ()


class LabelStudioTask(ToolRecord):
    """Label Studio: the data of a task under the project's own keys, and its annotations."""

    id: int | str | None = None
    data: dict[str, Any]
    annotations: tuple[_Annotation, ...] = ()

    @property
    def name(self) -> str:
        """The task's number."""
        return "" if self.id is None else str(self.id)

    @property
    def fields(self) -> Mapping[str, Any]:
        """The data of the task."""
        return self.data

    def parts(self) -> dict[str, Any]:
        """Return what `ToolRecord` does; the text is that in which the marked pieces stand."""
        found = super().parts()
        marked = [
            one.value
            for annotation in self.annotations
            for one in annotation.result
            if isinstance(one.value.get("text"), str) and isinstance(one.value.get("start"), int)
        ]
        for text in self.data.values():
            if marked and isinstance(text, str) and all(_stands(one, text) for one in marked):
                return {**found, "text": text}
        return found

    @property
    def people(self) -> Sequence[PersonLabels]:
        """Everybody's annotations; cancelled ones are left out."""
        text = self.parts()["text"]
        return [
            _of_results(annotation, text)
            for annotation in self.annotations
            if not annotation.was_cancelled
        ]


def _stands(value: Mapping[str, Any], text: str) -> bool:
    start, end = (code_point_offset(text, int(value[name])) for name in ("start", "end"))
    return text[start:end] == value["text"]


def _of_results(annotation: _Annotation, text: str) -> PersonLabels:
    """Return one annotation; places are converted from UTF-16 units."""
    words, spans = list[str](), list[tuple[int, int, str]]()
    for one in annotation.result:
        named = one.value.get(one.type)
        listed = named if isinstance(named, list) else [named]
        start, end = one.value.get("start"), one.value.get("end")
        if isinstance(start, int) and isinstance(end, int):
            place = (code_point_offset(text, start), code_point_offset(text, end))
            spans.append((*place, str(listed[0] if listed and listed[0] is not None else "")))
        else:
            flat = [
                word for part in listed for word in (part if isinstance(part, list) else [part])
            ]
            words.extend(str(word) for word in flat if isinstance(word, str | int | float))
    return PersonLabels(
        person_of(annotation.completed_by),
        tuple(words),
        tuple(spans),
        annotation.created_at,
        annotation.lead_time,
    )


def person_of(name: object) -> str:
    """Return who annotated: a name, a number, or an object with an e-mail address."""
    if isinstance(name, dict):
        name = name.get("email") or name.get("username") or name.get("id")
    return ("" if name is None else f"{name}")[:200].strip() or "Label Studio"


_LABEL_STUDIO = (
    *("annotation_id", "annotator", "lead_time", "created_at", "updated_at", "project"),
    *("agreement", "annotators", "comment_count"),
)
"""What Label Studio adds to the data of a task."""


class LabelStudioRow(_Whole):
    """Label Studio's short form, JSON-MIN and CSV: data and labels side by side."""

    def _labels(self) -> dict[str, Any]:
        """Return the fields that hold labels: lists of pieces, choices, and short words."""
        found = dict[str, Any]()
        for name, cell in self._others(*_LABEL_STUDIO).items():
            value = value_in(cell) if isinstance(cell, str) else cell
            parts = value if isinstance(value, list) else [value]
            if any(isinstance(one, dict) and {"labels", "choices"} & one.keys() for one in parts):
                found[name] = value
            elif isinstance(cell, str) and _hallucinated([cell]) is not None:
                found[name] = cell
        return found

    @property
    def fields(self) -> Mapping[str, Any]:
        """The data of the task."""
        return self._others(*_LABEL_STUDIO, *self._labels())

    @property
    def people(self) -> Sequence[PersonLabels]:
        """The person whose annotation the row has; places are converted from UTF-16 units."""
        told = _of_values(person_of(self.row.get("annotator")), self._labels().values())
        text = self.parts()["text"]
        spans = tuple(
            (code_point_offset(text, start), code_point_offset(text, end), word)
            for start, end, word in told.spans
        )
        at, seconds = self.row.get("created_at"), self.row.get("lead_time")
        return [told._replace(spans=spans, at=at, seconds=seconds)]

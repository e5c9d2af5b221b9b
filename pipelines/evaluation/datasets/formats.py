"""The table of public data sets whose files are recognised by their columns."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import isnan
from typing import Annotated, Any, Literal, NamedTuple, cast

from pydantic import BeforeValidator

from pipelines.base import Frozen, Language
from pipelines.error_words import Fact, Phrase, phrase
from pipelines.errors import VeriscopeError, failure
from pipelines.evaluation.datasets.files import DataTable, Row
from pipelines.evaluation.datasets.published import (
    AliasLists,
    Article,
    Biography,
    ChineseTruthful,
    ClaimItem,
    ConsistencyRecord,
    Dialogue,
    FactBiography,
    Facts,
    GeneralRecord,
    ItemRecord,
    ListQuestion,
    MultiHop,
    OpenQuestion,
    QaPair,
    QaRecord,
    RagTruth,
    SquadRow,
    Summary,
    Trivia,
    Truthful,
    distinct,
    locate,
    make_item,
    make_passages,
)
from pipelines.evaluation.plan import Item, Label, LabelledSpan, Offer


class Format(NamedTuple):
    """A form in which a data set is published. Several forms may have the same `kind`.

    `columns` are those that the first row has to have, `types` the types of some of them. Halves
    of a set are taken of its records, or with `halves_of_items` of its items.
    """

    kind: str
    title: str
    record: type[ItemRecord]
    columns: frozenset[str]
    types: dict[str, type] = {}  # noqa: RUF012 - never changed
    fits: Callable[[Row], bool] = lambda _row: True
    source: str = ""
    licence: str = ""
    halves_of_items: bool = False

    def describes(self, row: Row) -> bool:
        """Return whether `row` has this form."""
        return (
            row.keys() >= self.columns
            and all(isinstance(row[name], kind) for name, kind in self.types.items())
            and self.fits(row)
        )


def _format(
    kind: str, title: str, record: type[ItemRecord], columns: str, /, **rest: Any
) -> Format:
    return Format(kind, title, record, frozenset(columns.split("|")), **rest)


_TRUTHFULQA: dict[str, Any] = {"source": "Lin and others 2022, TruthfulQA", "licence": "Apache-2.0"}
_TRIVIAQA: dict[str, Any] = {"source": "Joshi and others 2017, TriviaQA", "licence": "Apache-2.0"}
_SQUAD: dict[str, Any] = {
    "source": "Rajpurkar and others 2016, SQuAD; Artetxe and others 2020, XQuAD",
    "licence": "CC BY-SA 4.0",
}
_QAMPARI: dict[str, Any] = {"source": "Amouyal and others 2023, QAMPARI"}
_HALUEVAL: dict[str, Any] = {"source": "Li and others 2023, HaluEval", "licence": "MIT"}
_CLAIMS: dict[str, Any] = {"source": "claims in the form of FEVER (Thorne and others 2018)"}


def _of_strings(column: str) -> Callable[[Row], bool]:
    return lambda row: all(isinstance(one, str) for one in row[column])


def _of_lists(column: str) -> Callable[[Row], bool]:
    return lambda row: bool(row[column]) and all(isinstance(one, list) for one in row[column])


def _without(column: str) -> Callable[[Row], bool]:
    return lambda row: column not in row


# The first form that describes a row is taken: one with more columns comes before one with fewer.
FORMATS: tuple[Format, ...] = (
    _format(
        "truthfulqa",
        "TruthfulQA",
        Truthful,
        "Question|Best Answer|Correct Answers|Incorrect Answers",
        **_TRUTHFULQA,
    ),
    _format(
        "truthfulqa",
        "TruthfulQA",
        Truthful,
        "question|best_answer|correct_answers|incorrect_answers",
        **_TRUTHFULQA,
    ),
    _format(
        "halluqa",
        "HalluQA",
        ChineseTruthful,
        "Question|Best Answer1",
        source="Cheng and others 2023, HalluQA",
        licence="Apache-2.0",
    ),
    _format(
        "2wikimultihopqa",
        "2WikiMultihopQA",
        MultiHop,
        "question|answer|context|supporting_facts|evidences",
        source="Ho and others 2020, 2WikiMultihopQA",
        licence="Apache-2.0",
    ),
    _format(
        "hotpotqa",
        "HotpotQA",
        MultiHop,
        "question|answer|context|supporting_facts",
        fits=_without("evidences"),
        source="Yang and others 2018, HotpotQA",
        licence="CC BY-SA 4.0",
    ),
    _format(
        "strategyqa",
        "StrategyQA",
        Facts,
        "question|answer|facts",
        types={"answer": bool},
        source="Geva and others 2021, StrategyQA",
        licence="MIT",
    ),
    _format("triviaqa", "TriviaQA", Trivia, "Question|Answer", types={"Answer": dict}, **_TRIVIAQA),
    _format("triviaqa", "TriviaQA", Trivia, "question|answer", types={"answer": dict}, **_TRIVIAQA),
    _format(
        "triviaqa",
        "TriviaQA",
        OpenQuestion,
        "question|answers",
        types={"answers": list},
        fits=_of_strings("answers"),
        **_TRIVIAQA,
    ),
    _format(
        "nq_open",
        "NQ-open",
        OpenQuestion,
        "question|answer",
        types={"answer": list},
        fits=_of_strings("answer"),
        source="Kwiatkowski and others 2019, Natural Questions; Lee and others 2019",
        licence="CC BY-SA 3.0",
    ),
    _format(
        "qampari",
        "QAMPARI",
        ListQuestion,
        "question_text|answer_list",
        types={"answer_list": list},
        **_QAMPARI,
    ),
    _format(
        "qampari",
        "QAMPARI",
        AliasLists,
        "question|answers",
        types={"answers": list},
        fits=_of_lists("answers"),
        **_QAMPARI,
    ),
    _format(
        "squad",
        "SQuAD / XQuAD",
        Article,
        "paragraphs",
        types={"paragraphs": list},
        halves_of_items=True,
        **_SQUAD,
    ),
    _format(
        "squad",
        "SQuAD / XQuAD",
        SquadRow,
        "context|question|answers",
        types={"answers": dict},
        **_SQUAD,
    ),
    _format(
        "wikibio_gpt3",
        "WikiBio GPT-3",
        Biography,
        "gpt3_text|gpt3_sentences|annotation|wiki_bio_text",
        source="Manakul and others 2023, SelfCheckGPT",
        licence="CC BY-SA 3.0",
    ),
    _format(
        "factscore",
        "FActScore biographies",
        FactBiography,
        "topic|input|output|annotations",
        source="Min and others 2023, FActScore",
        licence="MIT",
    ),
    _format(
        "ragtruth",
        "RAGTruth",
        RagTruth,
        "source_id|task_type|source_info|responses",
        source="Niu and others 2024, RAGTruth",
        licence="MIT",
    ),
    _format(
        "sac3_hotpotqa",
        "SAC3 HotpotQA",
        ConsistencyRecord,
        "question|right_answer|generated_answer|label",
        source="Zhang and others 2023, SAC3",
        licence="Apache-2.0",
    ),
    _format(
        "halueval_qa",
        "HaluEval, question answering (one answer each)",
        QaRecord,
        "knowledge|question|right_answer|hallucinated_answer",
        **_HALUEVAL,
    ),
    _format(
        "halueval_qa_pairs",
        "HaluEval, question answering (both answers)",
        QaPair,
        "knowledge|question|right_answer|hallucinated_answer",
        **_HALUEVAL,
    ),
    _format(
        "halueval_dialogue",
        "HaluEval, dialogues",
        Dialogue,
        "knowledge|dialogue_history|right_response|hallucinated_response",
        **_HALUEVAL,
    ),
    _format(
        "halueval_summarization",
        "HaluEval, summaries",
        Summary,
        "document|right_summary|hallucinated_summary",
        **_HALUEVAL,
    ),
    *(
        _format(
            "halueval_general", "HaluEval, general queries", GeneralRecord, columns, **_HALUEVAL
        )
        for columns in (
            "user_query|chatgpt_response|hallucination",
            "user_query|chatgpt_response|hallucination_label",
        )
    ),
    *(
        _format("claims", "Claims with evidence (FEVER and others)", ClaimItem, columns, **_CLAIMS)
        for columns in ("claim|label", "claim|claim_label", "claim|stance")
    ),
)

KINDS: dict[str, str] = {one.kind: one.title for one in FORMATS}
"""Every kind that a file can be given as, with its title."""


def recognised(table: DataTable) -> Format | None:
    """Return the form of the first row of `table`; None when it is that of no public data set."""
    return next((one for one in FORMATS if one.describes(table.rows[0])), None)


def format_of(table: DataTable, kind: str) -> Format:
    """Return the form of `table` as `kind`; InvalidInputError says what was found instead."""
    if kind not in KINDS:
        raise failure("data.no_kind", kind=kind, known=[*KINDS])
    for one in FORMATS:
        if one.kind == kind and one.describes(table.rows[0]):
            return one
    found = recognised(table)
    facts: dict[str, object] = {
        "file": table.name,
        "kind": KINDS[kind],
        "wanted": [
            phrase("wanted.with_columns", columns=listed(sorted(one.columns)))
            for one in FORMATS
            if one.kind == kind
        ],
    }
    if found is None:
        raise failure("data.other_kind", columns=listed(table.columns), **facts)
    raise failure("data.another_kind", found=found.title, name=found.kind, **facts)


def listed(names: Sequence[str]) -> Fact:
    """Return the first names, for a message."""
    shown = tuple(map(repr, names[:12]))
    more = len(names) - 12
    return phrase("detail.and_more", names=shown, count=more) if more > 0 else shown


# Tables of any columns: which column holds which part of an item.

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
    yes, true, 1, hallucinated, and the like; with `hallucinated_values`, these values alone mean
    yes, and any other means no.
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

    def columns(self) -> dict[str, tuple[str, ...]]:
        """Return a map from part of an item to the columns that hold it, without the parts that
        have none.
        """
        named = {part: _several(getattr(self, part)) for part in PARTS}
        kept = {part: tuple(filter(None, columns)) for part, columns in named.items()}
        return {part: columns for part, columns in kept.items() if columns}


PARTS: tuple[str, ...] = tuple(
    name for name in ColumnMapping.model_fields if name not in ("separator", "hallucinated_values")
)
"""The parts of an item that a column can hold."""

_USUAL: dict[str, str] = {
    "id": "id qid uid questionid itemid exampleid 编号 序号",
    "question": "question query prompt input instruction questiontext userquery 问题 提问 题目 问",
    "language": "language lang 语言 语种",
    "answers": """answer answers ans reference references gold goldanswer goldanswers target targets
        bestanswer correctanswer correctanswers rightanswer rightanswers aliases
        groundtruth 答案 参考答案 正确答案 标准答案 别名""",
    "wrong_answers": """wronganswer wronganswers incorrectanswer incorrectanswers
        hallucinatedanswer 错误答案 错误回答""",
    "lists": "answerlist answerslist entities lists 答案列表 实体列表",
    "passages": """passage passages context contexts evidence evidences knowledge document documents
        source facts 证据 段落 上下文 资料 文档 知识""",
    "text": """text response output generation generatedanswer generatedtext modelanswer prediction
        claim statement summary 文本 回答 模型回答 回复 输出 生成文本 陈述 声明""",
    "hallucinated": """hallucinated hallucination ishallucination ishallucinated hashallucination
        label labels 幻觉 是否幻觉 标签""",
    "sentences": "sentences labelledsentences sentencelabels 句子 句子标注",
    "spans": "spans labelledspans hallucinationspans 片段 标注片段",
    "samples": "samples sample sampledanswers textsamples 采样 样本",
    "group": "group documentid sourceid article topic 组 分组 文章 主题",
    "tags": "tags tag category type split class 标签类别 类别 分类 类型",
}
_SEVERAL = {"answers", "wrong_answers", "passages", "samples", "tags"}
_PART_OF = {name: part for part, names in _USUAL.items() for name in names.split()}


def suggested_mapping(columns: Sequence[str]) -> ColumnMapping:
    """Return a mapping guessed from usual names of columns, English and Chinese.

    Case, spaces, "_" and "-" do not count, nor does a number at the end ("Answer 1", "答案2").
    Of several columns for a part that has one, the first is taken.
    """
    found: dict[str, list[str]] = {}
    for column in columns:
        bare = re.sub(r"[\s_-]+", "", column).casefold()
        part = _PART_OF.get(bare) or _PART_OF.get(re.sub(r"\d+$", "", bare))
        if part:
            found.setdefault(part, []).append(column)
    fields: dict[str, Any] = {
        part: tuple(names) if part in _SEVERAL else names[0] for part, names in found.items()
    }
    return ColumnMapping(**fields)


def mapped_items(table: DataTable, mapping: ColumnMapping) -> Iterator[Item]:
    """Yield one item for each row of `table`.

    Raises InvalidInputError for a column that is not there and for a cell that does not hold what
    it should; it names the row and the column.
    """
    named = mapping.columns()
    absent = sorted({name for names in named.values() for name in names} - set(table.columns))
    if absent:
        raise failure(
            "data.no_column", file=table.name, names=listed(absent), columns=listed(table.columns)
        )
    if not {"question", "text"} & named.keys():
        raise failure("data.nothing_mapped", file=table.name, columns=listed(table.columns))
    for number, row in enumerate(table.rows):
        yield _MappedRow(
            row, mapping, phrase("place.in_file", file=table.name, place=table.place(number))
        ).item()


class _MappedRow:
    """A row that is read by a mapping."""

    def __init__(self, row: Row, mapping: ColumnMapping, place: Phrase) -> None:
        self._row, self._mapping, self._place = row, mapping, place

    def item(self) -> Item:
        mapping = self._mapping
        question, text = self._string(mapping.question), self._string(mapping.text)
        if not question.strip() and not text.strip():
            column = mapping.question or mapping.text
            raise self._error(column, phrase("cell.empty"))
        return make_item(
            self._string(mapping.id),
            question=question.strip(),
            language=self._language(),
            answers=distinct(self._strings(mapping.answers)),
            wrong_answers=distinct(self._strings(mapping.wrong_answers)),
            lists=self._lists(),
            passages=self._passages(),
            text=text,
            hallucinated=self._hallucinated(),
            sentences=self._spans(mapping.sentences, text),
            spans=self._spans(mapping.spans, text),
            samples=tuple(self._strings(mapping.samples)),
            group=self._string(mapping.group).strip(),
            tags=distinct(self._strings(mapping.tags)),
        )

    def _error(self, column: str, problem: Fact) -> VeriscopeError:
        return failure("data.bad_cell", place=self._place, column=column, problem=problem)

    def _cell(self, column: str) -> Any:
        """Return what a cell holds; None where there is none, or only that there is no number."""
        value = self._row.get(column) if column else None
        return None if _is_missing(value) else value

    def _string(self, column: str) -> str:
        value = self._cell(column)
        if value is None:
            return ""
        if isinstance(value, str | int | float):
            return _written(value)
        raise self._error(column, phrase("cell.no_text"))

    def _language(self) -> Language | None:
        code = self._string(self._mapping.language).strip().lower()
        if not code:
            return None
        found = _LANGUAGES.get(re.split(r"[-_]", code)[0])
        if found is None:
            raise self._error(self._mapping.language, phrase("cell.language", code=code))
        return found

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
            if value.lstrip().startswith("["):
                try:
                    parsed = json.loads(value)
                except (json.JSONDecodeError, RecursionError):
                    # A text may begin with a bracket, such as "[1] Paris".
                    parsed = None
                if isinstance(parsed, list):
                    return parsed
            separator = self._mapping.separator
            parts = value.split(separator) if separator else [value]
            return [part.strip() for part in parts if part.strip()]
        return [value]

    def _strings(self, columns: Sequence[str]) -> list[str]:
        return [
            self._shown(column, value)
            for column in columns
            for value in self._values(column)
            if not _is_missing(value)
        ]

    def _shown(self, column: str, value: Any) -> str:
        if isinstance(value, bool):
            # The answers of a question of truth.
            return "yes" if value else "no"
        if isinstance(value, str | int | float):
            return _written(value)
        raise self._error(column, phrase("cell.no_texts"))

    def _lists(self) -> tuple[tuple[str, ...], ...]:
        column = self._mapping.lists
        entities = []
        for value in self._values(column):
            aliases = value if isinstance(value, list) else self._shown(column, value).split("|")
            entities.append(distinct(self._shown(column, alias) for alias in aliases))
        return tuple(filter(None, entities))

    def _passages(self) -> Any:
        texts, titles = list[str](), list[str]()
        for column in self._mapping.passages:
            for value in self._values(column):
                is_object = isinstance(value, Mapping)
                texts.append(self._shown(column, value.get("text") if is_object else value))
                titles.append(str(value.get("title") or "") if is_object else "")
        return make_passages(texts, "data set", titles)

    def _hallucinated(self) -> bool | None:
        column = self._mapping.hallucinated
        value = self._cell(column)
        if value is None or value == "":
            return None
        word = _written(value).strip().casefold()
        if self._mapping.hallucinated_values:
            named = {one.strip().casefold() for one in self._mapping.hallucinated_values}
            # A whole number may be named 1 or 1.0.
            return word in named or str(value) in named
        if word in _YES:
            return True
        if word in _NO:
            return False
        raise failure("data.yes_or_no", place=self._place, column=column, value=repr(value))

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
        label = _LABELS.get(word)
        if label is None:
            raise self._error(column, phrase("cell.no_label", word=word, known=[*_LABELS]))
        return LabelledSpan(
            start=cast(int, start),
            end=cast(int, end),
            label=label,
            kind=str(fields.get("kind", "")),
        )


def _is_missing(value: Any) -> bool:
    return value is None or (isinstance(value, float) and isnan(value))


def _written(value: str | float) -> str:
    """Return a value as text. Tables keep whole numbers as 1843.0 in a column that lacks some."""
    whole = isinstance(value, float) and value.is_integer() and abs(value) < _EXACT
    return str(int(value)) if whole else str(value)


_EXACT = 2.0**53
"""Up to here a float holds every whole number."""


def _is_offset(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


_LANGUAGES: dict[str, Language] = {
    "en": "en",
    "english": "en",
    "英文": "en",
    "英语": "en",
    "zh": "zh",
    "cn": "zh",
    "chinese": "zh",
    "中文": "zh",
    "汉语": "zh",
}
_YES = {
    *("yes", "true", "1", "1.0", "hallucinated", "hallucination", "refutes", "refuted"),
    *("unsupported", "inaccurate", "wrong", "是", "有", "错误"),
}
_NO = {
    *("no", "false", "0", "0.0", "faithful", "factual", "supports", "supported"),
    *("accurate", "right", "correct", "否", "无", "没有", "正确"),
}
_LABELS: dict[str, Label] = {
    "accurate": "accurate",
    "supported": "accurate",
    "minor": "minor",
    "minor_inaccurate": "minor",
    "major": "major",
    "major_inaccurate": "major",
    "hallucinated": "major",
    "unsupported": "major",
}


# Whether a method or a metric applies to a data set: what it needs against what the set offers.

Need = Offer | tuple[Offer, ...]
"""Something that has to be there; of a tuple, any one of its members."""


def applies(needs: Collection[Need], offers: Collection[Offer]) -> str | None:
    """Return None when `offers` hold all that is needed, else the catalogue key of the reason.

    The reason names the first need that is not met, and of a tuple its first member.
    """
    for need in needs:
        choices = (need,) if isinstance(need, str) else need
        if not any(choice in offers for choice in choices):
            return f"evaluate.lacks.{choices[0]}"
    return None

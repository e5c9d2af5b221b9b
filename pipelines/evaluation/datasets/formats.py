"""The table of public data sets whose files are recognised by their columns."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from pipelines.error_words import Fact, phrase
from pipelines.errors import failure
from pipelines.evaluation.datasets.claims import ClaimItem
from pipelines.evaluation.datasets.files import DataTable, Row
from pipelines.evaluation.datasets.questions import (
    AliasLists,
    Article,
    ChineseTruthful,
    Facts,
    ListQuestion,
    MultiHop,
    OpenQuestion,
    SquadRow,
    Trivia,
    Truthful,
)
from pipelines.evaluation.datasets.records import ItemRecord
from pipelines.evaluation.datasets.texts import (
    Biography,
    ConsistencyRecord,
    Dialogue,
    FactBiography,
    GeneralRecord,
    QaPair,
    QaRecord,
    RagTruth,
    Summary,
)


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

"""The table of public data sets whose files are recognised by their columns."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any, NamedTuple

from pipelines.error_words import phrase
from pipelines.errors import failure
from pipelines.evaluation.datasets.columns import part_of
from pipelines.evaluation.datasets.files import DataTable
from pipelines.evaluation.datasets.grids import Row
from pipelines.evaluation.datasets.harnesses import (
    AnnotatedSummary,
    AttributedAnswers,
    BenchAnswers,
    ChineseParagraph,
    ConversationalQuestions,
    ExpertQuestion,
    HarnessSample,
)
from pipelines.evaluation.datasets.labelled import (
    ArgillaRecord,
    Begin,
    DoccanoRecord,
    Felm,
    LabelStudioRow,
    LabelStudioTask,
    LettuceSample,
    PotatoInstance,
    Qags,
    RagTruthOutput,
    RagTruthResponse,
    SummEvalArticle,
    SummEvalRow,
)
from pipelines.evaluation.datasets.mapping import ColumnMapping, listed, suggested_mapping
from pipelines.evaluation.datasets.prodigy import ProdigyTask
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
)
from pipelines.evaluation.datasets.records import ItemRecord
from pipelines.evaluation.plan import Offer


class Format(NamedTuple):
    """A form in which a data set is published. Several forms may have the same `kind`.

    `columns` are those that the first row has to have, `types` the types of some of them. Its rows
    are read as a `record` or, where that is None, by `mapping`, of whose columns a table may lack
    some. Halves of a set are taken of its records, or with `halves_of_items` of its items. A form
    that is `logged` holds requests and answers of a model, which only its record reads.
    """

    kind: str
    title: str
    record: type[ItemRecord] | None
    columns: frozenset[str]
    mapping: ColumnMapping = ColumnMapping()
    types: dict[str, type] = {}  # noqa: RUF012 - never changed
    fits: Callable[[Row], bool] = lambda _row: True
    source: str = ""
    licence: str = ""
    halves_of_items: bool = False
    logged: bool = False

    def describes(self, row: Row) -> bool:
        """Return whether `row` has this form."""
        return (
            row.keys() >= self.columns
            and all(isinstance(row[name], kind) for name, kind in self.types.items())
            and self.fits(row)
        )

    def mapping_of(self, columns: Collection[str]) -> ColumnMapping:
        """Return the mapping of a table with these columns, in a form that is read by one.

        What the form says nothing of is mapped by the usual names.
        """
        told: dict[str, Any] = {
            part: kept
            for part, names in self.mapping.columns().items()
            if (kept := tuple(name for name in names if name in columns))
        }
        taken = {name for names in told.values() for name in names}
        usual = suggested_mapping([name for name in columns if name not in taken])
        for part in ("id", "language", "samples", "wrong_answers", "tags"):
            if part not in told and (found := usual.columns().get(part)):
                told[part] = found
        several = {part for part in told if isinstance(getattr(self.mapping, part), tuple)}
        fields = {part: kept if part in several else kept[0] for part, kept in told.items()}
        return self.mapping.model_copy(
            update={part: () if part in several else "" for part in self.mapping.columns()}
        ).model_copy(update=fields)


def _format(
    kind: str, title: str, record: type[ItemRecord], columns: str, /, **rest: Any
) -> Format:
    return Format(kind, title, record, frozenset(columns.split("|")), **rest)


def _mapped(kind: str, title: str, columns: str, /, mapping: ColumnMapping, **rest: Any) -> Format:
    return Format(kind, title, None, frozenset(columns.split("|")), mapping=mapping, **rest)


_TRUTHFULQA: dict[str, Any] = {"source": "Lin and others 2022, TruthfulQA", "licence": "Apache-2.0"}
_TRIVIAQA: dict[str, Any] = {"source": "Joshi and others 2017, TriviaQA", "licence": "Apache-2.0"}
_SQUAD: dict[str, Any] = {
    "source": "Rajpurkar and others 2016, SQuAD; Artetxe and others 2020, XQuAD",
    "licence": "CC BY-SA 4.0",
}
_QAMPARI: dict[str, Any] = {"source": "Amouyal and others 2023, QAMPARI"}
_HALUEVAL: dict[str, Any] = {"source": "Li and others 2023, HaluEval", "licence": "MIT"}
_RAGTRUTH: dict[str, Any] = {"source": "Niu and others 2024, RAGTruth", "licence": "MIT"}
_RAGAS = ColumnMapping(
    question="user_input",
    text="response",
    answers=("reference",),
    passages=("retrieved_contexts", "reference_contexts"),
)
_OLD_RAGAS = ColumnMapping(
    question="question",
    text="answer",
    answers=("ground_truth", "ground_truths"),
    passages=("contexts",),
)
_SUMMEVAL: dict[str, Any] = {
    "source": "Fabbri and others 2021, SummEval; 5 of 5 for consistency means supported",
    "licence": "MIT",
}
_CLAIMS: dict[str, Any] = {"source": "claims in the form of FEVER (Thorne and others 2018)"}


def _of_strings(column: str) -> Callable[[Row], bool]:
    return lambda row: all(isinstance(one, str) for one in row[column])


def _of_lists(column: str) -> Callable[[Row], bool]:
    return lambda row: bool(row[column]) and all(isinstance(one, list) for one in row[column])


def _only_asks(column: str) -> Callable[[Row], bool]:
    """Return whether `column` holds texts and the row nothing else but a question that counts."""
    others = ("passages", "wrong_answers", "text", "samples", "lists")
    return lambda row: _of_strings(column)(row) and all(part_of(one) not in others for one in row)


def _without(column: str) -> Callable[[Row], bool]:
    return lambda row: column not in row


def _passes(column: str) -> Callable[[Row], bool]:
    return lambda row: str(row[column]).strip().casefold() in ("pass", "fail")


def _has_words(column: str) -> Callable[[Row], bool]:
    """Return whether the label is a word: what a number means, the columns do not say."""
    return lambda row: isinstance(row[column], str) and not row[column].strip().isdigit()


def _marks(column: str) -> Callable[[Row], bool]:
    return lambda row: isinstance(row.get(column), list)


def _has_columns(*columns: str) -> Callable[[Row], bool]:
    return lambda row: row.keys() >= {*columns}


def _is_doccano(labels: str) -> Callable[[Row], bool]:
    """Return whether the labels are those of doccano: words, pieces [start, end, word], or
    entities. Several annotated texts may have none.
    """

    def is_label(one: Any) -> bool:
        if isinstance(one, dict):
            return "start_offset" in one
        return isinstance(one, str) or (isinstance(one, list) and len(one) == 3)

    return lambda row: all(map(is_label, row[labels])) and not row.keys() & {"claim", "question"}


def _ends(*endings: str) -> Callable[[Row], bool]:
    return lambda row: all(any(name.endswith(one) for name in row) for one in endings)


# The first form that describes a row is taken: one with more columns comes before one with fewer.
FORMATS: tuple[Format, ...] = (
    *(
        _mapped("ragas", "ragas", columns, mapping, source="Es and others 2024, ragas")
        for columns, mapping in (
            ("user_input|response", _RAGAS),
            ("user_input|reference", _RAGAS),
            ("question|answer|contexts|ground_truth", _OLD_RAGAS),
            ("question|answer|contexts|ground_truths", _OLD_RAGAS),
            ("question|contexts|ground_truth", _OLD_RAGAS),
            ("question|answer|contexts", _OLD_RAGAS),
        )
    ),
    *(
        _mapped("deepeval", "DeepEval", columns, mapping)
        for columns, mapping in (
            (
                "input|actual_output",
                ColumnMapping(
                    question="input",
                    text="actual_output",
                    answers=("expected_output",),
                    passages=("retrieval_context", "context"),
                ),
            ),
            (
                "input|actualOutput",
                ColumnMapping(
                    question="input",
                    text="actualOutput",
                    answers=("expectedOutput",),
                    passages=("retrievalContext", "context"),
                ),
            ),
        )
    ),
    _mapped(
        "halubench",
        "HaluBench / Lynx",
        "passage|question|answer|label",
        ColumnMapping(
            question="question",
            text="answer",
            passages=("passage",),
            hallucinated="label",
            tags=("source_ds",),
        ),
        fits=_passes("label"),
        source="Ravi and others 2024, Lynx",
        licence="CC BY-NC 4.0",
    ),
    _mapped(
        "flashrag",
        "FlashRAG",
        "question|golden_answers",
        ColumnMapping(
            question="question", answers=("golden_answers",), passages=("retrieval_result",)
        ),
        source="Jin and others 2024, FlashRAG",
    ),
    *(
        _mapped(
            "dpr",
            "DPR / PopQA",
            f"question|{answers}{needed}",
            ColumnMapping(
                question="question", answers=(answers,), passages=(passages,), tags=("prop",)
            ),
            source="Karpukhin and others 2020, DPR; Mallen and others 2023, PopQA",
        )
        for answers, passages, needed in (
            ("possible_answers", "ctxs", ""),
            ("answers", "ctxs", "|ctxs"),
            ("answers", "positive_ctxs", "|positive_ctxs"),
        )
    ),
    *(
        _mapped(
            "grounded_claims",
            "Claims with documents, 1 = supported (LLM-AggreFact, SummaC, TRUE)",
            f"{document}|{text}|label",
            ColumnMapping(
                text=text,
                passages=(document,),
                hallucinated="label",
                label_is="supported",
                group=document,
                tags=("dataset", "cut", "origin", "model_name"),
            ),
            source="Tang and others 2024, LLM-AggreFact; Laban and others 2022, SummaC;"
            " Honovich and others 2022, TRUE",
        )
        for document, text in (
            ("doc", "claim"),
            ("document", "claim"),
            ("doc", "summary"),
            ("grounding", "generated_text"),
        )
    ),
    _format(
        "begin",
        "BEGIN",
        Begin,
        "knowledge|response|begin_label",
        source="Dziri and others 2022, BEGIN",
        licence="Apache-2.0",
    ),
    *(
        _format("summeval", "SummEval", record, columns, types={of: kind}, **_SUMMEVAL)
        for record, columns, of, kind in (
            (SummEvalRow, "decoded|expert_annotations", "expert_annotations", list),
            (SummEvalRow, "system_output|source|scores", "scores", dict),
            (SummEvalArticle, "text|machine_summaries|consistency", "consistency", list),
        )
    ),
    _format(
        "qags",
        "QAGS",
        Qags,
        "article|summary_sentences",
        types={"summary_sentences": list},
        source="Wang and others 2020, QAGS",
    ),
    _format(
        "felm",
        "FELM",
        Felm,
        "response|segmented_response|labels",
        types={"segmented_response": list, "labels": list},
        source="Chen and others 2023, FELM",
        licence="CC BY-NC-SA 4.0",
    ),
    _format(
        "lettucedetect",
        "LettuceDetect",
        LettuceSample,
        "prompt|answer|labels",
        types={"labels": list},
        source="Kovács and Recski 2025, LettuceDetect",
    ),
    _format(
        "ragtruth",
        "RAGTruth",
        RagTruthResponse,
        "response|source_id|labels",
        types={"labels": list},
        **_RAGTRUTH,
    ),
    _format(
        "ragtruth",
        "RAGTruth",
        RagTruthOutput,
        "query|context|output|hallucination_labels",
        **_RAGTRUTH,
    ),
    *(
        _mapped(
            kind,
            f"HaluEval, {title}",
            f"{passages}|{text}|hallucination",
            ColumnMapping(
                question=question, text=text, passages=(passages,), hallucinated="hallucination"
            ),
            fits=fits,
            **_HALUEVAL,
        )
        for kind, title, passages, question, text, fits in (
            (
                "halueval_qa",
                "question answering (one answer each)",
                "knowledge",
                "question",
                "answer",
                _has_columns("question"),
            ),
            (
                "halueval_dialogue",
                "dialogues",
                "knowledge",
                "dialogue_history",
                "response",
                _has_columns("dialogue_history"),
            ),
            ("halueval_summarization", "summaries", "document", "", "summary", _has_columns()),
        )
    ),
    _format(
        "label_studio",
        "Label Studio",
        LabelStudioTask,
        "data|annotations",
        types={"data": dict, "annotations": list},
    ),
    _format("label_studio", "Label Studio", LabelStudioRow, "annotation_id|annotator|lead_time"),
    _format("argilla", "Argilla", ArgillaRecord, "fields|responses", types={"fields": dict}),
    _format("argilla", "Argilla", ArgillaRecord, "id|status", fits=_ends(".responses")),
    _format("prodigy", "Prodigy", ProdigyTask, "answer|_input_hash|_task_hash"),
    _format("potato", "Potato", PotatoInstance, "instance_id|displayed_text"),
    _format("potato", "Potato", PotatoInstance, "instance_id|label_annotations"),
    *(
        _format(
            "doccano",
            "doccano",
            DoccanoRecord,
            f"{text}|{labels}",
            types={text: str, labels: list},
            fits=_is_doccano(labels),
        )
        for text in ("text", "data")
        for labels in ("label", "labels", "entities")
    ),
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
        fits=_only_asks("answers"),
        **_TRIVIAQA,
    ),
    _format(
        "nq_open",
        "NQ-open",
        OpenQuestion,
        "question|answer",
        types={"answer": list},
        fits=_only_asks("answer"),
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
        fits=lambda row: all("context" in one for one in row["paragraphs"]),
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
        **_RAGTRUTH,
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
    _format(
        "lm_eval",
        "Samples of lm-evaluation-harness",
        HarnessSample,
        "doc_id|doc|arguments|resps",
        types={"doc": dict, "resps": list},
        logged=True,
    ),
    _format(
        "mt_bench",
        "MT-bench, answers of a model",
        BenchAnswers,
        "question_id|model_id|choices",
        types={"choices": list},
        fits=lambda row: all("turns" in one for one in row["choices"]),
        source="Zheng and others 2023, MT-bench",
        licence="Apache-2.0",
    ),
    _format(
        "coqa",
        "CoQA",
        ConversationalQuestions,
        "story|questions|answers",
        types={"questions": list, "answers": list},
        source="Reddy and others 2019, CoQA",
        halves_of_items=True,
    ),
    _mapped(
        "qrecc",
        "QReCC",
        "Context|Question|Rewrite|Answer",
        ColumnMapping(question="Rewrite", answers=("Answer",), group="Conversation_no"),
        source="Anantha and others 2021, QReCC",
        licence="CC BY-SA 3.0",
    ),
    _format(
        "hagrid",
        "HAGRID",
        AttributedAnswers,
        "query|quotes|answers",
        types={"quotes": list, "answers": list},
        source="Kamalloo and others 2023, HAGRID",
        licence="Apache-2.0",
    ),
    _format(
        "faithbench",
        "FaithBench",
        AnnotatedSummary,
        "source|summary|annotations",
        types={"annotations": list},
        source="Bao and others 2025, FaithBench",
    ),
    _format(
        "expertqa",
        "ExpertQA",
        ExpertQuestion,
        "question|answers|annotator_id",
        types={"answers": dict},
        fits=lambda row: all("answer_string" in one for one in row["answers"].values()),
        source="Malaviya and others 2024, ExpertQA",
        licence="MIT",
    ),
    _format(
        "cmrc2018",
        "CMRC 2018",
        ChineseParagraph,
        "context_text|qas",
        types={"qas": list},
        source="Cui and others 2019, CMRC 2018",
        licence="CC BY-SA 4.0",
        halves_of_items=True,
    ),
    _mapped(
        "shroom",
        "SHROOM 2024",
        "hyp|tgt|src|label",
        ColumnMapping(
            text="hyp", passages=("tgt", "src"), hallucinated="label", tags=("task", "model")
        ),
        fits=_has_words("label"),
        source="Mickus and others 2024, SHROOM",
    ),
    _mapped(
        "tofueval",
        "TofuEval",
        "summ_sent|sent_label|topic",
        ColumnMapping(
            text="summ_sent",
            hallucinated="sent_label",
            label_is="supported",
            group="doc_id",
            tags=("model_name", "type"),
        ),
        source="Tang and others 2024, TofuEval",
    ),
    _mapped(
        "snli",
        "SNLI, MultiNLI",
        "sentence1|sentence2|gold_label",
        ColumnMapping(
            id="pairID", text="sentence2", passages=("sentence1",), hallucinated="gold_label"
        ),
        source="Bowman and others 2015, SNLI; Williams and others 2018, MultiNLI",
    ),
    _mapped(
        "factool",
        "FacTool",
        "prompt|response|claims|response_label",
        ColumnMapping(
            question="prompt",
            text="response",
            hallucinated="response_label",
            label_is="supported",
            tags=("category",),
        ),
        source="Chern and others 2023, FacTool",
        licence="Apache-2.0",
    ),
    _mapped(
        "patronus",
        "Patronus",
        "evaluated_model_input|evaluated_model_output",
        ColumnMapping(
            question="evaluated_model_input",
            text="evaluated_model_output",
            answers=("evaluated_model_gold_answer",),
            passages=("evaluated_model_retrieved_context",),
        ),
    ),
    *(
        _format(
            "claims",
            "Claims with evidence (FEVER and others)",
            ClaimItem,
            columns,
            fits=_has_words(columns.split("|")[1]),
            **_CLAIMS,
        )
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

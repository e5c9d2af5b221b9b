"""Forms of labelled texts, and of tools for evaluation and annotation."""

from __future__ import annotations

from typing import Any

from pipelines.evaluation.datasets.form import (
    Format,
    columns_end,
    form_by_columns,
    form_of_records,
    has_columns,
    is_doccano,
    says_pass_or_fail,
)
from pipelines.evaluation.datasets.harnesses import FlashResult
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
from pipelines.evaluation.datasets.mapping import ColumnMapping
from pipelines.evaluation.datasets.prodigy import ProdigyTask

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

LABELLED: tuple[Format, ...] = (
    *(
        form_by_columns("ragas", "ragas", columns, mapping, source="Es and others 2024, ragas")
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
        form_by_columns("deepeval", "DeepEval", columns, mapping)
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
    form_by_columns(
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
        fits=says_pass_or_fail("label"),
        source="Ravi and others 2024, Lynx",
        licence="CC BY-NC 4.0",
    ),
    form_of_records(
        "flashrag",
        "FlashRAG",
        FlashResult,
        "question|golden_answers|output",
        types={"output": dict},
        source="Jin and others 2024, FlashRAG",
    ),
    form_by_columns(
        "flashrag",
        "FlashRAG",
        "question|golden_answers",
        ColumnMapping(
            question="question", answers=("golden_answers",), passages=("retrieval_result",)
        ),
        source="Jin and others 2024, FlashRAG",
    ),
    *(
        form_by_columns(
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
        form_by_columns(
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
    form_of_records(
        "begin",
        "BEGIN",
        Begin,
        "knowledge|response|begin_label",
        source="Dziri and others 2022, BEGIN",
        licence="Apache-2.0",
    ),
    *(
        form_of_records("summeval", "SummEval", record, columns, types={of: kind}, **_SUMMEVAL)
        for record, columns, of, kind in (
            (SummEvalRow, "decoded|expert_annotations", "expert_annotations", list),
            (SummEvalRow, "system_output|source|scores", "scores", dict),
            (SummEvalArticle, "text|machine_summaries|consistency", "consistency", list),
        )
    ),
    form_of_records(
        "qags",
        "QAGS",
        Qags,
        "article|summary_sentences",
        types={"summary_sentences": list},
        source="Wang and others 2020, QAGS",
    ),
    form_of_records(
        "felm",
        "FELM",
        Felm,
        "response|segmented_response|labels",
        types={"segmented_response": list, "labels": list},
        source="Chen and others 2023, FELM",
        licence="CC BY-NC-SA 4.0",
    ),
    form_of_records(
        "lettucedetect",
        "LettuceDetect",
        LettuceSample,
        "prompt|answer|labels",
        types={"labels": list},
        source="Kovács and Recski 2025, LettuceDetect",
    ),
    form_of_records(
        "ragtruth",
        "RAGTruth",
        RagTruthResponse,
        "response|source_id|labels",
        types={"labels": list},
        **_RAGTRUTH,
    ),
    form_of_records(
        "ragtruth",
        "RAGTruth",
        RagTruthOutput,
        "query|context|output|hallucination_labels",
        **_RAGTRUTH,
    ),
    *(
        form_by_columns(
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
                has_columns("question"),
            ),
            (
                "halueval_dialogue",
                "dialogues",
                "knowledge",
                "dialogue_history",
                "response",
                has_columns("dialogue_history"),
            ),
            ("halueval_summarization", "summaries", "document", "", "summary", has_columns()),
        )
    ),
    form_of_records(
        "label_studio",
        "Label Studio",
        LabelStudioTask,
        "data|annotations",
        types={"data": dict, "annotations": list},
    ),
    form_of_records(
        "label_studio", "Label Studio", LabelStudioRow, "annotation_id|annotator|lead_time"
    ),
    form_of_records(
        "argilla", "Argilla", ArgillaRecord, "fields|responses", types={"fields": dict}
    ),
    form_of_records(
        "argilla", "Argilla", ArgillaRecord, "id|status", fits=columns_end(".responses")
    ),
    form_of_records("prodigy", "Prodigy", ProdigyTask, "answer|_input_hash|_task_hash"),
    form_of_records("potato", "Potato", PotatoInstance, "instance_id|displayed_text"),
    form_of_records("potato", "Potato", PotatoInstance, "instance_id|label_annotations"),
    *(
        form_of_records(
            "doccano",
            "doccano",
            DoccanoRecord,
            f"{text}|{labels}",
            types={text: str, labels: list},
            fits=is_doccano(labels),
        )
        for text in ("text", "data")
        for labels in ("label", "labels", "entities")
    ),
)

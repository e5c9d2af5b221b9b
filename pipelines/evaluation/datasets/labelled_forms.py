"""Forms of labelled texts, and of what tools for evaluation and annotation write."""

from __future__ import annotations

from typing import Any

from pipelines.evaluation.datasets.form import (
    Format,
    columns_end,
    form_by_columns,
    form_of_records,
    has_columns,
    holds_words,
    is_doccano,
    says_pass_or_fail,
)
from pipelines.evaluation.datasets.harnesses import (
    AnnotatedSummary,
    AttributedAnswers,
    BenchAnswers,
    CitedAnswer,
    ExpertQuestion,
    FlashResult,
    HarnessSample,
    HelmState,
    MedicalPair,
    NewsContinuation,
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
from pipelines.evaluation.datasets.mapping import ColumnMapping
from pipelines.evaluation.datasets.prodigy import ProdigyTask
from pipelines.evaluation.datasets.published import (
    Biography,
    ClaimItem,
    ConsistencyRecord,
    Dialogue,
    FactBiography,
    GeneralRecord,
    QaPair,
    QaRecord,
    RagTruth,
    Summary,
)

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
    form_of_records(
        "wikibio_gpt3",
        "WikiBio GPT-3",
        Biography,
        "gpt3_text|gpt3_sentences|annotation|wiki_bio_text",
        source="Manakul and others 2023, SelfCheckGPT",
        licence="CC BY-SA 3.0",
    ),
    form_of_records(
        "factscore",
        "FActScore biographies",
        FactBiography,
        "topic|input|output|annotations",
        source="Min and others 2023, FActScore",
        licence="MIT",
    ),
    form_of_records(
        "ragtruth",
        "RAGTruth",
        RagTruth,
        "source_id|task_type|source_info|responses",
        **_RAGTRUTH,
    ),
    form_of_records(
        "sac3_hotpotqa",
        "SAC3 HotpotQA",
        ConsistencyRecord,
        "question|right_answer|generated_answer|label",
        source="Zhang and others 2023, SAC3",
        licence="Apache-2.0",
    ),
    form_of_records(
        "halueval_qa",
        "HaluEval, question answering (one answer each)",
        QaRecord,
        "knowledge|question|right_answer|hallucinated_answer",
        **_HALUEVAL,
    ),
    form_of_records(
        "halueval_qa_pairs",
        "HaluEval, question answering (both answers)",
        QaPair,
        "knowledge|question|right_answer|hallucinated_answer",
        **_HALUEVAL,
    ),
    form_of_records(
        "halueval_dialogue",
        "HaluEval, dialogues",
        Dialogue,
        "knowledge|dialogue_history|right_response|hallucinated_response",
        **_HALUEVAL,
    ),
    form_of_records(
        "halueval_summarization",
        "HaluEval, summaries",
        Summary,
        "document|right_summary|hallucinated_summary",
        **_HALUEVAL,
    ),
    *(
        form_of_records(
            "halueval_general", "HaluEval, general queries", GeneralRecord, columns, **_HALUEVAL
        )
        for columns in (
            "user_query|chatgpt_response|hallucination",
            "user_query|chatgpt_response|hallucination_label",
        )
    ),
    form_of_records(
        "lm_eval",
        "Samples of lm-evaluation-harness",
        HarnessSample,
        "doc_id|doc|arguments|resps",
        types={"doc": dict, "resps": list},
        whole=True,
    ),
    form_of_records(
        "helm",
        "HELM, states of requests",
        HelmState,
        "instance|request|result",
        types={"instance": dict, "result": dict},
        whole=True,
        source="Liang and others 2023, HELM",
        licence="Apache-2.0",
    ),
    form_of_records(
        "mt_bench",
        "MT-bench, answers of a model",
        BenchAnswers,
        "question_id|model_id|choices",
        types={"choices": list},
        fits=lambda row: all(isinstance(o, dict) and "turns" in o for o in row["choices"]),
        source="Zheng and others 2023, MT-bench",
        licence="Apache-2.0",
    ),
    form_of_records(
        "hagrid",
        "HAGRID",
        AttributedAnswers,
        "query|quotes|answers",
        types={"quotes": list, "answers": list},
        whole=True,
        source="Kamalloo and others 2023, HAGRID",
        licence="Apache-2.0",
    ),
    form_of_records(
        "faithbench",
        "FaithBench",
        AnnotatedSummary,
        "source|summary|annotations",
        types={"annotations": list},
        source="Bao and others 2025, FaithBench",
    ),
    form_of_records(
        "expertqa",
        "ExpertQA",
        ExpertQuestion,
        "question|answers|annotator_id",
        types={"answers": dict},
        fits=lambda row: all(
            isinstance(one, dict) and "answer_string" in one for one in row["answers"].values()
        ),
        whole=True,
        source="Malaviya and others 2024, ExpertQA",
        licence="MIT",
    ),
    form_of_records(
        "medhallu",
        "MedHallu",
        MedicalPair,
        "Question|Knowledge|Ground Truth|Hallucinated Answer",
        source="Pandit and others 2025, MedHallu",
        licence="MIT",
    ),
    form_of_records(
        "uhgeval",
        "UHGEval, Chinese",
        NewsContinuation,
        "newsBeginning|hallucinatedContinuation",
        whole=True,
        source="Liang and others 2024, UHGEval",
        licence="Apache-2.0",
    ),
    form_of_records(
        "trec_rag",
        "A run of TREC RAG",
        CitedAnswer,
        "topic_id|topic|answer",
        types={"answer": list},
    ),
    form_by_columns(
        "shroom",
        "SHROOM 2024",
        "hyp|tgt|src|label",
        ColumnMapping(
            text="hyp", passages=("tgt", "src"), hallucinated="label", tags=("task", "model")
        ),
        fits=holds_words("label"),
        source="Mickus and others 2024, SHROOM",
    ),
    form_by_columns(
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
    form_by_columns(
        "snli",
        "SNLI, MultiNLI",
        "sentence1|sentence2|gold_label",
        ColumnMapping(
            id="pairID", text="sentence2", passages=("sentence1",), hallucinated="gold_label"
        ),
        source="Bowman and others 2015, SNLI; Williams and others 2018, MultiNLI",
    ),
    form_by_columns(
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
    form_by_columns(
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
        form_of_records(
            "claims",
            "Claims with evidence (FEVER and others)",
            ClaimItem,
            columns,
            fits=holds_words(columns.split("|")[1]),
            **_CLAIMS,
        )
        for columns in ("claim|label", "claim|claim_label", "claim|stance")
    ),
)

"""Rows of benchmarks that have no form of their own: read by the names of their columns.

The rows are of our own, in the published columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets import open_data_set
from pipelines.evaluation.datasets.columns import part_of, said_by
from pipelines.evaluation.datasets.mapping import label_in
from tests.pipelines.evaluation.datasets.small_files import lines

Q, A, WRONG, DOC = "Where is Oslo?", "Norway", "Oslo is in Sweden.", "Oslo lies in Norway."
LONG = f"{DOC} It has been the capital of the country for centuries, and it has a harbour."
ZH, ZH_DOC = "奥斯陆在哪里？", "奥斯陆位于挪威。"
HASHES = {"_input_hash": 1, "_task_hash": 2}
TEXTS = {"title": ["Oslo"], "sentences": [[DOC]]}

# A row, and what its item holds beside nothing.
ROWS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "MS MARCO": (
        {
            "answers": [A],
            "passages": {"is_selected": [1], "passage_text": [DOC], "url": ["https://x.org/1"]},
            "query": Q,
            "query_id": 1,
            "query_type": "LOCATION",
        },
        {"question": Q, "answers": (A,), "passages": (DOC,)},
    ),
    "CRAG": (
        {
            "domain": "open",
            "query": Q,
            "answer": A,
            "alt_ans": ["NO"],
            "search_results": [{"page_name": "Oslo", "page_url": "u", "page_snippet": DOC}],
        },
        {"question": Q, "answers": (A, "NO"), "passages": (DOC,)},
    ),
    "DuReader": (
        {
            "question": ZH,
            "documents": [{"title": "t", "paragraphs": [ZH_DOC, "第二段。"], "is_selected": True}],
            "answers": ["挪威"],
        },
        {"question": ZH, "answers": ("挪威",), "passages": (f"{ZH_DOC}\n第二段。",)},
    ),
    "MuSiQue": (
        {
            "id": "1",
            "paragraphs": [{"idx": 0, "title": "Oslo", "paragraph_text": DOC}],
            "question": Q,
            "answer": A,
            "answer_aliases": ["NO"],
        },
        {"question": Q, "answers": (A, "NO"), "passages": (DOC,)},
    ),
    "HotpotQA of the hub": (
        {"id": "1", "question": Q, "answer": A, "context": TEXTS, "type": "bridge", "level": "hard",
         "supporting_facts": {"title": ["Oslo"], "sent_id": [0]}},
        {"question": Q, "answers": (A,), "passages": (DOC,)},
    ),
    "2Wiki": (
        {"_id": "1", "question": Q, "answer": A, "context": [["Oslo", [DOC]]], "type": "bridge",
         "supporting_facts": [["Oslo", 0]], "evidences": [["Oslo", "country", "Norway"]]},
        {"question": Q, "answers": (A,), "passages": (DOC,)},
    ),
    "CMRC of the hub": (
        {"id": "1", "context": ZH_DOC, "question": ZH,
         "answers": {"text": ["挪威"], "answer_start": [5]}},
        {"question": ZH, "answers": ("挪威",), "passages": (ZH_DOC,)},
    ),
    "VitaminC": (
        {"unique_id": "1", "claim": WRONG, "evidence": DOC, "label": "REFUTES", "page": "Oslo"},
        {"text": WRONG, "passages": (DOC,), "hallucinated": True},
    ),
    "MNLI": (
        {"premise": DOC, "hypothesis": WRONG, "label": "contradiction"},
        {"text": WRONG, "passages": (DOC,), "hallucinated": True},
    ),
    "FRANK": (
        {"hash": "1", "model_name": "m", "article": LONG, "summary": WRONG, "Factuality": 0.0},
        {"text": WRONG, "passages": (LONG,), "hallucinated": True},
    ),
    "RAGBench": (
        {"id": "1", "question": Q, "documents": [DOC], "response": WRONG, "adherence_score": False},
        {"question": Q, "text": WRONG, "passages": (DOC,), "hallucinated": True},
    ),
    "SimpleQA": (
        {"metadata": "{'topic': 'x'}", "problem": Q, "answer": A},
        {"question": Q, "answers": (A,)},
    ),
    "Chinese SimpleQA": (
        {"id": "1", "primary_category": "x", "question": ZH, "answer": "挪威", "urls": ["u"]},
        {"question": ZH, "answers": ("挪威",)},
    ),
    "HalluQA": (
        {"question_id": 1, "Question": Q, "Best Answer1": A, "Wrong Answer1": "Sweden"},
        {"question": Q, "answers": (A,), "wrong_answers": ("Sweden",)},
    ),
    "FreshQA": (
        {"id": "1", "split": "TEST", "question": Q, "answer_0": A, "answer_1": "NO",
         "answer_2": "", "source": "https://x.org/1"},
        {"question": Q, "answers": (A, "NO")},
    ),
    "HaluEval 2": (
        {"id": 1, "user_query": Q, "chatgpt_response": WRONG},
        {"question": Q, "text": WRONG},
    ),
    "WikiBio of the hub": (
        {
            "gpt3_text": "Per Lie (1920–1990) was a painter.",
            "wiki_bio_text": "Per Lie was a singer.",
            "gpt3_sentences": ["Per Lie (1920–1990) was a painter."],
            "annotation": ["major_inaccurate"],
            "wiki_bio_test_idx": 1,
            "gpt3_text_samples": ["x"],
        },
        {
            "question": "Write a short biography of Per Lie.",
            "text": "Per Lie (1920–1990) was a painter.",
            "passages": ("Per Lie was a singer.",),
            "hallucinated": True,
        },
    ),
    "Dolly": (
        {"instruction": Q, "context": DOC, "response": WRONG, "category": "closed_qa"},
        {"question": Q, "text": WRONG, "passages": (DOC,)},
    ),
    "OpenAI evals": ({"input": Q, "ideal": A}, {"question": Q, "answers": (A,)}),
    "Phoenix": (
        {"input": Q, "reference": A, "output": WRONG, "label": "hallucinated"},
        {"question": Q, "answers": (A,), "text": WRONG, "hallucinated": True},
    ),
    "a table in Chinese": (
        {"提问": ZH, "大模型的回答": "瑞典", "标准答案": "挪威", "是否准确": "否"},
        {"question": ZH, "answers": ("挪威",), "text": "瑞典", "hallucinated": True},
    ),
    "a table in traditional Chinese": (
        {"問題": ZH, "模型回答": "瑞典", "參考答案": "挪威", "是否幻覺": "無"},
        {"question": ZH, "answers": ("挪威",), "text": "瑞典", "hallucinated": False},
    ),
    "HalluMix": (
        {"documents": [DOC], "answer": WRONG, "hallucination_label": 1, "source": "x"},
        {"text": WRONG, "passages": (DOC,), "hallucinated": True},
    ),
    "SciFact of the hub": (
        {"id": 1, "claim": WRONG, "evidence_doc_id": "4", "evidence_label": "CONTRADICT",
         "evidence_sentences": [1]},
        {"text": WRONG, "hallucinated": True},
    ),
    "FactCC": (
        {"id": "1", "text": LONG, "claim": WRONG, "label": "INCORRECT"},
        {"text": WRONG, "passages": (LONG,), "hallucinated": True},
    ),
    "a claim with a context": (
        {"claim": WRONG, "context": DOC, "label": "SUPPORTED"},
        {"text": WRONG, "passages": (DOC,), "hallucinated": False},
    ),
    "AVeriTeC": (
        {"claim": WRONG, "label": "Refuted", "justification": "x",
         "questions": [{"question": Q, "answers": [{"answer": DOC, "source_url": "u"}]}]},
        {"text": WRONG, "passages": (f"{Q} {DOC}",), "hallucinated": True},
    ),
    "AVeriTeC, conflicting": (
        {"claim": WRONG, "evidence": DOC, "label": "Conflicting Evidence/Cherrypicking"},
        {"text": WRONG, "passages": (DOC,)},
    ),
    "WebQA in Chinese": (
        {"question": ZH, "evidences": {"1#00": {"answer": ["挪威"], "evidence": ZH_DOC}}},
        {"question": ZH, "answers": ("挪威",), "passages": (ZH_DOC,)},
    ),
    "RGB": (
        {"id": 0, "query": Q, "answer": [[A, "NO"]], "positive": [DOC], "negative": ["x"]},
        {"question": Q, "answers": (A, "NO"), "passages": (DOC,)},
    ),
    "PubMedQA": (
        {"pubid": 1, "question": Q, "context": {"contexts": [DOC], "labels": ["B"]},
         "long_answer": "Long.", "final_decision": "yes"},
        {"question": Q, "answers": ("yes",), "passages": (DOC,)},
    ),
    "NarrativeQA": (
        {"question": Q, "answers": [{"text": A, "tokens": [A]}, {"text": "NO"}]},
        {"question": Q, "answers": (A, "NO")},
    ),
    "DialFact": (
        {"id": "1", "response": WRONG, "response_label": "REFUTES", "evidence_list": [DOC]},
        {"text": WRONG, "passages": (DOC,), "hallucinated": True},
    ),
    "AttributionBench": (
        {"question": Q, "response": WRONG, "attribution_label": "not attributable"},
        {"question": Q, "text": WRONG, "hallucinated": True},
    ),
    "Mu-SHROOM": (
        {"id": "1", "lang": "EN", "model_input": Q, "model_output_text": WRONG,
         "hard_labels": [[0, 4]]},
        {"question": Q, "text": WRONG, "hallucinated": True},
    ),
    "Databricks": (
        {"request": Q, "expected_response": A, "response": WRONG,
         "retrieved_context": [{"content": DOC, "doc_uri": "u"}]},
        {"question": Q, "answers": (A,), "text": WRONG, "passages": (DOC,)},
    ),
    "fmeval": (
        {"model_input": Q, "model_output": WRONG, "target_output": A},
        {"question": Q, "answers": (A,), "text": WRONG},
    ),
    "Bedrock": ({"prompt": Q, "referenceResponse": A}, {"question": Q, "answers": (A,)}),
    "Giskard": (
        {"question": Q, "reference_answer": A, "reference_context": DOC},
        {"question": Q, "answers": (A,), "passages": (DOC,)},
    ),
    "Braintrust": (
        {"input": Q, "output": WRONG, "expected": A},
        {"question": Q, "answers": (A,), "text": WRONG},
    ),
    "AutoRAG": ({"query": Q, "generation_gt": [A]}, {"question": Q, "answers": (A,)}),
    "a sheet of annotators in Chinese": (
        {"用户提问": ZH, "AI回复": "瑞典", "参考资料": ZH_DOC, "人工标注": "不准确"},
        {"question": ZH, "text": "瑞典", "passages": (ZH_DOC,), "hallucinated": True},
    ),
    "a judge's word": (
        {"prompt": Q, "completion": WRONG, "final_judgement": "Not Hallucination"},
        {"question": Q, "text": WRONG, "hallucinated": False},
    ),
    "contains_hallucination": (
        {"prompt": Q, "completion": WRONG, "contains_hallucination": True},
        {"question": Q, "text": WRONG, "hallucinated": True},
    ),
    "accepted answers beside a model's": (
        {"question": Q, "answers": [A, "NO"], "wrong_answers": ["Sweden"], "prediction": WRONG},
        {"question": Q, "answers": (A, "NO"), "wrong_answers": ("Sweden",), "text": WRONG},
    ),
    "DROP": (
        {"passage": DOC, "question": Q, "answers_spans": {"spans": [A], "types": ["span"]}},
        {"question": Q, "answers": (A,), "passages": (DOC,)},
    ),
    "SciQ": (
        {"question": Q, "distractor1": "Peru", "correct_answer": A, "support": LONG},
        {"question": Q, "answers": (A,), "wrong_answers": ("Peru",), "passages": (LONG,)},
    ),
    "PubHealth": (
        {"claim": WRONG, "main_text": LONG, "sources": "https://x.org/1", "label": "unproven"},
        {"text": WRONG},
    ),
    "a claim by the name of its source": (
        {"claim": WRONG, "source": "politifact", "label": "refuted"},
        {"text": WRONG, "hallucinated": True},
    ),
    "short sources in Chinese": (
        {"text": ZH, "source": "奥斯陆位于挪威", "label": "supported"},
        {"text": ZH, "passages": ("奥斯陆位于挪威",), "hallucinated": False},
    ),
    "X-Fact": (
        {"claim": WRONG, "evidence_1": DOC, "label": "mostly false"},
        {"text": WRONG, "passages": (DOC,), "hallucinated": True},
    ),
    "whether there are errors of fact, in Chinese": (
        {"用户问题": ZH, "模型回复": "瑞典", "标准回答": "挪威", "是否存在事实错误": "是"},
        {"question": ZH, "answers": ("挪威",), "text": "瑞典", "hallucinated": True},
    ),
    "OpenBookQA": (
        {"question_stem": Q, "choices": {"text": ["Sweden", A], "label": ["A", "B"]},
         "answerKey": "B"},
        {"question": Q, "answers": (A,), "wrong_answers": ("Sweden",)},
    ),
    "MMLU": (
        {"question": Q, "subject": "x", "choices": ["Sweden", A, "Peru"], "answer": 1},
        {"question": Q, "answers": (A,), "wrong_answers": ("Sweden", "Peru")},
    ),
    "C-Eval": (
        {"id": 0, "question": ZH, "A": "瑞典", "B": "挪威", "C": "", "answer": "B"},
        {"question": ZH, "answers": ("挪威",), "wrong_answers": ("瑞典",)},
    ),
    "ARC": (
        {"question": Q, "choices": {"text": ["Sweden", A], "label": ["1", "2"]}, "answerKey": "2"},
        {"question": Q, "answers": (A,), "wrong_answers": ("Sweden",)},
    ),
    "MedQA": (
        {"question": Q, "answer": A, "options": {"A": "Sweden", "B": A}, "answer_idx": "B"},
        {"question": Q, "answers": (A,), "wrong_answers": ("Sweden",)},
    ),
    "MedMCQA": (
        {"question": Q, "opa": "Sweden", "opb": A, "opc": "Peru", "opd": "Chad", "cop": 1},
        {"question": Q, "answers": (A,), "wrong_answers": ("Sweden", "Peru", "Chad")},
    ),
    "numbers from 1": (
        {"question": Q, "option1": "Sweden", "option2": A, "answer": "2"},
        {"question": Q, "answers": (A,), "wrong_answers": ("Sweden",)},
    ),
    "several letters": (
        {"question": ZH, "选项A": "瑞典", "选项B": "挪威", "选项C": "秘鲁", "答案": "AB"},
        {"question": ZH, "answers": ("瑞典; 挪威",), "wrong_answers": ("秘鲁",)},
    ),
    "TruthfulQA, multiple choice": (
        {"question": Q, "mc1_targets": {"choices": [A, "Sweden"], "labels": [1, 0]}},
        {"question": Q, "answers": (A,), "wrong_answers": ("Sweden",)},
    ),
    "two answers that are compared": (
        {"question": Q, "A": "Sweden", "B": A, "label": "hallucinated", "response": WRONG},
        {"question": Q, "text": WRONG, "hallucinated": True},
    ),
    "Prodigy, rejected": (
        {"text": WRONG, "label": "HALLUCINATED", "answer": "reject", **HASHES},
        {"text": WRONG, "hallucinated": False},
    ),
    "Prodigy, passed over": (
        {"text": WRONG, "label": "HALLUCINATED", "answer": "ignore", **HASHES},
        {"text": WRONG},
    ),
    "Prodigy, a choice": (
        {"text": WRONG, "options": [{"id": "SUPPORTED", "text": "s"}], "accept": ["SUPPORTED"],
         "answer": "accept", **HASHES},
        {"text": WRONG, "hallucinated": False},
    ),
    "Prodigy, pieces": (
        {"text": WRONG, "spans": [{"start": 0, "end": 4, "label": "HALLUCINATION"}],
         "answer": "accept", **HASHES},
        {"text": WRONG, "hallucinated": True},
    ),
    "nodes inside what was found": (
        {"query": Q, "source_nodes": [{"node": {"text": DOC}, "score": 1}], "answer": A},
        {"question": Q, "answers": (A,), "passages": (DOC,)},
    ),
    "retrieved objects of no known name": (
        {"query": Q, "docs": [{"rank": 1, "url": "https://x.org", "stuff": DOC}], "answer": A},
        {"question": Q, "answers": (A,), "passages": (DOC,)},
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_other_benchmarks_are_read_by_their_columns(tmp_path: Path, name: str):
    row, expected = ROWS[name]
    (item,) = open_data_set(lines(tmp_path / "t.jsonl", row)).items
    held = {
        "question": item.question,
        "answers": item.answers,
        "wrong_answers": item.wrong_answers,
        "text": item.text,
        "passages": tuple(one.text for one in item.passages),
        "hallucinated": item.hallucinated,
    }
    assert {part: value for part, value in held.items() if value not in ("", (), None)} == expected


@pytest.mark.parametrize(
    "row",
    [
        {"uid": "1", "premise": DOC, "hypothesis": WRONG, "label": 2},
        {"question": Q, "response": WRONG, "label": "Yes"},
        {"Doc": DOC, "Claim": WRONG, "Label": 0},
        {"question": Q, "response": WRONG, "hallucination": 0.9},
        {"question": Q, "answers": {"gpt4": {"answer_string": WRONG}}},
        {"inputs": {"question": Q}, "outputs": {"answer": WRONG}},
        {"query-id": "1", "corpus-id": "2", "score": 1},
    ],
)
def test_what_is_not_understood_is_asked_and_never_guessed(tmp_path: Path, row: dict[str, Any]):
    with pytest.raises(InvalidInputError):
        open_data_set(lines(tmp_path / "t.jsonl", row))


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("GPT-4o response", "text"),
        ("claude_3_answer", "text"),
        ("llama2_outputs", "text"),
        ("AI回答", "text"),
        ("助手的回复", "text"),
        ("system prompt", ""),
        ("model", ""),
        ("ai", ""),
        ("正確答案", "answers"),
        ("search_results", "passages"),
        ("Original Question", "question"),
        ("retrieved_chunks", "passages"),
        ("golden response", "answers"),
        ("document_id", "group"),
        ("model_prediction", "text"),
        ("actual answer", "text"),
        ("evidence_sentences", ""),
        ("hallucination_type", ""),
    ],
)
def test_columns_named_after_a_model(name: str, part: str):
    assert part_of(name) == part


def test_words_of_labels_in_traditional_characters():
    assert said_by("是否屬實") == "supported"
    assert [label_in(word) for word in ("錯誤", "不準確", "準確", "無法判斷")] == [
        True,
        True,
        False,
        None,
    ]

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

"""Evidence beside a question or an answer, under whatever name it lies."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pipelines.engine.attached import attached_texts

D, MORE = "The tower was completed in March 1889.", "It stands 330 metres high."
ZH = "长城总长度为21196.18千米。"


@pytest.mark.parametrize(
    "value",
    [
        {"context_docs": [{"page": 3, "text": D}]},
        {"contextItems": [{"content": D, "name": "notes.md", "description": "notes of a day"}]},
        {"groundingMetadata": {
            "webSearchQueries": ["when was the tower finished"],
            "groundingChunks": [{"retrievedContext": {"uri": "https://a.org/b", "text": D}}],
            "groundingSupports": [{"segment": {"text": "It was finished in 1889."}}]}},
        {"output": {"text": "It was finished."}, "citations": [
            {"retrievedReferences": [{"content": {"text": D}, "location": {"type": "S3"}}]}]},
        {"webSearch": {"contextSources": [{"title": "The tower of Paris", "snippet": D}]}},
        {"content": [{"type": "text", "citations": [{"cited_text": D, "title": "A b c"}]}]},
        {"sourceAttributions": [{"title": "All about it", "snippet": D, "url": "https://a.org"}]},
        {"answer": {"references": [{"chunkInfo": {"content": D}}]}},
        {"source_nodes": [{"node": {"text": D, "class_name": "TextNode"}, "score": 0.8}]},
        {"search_results": [{"title": "T", "url": "https://a.org", "snippet": D}]},
        {"retrievedDocs": [D]},
        {"knowledge": json.dumps([{"content": D}])},
        {"reference": [{"total": 1, "chunks": [{"content": D, "document_name": "a.pdf"}]}]},
    ],
)  # fmt: skip
def test_evidence_is_found_by_what_its_name_says(value: dict[str, Any]) -> None:
    assert attached_texts(value) == [D]
    assert attached_texts([{"meta": 1, "inner": value}]) == [D]


@pytest.mark.parametrize(
    "value",
    [
        {"context": {"trace_id": "0af7651916cd43dd8448eb211c80319c", "span_id": "b7ad6b71"}},
        {"source": "wikipedia", "sources": ["web"], "citations": ["https://a.org/a b"]},
        {"reference": "The right answer is 1889.", "references": ["It was 1889, of course."]},
        {"retrieval_query": "when was the tower finished", "search_queries": ["a b c d"]},
        {"document_title": "All about the tower", "chunk_id": "a b c d", "source_url": "a b c"},
        {"messages": [{"role": "user", "context": "what was said before that"}]},
        {"tool_calls": [{"source": "the tower of Paris is here"}]},
        {"context_window": "one hundred thousand tokens", "knowledge_cutoff": "the end of 2024"},
        {},
    ],
)
def test_what_is_told_about_evidence_is_none(value: dict[str, Any]) -> None:
    assert attached_texts(value) == []


def test_several_texts_each_once_and_in_their_order() -> None:
    listed = [{"text": D}, {"text": MORE}, {"text": D}]
    assert attached_texts({"参考资料": [{"内容": ZH, "标题": "长城的总长度"}], "docs": listed}) == [
        ZH, D, MORE,
    ]  # fmt: skip

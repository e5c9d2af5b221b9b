"""What evaluation harnesses write, labelled answers with quotes, and the answers of several models.

The rows are of our own, in the published columns.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets.opening import texts_of
from tests.pipelines.evaluation.datasets.small_files import document, items, lines

Q, NEXT, A, WRONG = "Where is Oslo?", "When was it founded?", "In Norway.", "Oslo is in Sweden."
DOC = "Oslo lies in Norway and was founded in 1040."

Wanted = list[dict[str, Any]]
GENERATED = {
    "doc_id": 0,
    "doc": {"question": Q, "answer": "Norway"},
    "target": "Norway",
    "arguments": {"gen_args_0": {"arg_0": f"Q: Hm?\n\n{Q}", "arg_1": {"until": ["\n"]}}},
    "resps": [[WRONG]],
    "filtered_resps": ["Sweden"],
    "exact_match": 0.0,
}
CHOSEN = {
    "doc_id": "b",
    "doc": {"query": Q, "choices": ["Sweden", "Norway"]},
    "target": 1,
    "arguments": [[Q, " Sweden"], [Q, " Norway"]],
    "resps": [[["-7.5", "False"]], [["-2.25", "True"]]],
    "filtered_resps": [["-7.5", "False"], ["-2.25", "True"]],
}
ROWS: dict[str, tuple[dict[str, Any], Wanted]] = {
    "the harness, generated": (GENERATED, [{"question": Q, "text": WRONG, "answers": ("Norway",)}]),
    "the harness, the likeliest answer": (
        CHOSEN,
        [{"id": "b", "question": Q, "text": "Norway", "answers": ("Norway",)}],
    ),
    "the harness, the prompt alone": (
        {**GENERATED, "doc": {"sentence": "x"}},
        [{"question": Q, "text": WRONG, "answers": ("Norway",)}],
    ),
    "HELM": (
        {"instance": {"input": {"text": Q}, "id": "i", "references": [
            {"output": {"text": "Norway"}, "tags": ["correct"]},
            {"output": {"text": "Sweden"}, "tags": []}]},
         "request": {"prompt": f"Question: {Q}", "model": "m"},
         "result": {"success": True, "completions": [{"text": f" {WRONG}", "logprob": -1.0}]}},
        [{"question": Q, "text": WRONG, "answers": ("Norway",), "passages": ()}],
    ),
    "MT-bench": (
        {"question_id": 81, "answer_id": "x", "model_id": "vicuna", "tstamp": 1.0,
         "choices": [{"index": 0, "turns": [A, "In 1040."]}]},
        [{"id": "81-vicuna-1", "text": A, "group": "81", "tags": ("vicuna",)},
         {"id": "81-vicuna-2", "text": "In 1040.", "group": "81"}],
    ),
    "CoQA": (
        {"id": "s", "story": DOC, "questions": [{"input_text": Q}, {"input_text": NEXT}],
         "answers": [{"input_text": A}, {"input_text": "1040"}]},
        [{"question": Q, "answers": (A,), "passages": (DOC,), "group": "s"},
         {"question": f"{Q} {A} {NEXT}", "answers": ("1040",), "passages": (DOC,)}],
    ),
    "QReCC": (
        {"Context": [Q, A], "Question": NEXT, "Rewrite": "When was Oslo founded?", "Answer": "1040",
         "Conversation_no": 1, "Turn_no": 2},
        [{"question": "When was Oslo founded?", "answers": ("1040",)}],
    ),
    "HAGRID": (
        {"query_id": 1, "query": Q, "quotes": [{"idx": 1, "text": DOC}],
         "answers": [{"answer": A, "attributable": 1, "informative": 1},
                     {"answer": WRONG, "attributable": 0}, {"answer": "Far away."}]},
        [{"question": Q, "text": A, "passages": (DOC,), "hallucinated": False},
         {"text": WRONG, "hallucinated": True}, {"text": "Far away.", "hallucinated": None}],
    ),
    "FaithBench": (
        {"sample_id": 1, "source": DOC, "summary": WRONG, "annotations": [
            {"label": ["Unwanted", "Unwanted.Intrinsic"], "summary_span": "Sweden",
             "summary_start": 11, "summary_end": 17},
            {"label": ["Benign"], "summary_span": "Oslo", "summary_start": 0, "summary_end": 4}]},
        [{"text": WRONG, "passages": (DOC,), "hallucinated": True, "spans": ("Sweden",)}],
    ),
    "FaithBench, benign": (
        {"sample_id": 1, "source": DOC, "summary": A, "annotations": [
            {"label": ["Benign"], "summary_span": "In", "summary_start": 0, "summary_end": 2}]},
        [{"text": A, "hallucinated": False, "spans": ()}],
    ),
    "ExpertQA": (
        {"example_id": 7, "question": Q, "annotator_id": "a", "metadata": {"field": "x"},
         "answers": {"gpt4": {"answer_string": A, "attribution": [DOC],
                              "claims": [{"claim_string": A, "correctness": "Definitely correct"}]},
                     "bing": {"answer_string": WRONG, "claims": [
                         {"claim_string": WRONG, "correctness": "Probably incorrect"}]}}},
        [{"id": "7-gpt4", "question": Q, "text": A, "passages": (DOC,), "hallucinated": False},
         {"text": WRONG, "hallucinated": True, "tags": ("bing",), "group": "7"}],
    ),
    "CMRC 2018": (
        {"context_id": "T1", "context_text": "奥斯陆位于挪威。", "title": "奥斯陆", "qas": [
            {"query_id": "T1Q1", "query_text": "奥斯陆在哪里？", "answers": ["挪威", "挪威"]}]},
        [{"id": "T1Q1", "question": "奥斯陆在哪里？", "answers": ("挪威",),
          "passages": ("奥斯陆位于挪威。",)}],
    ),
    "FlashRAG, what a pipeline wrote": (
        {"id": "f", "question": Q, "golden_answers": ["Norway"], "output": {
            "retrieval_result": [{"contents": DOC, "title": "Oslo", "text": DOC}],
            "prompt": [{"role": "user", "content": Q}], "pred": WRONG}},
        [{"id": "f", "question": Q, "text": WRONG, "answers": ("Norway",), "passages": (DOC,)}],
    ),
    "QuAC": (
        {"dialogue_id": "d", "wikipedia_page_title": "Oslo", "context": f"{DOC} CANNOTANSWER",
         "questions": [Q, "Who founded it?", NEXT],
         "answers": {"texts": [["Norway"], ["CANNOTANSWER"], ["1040"]], "answer_starts": [[0]]}},
        [{"id": "d-1", "question": Q, "answers": ("Norway",), "passages": (DOC,)},
         {"id": "d-3", "answers": ("1040",), "group": "d"}],
    ),
    "QuALITY": (
        {"article_id": "1", "title": "Oslo", "article": DOC, "questions": [
            {"question": Q, "options": ["Sweden", "Norway"], "gold_label": 2},
            {"question": NEXT, "options": ["1040", "1814"]}]},
        [{"question": Q, "answers": ("Norway",), "wrong_answers": ("Sweden",), "group": "1",
          "passages": (DOC,)}],
    ),
    "ELI5": (
        {"q_id": "e", "title": Q, "selftext": "", "answers": {"a_id": ["1"], "text": [A, WRONG]}},
        [{"id": "e", "question": Q, "answers": (A, WRONG)}],
    ),
    "Mintaka": (
        {"id": "m", "question": Q, "translations": {}, "questionEntity": [],
         "answer": {"answerType": "entity", "answer": [{"name": "Q1"}], "mention": "Norway"}},
        [{"id": "m", "question": Q, "answers": ("Norway",)}],
    ),
    "CLAPNQ": (
        {"id": "c", "input": Q, "passages": [{"title": "Oslo", "text": DOC}],
         "output": [{"answer": A, "selected_sentences": [DOC], "meta": {}}]},
        [{"id": "c", "question": Q, "answers": (A,), "passages": (DOC,)}],
    ),
    "KILT": (
        {"id": "k", "input": Q, "output": [{"answer": "Norway", "meta": {"score": 3}},
                                           {"provenance": [{"title": "Oslo"}]}],
         "meta": {"mention": ""}},
        [{"id": "k", "question": Q, "text": "", "answers": ("Norway",)}],
    ),
    "Natural Questions, whole": (
        {"id": "n", "question": {"text": Q, "tokens": ["Where"]},
         "document": {"title": "Oslo", "html": "<p>Oslo lies in Norway .</p>", "tokens": {
             "token": ["<P>", "Oslo", "lies", "in", "Norway", ".", "</P>", "More"],
             "is_html": [True, False, False, False, False, False, True, False]}},
         "annotations": {"id": ["1"], "yes_no_answer": [-1],
                         "long_answer": [{"start_token": 0, "end_token": 7}],
                         "short_answers": [{"text": ["Norway"], "start_token": [4]}]}},
        [{"question": Q, "answers": ("Norway",), "passages": ("Oslo lies in Norway .",)}],
    ),
    "Qasper": (
        {"id": "p", "title": "On Oslo", "abstract": "x", "full_text": {"paragraphs": [[DOC]]},
         "qas": {"question": [Q, "Why?", "Is it old?"], "question_id": ["a", "b", "c"], "answers": [
             {"answer": [{"unanswerable": False, "extractive_spans": ["Norway"], "yes_no": None,
                          "free_form_answer": "", "evidence": [DOC]}]},
             {"answer": [{"unanswerable": True, "extractive_spans": [], "evidence": []}]},
             {"answer": [{"yes_no": True, "extractive_spans": [], "evidence": [DOC]}]}]}},
        [{"id": "a", "question": Q, "answers": ("Norway",), "passages": (DOC,), "group": "p"},
         {"id": "c", "question": "Is it old?", "answers": ("yes",)}],
    ),
    "BioASQ": (
        {"id": "b", "type": "factoid", "body": Q, "documents": ["https://x.org/1"],
         "exact_answer": [["Norway", "NO"]], "ideal_answer": [A], "snippets": [{"text": DOC}]},
        [{"id": "b", "question": Q, "answers": ("Norway", "NO"), "passages": (DOC,)}],
    ),
    "RACE": (
        {"id": "h.txt", "article": DOC, "questions": [Q, NEXT],
         "options": [["Sweden", "Norway"], ["1040", "1814"]], "answers": ["B", "A"]},
        [{"id": "h.txt-1", "question": Q, "answers": ("Norway",), "wrong_answers": ("Sweden",)},
         {"question": NEXT, "answers": ("1040",), "passages": (DOC,), "group": "h.txt"}],
    ),
    "WebQA": (
        {"question": "奥斯陆在哪里？", "evidences": {
            "1#0": {"answer": ["挪威"], "evidence": "奥斯陆位于挪威。"},
            "1#1": {"answer": ["no_answer"], "evidence": "奥斯陆很美。"}}},
        [{"question": "奥斯陆在哪里？", "answers": ("挪威",),
          "passages": ("奥斯陆位于挪威。", "奥斯陆很美。")}],
    ),
    "MedHallu": (
        {"Question": Q, "Knowledge": [DOC], "Ground Truth": A, "Difficulty Level": "hard",
         "Hallucinated Answer": WRONG, "Category of Hallucination": "x"},
        [{"question": Q, "text": A, "passages": (DOC,), "hallucinated": False, "tags": ("hard",)},
         {"text": WRONG, "hallucinated": True, "tags": ("hard", "x"), "group": Q}],
    ),
    "UHGEval": (
        {"id": "u", "headLine": "x", "type": "num", "newsBeginning": "奥斯陆发布了数据。",
         "hallucinatedContinuation": "人口为七百万。", "generatedBy": "m",
         "allKeywords": {"七百万": "不合理，应为七十万"}, "realContinuation": "人口为七十万。"},
        [{"text": "人口为七百万。", "hallucinated": True, "tags": ("num", "m"),
          "passages": ("奥斯陆发布了数据。", "人口为七十万。")}],
    ),
    "TREC RAG": (
        {"run_id": "r", "topic_id": "t", "topic": Q, "references": ["doc_1"],
         "answer": [{"text": A, "citations": [0]}, {"text": "It is old.", "citations": []}]},
        [{"id": "t", "question": Q, "text": f"{A} It is old.", "tags": ("r",)}],
    ),
    "WebGPT": (
        {"question": {"dataset": "eli5", "id": "1", "full_text": Q},
         "quotes_0": {"title": ["Oslo"], "extract": [DOC]}, "answer_0": A, "score_0": 0.5,
         "quotes_1": {"title": ["Oslo"], "extract": [DOC]}, "answer_1": WRONG, "score_1": -0.5},
        [{"question": Q, "text": A}, {"question": Q, "text": WRONG}],
    ),
    "texts in objects of cells": (
        {"query": {"query_id": 1, "content": Q}, "ground_truth": {"content": "Norway", "ids": [4]},
         "prediction": {"content": A, "references": []}},
        [{"question": Q, "text": A, "answers": ("Norway",)}],
    ),
    "AttrScore": (
        {"query": Q, "answer": WRONG, "reference": DOC, "label": "Contradictory", "dataset": "x"},
        [{"question": Q, "text": WRONG, "hallucinated": True}],
    ),
    "SHROOM": (
        {"hyp": WRONG, "tgt": "Oslo is in Norway.", "src": DOC, "task": "PG", "ref": "either",
         "model": "m", "labels": ["Hallucination", "Not Hallucination"], "label": "Hallucination",
         "p(Hallucination)": 0.6},
        [{"text": WRONG, "hallucinated": True, "passages": ("Oslo is in Norway.", DOC)}],
    ),
    "TofuEval": (
        {"doc_id": "d", "annotation_id": "1", "topic": "Oslo", "model_name": "m", "sent_idx": 1,
         "summ_sent": WRONG, "sent_label": "no", "exp": "x", "type": "Contradiction"},
        [{"text": WRONG, "hallucinated": True, "group": "d"}],
    ),
    "SNLI": (
        {"gold_label": "contradiction", "sentence1": DOC, "sentence2": WRONG, "pairID": "p1",
         "annotator_labels": ["contradiction"]},
        [{"id": "p1", "text": WRONG, "passages": (DOC,), "hallucinated": True}],
    ),
    "FacTool": (
        {"prompt": Q, "response": WRONG, "category": "kbqa", "claims": [WRONG],
         "claim_labels": [False], "response_label": False},
        [{"question": Q, "text": WRONG, "hallucinated": True, "tags": ("kbqa",)}],
    ),
    "Patronus": (
        {"evaluated_model_input": Q, "evaluated_model_output": A,
         "evaluated_model_retrieved_context": [DOC], "evaluated_model_gold_answer": "Norway"},
        [{"question": Q, "text": A, "passages": (DOC,), "answers": ("Norway",)}],
    ),
    "two models, by number": (
        {"instruction": Q, "output_1": A, "generator_1": "a", "output_2": WRONG,
         "generator_2": "b", "preference": 1.0},
        [{"question": Q, "text": A}, {"question": Q, "text": WRONG}],
    ),
    "two models, by letter, with labels": (
        {"question": Q, "response_a": A, "response_b": WRONG, "hallucinated_a": "no",
         "hallucinated_b": "yes"},
        [{"question": Q, "text": A, "hallucinated": False},
         {"question": Q, "text": WRONG, "hallucinated": True}],
    ),
    "one model's answers in an object": (
        {"inputRecord": {"prompt": Q, "referenceResponse": "Norway"},
         "modelResponses": [{"response": A, "modelIdentifier": "m"}]},
        [{"question": Q, "text": A}],
    ),
}  # fmt: skip


@pytest.mark.parametrize(("row", "wanted"), ROWS.values(), ids=list(ROWS))
def test_what_a_row_holds(row: dict[str, Any], wanted: Wanted, tmp_path: Path):
    found = items(lines(tmp_path / "set.jsonl", row))
    assert len(found) == len(wanted)
    for item, told in zip(found, wanted, strict=True):
        held = item.model_dump() | {
            "passages": tuple(one.text for one in item.passages),
            "spans": tuple(item.text[one.start : one.end] for one in item.spans),
        }
        assert {name: held[name] for name in told} == told


@pytest.mark.parametrize(
    ("labels", "wanted"),
    [
        (["true", "pants-fire", "half-true"], [False, True, None]),
        (["E", "C", "N"], [False, True, True]),
        (["entailment", "contradiction", "-"], [False, True, None]),
    ],
)
def test_labels_that_only_the_others_explain(
    labels: list[str], wanted: list[bool | None], tmp_path: Path
):
    rows = [{"statement": f"Oslo has {n} hills.", "label": one} for n, one in enumerate(labels)]
    if "E" in labels:
        rows = [{**row, "premise": DOC} for row in rows]
    assert [one.hallucinated for one in items(lines(tmp_path / "set.jsonl", *rows))] == wanted


def test_the_right_answers_of_a_set_without_models_are_checked_and_that_is_said(tmp_path: Path):
    row = {"context": DOC, "question": Q, "answers": {"text": ["Norway"], "answer_start": [13]}}
    found = texts_of(lines(tmp_path / "squad.jsonl", row))
    (one,) = found.texts
    assert (one.given.question, one.given.text, one.given.sources) == (Q, "Norway", (DOC,))
    assert found.reading is not None
    assert [note.key for note in found.reading.notes] == ["note.own_answers"]


def test_what_a_model_said_beside_the_right_answers_of_a_known_set_is_what_is_checked(
    tmp_path: Path,
):
    row = {"question": Q, "answers": ["Norway"], "ctxs": [{"text": DOC}], "output": WRONG}
    (one,) = texts_of(lines(tmp_path / "dpr.jsonl", row)).texts
    assert (one.given.text, one.given.sources) == (WRONG, (DOC,))


def test_a_set_without_any_answer_holds_nothing_to_check(tmp_path: Path):
    row = {"story": DOC, "questions": [{"input_text": Q}], "answers": []}
    with pytest.raises(InvalidInputError):
        texts_of(document(tmp_path / "coqa.json", [row]))

"""Files of the field, in small: what each set of columns is known as, and which way labels are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets import (
    ColumnMapping,
    open_data_set,
    open_table,
    recognised,
)
from pipelines.evaluation.datasets.columns import part_of, said_by
from pipelines.evaluation.datasets.mapping import label_in, open_labels, suggested_mapping
from pipelines.evaluation.plan import Item
from tests.pipelines.evaluation.datasets.small_files import lines

Q, A, WRONG, DOC = "Where is Oslo?", "Norway", "Oslo is in Sweden.", "Oslo lies in Norway."


class Known(NamedTuple):
    """A row, the kind that it is known as, and what its item holds."""

    kind: str
    row: dict[str, Any]
    question: str = ""
    text: str = ""
    answers: tuple[str, ...] = ()
    passages: tuple[str, ...] = ()
    hallucinated: bool | None = None
    pieces: tuple[str, ...] = ()


def ragas(**row: Any) -> Known:
    return Known("ragas", row, Q, WRONG, (A,), (DOC,))


def grounded(hallucinated: bool, **row: Any) -> Known:
    return Known("grounded_claims", row, "", WRONG, (), (DOC,), hallucinated)


def halueval(kind: str, asked: str, /, **row: Any) -> Known:
    return Known(f"halueval_{kind}", row, asked, WRONG, (), (DOC,), True)


def score(consistency: float) -> dict[str, float]:
    return {"coherence": 1, "consistency": consistency, "fluency": 1, "relevance": 1}


SPAN = {"start": 11, "end": 17}
KNOWN: dict[str, Known] = {
    "ragas": ragas(user_input=Q, response=WRONG, retrieved_contexts=[DOC], reference=A),
    "ragas 0.1": ragas(question=Q, answer=WRONG, contexts=[DOC], ground_truth=A),
    "ragas 0.0": ragas(question=Q, answer=WRONG, contexts=[DOC], ground_truths=[A]),
    "ragas test set": Known(
        "ragas",
        {"user_input": Q, "reference_contexts": [DOC], "reference": A},
        Q,
        answers=(A,),
        passages=(DOC,),
    ),
    "ragas without truth": Known(
        "ragas", {"question": Q, "answer": WRONG, "contexts": [DOC]}, Q, WRONG, (), (DOC,)
    ),
    "deepeval": Known(
        "deepeval",
        {
            "input": Q,
            "actual_output": WRONG,
            "expected_output": A,
            "context": None,
            "retrieval_context": [DOC],
        },
        Q,
        WRONG,
        (A,),
        (DOC,),
    ),
    "deepeval camel": Known(
        "deepeval",
        {"input": Q, "actualOutput": WRONG, "expectedOutput": A, "context": [DOC]},
        Q,
        WRONG,
        (A,),
        (DOC,),
    ),
    **{
        f"halubench {label}": Known(
            "halubench",
            {"id": "1", "passage": DOC, "question": Q, "answer": WRONG, "label": label},
            Q,
            WRONG,
            (),
            (DOC,),
            label.upper() == "FAIL",
        )
        for label in ("PASS", "FAIL", "fail")
    },
    "flashrag": Known("flashrag", {"question": Q, "golden_answers": [A, "NO"]}, Q, "", (A, "NO")),
    "dpr retrieved": Known(
        "dpr",
        {"question": Q, "answers": [A], "ctxs": [{"title": "Oslo", "text": DOC, "score": "1"}]},
        Q,
        "",
        (A,),
        (DOC,),
    ),
    "dpr training": Known(
        "dpr",
        {"question": Q, "answers": [A], "positive_ctxs": [{"title": "Oslo", "text": DOC}]},
        Q,
        "",
        (A,),
        (DOC,),
    ),
    "popqa": Known(
        "dpr", {"question": Q, "possible_answers": '["Norway", "NO"]'}, Q, "", (A, "NO")
    ),
    "aggrefact 1": grounded(False, dataset="X", doc=DOC, claim=WRONG, label=1),
    "aggrefact 0": grounded(True, dataset="X", doc=DOC, claim=WRONG, label=0),
    "minicheck": grounded(True, doc=DOC, claim=WRONG, label="0"),
    "summac": grounded(False, document=DOC, claim=WRONG, label=1, cut="val"),
    "aggrefact sota": grounded(True, doc=DOC, summary=WRONG, label=0, model_name="T5", cut="test"),
    "true": grounded(False, grounding=DOC, generated_text=WRONG, label=1),
    "true as numbers of a column with gaps": grounded(
        True, grounding=DOC, generated_text=WRONG, label=0.0
    ),
    "felm": Known(
        "felm",
        {
            "index": "3",
            "source": "s",
            "ref": ["https://example.org", DOC],
            "prompt": Q,
            "response": f"Hello. {WRONG}",
            "segmented_response": ["Hello.", WRONG],
            "labels": [True, False],
        },
        Q,
        f"Hello. {WRONG}",
        (),
        (DOC,),
        True,
        ("Hello.", WRONG),
    ),
    **{
        f"begin {label}": Known(
            "begin",
            {
                "model": "T5",
                "knowledge": DOC,
                "message": Q,
                "response": WRONG,
                "begin_label": label,
            },
            Q,
            WRONG,
            (),
            (DOC,),
            hallucinated,
        )
        for label, hallucinated in (
            ("Fully attributable", False),
            ("Not fully attributable", True),
            ("Generic", None),
            ("Entailment", False),
            ("Hallucination", True),
            ("Partial hallucination", True),
            ("Off-topic", None),
        )
    },
    **{
        f"summeval {scores}": Known(
            "summeval",
            {
                "id": "cnn-1",
                "decoded": WRONG,
                "text": DOC,
                "model_id": "M1",
                "references": [A],
                "expert_annotations": [score(one) for one in scores],
                "turker_annotations": [score(1), score(1)],
            },
            "",
            WRONG,
            (),
            (DOC,),
            hallucinated,
        )
        for scores, hallucinated in (((5, 5, 5), False), ((5, 4, 5), True), ((1, 1, 2), True))
    },
    **{
        f"doccano {words}": Known(
            "doccano", {"text": WRONG, "label": list(words)}, "", WRONG, (), (), hallucinated
        )
        for words, hallucinated in (
            (("supported", "hallucinated", "hallucinated"), True),
            (("hallucinated", "supported", "supported", "long"), False),
            (("hallucinated", "supported"), None),
        )
    },
    "summeval without its articles": Known(
        "summeval",
        {"id": "cnn-1", "decoded": WRONG, "expert_annotations": [score(5)]},
        "",
        WRONG,
        (),
        (),
        False,
    ),
    "summeval, means": Known(
        "summeval",
        {
            "doc_id": "d",
            "system_id": "M1",
            "source": DOC,
            "reference": A,
            "system_output": WRONG,
            "scores": score(4.67),
        },
        "",
        WRONG,
        (),
        (DOC,),
        True,
    ),
    "summeval of the hub": Known(
        "summeval",
        {
            "id": "d",
            "text": DOC,
            "machine_summaries": [WRONG],
            "human_summaries": [A],
            "relevance": [3.0],
            "coherence": [3.0],
            "fluency": [3.0],
            "consistency": [5.0],
        },
        "",
        WRONG,
        (),
        (DOC,),
        False,
    ),
    **{
        f"qags {said}": Known(
            "qags",
            {
                "article": DOC,
                "summary_sentences": [
                    {
                        "sentence": WRONG,
                        "responses": [
                            {"worker_id": at, "response": one} for at, one in enumerate(said)
                        ],
                    },
                ],
            },
            "",
            WRONG,
            (),
            (DOC,),
            hallucinated,
            (WRONG,),
        )
        for said, hallucinated in ((("yes", "no", "yes"), False), (("no", "no", "yes"), True))
    },
    "lettucedetect": Known(
        "lettucedetect",
        {
            "prompt": DOC,
            "answer": WRONG,
            "labels": [{**SPAN, "label": "baseless"}],
            "split": "test",
            "task_type": "QA",
            "dataset": "ragtruth",
            "language": "de",
        },
        "",
        WRONG,
        (),
        (DOC,),
        True,
        ("Sweden",),
    ),
    "lettucedetect, nothing wrong": Known(
        "lettucedetect",
        {"prompt": DOC, "answer": WRONG, "labels": []},
        "",
        WRONG,
        (),
        (DOC,),
        False,
    ),
    "ragtruth, responses alone": Known(
        "ragtruth",
        {
            "id": "0",
            "source_id": "15",
            "model": "m",
            "labels": [{**SPAN, "label_type": "Evident Conflict"}],
            "split": "train",
            "quality": "good",
            "response": WRONG,
        },
        "",
        WRONG,
        hallucinated=True,
        pieces=("Sweden",),
    ),
    "ragtruth, one table": Known(
        "ragtruth",
        {
            "id": "0",
            "query": Q,
            "context": DOC,
            "output": WRONG,
            "hallucination_labels": json.dumps([{**SPAN, "label_type": "Evident Conflict"}]),
        },
        Q,
        WRONG,
        (),
        (DOC,),
        True,
        ("Sweden",),
    ),
    "halueval qa": halueval("qa", Q, knowledge=DOC, question=Q, answer=WRONG, hallucination="yes"),
    "halueval dialogue": halueval(
        "dialogue", Q, knowledge=DOC, dialogue_history=Q, response=WRONG, hallucination="yes"
    ),
    "halueval summarization": halueval(
        "summarization", "", document=DOC, summary=WRONG, hallucination="yes"
    ),
    "doccano pieces": Known(
        "doccano",
        {"id": 1, "text": WRONG, "label": [[11, 17, "error"]], "Comments": []},
        "",
        WRONG,
        hallucinated=True,
        pieces=("Sweden",),
    ),
    "doccano entities": Known(
        "doccano",
        {
            "id": 1,
            "text": WRONG,
            "entities": [{"id": 9, "label": "e", "start_offset": 11, "end_offset": 17}],
            "relations": [],
        },
        "",
        WRONG,
        hallucinated=True,
        pieces=("Sweden",),
    ),
    "doccano words": Known(
        "doccano",
        {"id": 1, "text": WRONG, "label": ["unsupported"]},
        "",
        WRONG,
        hallucinated=True,
    ),
    "argilla": Known(
        "argilla",
        {
            "id": "r1",
            "status": "completed",
            "fields": {"prompt": Q, "response": WRONG, "context": DOC},
            "responses": {
                "verdict": [
                    {"value": "hallucinated", "user_id": "ann", "status": "submitted"},
                    {"value": "supported", "user_id": "bo", "status": "draft"},
                ],
                "where": [{"value": [{**SPAN, "label": "place"}], "user_id": "ann"}],
            },
        },
        Q,
        WRONG,
        (),
        (DOC,),
        True,
        ("Sweden",),
    ),
    "argilla 1": Known(
        "argilla",
        {
            "fields": {"question": Q, "answer": WRONG},
            "responses": [
                {
                    "user_id": "ann",
                    "status": "submitted",
                    "values": {"verdict": {"value": "supported"}},
                }
            ],
        },
        Q,
        WRONG,
        hallucinated=False,
    ),
    "argilla columns": Known(
        "argilla",
        {
            "id": "r1",
            "status": "completed",
            "question": Q,
            "answer": WRONG,
            "verdict.responses": ["wrong"],
            "verdict.responses.users": ["ann"],
            "verdict.responses.status": ["submitted"],
            "verdict.suggestion": "right",
        },
        Q,
        WRONG,
        hallucinated=True,
    ),
    "potato": Known(
        "potato",
        {
            "user_id": "ann",
            "instance_id": "i1",
            "displayed_text": WRONG,
            "label_annotations": {"verdict": {"hallucinated": "true"}},
            "span_annotations": [{**SPAN, "annotation": "place", "span": "Sweden"}],
            "behavioral_data": {},
        },
        "",
        WRONG,
        hallucinated=True,
        pieces=("Sweden",),
    ),
    "potato columns": Known(
        "potato",
        {
            "user": "ann",
            "instance_id": "i1",
            "displayed_text": WRONG,
            "verdict:::supported": "1",
            "verdict:::hallucinated": "",
        },
        "",
        WRONG,
        hallucinated=False,
    ),
    "label studio, own keys": Known(
        "label_studio",
        {
            "id": 7,
            "data": {"frage": Q, "antwort": f"😀 {WRONG}", "quelle": DOC},
            "annotations": [
                {
                    "completed_by": {"email": "ann@example.org"},
                    "result": [
                        {
                            "type": "labels",
                            "value": {
                                # Of browsers, who count the face twice.
                                "start": 14,
                                "end": 20,
                                "text": "Sweden",
                                "labels": ["place"],
                            },
                        },
                        {"type": "choices", "value": {"choices": ["incorrect"]}},
                    ],
                }
            ],
        },
        Q,
        f"😀 {WRONG}",
        (),
        (DOC,),
        True,
        ("Sweden",),
    ),
    "label studio, unusual keys": Known(
        "label_studio",
        {
            "id": 8,
            "data": {"a1": "short", "b2": WRONG},
            "annotations": [
                {"result": [{"type": "choices", "value": {"choices": ["Hallucination"]}}]}
            ],
        },
        "",
        WRONG,
        hallucinated=True,
    ),
    "label studio, short": Known(
        "label_studio",
        {
            "id": 8,
            "question": Q,
            "answer": WRONG,
            "verdict": "Hallucinated",
            "marks": [{**SPAN, "text": "Sweden", "labels": ["place"]}],
            "annotator": 1,
            "annotation_id": 3,
            "lead_time": 1.5,
        },
        Q,
        WRONG,
        hallucinated=True,
        pieces=("Sweden",),
    ),
    "fever": Known(
        "claims",
        {"claim": WRONG, "evidence": DOC, "label": "REFUTES"},
        "",
        WRONG,
        (),
        (DOC,),
        True,
    ),
}


NOT_IN_PARQUET = {"argilla", "argilla 1", "potato", "doccano pieces"}
"""Parquet has no empty objects, and no lists of numbers and words."""


def held(item: Item) -> tuple[Any, ...]:
    spans = item.sentences or item.spans
    return (
        item.question,
        item.text,
        item.answers,
        tuple(one.text for one in item.passages),
        item.hallucinated,
        tuple(item.text[one.start : one.end] for one in spans),
    )


@pytest.mark.parametrize("name", KNOWN)
@pytest.mark.parametrize("form", ["jsonl", "csv", "parquet"])
def test_files_of_the_field_are_known_by_their_columns(tmp_path: Path, name: str, form: str):
    known = KNOWN[name]
    path = tmp_path / f"mine.{form}"
    if form == "jsonl":
        lines(path, known.row)
    elif form == "csv":
        pd.DataFrame([known.row]).to_csv(path, index=False)
    elif name in NOT_IN_PARQUET:
        return
    else:
        pd.DataFrame([known.row]).to_parquet(path)
    found = recognised(open_table(path))
    assert found is not None
    assert found.kind == known.kind
    data = open_data_set(path)
    assert held(data.items[0]) == known[2:]
    # It is said as what it was read.
    assert data.reading is not None
    assert data.reading.form == found.title


@pytest.mark.parametrize(
    ("columns", "label", "way", "hallucinated"),
    [
        ("text|label", 1, "supported", False),
        ("text|label", 1, "hallucinated", True),
        ("response|context|label", "0", "supported", True),
        ("question|answer|verdict", "yes", "hallucinated", True),
        ("claim|evidence|label", 0, "supported", True),
        ("premise|hypothesis|label", True, "supported", False),
        ("回答|标签", "是", "hallucinated", True),
        ("frage|antwort|bewertung", "ja", "supported", False),
    ],
)
def test_a_number_is_never_understood_in_silence(
    tmp_path: Path, columns: str, label: Any, way: Any, hallucinated: bool
):
    *names, column = columns.split("|")
    row = {name: f"A {name}." for name in names} | {column: label}
    path = lines(tmp_path / "mine.jsonl", row)
    with pytest.raises(
        InvalidInputError, match=r"hallucinated or supported.*--map label_is="
    ) as no:
        open_data_set(path)
    assert repr(column) in str(no.value)
    table = open_table(path)
    mapping = suggested_mapping(table.columns)
    assert open_labels(table, mapping)
    told = mapping.model_copy(update={"label_is": way})
    assert not open_labels(table, told)
    data = open_data_set(path, mapping=told)
    assert data.items[0].hallucinated is hallucinated
    assert data.reading is not None
    assert [(one.hallucinated, one.count) for one in data.reading.labels] == [(hallucinated, 1)]


@pytest.mark.parametrize(
    ("column", "label", "hallucinated"),
    [
        ("hallucinated", 1, True),
        ("is_hallucination", "false", False),
        ("hallucination_label", 1, True),
        ("supported", 1, False),
        ("is_correct", 0, True),
        ("Factuality", "no", True),
        ("consistent", True, False),
        ("是否幻觉", "是", True),
        ("是否正确", "否", True),
        ("label", "hallucinated", True),
        ("label", "Supported", False),
        ("label", "contradiction", True),
        ("label", "entailment", False),
        ("label", "not enough info", True),
        ("verdict", "PASS", False),
        ("label", "NOT-SUPPORTED", True),
    ],
)
def test_names_and_words_say_themselves_which_way_round_they_are(
    tmp_path: Path, column: str, label: Any, hallucinated: bool
):
    row = {"response": "A text.", "context": "A source.", column: label}
    (item,) = open_data_set(lines(tmp_path / "mine.jsonl", row)).items
    assert item.hallucinated is hallucinated


def test_a_known_set_of_columns_tells_a_mapping_what_its_label_means(tmp_path: Path):
    path = lines(tmp_path / "mine.jsonl", {"doc": DOC, "claim": WRONG, "label": 1})
    (item,) = open_data_set(path, mapping=ColumnMapping(text="claim", hallucinated="label")).items
    assert item.hallucinated is False


@pytest.mark.parametrize(
    ("columns", "answers", "text"),
    [
        ("question|answer|ground_truth", ("ground_truth",), "answer"),
        ("question|answer|reference", ("reference",), "answer"),
        ("question|answer|response|gold", ("gold",), "response"),
        ("question|answer", ("answer",), ""),
        ("question|answer|response", ("answer",), "response"),
        ("question|answer|is_correct", (), "answer"),
        ("question|answers|prediction", ("answers",), "prediction"),
        ("question|model_answer|correct_answers", ("correct_answers",), "model_answer"),
        ("问题|答案|标准答案", ("标准答案",), "答案"),
        ("问题|答案|模型回答", ("答案",), "模型回答"),
        ("Frage|Antwort|Musterantwort", ("Musterantwort",), "Antwort"),
        ("Question|Réponse|Réponse attendue", ("Réponse attendue",), "Réponse"),
        ("frage|antwort|modellantwort|sprache", ("antwort",), "modellantwort"),
    ],
)
def test_a_models_own_answer_is_no_accepted_one(columns: str, answers: Any, text: str):
    mapping = suggested_mapping(columns.split("|"))
    assert (mapping.answers, mapping.text) == (answers, text)
    assert mapping.question


@pytest.mark.parametrize(
    ("name", "part"),
    [
        ("Fragen 1", "question"),
        ("Requête", "question"),
        ("ANTWORT_2", "answers"),
        ("Lösung", "answers"),
        ("Quellen", "passages"),
        ("Kontext", "passages"),
        ("Sprache", "language"),
        ("langue", "language"),
        ("语种", "language"),
        ("retrievedContexts", "passages"),
        ("Résumé", ""),
        ("whatever", ""),
    ],
)
def test_names_are_known_in_four_languages(name: str, part: str):
    assert part_of(name) == part


def test_what_yes_means_is_in_some_names():
    assert [said_by(one) for one in ("isHallucinated", "Faithful?", "label", "text")] == [
        "hallucinated",
        "supported",
        "",
        "",
    ]
    with pytest.raises(KeyError):
        label_in("1")


def test_the_reading_tells_columns_examples_and_what_was_left_out(tmp_path: Path):
    path = lines(
        tmp_path / "mine.jsonl",
        {"frage": "Who?", "antwort": "Me"},
        {"frage": ["a", "list"], "antwort": "x"},
        {"frage": "Where?", "antwort": "Here"},
        {"frage": "When?", "antwort": "Now"},
        {"frage": "Why?", "antwort": "So"},
        {"frage": " ", "antwort": ""},
    )
    with pytest.raises(InvalidInputError, match="2 rows that cannot be read"):
        open_data_set(path)
    data = open_data_set(path, leave_out=True)
    assert [item.question for item in data.items] == ["Who?", "Where?", "When?", "Why?"]
    reading = data.reading
    assert reading is not None
    assert [(one.part, one.columns, one.examples) for one in reading.parts] == [
        ("question", ("frage",), ("Who?", "Where?", "When?")),
        ("answers", ("antwort",), ("Me", "Here", "Now")),
    ]
    assert (reading.left_out_count, len(reading.left_out)) == (2, 2)
    # What cannot be read at all is refused, whatever was asked for.
    with pytest.raises(InvalidInputError, match="is empty"):
        open_data_set(lines(tmp_path / "none.jsonl", {"frage": " "}), leave_out=True)

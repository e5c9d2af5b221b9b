"""Files of labelled texts and claims in their original forms, in small."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets import open_data_set
from pipelines.evaluation.plan import Item
from tests.pipelines.evaluation.datasets.small_files import items, lines


def pieces(item: Item) -> list[tuple[str, str]]:
    """The labelled pieces of an item's text with their labels."""
    return [(item.text[one.start : one.end], one.label) for one in item.sentences or item.spans]


BIOGRAPHY = {
    "wiki_bio_test_idx": 62464,
    "concept": "ann lee -lrb- poet -rrb-",
    "gpt3_text": "Ann was a poet. Ann was a poet. She died.",
    "gpt3_sentences": ["Ann was a poet.", "Ann was a poet.", "She died."],
    "annotation": ["accurate", "minor_inaccurate", "major_inaccurate"],
    "wiki_bio_text": "Ann Lee wrote poems.",
    "gpt3_text_samples": ["Ann sang.", "Ann wrote."],
}


def test_wikibio_labels_each_sentence_where_it_is(tmp_path: Path):
    (item,) = items(lines(tmp_path / "wikibio.jsonl", BIOGRAPHY))
    assert item.question == "Write a short biography of Ann Lee."
    # A repeated sentence is found behind its first copy.
    assert [(one.start, one.label) for one in item.sentences] == [
        (0, "accurate"),
        (16, "minor"),
        (32, "major"),
    ]
    assert item.hallucinated is True
    assert item.samples == ("Ann sang.", "Ann wrote.")
    assert item.passages[0].text == "Ann Lee wrote poems."
    assert (item.id, item.group) == ("62464", "ann lee -lrb- poet -rrb-")


@pytest.mark.parametrize(
    "changes",
    [
        {"gpt3_sentences": ["Bo was a poet."] * 3},
        {"annotation": ["accurate"]},
        {"annotation": ["accurate", "accurate", "fine"]},
    ],
)
def test_wikibio_whose_labels_do_not_fit_is_refused(tmp_path: Path, changes: dict[str, Any]):
    path = lines(tmp_path / "wikibio.jsonl", BIOGRAPHY | changes)
    with pytest.raises(InvalidInputError, match="as it was published"):
        open_data_set(path)


def facts(text: str, *labels: str) -> dict[str, Any]:
    return {
        "text": text,
        "is-relevant": True,
        "human-atomic-facts": [{"text": "A fact.", "label": label} for label in labels],
    }


def test_factscore_labels_sentences_by_their_facts(tmp_path: Path):
    row = {
        "topic": "Ann Lee",
        "cat": ["very rare", "Europe"],
        "input": "Question: Tell me a bio of Ann Lee.",
        "output": "Ann wrote.\nShe sang and flew. She is immortal. Hello.",
        "annotations": [
            facts("Ann wrote.", "S", "S", "IR"),
            facts("She sang  and flew.", "S", "NS"),
            facts("She is immortal.", "NS"),
            # Nothing relevant, and a sentence without facts.
            facts("Hello.", "IR"),
            {"text": "Hello.", "human-atomic-facts": None},
        ],
    }
    declined = {"topic": "Bo", "input": "Bo?", "output": "I cannot say.", "annotations": None}
    labelled, unlabelled = items(lines(tmp_path / "ChatGPT.jsonl", row, declined))
    assert pieces(labelled) == [
        ("Ann wrote.", "accurate"),
        ("She sang and flew.", "minor"),
        ("She is immortal.", "major"),
    ]
    assert (labelled.hallucinated, labelled.group) == (True, "Ann Lee")
    assert (unlabelled.hallucinated, unlabelled.sentences) == (None, ())
    assert (labelled.tags, unlabelled.tags) == (("very rare", "Europe"), ())


def qa(number: int) -> dict[str, str]:
    return {
        "knowledge": "Oslo lies in Norway.",
        "question": f"Where is town {number}?",
        "right_answer": f"Norway {number}",
        "hallucinated_answer": f"Sweden {number}",
    }


def test_halueval_checks_one_of_two_answers(tmp_path: Path):
    path = lines(tmp_path / "qa_data.json", *map(qa, range(40)))
    found = items(path)
    assert len(found) == 40
    for number, item in enumerate(found):
        wanted = f"Sweden {number}" if item.hallucinated else f"Norway {number}"
        assert item.text == wanted
        assert (item.answers, item.wrong_answers) == ((f"Norway {number}",), (f"Sweden {number}",))
    # Each is drawn about as often: 40 fair draws leave [10, 30] once in 700 sets.
    assert 10 <= sum(item.hallucinated is True for item in found) <= 30
    # Which one it is does not depend on the place in the file.
    turned = lines(tmp_path / "turned.json", *map(qa, reversed(range(40))))
    assert list(items(turned)) == list(reversed(found))


def test_halueval_checks_both_answers_where_asked(tmp_path: Path):
    path = lines(tmp_path / "qa.jsonl", qa(1), qa(2), qa(3))
    found = items(path, kind="halueval_qa_pairs")
    assert [item.hallucinated for item in found] == [False, True] * 3
    assert [item.text for item in found[:2]] == ["Norway 1", "Sweden 1"]
    assert found[0].group == found[1].group != found[2].group
    # Both answers of a record are in the same half.
    assert [one.text for one in items(path, kind="halueval_qa_pairs", part="odd")] == [
        "Norway 2",
        "Sweden 2",
    ]


def test_halueval_dialogues_summaries_and_queries(tmp_path: Path):
    dialogue = {
        "knowledge": "Ann wrote.",
        "dialogue_history": "[Human]: Who is Ann?",
        "right_response": "A writer.",
        "hallucinated_response": "A pilot.",
    }
    (said,) = items(lines(tmp_path / "dialogue_data.json", dialogue))
    assert said.text == ("A pilot." if said.hallucinated else "A writer.")
    assert said.question == "[Human]: Who is Ann?"
    summary = {"document": "Long.", "right_summary": "L.", "hallucinated_summary": "Short."}
    (short,) = items(lines(tmp_path / "summarization_data.json", summary))
    assert short.text == ("Short." if short.hallucinated else "L.")
    assert (short.passages[0].text, short.question) == ("Long.", "")
    queries = [
        {
            "ID": "1",
            "user_query": "Who?",
            "chatgpt_response": "Ann, born in 1900.",
            "hallucination": answer,
            "hallucination_spans": spans,
        }
        for answer, spans in (("yes", ["born in 1900"]), ("Yes", ["born 1901"]), ("no", []))
    ]
    one, unplaced, clean = items(lines(tmp_path / "general_data.json", *queries))
    assert pieces(one) == [("born in 1900", "major")]
    # A span that the response does not hold leaves the response without spans.
    assert (unplaced.hallucinated, unplaced.spans) == (True, ())
    assert (clean.hallucinated, clean.spans) == (False, ())
    assert len({one.id, unplaced.id, clean.id}) == 3
    first = {"ID": "1", "user_query": "Who?", "chatgpt_response": "A.", "hallucination_label": "no"}
    assert items(lines(tmp_path / "general_data.json", first))[0].hallucinated is False


def ragtruth(folder: Path, **changes: Any) -> Path:
    label = {"start": 4, "end": 8, "text": "flew", "label_type": "Evident Conflict"}
    subtle = {"start": 0, "end": 3, "text": "Ann", "label_type": "Subtle Baseless Info"}
    common = {"model": "gpt-4", "split": "test", "quality": "good"}
    responses = [
        {"id": "0", "source_id": "11", "response": "Ann flew.", "labels": [label], **common},
        {"id": "1", "source_id": "11", "response": "Ann wrote.", "labels": [], **common},
        {"id": "2", "source_id": "12", "response": "Ann!", "labels": [subtle], **common},
    ]
    responses[0] |= changes
    sources = [
        {"source_id": "12", "task_type": "Data2txt", "source_info": {"name": "Ann"}},
        {
            "source_id": "11",
            "task_type": "QA",
            "source_info": {
                "question": "Who is Ann?",
                "passages": "passage 1:Ann wrote.\n\npassage 2:Ann lived.\n\n",
            },
        },
        {"source_id": "13", "task_type": "Summary", "source_info": "Unused."},
    ]
    lines(folder / "response.jsonl", *responses)
    lines(folder / "source_info.jsonl", *sources)
    return folder


def test_ragtruth_joins_two_files(tmp_path: Path):
    found = items(ragtruth(tmp_path))
    assert [item.id for item in found] == ["2", "0", "1"]
    data, wrong, clean = found
    assert data.passages[0].text == '{"name": "Ann"}'
    assert (data.spans[0].label, data.question) == ("minor", "")
    assert pieces(wrong) == [("flew", "major")]
    assert wrong.spans[0].kind == "Evident Conflict"
    assert (wrong.question, wrong.hallucinated, clean.hallucinated) == ("Who is Ann?", True, False)
    assert [one.text for one in wrong.passages] == ["Ann wrote.", "Ann lived."]
    assert wrong.group == clean.group == "11"
    assert wrong.tags == ("QA", "gpt-4", "test", "good")
    # The path of the responses means the folder; responses to one source stay in one half.
    assert [item.id for item in items(tmp_path / "response.jsonl", part="odd")] == ["0", "1"]


def test_ragtruth_that_does_not_fit_together_is_refused(tmp_path: Path):
    ragtruth(tmp_path, source_id="99")
    with pytest.raises(InvalidInputError, match="no source '99'"):
        open_data_set(tmp_path)
    ragtruth(tmp_path, response="Ann")
    with pytest.raises(InvalidInputError, match="response 0 lies outside"):
        open_data_set(tmp_path)
    (tmp_path / "source_info.jsonl").unlink()
    with pytest.raises(InvalidInputError, match=r"RAGTruth's folder with response\.jsonl"):
        open_data_set(tmp_path)


def test_sac3_has_answers_samples_and_labels(tmp_path: Path):
    row = {
        "knowledge": "Oslo lies in Norway.",
        "question": "Where is Oslo?",
        "right_answer": "Norway",
        "hallucinated_answer": "Sweden",
        "generated_answer": "It is in Denmark.",
        "label": "False",
        "self_evaluations": ["In Norway.", "In Denmark."],
    }
    # It also has the columns of HaluEval, from which it was made.
    right, wrong = items(
        lines(tmp_path / "sac3.jsonl", row | {"label": "True"}, row | {"question": "And now?"})
    )
    assert (right.hallucinated, wrong.hallucinated) == (False, True)
    assert (wrong.text, wrong.samples) == ("It is in Denmark.", ("In Norway.", "In Denmark."))


@pytest.mark.parametrize(
    ("row", "hallucinated", "passages"),
    [
        ({"label": "SUPPORTS", "evidence": "It is."}, False, ["It is."]),
        ({"label": "REFUTES", "gold_evidence": ["No.", "Never."]}, True, ["No.\nNever."]),
        ({"stance": "partially-support", "evidence": "Half."}, True, ["Half."]),
        ({"stance": "irrelevant", "evidence": "Else."}, True, ["Else."]),
        ({"label": "not_supported", "evidence": ["a", "b"]}, True, ["a\nb"]),
        # FEVER's evidence names sentences of articles and has no text.
        ({"label": "NOT ENOUGH INFO", "evidence": [[[1, 2, None, None]]]}, None, []),
        (
            {
                "claim_id": "3",
                "claim_label": "DISPUTED",
                "evidences": [{"evidence": "Yes."}, {"evidence": "No."}],
            },
            None,
            ["Yes.", "No."],
        ),
    ],
)
def test_claims_are_texts_to_be_checked(
    tmp_path: Path, row: dict[str, Any], hallucinated: bool | None, passages: list[str]
):
    (item,) = items(lines(tmp_path / "claims.jsonl", {"claim": "It is so.", **row}))
    assert (item.text, item.hallucinated) == ("It is so.", hallucinated)
    assert [one.text for one in item.passages] == passages
    assert item.group == "It is so."


def test_an_unknown_label_is_named(tmp_path: Path):
    path = lines(tmp_path / "claims.jsonl", {"claim": "It is so.", "label": "perhaps"})
    with pytest.raises(InvalidInputError, match=r"line 1 .*\(label: the label 'perhaps' is"):
        open_data_set(path)

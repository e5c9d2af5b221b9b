"""Opening data sets: what they are recognised as, their ids, parts, samples and hashes."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets import (
    BUNDLED,
    KINDS,
    Need,
    applies,
    hash_of,
    open_data_set,
    open_table,
    recognised,
    sampled,
)
from pipelines.evaluation.datasets.records import make_item
from pipelines.evaluation.metrics.reference import Reference
from pipelines.evaluation.plan import DataSet
from tests.pipelines.evaluation.datasets.small_files import document, lines


def question(number: int, **more: Any) -> dict[str, Any]:
    return {"question": f"who is {number}?", "answer": [f"Ann {number}"], **more}


def natural(tmp_path: Path, count: int = 6) -> Path:
    return lines(tmp_path / "nq.jsonl", *map(question, range(count)))


def test_a_wrong_kind_says_what_was_found(tmp_path: Path):
    path = natural(tmp_path)
    with pytest.raises(InvalidInputError) as refused:
        open_data_set(path, kind="strategyqa")
    assert str(refused.value) == (
        "nq.jsonl is not StrategyQA: it is NQ-open. "
        "Give a file with 'answer', 'facts', 'question', or the kind 'nq_open'."
    )
    unknown = lines(tmp_path / "mine.jsonl", {"foo": 1})
    with pytest.raises(InvalidInputError, match="is not QAMPARI: its columns are 'foo'"):
        open_data_set(unknown, kind="qampari")
    with pytest.raises(InvalidInputError, match=r"no kind of data set 'nq'.*truthfulqa, halluqa"):
        open_data_set(path, kind="nq")


def test_a_table_can_be_looked_at_before_it_is_read(tmp_path: Path):
    table = open_table(natural(tmp_path))
    form = recognised(table)
    assert form is not None
    assert (form.kind, form.title, table.columns) == ("nq_open", "NQ-open", ("question", "answer"))
    assert KINDS["nq_open"] == "NQ-open"
    assert recognised(open_table(lines(tmp_path / "mine.jsonl", {"foo": 1}))) is None


def test_what_does_not_exist_says_what_there_is(tmp_path: Path):
    with pytest.raises(InvalidInputError, match=r"no data set 'triviaqa'.*sample, statements"):
        open_data_set("triviaqa")
    with pytest.raises(InvalidInputError, match="it is a folder"):
        open_data_set(tmp_path)
    empty = document(tmp_path / "squad.json", {"data": [{"title": "a", "paragraphs": []}]})
    with pytest.raises(InvalidInputError, match="holds no item in its part 'all'"):
        open_data_set(empty)


def test_items_keep_their_ids_wherever_they_stand(tmp_path: Path):
    rows = [question(number) for number in range(5)]
    ids = [item.id for item in open_data_set(lines(tmp_path / "a.jsonl", *rows)).items]
    turned = open_data_set(lines(tmp_path / "b.jsonl", *reversed(rows))).items
    assert [item.id for item in turned] == ids[::-1]
    assert len(set(ids)) == 5
    assert all(len(one) == 12 for one in ids)


def test_repeated_ids_and_repeated_items_are_told_apart(tmp_path: Path):
    rows = [question(1, id="x"), question(2, id="x"), question(2, id="x"), question(3), question(3)]
    path = lines(tmp_path / "nq.jsonl", *rows)
    ids = [item.id for item in open_data_set(path).items]
    assert ids[0] == "x"
    assert ids[1].startswith("x-")
    assert ids[2] == f"{ids[1]}-2"
    assert ids[4] == f"{ids[3]}-2"
    # They are the same when a part is taken.
    assert [item.id for item in open_data_set(path, part="odd").items] == ids[1::2]


def test_halves_are_the_even_and_the_odd_records(tmp_path: Path):
    path = natural(tmp_path)
    parts = {
        part: [item.question[7] for item in open_data_set(path, part=part).items]
        for part in ("all", "even", "odd")
    }
    assert parts == {"all": [*"012345"], "even": [*"024"], "odd": [*"135"]}
    assert open_data_set(path, part="odd").name == "nq:odd"
    with pytest.raises(InvalidInputError, match="no part 'first'"):
        open_data_set(path, part="first")  # type: ignore[arg-type]


def test_halves_of_articles_are_halves_of_questions(tmp_path: Path):
    asked = [
        {"id": str(number), "question": "?", "answers": [{"text": "a"}]} for number in range(3)
    ]
    article = {"title": "A", "paragraphs": [{"context": "a b", "qas": asked}]}
    path = document(tmp_path / "squad.json", {"data": [article]})
    assert [item.id for item in open_data_set(path, part="odd").items] == ["1"]


def a_set(count: int) -> DataSet:
    items = tuple(make_item(question=f"who is {number}?") for number in range(count))
    return DataSet(name="x", items=items, hash=hash_of(items))


@given(st.integers(1, 30), st.integers(1, 30), st.integers(0, 3))
def test_a_sample_holds_every_smaller_one(one: int, other: int, seed: int):
    whole = a_set(20)
    small, large = (sampled(whole, limit, seed).items for limit in sorted((one, other)))
    assert len(small) == min(20, one, other)
    assert [item for item in large if item in small] == list(small)
    # The order is that of the file.
    assert [item for item in whole.items if item in large] == list(large)


def test_a_seed_decides_the_sample():
    whole = a_set(50)
    first, again, other = (sampled(whole, 10, seed) for seed in (0, 0, 1))
    assert first == again
    assert first.items != other.items
    assert first.hash != other.hash
    assert sampled(whole, None) is sampled(whole, 50) is whole


def test_a_limit_below_one_is_refused(tmp_path: Path):
    assert len(open_data_set(natural(tmp_path), limit=2).items) == 2
    with pytest.raises(InvalidInputError, match="A limit of 0 leaves no item"):
        open_data_set(natural(tmp_path), limit=0)


def test_the_hash_is_of_content_and_order(tmp_path: Path):
    one = open_data_set(natural(tmp_path))
    (tmp_path / "copy").mkdir()
    assert open_data_set(natural(tmp_path / "copy")).hash == one.hash
    assert hash_of(reversed(one.items)) != one.hash
    assert hash_of(one.items[:-1]) != one.hash
    assert len(one.hash) == 16


def test_the_bundled_questions_are_scored_by_their_references():
    both, chinese = open_data_set("sample"), open_data_set("sample:zh")
    assert {item.language for item in both.items} == {"en", "zh"}
    assert [item for item in both.items if item.language == "zh"] == list(chinese.items)
    by_id = {item.id: item for item in both.items}
    born = by_id["en-001"]
    assert born.answers[:2] == ("Hope, Arkansas", "Hope and Hot Springs, Arkansas")
    assert (born.tags, born.group) == (("fact",), "en/bill-clinton")
    assert "Hope, Arkansas" in born.passages[0].text
    elements = by_id["en-004"]
    assert elements.answers == ("polonium; radium",)
    assert elements.lists == (("polonium",), ("radium",))
    assert {tag for item in both.items for tag in item.tags} == {
        *("fact", "yes_no", "misconception", "list")
    }
    assert Reference(question=born.question, answer=born.answers[0]).yes_no is None


def test_the_bundled_statements_are_labelled():
    statements = open_data_set("statements:en").items
    assert {item.hallucinated for item in statements} == {True, False}
    assert all(item.hallucinated == (item.tags[0] != "supported") for item in statements)
    assert statements[0].passages[0].id == "en/ada-lovelace"
    with pytest.raises(InvalidInputError):
        open_data_set("sample:fr")
    assert set(BUNDLED) == {"sample", "statements"}


def test_what_is_lacking_is_named():
    assert applies((), ()) is None
    assert applies(("questions",), {"questions", "answers"}) is None
    assert applies(("questions", "lists"), {"questions"}) == "evaluate.lacks.lists"
    either: tuple[Need, ...] = (("labelled_texts", "labelled_sentences"),)
    assert applies(either, {"labelled_sentences"}) is None
    assert applies(either, {"texts"}) == "evaluate.lacks.labelled_texts"

"""Tables of any columns: what a mapping makes of them, and what it says of wrong cells."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets import ColumnMapping, open_data_set
from pipelines.evaluation.datasets.mapping import suggested_mapping
from pipelines.evaluation.plan import Item
from tests.pipelines.evaluation.datasets.small_files import lines


def mapped(tmp_path: Path, row: dict[str, Any], **fields: Any) -> Item:
    path = lines(tmp_path / "mine.jsonl", row)
    return open_data_set(path, mapping=ColumnMapping(**fields)).items[0]


def test_every_part_of_an_item_comes_from_its_column(tmp_path: Path):
    row = {
        "nr": 7,
        "q": " Where is Oslo? ",
        "lang": "en-GB",
        "best": "Norway",
        "more": ["In Norway", "norway"],
        "bad": "Sweden;Denmark",
        "names": [["Oslo", "Kristiania"], "Bergen|Bjørgvin"],
        "docs": [{"title": "Oslo", "text": "It lies in Norway."}, "And so on."],
        "said": "It is in Sweden. Yes.",
        "wrong?": "yes",
        "pieces": [{"text": "Sweden", "label": "major", "kind": "place"}, [17, 21]],
        "sents": [{"start": 0, "end": 16, "label": "accurate"}],
        "others": ["In Norway."],
        "doc": "d1",
        "class": "geo",
    }
    item = mapped(
        tmp_path,
        row,
        id="nr",
        question="q",
        language="lang",
        answers=("best", "more"),
        wrong_answers="bad",
        lists="names",
        passages="docs",
        text="said",
        hallucinated="wrong?",
        spans="pieces",
        sentences="sents",
        samples="others",
        group="doc",
        tags="class",
        separator=";",
    )
    assert (item.id, item.question, item.language) == ("7", "Where is Oslo?", "en")
    assert item.answers == ("Norway", "In Norway")
    assert item.wrong_answers == ("Sweden", "Denmark")
    assert item.lists == (("Oslo", "Kristiania"), ("Bergen", "Bjørgvin"))
    assert [(one.title, one.text) for one in item.passages] == [
        ("Oslo", "It lies in Norway."),
        ("", "And so on."),
    ]
    assert item.hallucinated is True
    # "Sweden" begins at 9 of "It is in Sweden."
    assert [(one.start, one.end, one.kind) for one in item.spans] == [
        (9, 15, "place"),
        (17, 21, ""),
    ]
    assert item.sentences[0].label == "accurate"
    assert (item.samples, item.group, item.tags) == (("In Norway.",), "d1", ("geo",))
    assert len(item.offers) == 10


@pytest.mark.parametrize(
    ("cell", "separator", "answers"),
    [
        ("a;b|c", "", ("a;b|c",)),
        ("a; b|c;", ";", ("a", "b|c")),
        ("a;b|c", "|", ("a;b", "c")),
        ('["a;b", "c"]', ";", ("a;b", "c")),
        ("[1] a", "", ("[1] a",)),
        ("", ";", ()),
        (True, "", ("yes",)),
        (12, "", ("12",)),
        (None, "", ()),
    ],
)
def test_cells_hold_lists_in_the_way_the_mapping_says(
    tmp_path: Path, cell: Any, separator: Any, answers: tuple[str, ...]
):
    row = {"q": "who?", "a": cell}
    assert mapped(tmp_path, row, question="q", answers="a", separator=separator).answers == answers


@pytest.mark.parametrize(
    ("cell", "answers"),
    [
        # A column of whole numbers that lacks some holds them as fractions.
        (1843.0, ("1843",)),
        ([1843.0, None, float("nan"), 0.5], ("1843", "0.5")),
        (float("nan"), ()),
        (-0.0, ("0",)),
        (1e300, ("1e+300",)),
    ],
)
def test_numbers_are_written_as_people_write_them(
    tmp_path: Path, cell: Any, answers: tuple[str, ...]
):
    nan = float("nan")
    row = {"q": "When?", "a": cell, "nr": 7.0, "wrong?": nan, "doc": nan}
    item = mapped(
        tmp_path, row, id="nr", question="q", answers="a", hallucinated="wrong?", group="doc"
    )
    assert (item.id, item.answers, item.hallucinated, item.group) == ("7", answers, None, "")


def test_pieces_are_found_in_any_order(tmp_path: Path):
    row = {"t": "Oslo lies in Norway, and Oslo is old.", "x": ["Norway", "Oslo", "lies in", "Oslo"]}
    item = mapped(tmp_path, row, text="t", spans="x")
    # From where the last one ended, and from the beginning where it is not found there.
    assert [(one.start, one.end) for one in item.spans] == [(13, 19), (25, 29), (5, 12), (25, 29)]


@pytest.mark.parametrize(
    ("cell", "values", "hallucinated"),
    [
        ("True", (), True),
        (0, (), False),
        (False, (), False),
        ("无", (), False),
        ("是", (), True),
        ("", (), None),
        ("partly", ("partly", "fully"), True),
        ("Fully", ("partly", "fully"), True),
        ("none", ("partly", "fully"), False),
        ("", ("partly",), None),
        # A column of whole numbers that lacks some holds them as fractions.
        (2.0, ("2", "3"), True),
        (2.0, ("2.0",), True),
        (1.0, ("2", "3"), False),
        (1.0, (), True),
    ],
)
def test_words_say_whether_a_text_is_hallucinated(
    tmp_path: Path, cell: Any, values: tuple[str, ...], hallucinated: bool | None
):
    item = mapped(
        tmp_path,
        {"t": "Oslo.", "h": cell},
        text="t",
        hallucinated="h",
        hallucinated_values=values,
        label_is="hallucinated",
    )
    assert item.hallucinated is hallucinated


@pytest.mark.parametrize(
    ("row", "fields", "said"),
    [
        ({"x": "maybe"}, {"hallucinated": "x"}, "'x' holds 'maybe', which is neither yes nor no"),
        ({"x": "It is 7."}, {"language": "x"}, "'x' names the language 'it is 7.', not en or zh"),
        (
            {"x": [["a"], ["b"]]},
            {"answers": "x"},
            "'x' holds a list or an object where texts should be",
        ),
        ({"x": {"a": 1}}, {"group": "x"}, "'x' holds a list or an object where a text should be"),
        ({"x": [[0, 99]]}, {"spans": "x"}, "'x' has a span 0 to 99 outside the text"),
        ({"x": [[3, 3]]}, {"spans": "x"}, "'x' has a span 3 to 3 outside the text"),
        ({"x": [["a", 3]]}, {"spans": "x"}, "'x' holds a span without a start and an end"),
        ({"x": ["Rome"]}, {"spans": "x"}, "'x' labels 'Rome', which the text lacks"),
        (
            {"x": [{"start": 0, "end": 2, "label": "bad"}]},
            {"sentences": "x"},
            "'x' has the label 'bad', none of accurate",
        ),
    ],
)
def test_a_wrong_cell_is_named_with_its_row(
    tmp_path: Path, row: dict[str, Any], fields: dict[str, Any], said: str
):
    rows = lines(tmp_path / "mine.jsonl", {"t": "Oslo."}, {"t": "Oslo.", **row})
    with pytest.raises(InvalidInputError) as refused:
        open_data_set(rows, mapping=ColumnMapping(text="t", **fields))
    assert f"mine.jsonl: line 2, column {said}" in str(refused.value)
    assert "orrect the cell" in refused.value.remedy


def test_an_empty_row_and_a_missing_column_are_named(tmp_path: Path):
    path = lines(tmp_path / "mine.jsonl", {"q": "who?", "a": "x"}, {"q": " ", "a": "x"})
    with pytest.raises(InvalidInputError, match="line 2, column 'q' is empty"):
        open_data_set(path, mapping=ColumnMapping(question="q"))
    with pytest.raises(InvalidInputError, match=r"no column 'z'\. Map columns .*'q', 'a'"):
        open_data_set(path, mapping=ColumnMapping(question="q", answers=("a", "z")))
    with pytest.raises(InvalidInputError, match="is mapped to a question or to a text"):
        open_data_set(path, mapping=ColumnMapping(answers=("a",)))
    with pytest.raises(InvalidInputError, match="Both a kind and a mapping"):
        open_data_set(path, kind="nq_open", mapping=ColumnMapping(question="q"))


def test_usual_names_are_guessed_in_english_and_chinese():
    assert suggested_mapping(["ID", "User Query", "Ground_Truth", "context", "Label", "Note"]) == (
        ColumnMapping(
            id="ID",
            question="User Query",
            answers=("Ground_Truth",),
            passages=("context",),
            hallucinated="Label",
        )
    )
    assert suggested_mapping(["编号", "问题", "参考答案1", "参考答案2", "错误答案", "证据"]) == (
        ColumnMapping(
            id="编号",
            question="问题",
            answers=("参考答案1", "参考答案2"),
            wrong_answers=("错误答案",),
            passages=("证据",),
        )
    )
    # Of two questions the first is taken.
    assert suggested_mapping(["prompt", "question"]).question == "prompt"
    assert suggested_mapping(["x", "y"]) == ColumnMapping()


def test_a_table_of_usual_names_needs_no_mapping(tmp_path: Path):
    path = tmp_path / "mine.csv"
    path.write_text("问题,答案\n谁写了《红楼梦》？,曹雪芹\n", "gb18030")
    data_set = open_data_set(path)
    assert data_set.items[0].answers == ("曹雪芹",)
    assert data_set.items[0].language == "zh"
    # What was guessed is said.
    assert data_set.source == "question from 问题; answers from 答案"


def test_a_table_of_unknown_names_asks_for_a_mapping(tmp_path: Path):
    path = lines(tmp_path / "mine.jsonl", {"foo": "1", "bar": "2"})
    with pytest.raises(InvalidInputError, match=r"not recognised: its columns are 'foo', 'bar'"):
        open_data_set(path)


@pytest.mark.parametrize(
    ("named", "language"),
    [
        *((one, "en") for one in ("en", "EN", "eng", "English", "en_US", "英文", " english (UK)")),
        *(
            (one, "zh")
            for one in ("zh", "zh-CN", "zh-Hant-TW", "中文", "Chinese", "zho", "简体中文")
        ),
        *(
            (one, "en")
            for one in ("fr", "FRA", "pt-BR", "Español", "日本語", "Serbian (Latin)", "")
        ),
    ],
)
def test_languages_are_read_by_code_and_by_name(tmp_path: Path, named: str, language: str):
    """Another one than the two is read from the texts, as where no column names any."""
    row = {"q": "Who?", "lang": named}
    assert mapped(tmp_path, row, question="q", language="lang").language == language

"""Files of every form and encoding, and what is said of those that cannot be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyarrow
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from pipelines.error_words import phrase_in
from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets import files
from pipelines.evaluation.datasets.files import DataTable, read_json_lines, read_table, read_text

ROWS = [{"question": "北京在哪里？", "answer": "中国"}, {"question": "café?", "answer": "oui"}]
CSV = 'question,answer\n北京在哪里？,中国\n"Is it, so?","say ""yes"""\n'


def place(table: DataTable, number: int) -> str:
    return phrase_in(table.place(number), "en")


def written(tmp_path: Path, name: str, data: bytes | str) -> Path:
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return path


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "gb18030", "gbk", "utf-16"])
def test_chinese_is_read_in_its_usual_encodings(tmp_path: Path, encoding: str):
    table = read_table(written(tmp_path, "questions.csv", CSV.encode(encoding)))
    assert table.rows == [
        {"question": "北京在哪里？", "answer": "中国"},
        {"question": "Is it, so?", "answer": 'say "yes"'},
    ]
    assert table.columns == ("question", "answer")
    assert [place(table, number) for number in range(2)] == ["row 1", "row 2"]


@given(st.text(st.sampled_from("的一是不了在人有我他这中国，。？abc 12"), min_size=2))
def test_any_common_chinese_is_decoded(tmp_path_factory: pytest.TempPathFactory, text: str):
    path = tmp_path_factory.mktemp("texts") / "text.txt"
    path.write_bytes(f"中文{text}".encode("gb18030"))
    assert read_text(path) == f"中文{text}"


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("a.tsv", "question\tanswer\nwho, me?\tyou\n"),
        ("a.csv", "question;answer\nwho, me?;you\n"),
        ("a.csv", "question\tanswer\r\nwho, me?\tyou\r\n"),
    ],
)
def test_tabs_and_semicolons_separate_too(tmp_path: Path, name: str, text: str):
    assert read_table(written(tmp_path, name, text)).rows == [
        {"question": "who, me?", "answer": "you"}
    ]


def test_a_cell_may_hold_lines_and_a_long_text(tmp_path: Path):
    cell = "line\n" * 40_000
    table = read_table(written(tmp_path, "long.csv", f'question,n\n"{cell}",1\n'))
    assert table.rows == [{"question": cell, "n": "1"}]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a,b\n1,2\n1,2,3\n", "row 2 has 3 cells, and there are 2 columns"),
        ("a,b\n1\n", "row 1 has 1 cells, and there are 2 columns"),
        ('a,b\n"1,2\n', "row 1 is not CSV"),
        ("a,a\n1,2\n", "two columns have the same name"),
        ("a, a\n1,2\n", "two columns have the same name"),
        ("a,b\n", "it holds no records"),
        ("", "it holds no records"),
    ],
)
def test_a_table_that_is_none_says_where(tmp_path: Path, text: str, problem: str):
    with pytest.raises(InvalidInputError, match=rf"wrong\.csv cannot be used: {problem}"):
        read_table(written(tmp_path, "wrong.csv", text))


@pytest.mark.parametrize("wrap", [lambda rows: rows, lambda rows: {"data": rows, "version": 1}])
def test_json_holds_a_list_or_an_object_with_one(tmp_path: Path, wrap: Any):
    path = written(tmp_path, "a.json", json.dumps(wrap(ROWS)))
    table = read_table(path)
    assert table.rows == ROWS
    assert place(table, 1) == "record 2"


def test_lines_are_read_under_either_name(tmp_path: Path):
    # U+2028 ends no line; an empty line counts.
    text = '{"a": "1\u2028"}\n\n{"a": "2"}\n'
    for name in ("a.jsonl", "a.json", "a.ndjson"):
        table = read_table(written(tmp_path, name, text))
        assert table.rows == [{"a": "1\u2028"}, {"a": "2"}]
        assert (place(table, 0), place(table, 1)) == ("line 1", "line 3")
    assert read_table(written(tmp_path, "list.jsonl", json.dumps(ROWS))).rows == ROWS
    assert read_json_lines(written(tmp_path, "any.txt", text)).places == [1, 3]


@pytest.mark.parametrize(
    ("name", "text", "problem"),
    [
        ("a.jsonl", '{"a": 1}\n{"a": \n', r"a line is not a record \(line 2: Expecting value\)"),
        ("a.jsonl", '{"a": 1}\n[1]\n', r"a line is not a record \(line 2: no JSON object\)"),
        ("a.json", '[{"a": 1}, 2]', "record 2 is no object"),
        ("a.json", '{"a": 1,}', r"it is not JSON \(line 1: "),
        ("a.json", "3", "it holds no list of objects"),
        ("a.json", "[" * 200_000, "nested too deeply"),
        ("a.txt", "x", r"its form is not known\. Give a file that ends in \.csv"),
        ("a.parquet", "x", "it is not Parquet"),
    ],
)
def test_what_cannot_be_read_says_where(tmp_path: Path, name: str, text: str, problem: str):
    with pytest.raises(InvalidInputError, match=problem) as refused:
        read_table(written(tmp_path, name, text))
    # The folder is nobody else's business.
    assert str(tmp_path) not in str(refused.value)


def test_parquet_keeps_lists_and_objects(tmp_path: Path):
    rows = [
        {"q": "who?", "a": ["x", "y"], "o": {"k": 1}, "b": True},
        {"q": None, "a": [], "o": None, "b": False},
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), tmp_path / "a.parquet")
    assert read_table(tmp_path / "a.parquet").rows == rows


def test_a_file_that_is_too_large_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = written(tmp_path, "a.jsonl", '{"a": 1}\n' * 10)
    table = pyarrow.Table.from_pylist([{"a": "x" * 1000}] * 50)
    parquet.write_table(table, tmp_path / "a.parquet", use_dictionary=False)
    monkeypatch.setattr(files, "MAXIMUM_BYTES", 80)
    with pytest.raises(InvalidInputError, match="0 MiB is the limit"):
        read_table(path)
    # Compressed it is small; what counts is what it holds.
    size = (tmp_path / "a.parquet").stat().st_size
    assert size < 40_000
    monkeypatch.setattr(files, "MAXIMUM_BYTES", size)
    with pytest.raises(InvalidInputError, match="is the limit"):
        read_table(tmp_path / "a.parquet")


def test_a_missing_file_is_said_to_be_missing(tmp_path: Path):
    with pytest.raises(InvalidInputError, match=r"FileNotFoundError.*a file that exists"):
        read_table(tmp_path / "none.csv")

"""Tables as programs and people save them: each form as a real file, read to the same two rows."""

from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from decimal import Decimal
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.error_words import phrase_in
from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets.files import DataTable, bad_rows, read_table
from pipelines.evaluation.datasets.grids import grid_of_text, value_in
from pipelines.evaluation.datasets.opening import open_table, sample_rows
from pipelines.retrieval.reading.encodings import decoded_table

ROWS = [
    {"question": "Who wrote it, and when?", "answer": 'He said "I did"; 1605'},
    {"question": "Wo liegt Köln?", "answer": "am Rhein\nin Europa"},
]
PLAIN = [{"question": "Where is Oslo?", "answer": "Norway"}, {"question": "2+2?", "answer": "4"}]
CHINESE = "问题,答案\n谁写了《红楼梦》？,曹雪芹\n黄河流入哪个海？,渤海\n"
TAIWANESE = "問題,答案\n誰寫了《紅樓夢》？,曹雪芹\n黃河流入哪個海？,渤海\n"


def frame(rows: list[dict[str, Any]] = ROWS) -> pd.DataFrame:
    return pd.DataFrame(rows)


def json_of(**options: Any) -> str:
    return frame().to_json(**options) or ""


def csv_of(separator: str = ",", rows: list[dict[str, Any]] = ROWS) -> str:
    return frame(rows).to_csv(index=False, sep=separator)


def bytes_of(write: Callable[[Any], Any]) -> bytes:
    file = io.BytesIO()
    write(file)
    return file.getvalue()


def workbook(*sheets: list[list[Any]]) -> bytes:
    """A workbook of Excel with these sheets, cell by cell."""
    pytest.importorskip("openpyxl")
    file = io.BytesIO()
    with pd.ExcelWriter(file, engine="openpyxl") as writer:
        for number, cells in enumerate(sheets):
            sheet = pd.DataFrame(cells)
            sheet.to_excel(writer, sheet_name=f"Sheet {number}", header=False, index=False)
    return file.getvalue()


TABLE = [list(ROWS[0]), *(list(row.values()) for row in ROWS)]

FORMS: dict[str, tuple[str, Callable[[], bytes | str]]] = {
    "commas": ("a.csv", csv_of),
    "semicolons": ("a.csv", lambda: csv_of(";")),
    "bars": ("a.csv", lambda: csv_of("|")),
    "tabs": ("a.csv", lambda: csv_of("\t")),
    "tabs as TSV": ("a.tsv", lambda: csv_of("\t")),
    "line ends of Windows": ("a.csv", lambda: csv_of().replace("\r\n", "\n").replace("\n", "\r\n")),
    "Excel's first line": ("a.csv", lambda: "sep=;\n" + csv_of(";")),
    "Excel's first line, quoted": ("a.csv", lambda: '"sep=;"\r\n' + csv_of(";")),
    "UTF-8 with a mark": ("a.csv", lambda: csv_of().encode("utf-8-sig")),
    "mark and first line": ("a.csv", lambda: ("sep=;\n" + csv_of(";")).encode("utf-8-sig")),
    "UTF-16 with a mark": ("a.csv", lambda: csv_of("\t").encode("utf-16")),
    "UTF-16 big-endian": ("a.csv", lambda: b"\xfe\xff" + csv_of().encode("utf-16-be")),
    "UTF-16 without a mark": ("a.csv", lambda: csv_of().encode("utf-16-le")),
    "Windows-1252": ("a.csv", lambda: csv_of(";").encode("cp1252")),
    "title": ("a.csv", lambda: "Survey of 2025\n" + csv_of()),
    "title of one filled cell": ("a.csv", lambda: "Survey of 2025,\n\n" + csv_of()),
    "title and its author": ("a.csv", lambda: "Survey of 2025,by Ann\n,\n" + csv_of()),
    "numbered rows": ("a.csv", lambda: frame().to_csv()),
    "empty rows": ("a.csv", lambda: csv_of() + ",\n,\n\n"),
    "empty last column": (
        "a.csv",
        lambda: frame([{**row, "": ""} for row in ROWS]).to_csv(index=False),
    ),
    "gzip of CSV": ("a.csv.gz", lambda: gzip.compress(csv_of().encode())),
    "gzip of JSON lines": (
        "a.jsonl.gz",
        lambda: gzip.compress(json_of(orient="records", lines=True).encode()),
    ),
    "JSON lines": ("a.jsonl", lambda: json_of(orient="records", lines=True)),
    "JSON lines as UTF-16": (
        "a.jsonl",
        lambda: "\n".join(json.dumps(row, ensure_ascii=False) for row in ROWS).encode("utf-16"),
    ),
    "JSON": ("a.json", lambda: json.dumps(ROWS)),
    "JSON with a mark": ("a.json", lambda: json.dumps(ROWS).encode("utf-8-sig")),
    "pandas, columns": ("a.json", lambda: json_of()),
    "pandas, index": ("a.json", lambda: json_of(orient="index")),
    "pandas, split": ("a.json", lambda: json_of(orient="split")),
    "pandas, table": ("a.json", lambda: json_of(orient="table", index=False)),
    "lists by column": ("a.json", lambda: json.dumps(frame().to_dict(orient="list"))),
    "the hub's viewer": (
        "a.json",
        lambda: json.dumps({"rows": [{"row_idx": at, "row": row} for at, row in enumerate(ROWS)]}),
    ),
    "goldens": ("a.json", lambda: json.dumps({"goldens": ROWS, "conversational_goldens": []})),
    "a list of any name": ("a.json", lambda: json.dumps({"version": "1", "results": ROWS})),
    "a list inside": ("a.json", lambda: json.dumps({"ok": True, "result": {"rows": ROWS}})),
    "rows of cells": ("a.json", lambda: json.dumps(TABLE)),
    "spaces before cells": (
        "a.csv",
        lambda: (
            "question, answer\n"
            + "\n".join(
                ", ".join(json.dumps(one).replace('\\"', '""') for one in row.values())
                for row in ROWS
            )
            .replace("\\n", "\n")
            .replace("\\u00f6", "ö")
        ),
    ),
    "a mark twice": ("a.csv", lambda: ("\ufeff" + csv_of()).encode("utf-8-sig")),
    "the end of a file of DOS": ("a.csv", lambda: csv_of() + "\x1a"),
    "the header again": ("a.csv", lambda: csv_of() + "question,answer\n"),
    "an empty first column": (
        "a.csv",
        lambda: frame([{"": "", **row} for row in ROWS]).to_csv(index=False),
    ),
    "Parquet": ("a.parquet", lambda: bytes_of(frame().to_parquet)),
    "Parquet with its index": (
        "a.parquet",
        lambda: bytes_of(frame().set_index(pd.Index([7, 9])).to_parquet),
    ),
    "Excel": ("a.xlsx", lambda: workbook(TABLE)),
    "Excel with a title": ("a.xlsx", lambda: workbook([["Survey", None], [None, None], *TABLE])),
    "Excel far down": ("a.xlsx", lambda: workbook([*[[None, None]] * 25, *TABLE])),
    "Excel with empty sheets": ("a.xlsx", lambda: workbook([[None]], TABLE)),
    "Excel with numbered rows": (
        "a.xlsx",
        lambda: workbook([[None, *TABLE[0]], *([at, *row] for at, row in enumerate(TABLE[1:]))]),
    ),
    "gzip of Excel": ("a.xlsx.gz", lambda: gzip.compress(workbook(TABLE))),
}


def read(tmp_path: Path, name: str, data: bytes | str, **options: Any) -> DataTable:
    path = tmp_path / name
    path.write_bytes(data.encode() if isinstance(data, str) else data)
    return read_table(path, **options)


@pytest.mark.parametrize("form", FORMS)
def test_a_table_is_the_same_in_every_form(tmp_path: Path, form: str):
    name, make = FORMS[form]
    assert read(tmp_path, name, make()).rows == ROWS


@pytest.mark.parametrize(
    ("encoding", "text", "said"),
    [
        ("gbk", CHINESE, "gb18030"),
        ("gb18030", CHINESE, "gb18030"),
        ("big5", TAIWANESE, "big5"),
        ("cp1252", "Frage;Antwort\nWie groß ist Köln?;1 Million – etwa\n", "windows-1252"),
        ("cp1252", "Question;Réponse\nOù est né Molière ?;à Paris, l’été\n", "windows-1252"),
        ("latin-1", "Frage;Antwort\nÄrzte;Äpfel\n", "windows-1252"),
        ("cp1252", "MZ-Frage;Antwort\nWie geht´s?;L´été à 25°C\n", "windows-1252"),
        ("utf-8-sig", CHINESE, ""),
        ("utf-16", TAIWANESE, ""),
        ("utf-16-le", "question,answer\nWho?,Köln\n", ""),
    ],
)
def test_what_was_decoded_without_a_mark_is_said(
    tmp_path: Path, encoding: str, text: str, said: str
):
    table = read(tmp_path, "a.csv", text.encode(encoding))
    assert table.columns == tuple(text.splitlines()[0].replace(";", ",").split(","))
    assert [phrase_in(one, "en") for one in table.notes] == ([f"decoded as {said}"] if said else [])


@pytest.mark.parametrize(
    ("encoding", "text"),
    [
        ("mac_roman", "Frage;Antwort\nWie groß?;schön und größer\n"),
        ("iso8859-2", "otázka;odpověď\nKdo?;Božena Němcová\n"),
        ("cp1251", "вопрос,ответ\nГде Москва?,В России\n"),
        ("shift_jis", "質問,答え\n日本の首都はどこですか,東京です\n"),
        ("euc_kr", "질문,답\n대한민국의 수도는 어디입니까,서울입니다 그렇습니다\n"),
    ],
)
def test_no_other_encoding_is_guessed(tmp_path: Path, encoding: str, text: str):
    with pytest.raises(InvalidInputError, match=r"none of the encodings.*Give the file in UTF-8"):
        read(tmp_path, "a.csv", text.encode(encoding))


SENTENCES = [
    *(row["question"] for row in sample_rows("questions.csv", "zh")),
    *(
        "誰發現了青黴素？",
        "臺北一零一有多高？",
        "請問這個答案是否正確",
        "香港的人口約為七百五十萬",
        "他們在學校裡學會了說話",
    ),
]


@given(st.lists(st.sampled_from(SENTENCES), min_size=1, max_size=4))
def test_chinese_is_told_from_its_other_encoding(sentences: list[str]):
    text = "question,answer\n" + "".join(f"{one},1\n" for one in sentences)
    for encoding in ("gb18030", "big5"):
        try:
            data = text.encode(encoding)
        except UnicodeEncodeError:
            continue
        found = decoded_table(data)
        # Traditional characters are rare in GB18030: refused is better than read wrongly.
        assert found is None or found[0] == text


CELL = st.text(st.sampled_from("ab \"\t,;'中"), min_size=1).filter(lambda one: one.strip())


@given(st.lists(st.lists(CELL, min_size=2, max_size=2), min_size=2, max_size=6))
def test_quoted_cells_come_back_whatever_separates_them(cells: list[list[str]]):
    table = pd.DataFrame(cells)
    for separator in ";\t":
        text = table.to_csv(index=False, header=["question", "answer"], sep=separator)
        assert grid_of_text(f"sep={separator}\n{text}")[1:] == cells


@pytest.mark.parametrize(
    "line",
    ['"Yes" he said\tno', 'the 5" disk\tno', '"open\tno', 'a\t"b" c', "it's\tno"],
)
def test_marks_between_tabs_that_enclose_no_cell_are_text(tmp_path: Path, line: str):
    table = read(tmp_path, "a.tsv", f"question\tanswer\n{line}\nwho?\tme\n")
    assert [*table.rows[0].values()] == line.split("\t")
    assert len(table.rows) == 2


def test_not_a_number_is_no_value(tmp_path: Path):
    table = read(tmp_path, "a.csv", "question,answer\nwho?,NaN\nwhere?,nan\nwhat?,NA\n")
    assert [row["answer"] for row in table.rows] == [None, None, "NA"]


@pytest.mark.parametrize(
    ("cell", "value"),
    [
        ('["a", "b"]', ["a", "b"]),
        ("['a', \"it's\"]", ["a", "it's"]),
        ("('a', 'b')", ["a", "b"]),
        ("['a' 'b c'\n 'd']", ["a", "b c", "d"]),
        ("array(['a', 'b'], dtype=object)", ["a", "b"]),
        ("{'title': array(['T'], dtype=object), 'n': 1}", {"title": ["T"], "n": 1}),
        ("[nan, 'nan']", [None, "nan"]),
        ("[{'start': 0, 'end': 3}]", [{"start": 0, "end": 3}]),
        ("[]", []),
        ("[1] Paris", None),
        ("[__import__('os')]", None),
        ("(2019)", None),
        ("[" * 5000, None),
    ],
)
def test_lists_are_read_as_programs_write_them(cell: str, value: Any):
    assert value_in(cell) == value


def test_only_columns_of_lists_alone_become_lists(tmp_path: Path):
    text = pd.DataFrame(
        {"a": ["['x']", "[]", None], "b": ["[1] Paris", "['y']", "z"], "question": ["1", "2", "3"]}
    ).to_csv(index=False)
    rows = read(tmp_path, "a.csv", text).rows
    assert [row["a"] for row in rows] == [["x"], [], ""]
    assert [row["b"] for row in rows] == ["[1] Paris", "['y']", "z"]


def test_bad_rows_are_listed_and_left_out_when_asked(tmp_path: Path):
    text = "question,answer\nwho?,me\nwhere?\nwhat?,x,y\nwhen?,now\n"
    with pytest.raises(InvalidInputError, match="row 2 has 1 cells, and there are 2 columns"):
        read(tmp_path, "a.csv", text)
    table = read(tmp_path, "a.csv", text, keep_bad=True)
    assert [row["answer"] for row in table.rows] == ["me", "now"]
    assert table.places == [1, 4]
    said = str(bad_rows(table.name, table.bad))
    assert "2 rows that cannot be read: row 2: 1 cells instead of 2" in said
    assert "row 3: 3 cells instead of 2" in said
    assert "--leave-out-bad" in said
    lines = '{"question": "who?"}\n{"question": \n[1]\n{"question": "when?"}\n'
    table = read(tmp_path, "a.jsonl", lines, keep_bad=True)
    assert (table.places, len(table.bad)) == ([1, 4], 2)
    with pytest.raises(InvalidInputError, match="line 1"):
        read(tmp_path, "none.jsonl", "[", keep_bad=True)


_COMPOUND = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(504)


@pytest.mark.parametrize(
    ("name", "data", "said"),
    [
        ("a.csv.gz", b"no gzip", "cannot be unpacked"),
        ("a.xlsx", b"no workbook", "no workbook of Excel"),
        ("a.xls", b"", "form of Excel that is not read"),
        ("a.xlsb", b"PK", "form of Excel that is not read"),
        ("a.xlsx", _COMPOUND + "Workbook".encode("utf-16-le"), "form of Excel that is not read"),
        ("a.xlsx", _COMPOUND + "EncryptedPackage".encode("utf-16-le"), "protected by a password"),
        ("a.xls", _COMPOUND + "EncryptedPackage".encode("utf-16-le"), "protected by a password"),
        ("a.ods", b"", "its form is not known"),
        ("a.csv", "question\nHello, world\n", "row 1 has 2 cells"),
        ("a.csv", b"PK\x03\x04question,answer\n", "a ZIP file, whatever its name says"),
        ("a.csv", gzip.compress(b"question,answer\n", mtime=0), "a gzip file"),
        ("a.jsonl", "version https://git-lfs.github.com/spec/v1\nsize 1\n", "a Git LFS file"),
    ],
)
def test_what_cannot_be_read_is_said(tmp_path: Path, name: str, data: bytes | str, said: str):
    if name.endswith(".xlsx"):
        pytest.importorskip("openpyxl")
    with pytest.raises(InvalidInputError, match=said):
        read(tmp_path, name, data)


def test_what_is_read_of_a_workbook_is_said(tmp_path: Path):
    table = read(tmp_path, "a.xlsx", workbook([["Survey", None], *TABLE], TABLE))
    said = [phrase_in(one, "en") for one in table.notes]
    assert said == [
        "the sheet 'Sheet 0' is read, and not Sheet 1",
        "the names of the columns are in row 2",
    ]
    # Places are the rows that Excel shows.
    assert table.places == [3, 4]


def test_values_of_parquet_and_shares_of_excel_are_as_people_write_them(tmp_path: Path):
    cells = [pd.Timestamp("2024-01-02"), Decimal("1.50"), b"x"]
    kinds = pd.DataFrame([dict(zip("abc", cells, strict=True))])
    (row,) = read(tmp_path, "a.parquet", bytes_of(kinds.to_parquet)).rows
    assert row == {"a": "2024-01-02", "b": "1.50", "c": "x"}
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    book.active.append(["question", "answer"])
    book.active.append(["How many?", 0.25])
    book.active["B2"].number_format = "0.0%"
    (row,) = read(tmp_path, "a.xlsx", bytes_of(book.save)).rows
    assert row["answer"] == "25%"


def test_a_header_that_comes_again_and_options_by_number_are_said(tmp_path: Path):
    table = read(tmp_path, "a.csv", "question,answer\nwho?,me\nquestion,answer\n")
    assert [phrase_in(one, "en") for one in table.notes] == [
        "rows left out because they repeat the names of the columns: 1"
    ]
    path = tmp_path / "b.csv"
    path.write_text("question,A,B,answer\nwho?,me,you,2\nwhere?,here,there,1\n")
    table = open_table(path)
    assert [row["answers"] for row in table.rows] == [["you"], ["here"]]
    assert [phrase_in(one, "en") for one in table.notes] == [
        "right options are given by their number, counted from 1"
    ]

"""Reading a library's folder."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import InvalidInputError, NotFoundError
from pipelines.retrieval.documents import Document, load_library


def write(folder: Path, name: str, content: str | bytes) -> None:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())


def only(folder: Path) -> Document:
    [document] = load_library(folder)
    return document


def test_markdown_with_front_matter(tmp_path: Path):
    write(
        tmp_path,
        "en/marie-curie.md",
        '---\ntitle: "Marie Curie"\nlanguage: en\nurl: https://example.org/curie\n---\n'
        "She was born in Warsaw.\n\nShe won two prizes.\n",
    )
    assert only(tmp_path) == Document(
        id="en/marie-curie",
        title="Marie Curie",
        language="en",
        text="She was born in Warsaw.\n\nShe won two prizes.",
        source="en/marie-curie.md",
        url="https://example.org/curie",
    )


def test_markdown_without_front_matter_takes_its_heading_and_script(tmp_path: Path):
    write(tmp_path, "a.md", "Intro.\n\n# 大熊猫 #\n\n大熊猫吃竹子。")
    document = only(tmp_path)
    assert (document.title, document.language) == ("大熊猫", "zh")
    assert document.text == "Intro.\n\n大熊猫\n\n大熊猫吃竹子。"


def test_other_front_matter_is_passed_over(tmp_path: Path):
    write(tmp_path, "a.md", "---\ntags:\n  - x\ntitle: 'A: b'\nlanguage: zh-CN\n---\nText.")
    document = only(tmp_path)
    assert (document.title, document.language, document.text) == ("A: b", "zh", "Text.")


def test_empty_front_matter(tmp_path: Path):
    write(tmp_path, "a.md", "---\n---\nText.")
    assert only(tmp_path).text == "Text."


@pytest.mark.parametrize(
    ("markdown", "plain"),
    [
        ("A **bold** and *slanted* `word`.", "A bold and slanted word."),
        ("See [the page](https://example.org/x_y) now.", "See the page now."),
        ("![A cat](cat.png) sleeps.", "A cat sleeps."),
        ("> Quoted.\n> Again.", "Quoted.\nAgain."),
        ("Before.<!-- not\nshown --> After.", "Before. After."),
        ("2 * 3 * 4 and snake_case_name stay.", "2 * 3 * 4 and snake_case_name stay."),
        ("- one\n- two", "- one\n- two"),
    ],
)
def test_markdown_marks_are_dropped(tmp_path: Path, markdown: str, plain: str):
    write(tmp_path, "a.md", markdown)
    assert only(tmp_path).text == plain


def test_text_file_is_named_after_itself(tmp_path: Path):
    write(tmp_path, "notes/长城.txt", b"\xef\xbb\xbf" + "长城很长。\r\n第二行。".encode())
    assert only(tmp_path) == Document(
        id="notes/长城",
        title="长城",
        language="zh",
        text="长城很长。\n第二行。",
        source="notes/长城.txt",
    )


def test_csv_holds_a_document_a_row(tmp_path: Path):
    write(
        tmp_path,
        "people.csv",
        "Title,Text,language,url\n"
        'Ada,"Wrote notes, and\na program.",en,https://example.org/ada\n'
        "图灵,图灵是数学家。,,\n",
    )
    ada, turing = load_library(tmp_path)
    assert (ada.id, ada.text, ada.url) == (
        "people:1",
        "Wrote notes, and\na program.",
        "https://example.org/ada",
    )
    assert (turing.id, turing.language, turing.url) == ("people:2", "zh", None)
    assert ada.source == turing.source == "people.csv"


def test_csv_cell_may_be_long(tmp_path: Path):
    write(tmp_path, "a.csv", f"title,text\nLong,{'word ' * 50_000}\n")
    assert len(only(tmp_path).text) == 249_999


def test_documents_are_sorted_and_strangers_passed_over(tmp_path: Path):
    for name in ("b.md", "a.txt", ".hidden.md", ".git/c.md", "picture.png"):
        write(tmp_path, name, "Some text.")
    assert [document.id for document in load_library(tmp_path)] == ["a", "b"]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("sub/a.md", "---\ntitle: A\nText.", "sub/a.md has front matter without an end"),
        ("a.md", "---\ntitle: A\n---\n \n", "a.md holds no text"),
        ("a.md", "---\nlanguage: fr\n---\nTexte.", "a.md names an unknown language 'fr'"),
        ("a.txt", "caf\xe9".encode("latin-1"), "a.txt is not UTF-8 text"),
        ("a.csv", "name,text\nA,B\n", "a.csv lacks a column"),
        ("a.csv", "", "a.csv lacks a column"),
        ("a.csv", "title,text\nA,B\nC,\n", "a.csv holds no text in row 2"),
        ("a.csv", "title,text\n,B\n", "a.csv has an empty title in row 1"),
        ("a.csv", "title,text\nA,B,C\n", "a.csv has a wrong number of cells in row 1"),
        ("a.csv", "title,text\nA\n", "a.csv has a wrong number of cells in row 1"),
        ("a.csv", 'title,text\nA,"B" c\n', "a.csv is not a readable CSV file"),
        ("a.csv", "title,text,language\nA,B,klingon\n", "unknown language 'klingon' in row 1"),
    ],
)
def test_a_bad_file_is_named(tmp_path: Path, name: str, content: str | bytes, message: str):
    write(tmp_path, name, content)
    with pytest.raises(InvalidInputError) as caught:
        load_library(tmp_path)
    assert message in caught.value.message
    assert caught.value.remedy
    assert str(tmp_path) not in str(caught.value)


def test_two_files_of_one_name(tmp_path: Path):
    write(tmp_path, "a.md", "One.")
    write(tmp_path, "a.txt", "Two.")
    with pytest.raises(InvalidInputError, match=r"a\.txt has the same name as a\.md"):
        load_library(tmp_path)


def test_a_folder_without_documents(tmp_path: Path):
    with pytest.raises(InvalidInputError, match=r"holds no document.*\.csv, \.md, \.txt"):
        load_library(tmp_path)


def test_a_missing_folder(tmp_path: Path):
    with pytest.raises(NotFoundError, match="no library folder 'absent'"):
        load_library(tmp_path / "absent")

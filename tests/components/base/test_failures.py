"""Errors in the language of a page."""

from __future__ import annotations

from components.base.elements import error_note, explained, happened
from components.base.words import Catalogue
from components.run.check_many import CheckOutcome, many_view
from pipelines.errors import ErrorInfo, failure
from tests.components.html_tree import read

EN, ZH = Catalogue("en"), Catalogue("zh")


def test_an_error_is_told_in_the_language_of_the_page():
    error = failure("service.timeout", host="a.example").info()
    assert explained(error, ZH) == (
        "a.example 没有及时响应。请稍后重试。如果仍无响应，请检查该服务，或选择其他模型。"
    )
    assert explained(error, EN) == f"{error.message} {error.remedy}"
    assert (happened(error, EN), happened(None, ZH)) == (error.message, "")


def test_without_other_words_the_english_ones_stay():
    assert explained(ErrorInfo(code="x", message="Only this.", remedy=""), ZH) == "Only this."


def test_a_text_that_cannot_be_checked_is_told_in_chinese_where_the_page_is():
    error = failure("checking.long_text", length="9,000", most="8,000").info()
    note = read(error_note(error, ZH)).text()
    assert "文本共 9,000 个字符，一次最多核查 8,000 个。" in note
    assert "The text has" not in note
    row = read(many_view([CheckOutcome("7", "…", error=error)], 1, ZH)).text()
    assert "文本共 9,000 个字符" in row
    assert "The text has 9,000 characters" in read(error_note(error, EN)).text()

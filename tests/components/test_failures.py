"""Why something failed in the language of a page: facts are read back from English words."""

from __future__ import annotations

from string import Formatter

import pytest

from components.check_many import Outcome, many_view
from components.elements import error_note
from components.failures import explained
from components.messages import Catalogue
from pipelines.errors import ErrorInfo, VeriscopeError, failure, failure_words
from tests.components.html_tree import read

EN, ZH = Catalogue("en"), Catalogue("zh")
TRANSLATED = [
    (f"{group}.{name}", said)
    for group, entries in failure_words().items()
    for name, said in entries.items()
    if "chinese" in said
]


def facts_of(*words: str) -> set[str]:
    return {name for part in words for _, name, _, _ in Formatter().parse(part) if name}


@pytest.mark.parametrize(("name", "said"), TRANSLATED)
def test_every_translation_has_the_facts_of_its_failure(name: str, said: dict[str, str]):
    facts = facts_of(said["message"], said["remedy"])
    assert facts_of(said["chinese"]) == facts
    given = {fact: f"«{fact}»" for fact in facts}
    error = failure(name, **given).info()
    assert explained(error, ZH) == said["chinese"].format_map(given)
    assert explained(error, EN) == f"{error.message} {error.remedy}"


def test_what_people_meet_with_their_own_texts_and_documents_is_translated():
    for group in ("checking", "files", "texts"):
        assert all("chinese" in said for said in failure_words()[group].values())


def test_facts_may_look_like_anything():
    error = failure("library.name_taken", name="a {name} 'b'\n$1 \\1").info()
    assert explained(error, ZH).startswith("已有名为“a {name} 'b'\\n$1 ")
    line = failure("library.no_address", line="http://x: {line} Give one").info()
    assert "http://x: {line} Give one" in explained(line, ZH)


def test_without_other_words_the_english_ones_stay():
    own = VeriscopeError("It broke.", remedy="Mend it.").info()
    assert explained(own, ZH) == "It broke. Mend it."
    assert explained(ErrorInfo(code="x", message="Only this.", remedy=""), ZH) == "Only this."


def test_a_text_that_cannot_be_checked_is_told_in_chinese_where_the_page_is():
    error = failure("checking.long_text", length="9,000", most="8,000").info()
    note = read(error_note(error, ZH)).text()
    assert "文本共 9,000 个字符，一次最多核查 8,000 个。" in note
    assert "The text has" not in note
    row = read(many_view([Outcome("7", "…", error=error)], 1, ZH)).text()
    assert "文本共 9,000 个字符" in row
    assert "The text has 9,000 characters" in read(error_note(error, EN)).text()

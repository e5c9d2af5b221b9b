"""A given text, searched like a library."""

from __future__ import annotations

import pytest

from pipelines.errors import InvalidInputError
from pipelines.retrieval.given import GivenText

FILLER = "Nothing of interest is said in this sentence about anything at all. " * 12
TEXT = f"{FILLER}\n\nBill Clinton was born in Hope, Arkansas.\n\n{FILLER}"


async def test_what_shares_most_with_the_query_comes_first():
    found = await GivenText(TEXT).search("Where was Clinton born?", 2)
    assert len(found) == 2
    assert "Hope, Arkansas" in found[0].text
    assert [one.rank for one in found] == [1, 2]
    assert found[0].scores == {"bm25": found[0].score}
    assert (found[0].score or 0) > (found[1].score or 0)


async def test_what_shares_nothing_with_the_query_is_evidence_all_the_same():
    found = await GivenText("It rains in Spain.").search("Who wrote Hamlet?", 3)
    assert [(one.text, one.score) for one in found] == [("It rains in Spain.", 0.0)]


async def test_chinese_texts_are_searched():
    found = await GivenText("北京是中国的首都。").search("中国的首都是哪里？", 1)
    assert found[0].text == "北京是中国的首都。"
    assert (found[0].score or 0) > 0


async def test_no_more_is_found_than_asked_for():
    assert await GivenText(TEXT).search("Clinton", 0) == []
    assert len(await GivenText(TEXT).search("Clinton", 1)) == 1


@pytest.mark.parametrize("text", ["", "  ", "?!"])
def test_a_text_without_a_word_is_no_evidence(text: str):
    with pytest.raises(InvalidInputError, match="no text to search in"):
        GivenText(text)

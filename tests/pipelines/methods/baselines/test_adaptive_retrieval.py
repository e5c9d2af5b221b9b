"""Adaptive-Retrieval: what is unpopular is searched for, by a table of popularity."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipelines.errors import InvalidInputError
from pipelines.methods.baselines.adaptive_retrieval import popularity_of
from tests.scripted.script import QUESTION, play, verdicts

FINDS = {"Where": ["He was born in Hope."]}


@pytest.fixture
def table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "popularity.csv"
    file.write_text("name,popularity\nClinton,40\nBill Clinton,900\nAda,7\n武汉,50\n")
    monkeypatch.setenv("VERISCOPE_POPULARITY", str(file))
    return file


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("question", "found"),
    [
        # The longest name counts, in any case and as whole words; Chinese has no spaces.
        ("Where was bill  clinton born?", ("bill clinton", 900)),
        ("Who wrote Adagio?", ("", 0)),
        ("武汉在哪里？", ("武汉", 50)),
    ],
)
def test_what_a_question_is_about(question: str, found: tuple[str, float]):
    assert popularity_of(question) == found


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("threshold", "queries", "flag"),
    [(1000, [QUESTION], "popularity_low"), (900, [], "popularity_high")],
)
async def test_only_the_unpopular_is_searched_for(threshold: int, queries: list[str], flag: str):
    turn = ("He was born in Hope.", "In Hope.") if queries else (QUESTION, "In Hope.")
    outcome = await play("adaptive_retrieval", turn, finds=FINDS, threshold=threshold)
    assert (outcome.queries, outcome.answer.flags) == (queries, (flag,))
    assert verdicts(outcome, "question") == [("bill clinton", "unchecked")]


def test_a_table_that_cannot_be_read_is_refused(table: Path):
    table.write_text("title,views\nAda,many\n")
    other = table.rename(table.with_name("other.csv"))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("VERISCOPE_POPULARITY", str(other))
        with pytest.raises(InvalidInputError, match=r"other\.csv cannot be read"):
            popularity_of("Who was Ada?")


def test_the_shipped_table_knows_the_bundled_articles():
    assert popularity_of("Who was Ada Lovelace?").popularity >= 1
    assert popularity_of("Who was Nobody in Particular?") == ("", 0)

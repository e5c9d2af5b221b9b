import pytest

from components.base.elements import EvidenceItem, evidence, passage_card
from components.base.words import Catalogue, meaning
from pipelines.base import Passage
from tests.components import samples as s
from tests.components.html_tree import Node, read


def card(t: Catalogue, **fields: object) -> Node:
    item = {"passage": s.PASSAGE, **fields}
    return read(passage_card(EvidenceItem(**item), t))  # type: ignore[arg-type]


def test_a_card_shows_where_the_passage_is_from_and_what_it_is_worth(t: Catalogue) -> None:
    page = read(passage_card(s.EVIDENCE[0], t))
    link = page.one("a")
    assert (link.text(), link.attributes["href"]) == ("Bill Clinton", "https://example.org/clinton")
    assert "noopener" in link.attributes["rel"]
    assert page.one(".vs-rank").text() == "Rank1"
    assert [chip.text() for chip in page.all(".vs-chip")] == ["DRAD", "RAG"]
    facts = {row.one("dt").text(): row.one("dd").text() for row in page.one("dl").all("div")}
    assert facts == {
        "BM25": "14",
        "Cosine": "0.83",
        "Source": "sample library",
        "Query": "Bill Clinton was born in , Illinois, on August 19, 1946",
    }


def test_the_nearest_sentence_is_marked_and_the_text_kept(t: Catalogue) -> None:
    page = read(passage_card(s.EVIDENCE[0], t))
    assert page.one("mark").text("vs-sr") == s.PASSAGE.text.split(" His")[0]
    assert page.one("mark").one(".vs-sr").text() == "nearest in words: "
    assert page.one(".vs-passage").text("vs-sr") == s.PASSAGE.text


@pytest.mark.parametrize(
    ("marks", "texts"),
    [
        ((), []),
        (((0, 7), (3, 9)), ["William"]),
        (((0, 7), (0, 7)), ["William"]),
        (((8, 17), (0, 7)), ["William", "Jefferson"]),
        (((0, 4), (4, 7)), ["Will", "iam"]),
        (((len(s.PASSAGE.text) - 8, 10_000),), ["earlier."]),
    ],
)
def test_marks_may_overlap_or_miss(
    t: Catalogue, marks: tuple[tuple[int, int], ...], texts: list[str]
) -> None:
    page = card(t, marks=marks)
    assert [mark.text("vs-sr") for mark in page.all("mark")] == texts
    assert page.one(".vs-passage").text("vs-sr") == s.PASSAGE.text


def test_an_unsafe_address_is_no_link(t: Catalogue) -> None:
    passage = s.PASSAGE.model_copy(update={"url": "javascript:alert(1)"})
    page = card(t, passage=passage)
    assert page.all("a") == []
    assert page.one("h4").text() == "Bill Clinton"


def test_a_passage_without_title_or_named_scores(t: Catalogue) -> None:
    page = card(t, passage=Passage(id="p-7", title="", text="x", source="s", score=2.5, rank=3))
    assert page.one("h4").text() == "p-7"
    assert page.one("dl").all("dd")[0].text() == "2.5"


def test_what_numbers_and_marks_mean_is_told_once_below_all_passages(t: Catalogue) -> None:
    plain = EvidenceItem(Passage(id="p-7", title="", text="x", source="s", score=2.5, rank=3))
    said = read(evidence([*s.EVIDENCE, *s.EVIDENCE, plain], t)).text()
    for told in (
        meaning("bm25", t),
        t("evidence.score.retriever.note"),
        t("evidence.near.note"),
    ):
        assert said.count(told) == 1, told
    assert t("evidence.near.note") not in read(evidence([plain], t)).text()


def test_a_score_nobody_described_is_still_shown(t: Catalogue) -> None:
    page = card(t, passage=s.PASSAGE.model_copy(update={"scores": {"splade": 3.1}}))
    assert page.one("dl").all("dt")[0].text() == "splade"


def test_nothing_found_says_what_follows(t: Catalogue) -> None:
    page = read(evidence([], t))
    assert "memory alone" in page.one(".vs-empty").text()


def test_cards_keep_their_place_between_updates(t: Catalogue) -> None:
    cards = read(evidence(s.EVIDENCE, t)).one("ol").all("li")
    keys = [card.attributes["data-key"] for card in cards]
    assert keys == ["evidence-0-clinton-1", "evidence-1-hope-1"]

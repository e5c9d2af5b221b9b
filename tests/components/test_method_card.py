from dataclasses import replace

from components.messages import Catalogue
from components.method_card import MethodRow, error_note, method_cards
from tests.components import samples as s
from tests.components.html_tree import Node, read


def card(t: Catalogue, row: MethodRow) -> Node:
    return read(method_cards([row], t)).one("article")


def test_a_corrected_answer_is_shown_as_a_change(t: Catalogue) -> None:
    page = card(t, s.ROWS[1])
    assert [node.text("vs-sr") for node in page.all("del")] == ["Chicago", "Illinois"]
    assert [node.text("vs-sr") for node in page.all("ins")] == ["Hope", "Arkansas"]
    assert page.one(".vs-method-score").text() == "0.18 < 0.60"
    assert page.one(".vs-verdict-doubtful").text("vs-sign") == "Doubtful"
    assert "local proxy model" in page.one(".vs-flag").text()


def test_what_it_cost(t: Catalogue) -> None:
    costs = card(t, s.ROWS[1]).one("dl")
    assert {row.one("dt").text(): row.one("dd").text() for row in costs.all("div")} == {
        "calls": "3",
        "searches": "1",
        "tokens": "1,284",
        "time": "2.4 s",
    }


def test_an_answer_without_original_or_change(t: Catalogue) -> None:
    page = card(t, s.ROWS[0])
    assert page.one(".vs-answer").text() == s.TEXT
    assert page.one(".vs-label").text() == "Answer"
    unchanged = card(t, replace(s.ROWS[1], answer=s.TEXT))
    assert unchanged.one(".vs-label").text() == "Answer, unchanged"
    assert unchanged.all("del") == []


def test_a_method_at_work_says_at_what_and_keeps_its_place(t: Catalogue) -> None:
    page = card(t, s.ROWS[2])
    assert page.attributes["aria-busy"] == "true"
    assert page.one(".vs-badge").text() == "Writing the answer"
    assert len(page.all(".vs-reserved")) == 1
    assert card(t, MethodRow("rag", "running")).one(".vs-badge").text() == "Running"


def test_a_failure_says_what_and_offers_to_try_again(t: Catalogue) -> None:
    page = card(t, s.ROWS[3])
    note = page.one(".vs-error")
    assert note.attributes["role"] == "alert"
    assert "The provider asks to slow down (example.org)" in note.text()
    assert "Wait a little and try again" in note.text()
    assert "429" in note.one("details").text()
    button = note.one("button")
    assert (button.attributes["data-action"], button.attributes["data-value"]) == (
        "retry",
        "rowen",
    )


def test_an_error_nobody_worded_is_still_explained(t: Catalogue) -> None:
    strange = s.ERROR.model_copy(update={"code": "brand_new", "provider": None})
    page = read(error_note(strange, t))
    assert "Something unexpected went wrong" in page.text()
    assert page.all("button") == []


def test_a_method_that_cannot_run_says_why(t: Catalogue) -> None:
    page = card(t, MethodRow("drad", "unsupported", reason=t("need.logprobs")))
    assert "does not report" in page.one(".vs-note").text()
    assert "Cannot run here" in card(t, MethodRow("drad", "unsupported")).text()


def test_abstention_is_an_outcome(t: Catalogue) -> None:
    page = card(t, MethodRow("drad", "done", abstained=True, verdict="not_enough"))
    assert "No answer could be confirmed" in page.text()


def test_no_verdict_is_said_and_not_guessed(t: Catalogue) -> None:
    assert "gives no verdict" in card(t, MethodRow("direct", "done", answer="x")).text()


def test_cards_keep_order_and_keys(t: Catalogue) -> None:
    page = read(method_cards(s.ROWS, t))
    assert [node.attributes["data-key"] for node in page.all("article")] == [
        "methods-direct",
        "methods-drad",
        "methods-rag",
        "methods-rowen",
    ]
    assert [node.text() for node in page.all("h3")] == ["Direct", "DRAD", "RAG", "Rowen"]


def test_calls_from_the_cache_are_told_apart(t: Catalogue) -> None:
    page = card(t, replace(s.ROWS[0], calls=0, cached=2))
    assert "2 calls were answered from the cache" in page.one(".vs-method-outcome").text()
    assert "cache" not in card(t, s.ROWS[0]).text()


def test_a_check_leaves_the_answer_and_says_so(t: Catalogue) -> None:
    checked = card(t, replace(s.ROWS[1], answer=s.TEXT, rewrites=False))
    assert checked.one(".vs-label").text() == "Answer, checked, not rewritten"
    assert checked.all("del") == []

"""Who doubts the answer, told in words, and a line a method with its details to unfold."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.ask import ask_view
from components.base.elements import error_note
from components.base.words import Catalogue
from components.run.ask import (
    MethodRow,
    agreement,
    agreement_words,
    method_cards,
    method_row,
    method_rows,
    original_of,
)
from pipelines.errors import ErrorInfo
from pipelines.run.events import ModelSpec
from pipelines.run.view import RunView, fold
from tests.components import samples as s
from tests.components.html_tree import Node, read
from tests.scripted.recorded import CORRECTED, ORIGINAL, Record, full_method, score


def card(t: Catalogue, row: MethodRow) -> Node:
    return read(method_cards([row], row.original, t)).one("article")


def test_a_corrected_answer_is_shown_as_a_change(t: Catalogue) -> None:
    page = card(t, s.ROWS[1])
    assert [node.text("vs-sr") for node in page.all("del")] == ["Chicago, Illinois"]
    assert [node.text("vs-sr") for node in page.all("ins")] == ["Hope, Arkansas"]
    assert page.one(".vs-method-score").text() == "0.18 < 0.60"
    assert page.one(".vs-method-said").one(".vs-verdict-doubtful").text("vs-sign") == "Doubtful"
    assert page.one(".vs-method-answer").text() == s.ROWS[1].answer
    assert page.one(".vs-method-brief").text() == "3 calls · 2.4 s"
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
    assert unchanged.one(".vs-label").text() == "Answer (unchanged)"
    assert unchanged.all("del") == []


def test_a_running_method_names_its_step_and_reserves_space(t: Catalogue) -> None:
    page = card(t, s.ROWS[2])
    assert page.attributes["aria-busy"] == "true"
    assert page.one(".vs-method-said").one(".vs-badge").text() == "Writing the answer"
    assert len(page.all(".vs-reserved")) == 1
    assert card(t, MethodRow("rag", "running")).one(".vs-badge").text() == "Running"


def test_a_failure_says_what_and_offers_to_try_again(t: Catalogue) -> None:
    page = card(t, s.ROWS[3])
    note = page.one(".vs-error")
    assert note.attributes["role"] == "alert"
    assert "Too many requests at once (example.org)" in note.text()
    assert "Wait a little and try again" in note.text()
    assert "429" in note.one("details").text()
    button = note.one("button")
    assert (button.attributes["data-action"], button.attributes["data-value"]) == (
        "retry",
        "rowen",
    )


def test_an_error_without_words_of_its_own_is_still_explained(t: Catalogue) -> None:
    strange = s.ERROR.model_copy(update={"code": "brand_new", "provider": None})
    page = read(error_note(strange, t))
    assert "An unexpected error occurred" in page.text()
    assert page.all("button") == []


def test_abstention_is_an_outcome(t: Catalogue) -> None:
    page = card(t, MethodRow("drad", "done", abstained=True, verdict="not_enough"))
    assert "No answer could be confirmed" in page.text()


def test_no_verdict_is_said_and_not_guessed(t: Catalogue) -> None:
    assert "gives no verdict" in card(t, MethodRow("direct", "done", answer="x")).text()


def test_cards_keep_order_and_keys(t: Catalogue) -> None:
    page = read(method_cards(s.ROWS, s.TEXT, t))
    assert [node.attributes["data-key"] for node in page.all("article")] == [
        "methods-direct",
        "methods-drad",
        "methods-rag",
        "methods-rowen",
    ]
    assert [node.text() for node in page.all("h3")] == ["Direct", "DRAD", "RAG", "Rowen"]


def test_calls_answered_from_the_cache_are_counted(t: Catalogue) -> None:
    page = card(t, replace(s.ROWS[0], calls=0, cached=2))
    assert "2 calls were answered from the cache" in page.one(".vs-method-outcome").text()
    assert "cache" not in card(t, s.ROWS[0]).text()


def test_a_check_leaves_the_answer_and_says_so(t: Catalogue) -> None:
    checked = card(t, replace(s.ROWS[1], answer=s.TEXT, rewrites=False))
    assert checked.one(".vs-label").text() == "Answer (checked, not rewritten)"
    assert checked.all("del") == []


ERROR = ErrorInfo(code="timeout", message="Too slow.", remedy="Wait.", retryable=True)
METHODS = ("direct", "rowen", "drad", "ever", "haarag", "slm")


def five() -> Record:
    """Three doubt and two do not; Rowen and EVER correct alike, DRAD otherwise."""
    record = Record(*METHODS)
    record.begin("direct").draft("direct").end("direct", ORIGINAL)
    full_method(record, "rowen", "doubtful")
    full_method(record, "drad", "doubtful", "Nobody knows.")
    full_method(record, "ever", "contradicted", "ada was born in  London. She died in 1852")
    full_method(record, "haarag", "supported", ORIGINAL)
    full_method(record, "slm", "supported", ORIGINAL, flags=("weak_judge",))
    return record


def strip(view: RunView, t: Catalogue) -> Node:
    html = agreement_words(method_rows(view), ORIGINAL, t)
    assert html is not None
    return read(html)


def test_a_tally_by_hand() -> None:
    tally = agreement(method_rows(five().finish()), ORIGINAL)
    assert tally.stances == {
        "rowen": "doubts",
        "drad": "doubts",
        "ever": "doubts",
        "haarag": "holds",
        "slm": "holds",
    }
    assert (tally.silent, tally.own, tally.weak) == ((), {}, ("slm",))


def test_it_is_said_in_words(t: Catalogue) -> None:
    page = strip(five().finish(), t)
    words = page.text()
    assert "3 of the 5 methods that judged this answer doubt it: " in words
    assert "; 2 do not: " in words
    assert "no better than chance" in words
    assert "aria-busy" not in page.one(".vs-agreement-words").attributes


def test_one_judging_method_agrees_with_nobody(t: Catalogue) -> None:
    record = Record("direct", "rag", "drad")
    full_method(record, "drad", "doubtful")
    assert agreement_words(method_rows(record.finish()), ORIGINAL, t) is None


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (("doubtful", "not_enough"), "Both methods that judged this answer doubt it"),
        (("confident", "supported"), "Neither of the two methods that judged this answer doubts"),
        (("confident", "doubtful"), "1 of the 2 methods that judged this answer doubts it: ever"),
        (("unchecked", "unchecked"), "No method reached a verdict"),
        (("unchecked", "doubtful"), "The one method that judged this answer doubts it: ever"),
        (("unchecked", "confident"), "The one method that judged this answer does not doubt it"),
    ],
)
def test_every_outcome_has_its_sentence(
    t: Catalogue, verdicts: tuple[str, str], words: str
) -> None:
    record = Record("rowen", "ever")
    for method, verdict in zip(("rowen", "ever"), verdicts, strict=True):
        full_method(record, method, verdict)  # pyright: ignore[reportArgumentType]
    said = strip(record.finish(), t).one(".vs-agreement-words").text().lower()
    assert words.lower() in said
    assert ("could not check it" in said) is ("unchecked" in verdicts)


def test_what_ended_or_gave_nothing_is_named(t: Catalogue) -> None:
    record = Record("rowen", "ever", "drad")
    record.begin("rowen").end("rowen", error=ERROR)
    full_method(record, "ever", "not_enough", "", abstained=True)
    full_method(record, "drad", "confident", ORIGINAL, original="Another text.")
    page = strip(record.finish(), t)
    words = page.text().lower()
    assert "ended without a verdict: rowen." in words
    assert "none could be confirmed: ever." in words
    assert "drad wrote a first answer of its own, and does not doubt that one." in words


def mixed() -> Record:
    """Two doubt the answer shown; HAARAG and EVER judge answers that they wrote themselves."""
    record = Record("direct", "rowen", "drad", "haarag", "ever")
    record.begin("direct").draft("direct").end("direct", ORIGINAL)
    full_method(record, "rowen", "doubtful", original=ORIGINAL.upper().replace(".", "!"))
    full_method(record, "drad", "doubtful")
    full_method(record, "haarag", "doubtful", CORRECTED, original=CORRECTED)
    full_method(record, "ever", "supported", "Ada was English.", original="Ada was English.")
    return record


def test_a_verdict_counts_only_for_the_text_it_is_about(t: Catalogue) -> None:
    view = mixed().finish()
    tally = agreement(method_rows(view), ORIGINAL)
    assert tally.of("doubts") == ["rowen", "drad"]
    assert tally.of("holds") == []
    assert tally.own == {"haarag": "doubts", "ever": "holds"}
    page = strip(view, t)
    words = page.one(".vs-agreement-words").text()
    assert "Both methods that judged this answer doubt it: Rowen" in words
    assert "HAARAG wrote a first answer of its own, and doubts that one." in words
    assert "EVER wrote a first answer of its own, and does not doubt that one." in words
    cards = read(method_cards(method_rows(view), ORIGINAL, t))
    said = {
        node.attributes["id"]: node.one(".vs-method-said").text() for node in cards.all("article")
    }
    assert "own first answer" in said["methods-haarag"]
    assert "own first answer" not in said["methods-drad"]
    chinese = strip(view, Catalogue("zh")).text()
    assert "作出判定的两种方法均认为该回答存疑：" in chinese
    assert "HAARAG 核查的是自己写的另一个回答，并对其存疑。" in chinese


def test_verdicts_on_other_texts_alone_say_nothing_about_the_answer(t: Catalogue) -> None:
    record = Record("ever", "haarag")
    full_method(record, "haarag", "doubtful", CORRECTED, original=CORRECTED)
    full_method(record, "ever", "not_enough", "Ada was English.", original="Ada was English.")
    words = strip(record.finish(), t).one(".vs-agreement-words").text()
    assert "No method reached a verdict on this answer." in words
    assert "EVER, HAARAG wrote first answers of their own, and doubt those." in words


def test_every_method_has_its_line_while_the_run_goes_on(t: Catalogue) -> None:
    events = five().events
    keys: set[tuple[str, ...]] = set()
    for end in range(1, len(events) + 1):
        page = read(method_cards(method_rows(fold(events[:end])), "", t))
        keys.add(tuple(node.attributes["data-key"] for node in page.all("article")))
    assert keys == {tuple(f"methods-{name}" for name in METHODS)}
    early = strip(fold(events[:1]), t)
    assert early.one(".vs-agreement-words").attributes["aria-busy"] == "true"
    assert "No verdict yet." in early.text()
    assert "Not decided yet" in early.text()


def test_the_ask_page_has_the_head_the_links_and_the_label(t: Catalogue) -> None:
    view = five().finish()
    page = read(ask_view(view, t))
    assert len(page.all(".vs-outcome")) == 1
    ways = page.all(".vs-method-way")
    pages = ["rowen", "drad", "ever", "grounding", "grounding"]
    assert [node.attributes["data-value"] for node in ways] == pages
    buttons = page.one(".vs-steps-links").all("button")
    assert [node.attributes["data-value"] for node in buttons] == [
        "compare",
        # Direct and RAG were left out.
        "standard",
    ]
    assert {node.attributes["data-action"] for node in buttons} == {"open", "complete"}
    assert page.all(".vs-illustration") == []
    scripted = {"main": ModelSpec(kind="scripted", name="By hand")}
    record = Record("rowen", "ever", models=scripted)
    page = read(ask_view(record.view, t))
    assert "written by hand, not a model's output" in page.one(".vs-illustration").text()


def test_the_verdict_of_a_method_is_the_one_on_its_answer() -> None:
    record = Record("rowen", "slm")
    record.begin("rowen").draft("rowen")
    record.judge("rowen", "supported", "Ada", "pair")
    assert method_row(record.view, "rowen").verdict is None
    record.judge("rowen", "doubtful", scores=(score(0.2), score(0.9)))
    row = method_row(record.view, "rowen")
    assert row.verdict == "doubtful"
    assert row.score == score(0.2)
    full_method(record, "slm", "unchecked", ORIGINAL)
    row = method_row(record.finish(), "slm")
    assert (row.verdict, row.rewrites, row.judges) == ("unchecked", False, True)


def test_a_check_rewrites_nothing_and_says_so(t: Catalogue) -> None:
    record = Record("slm")
    full_method(record, "slm", "doubtful", ORIGINAL, flags=("weak_judge",))
    page = read(ask_view(record.finish(), t))
    assert "Answer (checked, not rewritten)" in page.one(".vs-method").text()
    assert "no better than chance" in page.one(".vs-flags").text()


def test_an_original_written_in_parts_is_the_one_of_the_answer() -> None:
    record = Record("ever")
    record.begin("ever").draft("ever", "Ada was born in Paris.")
    record.judge("ever", "doubtful")
    view = record.end("ever", CORRECTED, ORIGINAL).finish()
    original = original_of(view)
    assert original is not None
    assert (original.text, original.tokens) == (ORIGINAL, ())
    assert method_row(view, "ever").original == ORIGINAL


def test_chinese() -> None:
    page = strip(five().finish(), Catalogue("zh"))
    assert "作出判定的 5 种方法中，3 种认为该回答存疑" in page.text()
    assert "其余 2 种不存疑" in page.text()


def test_hostile_names_stay_text(t: Catalogue) -> None:
    bad = "<img src=x>"
    record = Record(bad, "ever")
    full_method(record, bad, "doubtful", bad, original=bad)
    full_method(record, "ever", "supported")
    page = read(ask_view(record.finish(), t))
    assert page.all("img") == []
    assert bad in page.one(".vs-outcome").text()

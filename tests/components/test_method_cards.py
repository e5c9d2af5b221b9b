"""Who doubts the answer, and whose final answers coincide, told in one strip."""

from __future__ import annotations

from dataclasses import replace

import pytest

from components.ask import ask_view
from components.elements import error_note
from components.messages import LANGUAGES, Catalogue
from components.method_cards import MethodRow, agreement, agreement_strip, method_cards
from components.run_view import method_row, method_rows, original_of
from pipelines.errors import ErrorInfo
from pipelines.run.spec import ModelSpec
from pipelines.run.view import RunView, fold
from pipelines.types import Language
from tests.components import samples as s
from tests.components.html_tree import Node, read
from tests.components.recorded import CORRECTED, ORIGINAL, Record, full_method, score
from tests.snapshots import Snapshot


def card(t: Catalogue, row: MethodRow) -> Node:
    return read(method_cards([row], t)).one("article")


CARDS = {
    "corrected, with what it cost": s.ROWS[1],
    "without original or change": s.ROWS[0],
    "unchanged": replace(s.ROWS[1], answer=s.TEXT),
    "running": s.ROWS[2],
    "running, no step known": MethodRow("rag", "running"),
    "abstained": MethodRow("drad", "done", abstained=True, verdict="not_enough"),
    "no verdict": MethodRow("direct", "done", answer="x"),
    "from the cache": replace(s.ROWS[0], calls=0, cached=2),
    "checked, not rewritten": replace(s.ROWS[1], answer=s.TEXT, rewrites=False),
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_cards(language: Language, snapshot: Snapshot) -> None:
    t = Catalogue(language)
    for state, row in CARDS.items():
        snapshot(method_cards([row], t), state=state)


def test_a_running_card_is_busy_and_a_change_is_marked(t: Catalogue) -> None:
    assert card(t, s.ROWS[2]).attributes["aria-busy"] == "true"
    page = card(t, s.ROWS[1])
    assert [node.text("vs-sr") for node in page.all("del")] == ["Chicago, Illinois"]
    assert [node.text("vs-sr") for node in page.all("ins")] == ["Hope, Arkansas"]


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


def test_cards_keep_order_and_keys(t: Catalogue) -> None:
    page = read(method_cards(s.ROWS, t))
    assert [node.attributes["data-key"] for node in page.all("article")] == [
        "methods-direct",
        "methods-drad",
        "methods-rag",
        "methods-rowen",
    ]
    assert [node.text() for node in page.all("h3")] == ["Direct", "DRAD", "RAG", "Rowen"]


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
    html = agreement_strip(method_rows(view), ORIGINAL, t)
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
    # The check rewrites nothing, so it has no answer of its own to compare.
    assert tally.groups == (("direct", "haarag"), ("rowen", "ever"), ("drad",))
    assert (tally.silent, tally.own, tally.weak) == ((), {}, ("slm",))


def verdicts(*given: str) -> RunView:
    record = Record("rowen", "ever")
    for method, verdict in zip(("rowen", "ever"), given, strict=True):
        full_method(record, method, verdict)  # pyright: ignore[reportArgumentType]
    return record.finish()


def answered(*answers: str) -> RunView:
    methods = METHODS[1 : 1 + len(answers)]
    record = Record(*methods)
    for method, answer in zip(methods, answers, strict=True):
        full_method(record, method, "doubtful", answer)
    return record.finish()


def ended() -> RunView:
    """One failed, one confirmed nothing, one checked another text."""
    record = Record("rowen", "ever", "drad")
    record.begin("rowen").end("rowen", error=ERROR)
    full_method(record, "ever", "not_enough", "", abstained=True)
    full_method(record, "drad", "confident", ORIGINAL, original="Another text.")
    return record.finish()


def elsewhere() -> RunView:
    """Verdicts on texts of the methods' own alone."""
    record = Record("ever", "haarag")
    full_method(record, "haarag", "doubtful", CORRECTED, original=CORRECTED)
    full_method(record, "ever", "not_enough", "Ada was English.", original="Ada was English.")
    return record.finish()


@pytest.mark.parametrize("language", LANGUAGES)
def test_strips(language: Language, snapshot: Snapshot) -> None:
    """The sentence for every outcome of verdicts and of answers, and the dots."""
    t = Catalogue(language)
    pairs = (
        *(("doubtful", "not_enough"), ("confident", "supported"), ("confident", "doubtful")),
        *(("unchecked", "unchecked"), ("unchecked", "doubtful"), ("unchecked", "confident")),
    )
    snapshot(strip(five().finish(), t), state="three of five doubt")
    for pair in pairs:
        snapshot(strip(verdicts(*pair), t), "vs-agreement-words", state=", ".join(pair))
    for answers in ("AA", "AB", "AAA", "ABC"):
        snapshot(strip(answered(*answers), t), "vs-agreement-words", state=answers)
    snapshot(strip(ended(), t), state="ended or gave nothing")
    snapshot(strip(mixed().finish(), t), state="some judge answers of their own")
    snapshot(strip(elsewhere(), t), "vs-agreement-words", state="all judge answers of their own")
    snapshot(strip(fold(five().events[:1]), t), state="no verdict yet")


def test_one_judging_method_agrees_with_nobody(t: Catalogue) -> None:
    record = Record("direct", "rag", "drad")
    full_method(record, "drad", "doubtful")
    assert agreement_strip(method_rows(record.finish()), ORIGINAL, t) is None


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
    rowen, _, haarag, ever = page.one(".vs-agreement-dots").all("li")
    assert rowen.classes >= {"vs-verdict-doubtful", "vs-stance-doubts"}
    # No colour of a verdict on this answer, but the sign of the one on its own.
    assert haarag.classes >= {"vs-verdict-unchecked", "vs-stance-own"}
    assert haarag.one(".vs-sign").text() == "!"
    assert haarag.attributes["title"] == "on an answer of its own: Doubtful"
    assert ever.one(".vs-sign").text() == "✓"


def test_the_strip_keeps_its_dots_in_order_while_the_run_goes_on(t: Catalogue) -> None:
    events = five().events
    keys: set[tuple[str, ...]] = set()
    for end in range(1, len(events) + 1):
        page = strip(fold(events[:end]), t)
        dots = page.one(".vs-agreement-dots").all("li")
        keys.add(tuple(dot.attributes["data-key"] for dot in dots))
    assert keys == {METHODS[1:]}
    early = strip(fold(events[:1]), t)
    assert early.one(".vs-agreement").attributes["aria-busy"] == "true"


def test_the_ask_page_has_the_strip_the_links_and_the_label(t: Catalogue) -> None:
    view = five().finish()
    page = read(ask_view(view, t))
    assert len(page.all(".vs-agreement")) == 1
    buttons = page.one(".vs-steps-links").all("button")
    assert [node.attributes["data-value"] for node in buttons] == [
        "rowen",
        "drad",
        "ever",
        "grounding",
        "grounding",
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


def test_hostile_names_stay_text(t: Catalogue) -> None:
    bad = "<img src=x>"
    record = Record(bad, "ever")
    full_method(record, bad, "doubtful", bad, original=bad)
    full_method(record, "ever", "supported")
    page = read(ask_view(record.finish(), t))
    assert page.all("img") == []
    assert bad in page.one(".vs-agreement").text()

"""Who doubts the answer, and whose final answers coincide, told in one strip."""

from __future__ import annotations

import pytest

from components.agreement import agreement, agreement_strip, same_text
from components.ask_view import ask_view
from components.messages import Catalogue
from components.run_view import method_row, method_rows, original_of
from pipelines.errors import ErrorInfo
from pipelines.run.spec import ModelSpec
from pipelines.run.view import RunView, fold
from tests.components.html_tree import Node, read
from tests.components.recorded import CORRECTED, ORIGINAL, Record, full_method, score

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


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("Born in  1852.", "born in 1852", True),
        ("“巴黎”。", "巴黎", True),
        ("Ａda", "Ada", True),
        ("Born in 1852", "Born in 1853", False),
        ("", "", True),
    ],
)
def test_texts_are_the_same_but_for_case_width_and_punctuation(
    one: str, other: str, same: bool
) -> None:
    assert (same_text(one) == same_text(other)) is same


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
    assert (tally.silent, tally.own, tally.weak) == ((), (), ("slm",))


def test_the_strip_says_it_in_words_and_dots(t: Catalogue) -> None:
    page = strip(five().finish(), t)
    words = page.one(".vs-agreement-words").text()
    assert "3 of the 5 methods with a verdict doubt this answer: " in words
    assert "; 2 do not: " in words
    assert "The same final answer: Direct, " in words
    assert "Another one each: DRAD." in words
    assert "No better than chance" in words
    dots = page.one(".vs-agreement-dots").all("li")
    assert [dot.one(".vs-sign").text() for dot in dots] == ["!", "!", "✗", "✓", "✓"]
    assert dots[2].classes >= {"vs-badge", "vs-verdict-contradicted"}
    assert "Contradicted" in dots[2].text()
    assert "aria-busy" not in page.one(".vs-agreement").attributes


def test_one_judging_method_agrees_with_nobody(t: Catalogue) -> None:
    record = Record("direct", "rag", "drad")
    full_method(record, "drad", "doubtful")
    assert agreement_strip(method_rows(record.finish()), ORIGINAL, t) is None


@pytest.mark.parametrize(
    ("verdicts", "words"),
    [
        (("doubtful", "not_enough"), "All 2 methods with a verdict doubt this answer"),
        (("confident", "supported"), "None of the 2 methods with a verdict doubts"),
        (("confident", "doubtful"), "1 of the 2 methods with a verdict doubts this answer: ever"),
        (("unchecked", "unchecked"), "No method reached a verdict"),
        (("unchecked", "doubtful"), "The one method with a verdict doubts this answer: ever"),
        (("unchecked", "confident"), "The one method with a verdict does not doubt"),
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
    assert page.one(".vs-stance-ended").one(".vs-sign").text() == "✗"
    words = page.text().lower()
    assert "ended without a verdict: rowen." in words
    assert "none could be confirmed: ever." in words
    assert "a first answer of their own was checked by: drad." in words


def test_the_strip_keeps_its_places_while_the_run_goes_on(t: Catalogue) -> None:
    events = five().events
    keys: set[tuple[str, ...]] = set()
    for end in range(1, len(events) + 1):
        page = strip(fold(events[:end]), t)
        dots = page.one(".vs-agreement-dots").all("li")
        keys.add(tuple(dot.attributes["data-key"] for dot in dots))
    assert keys == {METHODS[1:]}
    early = strip(fold(events[:1]), t)
    assert early.one(".vs-agreement").attributes["aria-busy"] == "true"
    assert "No verdict yet." in early.text()
    assert "Not decided yet" in early.text()


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
    ]
    assert {node.attributes["data-action"] for node in buttons} == {"open"}
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
    assert "Answer, checked, not rewritten" in page.one(".vs-method").text()
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
    assert "作出判断的 5 种方法中有 3 种对该回答存疑" in page.text()
    assert "其余 2 种不怀疑" in page.text()


def test_hostile_names_stay_text(t: Catalogue) -> None:
    bad = "<img src=x>"
    record = Record(bad, "ever")
    full_method(record, bad, "doubtful", bad, original=bad)
    full_method(record, "ever", "supported")
    page = read(ask_view(record.finish(), t))
    assert page.all("img") == []
    assert bad in page.one(".vs-agreement").text()

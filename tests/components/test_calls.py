"""The calls behind a verdict: which ones they are, and what is shown of each."""

from __future__ import annotations

from typing import Any

import pytest

from components.calls import call_list, calls_within
from components.elements import score_line
from components.messages import Catalogue
from components.timeline import call_bars, timeline
from pipelines.errors import ErrorInfo
from pipelines.models.base import ChoiceRequest, GenerationRequest, ScoreRequest, SimilarityRequest
from pipelines.prompts import Prompts
from pipelines.run.events import ModelCalled
from pipelines.run.view import MethodView
from pipelines.types import Choice, FinishReason, Generation, Message
from tests.components.html_tree import Node, read
from tests.components.recorded import Record, passage, score

ASKED = (Message(role="system", content="Be brief."), Message(role="user", content="Same?"))
ERROR = ErrorInfo(code="timeout", message="Too slow.", remedy="Wait.", retryable=True)


def checked() -> tuple[Record, MethodView]:
    """A step with a call and a step below it, and a step beside it."""
    record = Record("ever")
    record.begin("ever")
    check = record.step("ever", "check")
    ask = record.step("ever", "ask", parent=check)
    other = record.step("ever", "other")
    record.call(ask)
    record.call(other)
    record.search(ask, passage("a"))
    record.call(check)
    record.judge("ever", "doubtful", span=check)
    return record, record.view.methods["ever"]


def spans(calls: list[Any]) -> list[tuple[str, str]]:
    return [(call.span, call.kind) for call in calls]


def test_the_calls_of_a_verdict_lie_in_its_span_and_below() -> None:
    _, method = checked()
    (judged,) = method.judged
    assert spans(calls_within(method, {judged.span})) == [
        ("ever.ask", "model_called"),
        ("ever.ask", "retrieved"),
        ("ever.check", "model_called"),
    ]


def test_calls_come_in_the_order_they_began() -> None:
    record = Record("ever")
    record.begin("ever")
    span = record.step("ever", "check")
    late = record.call(span, started=0.9)
    early = record.call(span, started=0.1)
    assert calls_within(record.view.methods["ever"], {span}) == [early, late]
    assert calls_within(record.view.methods["ever"], {"nowhere"}) == []


def shown(t: Catalogue, **fields: Any) -> Node:
    record = Record("ever")
    return read(call_list([record.call("ever", **fields)], t, id="behind"))


def turns(page: Node) -> dict[str, str]:
    return {node.one(".vs-label").text(): node.text("vs-label") for node in page.all(".vs-turn")}


def test_what_fills_a_prompt_is_marked(t: Catalogue) -> None:
    prompts = Prompts("x", '[en]\nask = "Read $what now."\nnote = "<b>$one</b>"\nend = "Stop."')
    inside = prompts.fill("en", "note", one="that & this")
    asked = prompts.turns("en", "end", "ask", what=inside)
    page = shown(t, request=GenerationRequest(messages=asked))
    assert [turn.one("pre").text() for turn in page.all(".vs-turn")][:2] == [
        "Stop.",
        "Read <b>that & this</b> now.",
    ]
    # The words of the prompt inside are none of the values.
    marks = [(mark.attributes["title"], mark.text()) for mark in page.all(".vs-value")]
    assert marks == [("$one", "that & this")]
    words = page.text()
    assert "From x/end (English)." in words
    assert "From x/ask (English). The values that fill it are marked." in words


def test_a_value_is_marked_on_both_sides_of_where_a_long_text_is_cut(t: Catalogue) -> None:
    prompts = Prompts("x", '[en]\nask = "Q: $what."')
    asked = prompts.turns("en", "ask", what="a" * 1000)
    page = shown(t, request=GenerationRequest(messages=asked))
    assert [len(mark.text()) for mark in page.all(".vs-value")] == [697, 303]


def test_a_writing_shows_prompt_and_reply(t: Catalogue) -> None:
    page = shown(t, request=GenerationRequest(messages=ASKED), attempt=2, cached=True)
    assert page.one(".vs-behind").attributes["data-key"] == "behind"
    assert page.all("summary")[0].text() == "The one call behind this"
    title = page.all("summary")[1].text()
    assert title == "Writing · tiny · 0.00 s · from the cache · attempt 2"
    assert "Role: main model" in page.text()
    assert turns(page) == {"Instructions": "Be brief.", "Prompt": "Same?", "Reply": "Because."}
    assert "2 tokens written" in page.text()
    assert "open" not in page.one(".vs-behind").attributes


def test_several_samples_are_numbered(t: Catalogue) -> None:
    texts = (Generation(text="One."), Generation(text="Two."))
    page = shown(t, request=GenerationRequest(messages=ASKED, n=2), generations=texts)
    assert turns(page)["Reply 1"] == "One."
    assert turns(page)["Reply 2"] == "Two."


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ("length", "Cut off at the token limit."),
        ("filter", "Ended by the content filter of the model's service."),
        ("watcher", "Stopped here by the method, which needed no more of it."),
    ],
)
def test_a_text_that_did_not_end_by_itself_says_what_ended_it(
    t: Catalogue, end: FinishReason, words: str
) -> None:
    texts = (Generation(text="One."), Generation(text="Tw", finish_reason=end))
    page = shown(t, request=GenerationRequest(messages=ASKED, n=2), generations=texts)
    assert turns(page)["Reply 1"] == "One."
    assert page.all(".vs-turn-reply")[1].one(".vs-note").text() == words


@pytest.mark.parametrize(
    ("source", "words"), [("logprobs", "first token"), ("text", "gives no probabilities")]
)
def test_a_choice_shows_every_share_and_what_fell_elsewhere(
    t: Catalogue, source: Any, words: str
) -> None:
    choice = Choice(
        probabilities={"true": 0.7, "false": 0.2}, other_mass=0.1, source=source, text="True"
    )
    page = shown(
        t, request=ChoiceRequest(messages=ASKED, options=()), choice=choice, generations=()
    )
    rows = page.one(".vs-choice").all("div")
    assert [(row.one("dt").text(), row.one("dd").text()) for row in rows] == [
        ("true", "0.70"),
        ("false", "0.20"),
        ("anything else", "0.10"),
    ]
    assert words in page.text()


def test_a_scored_text_is_shown(t: Catalogue) -> None:
    page = shown(t, request=ScoreRequest(messages=ASKED, text="The text."))
    assert turns(page)["Scored text"] == "The text."


def compared(t: Catalogue, left: int, right: int) -> Node:
    request = SimilarityRequest(
        left=tuple(f"l{n}" for n in range(left)), right=tuple(f"r{n}" for n in range(right))
    )
    cosines = tuple(tuple((n + m) / 100 for m in range(right)) for n in range(left))
    return shown(t, role="embedder", request=request, similarities=cosines, generations=())


def test_small_matrices_are_shown_number_by_number(t: Catalogue) -> None:
    page = compared(t, 2, 3)
    assert page.all("summary")[1].text() == "Similarity · tiny · 0.00 s"
    # The largest cosine is (1 + 2) / 100.
    assert "2 × 3 cosines, from 0 to 0.03" in page.text()
    rows = page.one(".vs-matrix").all("tr")
    assert [node.text() for node in rows[2].all("td")] == ["0.010", "0.020", "0.030"]


def test_large_matrices_are_summed_up_and_long_lists_folded(t: Catalogue) -> None:
    page = compared(t, 8, 2)
    assert "8 × 2 cosines, from 0 to 0.08" in page.text()
    assert page.all(".vs-matrix") == []
    assert "2 more texts" in page.text()
    assert "There was nothing to compare" in compared(t, 0, 0).text()


def test_an_embedders_call_is_in_the_timeline(t: Catalogue) -> None:
    record = Record("haarag")
    record.begin("haarag")
    request = SimilarityRequest(left=("a",), right=("b", "c"))
    record.call(
        "haarag", role="embedder", request=request, similarities=((0.5, 0.25),), generations=()
    )
    entry = read(timeline(call_bars(record.view), t)).one(".vs-call")
    assert entry.one("summary").text() == "HAARAG Similarity · tiny · 0.00 s"
    assert [node.text() for node in entry.one(".vs-matrix").all("td")] == ["", "0.50", "0.25"]
    assert [node.text() for node in entry.all("pre")] == ["a", "b", "c"]
    assert record.view.methods["haarag"].made == ()


def test_a_search_lists_what_it_found(t: Catalogue) -> None:
    record = Record("ever")
    found = record.search("ever", passage("a", "Ada lived."))
    page = read(call_list([found], t, id="behind"))
    assert page.all("summary")[1].text() == "Search · shelf · 0.00 s"
    assert turns(page) == {"Query": "Ada", "Found": "Title aAda lived."}
    nothing = read(call_list([record.search("ever")], t, id="behind"))
    assert "Nothing was found" in nothing.text()


def test_what_failed_says_so(t: Catalogue) -> None:
    record = Record("ever")
    failed = record.search("ever", error=ERROR)
    page = read(call_list([failed, record.call("ever", error=ERROR, generations=())], t, id="b"))
    assert page.all("summary")[0].text() == "The 2 calls behind this"
    assert len(page.all(".vs-turn-error")) == 2
    assert "Nothing was found" not in page.text()


def test_a_long_text_is_folded_and_whole(t: Catalogue) -> None:
    text = "".join(f"{n:04}" for n in range(500))
    page = shown(t, generations=(Generation(text=text),))
    reply = page.one(".vs-turn-reply")
    assert "".join(node.text() for node in reply.all("pre")) == text
    # 500 * 4 - 700
    assert reply.one("summary").text() == "1,300 more characters"


def test_hostile_text_stays_text(t: Catalogue) -> None:
    text = "</pre></details><script>alert(1)</script>"
    choice = Choice(probabilities={text: 1.0}, other_mass=0.0, source="text", text=text)
    record = Record("ever")
    calls = [
        record.call("ever", model=text, role=text, generations=(Generation(text=text),)),
        record.call("ever", request=ChoiceRequest(messages=ASKED, options=()), choice=choice),
        record.search("ever", passage(text, text)),
    ]
    page = read(call_list(calls, t, id="behind"))
    assert page.all("script") == []
    assert page.text().count(text) >= 5


def test_no_call_is_said(t: Catalogue) -> None:
    assert "No call was made" in read(call_list([], t, id="behind")).text()


def test_a_score_discloses_its_calls_with_its_formula(t: Catalogue) -> None:
    behind = call_list([Record("ever").call("ever")], t, id="behind")
    plain = read(score_line(score(), t))
    assert plain.all("details") == []
    page = read(score_line(score(), t, behind=behind))
    assert page.all("summary")[0].text() == "How it is computed"
    assert len(page.all(".vs-behind")) == 1


def test_chinese(t: Catalogue) -> None:
    zh = Catalogue("zh")
    call: ModelCalled = Record("ever").call("ever", request=GenerationRequest(messages=ASKED))
    assert "得出此结果的 1 次调用" in read(call_list([call], zh, id="b")).text()

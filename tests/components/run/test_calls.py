"""The calls behind a verdict: which ones they are, and what is shown of each."""

from __future__ import annotations

from typing import Any

import pytest

from components.base.elements import score_line
from components.base.words import LANGUAGES, Catalogue
from components.run.calls import call_bars, call_list, calls_within, timeline
from pipelines.base import Choice, FinishReason, Generation, Language, Message
from pipelines.errors import ErrorInfo
from pipelines.models.base import ChoiceRequest, GenerationRequest, ScoreRequest, SimilarityRequest
from pipelines.prompts import Prompts
from pipelines.run.view import MethodView
from tests.components.html_tree import Node, read
from tests.scripted.recorded import Record, passage, score
from tests.snapshots import Snapshot

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


WRITING = GenerationRequest(messages=ASKED)
SAMPLES = GenerationRequest(messages=ASKED, n=2)
OPTIONS = ChoiceRequest(messages=ASKED, options=())
ONE, TWO = Generation(text="One."), Generation(text="Two.")


def ended(reason: FinishReason) -> dict[str, Any]:
    """Two samples, of which the second did not end by itself."""
    return {"request": SAMPLES, "generations": (ONE, Generation(text="Tw", finish_reason=reason))}


def chosen(source: Any) -> dict[str, Any]:
    choice = Choice(
        probabilities={"true": 0.7, "false": 0.2}, other_mass=0.1, source=source, text="True"
    )
    return {"request": OPTIONS, "choice": choice, "generations": ()}


def compared(left: int, right: int) -> dict[str, Any]:
    request = SimilarityRequest(
        left=tuple(f"l{n}" for n in range(left)), right=tuple(f"r{n}" for n in range(right))
    )
    cosines = tuple(tuple((n + m) / 100 for m in range(right)) for n in range(left))
    return {"role": "embedder", "request": request, "similarities": cosines, "generations": ()}


CALLS: dict[str, dict[str, Any]] = {
    "a writing": {"request": WRITING, "attempt": 2, "cached": True},
    "samples": {"request": SAMPLES, "generations": (ONE, TWO)},
    "cut off": ended("length"),
    "filtered": ended("filter"),
    "stopped by the method": ended("watcher"),
    "a choice by probabilities": chosen("logprobs"),
    "a choice by words": chosen("text"),
    "a scored text": {"request": ScoreRequest(messages=ASKED, text="The text.")},
    # The largest cosine is (1 + 2) / 100.
    "a small matrix": compared(2, 3),
    # Summed up, and the list of texts is folded.
    "a large matrix": compared(8, 2),
    "nothing to compare": compared(0, 0),
    "failed": {"error": ERROR, "generations": ()},
}


@pytest.mark.parametrize("language", LANGUAGES)
def test_calls_and_searches(language: Language, snapshot: Snapshot) -> None:
    t = Catalogue(language)
    for state, fields in CALLS.items():
        snapshot(shown(t, **fields), state=state, calls=True)
    for state, passages in (("a search", [passage("a", "Ada lived.")]), ("nothing found", [])):
        found = Record("ever").search("ever", *passages)
        snapshot(call_list([found], t, id="behind"), state=state, calls=True)
    failed = Record("ever").search("ever", error=ERROR)
    snapshot(call_list([failed, failed], t, id="behind"), state="failed searches", calls=True)
    snapshot(call_list([], t, id="behind"), state="no call")


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


def test_a_score_discloses_its_calls_with_its_formula(t: Catalogue) -> None:
    behind = call_list([Record("ever").call("ever")], t, id="behind")
    plain = read(score_line(score(), t))
    assert plain.all("details") == []
    page = read(score_line(score(), t, behind=behind))
    assert page.all("summary")[0].text() == "How it is computed"
    assert len(page.all(".vs-behind")) == 1

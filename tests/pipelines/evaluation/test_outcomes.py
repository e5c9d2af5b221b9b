"""Outcomes of recorded runs, whose events are written by hand."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipelines.base import Answer, Generation, Message, Passage, Usage
from pipelines.errors import ErrorInfo
from pipelines.evaluation.outcomes import Cost, outcome_of, paid_in
from pipelines.models.base import GenerationRequest, ScoreRequest
from pipelines.models.providers import ModelSpec, Price
from pipelines.run.events import (
    Event,
    Judged,
    ModelCalled,
    Retrieved,
    RunCancelled,
    RunFailed,
    RunFinished,
    Score,
    SpanEnded,
    SpanStarted,
    TerminalEvent,
    Trace,
)
from pipelines.run.findings import EntityReading, MethodStarted
from tests.pipelines.store import examples

ANSWER = Answer(text="Delft", original="Paris", short="Delft", flags=("unverified",))
BROKEN = ErrorInfo(code="timeout", message="Late.", remedy="Again.", retryable=True)
PRICE = Price(read=1_000_000.0, written=2_000_000.0)
"""One for each token that is read, two for each that is written."""
MODELS = {"main": ModelSpec(price=PRICE), "judge_1": ModelSpec(kind="judge", model="overlap")}


def at(seq: int, span: str = "s1") -> dict[str, Any]:
    return {"run": "r", "span": span, "parent": "s0", "seq": seq, "time": float(seq)}


def call(text: str, seq: int = 2, *, role: str = "main", **fields: Any) -> ModelCalled:
    """A call that read three tokens and wrote one."""
    asked = GenerationRequest(messages=(Message(role="user", content=text),))
    written = Generation(text="x", usage=Usage(prompt_tokens=3, completion_tokens=1))
    known = {"request": asked, "generations": (written,), **fields}
    return ModelCalled(**at(seq), role=role, model="m", attempt=1, started=0.0, **known)


def judged(*scores: Score, verdict: Any = "doubtful", what: Any = "answer", **fields: Any) -> Event:
    known = {"text": "Paris", "start": 0, "end": 5, **fields}
    return Judged(**at(3), what=what, verdict=verdict, scores=scores, **known)


def trace(
    *events: Event,
    end: TerminalEvent | None = None,
    method_end: dict[str, Any] | None = None,
    begun: dict[str, Any] | None = None,
) -> Trace:
    """A run of DRAD that began 1 and ended 9 seconds after the start of the run."""
    first = SpanStarted(**at(1), **(begun or {"method": "drad", "name": "method"}))
    ended = SpanEnded(**at(9), **(method_end or {"outcome": "ok", "answer": ANSWER}))
    last = end or RunFinished(**at(10, "s0"), answers={"drad": ANSWER})
    return Trace(events=(examples.started("r"), first, *events, ended, last))


def doubt_of(*scores: Score, verdict: Any = "doubtful") -> float | None:
    found = outcome_of(trace(judged(*scores, verdict=verdict)), "drad", MODELS)
    assert found is not None
    return found.doubt


def test_a_score_that_is_bad_above_is_the_doubt_itself():
    assert doubt_of(Score(name="entropy", value=1.5, bad="above", high=None)) == 1.5


def test_a_score_that_is_bad_below_is_turned_within_its_ends():
    # 0.8 on a scale from 0 to 1 is as far from its top as 0.2 from its bottom: 0 + 1 - 0.8.
    assert doubt_of(Score(name="support", value=0.8)) == pytest.approx(0.2)
    # From -1 to 1: -1 + 1 - 0.25.
    assert doubt_of(Score(name="cosine", value=0.25, low=-1.0)) == -0.25
    # Without an upper end there is nothing to stay within.
    assert doubt_of(Score(name="margin", value=2.0, high=None)) == -2.0


@given(
    st.floats(0, 1), st.floats(0, 1), st.sampled_from(["above", "below"]),
    st.sampled_from([1.0, None]),
)  # fmt: skip
def test_what_is_worse_is_doubted_more(one: float, other: float, bad: Any, high: float | None):
    first, second = (doubt_of(Score(name="s", value=v, bad=bad, high=high)) for v in (one, other))
    assert first is not None
    assert second is not None
    worse = one >= other if bad == "above" else one <= other
    assert first >= second if worse else first <= second


@pytest.mark.parametrize(
    ("verdict", "doubt"),
    [
        ("supported", 0.0),
        ("confident", 0.0),
        ("not_enough", 0.5),
        ("doubtful", 1.0),
        ("contradicted", 1.0),
        ("unchecked", None),
    ],
)
def test_without_a_score_the_verdict_counts(verdict: str, doubt: float | None):
    assert doubt_of(verdict=verdict) == doubt
    assert doubt_of(Score(name="unknown", value=None), verdict=verdict) == doubt


def test_a_score_that_did_not_decide_does_not_count():
    # RARR found nothing that decides: how much of the wording it kept says nothing of the answer.
    scores = (Score(name="contradicted_share", value=None), Score(name="preservation", value=1.0))
    assert doubt_of(*scores, verdict="not_enough") == 0.5
    assert doubt_of(*scores, verdict="unchecked") is None


def test_the_last_verdict_on_the_whole_counts_and_others_are_pieces():
    found = outcome_of(
        trace(
            judged(Score(name="early", value=0.1, bad="above")),
            judged(Score(name="s", value=0.7), what="sentence", draft=1, label="judge"),
            judged(
                Score(name="p", value=0.4, bad="above"), Score(name="q", value=None),
                verdict="supported",
            ),
        ),
        "drad",
        MODELS,
    )  # fmt: skip
    assert found is not None
    assert (found.verdict, found.scores, found.doubt) == ("supported", {"p": 0.4}, 0.4)
    (piece,) = found.pieces
    assert (piece.what, piece.draft, piece.label, piece.scores) == (
        "sentence", 1, "judge", {"s": 0.7},
    )  # fmt: skip
    assert piece.doubt == pytest.approx(0.3)
    assert (found.answer, found.original, found.short) == ("Delft", "Paris", "Delft")
    assert found.flags == ("unverified",)


def entity(text: str, start: int, p: float, h: float, verdict: Any, *, repeats: bool = False):
    reading = EntityReading(
        text=text, start=start, end=start + len(text), label="PLACE", first=0, stop=1, sentence=0,
        sentence_start=0, probabilities=(p,), entropies=(h,), repeats=repeats,
    )  # fmt: skip
    scores = (
        Score(name="entity_probability", value=p),
        Score(name="entity_entropy", value=h, bad="above", high=None),
    )
    known = {"text": text, "start": start, "end": start + len(text), "detail": reading}
    return judged(*scores, verdict=verdict, what="entity", **known)


@pytest.mark.parametrize(
    ("settings", "pieces", "whole"),
    [
        # By P, 1 - 0.5 and 1 - 0.95; the entropy that flags the second entity is not mixed in.
        ({}, [(0.5,), (0.05,)], (0.5,)),
        ({"ranked_by": "entropy"}, [(0.2,), (3.5,)], (3.5,)),
        ({"ranked_by": "either"}, [(0.5, 0.2), (0.05, 3.5)], (0.5, 3.5)),
        # An entity that only repeats the question counts for nothing.
        ({"skip_repeats": True}, [(), (0.05,)], (0.05,)),
    ],
)
def test_entities_and_texts_are_ranked_by_one_score(
    settings: dict[str, Any], pieces: list[tuple[float, ...]], whole: tuple[float, ...]
):
    decided = Score(name="entity_entropy", value=3.5, bad="above", high=None, flagged=True)
    events = [
        entity("Delft", 0, 0.5, 0.2, "confident", repeats=True),
        entity("Paris", 10, 0.95, 3.5, "doubtful"),
        judged(decided),
    ]
    started = MethodStarted(settings=settings)
    begun = {"method": "drad", "name": "method", "detail": started}
    found = outcome_of(trace(*events, begun=begun), "drad", MODELS)
    assert found is not None
    ranked = [tuple(rank.doubt for rank in piece.ranks) for piece in found.pieces]
    assert ranked == [pytest.approx(one) for one in pieces]
    assert [rank.doubt for rank in found.ranks] == pytest.approx(whole)
    assert found.doubt == pytest.approx(whole[0])
    # What is shown is still what decided.
    assert found.scores == {"entity_entropy": 3.5}


def test_cost_is_that_of_the_method_alone_and_paid_what_was_asked():
    events = [
        call("a", cached=True),
        # What it asks twice itself it would find in its own cache.
        call("a", cached=True),
        call("b"),
        call("c", role="judge_1"),
        call("d", role="embedder"),
        # An attempt that failed, and the one that did not.
        call("e", generations=(), error=BROKEN),
        call("e"),
        Retrieved(**at(4), retriever="bm25", query="q", k=1, started=3.0, passages=()),
    ]
    found = outcome_of(trace(*events), "drad", MODELS)
    assert found is not None
    # Alone: a, b, e twice; the judge once. Four replies, c's too, read 3 and wrote 1 each.
    assert (found.cost.calls, found.cost.judge_calls, found.cost.retrievals) == (4, 1, 1)
    assert (found.cost.prompt_tokens, found.cost.tokens) == (12, 4)
    # a, b and e: three times 3 x 1 + 1 x 2; the judge has no price.
    assert found.cost.money == {"USD": pytest.approx(15.0)}
    # Really asked: all but a.
    assert (found.paid.calls, found.paid.judge_calls) == (3, 1)
    assert found.paid.money == {"USD": pytest.approx(10.0)}
    # From the start of the method to its end.
    assert found.cost.seconds == 8.0
    assert paid_in(trace(*events), MODELS) == found.paid


def test_the_overlap_is_with_all_passages_that_were_found():
    def passage(number: int, text: str) -> Passage:
        return Passage(id=str(number), title="", text=text, source="s", rank=number)

    answer = ANSWER.model_copy(update={"text": "Ada was born in Delft, Delft."})
    ended = {"outcome": "ok", "answer": answer}
    first = (passage(1, "Ada lived in Delft."), passage(2, "Delft is a town."))
    searches = [
        Retrieved(**at(seq), retriever="bm25", query="q", k=2, started=3.0, passages=passages)
        # What both searches find counts once.
        for seq, passages in ((4, first), (5, first[:1]))
    ]
    found = outcome_of(trace(*searches, method_end=ended), "drad", MODELS)
    assert found is not None
    # Of six words "ada", "in" and both "delft" are there.
    assert found.overlap == pytest.approx(4 / 6)
    once = outcome_of(trace(searches[1], method_end=ended), "drad", MODELS)
    assert once is not None
    assert once.overlap == pytest.approx(3 / 6)
    nothing = outcome_of(trace(), "drad", MODELS)
    assert nothing is not None
    assert nothing.overlap is None


def test_reading_scores_costs_no_money():
    scored = call("a", request=ScoreRequest(messages=(), text="x"))
    found = outcome_of(trace(scored), "drad", MODELS)
    assert found is not None
    assert found.cost.calls == 1
    assert found.cost.money == {}


def test_costs_add_up_by_currency():
    one = Cost(calls=1, seconds=2, money={"USD": 1.5})
    other = Cost(calls=2, judge_calls=1, money={"CNY": 3.0, "USD": 0.5})
    both = one + other
    assert (both.calls, both.judge_calls, both.seconds) == (3, 1, 2)
    assert both.money == {"CNY": 3.0, "USD": 2.0}


def test_what_was_stopped_has_no_outcome_but_a_price():
    cancelled = {"outcome": "cancelled", "error": BROKEN}
    end = RunCancelled(**at(10, "s0"), reason="interrupted")
    stopped = trace(call("a"), end=end, method_end=cancelled)
    assert outcome_of(stopped, "drad", MODELS) is None
    assert paid_in(stopped, MODELS).calls == 1
    # The process died: nobody ended the method.
    died = Trace(events=(*stopped.events[:3], end))
    assert outcome_of(died, "drad", MODELS) is None
    assert paid_in(died, MODELS).calls == 1


def test_a_method_that_failed_keeps_what_it_had():
    early = {"outcome": "failed", "error": BROKEN, "answer": ANSWER}
    found = outcome_of(trace(method_end=early), "drad", MODELS)
    assert found is not None
    assert (found.error, found.answer) == ("timeout", "Delft")
    bare = {"outcome": "failed", "error": BROKEN}
    end = RunFailed(**at(10, "s0"), error=BROKEN)
    found = outcome_of(trace(end=end, method_end=bare), "drad", MODELS)
    assert found is not None
    assert (found.error, found.answer, found.doubt) == ("timeout", "", None)


def test_a_run_that_failed_before_its_method_began_is_an_error():
    end = RunFailed(**at(1, "s0"), error=BROKEN)
    found = outcome_of(Trace(events=(examples.started("r"), end)), "drad", MODELS)
    assert found is not None
    assert found.error == "timeout"
    assert outcome_of(Trace(events=(examples.started("r"),)), "drad", MODELS) is None

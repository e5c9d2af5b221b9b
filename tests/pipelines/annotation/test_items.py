"""Items of recorded runs and of labelled data."""

from __future__ import annotations

import pytest

from pipelines.annotation.items import drawn, items_of_data, items_of_evaluation, items_of_run
from pipelines.annotation.types import TASKS, AnswerLabel, SentenceLabel, SpanLabel
from pipelines.base import UnsupportedSpan
from pipelines.errors import InvalidInputError
from pipelines.evaluation.plan import Item, LabelledSpan
from pipelines.run.events import Judged, ModelCalled, Score, SpanEnded, Trace
from tests.pipelines.annotation.bench import item, recorded
from tests.scripted.recorded import Record


def test_a_recorded_run_offers_items_of_every_task():
    found = items_of_run(recorded(), TASKS)
    tasks = {one.body.task for one in found}
    assert {"answer", "span", "sentence", "concept"} <= tasks
    assert len({one.key for one in found}) == len(found)
    assert [one.key for one in items_of_run(recorded(), TASKS)] == [one.key for one in found]
    for one in found:
        assert one.body.place.run == recorded().header.run
        assert one.body.question == "Where was Bill Clinton born and raised?"


def test_a_concept_has_its_claim_and_evidence_and_what_each_method_said_is_hidden():
    found = {
        one.body.piece: one for one in items_of_run(recorded(), ("concept",)) if one.body.statement
    }
    city = found["New York City"]
    # EVER judged it as a concept, DRAD as an entity.
    assert {one.method for one in city.hidden.verdicts} == {"drad", "ever"}
    assert city.body.evidence
    assert city.body.place.span
    assert "supported" not in city.body.model_dump_json()


def test_a_shared_draft_is_one_answer_with_the_verdict_of_every_method():
    answers = items_of_run(recorded(), ("answer",))
    draft = next(one for one in answers if "New York City" in one.body.text)
    said = {one.method: one for one in draft.hidden.verdicts}
    assert {"drad", "ever", "slm"} <= said.keys()
    # P(E) = 0.45, flagged below its threshold; turned, so that a higher doubt is worse.
    assert said["drad"].doubt == pytest.approx(1 - 0.45030474161241923)


def test_the_value_is_that_of_the_score_that_decided_also_where_it_has_none():
    trace = recorded()
    events = []
    for event in trace.events:
        if isinstance(event, Judged) and event.scores:
            first = Score(name=event.deciding.name, value=None, bad=event.deciding.bad)
            second = Score(name="kept", value=0.25, bad="below")
            event = event.model_copy(update={"scores": (first, second)})
        events.append(event)
    found = items_of_run(Trace(events=tuple(events)), TASKS)
    verdicts = [one for item in found for one in (*item.hidden.verdicts, *item.hidden.spans)]
    assert verdicts
    # The doubts are those of the verdicts, and no other score stands beside them.
    assert {one.value for one in verdicts} == {None}
    assert {one.doubt for one in verdicts} <= {None, 0.0, 0.5, 1.0}
    assert "kept" not in {one.score for one in verdicts}


def test_a_doubted_piece_has_the_words_that_its_judges_do_not_find_supported():
    trace = recorded()
    first_word = (UnsupportedSpan(start=0, end=3, doubt=0.9),)
    events = [
        event.model_copy(
            update={"choice": event.choice.model_copy(update={"unsupported": first_word})}
        )
        if isinstance(event, ModelCalled) and event.choice is not None
        else event
        for event in trace.events
    ]
    (before, *_) = items_of_run(trace, ("span",))
    (after, *_) = items_of_run(Trace(events=tuple(events)), ("span",))
    assert not any(one.words for one in before.hidden.spans)
    found = [one for one in after.hidden.spans if one.words]
    assert {one.what for one in found} == {"sentence"}
    for one in found:
        assert one.at is not None
        assert one.words == ((one.at[0], one.at[0] + 3),)
    # Nothing else changes.
    plain = [one.model_copy(update={"words": ()}) for one in after.hidden.spans]
    assert plain == list(before.hidden.spans)


def test_the_systems_of_an_evaluation_keep_their_names():
    trace = recorded()
    rows = [(trace, "e", "q1", "SLM, small"), (trace, "e", "q1", "SLM, large")]
    found = items_of_evaluation(rows, ("answer",))
    assert len({one.key for one in found}) == len(found)
    names = {verdict.method for one in found for verdict in one.hidden.verdicts}
    assert names == {"SLM, small", "SLM, large"}
    assert {one.body.place.record for one in found} == {"q1"}


def test_labelled_data_become_items_with_their_labels():
    text = "Ada was born in Delft. She wrote."
    whole = Item(
        id="a",
        text=text,
        hallucinated=True,
        sentences=(
            LabelledSpan(start=0, end=22, label="major"),
            LabelledSpan(start=23, end=33, label="accurate"),
        ),
        spans=(LabelledSpan(start=16, end=21, label="major", kind="Evident Conflict"),),
    )
    clean = Item(id="b", text=text, hallucinated=False)
    found = items_of_data([whole, clean, Item(id="c", question="Only asked?")], TASKS, "set")
    assert [label for one, label in found if one.body.place.record == "a"] == [
        SentenceLabel(verdict="major"),
        SentenceLabel(verdict="accurate"),
        SpanLabel.model_validate({"spans": [{"start": 16, "end": 21, "kind": "contradiction"}]}),
        AnswerLabel(verdict="wrong"),
    ]
    # A text that was found free of errors has no span.
    assert [label for one, label in found if one.body.place.record == "b"] == [
        SpanLabel(),
        AnswerLabel(verdict="correct"),
    ]
    assert len({one.key for one, _ in found}) == 6


def test_texts_that_are_too_long_are_refused_by_name_and_empty_pieces_left_out():
    long = Item(id="long one", text="a" * 20_001, hallucinated=True)
    with pytest.raises(InvalidInputError, match="the record long one: text"):
        items_of_data([long], TASKS)
    empty = LabelledSpan(start=1, end=1, label="major")
    some = LabelledSpan(start=0, end=3, label="minor")
    item = Item(id="a", text="Ada.", sentences=(empty, some), spans=(empty,))
    found = items_of_data([item], TASKS)
    assert [label for _, label in found] == [SentenceLabel(verdict="minor"), SpanLabel()]
    events = [
        event.model_copy(
            update={"answer": event.answer.model_copy(update={"original": "a" * 20_001})}
        )
        if isinstance(event, SpanEnded) and event.answer is not None
        else event
        for event in recorded().events
    ]
    with pytest.raises(InvalidInputError, match="No items can be made of the run"):
        items_of_run(Trace(events=tuple(events)), TASKS)


def test_items_drawn_at_random_know_their_probability():
    items = [item("answer", number) for number in range(10)]
    some = drawn(items, 4, seed=1)
    assert [one.probability for one in some] == [0.4] * 4
    assert len({one.key for one in some}) == 4
    assert drawn(items, 4, seed=1) == some
    assert drawn(items, 4, seed=2) != some
    assert [one.probability for one in drawn(items, 99, seed=1)] == [1.0] * 10


def test_a_refusal_is_no_text_to_rate_piece_by_piece():
    record = Record("direct", "rag")
    refused = "I'm sorry, but I cannot answer that. Please ask somebody else."
    for name, text in (("direct", refused), ("rag", "Ada was born in London. I don't know.")):
        record.begin(name).draft(name, text).end(name, text, text)
    found = items_of_run(Trace(events=tuple(record.events)), TASKS)
    assert [one.body.task for one in found if one.body.text == refused] == ["answer"]
    pieces = [one.body.piece for one in found if one.body.task == "sentence"]
    assert pieces == ["Ada was born in London."]

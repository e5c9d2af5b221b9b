"""Which words of a judged text the judges behind the verdict do not find supported."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.base import Choice, Message, UnsupportedSpan
from pipelines.models.base import ChoiceRequest, Claim, Option
from pipelines.run.events import Judged, ModelCalled, Score, Verdict
from pipelines.run.view import MethodView, StepView, UnsupportedWords

TEXT = "She died in Paris in 1950."
PARIS, YEAR = (12, 17), (21, 25)


def called(span: str, *found: tuple[int, int], text: str = TEXT, **fields: Any) -> ModelCalled:
    """A judge's reply about `text`, whose pieces `found` it doubts by 0.9."""
    request = ChoiceRequest(
        messages=(Message(role="user", content="Is it so?"),),
        options=(Option(label="yes", spellings=("yes",)),),
        claim=Claim(statement=text, evidence=("She died in Rome.",)),
    )
    choice = Choice(
        probabilities={"yes": 0.2, "no": 0.8},
        other_mass=0.0,
        source="judge",
        unsupported=tuple(UnsupportedSpan(start=a, end=b, doubt=0.9) for a, b in found),
    )
    return ModelCalled.model_validate(
        {
            "run": "r",
            "span": span,
            "parent": "check",
            "seq": 0,
            "time": 0.0,
            "role": "judge_1",
            "model": "judge",
            "request": request,
            "attempt": 1,
            "started": 0.0,
            "choice": choice,
            **fields,
        }
    )


def method(*calls: ModelCalled) -> MethodView:
    """Steps "one" and "two" in a step "check", with these calls."""
    steps = [StepView(span="check", name="ask_judges", started=0.0, parent="slm")]
    steps += [
        StepView(span=name, name="judge_sentence", started=0.0, parent="check")
        for name in ("one", "two")
    ]
    return MethodView(name="slm", span="slm", started=0.0, steps=tuple(steps), calls=calls)


def judged(verdict: Verdict = "doubtful", span: str = "check", *behind: str) -> Judged:
    score = Score(name="slm_sentence", value=0.2, behind=behind)
    return Judged(
        run="r", span=span, parent="slm", seq=1, time=1.0, what="sentence", text=TEXT, start=0,
        end=len(TEXT), verdict=verdict, scores=(score,),
    )  # fmt: skip


def places(found: tuple[UnsupportedSpan, ...]) -> list[tuple[int, int]]:
    return [(one.start, one.end) for one in found]


def test_they_are_those_of_the_call_below_the_step_of_the_verdict():
    words = UnsupportedWords(method(called("one", PARIS, YEAR)))
    found = words.of(judged())
    assert [TEXT[one.start : one.end] for one in found] == ["Paris", "1950"]
    assert [one.doubt for one in found] == [0.9, 0.9]


@pytest.mark.parametrize("verdict", ["supported", "confident", "unchecked"])
def test_a_sentence_that_is_not_doubted_has_none(verdict: Verdict):
    assert UnsupportedWords(method(called("one", PARIS))).of(judged(verdict)) == ()


def test_a_sentence_that_only_a_score_doubts_has_them():
    words = UnsupportedWords(method(called("one", PARIS)))
    event = judged("supported")
    flagged = event.scores[0].model_copy(update={"name": "entailment", "flagged": True})
    aligned = event.model_copy(update={"scores": (*event.scores, flagged)})
    assert places(words.of(aligned)) == [PARIS]


def test_of_several_judges_each_has_to_doubt_a_word():
    both = UnsupportedWords(method(called("one", PARIS, YEAR), called("two", (0, 17))))
    assert places(both.of(judged())) == [PARIS]
    neither = UnsupportedWords(method(called("one", PARIS), called("two")))
    assert neither.of(judged()) == ()


def test_a_judge_that_does_not_look_at_words_has_no_say():
    silent = called("two", choice=Choice(probabilities={"yes": 0.1}, other_mass=0, source="judge"))
    assert places(UnsupportedWords(method(called("one", PARIS), silent)).of(judged())) == [PARIS]
    assert UnsupportedWords(method(silent)).of(judged()) == ()


def test_only_calls_behind_the_verdict_count():
    words = UnsupportedWords(method(called("one", PARIS), called("two", YEAR)))
    assert places(words.of(judged("doubtful", "one"))) == [PARIS]
    assert places(words.of(judged("doubtful", "elsewhere", "two"))) == [YEAR]
    assert words.of(judged("doubtful", "elsewhere")) == ()


def test_places_are_those_in_the_text_whatever_space_is_around_it():
    asked = UnsupportedWords(method(called("one", (13, 18), text=f" {TEXT}")))
    assert places(asked.of(judged())) == [PARIS]
    assert places(asked.of(judged(), f"  {TEXT} ")) == [(14, 19)]
    assert asked.of(judged(), "She died in Rome.") == ()


def test_numbers_from_elsewhere_stay_within_the_text():
    hostile = called("one", (20, 10**12), (10**9, 10**12), (5, 3))
    assert places(UnsupportedWords(method(hostile)).of(judged())) == [(20, len(TEXT))]
    # Steps that contain each other lead nowhere.
    loop = StepView(span="a", name="judge_sentence", started=0.0, parent="a")
    calls = (called("a", PARIS),)
    view = MethodView(name="slm", span="slm", started=0.0, steps=(loop,), calls=calls)
    assert UnsupportedWords(view).of(judged()) == ()

"""Samples: drawn one by one and numbered, taken from what is given, or left out."""

from __future__ import annotations

import pytest

from pipelines.base import Answer, Generation
from pipelines.errors import VeriscopeError, failure
from pipelines.methods.base import Method, Question, Settings
from pipelines.methods.baselines.shared import sampled_answers
from pipelines.methods.direct import direct_messages
from pipelines.models.base import GenerationRequest
from pipelines.run.events import GivenAnswer
from pipelines.run.scope import Scope
from tests.scripted.bench import Outcome, PieceModel, Reply, run_method

QUESTION = "Where was Bill Clinton born?"


class Sampler(Method[Settings]):
    """Draws three samples and answers with all of them."""

    name = "sampler"
    settings_type = Settings

    async def run(self, question: Question, scope: Scope, settings: Settings) -> Answer:
        found = await sampled_answers(scope, direct_messages(question), 3, 32)
        text = "|".join(found.texts)
        return Answer(text=text, original=text, flags=found.flags)


async def drawn(*replies: Reply | VeriscopeError, given: GivenAnswer | None = None) -> Outcome:
    def answer(request: GenerationRequest) -> Reply:
        assert request.sample is not None
        reply = replies[request.sample]
        if isinstance(reply, VeriscopeError):
            raise reply
        return reply

    return await run_method(Sampler(), QUESTION, PieceModel(answer), given=given)


async def test_each_sample_is_a_numbered_call_at_temperature_one():
    outcome = await drawn("In Hope.", "In York.", "In Rome.")
    assert outcome.answer.text == "In Hope.|In York.|In Rome."
    assert outcome.answer.flags == ()
    requests = [call.request for call in outcome.calls]
    asked = [
        (one.sample, one.n, one.temperature, one.max_tokens, one.logprobs)
        for one in requests
        if isinstance(one, GenerationRequest)
    ]
    assert sorted(asked) == [(n, 1, 1.0, 32, True) for n in range(3)]
    assert outcome.steps == ["method", "sample", "sample", "sample", "sample"]


async def test_what_is_no_sample_is_left_out_and_said():
    filtered = Generation(text="In", finish_reason="filter")
    outcome = await drawn("<think>Hope?</think> In Hope.", "", filtered)
    assert outcome.answer.text == "In Hope."
    assert outcome.answer.flags == ("fewer_samples",)


async def test_a_draw_that_fails_is_left_out():
    outcome = await drawn("In Hope.", failure("asking.no_scores", name="pieces"), "In Rome.")
    assert outcome.answer.text == "In Hope.|In Rome."


async def test_the_first_error_is_raised_where_every_draw_fails():
    error = failure("asking.no_scores", name="pieces")
    outcome = await drawn(error, error, error)
    assert outcome.final is None


@pytest.mark.parametrize(
    ("samples", "text", "flags"),
    [
        (("A.", "B.", "C.", "D."), "A.|B.|C.", ()),
        (("A.", " "), "A.", ("fewer_samples",)),
    ],
)
async def test_given_samples_are_taken_and_nothing_is_drawn(
    samples: tuple[str, ...], text: str, flags: tuple[str, ...]
):
    outcome = await drawn(given=GivenAnswer(text="In Hope.", samples=samples))
    assert outcome.calls == []
    assert (outcome.answer.text, outcome.answer.flags) == (text, flags)


async def test_samples_for_a_given_answer_without_any_are_of_the_main_model():
    outcome = await drawn("A.", "B.", "C.", given=GivenAnswer(text="In Hope."))
    assert outcome.answer.text == "A.|B.|C."
    assert outcome.answer.flags == ("samples_of_main",)

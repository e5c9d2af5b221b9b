"""A real `transformers serve`: an OpenAI-compatible server without log-probabilities."""

from __future__ import annotations

import pytest

from pipelines.base import Message
from pipelines.errors import RefusedRequestError
from pipelines.models.base import ChoiceRequest, Delta, Option
from pipelines.models.openai import OpenAIModel
from pipelines.models.probe import probe
from tests.pipelines.models.conftest import TransformersServer
from tests.scripted.wire import asks

BORN = "Where was Bill Clinton born?"


@pytest.fixture
def model(transformers_server: TransformersServer) -> OpenAIModel:
    return OpenAIModel("Served", transformers_server.model, base_url=transformers_server.url)


async def test_streamed_and_whole_replies_are_the_same(model: OpenAIModel):
    deltas: list[Delta] = []
    request = asks(BORN, max_tokens=12)
    (streamed,) = await model.generate(request, deltas.append)
    (whole,) = await model.generate(request)
    assert streamed == whole
    assert whole.tokens is None
    assert whole.usage.completion_tokens > 0
    assert "".join(delta.text for delta in deltas) == whole.text
    assert len(deltas) > 1


async def test_log_probabilities_are_done_without(model: OpenAIModel):
    (reply,) = await model.generate(asks(BORN, logprobs=True, max_tokens=4))
    assert reply.text
    assert reply.tokens is None


async def test_several_texts_are_asked_for_one_by_one(model: OpenAIModel):
    replies = await model.generate(asks(BORN, n=2, temperature=1.0, max_tokens=4))
    assert len(replies) == 2


async def test_a_choice_is_read_from_the_text(model: OpenAIModel):
    request = ChoiceRequest(
        messages=(Message(role="user", content="Is Paris in France? Answer YES or NO."),),
        options=(
            Option(label="yes", spellings=("YES", "Yes")),
            Option(label="no", spellings=("NO", "No")),
        ),
    )
    choice = await model.choose(request)
    assert choice.source == "text"
    assert sum(choice.probabilities.values()) + choice.other_mass == 1.0


async def test_the_watcher_ends_the_text(model: OpenAIModel):
    (reply,) = await model.generate(asks(BORN, max_tokens=64), lambda delta: True)
    assert reply.finish_reason == "watcher"
    assert len(reply.text) < 40


async def test_another_model_is_refused(transformers_server: TransformersServer):
    other = OpenAIModel("Other", "some/other", base_url=transformers_server.url)
    with pytest.raises(RefusedRequestError, match="pinned"):
        await other.generate(asks(BORN))


async def test_the_check_finds_what_it_cannot_do(model: OpenAIModel):
    report = await probe(model)
    found = report.capabilities
    assert not found.logprobs
    assert found.top_logprobs == 0
    assert not found.structured_output
    assert not found.prefill
    assert found.streaming
    assert found.languages == {"en"}
    assert "log-probabilities" in next(one for one in report.findings if one.key == "logprobs").note

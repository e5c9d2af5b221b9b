"""Where DashScope is asked: addresses as they are pasted, and the call for models that see."""

from __future__ import annotations

import pytest

from pipelines.base import Usage
from pipelines.errors import RefusedRequestError
from pipelines.models.base import Delta
from tests.scripted.dashscope_wire import (
    KEY,
    NO_FALSE,
    NO_WHOLE,
    PATH,
    answer,
    choice,
    model,
    part,
    problem,
    refuses,
    streams,
)
from tests.scripted.wire import Handler, Respond, Wire, asks, entry, says

HELLO = says(answer(choice("Hi")))
MULTIMODAL_PATH = "/v1/services/aigc/multimodal-generation/generation"


@pytest.mark.parametrize("rest", ["", "/", "/services/aigc/text-generation/generation"])
async def test_a_pasted_endpoint_is_cut_to_its_base(wire: Wire, rest: str):
    wire.answers(HELLO)
    await model(wire, base_url=f" {wire.url}{rest} ").generate(asks())
    assert wire.seen[0].path == "/v1/services/aigc/text-generation/generation"


async def test_the_address_of_the_services_other_protocol_is_understood(wire: Wire):
    wire.answers(HELLO)
    other = wire.url.removesuffix("/v1") + "/compatible-mode/v1"
    await model(wire, base_url=other).generate(asks())
    assert wire.seen[0].path == "/api/v1/services/aigc/text-generation/generation"


# The service answers each model in one place only, and the other with these words.
WRONG_PLACE = problem(
    "InvalidParameter",
    "url error, please check url! For details, see: https://help.aliyun.com/error-code#error-url",
)


def only_at(path: str, *replies: Respond) -> Respond:
    """The replies in order for requests to `path`, the service's refusal for all others."""
    left = list(replies)

    def respond(handler: Handler) -> None:
        if handler.path != path:
            says(WRONG_PLACE, 400)(handler)
        else:
            (left.pop(0) if len(left) > 1 else left[0])(handler)

    return respond


def places(wire: Wire) -> list[str]:
    return [seen.path.split("/")[-2] for seen in wire.seen]


@pytest.mark.parametrize("name", ["qwen3.5-plus", "qwen3-vl-plus", "qwen4-max", "qwen3-omni"])
async def test_a_model_that_sees_is_asked_through_the_multimodal_call(wire: Wire, name: str):
    parts = [{"text": "Hi"}, {"text": " you"}]
    entries = [entry("Hi", 0.5), entry(" you", 0.25)]
    wire.answers(only_at(MULTIMODAL_PATH, says(answer(choice(parts, entries)))))
    (reply,) = await model(wire, model=name).generate(asks(logprobs=True, prefix="Oh."))
    assert reply.text == "Hi you"
    assert reply.tokens is not None
    assert [token.probability for token in reply.tokens] == pytest.approx([0.5, 0.25])
    assert reply.usage == Usage(prompt_tokens=7, completion_tokens=3)
    (seen,) = wire.seen
    assert seen.headers["Authorization"] == f"Bearer {KEY}"
    assert seen.body["input"]["messages"] == [
        {"role": "user", "content": [{"text": "Hello?"}]},
        {"role": "assistant", "content": [{"text": "Oh."}], "partial": True},
    ]
    assert seen.body["parameters"]["enable_thinking"] is False


async def test_a_watched_reply_of_the_multimodal_call_is_streamed(wire: Wire):
    wire.answers(
        only_at(
            MULTIMODAL_PATH,
            streams(
                part([], reasoning_content="Hm"),
                part([{"text": "Hi"}], [entry("Hi", 0.5)]),
                part([{"text": " you"}], [entry(" you", 0.25)]),
                answer(choice([], finish="stop"), used=(4, 2)),
            ),
        )
    )
    deltas: list[Delta] = []
    (reply,) = await model(wire, model="qwen3.6-plus").generate(asks(logprobs=True), deltas.append)
    assert [delta.text for delta in deltas] == ["Hi", " you"]
    assert reply.usage == Usage(prompt_tokens=4, completion_tokens=2)
    assert wire.seen[0].headers["X-DashScope-SSE"] == "enable"


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize(
    ("name", "path", "first", "then"),
    [
        ("new-model", MULTIMODAL_PATH, "text-generation", "multimodal-generation"),
        ("qwen3.5-text", PATH, "multimodal-generation", "text-generation"),
    ],
)
async def test_a_wrong_guess_is_corrected_by_the_service_and_remembered(
    wire: Wire, watched: bool, name: str, path: str, first: str, then: str
):
    reply = streams(part("Hi"), part("", finish="stop")) if watched else HELLO
    wire.answers(only_at(path, reply))
    used = model(wire, model=name)
    watch = (lambda delta: None) if watched else None
    for _ in range(2):
        (written,) = await used.generate(asks(), watch)
        assert written.text == "Hi"
    assert places(wire) == [first, then, then]


async def test_a_model_that_neither_call_accepts_is_told(wire: Wire):
    wire.answers(says(WRONG_PLACE, 400))
    with pytest.raises(RefusedRequestError, match="does not write texts"):
        await model(wire).generate(asks())
    assert places(wire) == ["text-generation", "multimodal-generation"]


async def test_a_seeing_model_that_always_thinks_and_streams(wire: Wire):
    wire.answers(
        only_at(
            MULTIMODAL_PATH,
            refuses("InvalidParameter", NO_FALSE),
            refuses("InvalidParameter", NO_WHOLE),
            streams(part([], reasoning_content="Hm"), part([{"text": "Yes"}], finish="stop")),
        )
    )
    (reply,) = await model(wire, model="qwen3.8-max").generate(asks())
    assert reply.text == "Yes"

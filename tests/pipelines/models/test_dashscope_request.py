"""What DashScope is sent, and what is left out when a model objects."""

from __future__ import annotations

from typing import Any

import pytest

from pipelines.errors import RefusedRequestError
from pipelines.models.base import Capabilities
from pipelines.models.dashscope_model import DashScopeModel
from pipelines.models.dashscope_request import call_fields, objections, wants_stream
from tests.pipelines.models.dashscope_wire import (
    answer,
    choice,
    part,
    refuses,
    refuses_to_stream,
    streams,
)
from tests.pipelines.models.wire import Wire, asks, says

SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
NO_FALSE = "The value of the enable_thinking parameter is restricted to True."
NO_WHOLE = "parameter.enable_thinking must be set to false for non-streaming calls"
HELLO = says(answer(choice("Hi")))


def model(wire: Wire, **options: Any) -> DashScopeModel:
    fields: dict[str, Any] = {"name": "M", "model": "m", "base_url": wire.url, "api_key": "sk-1"}
    return DashScopeModel(**fields | options)


def sent(wire: Wire) -> list[dict[str, Any]]:
    return [seen.body["parameters"] for seen in wire.seen]


def fields_of(refused: tuple[str, ...] = (), prefix: str = "", **request: Any) -> dict[str, Any]:
    return call_fields(
        asks(prefix=prefix, **request),
        model="m",
        n=request.get("n", 1),
        index=0,
        capabilities=Capabilities(top_logprobs=5, structured_output=True),
        continues=True,
        thinking=False,
        refused=refused,
    )


def test_a_greedy_request_has_no_seed_and_a_draw_has():
    assert "seed" not in fields_of()
    assert 0 <= fields_of(temperature=1.0)["seed"] < 2**31


def test_no_more_alternatives_are_asked_for_than_there_are():
    assert fields_of(logprobs=True, top_k=20)["top_logprobs"] == 5
    assert fields_of(logprobs=True, top_k=0)["top_logprobs"] == 1


def test_a_begun_answer_is_marked_as_one_to_go_on_from():
    assert fields_of(prefix="In ")["messages"][-1] == {
        "role": "assistant",
        "content": "In ",
        "partial": True,
    }
    assert all("partial" not in turn for turn in fields_of()["messages"])
    assert "partial" not in fields_of(("partial",), prefix="In ")["messages"][-1]


def test_a_schema_constrains_the_output():
    form = fields_of(json_schema=SCHEMA)["response_format"]
    assert form["type"] == "json_schema"
    assert form["json_schema"] == {"name": "reply", "schema": SCHEMA, "strict": True}


@pytest.mark.parametrize(
    ("words", "dropped"),
    [
        (NO_FALSE, {"enable_thinking"}),
        ("parameter.n must be 1 when tools are set", {"n"}),
        ("'n' is out of range", {"n"}),
        ("not n times", set()),
        ("seed is not supported", {"seed"}),
        ("response_format is not supported for this model", {"response_format"}),
        ("partial mode is not supported", {"partial"}),
        ("logprobs is not supported", set()),
        ("max_tokens is out of range", set()),
        ("", set()),
    ],
)
def test_what_a_refusal_names(words: str, dropped: set[str]):
    fields = fields_of(n=2, temperature=1.0, json_schema=SCHEMA, prefix="In ")
    assert objections(words, fields) == dropped


def test_a_refusal_of_what_was_not_sent_names_nothing():
    assert objections("partial and seed are not supported", fields_of()) == set()


@pytest.mark.parametrize(
    ("words", "wants"),
    [
        (NO_WHOLE, True),
        ("This model only support stream mode, please enable the stream parameter.", True),
        ("current user api does not support http call", True),
        ("the stream broke", False),
    ],
)
def test_which_refusals_want_a_stream(words: str, wants: bool):
    assert wants_stream(words) is wants


async def test_a_begun_answer_is_continued(wire: Wire):
    wire.answers(says(answer(choice(" Arkansas"))))
    (reply,) = await model(wire).generate(asks("Where?", "In Hope,"))
    assert reply.text == " Arkansas"
    assert wire.seen[0].body["input"]["messages"][-1]["partial"] is True


async def test_a_model_that_always_thinks_and_streams(wire: Wire):
    wire.answers(
        refuses("InvalidParameter", NO_FALSE),
        refuses("InvalidParameter", NO_WHOLE),
        streams(part("", reasoning_content="Hm"), part("Yes", finish="stop")),
    )
    used = model(wire)
    (reply,) = await used.generate(asks())
    assert reply.text == "Yes"
    assert [one.get("enable_thinking") for one in sent(wire)] == [False, None, None]
    streamed = ["X-DashScope-SSE" in seen.headers for seen in wire.seen]
    assert streamed == [False, False, True]
    # It is known from then on.
    await used.generate(asks())
    assert len(wire.seen) == 4


async def test_a_stream_is_asked_for_again_too(wire: Wire):
    wire.answers(
        refuses_to_stream("InvalidParameter", NO_FALSE, 400),
        streams(part("Yes", finish="stop")),
    )
    seen: list[str] = []
    await model(wire).generate(asks(), lambda delta: seen.append(delta.text))
    assert seen == ["Yes"]


async def test_where_n_is_refused_each_text_is_asked_for_by_itself(wire: Wire):
    wire.answers(refuses("InvalidParameter", "parameter.n must be 1"), HELLO)
    replies = await model(wire).generate(asks(n=3, temperature=1.0))
    assert len(replies) == 3
    assert [one.get("n") for one in sent(wire)] == [3, None, None, None]
    assert len({one["seed"] for one in sent(wire)}) == 3


async def test_a_refused_schema_is_tried_again_next_time(wire: Wire):
    refused = refuses("InvalidParameter", "response_format: unsupported schema")
    wire.answers(refused, HELLO, HELLO)
    used = model(wire)
    await used.generate(asks(json_schema=SCHEMA))
    await used.generate(asks(json_schema=SCHEMA))
    assert ["response_format" in one for one in sent(wire)] == [True, False, True]


async def test_a_refusal_that_names_nothing_sent_is_final(wire: Wire):
    wire.answers(refuses("InvalidParameter", "seed is not supported"))
    with pytest.raises(RefusedRequestError, match="seed is not supported"):
        await model(wire).generate(asks())
    assert len(wire.seen) == 1


async def test_what_is_not_about_the_request_is_not_asked_again(wire: Wire):
    wire.answers(refuses("DataInspectionFailed", "enable_thinking"))
    with pytest.raises(RefusedRequestError):
        await model(wire).generate(asks())
    assert len(wire.seen) == 1


async def test_the_older_form_of_an_answer(wire: Wire):
    wire.answers(says({"output": {"text": "Hi", "finish_reason": "length"}, "usage": None}))
    (reply,) = await model(wire).generate(asks())
    assert (reply.text, reply.finish_reason) == ("Hi", "length")


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

"""DashScope's protocol as this project speaks it."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any, ClassVar, cast

import dashscope
import pytest

from pipelines.base import Message, Usage
from pipelines.errors import CapabilityError, RefusedRequestError
from pipelines.models.base import ChoiceRequest, Concession, Delta, Option
from pipelines.models.dashscope_model import DashScopeModel
from pipelines.models.dialects import RefusalError, form_objected_to, objections, spoken
from tests.scripted.dashscope_wire import (
    KEY,
    NO_FALSE,
    NO_WHOLE,
    PATH,
    answer,
    choice,
    model,
    part,
    refuses,
    refuses_to_stream,
    streams,
    streams_then_waits,
)
from tests.scripted.wire import (
    Handler,
    Seen,
    Wire,
    asks,
    entry,
    raw_entry,
    says,
    serve,
    texts_of_two_loops,
    waits,
)

HELLO = says(answer(choice("Hi")))


async def test_a_whole_reply(wire: Wire):
    wire.answers(says(answer(choice("Hi you", [entry("Hi", 0.5), entry(" you", 0.25)]))))
    (reply,) = await model(wire).generate(asks(logprobs=True, max_tokens=5, stop=("\n",)))
    assert (reply.text, reply.finish_reason) == ("Hi you", "stop")
    assert reply.tokens is not None
    assert [token.probability for token in reply.tokens] == pytest.approx([0.5, 0.25])
    assert reply.usage == Usage(prompt_tokens=7, completion_tokens=3)
    (seen,) = wire.seen
    assert seen.path == PATH
    assert seen.body["model"] == "m"
    assert seen.body["input"] == {"messages": [{"role": "user", "content": "Hello?"}]}
    assert seen.body["parameters"] == {
        "result_format": "message",
        "temperature": 0.0,
        "max_tokens": 5,
        "stop": ["\n"],
        "logprobs": True,
        "top_logprobs": 5,
        "enable_thinking": False,
    }
    assert "X-DashScope-SSE" not in seen.headers


async def test_a_watched_reply_is_streamed(wire: Wire):
    wire.answers(
        streams(
            part("Hi", [entry("Hi", 0.5)]),
            part(" you", [entry(" you", 0.25)]),
            answer(choice("", finish="length"), used=(4, 2)),
        )
    )
    deltas: list[Delta] = []
    (reply,) = await model(wire).generate(asks(logprobs=True), deltas.append)
    assert [delta.text for delta in deltas] == ["Hi", " you"]
    assert reply.tokens == tuple(token for delta in deltas for token in delta.tokens)
    assert reply.finish_reason == "length"
    assert reply.usage == Usage(prompt_tokens=4, completion_tokens=2)
    (seen,) = wire.seen
    assert seen.headers["X-DashScope-SSE"] == "enable"
    assert seen.body["parameters"]["incremental_output"] is True


async def test_a_token_has_its_place_and_its_entropy(wire: Wire):
    # 北 is the bytes e5 8c 97, here cut in two after the second one, and 京 is one token.
    pieces = [raw_entry(b"\xe5\x8c"), raw_entry(b"\x97"), entry("京", 0.5, ("海", 0.25))]
    wire.answers(
        streams(part("", pieces[:1]), part("北", pieces[1:2]), part("京", pieces[2:], "stop"))
    )
    deltas: list[Delta] = []
    (reply,) = await model(wire).generate(asks("首都？", logprobs=True), deltas.append)
    assert "".join(delta.text for delta in deltas) == reply.text == "北京"
    assert reply.tokens is not None
    assert [(token.start, token.end) for token in reply.tokens] == [(0, 1), (0, 1), (1, 2)]
    last = reply.tokens[-1]
    # 0.5 ln 2 + 0.25 ln 4 + 0.25 ln 4, the last quarter being the tail.
    assert last.entropy == pytest.approx(1.5 * math.log(2))
    assert (last.top_k, last.tail_mass) == (2, pytest.approx(0.25))
    assert [one.text for one in last.alternatives] == ["京", "海"]
    assert wire.seen[0].body["input"]["messages"][0]["content"] == "首都？"


async def test_the_watcher_hangs_up(wire: Wire):
    wire.answers(streams_then_waits(part("Hi"), part(" you")))
    (reply,) = await model(wire).generate(asks(), lambda delta: delta.text == " you")
    assert (reply.text, reply.finish_reason) == ("Hi you", "watcher")
    assert reply.usage == Usage(prompt_tokens=7, completion_tokens=3)
    assert await asyncio.to_thread(wire.gone.wait, 60)


async def test_a_fault_of_the_watcher_is_its_own_and_hangs_up(wire: Wire):
    def watch(delta: Delta) -> bool:
        raise KeyError("mine")

    wire.answers(streams_then_waits(part("Hi")))
    with pytest.raises(KeyError, match="mine"):
        await model(wire).generate(asks(), watch)
    assert await asyncio.to_thread(wire.gone.wait, 60)


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("begun", [False, True])
async def test_cancelling_closes_the_connection(wire: Wire, watched: bool, begun: bool):
    shown = asyncio.Event()
    wire.answers(streams_then_waits(part("Hi")) if begun and watched else waits)
    watch = (lambda delta: shown.set()) if watched else None
    call = asyncio.create_task(model(wire).generate(asks(), watch))
    assert await asyncio.to_thread(wire.arrived.wait, 60)
    if begun and watched:
        await shown.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(wire.gone.wait, 60)


async def test_reasoning_is_no_part_of_the_text(wire: Wire):
    wire.answers(says(answer(choice("Yes", reasoning_content="Let me see. Yes?"))))
    (reply,) = await model(wire).generate(asks())
    assert reply.text == "Yes"
    wire.answers(
        streams(
            part("", [entry("Hm", 0.5)], reasoning_content="Hm"),
            part("Yes", [entry("Yes", 0.5)], reasoning_content=""),
            part("", finish="stop"),
        )
    )
    deltas: list[Delta] = []
    (reply,) = await model(wire).generate(asks(logprobs=True), deltas.append)
    assert [delta.text for delta in deltas] == ["Yes"]
    assert [token.text for token in reply.tokens or ()] == ["Yes"]


YES_NO = ChoiceRequest(
    messages=(Message(role="user", content="Is it?"),),
    options=(Option(label="yes", spellings=("Yes", "是")), Option(label="no", spellings=("No",))),
)


async def test_a_choice_by_the_first_token(wire: Wire):
    first = entry("是", 0.5, ("Yes", 0.25), ("No", 0.125))
    wire.answers(says(answer(choice("是", [first], "length"))))
    chosen = await model(wire).choose(YES_NO)
    assert chosen.source == "logprobs"
    assert chosen.probabilities == pytest.approx({"yes": 0.75, "no": 0.125})
    assert chosen.other_mass == pytest.approx(0.125)
    assert wire.seen[0].body["parameters"]["top_logprobs"] == 5


async def test_a_choice_by_the_text_where_there_are_no_probabilities(wire: Wire):
    wire.answers(says(answer(choice("No."))))
    chosen = await model(wire).choose(YES_NO)
    assert (chosen.source, chosen.best) == ("text", "no")
    assert [seen.body["parameters"].get("logprobs") for seen in wire.seen] == [True, None]
    wire.seen.clear()
    assert (await model(wire, top_logprobs=0).choose(YES_NO)).best == "no"
    assert len(wire.seen) == 1


async def test_several_texts_are_asked_for_together_up_to_four(wire: Wire):
    wire.answers(says(answer(*(choice(text) for text in "abcd"))), says(answer(choice("e"))))
    replies = await model(wire).generate(asks(n=5, temperature=1.0))
    assert [reply.text for reply in replies] == ["a", "b", "c", "d", "e"]
    sent = [seen.body["parameters"] for seen in wire.seen]
    assert [one.get("n") for one in sent] == [4, None]
    assert sent[0]["seed"] != sent[1]["seed"]
    assert replies[1].usage == Usage()


async def test_reproducible_texts_are_asked_for_one_after_the_other(wire: Wire):
    wire.answers(says(answer(choice("a"))))
    replies = await model(wire).generate(asks(n=2, temperature=1.0, reproducible=True))
    assert len(replies) == 2
    assert all("n" not in seen.body["parameters"] for seen in wire.seen)


async def test_two_keys_at_the_same_time_never_mix(wire: Wire, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(dashscope, "api_key", "sk-of-the-module")
    monkeypatch.setattr(dashscope, "base_http_api_url", "http://127.0.0.1:9/api/v1")
    wire.answers(says(answer(choice("Hi"))))
    models = {name: model(wire, model=name, api_key=f" sk-{name} ") for name in ("ann", "bob")}
    calls = [one.generate(asks(f"Hello {turn}")) for turn in range(8) for one in models.values()]
    await asyncio.gather(*calls)
    assert len(wire.seen) == 16
    for seen in wire.seen:
        assert seen.headers["Authorization"] == f"Bearer sk-{seen.body['model']}"
    assert dashscope.api_key == "sk-of-the-module"
    assert dashscope.base_http_api_url == "http://127.0.0.1:9/api/v1"


async def test_the_environment_changes_nothing(wire: Wire, monkeypatch: pytest.MonkeyPatch):
    for name in ("HTTP_PROXY", "ALL_PROXY", "DASHSCOPE_HTTP_BASE_URL"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("DASHSCOPE_API_KEY", "sk-env")
    wire.answers(says(answer(choice("Hi"))))
    await model(wire).generate(asks())
    assert "sk-env" not in str(wire.seen)


class KeepingHandler(Handler):
    """Keeps a connection open for the next request, and notes which one each came over."""

    protocol_version = "HTTP/1.1"
    peers: ClassVar[list[object]] = []

    def answer(self, seen: Seen) -> None:
        self.peers.append(self.client_address)
        super().answer(seen)


async def test_a_connection_serves_one_call_after_another(caplog: pytest.LogCaptureFixture):
    caplog.set_level(logging.DEBUG)
    with serve(KeepingHandler, "/compatible-mode/v1") as wire:
        wire.answers(HELLO)
        used = model(wire)
        for _ in range(3):
            await used.generate(asks())
        await used.aclose()
    assert len(KeepingHandler.peers) == 3
    assert len(set(KeepingHandler.peers)) == 1
    assert KEY not in caplog.text


def test_one_model_serves_several_event_loops(wire: Wire):
    wire.answers(says(answer(choice("Hi"))))
    assert texts_of_two_loops(model(wire)) == ["Hi", "Hi"]


async def test_what_is_known_replaces_what_is_assumed(wire: Wire):
    usual = model(wire).capabilities
    assert (usual.top_logprobs, usual.structured_output, usual.prefill) == (5, True, False)
    assert usual.languages == {"en", "zh"}
    found = model(
        wire, top_logprobs=0, prefill=True, structured_output=False, languages=("zh",)
    ).capabilities
    assert (found.logprobs, found.prefill, found.structured_output) == (False, True, False)
    assert found.languages == {"zh"}
    with pytest.raises(CapabilityError):
        await model(wire, top_logprobs=0).generate(asks(logprobs=True))
    with pytest.raises(CapabilityError):
        await model(wire, prefill=False).generate(asks("Where?", "In "))
    assert wire.seen == []


def test_the_address_without_one_is_that_of_mainland_china():
    assert DashScopeModel(name="M", model="m").provider == "dashscope.aliyuncs.com"


SCHEMA = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}


def sent(wire: Wire) -> list[dict[str, Any]]:
    return [seen.body["parameters"] for seen in wire.seen]


def fields_of(refused: tuple[str, ...] = (), prefix: str = "", **request: Any) -> dict[str, Any]:
    used = DashScopeModel(name="M", model="m")
    sent = used._fields(asks(prefix=prefix, **request), request.get("n", 1), 0)
    return spoken(sent, cast("set[Concession]", set(refused)))


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
    refusal = RefusalError(400, None, words)
    body = {"messages": [{"role": "user", "content": "Hello?"}], "enable_thinking": False}
    form = form_objected_to(refusal, body, (), streamed=False)
    assert (form == "stream_only") is wants


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

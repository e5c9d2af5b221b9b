"""DashScope's protocol as this project speaks it."""

from __future__ import annotations

import asyncio
import logging
import math
from typing import Any

import dashscope
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from pipelines.errors import CapabilityError
from pipelines.models.base import ChoiceRequest, Delta, Option
from pipelines.models.dashscope_model import DashScopeModel
from pipelines.types import Message, Usage
from tests.pipelines.models.dashscope_wire import (
    answer,
    choice,
    part,
    streams,
    streams_then_waits,
)
from tests.pipelines.models.wire import Wire, asks, entry, raw_entry, says, waits

KEY = "sk-0123456789abcdef"
PATH = "/v1/services/aigc/text-generation/generation"


def model(wire: Wire, **options: Any) -> DashScopeModel:
    fields: dict[str, Any] = {"name": "M", "model": "m", "base_url": wire.url, "api_key": KEY}
    return DashScopeModel(**fields | options)


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
    assert await asyncio.to_thread(wire.gone.wait, 30)


async def test_a_fault_of_the_watcher_is_its_own_and_hangs_up(wire: Wire):
    def watch(delta: Delta) -> bool:
        raise KeyError("mine")

    wire.answers(streams_then_waits(part("Hi")))
    with pytest.raises(KeyError, match="mine"):
        await model(wire).generate(asks(), watch)
    assert await asyncio.to_thread(wire.gone.wait, 30)


@pytest.mark.parametrize("watched", [False, True])
@pytest.mark.parametrize("begun", [False, True])
async def test_cancelling_closes_the_connection(wire: Wire, watched: bool, begun: bool):
    shown = asyncio.Event()
    wire.answers(streams_then_waits(part("Hi")) if begun and watched else waits)
    watch = (lambda delta: shown.set()) if watched else None
    call = asyncio.create_task(model(wire).generate(asks(), watch))
    assert await asyncio.to_thread(wire.arrived.wait, 30)
    if begun and watched:
        await shown.wait()
    call.cancel()
    with pytest.raises(asyncio.CancelledError):
        await call
    assert await asyncio.to_thread(wire.gone.wait, 30)


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
    (reply,) = await model(wire, enable_thinking=True).generate(asks(logprobs=True), deltas.append)
    assert [delta.text for delta in deltas] == ["Yes"]
    assert [token.text for token in reply.tokens or ()] == ["Yes"]
    assert wire.seen[-1].body["parameters"]["enable_thinking"] is True


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


async def test_a_connection_serves_one_call_after_another(caplog: pytest.LogCaptureFixture):
    peers: list[object] = []

    async def reply(request: web.Request) -> web.Response:
        assert request.transport is not None
        peers.append(request.transport.get_extra_info("peername"))
        return web.json_response(answer(choice("Hi")))

    app = web.Application()
    app.router.add_post("/api/v1/services/aigc/text-generation/generation", reply)
    caplog.set_level(logging.DEBUG)
    async with TestServer(app) as server:
        url = str(server.make_url("/compatible-mode/v1"))
        used = DashScopeModel(name="M", model="m", base_url=url, api_key=KEY)
        for _ in range(3):
            await used.generate(asks())
        await used.aclose()
    assert len(peers) == 3
    assert len(set(peers)) == 1
    assert KEY not in caplog.text


def test_one_model_serves_several_event_loops(wire: Wire):
    wire.answers(says(answer(choice("Hi"))))
    shared = model(wire)

    async def ask() -> str:
        (reply,) = await shared.generate(asks())
        await shared.aclose()
        return reply.text

    assert [asyncio.run(ask()), asyncio.run(ask())] == ["Hi", "Hi"]


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

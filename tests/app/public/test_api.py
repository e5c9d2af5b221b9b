"""The calls, as programs make them: gradio_client, plain HTTP, and the official MCP client."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from http.client import HTTPConnection
from itertools import count
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest
from gradio_client import Client
from gradio_client.utils import Status
from mcp import ClientSession
from mcp.client.streamable_http import streamable_http_client

from pipelines.methods.registry import METHODS
from tests.app.public.conftest import Served

DOCUMENT = Path(__file__).resolve().parents[3] / "docs" / "api.md"
QUESTION = "Where was Bill Clinton born?"
_numbers = count()


def another() -> str:
    """A question that nobody has asked: what was answered before is not asked again."""
    return f"Who was born in {1000 + next(_numbers)}?"


CONTEXT = "Bill Clinton was born in Hope, Arkansas, on 19 August 1946."


@pytest.fixture(scope="module")
def client(served: Served) -> Client:
    return Client(served.url, verbose=False)


@asynccontextmanager
async def tools(served: Served) -> AsyncIterator[ClientSession]:
    """A session of the official client library."""
    async with (
        streamable_http_client(f"{served.url}/gradio_api/mcp/") as (reading, writing, _),
        ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        yield session


def submitted(client: Client, question: str) -> Any:
    """A call that goes on while the test does."""
    return client.submit(question, "direct", api_name="/ask")


def begun(served: Served, call: str, **values: Any) -> str:
    """Ask as `curl` does; the address to read the answer from."""
    url = f"{served.url}/gradio_api/call/v2/{call}"
    return f"{url}/{httpx.post(url, json=values, timeout=60).json()['event_id']}"


def at_once(served: Served, call: str, *values: Any) -> Any:
    """The answer to a single request."""
    url = f"{served.url}/gradio_api/run/{call}"
    reply = httpx.post(url, json={"data": values}, timeout=60).json()
    assert "data" in reply, reply
    return reply["data"][0]


@contextmanager
def request_given_up(url: str, body: Any = None) -> Iterator[None]:
    """A request whose sender hangs up at the end of the block, without reading an answer."""
    address = urlsplit(url)
    connection = HTTPConnection(address.hostname or "", address.port, timeout=60)
    try:
        if body is None:
            connection.request("GET", address.path)
        else:
            kind = {"Content-Type": "application/json"}
            connection.request("POST", address.path, json.dumps(body), kind)
        yield
    finally:
        connection.close()


def test_ask_tells_how_far_it_has_come(answering: Served, client: Client):
    job = submitted(client, QUESTION)
    answer = job.result()
    assert answer["status"] == "finished"
    assert answer["methods"]["direct"]["answer"] == "In Hope, Arkansas."
    assert {stage["status"] for stage in job.outputs()} <= {"waiting", "running", "finished"}


def test_ask_by_curl(answering: Served):
    told = httpx.get(begun(answering, "ask", question=QUESTION, method="direct"), timeout=60).text
    last = told.strip().split("\n\n")[-1]
    assert last.startswith("event: complete\n")
    (answer,) = json.loads(last.partition("data: ")[2])
    assert answer["methods"]["direct"]["answer"] == "In Hope, Arkansas."


def test_ask_in_one_request(answering: Served):
    answer = at_once(answering, "ask_at_once", QUESTION, "direct", None, True)
    assert answer["methods"]["direct"]["answer"] == "In Hope, Arkansas."
    again = at_once(answering, "get_run", answer["run"])
    assert again["methods"] == answer["methods"]


def test_check_scores_every_sentence(answering: Served, client: Client):
    answer = "Bill Clinton was born in Hope. He was born in 1950."
    found = client.predict(QUESTION, answer, CONTEXT, api_name="/check")
    for method, name in (("slm", "slm_sentence"), ("haarag", "haarag_sentence")):
        sentences = [one for one in found["methods"][method]["judged"] if one["what"] == "sentence"]
        assert [one["text"] for one in sentences] == [
            "Bill Clinton was born in Hope.",
            "He was born in 1950.",
        ]
        assert all(isinstance(one["scores"][0]["value"], float) for one in sentences), name
    # Nothing was written for it.
    assert found["methods"]["haarag"]["answer"] == answer


def test_the_methods_are_listed_with_their_settings(client: Client):
    listed = client.predict(api_name="/list_methods")
    assert [one["name"] for one in listed] == list(METHODS)
    (drad,) = [one for one in listed if one["name"] == "drad"]
    assert "properties" in drad["settings"]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"question": ""}, "The question is empty"),
        ({"method": "magic"}, "There is no method 'magic'"),
        ({"settings": {"no_such": 1}}, "no_such"),
    ],
)
def test_what_cannot_be_done_is_told(answering: Served, wrong: dict[str, Any], told: str):
    asked = {"question": QUESTION, "method": "drad", **wrong}
    reply = httpx.get(begun(answering, "ask", **asked), timeout=60).text
    assert "event: error" in reply
    assert told in reply


def test_a_run_that_is_not_shared_is_nobody_elses(answering: Served):
    reply = httpx.get(begun(answering, "get_run", run="20260101-000000-abcdef"), timeout=60).text
    assert "no such run" in reply


async def test_the_tools_of_an_mcp_client(answering: Served):
    async with tools(answering) as session:
        listed = (await session.list_tools()).tools
        assert {tool.name for tool in listed} == {"ask", "check", "list_methods", "get_run"}
        (ask,) = [tool for tool in listed if tool.name == "ask"]
        assert {"question", "method", "settings", "share"} == set(ask.inputSchema["properties"])
        assert "detect hallucinations" in (ask.description or "")
        reply = await session.call_tool("ask", {"question": QUESTION, "method": "direct"})
        assert "In Hope, Arkansas." in str(reply.content)
        assert not reply.isError


def test_a_client_that_hangs_up_ends_the_calls(held: Served):
    with request_given_up(begun(held, "ask", question=another())):
        held.until(lambda: held.model.busy > 0)
    held.until(lambda: held.model.cancelled > 0 and held.model.busy == 0)


def test_a_single_request_that_is_given_up_ends_the_calls(held: Served):
    asked = {"data": [another(), "direct", None, False]}
    with request_given_up(f"{held.url}/gradio_api/run/ask_at_once", asked):
        held.until(lambda: held.model.busy > 0)
    held.until(lambda: held.model.cancelled > 0 and held.model.busy == 0)


def test_a_python_client_that_cancels_ends_the_calls(held: Served, client: Client):
    job = client.submit(another(), "direct", api_name="/ask")
    # The client can cancel what has a number, which it learns after the run has begun.
    held.until(lambda: held.model.busy > 0 and job.status().code is not Status.STARTING)
    job.cancel()
    held.until(lambda: held.model.busy == 0)
    assert held.model.cancelled > 0


async def test_an_mcp_client_that_hangs_up_ends_the_calls(held: Served):
    async def ask() -> None:
        async with tools(held) as session:
            await session.call_tool("ask", {"question": another(), "method": "direct"})

    asking = asyncio.create_task(ask())
    await asyncio.to_thread(held.until, lambda: held.model.busy > 0)
    asking.cancel()
    with suppress(asyncio.CancelledError, Exception):
        await asking
    await asyncio.to_thread(held.until, lambda: held.model.busy == 0)
    assert held.model.cancelled > 0


def test_waiting_callers_are_told_their_position_and_a_full_queue_is_told(held: Served):
    first = submitted(Client(held.url, verbose=False), another())
    held.until(lambda: held.model.busy > 0)
    others = [submitted(Client(held.url, verbose=False), another()) for _ in range(2)]
    held.until(lambda: all(job.outputs() for job in others))
    assert {job.outputs()[0]["status"] for job in others} == {"waiting"}
    assert sorted(job.outputs()[-1]["before"] for job in others) == [0, 1]
    told = httpx.get(begun(held, "ask", question=another(), method="direct"), timeout=60).text
    assert "2 visitors are waiting already" in told
    held.let_go()
    for job in (first, *others):
        assert job.result()["status"] == "finished"


def example(language: str, served: Served) -> str:
    """The document's example in `language`, for the Space that is being served."""
    blocks = re.findall(
        rf"```{language}\n(.*?)```", DOCUMENT.read_text(encoding="utf-8"), re.DOTALL
    )
    (found,) = [block for block in blocks if "Bill Clinton" in block]
    return found.replace("http://127.0.0.1:7860", served.url)


def test_the_documented_shell_example(answering: Served):
    done = subprocess.run(
        ["sh", "-c", example("sh", answering)], capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout)["data"][0]["methods"]["direct"]["answer"] == "In Hope, Arkansas."


def test_the_documented_python_example(answering: Served):
    names: dict[str, Any] = {}
    exec(example("python", answering), names)
    assert names["answer"]["methods"]["direct"]["answer"] == "In Hope, Arkansas."
    assert set(names["checked"]["methods"]) == {"slm", "haarag"}

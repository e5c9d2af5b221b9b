"""The guard: an answer is read while it is written; conversations over the API and MCP."""

from __future__ import annotations

import http.client
import json
from collections.abc import Iterator, Sequence
from typing import Any
from urllib.parse import urlsplit

import httpx
import pytest

from app.public.contract import CheckRequest
from tests.app.public.conftest import PATIENCE, Served

SOURCES = ["The Eiffel Tower was completed in 1889.", "The Eiffel Tower is 330 metres tall."]
FIRST, SECOND = "The Eiffel Tower was completed in 1889 [1].", "It is made of gold [2]."
KNOWN = {"question": "What is the Eiffel Tower?", "sources": SOURCES}


def reports(served: Served, body: bytes, kind: str = "application/x-ndjson", query: str = ""):
    address = f"{served.url}/api/check/stream{query}"
    reply = httpx.post(address, content=body, headers={"Content-Type": kind}, timeout=PATIENCE)
    assert reply.status_code == 200, reply.text
    return [json.loads(line) for line in reply.text.splitlines()]


class Duplex:
    """A client that sends a piece, and reads a report while the body is not at its end."""

    def __init__(self, served: Served) -> None:
        at = urlsplit(served.url)
        self._connection = http.client.HTTPConnection(at.hostname or "", at.port, timeout=PATIENCE)
        self._connection.putrequest("POST", "/api/check/stream")
        self._connection.putheader("Transfer-Encoding", "chunked")
        self._connection.putheader("Content-Type", "application/x-ndjson")
        self._connection.endheaders()
        self._socket = self._connection.sock
        self._reply: http.client.HTTPResponse | None = None

    def say(self, value: Any) -> None:
        line = json.dumps(value).encode() + b"\n"
        self._socket.sendall(b"%x\r\n%s\r\n" % (len(line), line))

    def end(self) -> None:
        self._socket.sendall(b"0\r\n\r\n")

    def read(self) -> dict[str, Any]:
        if self._reply is None:
            self._reply = self._connection.getresponse()
        return json.loads(self._reply.readline())

    def close(self) -> None:
        self._connection.close()


@pytest.fixture
def duplex(answering: Served) -> Iterator[Duplex]:
    client = Duplex(answering)
    yield client
    client.close()


def test_a_sentence_is_reported_while_the_answer_is_written(duplex: Duplex):
    duplex.say(KNOWN)
    duplex.say({"text": FIRST})
    duplex.say({"text": " It"})
    # The body has not ended.
    first = duplex.read()
    assert (first["event"], first["number"], first["text"]) == ("sentence", 0, FIRST)
    assert first["together"]["verdict"] in ("supported", "contradicted", "not_enough")
    assert [(one["state"], one["source"]) for one in first["citations"]] == [("supported", 1)]
    duplex.say({"text": SECOND[2:]})
    duplex.end()
    second, end = duplex.read(), duplex.read()
    assert (second["number"], second["start"]) == (1, len(FIRST) + 1)
    (cited,) = second["citations"]
    whole = f"{FIRST} {SECOND}"
    assert whole[cited["start"] : cited["end"]] == "[2]"
    assert (cited["sentence"], cited["state"]) == (1, "not_by_source")
    assert (end["event"], end["sentences"], end["cut"]) == ("end", 2, False)
    assert end["together"]["verdict"] != "supported"


def chunks(*texts: str) -> list[Any]:
    return [{"choices": [{"delta": {"content": text}}]} for text in texts]


@pytest.mark.parametrize(
    ("lines", "kind", "query"),
    [
        ([json.dumps(one) for one in [KNOWN, *chunks(FIRST, " Yes.")]], "application/x-ndjson", ""),
        # All of the text so far in each piece.
        ([json.dumps(one) for one in
          [KNOWN, *chunks(FIRST[:9], FIRST[:20], FIRST, f"{FIRST} Yes.")]],
         "application/x-ndjson", ""),
        (
            [json.dumps(KNOWN), *(f"data: {json.dumps(one)}\n" for one in chunks(FIRST, " Yes.")),
             ": keep-alive", "data: [DONE]"],
            "text/event-stream",
            "",
        ),
        (
            [json.dumps(KNOWN), *(json.dumps({"type": "content_block_delta", "delta": {"text": t}})
                                  for t in (FIRST, " Yes."))],
            "application/x-ndjson",
            "",
        ),
        ([json.dumps(KNOWN), *(json.dumps({"message": {"content": t}}) for t in (FIRST, " Yes."))],
         "application/x-ndjson", ""),
        ([json.dumps({**KNOWN, "answer": f"{FIRST} Yes."})], "application/json", ""),
        ([json.dumps(KNOWN), json.dumps(f"{FIRST} Yes.")], "application/x-ndjson", ""),
        ([f"{FIRST} Yes."], "text/plain",
         f"?question=What%3F&source={SOURCES[0].replace(' ', '+')}"),
    ],
)  # fmt: skip
def test_pieces_come_in_the_format_of_any_server(
    answering: Served, lines: Sequence[str], kind: str, query: str
):
    body = "\n".join(lines).encode()
    first, second, end = reports(answering, body, kind, query)
    assert (first["text"], second["text"], end["sentences"]) == (FIRST, "Yes.", 2)
    assert [one["source"] for one in first["citations"]] == [1]


def test_a_report_can_be_read_as_a_run(answering: Served):
    first, _ = reports(answering, json.dumps({**KNOWN, "answer": FIRST}).encode())
    run = httpx.get(f"{answering.url}/api/runs/{first['run']}", timeout=PATIENCE).json()
    assert run["checked"]["citations"][0]["state"] == first["citations"][0]["state"]


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (b'{"sources": "no list"}\n', "sources"),
        (b'{"question": 7}\n', "question"),
    ],
)
def test_what_is_wrong_before_the_answer_begins_is_refused(
    answering: Served, body: bytes, field: str
):
    reply = httpx.post(f"{answering.url}/api/check/stream", content=body, timeout=PATIENCE)
    assert (reply.status_code, reply.json()["field"]) == (422, field)


def test_a_line_that_is_no_json_ends_it(answering: Served):
    lines = f"{json.dumps(KNOWN)}\n{json.dumps(f'{FIRST} Yes.')}\n{{no\n".encode()
    first, last = reports(answering, lines)
    assert first["text"] == FIRST
    assert (last["event"], last["code"]) == ("error", "invalid_input")


def test_pieces_that_take_back_what_they_said_end_it(answering: Served):
    told = [KNOWN, *chunks(FIRST[:9], FIRST[:20], FIRST, f"{FIRST} Yes.", "Something else.")]
    first, last = reports(answering, "\n".join(map(json.dumps, told)).encode())
    assert first["text"] == FIRST
    assert "takes back" in json.dumps(last)


SAID = [
    {"role": "user", "content": "When was the Eiffel Tower completed?"},
    {"role": "tool", "content": SOURCES[0]},
    {"role": "assistant", "content": "The Eiffel Tower was completed in 1889."},
    {"role": "user", "content": "And how tall is it?"},
    {"role": "assistant", "content": "It is 300 miles tall."},
]


@pytest.mark.parametrize(
    ("turn", "text"), [(None, SAID[4]["content"]), (1, SAID[2]["content"]), (2, SAID[4]["content"])]
)
def test_a_turn_of_a_conversation_is_checked_with_its_context(
    answering: Served, turn: int | None, text: str
):
    asked = {"messages": SAID, "turn": turn, "detectors": ["slm"]}
    found = httpx.post(f"{answering.url}/api/check", json=asked, timeout=PATIENCE).json()
    assert [one["text"] for one in found["checked"]["sentences"]] == [text]
    assert found["question"].startswith("When was the Eiffel Tower completed?")


@pytest.mark.parametrize(
    ("asked", "field"),
    [
        ({}, "answer"),
        ({"answer": "Yes.", "messages": SAID}, "messages"),
        ({"messages": SAID[:2]}, "messages"),
        ({"messages": SAID, "turn": 3}, "turn"),
        ({"answer": "Yes.", "turn": 1}, "turn"),
    ],
)
def test_a_conversation_that_cannot_be_checked_says_why(
    answering: Served, asked: dict[str, Any], field: str
):
    reply = httpx.post(f"{answering.url}/api/check", json=asked, timeout=PATIENCE)
    assert (reply.status_code, reply.json()["field"]) == (422, field)
    assert {"messages", "turn"} <= CheckRequest.model_fields.keys()

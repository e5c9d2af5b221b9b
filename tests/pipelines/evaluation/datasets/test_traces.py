"""Conversations, spans of OpenTelemetry and exports of Langfuse, read as answers."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from pipelines.errors import InvalidInputError
from pipelines.evaluation.datasets.opening import open_data_set, texts_of

QUESTION, TEXT, FOUND = "Where was Marie Curie born?", "She was born in Warsaw.", "Born in Warsaw."
USER = {"role": "user", "content": QUESTION}
ANSWER = {"role": "assistant", "content": TEXT}
IN_PARTS = [
    {"role": "system", "parts": [{"type": "text", "content": "Be short."}]},
    {"role": "user", "parts": [{"type": "text", "content": QUESTION}]},
    {"role": "assistant", "parts": [{"type": "tool_call", "name": "search", "arguments": {}}]},
    {"role": "tool", "parts": [{"type": "tool_call_response", "response": FOUND}]},
]
OUT_PARTS = [
    {
        "role": "assistant",
        "parts": [{"type": "reasoning", "content": "Hm."}, {"type": "text", "content": TEXT}],
        "finish_reason": "stop",
    }
]


def value(plain: Any) -> dict[str, Any]:
    """A value as OTLP writes it."""
    if isinstance(plain, str):
        return {"stringValue": plain}
    if isinstance(plain, list):
        return {"arrayValue": {"values": [value(one) for one in plain]}}
    if isinstance(plain, dict):
        return {"kvlistValue": {"values": listed(plain)}}
    return {"intValue": str(plain)}


def listed(plain: dict[str, Any]) -> list[dict[str, Any]]:
    return [{"key": name, "value": value(one)} for name, one in plain.items()]


def span(
    attributes: dict[str, Any], *events: tuple[str, dict[str, Any]], at: int = 5, name: str = "s1"
) -> dict[str, Any]:
    return {
        "traceId": "t1",
        "spanId": name,
        "name": "chat",
        "startTimeUnixNano": str(at),
        "attributes": listed(attributes),
        "events": [{"name": name, "attributes": listed(held)} for name, held in events],
    }


def otlp(*spans: dict[str, Any], scopes: str = "scopeSpans") -> dict[str, Any]:
    return {"resourceSpans": [{"resource": {}, scopes: [{"scope": {}, "spans": list(spans)}]}]}


CHAT = {"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}
SEARCHED = span(
    {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.documents": json.dumps([{"content": FOUND}]),
    },
    at=1,
    name="s0",
)  # fmt: skip
TOOL = span(
    {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.call.result": FOUND}, at=1, name="s0"
)
NEW = {
    **CHAT,
    "gen_ai.input.messages": json.dumps(IN_PARTS),
    "gen_ai.output.messages": json.dumps(OUT_PARTS),
}
PLAIN = {
    **CHAT,
    "gen_ai.input.messages": json.dumps(IN_PARTS[:2]),
    "gen_ai.output.messages": json.dumps(OUT_PARTS),
}
OLD_EVENTS = (
    ("gen_ai.content.prompt", {"gen_ai.prompt": json.dumps([USER])}),
    ("gen_ai.content.completion", {"gen_ai.completion": json.dumps([ANSWER])}),
)
TOLD = (
    ("gen_ai.system.message", {"content": "Be short."}),
    ("gen_ai.user.message", {"content": QUESTION}),
    ("gen_ai.choice", {"index": 0, "message": json.dumps({"role": "assistant", "content": TEXT})}),
)
DETAILS = ("gen_ai.client.inference.operation.details", {n: NEW[n] for n in list(NEW)[2:]})
STRUCTURED = {**CHAT, "gen_ai.input.messages": IN_PARTS, "gen_ai.output.messages": OUT_PARTS}
NUMBERED = {
    **CHAT,
    "gen_ai.prompt.0.role": "user",
    "gen_ai.prompt.0.content": QUESTION,
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": TEXT,
}
INFERENCE = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "m",
    "llm.input_messages.0.message.role": "user",
    "llm.input_messages.0.message.content": QUESTION,
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": TEXT,
}
RETRIEVER = span(
    {"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.content": FOUND},
    at=1,
    name="s0",
)
CONSOLE = {
    "name": "chat",
    "context": {"trace_id": "0x1", "span_id": "0x2"},
    "start_time": "2026-01-01T00:00:00.000000Z",
    "attributes": {**CHAT, **NUMBERED},
    "events": [],
}
LOGS = {
    "resourceLogs": [{"scopeLogs": [{"logRecords": [
        {"traceId": "t1", "spanId": "s1", "eventName": name, "body": value(body)}
        for name, body in (
            ("gen_ai.user.message", {"content": QUESTION}),
            ("gen_ai.choice", {"index": 0, "message": {"role": "assistant", "content": TEXT}}),
        )
    ]}]}]
}  # fmt: skip
GENERATION = {
    "id": "o2", "traceId": "t1", "type": "GENERATION", "startTime": "2026-01-01T00:00:02Z",
    "model": "m", "input": [USER], "output": ANSWER,
}  # fmt: skip
RETRIEVAL = {
    "id": "o1", "traceId": "t1", "type": "RETRIEVER", "startTime": "2026-01-01T00:00:01Z",
    "input": QUESTION, "output": [{"page_content": FOUND, "text": FOUND}],
}  # fmt: skip
TRACE = {"id": "t1", "name": "chat", "timestamp": "2026", "input": QUESTION, "output": TEXT}


def saved(path: Path, given: Any) -> Path:
    text = "\n".join(map(json.dumps, given)) if path.suffix == ".jsonl" else json.dumps(given)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        (otlp(span(NEW)), (FOUND,)),
        (otlp(span(STRUCTURED)), (FOUND,)),
        (otlp(span(CHAT, DETAILS)), (FOUND,)),
        (otlp(span(CHAT, *OLD_EVENTS)), ()),
        (otlp(span(CHAT, *TOLD)), ()),
        (otlp(span(NUMBERED), scopes="instrumentationLibrarySpans"), ()),
        (otlp(span({**CHAT, "gen_ai.prompt": QUESTION, "gen_ai.completion": TEXT})), ()),
        (otlp(span(PLAIN), SEARCHED), (FOUND,)),
        (otlp(span(PLAIN), TOOL), (FOUND,)),
        (otlp(span(INFERENCE), RETRIEVER), (FOUND,)),
        (otlp(span({"openinference.span.kind": "LLM",
                    "input.value": json.dumps({"messages": [USER]}),
                    "output.value": json.dumps({"choices": [{"message": ANSWER}]})})), ()),
        ([otlp(SEARCHED), otlp(span(PLAIN))], (FOUND,)),
        ([otlp(span(CHAT)), LOGS], ()),
        (LOGS, ()),
        ([CONSOLE], ()),
        ([{**TRACE, "observations": [GENERATION, RETRIEVAL]}], (FOUND,)),
        ([TRACE], ()),
        ([GENERATION, RETRIEVAL], (FOUND,)),
        ([{**GENERATION, "input": {"messages": [USER]}, "output": TEXT}], ()),
        ([{**GENERATION, "input": json.dumps([USER]), "output": json.dumps(ANSWER)}], ()),
        ([{**TRACE, "input": {"question": QUESTION}, "output": {"answer": 1, "text": TEXT}}], ()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", ["json", "jsonl"])
def test_every_form_of_a_trace_gives_its_answer(
    tmp_path: Path, given: Any, sources: tuple[str, ...], suffix: str
):
    if suffix == "jsonl":
        given = given if isinstance(given, list) else [given]
    path = saved(tmp_path / f"trace.{suffix}", given)
    (one,) = texts_of(path).texts
    assert (one.given.question, one.given.text, one.given.sources) == (QUESTION, TEXT, sources)
    (item,) = open_data_set(path).items
    assert (item.question, item.text) == (QUESTION, TEXT)
    assert tuple(passage.text for passage in item.passages) == sources


J = json.dumps
SAID = {"messages": [USER]}
CHOSEN = {"choices": [{"message": ANSWER}]}
PROMPTED = J([{"role": "user", "content": [{"type": "text", "text": QUESTION}]}])


def plain(attributes: dict[str, Any], **more: Any) -> dict[str, Any]:
    """A span with attributes as an object."""
    ids = {"trace_id": "0x1", "span_id": "0x2"}
    return {"name": "chat", "context": ids, "start_time": "2026", "attributes": attributes, **more}


def tagged(*fields: tuple[str, str, str], **tags: str) -> dict[str, Any]:
    """A trace of Jaeger."""
    listed = [{"key": name, "type": "string", "value": one} for name, one in tags.items()]
    logs = [{"fields": [{"key": "event", "value": event}, {"key": name, "value": one}]}
            for event, name, one in fields]  # fmt: skip
    one = {"traceID": "t", "spanID": "s", "startTime": 1, "tags": listed, "logs": logs}
    return {"data": [{"traceID": "t", "spans": [one]}]}


PHOENIX = {
    "context.span_id": "s", "context.trace_id": "t", "name": "chat", "span_kind": "LLM",
    "attributes.llm.input_messages": J([{"message.role": "user", "message.content": QUESTION}]),
    "attributes.llm.output_messages": str([{"message.role": "assistant", "message.content": TEXT}]),
    "attributes.output.value": "{}", "attributes.retrieval.documents": "",
}  # fmt: skip
FOUND_BY_PHOENIX = dict.fromkeys(PHOENIX, "") | {
    "context.trace_id": "t", "span_kind": "RETRIEVER",
    "attributes.retrieval.documents": J([{"document.content": FOUND, "document.score": 1}]),
}  # fmt: skip
NESTED = {"openinference": {"span": {"kind": "LLM"}}, "llm": {
    "input_messages": [{"message": {"role": "user", "content": QUESTION}}],
    "output_messages": [{"message": {"role": "assistant", "content": TEXT}}],
}}  # fmt: skip
RUN = {
    "id": "r1", "name": "Chat", "run_type": "llm", "trace_id": "t", "start_time": "2026-01-01T02",
    "inputs": {"messages": [[{"lc": 1, "type": "constructor",
                              "id": ["langchain", "schema", "messages", "HumanMessage"],
                              "kwargs": {"content": QUESTION}}]]},
    "outputs": {"generations": [[{"text": TEXT, "message": {
        "lc": 1, "type": "constructor", "id": ["langchain", "schema", "messages", "AIMessage"],
        "kwargs": {"content": TEXT}}}]]},
}  # fmt: skip
CHAIN = {**RUN, "id": "r0", "run_type": "chain", "start_time": "2026-01-01T00",
         "inputs": {"question": QUESTION}, "outputs": {"output": TEXT}}  # fmt: skip
SEARCH = {**CHAIN, "run_type": "retriever", "start_time": "2026-01-01T01",
          "outputs": {"documents": [{"page_content": FOUND, "type": "Document"}]}}  # fmt: skip
MLFLOW = {"mlflow.spanType": '"CHAT_MODEL"', "mlflow.spanInputs": J(SAID),
          "mlflow.spanOutputs": J(CHOSEN)}  # fmt: skip
LOGFIRE = J([{"event.name": "gen_ai.user.message", "content": QUESTION},
             {"event.name": "gen_ai.choice", "message": {"content": TEXT}}])  # fmt: skip
BODY = value({"input": {"messages": [USER]}, "output": {"messages": [ANSWER]}})
FRAME = {"openinference.span.kind": "CHAIN", "input.value": J({"question": QUESTION}),
         "output.value": J({"answer": TEXT})}  # fmt: skip
SDK = {"ai.operationId": "ai.generateText", "ai.prompt": J(SAID), "ai.response.text": TEXT}
SDK_CALL = {"ai.operationId": "ai.generateText.doGenerate", "ai.prompt.messages": PROMPTED,
            "ai.response.text": TEXT}  # fmt: skip
CALLED = {**CHAT, "gen_ai.input.messages": J(IN_PARTS[:2]),
          "gen_ai.output.messages": J([IN_PARTS[2]])}  # fmt: skip
WITHIN_PARTS = {
    "openinference.span.kind": "LLM", "llm.input_messages.0.message.content": QUESTION,
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.contents.0.message_content.text": TEXT,
}  # fmt: skip


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        ({"data": [plain(INFERENCE, span_kind="LLM")], "next_cursor": None}, ()),
        ([plain(NESTED)], ()),
        ([PHOENIX], ()),
        ([FOUND_BY_PHOENIX, PHOENIX], (FOUND,)),
        (tagged(**{name: str(held) for name, held in PLAIN.items()}), ()),
        (tagged(("gen_ai.content.prompt", "gen_ai.prompt", J([USER])),
                ("gen_ai.content.completion", "gen_ai.completion", J([ANSWER]))), ()),
        ([{"traceId": "t", "id": "s", "timestamp": 5, "tags": NUMBERED}], ()),
        ({"batches": otlp(span(NEW))["resourceSpans"]}, (FOUND,)),
        ({"trace": otlp(span(NEW))}, (FOUND,)),
        ({"spans": [plain(NEW)]}, (FOUND,)),
        ([{"info": {}, "data": {"spans": [plain(MLFLOW)]}}], ()),
        ([{"trace_id": "t", "meta": {"kind": "llm", "input": SAID,
                                     "output": {"messages": [ANSWER]}}}], ()),
        ([plain({**CHAT, "events": LOGFIRE})], ()),
        ([plain({"gen_ai.request.model": "m", "request_data": J(SAID),
                 "response_data": J({"message": ANSWER})})], ()),
        ([plain({**CHAT, "pydantic_ai.all_messages": J([*IN_PARTS[:2], *OUT_PARTS])})], ()),
        ({"resourceLogs": [{"scopeLogs": [{"logRecords": [{"spanId": "s", "body": BODY}]}]}]}, ()),
        (otlp(span(CHAT, ("gen_ai.content.prompt", {"gen_ai.prompt": f"user: {QUESTION}"}),
                   ("gen_ai.content.completion", {"gen_ai.completion": TEXT}))), ()),
        (otlp(span({**NUMBERED, "gen_ai.prompt.0.content": J([{"type": "text",
                                                               "text": QUESTION}])})), ()),
        (otlp(span({name: str(held) for name, held in STRUCTURED.items()})), (FOUND,)),
        (otlp(span(WITHIN_PARTS)), ()),
        # What only passes on an answer is none by itself; where nothing else was kept, it tells.
        (otlp(span({**NEW, "gen_ai.operation.name": "invoke_agent"}, at=1, name="p"), span(NEW)),
         (FOUND,)),
        (otlp(span(FRAME, at=1, name="p"), RETRIEVER, span(INFERENCE)), (FOUND,)),
        (otlp(span(FRAME, at=0, name="p"), RETRIEVER), (FOUND,)),
        (otlp(span(SDK, at=1, name="p"), span(SDK_CALL)), ()),
        # To ask for a tool is no answer.
        (otlp(span(CALLED, at=1, name="s0"), span(NEW)), (FOUND,)),
        ([{**GENERATION, "id": "o0", "startTime": "0", "output": {
            "role": "assistant", "content": None, "tool_calls": [{"id": "x"}]}}, GENERATION], ()),
        ([{**GENERATION, "output": {"completion": TEXT}}], ()),
        ([{**GENERATION, "output": CHOSEN}], ()),
        ([{**GENERATION, "output": {"candidates": [{"content": {
            "role": "model", "parts": [{"text": TEXT}]}}]}}], ()),
        ([{**TRACE, "input": {"args": [], "kwargs": {"question": QUESTION}}}], ()),
        ([{**TRACE, "input": {"args": [QUESTION], "kwargs": {}}}], ()),
        ([{**TRACE, "output": {"answer": TEXT, "contexts": [FOUND]}}], (FOUND,)),
        ([{**TRACE, "input": J({"question": QUESTION, "context": FOUND})}], (FOUND,)),
        ([{**RETRIEVAL, "output": {"documents": [{"page_content": FOUND}]}}, GENERATION], (FOUND,)),
        ([RUN], ()),
        ([{**RUN, "inputs": SAID, "outputs": CHOSEN}], ()),
        ([{**RUN, "inputs": J(RUN["inputs"]), "outputs": J(RUN["outputs"])}], ()),
        ([CHAIN, SEARCH, RUN], (FOUND,)),
        ([CHAIN], ()),
        ([{**CHAIN, "trace_id": None, "child_runs": [SEARCH, RUN]}], (FOUND,)),
        ([{"id": "c", "op_name": "weave:///x/op/openai.chat.completions.create:v", "trace_id": "t",
           "started_at": "2026", "inputs": SAID, "output": CHOSEN}], ()),
    ],
)  # fmt: skip
def test_traces_of_more_programs(tmp_path: Path, given: Any, sources: tuple[str, ...]):
    (one,) = texts_of(saved(tmp_path / "trace.json", given)).texts
    assert (one.given.question, one.given.text, one.given.sources) == (QUESTION, TEXT, sources)


def child(id: str, at: int, **held: Any) -> dict[str, Any]:
    """A span of a trace by attributes."""
    return span(held, at=at, name=id) | {"parentSpanId": "p"}


BRAINTRUST = {"root_span_id": "a", "created": "2026", "metadata": {}}
STREAM = [{"choices": [{"index": 0, "delta": one}]} for one in
          ({"role": "assistant", "content": TEXT[:8]}, {"content": TEXT[8:]}, {})]  # fmt: skip
STATE = {"messages": [{"type": "human", "content": QUESTION}, {"type": "tool", "content": FOUND},
                      {"type": "ai", "content": TEXT}]}  # fmt: skip
HAYSTACK = "haystack.component."


@pytest.mark.parametrize(
    ("given", "sources"),
    [
        # What was sent and what came back, as gateways and batches keep it.
        ([{"messages": [USER], "response": TEXT}], ()),
        ([{"messages": J([USER]), "response": J(CHOSEN), "model": "m"}], ()),
        ([{"request_body": {"messages": [USER]}, "response_body": CHOSEN}], ()),
        ([{"request": {"url": "x", "body": SAID}, "response": {"status": 200, "body": CHOSEN}}],
         ()),
        ([{"request": {"contents": [{"role": "user", "parts": [{"text": QUESTION}]}]},
           "response": {"candidates": [{"content": {"parts": [{"text": TEXT}]}}]}}], ()),
        ([{"request": J({"question": QUESTION}), "response": J({"answer": TEXT}), "tags": {}}], ()),
        ([{"input": [{"role": "user", "content": [{"type": "input_text", "text": QUESTION}]}],
           "output": [{"type": "file_search_call", "results": [{"file_id": "f", "text": FOUND}]},
                      {"type": "message", "role": "assistant", "content": TEXT}]}], (FOUND,)),
        # Braintrust.
        ([{**BRAINTRUST, "id": "b", "span_attributes": {"type": "function", "name": "retrieve"},
           "input": QUESTION, "output": [{"content": FOUND}]},
          {**BRAINTRUST, "id": "c", "created": "2027", "input": [USER],
           "span_attributes": {"type": "llm"}, "output": CHOSEN["choices"]}], (FOUND,)),
        # Datadog, as it is sent and as its search answers.
        ({"data": {"type": "span", "attributes": {"spans": [
            {"trace_id": "t", "span_id": "1", "start_ns": 1, "meta": {
                "kind": "retrieval", "output": {"documents": [{"text": FOUND}]}}},
            {"trace_id": "t", "span_id": "2", "start_ns": 2, "meta": {
                "kind": "llm", "input": SAID, "output": {"messages": [ANSWER]}}}]}}}, (FOUND,)),
        ({"data": [{"type": "span", "attributes": {"trace_id": "t", "span_id": str(at), **held}}
                   for at, held in enumerate((
                       {"span_kind": "llm", "start_ns": 2, "input": SAID,
                        "output": {"messages": [ANSWER]}},
                       {"span_kind": "retrieval", "start_ns": 1, "input": {"value": QUESTION},
                        "output": {"documents": [{"text": FOUND}]}}))]}, (FOUND,)),
        # A stream that was kept in pieces, or joined.
        ([{**GENERATION, "output": STREAM}], ()),
        ([plain({"request_data": SAID, "response_data": {"combined_chunk_content": TEXT}})], ()),
        # A state that holds the whole conversation: what its tools said is evidence.
        ([{**CHAIN, "inputs": SAID, "outputs": STATE}], (FOUND,)),
        # Attributes of conventions that nobody named.
        (otlp(child("r", 1, **{HAYSTACK + "type": "BM25Retriever",
                               HAYSTACK + "output": J({"documents": [{"content": FOUND}]})}),
              child("g", 2, **{HAYSTACK + "type": "Generator",
                               HAYSTACK + "input": J({"prompt": QUESTION}),
                               HAYSTACK + "output": J({"replies": [TEXT]})})), (FOUND,)),
        (otlp(span({"gen_ai.operation.name": "chat", "x.request.prompt": J([QUESTION]),
                    "x.response.completion": J([TEXT])})), ()),
        (otlp(span({"a.llm_request": J({"contents": [{"role": "user", "parts": [
                        {"text": QUESTION}]}]}),
                    "a.llm_response": J({"content": {"parts": [{"text": TEXT}]}})}),
              child("t", 1, **{"a.tool_call_result": J({"result": FOUND})})), (FOUND,)),
        (otlp(span({"openinference.span.kind": "LLM", "llm.prompts.0.prompt.text": QUESTION,
                    "llm.choices.0.completion.text": TEXT})), ()),
        ([{"parts": [{"part_kind": "user-prompt", "content": QUESTION}], "kind": "request"},
          {"parts": [{"part_kind": "tool-call", "args": "{}"}], "kind": "response"},
          {"parts": [{"part_kind": "tool-return", "content": FOUND}], "kind": "request"},
          {"parts": [{"part_kind": "text", "content": TEXT}], "kind": "response"}], (FOUND,)),
        # Under names that differ in their spelling, or that nobody knows.
        ([{"requestBody": J(SAID), "responseBody": J(CHOSEN)}], ()),
        ([{"input": {"inputBodyJson": SAID}, "output": {"outputBodyJson": CHOSEN}}], ()),
        ([{"trace_id": "t", "input": {"value": QUESTION}, "output": {"value": TEXT}, "spans": [
            {"span_id": "1", "type": "rag", "contexts": [{"content": FOUND}], "input": {}},
            {"span_id": "2", "type": "llm", "input": {"type": "chat", "value": [USER]},
             "output": {"type": "chat", "value": [ANSWER]}}]}], (FOUND,)),
        ([{"object": "trace", "id": "t"},
          {"id": "1", "trace_id": "t", "started_at": "1", "span_data": {
              "type": "function", "name": "f", "output": FOUND}},
          {"id": "2", "trace_id": "t", "started_at": "2", "span_data": {
              "type": "generation", "input": [USER], "output": [ANSWER]}}], (FOUND,)),
        ([{"traceId": "t", "spanType": "tool_call", "startedAt": "1", "input": {}, "output": {
            "results": [FOUND]}},
          {"traceId": "t", "spanType": "model_generation", "startedAt": "2",
           "input": SAID, "output": {"text": TEXT}}], (FOUND,)),
        ([{"trace.id": "t", "span.id": "s", **NUMBERED}], ()),
        ([{"TraceId": "t", "SpanId": "s", "Timestamp": "2026", "SpanAttributes": NUMBERED}], ()),
        ([{"RECORD_ATTRIBUTES": {"x.root.input": QUESTION, "x.root.output": TEXT},
           "TRACE": {"trace_id": "t", "span_id": "s"}}], ()),
        (otlp(span(CHAT, ("gen_ai.content.prompt", {"gen_ai.prompt": J([
                        {"role": "user", "items": [{"Text": QUESTION}]}])}),
                   ("gen_ai.content.completion", {"gen_ai.completion": J([
                        {"role": "Assistant", "items": [{"Text": TEXT}]}])}))), ()),
        ([{"trace_id": "t", "inputs": {"q": QUESTION}, "output": TEXT}], ()),
        ([{"prompt": QUESTION, "output": TEXT, "timestamp": 1}], ()),
        ([{"query": SAID, "response": {"messages": [ANSWER]}, "context": FOUND}], (FOUND,)),
        ([{"request": {"prompt": QUESTION}, "result": {"completions": [{"text": TEXT}]}}], ()),
        ([{"prompt": QUESTION, "response": J({"text": TEXT, "sources": [{"text": FOUND}]})}],
         (FOUND,)),
        ([{**RETRIEVAL, "type": "SPAN", "name": "检索", "output": {"文档": [FOUND]}}, GENERATION],
         (FOUND,)),
    ],
)  # fmt: skip
def test_traces_in_forms_that_nobody_named(tmp_path: Path, given: Any, sources: tuple[str, ...]):
    (one,) = texts_of(saved(tmp_path / "trace.json", given)).texts
    assert (one.given.question, one.given.text, one.given.sources) == (QUESTION, TEXT, sources)


@pytest.mark.parametrize(
    "failed",
    [
        {**GENERATION, "id": "x", "level": "ERROR", "output": "The service is busy."},
        {**GENERATION, "id": "x", "output": "Error: 429 Too Many Requests"},
        {**GENERATION, "id": "x", "output": {"error": {"message": "busy"}}},
        {**GENERATION, "id": "x", "output": None},
        {**GENERATION, "id": "x", "error": "busy", "output": "..."},
    ],
)
def test_a_call_without_an_answer_is_left_out_and_counted(tmp_path: Path, failed: dict[str, Any]):
    found = texts_of(saved(tmp_path / "trace.json", [failed, GENERATION]))
    assert [one.id for one in found.texts] == ["o2"]
    assert found.reading is not None
    assert [note.facts for note in found.reading.notes] == [{"count": 1}]


def test_spans_of_other_things_say_nothing(tmp_path: Path):
    others = (
        child("h", 1, **{"http.request.body": QUESTION, "http.response.body": "<html>"}),
        child("d", 2, **{"db.query": "SELECT 1", "db.response": "1"}),
        child("o", 3, **{"ai.operationId": "ai.generateObject.doGenerate",
                         "ai.settings.output": "object", "ai.prompt": J(SAID)}),
    )  # fmt: skip
    path = saved(tmp_path / "trace.json", otlp(*others, span(PLAIN)))
    assert [one.given.text for one in texts_of(path).texts] == [TEXT]


def test_a_failed_span_is_no_answer(tmp_path: Path):
    given = otlp(span(PLAIN, name="s0") | {"status": {"code": 2}}, span(PLAIN))
    assert [one.id for one in texts_of(saved(tmp_path / "t.json", given)).texts] == ["s1"]
    with pytest.raises(InvalidInputError, match="no answer"):
        texts_of(saved(tmp_path / "t.json", otlp(span(CALLED))))


CHATML = f"<|im_start|>user\n{QUESTION}<|im_end|>\n<|im_start|>assistant\n{TEXT}<|im_end|>"
THOUGHT = {"thought": True, "text": "Hm."}
PARTED = [
    {"role": "user", "parts": [{"text": QUESTION}]},
    {"role": "model", "parts": [THOUGHT, {"text": TEXT}]},
]


def node(name: str, parent: str | None, *children: str, **said: Any) -> dict[str, Any]:
    """A node of ChatGPT's export."""
    kept = (
        {"author": {"role": said["role"]}, "content": {"parts": [said["text"]]}} if said else None
    )
    return {name: {"id": name, "parent": parent, "children": [*children], "message": kept}}


TREE = {
    **node("r", None, "u"),
    **node("u", "r", "x", "a", role="user", text=QUESTION),
    **node("x", "u", role="assistant", text="In Paris."),
    **node("a", "u", role="assistant", text=TEXT),
}


@pytest.mark.parametrize(
    "rows",
    [
        [{"contents": PARTED}],
        [{"conversation": [{"human": QUESTION, "assistant": TEXT}]}],
        [{"turns": [{"question": QUESTION, "answer": TEXT}]}],
        [{"history": [[QUESTION, TEXT]]}],
        [{"chat_history": [{"role": "USER", "message": QUESTION},
                           {"role": "CHATBOT", "message": TEXT}]}],
        [{"uuid": "c", "chat_messages": [{"sender": "human", "text": QUESTION},
                                         {"sender": "assistant", "text": TEXT}]}],
        [{"title": "t", "mapping": TREE, "current_node": "a"}],
        [{"chat": {"title": "t", "messages": [USER, ANSWER]}}],
        [{"user_input": [{"type": "human", "content": QUESTION}, {"type": "ai", "content": TEXT}]}],
        [{"对话": [{"角色": "用户", "内容": QUESTION}, {"角色": "助手", "内容": TEXT}]}],
        [{"Role": "User", "Message": QUESTION}, {"Role": "Assistant", "Message": TEXT}],
        [{"message_tree_id": "1", "role": "prompter", "text": QUESTION},
         {"message_tree_id": "1", "role": "assistant", "text": TEXT}],
        [{"sender": "GPT", "isCreatedByUser": False, "text": TEXT, "createdAt": "2026-02"},
         {"sender": "Me", "isCreatedByUser": True, "text": QUESTION, "createdAt": "2026-01"}],
        [{**ANSWER, "created_at": 2}, {**USER, "created_at": 1}],
        [{"messages": [{"role": "usuario", "content": QUESTION},
                       {"role": "asistente", "content": TEXT}]}],
        [{"conversation_parts": [{"author": {"type": "user"}, "body": QUESTION},
                                 {"author": {"type": "bot"}, "body": TEXT}]}],
        [{"events": [{"event": "user", "text": QUESTION}, {"event": "bot", "text": TEXT}]}],
        [{"event": "user_message", "text": QUESTION}, {"event": "assistant_message", "text": TEXT}],
        [{"dialog": [{"Q": QUESTION, "A": TEXT}]}],
        [{"direction": "incoming", "payload": {"text": QUESTION}},
         {"direction": "outgoing", "payload": {"text": TEXT}}],
        [{"text": CHATML}],
        [{"text": f"<|start|>user<|message|>{QUESTION}<|end|><|start|>assistant<|channel|>analysis"
                  f"<|message|>Hm.<|end|><|start|>assistant<|channel|>final<|message|>{TEXT}"}],
        [{"text": f"<s>[INST] <<SYS>>Be short.<</SYS>> {QUESTION} [/INST] {TEXT} </s>"}],
        [{"text": "<|start_header_id|>user<|end_header_id|>\n\n" + QUESTION + "<|eot_id|>"
                  "<|start_header_id|>assistant<|end_header_id|>\n\n" + TEXT + "<|eot_id|>"}],
        [{"text": f"### Human: {QUESTION}### Assistant: {TEXT}"}],
        [{"text": f"Below is a task.\n### Instruction:\n{QUESTION}\n\n### Response:\n{TEXT}"}],
        [{"text": f"Be short. USER: {QUESTION} ASSISTANT: {TEXT}</s>"}],
        [{"chosen": f"\n\nHuman: {QUESTION}\n\nAssistant: {TEXT}", "text": CHATML}],
        {"title": "t", "messages": [{"sender": "User", "isCreatedByUser": True, "text": QUESTION,
                                     "children": [{"sender": "GPT-4o", "isCreatedByUser": False,
                                                   "text": TEXT, "children": []}]}]},
        {"systemInstruction": {"text": "Be short."}, "chunkedPrompt": {"chunks": [
            {"text": QUESTION, "role": "user"},
            {"text": "The user asks about her birth.", "role": "model", "isThought": True},
            {"text": TEXT, "role": "model"}], "pendingInputs": [{"text": "", "role": "user"}]}},
        {"name": "c", "interactions": [
            {"request": {"session": "projects/p/sessions/s",
                         "queryInput": {"text": {"text": QUESTION}, "languageCode": "en"}},
             "response": {"responseId": "r", "queryResult": {
                 "text": QUESTION, "responseMessages": [{"text": {"text": [TEXT]}}]}}}]},
        {"results": {"results": [
            {"prompt": {"raw": f"Context: {FOUND}\n\nQuestion: {QUESTION}"},
             "response": {"output": TEXT, "cached": False}, "vars": {"question": QUESTION}}]}},
        # In AutoGen each agent is the assistant of what it keeps.
        [{"chat_history": [{"role": "assistant", "name": "user_proxy", "content": QUESTION},
                           {"role": "user", "name": "assistant", "content": TEXT},
                           {"role": "assistant", "name": "user_proxy", "content": "TERMINATE"}]}],
        {"D1": {"goal": {"info": {}}, "log": [{"text": QUESTION, "metadata": {}},
                                              {"text": TEXT, "metadata": {"a": 1}}]}},
        {"jsonrpc": "2.0", "id": 1, "result": {
            "id": "t", "kind": "task", "status": {"state": "completed"},
            "history": [{"kind": "message", "role": "user",
                         "parts": [{"kind": "text", "text": QUESTION}]}],
            "artifacts": [{"artifactId": "a", "parts": [{"kind": "text", "text": TEXT}]}]}},
        {"raw": TEXT, "json_dict": None, "tasks_output": [
            {"description": QUESTION, "expected_output": "a place", "raw": TEXT, "agent": "A"}]},
        [{"task": QUESTION, "task_images": None},
         {"step_number": 1, "model_output": "Thought: I search.", "observations": FOUND,
          "action_output": None, "is_final_answer": False},
         {"step_number": 2, "model_output": "Thought: done.", "observations": None,
          "action_output": TEXT, "is_final_answer": True}],
    ],
)  # fmt: skip
def test_conversations_in_more_files(tmp_path: Path, rows: list[Any]):
    (one,) = texts_of(saved(tmp_path / "said.json", rows)).texts
    assert (one.given.question, one.given.text) == (QUESTION, TEXT)


def test_right_answers_beside_a_structured_answer_are_kept(tmp_path: Path):
    row = {"prompt": QUESTION, "response": J({"answer": TEXT}), "reference": "Warsaw"}
    (item,) = open_data_set(saved(tmp_path / "set.json", [row])).items
    assert (item.text, item.answers) == (row["response"], ("Warsaw",))


def test_two_answers_to_one_question_are_two_texts(tmp_path: Path):
    other = {"role": "assistant", "content": "In Paris."}
    row = {"id": "q", "conversation_a": [USER, ANSWER], "conversation_b": [USER, other]}
    found = texts_of(saved(tmp_path / "arena.json", [row])).texts
    assert [one.given.text for one in found] == [TEXT, "In Paris."]


def test_of_two_texts_that_begin_alike_what_is_new_is_one(tmp_path: Path):
    before = f"\n\nHuman: Hello!\n\nAssistant: Hello.\n\nHuman: {QUESTION}\n\nAssistant: "
    row = {"chosen": before + TEXT, "rejected": before + "In Paris."}
    found = texts_of(saved(tmp_path / "hh.jsonl", [row])).texts
    assert [one.given.text for one in found] == ["Hello.", TEXT, "In Paris."]


def test_ids_are_no_messages_and_no_answer_is_its_own_evidence(tmp_path: Path):
    spoken = [("user", "b-1"), ("assistant", "b-2")]
    messages = [{"role": role, "blocks": [name]} for role, name in spoken]
    row = {"messages": messages, "text": TEXT, "question": QUESTION}
    (one,) = texts_of(saved(tmp_path / "blocks.json", [row])).texts
    assert one.given.text == TEXT
    row = {"input": [USER], "output": ANSWER, "contexts": [{"text": TEXT}, {"text": FOUND}]}
    (one,) = texts_of(
        saved(tmp_path / "own.json", [{"traceId": "t", "type": "GENERATION", **row}])
    ).texts
    assert TEXT not in one.given.sources


def test_a_history_goes_before_what_is_asked_now(tmp_path: Path):
    row = {"instruction": "Who was Albert Einstein?", "input": "", "output": "A physicist.",
           "history": [[QUESTION, TEXT]]}  # fmt: skip
    found = texts_of(saved(tmp_path / "alpaca.json", [row])).texts
    assert [one.given.text for one in found] == [TEXT, "A physicist."]


SPOKEN = {"role": "assistant", "content": [{"type": "text", "text": TEXT}]}
SAID_BY_ITEM = {"type": "message", "role": "assistant",
                "content": [{"type": "output_text", "text": TEXT}]}  # fmt: skip


@pytest.mark.parametrize(
    ("read", "wrote", "sources"),
    [
        ({"messages": [{"role": "user", "content": [{"text": QUESTION}]}]},
         {"output": {"message": {"role": "assistant", "content": [{"text": TEXT}]}}}, ()),
        ({"system": "Be short.", "messages": [USER]}, {"type": "message", **SPOKEN}, ()),
        ({"input": QUESTION}, {"output": [{"type": "reasoning", "summary": []}, SAID_BY_ITEM]}, ()),
        ({"input": [USER]}, {"output": [{"type": "function_call", "name": "f"}, SAID_BY_ITEM]}, ()),
        ({"model": "m", "prompt": QUESTION}, {"model": "m", "response": TEXT, "done": True}, ()),
        ({"message": QUESTION, "chat_history": []}, {"text": TEXT, "generation_id": "x"}, ()),
        (SAID, {"message": SPOKEN}, ()),
        ({"inputs": QUESTION}, [{"generated_text": TEXT}], ()),
        ({"instances": [{"prompt": QUESTION}]}, {"predictions": [TEXT]}, ()),
        ({"prompt": [QUESTION]}, {"choices": [{"text": TEXT, "index": 0}]}, ()),
        ({"query": QUESTION}, {"answer": TEXT, "sources": [{"content": FOUND}]}, (FOUND,)),
        ({"query": QUESTION, "documents": [{"content": FOUND}]}, {"replies": [TEXT]}, (FOUND,)),
        ({"question": QUESTION, "context": FOUND}, {"reasoning": "Hm.", "answer": TEXT}, (FOUND,)),
        ({"问题": QUESTION}, {"回答": TEXT}, ()),
        ({"data": {"question": QUESTION}}, {"data": {"answer": TEXT}}, ()),
        ({"user": QUESTION}, {"assistant": TEXT}, ()),
        ({"session": "s", "question": QUESTION}, {"tokens": 5, "answer": TEXT}, ()),
        ({"messages": [f"user: {QUESTION}"]}, f"assistant: {TEXT}", ()),
        ({"messages": [{"type": "human", "content": QUESTION}]},
         {"messages": [{"type": "human", "content": QUESTION}, {"type": "ai", "content": TEXT}]},
         ()),
        ([USER], [TEXT[:8], TEXT[8:]], ()),
        ([USER], {"role": "assistant", "content": TEXT, "reasoning_content": "Hm."}, ()),
        ([USER], f"<think>Hm.</think>{TEXT}", ()),
        ([USER, {"role": "assistant", "content": "Unknown."}, USER], TEXT, ()),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kept", ["span", "observation"])
def test_inputs_and_outputs_in_any_wrapping(
    tmp_path: Path, read: Any, wrote: Any, sources: tuple[str, ...], kept: str
):
    told = [one if isinstance(one, str) else json.dumps(one) for one in (read, wrote)]
    given = (
        [{**GENERATION, "input": read, "output": wrote}]
        if kept == "observation"
        else otlp(span({"openinference.span.kind": "LLM", "input.value": told[0],
                        "output.value": told[1]}))
    )  # fmt: skip
    (one,) = texts_of(saved(tmp_path / "trace.json", given)).texts
    assert (one.given.question, one.given.text, one.given.sources) == (QUESTION, TEXT, sources)


def test_a_table_of_phoenix_as_csv(tmp_path: Path):
    path = tmp_path / "spans.csv"
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(PHOENIX))
        table.writeheader()
        table.writerows([FOUND_BY_PHOENIX, PHOENIX])
    (one,) = texts_of(path).texts
    assert (one.given.question, one.given.text, one.given.sources) == (QUESTION, TEXT, (FOUND,))


def test_every_answer_of_a_call_counts(tmp_path: Path):
    other = {"role": "assistant", "parts": [{"type": "text", "content": "In Paris."}]}
    given = otlp(span({**PLAIN, "gen_ai.output.messages": json.dumps([*OUT_PARTS, other])}))
    found = texts_of(saved(tmp_path / "trace.json", given)).texts
    assert [(one.id, one.given.question, one.given.text) for one in found] == [
        ("s1.1", QUESTION, TEXT),
        ("s1.2", QUESTION, "In Paris."),
    ]


def test_what_was_cut_off_is_left_out_and_counted(tmp_path: Path):
    cut = span({**PLAIN, "gen_ai.output.messages": json.dumps(OUT_PARTS)[:-20]}, name="s2")
    path = saved(tmp_path / "trace.json", otlp(span(PLAIN), cut))
    found = texts_of(path)
    assert [one.id for one in found.texts] == ["s1"]
    assert found.reading is not None
    assert "1" in str(found.reading.notes[0])


def test_an_export_of_langfuse_as_csv(tmp_path: Path):
    path = tmp_path / "export.csv"
    cells = {**GENERATION, "input": json.dumps([USER]), "output": json.dumps(ANSWER)}
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.DictWriter(file, list(cells))
        table.writeheader()
        table.writerow(cells)
    (one,) = texts_of(path).texts
    assert (one.id, one.given.question, one.given.text) == ("o2", QUESTION, TEXT)


@pytest.mark.parametrize(
    ("rows", "ids"),
    [
        ([USER, ANSWER, USER, ANSWER], ["turn.1", "turn.2"]),
        ([{"id": "c", "messages": [USER, ANSWER, USER, ANSWER]}], ["c.1", "c.2"]),
        ([{"messages": json.dumps([USER, ANSWER])}, {"messages": [USER, ANSWER]}], ["1", "2"]),
        ([{"conversations": [{"from": "human", "value": QUESTION},
                             {"from": "gpt", "value": TEXT}]}], ["1"]),
        ([{**USER, "conversation_id": "a"}, {**ANSWER, "conversation_id": "a"},
          {**USER, "conversation_id": "b"}, {**ANSWER, "conversation_id": "b"}], ["a", "b"]),
    ],
)  # fmt: skip
def test_a_conversation_is_read_turn_by_turn(tmp_path: Path, rows: list[Any], ids: list[str]):
    found = texts_of(saved(tmp_path / "said.jsonl", rows)).texts
    assert [one.id for one in found] == ids
    assert {one.given.text for one in found} == {TEXT}
    assert all(one.given.question.endswith(QUESTION) for one in found)


@pytest.mark.parametrize(
    "rows",
    [
        [{"id": "1", "question": QUESTION, "text": TEXT}],
        [{"id": "1", "answer": TEXT, "turns": 3}],
        [{"type": "human", "text": TEXT}],
        [{"context": CHATML, "response": TEXT}],
        [{"text": TEXT, "chat": 3, "history": ""}],
        [{"text": TEXT, "notes": "User: 5 V\nModel: none"}],
        [{"text": TEXT, "tags": '{"type": "cut', "meta": {"kind": "llm"}, "attributes": "[1"}],
    ],
)
def test_another_table_is_left_as_it_is(tmp_path: Path, rows: list[Any]):
    (one,) = texts_of(saved(tmp_path / "texts.jsonl", rows)).texts
    assert one.given.text == TEXT

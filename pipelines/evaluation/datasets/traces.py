"""Conversations and traces of applications, as rows of answers with what they had to go by.

Read are conversations (a line for each message, or a list of messages in each row), spans of
OpenTelemetry in the JSON of OTLP exporters and of the console, in the conventions for generative AI
before and after 1.37 and in those of OpenInference and OpenLLMetry, and exports of Langfuse. Every
answer becomes a row with the columns `id`, `question`, `text`, `context` (a list of texts), `model`
and `trace`: so it can be checked, annotated and evaluated like the row of any other file.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from pipelines.engine.turns import (
    Utterance,
    documents_in,
    is_message,
    read_json,
    text_of_content,
    turns_of,
    utterances,
)
from pipelines.evaluation.datasets.files import DataTable, Row

_LISTS = ("messages", "conversations", "conversation", "turns", "dialogue", "dialog", "chat")
_RESOURCES = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs")
_LANGFUSE = (
    "observations",
    "traceId",
    "trace_id",
    "sessionId",
    "projectId",
    "bookmarked",
    "startTime",
    "latency",
    "timestamp",
)
"""Columns of which an export of Langfuse has one, beside what went in and came out."""

_INDEXED = re.compile(r"(?P<list>.+?)\.(?P<at>\d+)\.(?:message\.)?(?P<field>.+)")

Attributes = dict[str, Any]


class _Generation(NamedTuple):
    """An answer of a model: the messages that it read and wrote, and texts found for it."""

    id: str
    messages: list[Utterance]
    sources: tuple[str, ...] = ()
    model: str = ""
    trace: str = ""


def answers_in(table: DataTable) -> DataTable:
    """Return the answers in a table of messages, conversations or traces, a row for each; any
    other table as it is.
    """
    for reader in (_of_traces, _of_langfuse, _of_messages, _of_conversations):
        found = reader(table)
        if found is not None:
            rows = [row for one in found for row in one]
            places = list(range(1, len(rows) + 1))
            return DataTable(table.name, rows, places, "record", table.bad, table.notes)
    return table


def _rows(generation: _Generation, *, last: bool) -> list[Row]:
    """Return the answers of a conversation; only the last one of a call of a model, which read the
    others.
    """
    turns = turns_of(generation.messages, sources=generation.sources)
    kept = turns[-1:] if last else turns
    several = len(kept) > 1
    return [
        {
            "id": f"{generation.id}.{turn.number}" if several else generation.id,
            "question": turn.given.question,
            "text": turn.given.text,
            "context": list(turn.given.sources),
            "model": generation.model,
            "trace": generation.trace,
        }
        for turn in kept
    ]


# --- Conversations --------------------------------------------------------------------------------


def _of_messages(table: DataTable) -> Iterable[list[Row]] | None:
    """Read a file with a message in each row: one conversation, or those that a column tells
    apart.
    """
    if not table.rows or not all(map(is_message, table.rows)):
        return None
    column = next((c for c in _CONVERSATION if c in table.columns), None)
    if column is None and "text" in table.columns and "content" not in table.columns:
        return None
    groups: dict[str, list[Row]] = {}
    for row in table.rows:
        groups.setdefault("" if column is None else str(row.get(column)), []).append(row)
    return [
        _rows(_Generation(name or "turn", utterances(group), trace=name), last=False)
        for name, group in groups.items()
    ]


_CONVERSATION = ("conversation_id", "conversationId", "dialogue_id", "session_id", "thread_id")


def _of_conversations(table: DataTable) -> Iterable[list[Row]] | None:
    """Read a file with a conversation in each row."""
    column = next((c for c in _LISTS if _holds_messages(table.rows, c)), None)
    if column is None:
        return None
    found: list[list[Row]] = []
    for number, row in enumerate(table.rows, start=1):
        messages = utterances(row.get(column))
        if row.get("system"):
            messages = [Utterance(speaker="system", text=str(row["system"])), *messages]
        sources = tuple(
            text
            for name in ("sources", "documents", "context")
            for text in documents_in(row.get(name))
        )
        name = str(row.get("id") or row.get("conversation_id") or number)
        model = str(row.get("model") or "")
        found.append(_rows(_Generation(name, messages, sources, model, name), last=False))
    return found


def _holds_messages(rows: Sequence[Row], column: str) -> bool:
    cells = (_plain(row[column]) for row in rows if row.get(column))
    first = next(cells, None)
    return isinstance(first, list) and any(map(is_message, first))


# --- OpenTelemetry --------------------------------------------------------------------------------


class _Span(NamedTuple):
    id: str
    trace: str
    at: int
    attributes: Attributes
    events: list[tuple[str, Attributes]]


def _of_traces(table: DataTable) -> Iterable[list[Row]] | None:
    spans = list(_spans(table.rows))
    if not spans:
        return None
    spans.sort(key=lambda span: span.at)
    found: list[list[Row]] = []
    documents: dict[str, list[str]] = {}
    for span in spans:
        known = documents.setdefault(span.trace, [])
        known += [text for text in _found_by(span) if text not in known]
        messages = _messages_of(span)
        if any(one.speaker == "assistant" for one in messages):
            model = _first(span.attributes, _MODELS)
            name = span.id or f"{len(found) + 1}"
            made = _Generation(name, messages, tuple(known), str(model or ""), span.trace)
            found.append(_rows(made, last=True))
    return found


_MODELS = (
    "gen_ai.response.model",
    "gen_ai.request.model",
    "llm.model_name",
    "llm.response.model",
    "llm.request.model",
)


def _spans(rows: Sequence[Row]) -> Iterator[_Span]:
    logs: dict[tuple[str, str], list[tuple[str, Attributes]]] = {}
    spans: list[_Span] = []
    for row in rows:
        for name in _RESOURCES:
            for resource in _list(row.get(name)):
                for scope in _list(
                    _first(
                        resource,
                        (
                            "scopeSpans", "scope_spans", "instrumentationLibrarySpans",
                            "scopeLogs", "scope_logs",
                        ),
                    )
                ):  # fmt: skip
                    spans += map(_span, _list(_first(scope, ("spans",))))
                    for record in _list(_first(scope, ("logRecords", "log_records"))):
                        key = _ids(record)
                        logs.setdefault(key, []).append(_event(record))
        if not any(name in row for name in _RESOURCES) and _is_span(row):
            spans.append(_span(row))
    known = {(one.trace, one.id) for one in spans}
    for one in spans:
        yield one._replace(events=[*one.events, *logs.get((one.trace, one.id), ())])
    for number, (key, events) in enumerate(logs.items()):
        if key not in known:
            yield _Span(key[1], key[0], number, {}, events)


def _is_span(row: Row) -> bool:
    """Return whether a row is a span by itself, as the console exporter writes it."""
    held = _attributes(row.get("attributes"))
    return bool(row.get("name")) and any(
        n.startswith(("gen_ai.", "llm.", "retrieval.")) for n in held
    )


def _span(row: Mapping[str, Any]) -> _Span:
    trace, name = _ids(row)
    began = _first(row, ("startTimeUnixNano", "start_time_unix_nano", "start_time")) or 0
    at = int(began) if str(began).isdigit() else int(re.sub(r"\D", "", str(began))[:17] or 0)
    events = [_event(one) for one in _list(row.get("events"))]
    return _Span(name, trace, at, _attributes(row.get("attributes")), events)


def _ids(row: Mapping[str, Any]) -> tuple[str, str]:
    context = row.get("context")
    held = context if isinstance(context, Mapping) else row
    trace = str(_first(held, ("traceId", "trace_id")) or "")
    return trace, str(_first(held, ("spanId", "span_id")) or "")


def _event(one: Mapping[str, Any]) -> tuple[str, Attributes]:
    held = _attributes(one.get("attributes"))
    body = _value(one["body"]) if one.get("body") is not None else None
    if isinstance(body, Mapping):
        held = {**body, **held}
    elif isinstance(body, str):
        held = {"content": body, **held}
    name = _first(one, ("name", "eventName", "event_name")) or held.get("event.name") or ""
    return str(name), held


def _attributes(given: Any) -> Attributes:
    """Return attributes by name, from the list of OTLP or from an object."""
    if isinstance(given, Mapping):
        return {str(name): _value(value) for name, value in given.items()}
    return {str(one["key"]): _value(one.get("value")) for one in _list(given) if "key" in one}


def _value(value: Any) -> Any:
    """Return a value of OTLP as plain JSON; any other value as it is."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, held),) = value.items()
    if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue", "string_value"):
        return held
    if kind == "intValue":
        return int(held)
    if kind in ("arrayValue", "array_value"):
        return [_value(one) for one in _list(_first(held, ("values",)))]
    if kind in ("kvlistValue", "kvlist_value"):
        return _attributes(_first(held, ("values",)))
    return value


_READ = ("gen_ai.input.messages", "gen_ai.prompt", "input.value", "traceloop.entity.input")
_WROTE = ("gen_ai.output.messages", "gen_ai.completion", "output.value", "traceloop.entity.output")
_LISTS_READ = ("gen_ai.prompt", "llm.input_messages", "llm.prompts", "gen_ai.input.messages")
_LISTS_WROTE = (
    "gen_ai.completion",
    "llm.output_messages",
    "llm.completions",
    "gen_ai.output.messages",
)
_SPEAKS = re.compile(
    r"gen_ai\.(?P<role>system|user|assistant|tool)\.message|gen_ai\.(?P<choice>choice)"
)
_CALLS_OF_TOOLS = ("execute_tool", "tool")
_NO_ANSWERS = ("embeddings", "execute_tool", "retrieval", "rerank", "create_agent")


def _messages_of(span: _Span) -> list[Utterance]:
    """Return what a model read and wrote in a span; [] for a span that is no call of one."""
    held: Attributes = {}
    for _, attributes in span.events:
        held |= {name: value for name, value in attributes.items() if name in (*_READ, *_WROTE)}
    held |= span.attributes
    if held.get("gen_ai.operation.name") in _NO_ANSWERS:
        return []
    if str(held.get("openinference.span.kind", "LLM")).upper() not in ("LLM", "AGENT", "CHAIN"):
        return []
    read, wrote = _indexed(held, _LISTS_READ), _indexed(held, _LISTS_WROTE)
    read = read or utterances(_first(held, _READ))
    wrote = wrote or _written(_first(held, _WROTE))
    if not (read or wrote) or not wrote:
        told = list(_told(span.events))
        read, wrote = (told, []) if told else (read, wrote)
    instructions = text_of_content(_plain(held.get("gen_ai.system_instructions")))
    first = [Utterance(speaker="system", text=instructions)] if instructions else []
    return [*first, *read, *(one.model_copy(update={"speaker": "assistant"}) for one in wrote)]


def _plain(value: Any) -> Any:
    """Return what JSON in a text holds; any other value as it is."""
    return read_json(value) if isinstance(value, str) else value


def _told(events: Iterable[tuple[str, Attributes]]) -> Iterator[Utterance]:
    """Yield the messages of events, one for each message."""
    for name, held in events:
        spoken = _SPEAKS.fullmatch(name)
        if spoken is None:
            continue
        said = _plain(_first(held, ("content", "gen_ai.event.content", "message")))
        if isinstance(said, Mapping) and isinstance(said.get("message"), Mapping):
            said = said["message"]
        text = text_of_content(said)
        role: Any = "assistant" if spoken["choice"] else spoken["role"]
        if text.strip():
            yield Utterance(speaker=role, text=text)


def _indexed(held: Attributes, lists: Sequence[str]) -> list[Utterance]:
    """Return the messages of attributes such as `gen_ai.prompt.0.content`."""
    found: dict[int, Attributes] = {}
    for name, value in held.items():
        parts = _INDEXED.fullmatch(name)
        if parts is not None and parts["list"] in lists:
            found.setdefault(int(parts["at"]), {})[parts["field"]] = value
    messages = [_joined_parts(found[at]) for at in sorted(found)]
    return utterances([{"role": "user", **one} for one in messages])


def _joined_parts(fields: Attributes) -> Attributes:
    """Return a message whose parts stand in attributes of their own."""
    parts = [v for n, v in sorted(fields.items()) if n.endswith("message_content.text")]
    return fields if not parts or "content" in fields else {**fields, "content": "\n".join(parts)}


def _written(value: Any) -> list[Utterance]:
    """Return what a model wrote, in whatever form; only what the assistant says counts."""
    value = _plain(value)
    if isinstance(value, Mapping) and isinstance(value.get("choices"), list):
        value = [one.get("message") for one in value["choices"] if isinstance(one, Mapping)]
    if is_message(value) or (isinstance(value, list) and any(map(is_message, value))):
        return [one for one in utterances(value) if one.speaker == "assistant"]
    if isinstance(value, Mapping) and any(name in value for name in ("messages", "conversations")):
        said = [one for one in utterances(value) if one.speaker == "assistant"]
        return said[-1:]
    text = text_of_content(value)
    return [Utterance(speaker="assistant", text=text)] if text.strip() else []


def _found_by(span: _Span) -> Iterator[str]:
    """Yield the texts that a search or a tool of a span found."""
    held = span.attributes
    for name in ("gen_ai.retrieval.documents", "retrieval.documents", "retrieval.output"):
        yield from documents_in(held.get(name))
    for name, value in held.items():
        if re.fullmatch(
            r"(?:retrieval|reranker)\.(?:output_)?documents\.\d+\.document\.content", name
        ):
            yield text_of_content(value)
    for name, attributes in span.events:
        if name.startswith("db.query.result"):
            document = _first(attributes, ("db.query.result.document", "document"))
            yield from documents_in(document)
    kind = str(held.get("openinference.span.kind") or held.get("traceloop.span.kind") or "").lower()
    if held.get("gen_ai.operation.name") in _CALLS_OF_TOOLS or kind == "tool":
        given = _first(held, ("gen_ai.tool.call.result", "output.value", "traceloop.entity.output"))
        yield from documents_in(given)


# --- Langfuse -------------------------------------------------------------------------------------


def _of_langfuse(table: DataTable) -> Iterable[list[Row]] | None:
    """Read an export of Langfuse: traces with their observations, or either alone."""
    columns = set(table.columns)
    told = columns & set(_LANGFUSE)
    if not told or not columns & {"output", "observations"}:
        return None
    observations: dict[str, list[Mapping[str, Any]]] = {}
    traces: list[Mapping[str, Any]] = []
    for row in table.rows:
        trace = _first(row, ("traceId", "trace_id"))
        if trace and row.get("type"):
            observations.setdefault(str(trace), []).append(row)
            continue
        traces.append(row)
        within = [one for one in _list(_plain(row.get("observations"))) if "input" in one]
        observations.setdefault(str(row.get("id")), []).extend(within)
    found: list[list[Row]] = []
    for trace, inside in observations.items():
        own = _observed(trace, sorted(inside, key=lambda one: str(_first(one, _BEGAN) or "")))
        if not own:
            whole = next((one for one in traces if str(one.get("id")) == trace), None)
            own = [] if whole is None else [_generation(whole, trace, ())]
        found += [_rows(one, last=True) for one in own]
    return found


_BEGAN = ("startTime", "start_time", "timestamp")


def _observed(trace: str, observations: Iterable[Mapping[str, Any]]) -> list[_Generation]:
    """Return the generations of a trace, each with what was found before it."""
    known: list[str] = []
    found: list[_Generation] = []
    for one in observations:
        kind = str(one.get("type", "")).upper()
        if kind == "GENERATION":
            found.append(_generation(one, trace, tuple(known)))
        elif kind in ("RETRIEVER", "TOOL") or "retriev" in str(one.get("name", "")).casefold():
            output = _plain(one.get("output"))
            if isinstance(output, Mapping):
                output = _first(output, ("documents", "results", "chunks")) or output
            known += [text for text in documents_in(output) if text not in known]
    return found


def _generation(row: Mapping[str, Any], trace: str, sources: tuple[str, ...]) -> _Generation:
    given = _plain(row.get("input"))
    if isinstance(given, Mapping) and not any(name in given for name in _LISTS):
        own = _first(given, ("question", "query", "input", "prompt", "text"))
        given = given if is_message(given) or own is None else str(own)
    read = utterances(given) if given is not None else []
    wrote = _written(row.get("output"))
    name = str(row.get("id") or trace)
    return _Generation(name, [*read, *wrote], sources, str(row.get("model") or ""), trace)


def _first(held: Any, names: Iterable[str]) -> Any:
    if not isinstance(held, Mapping):
        return None
    return next((held[name] for name in names if held.get(name) not in (None, "")), None)


def _list(value: Any) -> list[Any]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []

"""Spans of OpenTelemetry as steps of an application.

They are read in the JSON of OTLP exporters and of the console, of Jaeger, Zipkin, Tempo, MLflow and
Datadog and in Phoenix's tables, in the conventions for generative AI before and after 1.37 and in
those of OpenInference, OpenLLMetry, Logfire and the AI SDK.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Set
from typing import Any, NamedTuple

from pipelines.engine.messages import (
    Utterance,
    documents_in,
    text_of_content,
    utterances,
)
from pipelines.engine.speakers import is_message
from pipelines.evaluation.datasets.exchanges import (
    BrokenError,
    TracedStep,
    documents_beside,
    first,
    found_in,
    objects_in,
    plainly,
    read_given,
    read_said,
    told_by_tools,
)
from pipelines.evaluation.datasets.grids import Row, value_in

Attributes = dict[str, Any]

_KINDS = (
    "openinference.span.kind", "traceloop.span.kind", "gen_ai.operation.name", "mlflow.spanType",
    "span_kind", "kind",
)  # fmt: skip
_FRAMES = frozenset({"chain", "agent", "workflow", "task", "invoke_agent", "invoke_workflow"})
"""Kinds of spans that hold calls of models."""

_TOOLS = frozenset({"execute_tool", "tool", "retriever", "retrieval"})
_NO_ANSWERS = _TOOLS | {
    *("embeddings", "embedding", "rerank", "reranker", "create_agent", "guardrail", "evaluator"),
}
_MODELS = (
    "gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "llm.response.model",
    "llm.request.model", "ai.model.id", "model_name",
)  # fmt: skip
_READ = (
    "gen_ai.input.messages", "gen_ai.prompt", "ai.prompt.messages", "ai.prompt", "request_data",
    "llm.prompts", "input.value", "traceloop.entity.input", "mlflow.spanInputs", "input.messages",
    "input",
)  # fmt: skip
_WROTE = (
    "gen_ai.output.messages", "gen_ai.completion", "ai.response.text", "ai.result.text",
    "llm.responses", "ai.response.object", "ai.result.object", "response_data", "output.value",
    "traceloop.entity.output", "mlflow.spanOutputs", "output.messages", "output",
)  # fmt: skip
_BOTH = ("pydantic_ai.all_messages", "all_messages")
_LISTS_READ = ("gen_ai.prompt", "llm.input_messages", "llm.prompts", "gen_ai.input.messages")
_LISTS_WROTE = (
    "gen_ai.completion", "llm.output_messages", "llm.completions", "gen_ai.output.messages",
    "llm.choices",
)  # fmt: skip

# Attributes of other conventions, by how their names end.
_END = r"(?:[._](?:value|messages?|content|text|json|data|body))?"
_OTHER_READ = re.compile(
    rf"(?:.*[._])?(?:llm_?request|inputs?|prompts?|request|question|query){_END}", re.IGNORECASE
)
_OTHER_WROTE = re.compile(
    rf"(?:.*[._])?(?:llm_?response|outputs?|completions?|response|answer|generation){_END}",
    re.IGNORECASE,
)
_NOT_SAID = re.compile(
    r"(?:.*[._])?(?:http|db|rpc|url|net|server|client|messaging|faas|code|exception|error|settings?"
    r"|config|options?|param(?:eter)?s|usage|cost|tokens?)[._].*",
    re.IGNORECASE,
)
"""Names of attributes that hold no words of a model, however they end: "http.response.body"."""

_OTHER_KIND = re.compile(r".*[._](?:kind|type|operation(?:\.name)?|step)", re.IGNORECASE)
_FINDS = re.compile(r"retriev|search|tool", re.IGNORECASE)
_WRITES_NOTHING = re.compile(r"embed|rank|guard|evaluat|split|convert", re.IGNORECASE)
_TOLD_BY_TOOL = re.compile(
    r"(?:.*[._])?(?:tool|function)[._]?(?:call)?[._]?(?:result|output|response)s?", re.IGNORECASE
)


def traced_steps(rows: Sequence[Row]) -> Iterable[TracedStep | None] | None:
    """Return what models said in the spans among rows, in their order; None without a span. A step
    is None where what it said was cut off.

    A chain or an agent only passes on what its models said: it counts where none of them was kept.
    """
    spans = sorted(_spans(rows), key=lambda span: span.at)
    if not spans:
        return None
    around = {span.parent for span in spans}
    found: list[TracedStep | None] = []
    answered: set[str] = set()
    documents: dict[str, list[str]] = {}
    for span in spans:
        known = documents.setdefault(span.trace, [])
        known += [text for text in _found_by(span) if text not in known]
        if not _is_frame(span, around):
            _add(span, tuple(known), found, answered)
    for span in spans:
        if _is_frame(span, around) and (not span.trace or span.trace not in answered):
            _add(span, tuple(documents[span.trace]), found, answered)
    return found


class _Span(NamedTuple):
    id: str
    trace: str
    at: int
    attributes: Attributes
    events: list[tuple[str, Attributes]]
    name: str = ""
    parent: str = ""
    failed: bool = False


def _add(
    span: _Span, sources: tuple[str, ...], found: list[TracedStep | None], answered: set[str]
) -> None:
    """Add what a span says to the steps `found`, and its trace to those that have an answer."""
    try:
        messages, count = _messages_of(span)
        read, wrote = (first(span.attributes, names) for names in (_READ, _WROTE))
        beside = (*documents_beside(read), *documents_beside(wrote), *told_by_tools(wrote))
        sources = tuple(dict.fromkeys((*sources, *beside)))
    except BrokenError:
        found.append(None)
        return
    model = str(first(span.attributes, _MODELS) or "")
    step = TracedStep(span.id or f"{len(found) + 1}", messages, sources, model, span.trace, count)
    if span.failed or not step.has_answer:
        if _is_call(span):
            found.append(TracedStep(step.id, []))
    else:
        found.append(step)
        answered.add(span.trace)


def _kinds(span: _Span) -> set[str]:
    return {str(span.attributes.get(name) or "").strip('"').lower() for name in _KINDS}


def _is_frame(span: _Span, around: Set[str]) -> bool:
    """Return whether a span holds calls of models, as one of a chain, an agent or a task does; of
    an unknown kind, whether others lie within it.
    """
    inside = str(span.attributes.get("ai.operationId") or "")
    if re.fullmatch(r"ai\.(?:generate|stream)(?:Text|Object)", inside):
        return True
    unknown = span.id in around and not _is_call(span)
    return unknown or not _FRAMES.isdisjoint(_kinds(span))


_CALLS = frozenset({"llm", "chat", "chat_model", "completion", "text_completion", "call_llm"})


def _is_call(span: _Span) -> bool:
    """Return whether a span says that it is a call of a model."""
    if not _CALLS.isdisjoint(_kinds(span)):
        return True
    kinds = _FRAMES | _NO_ANSWERS
    return kinds.isdisjoint(_kinds(span)) and first(span.attributes, _MODELS) is not None


# --- Files ----------------------------------------------------------------------------------------

_RESOURCES = ("resourceSpans", "resource_spans", "resourceLogs", "resource_logs", "batches")
_SCOPES = (
    "scopeSpans", "scope_spans", "instrumentationLibrarySpans", "scopeLogs", "scope_logs",
)  # fmt: skip
_STARTS = (
    "startTimeUnixNano", "start_time_unix_nano", "start_time", "startTime", "start_time_ns",
    "start_timestamp", "start_ns", "Timestamp", "timestamp", "start",
)  # fmt: skip
_ATTRIBUTES = ("attributes", "tags", "meta", "SpanAttributes", "span_attributes",
               "RECORD_ATTRIBUTES")  # fmt: skip
_TRACE_IDS = ("traceId", "trace_id", "traceID", "TraceId", "context.trace_id", "trace.id",
              "trace.trace_id")  # fmt: skip
_SPAN_IDS = ("spanId", "span_id", "spanID", "SpanId", "context.span_id", "span.id",
             "trace.span_id", "id")  # fmt: skip
_SPACES = (
    "gen_ai.", "llm.", "retrieval.", "openinference.", "traceloop.", "mlflow.span", "ai.prompt",
    "ai.operationId", "input.value", "input.messages", "request_data", "response_data",
)  # fmt: skip


def _spans(rows: Sequence[Row]) -> Iterator[_Span]:
    logs: dict[tuple[str, str], list[tuple[str, Attributes]]] = {}
    spans: list[_Span] = []
    for row in map(_unwrapped, rows):
        for resource in (one for name in _RESOURCES for one in objects_in(row.get(name))):
            for scope in objects_in(first(resource, _SCOPES)):
                spans += map(_span, objects_in(scope.get("spans")))
                for record in objects_in(first(scope, ("logRecords", "log_records"))):
                    logs.setdefault(_ids(record), []).append(_event(record))
        if not any(name in row for name in _RESOURCES):
            inner = row.get("spans")
            inner = objects_in([inner] if isinstance(inner, Mapping) else inner)
            spans += filter(_is_span, map(_span, inner or [row]))
    known = {(one.trace, one.id) for one in spans}
    for one in spans:
        yield one._replace(events=[*one.events, *logs.get((one.trace, one.id), ())])
    for number, (key, events) in enumerate(logs.items()):
        if key not in known:
            yield _Span(key[1], key[0], number, {}, events)


def _unwrapped(row: Row) -> Row:
    """Return the object with spans inside what Tempo, MLflow and Datadog put around it."""
    for name in ("trace", "data", "attributes"):
        inner = row.get(name)
        if isinstance(inner, dict):
            opened = _unwrapped(inner)
            if any(opened.get(one) for one in (*_RESOURCES, "spans")):
                return opened
    return row


def _is_span(span: _Span) -> bool:
    """Return whether a row by itself is a span of a model, a search or a tool."""
    other = all(_by_ending(span.attributes, names) for names in (_OTHER_READ, _OTHER_WROTE))
    kind = not _kinds(span).isdisjoint(_NO_ANSWERS | _CALLS)
    return (
        bool(span.trace and span.id and span.attributes and (kind or other))
        or any(name.startswith(_SPACES) for name in span.attributes)
        or any(name.startswith("gen_ai.") for name, _ in span.events)
    )


def _span(row: Mapping[str, Any]) -> _Span:
    if isinstance(held := row.get("attributes"), Mapping) and "span_id" in held:
        # Datadog's search has everything among the attributes.
        row = {**row, **held}
    trace, name = _ids(row)
    began = str(first(row, _STARTS) or 0)
    # A time in words by its digits, as long as one in nanoseconds.
    at = int(began) if began.isdigit() else int(re.sub(r"\D", "", began)[:19].ljust(19, "0"))
    held = _flat(_attributes(first(row, _ATTRIBUTES) or _said_in_any(row)))
    # Tables of Phoenix and of others have a column for each attribute.
    held |= {
        str(column).removeprefix("attributes."): value
        for column, value in row.items()
        if str(column).startswith(("attributes.", *_SPACES)) and value not in (None, "")
    }
    if held and (kind := row.get("span_kind")):
        held.setdefault("openinference.span.kind", kind)
    listed = objects_in(row.get("events")) or objects_in(row.get("logs"))
    events = [_event(one) for one in (*listed, *_kept_events(held))]
    parent = first(row, ("parentSpanId", "parent_span_id", "parent_id", "parentId"))
    return _Span(
        name, trace, at, held, events, str(row.get("name") or ""), str(parent or ""), _failed(row)
    )


def _said_in_any(row: Mapping[str, Any]) -> Any:
    """Return the attributes under a name of its own; None without any."""
    held = (value_in(one) if isinstance(one, str) else one for one in row.values())
    objects = (one for one in held if isinstance(one, Mapping))
    return next((one for one in objects if any(str(n).startswith(_SPACES) for n in one)), None)


def _failed(row: Mapping[str, Any]) -> bool:
    status = first(row, ("status", "status_code"))
    code = first(status, ("code", "status_code")) if isinstance(status, Mapping) else status
    return code == 2 or str(code).upper().endswith("ERROR")


def _ids(row: Mapping[str, Any]) -> tuple[str, str]:
    context = row.get("context")
    held = context if isinstance(context, Mapping) else row
    if isinstance(inner := row.get("TRACE"), Mapping):
        held = inner
    return str(first(held, _TRACE_IDS) or ""), str(first(held, _SPAN_IDS) or "")


def _event(one: Mapping[str, Any]) -> tuple[str, Attributes]:
    held = _attributes(first(one, ("attributes", "fields")))
    body = _value(one["body"]) if one.get("body") is not None else None
    if isinstance(body, Mapping):
        held = {**body, **held}
    elif isinstance(body, str):
        held = {"content": body, **held}
    if "event.name" in one:
        held = {**one, **held}
    name = first(one, ("name", "eventName", "event_name")) or first(held, ("event.name", "event"))
    return str(name or ""), held


def _kept_events(held: Attributes) -> list[Any]:
    """Return the events that Logfire keeps in an attribute."""
    try:
        return objects_in(plainly(first(held, ("events", "all_messages_events"))))
    except BrokenError:
        return []


def _attributes(given: Any) -> Attributes:
    """Return attributes by name, from a list of pairs or from an object."""
    if isinstance(given, str):
        given = value_in(given)
    if isinstance(given, Mapping):
        return {str(name): _value(value) for name, value in given.items()}
    return {str(one["key"]): _value(one.get("value")) for one in objects_in(given) if "key" in one}


def _flat(held: Attributes, before: str = "") -> Attributes:
    """Return attributes by their whole names; some are written as objects in objects."""
    found: Attributes = {}
    for name, value in held.items():
        if isinstance(value, Mapping) and before.count(".") < 2 and not is_message(value):
            found |= _flat({str(key): inner for key, inner in value.items()}, f"{before}{name}.")
        found[before + name] = value
    return found


def _value(value: Any) -> Any:
    """Return a value of OTLP as plain JSON; any other value as it is."""
    if not isinstance(value, Mapping) or len(value) != 1:
        return value
    ((kind, held),) = value.items()
    if kind in ("stringValue", "boolValue", "doubleValue", "bytesValue", "string_value"):
        return held
    if kind in ("intValue", "int_value"):
        return int(held)
    if kind in ("arrayValue", "array_value"):
        return [_value(one) for one in objects_in(first(held, ("values",)))]
    if kind in ("kvlistValue", "kvlist_value"):
        return _attributes(first(held, ("values",)))
    return value


# --- What was said --------------------------------------------------------------------------------

_INDEXED = re.compile(r"(?P<list>.+?)\.(?P<at>\d+)\.(?:message\.)?(?P<field>.+)")
_SPEAKS = re.compile(
    r"gen_ai\.(?P<role>system|user|assistant|tool)\.message|gen_ai\.(?P<choice>choice)"
)
_FOUND = re.compile(r"(?:retrieval|reranker)\.(?:output_)?documents\.\d+\.document\.content")


def _messages_of(span: _Span) -> tuple[list[Utterance], int]:
    """Return what a model read and wrote in a span, and how many answers these end with; no message
    of a span that is no call of one. Raises BrokenError for what was cut off.
    """
    held: Attributes = {}
    for _, attributes in span.events:
        held |= {name: value for name, value in attributes.items() if name in (*_READ, *_WROTE)}
    held |= span.attributes
    if not _NO_ANSWERS.isdisjoint(_kinds(span)):
        return [], 1
    if _is_other(span, _FINDS) or _is_other(span, _WRITES_NOTHING):
        return [], 1
    read = _indexed(held, _LISTS_READ) or read_given(first(held, _READ))
    wrote = _indexed(held, _LISTS_WROTE) or read_said(first(held, _WROTE))
    if not wrote and not first(held, _WROTE):
        wrote = read_said(_by_ending(held, _OTHER_WROTE))
        read = read or (read_given(_by_ending(held, _OTHER_READ)) if wrote else [])
    if not wrote:
        told = list(_told(span.events)) or utterances(plainly(first(held, _BOTH)))
        asked = [at for at, one in enumerate(told, start=1) if one.speaker != "assistant"]
        last = asked[-1] if asked else 0
        read, wrote = (told[:last], told[last:]) if told else (read, [])
    instructions = text_of_content(plainly(held.get("gen_ai.system_instructions")))
    before = [Utterance(speaker="system", text=instructions)] if instructions else []
    said = [one.model_copy(update={"speaker": "assistant"}) for one in wrote if one.text.strip()]
    return [*before, *read, *said], max(1, len(said))


def _is_other(span: _Span, pattern: re.Pattern[str]) -> bool:
    """Return whether a span of another convention says that it is of such a kind."""
    known = any(name.startswith(_SPACES) for name in span.attributes)
    if known or not {""}.issuperset(_kinds(span)):
        return False
    said = [str(v) for n, v in span.attributes.items() if _OTHER_KIND.fullmatch(n)]
    return any(map(pattern.search, said or [span.name]))


def _by_ending(held: Attributes, names: re.Pattern[str]) -> Any:
    """Return the first text, list or object whose name ends in one of these ways."""
    return next(
        (
            value
            for name, value in held.items()
            if isinstance(value, str | list | Mapping)
            and value
            and names.fullmatch(name)
            and not _NOT_SAID.fullmatch(name)
        ),
        None,
    )


def _told(events: Iterable[tuple[str, Attributes]]) -> Iterator[Utterance]:
    """Yield the messages of events, one for each message."""
    for name, held in events:
        spoken = _SPEAKS.fullmatch(name)
        if spoken is None:
            continue
        said = plainly(first(held, ("content", "gen_ai.event.content", "message")))
        if isinstance(said, Mapping) and isinstance(said.get("message"), Mapping):
            said = said["message"]
        text = text_of_content(said)
        role: Any = "assistant" if spoken["choice"] else spoken["role"]
        if text.strip():
            yield Utterance(speaker=role, text=text)


def _indexed(held: Attributes, lists: Sequence[str]) -> list[Utterance]:
    """Return the messages of attributes such as `gen_ai.prompt.0.content`, or of a list of them."""
    found: dict[int, Attributes] = {}
    for name, value in held.items():
        parts = _INDEXED.fullmatch(name)
        if parts is not None and parts["list"] in lists:
            found.setdefault(int(parts["at"]), {})[parts["field"]] = value
    if not found:
        kept = first(held, [name for name in lists if name.startswith("llm.")])
        return read_given(kept) if kept is not None else []
    messages = [_joined_parts(_by_field(found[at])) for at in sorted(found)]
    return utterances([{"role": "user", **one} for one in messages])


def _by_field(fields: Attributes) -> Attributes:
    """Return a message by the names of its fields: `prompt.text` is the content of a prompt."""
    text = first(fields, ("prompt.text", "completion.text"))
    return fields if text is None else {**fields, "content": text}


def _joined_parts(fields: Attributes) -> Attributes:
    """Return a message whose parts stand in attributes of their own, or as JSON in one."""
    if isinstance(parts := plainly(fields.get("content")), list):
        return {**fields, "content": parts}
    texts = [v for n, v in sorted(fields.items()) if n.endswith("message_content.text")]
    return fields if not texts or "content" in fields else {**fields, "content": "\n".join(texts)}


def _found_by(span: _Span) -> Iterator[str]:
    """Yield the texts that a search or a tool of a span found."""
    held = span.attributes
    try:
        for name in ("gen_ai.retrieval.documents", "retrieval.documents", "retrieval.output"):
            yield from documents_in(plainly(held.get(name)))
        for name, value in held.items():
            if _FOUND.fullmatch(name):
                yield text_of_content(value)
        for name, attributes in span.events:
            if name.startswith("db.query.result"):
                yield from documents_in(first(attributes, ("db.query.result.document", "document")))
        if _is_other(span, _FINDS):
            yield from found_in(_by_ending(held, _OTHER_WROTE))
        for name, value in held.items():
            if _TOLD_BY_TOOL.fullmatch(name):
                yield from found_in(value)
        if not _TOOLS.isdisjoint(_kinds(span)) and not any(
            name.startswith(("retrieval.", "gen_ai.retrieval.")) for name in held
        ):
            yield from found_in(first(held, ("gen_ai.tool.call.result", *_WROTE)))
    except BrokenError:
        return

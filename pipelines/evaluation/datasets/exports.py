"""Exports of Langfuse, LangSmith, Weave, Braintrust and Opik as steps of an application."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from pipelines.engine.speakers import is_message
from pipelines.evaluation.datasets.exchanges import (
    BrokenError,
    TracedStep,
    documents_beside,
    first,
    found_in,
    objects_in,
    plainly,
    step_of,
)
from pipelines.evaluation.datasets.files import Row

_LANGFUSE = frozenset(
    {
        *("observations", "traceId", "trace_id", "sessionId", "projectId", "bookmarked"),
        *("startTime", "latency", "timestamp", "span_attributes", "root_span_id", "span_data"),
    }
)
"""Columns of which an export has one, beside what went in and came out."""

_BEGAN = ("startTime", "start_time", "started_at", "startedAt", "created", "timestamp")
_TRACE = ("traceId", "trace_id", "root_span_id")
_RUNS = ({"run_type", "inputs", "outputs"}, {"op_name", "inputs", "output"})
"""Columns of LangSmith and of Weave."""

_INNER = ("observations", "spans", "steps", "children", "child_spans")
_DEEPEST = 8

_KINDS = (
    (
        re.compile(r"(?:^|_)(?:llm|chat_model|generation)(?:_|$)|^model$", re.IGNORECASE),
        "GENERATION",
    ),
    (re.compile(r"retriev|^rag$", re.IGNORECASE), "RETRIEVER"),
    (re.compile(r"(?:^|_)tool(?:_|$)", re.IGNORECASE), "TOOL"),
)
"""What programs call the kinds of steps that Langfuse calls so."""

_NAMES_KIND = ("type", "spanType", "span_type", "run_type")
_ERRORS = ("error", "exception", "error_info", "error_message")
_CALLED = re.compile(r"completions?\.create|messages\.create|responses\.create|generate_content")
_SEARCHED = re.compile("retriev|search|检索|搜索|查询|查找", re.IGNORECASE)


def exported_steps(rows: Sequence[Row]) -> Iterable[TracedStep | None] | None:
    """Return the steps of an export: of traces with what happened in them, or of either alone; None
    for another table. A step is None where what it said was cut off.
    """
    columns = {name for row in rows for name in row}
    if _are_events(rows):
        rows = [_of_event(row) for row in rows if not _PASSING.search(_event(row))]
    elif any(names <= columns for names in _RUNS):
        rows = [one for row in rows for one in _observations(row)]
    elif not _are_observed(rows) and not (
        columns & _LANGFUSE and columns & {"input", "observations", "span_data"}
    ):
        return None
    rows = [_opened(row) for row in rows]
    observations: dict[str, list[Mapping[str, Any]]] = {}
    traces: dict[str, Mapping[str, Any]] = {}
    for number, row in enumerate(rows, start=1):
        trace = first(row, _TRACE)
        if trace and _kind(row):
            observations.setdefault(str(trace), []).append(row)
            continue
        name = str(first(row, (*_TRACE, "id", "record_id")) or f"row {number}")
        traces.setdefault(name, row)
        observations.setdefault(name, []).extend(_within(row))
    found: list[TracedStep | None] = []
    for trace, inside in observations.items():
        inside.sort(key=lambda one: str(first(one, _BEGAN) or ""))
        found += _observed(trace, inside, traces.get(trace))
    return found


def _are_observed(rows: Sequence[Row]) -> bool:
    """Return whether calls of models or searches lie in one of the rows."""
    return any(_kind(one) in ("GENERATION", "RETRIEVER") for row in rows for one in _within(row))


def _within(row: Mapping[str, Any], depth: int = 0) -> list[Mapping[str, Any]]:
    """Return the steps that lie in a step."""
    inner = [one for name in _INNER for one in objects_in(_tried(row.get(name)))]
    steps = [one for one in inner if "input" in one or "output" in one]
    deeper = [one for each in steps if depth < _DEEPEST for one in _within(each, depth + 1)]
    return [*steps, *deeper]


def _observed(
    trace: str, inside: Iterable[Mapping[str, Any]], whole: Mapping[str, Any] | None
) -> list[TracedStep | None]:
    """Return the calls of models in a trace, each with what was found before it; without any, what
    the trace or its outermost step says. Of a call that failed or says nothing no answer is there.
    """
    known: list[str] = []
    found: list[TracedStep | None] = []
    for one in inside:
        if _kind(one) == "GENERATION":
            made = _step(one, trace, tuple(known))
            silent = made is not None and _failed(one)
            found.append(TracedStep(made.id, []) if made is not None and silent else made)
        elif _is_search(one):
            told = found_in(_tried(one.get("output"))) or documents_beside(one)
            known += [text for text in told if text not in known]
        elif whole is None:
            whole = one
    answered = any(one is None or one.has_answer for one in found)
    return found if answered or whole is None else [*found, _step(whole, trace, tuple(known))]


def _opened(row: Row) -> Row:
    """Return a row with what the agents of OpenAI keep inside it; functions there are tools."""
    held = row.get("span_data")
    if not isinstance(held, Mapping):
        return row
    kind = str(held.get("type") or "")
    return {**row, **held, "type": "tool" if kind == "function" else kind}


def _kind(one: Mapping[str, Any]) -> str:
    """Return the kind of a step, as Langfuse calls it; "" without any."""
    held = one.get("span_attributes")
    return _kind_called(str(first(one, _NAMES_KIND) or first(held, _NAMES_KIND) or ""))


def _kind_called(said: str) -> str:
    return next((kind for pattern, kind in _KINDS if pattern.search(said)), said.upper())


def _failed(one: Mapping[str, Any]) -> bool:
    """Return whether a call failed: what it holds as its answer then is none."""
    told = str(first(one, ("level", "status")) or "").upper()
    return told == "ERROR" or any(one.get(name) for name in _ERRORS)


def _is_search(one: Mapping[str, Any]) -> bool:
    kind = _kind(one)
    name = first(one, ("name",)) or first(one.get("span_attributes"), ("name",))
    named = _SEARCHED.search(str(name or "")) is not None
    return kind in ("RETRIEVER", "TOOL") or (kind in ("SPAN", "EVENT", "FUNCTION") and named)


def _step(row: Mapping[str, Any], trace: str, sources: tuple[str, ...]) -> TracedStep | None:
    name, model = str(row.get("id") or trace), str(row.get("model") or "")
    known = {"id": name, "model": model, "trace": trace, "sources": sources}
    try:
        return step_of(row.get("input"), row.get("output"), **known)
    except BrokenError:
        return None


def _observations(row: Mapping[str, Any]) -> Iterator[Row]:
    """Yield a run of LangSmith or a call of Weave, and those within it, as Langfuse has them."""
    kind = _kind(row) if row.get("run_type") else ""
    if not kind and _CALLED.search(str(row.get("op_name") or "")):
        kind = "GENERATION"
    trace = first(row, (*_TRACE, "session_id", "id"))
    yield {
        "id": row.get("id"),
        "traceId": trace,
        "type": kind or "SPAN",
        # Weave has only the address of a function.
        "name": str(first(row, ("name", "op_name")) or "").rpartition("/op/")[2],
        "startTime": first(row, _BEGAN),
        "input": row.get("inputs"),
        "output": first(row, ("outputs", "output")),
        "model": row.get("model"),
        **{name: row[name] for name in ("status", *_ERRORS) if row.get(name)},
    }
    for inner in objects_in(row.get("child_runs")):
        yield from _observations({**inner, "trace_id": trace})


_EVENTS = ("event", "event_type", "node_type", "nodeType")
"""Names of the kind of an event, or of a node of a workflow."""

_PASSING = re.compile(r"(?:^|_)(?:start|begin|stream|delta)(?:ed)?(?:_|$)", re.IGNORECASE)
"""Kinds of events in which nothing is whole."""


def _event(row: Mapping[str, Any]) -> str:
    return str(first(row, _EVENTS) or "")


def _are_events(rows: Sequence[Row]) -> bool:
    """Return whether rows are the events of an application, or the nodes of a workflow, among them
    what a model said.
    """
    return all(map(_event, rows)) and any(_kind_called(_event(row)) == "GENERATION" for row in rows)


def _of_event(row: Row) -> Row:
    """Return an event or a node as Langfuse has an observation."""
    held = first(row, ("data", "payload"))
    held = held if isinstance(held, Mapping) else row
    around = (held, *(one for one in held.values() if isinstance(one, Mapping)))
    given = first(
        held, ("input", "inputs", "chat_history", "prompt", "query", "question", "request")
    )
    said = first(held, ("output", "outputs", "response", "completion", "answer", "result"))
    # What a node was given may be no more than what its prompt quotes.
    prompts = (one for each in around if each is not said for one in each.values())
    prompt = next((p for p in prompts if isinstance(p, list) and any(map(is_message, p))), given)
    return {
        "id": first(row, ("id", "id_", "run_id")),
        "traceId": str(first(row, (*_TRACE, "workflow_run_id")) or "run"),
        "type": _kind_called(_event(row)),
        "name": first(row, ("name", "title", "event_name")),
        "input": prompt,
        "output": held if said is None else said,
        **{name: row[name] for name in ("status", *_ERRORS) if row.get(name)},
    }


def _tried(value: Any) -> Any:
    try:
        return plainly(value)
    except BrokenError:
        return None
